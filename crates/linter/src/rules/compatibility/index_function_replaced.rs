//! Functions behind stored results.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::everywhere_at_least;
use crate::rules::deployment::dropped_together::listed;
use crate::rules::deployment::other_statements::{any_later, means};
use crate::rules::text::{join, sql_name};
use pgvet_model::catalog::{Catalog, ConstraintKind, Function, Mention, Relation, RelationKind};
use pgvet_model::effect::{ChangedObject, RelationName};
use pgvet_model::routine::Routines;
use pgvet_syntax::ast::{Ast, Expr, ExprKind, FunctionBody, ObjectKind, ReindexTarget};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

declare_rule! {
    /// A replaced function that an index, a generated column or a `CHECK` constraint uses, directly or through another
    /// function.
    ///
    /// ## Why it matters
    ///
    /// After the change, queries that use the index miss rows, a unique index accepts duplicates, and stored columns
    /// mix old and new results. PostgreSQL trusts `IMMUTABLE`, so it computes an index entry or a stored column only
    /// when the row is written. A new version of the function does not change existing entries.
    ///
    /// A `CHECK` constraint uses the new code at once, but PostgreSQL does not check existing rows again, not even with
    /// `VALIDATE CONSTRAINT`. If a row violates the constraint under the new code, any `UPDATE` of that row fails.
    /// Restoring a dump fails as well.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// CREATE FUNCTION canonical(mail text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(mail)';
    /// CREATE UNIQUE INDEX users_canonical ON users (canonical(email));
    /// -- migration:
    /// CREATE OR REPLACE FUNCTION canonical(mail text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT trim(lower(mail))';
    /// ```
    ///
    /// Use instead:
    ///
    /// Create a new function with a new index, and drop the old ones when nothing uses them.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// CREATE FUNCTION canonical(mail text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(mail)';
    /// CREATE UNIQUE INDEX users_canonical ON users (canonical(email));
    /// -- migration:
    /// CREATE FUNCTION canonical_2(mail text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT trim(lower(mail))';
    /// CREATE UNIQUE INDEX CONCURRENTLY users_canonical_2 ON users (canonical_2(email));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a replacement with the same code
    /// - an index that the migration rebuilds (`REINDEX`, or `DROP` and `CREATE`)
    /// - indexes and tables that the same migration created
    ///
    /// ## Other linters
    ///
    /// squawk, eugene, pgls, `strong_migrations` and pg-migration-lint do not check which objects use a function.
    "index-function-replaced", Compatibility, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let replaced = context.effects.changes.iter().find_map(|change| {
        let ChangedObject::Function { oid, .. } = change.object else { return None };
        let (old, new) = (context.before.get_function(oid)?, context.after.get_function(oid)?);
        (!is_same(new, old)).then_some((old, change.range))
    });
    let Some((function, range)) = replaced else { return };
    let mut tables: Vec<RelationName> = Vec::new();
    let mut uses = Vec::new();
    let mut callers = BTreeSet::new();
    for caller in reaching(context, function) {
        for relation in context.before.relations_mentioning(&[Mention::Call(caller.name.clone())]) {
            let is_new = relation.birth.is_of(context.deployment());
            let used = if is_new { Vec::new() } else { uses_of(context, relation, &caller) };
            if !used.is_empty() {
                let index = relation.index();
                let table = index.and_then(|index| context.before.get_relation(index.table)).unwrap_or(relation);
                tables.push(RelationName::existing(table));
                if caller.oid != function.oid {
                    callers.insert(caller.display_name());
                }
                uses.extend(used);
            }
        }
    }
    if uses.is_empty() {
        return;
    }
    let message = message(function, &uses, &callers.into_iter().collect::<Vec<_>>());
    let mut finding = reporter.report(range, message);
    for table in &tables {
        finding = finding.relation(table);
    }
    finding.help(help(context, &uses, tables.first())).emit();
}

/// The function, and those that relations may call and whose code calls it, directly or through others.
fn reaching(context: &RuleContext<'_>, function: &Arc<Function>) -> Vec<Arc<Function>> {
    let catalog = context.before;
    let routines = Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    let names = catalog.names_called_by_relations();
    let called = names.iter().flat_map(|name| catalog.schemas().map(move |schema| (schema, name)));
    let called = called.flat_map(|(schema, name)| catalog.functions_named(schema, name));
    let mut reaching: Vec<Arc<Function>> =
        called.filter(|one| one.oid != function.oid && routines.reaches(one.oid, function.oid)).cloned().collect();
    reaching.sort_unstable_by_key(|caller| caller.oid);
    reaching.insert(0, Arc::clone(function));
    reaching
}

