//! SECURITY DEFINER functions that use the `search_path` of their caller.

use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::text::{identifier, signature};
use crate::severity::Severity;
use pgvet_model::builtin;
use pgvet_model::catalog::{Function, TEMPORARY_SCHEMA, names_in_path, search_path, search_path_value};
use pgvet_syntax::ast::{ExprKind, FunctionBody, FunctionCall, ObjectName, Part};
use smol_str::SmolStr;

declare_rule! {
    /// A function runs with the privileges of its owner, but resolves names through the `search_path` of its caller.
    ///
    /// ## Why it matters
    ///
    /// `SECURITY DEFINER` gives the caller the privileges of the owner during the call. If the function does not set
    /// `search_path`, the caller controls it. In a schema of their own, the caller can then create an object with the
    /// name of a table, function or operator that the function uses. For a table, a temporary table is enough, because
    /// PostgreSQL looks for tables in `pg_temp` first. The function uses the caller's object with the privileges of the
    /// owner.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION is_admin(wanted text) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$
    /// BEGIN
    ///     RETURN EXISTS (SELECT FROM admins WHERE name = wanted);
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION is_admin(wanted text) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER
    ///     SET search_path = app, pg_temp AS $$
    /// BEGIN
    ///     RETURN EXISTS (SELECT FROM admins WHERE name = wanted);
    /// END $$;
    /// ```
    ///
    /// `pg_temp` at the end makes PostgreSQL look for temporary tables last. If `pg_temp` is not named, PostgreSQL
    /// looks for them first.
    ///
    /// ## When it is not reported
    ///
    /// - a function for which a later `ALTER FUNCTION ... SET search_path` sets it: pgvet looks at the function after
    ///   the last migration
    /// - code that qualifies every name that it uses. If only operators and functions of PostgreSQL are unqualified,
    ///   the severity is `info`.
    /// - functions in C and other languages that pgvet does not read
    ///
    /// For a `search_path` without `pg_temp`, the severity is `info`.
    ///
    /// ## Other linters
    ///
    /// squawk, eugene and pg-migration-lint do not check functions. splinter checks a live database, and pgspot checks
    /// single statements.
    "security-definer-search-path", Security, Warning,
    { sources: &["splinter/function_search_path_mutable", "pgspot/PS003", "pgspot/PS004", "migrationpilot/MP099"] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(function) = context.function().filter(|function| function.security_definer) else { return };
    let range = context.routine.name_range;
    let signature = signature(context, function);
    let exposed = Exposed::of(context);
    let Some((_, path)) = function.settings.iter().find(|(name, _)| name == "search_path") else {
        let message = format!(
            "{} runs with its owner's privileges, but resolves names through its caller's search_path: the caller can \
             make it use other tables and functions",
            function.display_name()
        );
        let help = format!(
            "set search_path on the function to the schemas that it needs, with pg_temp last; or to '' if all names in \
             its body are qualified:\n    ALTER ROUTINE {signature} SET search_path = {};",
            with_temporary_last(&search_path_value(&needed_schemas(context, function)))
        );
        let severity = match exposed {
            Exposed::Names => Severity::Warning,
            Exposed::Operators => Severity::Info,
            Exposed::Nothing => return,
        };
        reporter.report(range, message).severity(severity).help(help).emit();
        return;
    };
    let schemas = search_path(path);
    let has_temporary_last = schemas.last().is_some_and(|last| last == "pg_temp");
    if !schemas.is_empty() && !has_temporary_last && exposed == Exposed::Names {
        let message = format!(
            "{} runs with its owner's privileges, and finds its caller's temporary tables first: the caller can \
             make it use other tables",
            function.display_name()
        );
        let help = format!(
            "put pg_temp last in the search_path of the function:\n    ALTER ROUTINE {signature} SET search_path = {};",
            with_temporary_last(path)
        );
        reporter.report(range, message).severity(Severity::Info).help(help).emit();
    }
}

/// The names that the caller's `search_path` can redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exposed {
    /// Everything that the code names is qualified.
    Nothing,
    /// Operators and functions of PostgreSQL, which come first unless a path names `pg_catalog` behind others.
    Operators,
    /// Tables and functions of the project.
    Names,
}