/// A CHECK calls the new code at once, but PostgreSQL does not check the existing rows again, not even with VALIDATE
/// CONSTRAINT, which skips a valid constraint (PostgreSQL 14 and 18, measured).
fn message(function: &Function, uses: &[String], callers: &[String]) -> String {
    let (checks, stored): (Vec<String>, Vec<String>) =
        uses.iter().cloned().partition(|one| one.starts_with("the constraint"));
    let keep = if stored.len() == 1 { "keeps" } else { "keep" };
    let stored = listed(stored).map(|list| format!("{list} {keep} the values that the old code computed"));
    let checks = listed(checks).map(|list| format!("PostgreSQL does not check existing rows against {list} again"));
    let effects: Vec<String> = stored.into_iter().chain(checks).collect();
    let name = function.display_name();
    let calls = match callers {
        [] => String::new(),
        [only] => format!(": {only} calls {name}"),
        more => format!(": {} call {name}", join(more)),
    };
    format!("{name} changes, but {}{calls}", effects.join(", and "))
}

const COMPUTE: &str = "run an UPDATE in batches that sets a column of the expression to its own value";
const CHECK: &str = "drop the constraint, add it again NOT VALID, and validate it in a later transaction";

fn help(context: &RuleContext<'_>, uses: &[String], table: Option<&RelationName>) -> String {
    let has = |word: &str| uses.iter().any(|one| one.starts_with(word));
    let kinds = [
        ("the column", "a new column", "compute the stored values again"),
        ("the index", "a new index", "rebuild the index"),
        ("the constraint", "a new constraint", "check the rows again"),
    ];
    let used: Vec<_> = kinds.into_iter().filter(|(word, ..)| has(word)).collect();
    let in_words = |words: Vec<&str>| join(&words.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let new = in_words(used.iter().map(|(_, new, _)| *new).collect());
    let again = in_words(used.iter().map(|(.., again)| *again).collect());
    let first = format!("create a new function, and use it in {new}; or");
    let index = table.filter(|_| has("the index")).map(|table| rebuild(context, table));
    match used.as_slice() {
        [("the column", ..)] => return format!("{first} {again}: {COMPUTE}"),
        [("the constraint", ..)] => return format!("{first} {CHECK}"),
        _ => {}
    }
    let mut help = format!("{first} {again}{}", index.unwrap_or_default());
    if has("the column") {
        let _ = write!(help, "\nto compute the stored values again, {COMPUTE}");
    }
    if has("the constraint") {
        let _ = write!(help, "\nto check the rows again, {CHECK}");
    }
    help
}

/// How to rebuild the indexes of a table. Source: release notes of PostgreSQL 12, and of 14 for partitioned tables.
fn rebuild(context: &RuleContext<'_>, table: &RelationName) -> String {
    if table.kind == RelationKind::PartitionedTable && !everywhere_at_least(context, 14) {
        return format!(" (before PostgreSQL 14: REINDEX each partition of `{}`)", table.name);
    }
    let concurrently = if everywhere_at_least(context, 12) { " CONCURRENTLY" } else { "" };
    format!(":\n    REINDEX TABLE{concurrently} {};", sql_name(context, table))
}

/// Whether the code is the same except for white space.
fn is_same(new: &Function, old: &Function) -> bool {
    match (&*new.body, &*old.body) {
        (FunctionBody::Source { text: new, .. }, FunctionBody::Source { text: old, .. }) => {
            new.split_whitespace().eq(old.split_whitespace())
        }
        (new, old) => new == old,
    }
}

fn uses_of(context: &RuleContext<'_>, relation: &Relation, function: &Function) -> Vec<String> {
    let calls = |expr: &Expr| calls(context.before, expr, function);
    let mut found = Vec::new();
    if let Some(index) = relation.index() {
        let mut parts = index.elements.iter().map(|element| &element.key).chain(index.predicate.as_deref());
        if parts.any(calls) && !is_rebuilt(context, relation, index.table) {
            found.push(format!("the index `{}`", relation.name));
        }
    }
    for column in &relation.columns {
        if column.generated.as_ref().is_some_and(|generated| generated.stored && calls(&generated.expression)) {
            found.push(format!("the column `{}.{}`", relation.name, column.name));
        }
    }
    for constraint in &relation.constraints {
        if matches!(&constraint.kind, ConstraintKind::Check { expression, .. } if calls(expression)) {
            found.push(format!("the constraint `{}` on `{}`", constraint.name, relation.name));
        }
    }
    found
}

fn calls(catalog: &Catalog, expr: &Expr, function: &Function) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        if let ExprKind::Call(call) = &part.kind
            && call.name == function.name
        {
            let path = vec![function.schema.clone()].into();
            found |= catalog.functions_called(call, &path).contains(&function.oid);
        }
    });
    found
}

/// Whether a later statement of the migration rebuilds the index.
fn is_rebuilt(context: &RuleContext<'_>, index: &Relation, table: pgvet_model::catalog::Oid) -> bool {
    let index = RelationName::existing(index);
    let table = context.before.get_relation(table).map(|table| RelationName::existing(table));
    any_later(context, |ast| match ast {
        Ast::Reindex(reindex) => match &reindex.target {
            ReindexTarget::Index(name) => means(context, name, &index),
            ReindexTarget::Table(name) => table.as_ref().is_some_and(|table| means(context, name, table)),
            _ => true,
        },
        Ast::Drop(drop) if drop.kind == ObjectKind::Index => {
            drop.objects.iter().any(|object| means(context, &object.name, &index))
        }
        _ => false,
    })
}