impl Exposed {
    fn of(context: &RoutineContext<'_>) -> Self {
        let is_dynamic = matches!(context.function().map(|function| &*function.body),
            Some(FunctionBody::Source { text, .. }) if text.to_ascii_lowercase().contains("execute"));
        let mut most = if is_dynamic || !context.routine.unread.is_empty() { Self::Names } else { Self::Nothing };
        each_unqualified(context, &mut |name| most = most.max(name.exposed(context)));
        most
    }
}

/// A name in the code without a schema.
enum Unqualified<'a> {
    Table(&'a ObjectName),
    Function(&'a FunctionCall),
    Operator,
}

impl Unqualified<'_> {
    fn exposed(&self, context: &RoutineContext<'_>) -> Exposed {
        match self {
            Self::Table(_) => Exposed::Names,
            Self::Function(call) if context.called(call).is_empty() && !builtin::functions(&call.name).is_empty() => {
                Exposed::Operators
            }
            Self::Function(_) => Exposed::Names,
            Self::Operator => Exposed::Operators,
        }
    }

    /// The schema of the object that it means; `None` if no migration shows the object.
    fn schema(&self, context: &RoutineContext<'_>) -> Option<SmolStr> {
        match self {
            Self::Table(name) => {
                context.relation(name).filter(|relation| relation.known).map(|relation| relation.schema.clone())
            }
            Self::Function(call) => {
                let called = context.called(call).into_iter().find_map(|oid| context.catalog.get_function(oid));
                called.map(|function| function.schema.clone())
            }
            Self::Operator => None,
        }
    }
}

fn each_unqualified(context: &RoutineContext<'_>, found: &mut impl FnMut(Unqualified<'_>)) {
    for step in context.routine.steps() {
        for sql in &step.sql {
            let mut ctes: Vec<&SmolStr> = Vec::new();
            sql.ast.visit(&mut |part| {
                if let Part::Query(query) = part {
                    ctes.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| &cte.name.text));
                }
            });
            sql.ast.visit(&mut |part| {
                if let Some(name) = unqualified(part, &ctes) {
                    found(name);
                }
            });
        }
    }
}

fn unqualified<'a>(part: Part<'a>, ctes: &[&SmolStr]) -> Option<Unqualified<'a>> {
    let table = |name: &'a ObjectName| {
        let is_table = name.schema.is_none() && !ctes.contains(&&name.name.text);
        is_table.then_some(Unqualified::Table(name))
    };
    match part {
        Part::Read(relation) => table(&relation.name),
        Part::Insert(insert) => table(&insert.table.name),
        Part::Update(update) => table(&update.table.name),
        Part::Delete(delete) => table(&delete.table.name),
        Part::Merge(merge) => table(&merge.table.name),
        Part::Expr(expr) => match &expr.kind {
            ExprKind::Call(call) if call.schema.is_none() => Some(Unqualified::Function(call)),
            ExprKind::Operator { schema: None, .. } => Some(Unqualified::Operator),
            _ => None,
        },
        Part::Query(_) => None,
    }
}

/// The schemas that the names in the code mean today. A name that no migration shows may be in any schema of the path
/// of the session that created the function.
fn needed_schemas(context: &RoutineContext<'_>, function: &Function) -> Vec<SmolStr> {
    let mut schemas: Vec<SmolStr> = Vec::new();
    let mut are_all_known = context.routine.unread.is_empty();
    each_unqualified(context, &mut |name| {
        if name.exposed(context) != Exposed::Names {
            return;
        }
        match name.schema(context) {
            Some(schema) if schemas.contains(&schema) || schema == "pg_catalog" => {}
            Some(schema) => schemas.push(schema),
            None => are_all_known = false,
        }
    });
    if !are_all_known || schemas.is_empty() {
        let path = context.routine.search_path.iter().filter(|schema| !schemas.contains(schema));
        schemas.extend(path.cloned().collect::<Vec<_>>());
    }
    if schemas.is_empty() {
        schemas.push(function.schema.clone());
    }
    let place = |schema: &SmolStr| context.routine.search_path.iter().position(|other| other == schema);
    schemas.sort_by_key(|schema| place(schema).unwrap_or(usize::MAX));
    schemas
}

/// The schemas of a `search_path` as SET takes them, `pg_temp` at the end.
fn with_temporary_last(path: &str) -> String {
    let names = names_in_path(path);
    let schemas = names.iter().map(SmolStr::as_str).filter(|schema| *schema != TEMPORARY_SCHEMA);
    schemas.chain([TEMPORARY_SCHEMA]).map(identifier).collect::<Vec<_>>().join(", ")
}
