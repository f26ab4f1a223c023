//! Names in PL/pgSQL that can mean a variable or a column.

use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::text::identifier;
use pgvet_model::catalog::Relation;
use pgvet_model::routine::{Code, SqlRole};
use pgvet_syntax::ast::{
    Assignment, Ast, ConflictTarget, Cte, Expr, ExprKind, FromItem, Insert, InsertSource, ParameterMode, Query,
    QueryBody, QueryStatement, RelationRef, Select, Target, With,
};
use pgvet_syntax::plpgsql::Body;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A name in a PL/pgSQL query that can mean a variable or a column.
    ///
    /// ## Why it matters
    ///
    /// Every call that reaches the query fails with `column reference "..." is ambiguous`, because PL/pgSQL does not
    /// choose between the variable and the column. The error does not appear when the function is created. The output
    /// columns of `RETURNS TABLE` and `OUT` parameters are variables, too.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// CREATE FUNCTION named(wanted text) RETURNS TABLE (id bigint) LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     RETURN QUERY SELECT id FROM users WHERE name = wanted;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// CREATE FUNCTION named(wanted text) RETURNS TABLE (id bigint) LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     RETURN QUERY SELECT users.id FROM users WHERE users.name = wanted;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - code with `#variable_conflict use_column` or `#variable_conflict use_variable`
    /// - functions in the language SQL, where the name always means the column
    /// - variables of inner blocks and of loops
    /// - columns of tables that the code itself creates
    /// - the text of `EXECUTE`, in which variables are not visible
    /// - names in `ORDER BY` and in the conditions of joins
    ///
    /// ## Other linters
    ///
    /// `plpgsql_check` reports the same names on a server.
    "ambiguous-column-name", Plpgsql, Error,
    { sources: &["plpgsql_check/plpgsql_check_function"] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let Code::Plpgsql(body) = &context.routine.code else { return };
    if body.options.iter().any(|option| option.name == "variable_conflict" && option.value != "error") {
        return;
    }
    let variables = variables(context, body);
    let steps = context.routine.steps();
    let all = || steps.iter().flat_map(|step| &step.sql);
    let created: Vec<&SmolStr> = all().filter_map(|sql| created(sql.ast)).collect();
    for sql in all().filter(|sql| sql.role != SqlRole::Dynamic && sql.dynamic.is_none()) {
        let mut search =
            Search { context, created: &created, variables: &variables, ctes: Vec::new(), found: Vec::new() };
        search.statement(sql.ast);
        let Some(first) = search.found.first() else { continue };
        let (variable, table) = (first.variable, &first.table.name);
        let name = &variable.name;
        let message = format!(
            "this always fails: PL/pgSQL cannot tell whether `{name}` means {} or a column of `{table}`",
            variable.kind
        );
        let help = help(context, first);
        let mut finding =
            reporter.report(sql.place(first.range), message).relation(&context.relation_name(first.table));
        for other in &search.found[1..] {
            finding = finding.label(sql.place(other.range), format!("`{}` is ambiguous, too", other.variable.name));
        }
        finding.help(help).emit();
    }
}

fn help(context: &RoutineContext<'_>, found: &Found<'_>) -> String {
    let name = identifier(&found.variable.name);
    let function = context.function().filter(|_| !matches!(found.variable.kind, Kind::Declared));
    let Some(function) = function else {
        return format!(
            "give the variable another name, such as `v_{0}`, and use the new name where you mean the variable",
            found.variable.name
        );
    };
    let noun = found.variable.kind.noun();
    format!(
        "where you mean the column, write `{}.{name}`; where you mean the {noun}, write `{}.{name}`. Or give the {noun} \
         another name, which needs DROP FUNCTION first if the function already exists",
        found.called,
        identifier(&function.name)
    )
}

/// The table that a statement of the code creates.
fn created(ast: &Ast) -> Option<&SmolStr> {
    match ast {
        Ast::CreateTable(create) => Some(&create.name.name.text),
        Ast::CreateTableAs(create) => Some(&create.into.name.name.text),
        _ => None,
    }
}

/// A variable that is in scope everywhere in the code.
struct Variable {
    name: SmolStr,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Parameter,
    Output,
    Declared,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::Output => "output column",
            Self::Declared => "variable",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Parameter => "a parameter of the function",
            Self::Output => "an output column of the function",
            Self::Declared => "a variable",
        })
    }
}

fn variables(context: &RoutineContext<'_>, body: &Body) -> Vec<Variable> {
    let parameters = context.function().into_iter().flat_map(|function| &function.parameters);
    let parameters = parameters.filter_map(|parameter| {
        let kind = match parameter.mode {
            ParameterMode::Out | ParameterMode::Table => Kind::Output,
            _ => Kind::Parameter,
        };
        Some(Variable { name: parameter.name.clone()?, kind })
    });
    let declared = body.block.declarations.iter();
    let declared = declared.map(|one| Variable { name: one.name.text.clone(), kind: Kind::Declared });
    parameters.chain(declared).collect()
}

/// A relation whose columns a name can mean, and what it is called in the query.
type InScope<'a> = (&'a Relation, &'a SmolStr);

/// A name that can mean both.
struct Found<'a> {
    range: TextRange,
    variable: &'a Variable,
    table: &'a Relation,
    called: &'a SmolStr,
}

/// The search in a statement, level by level as PostgreSQL resolves names.
///
/// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_comp.c`, `plpgsql_post_column_ref`.
struct Search<'a> {
    context: &'a RoutineContext<'a>,
    created: &'a [&'a SmolStr],
    variables: &'a [Variable],
    /// Names of WITH, at any level.
    ctes: Vec<&'a SmolStr>,
    found: Vec<Found<'a>>,
}

impl<'a> Search<'a> {
    fn statement(&mut self, ast: &'a Ast) {
        match ast {
            Ast::Select(query) => self.query(query, &[]),
            Ast::Insert(insert) => self.insert(insert),
            Ast::Update(update) => {
                self.with(update.with.as_ref());
                let scope = self.scope(&update.from, [&update.table]);
                self.assigned(&update.assignments, &scope);
                self.expressions(update.filter.iter(), &scope);
                self.targets(&update.returning, &scope);
            }
            Ast::Delete(delete) => {
                self.with(delete.with.as_ref());
                let scope = self.scope(&delete.using, [&delete.table]);
                self.expressions(delete.filter.iter(), &scope);
                self.targets(&delete.returning, &scope);
            }
            _ => {}
        }
    }

    fn with(&mut self, with: Option<&'a With>) {
        for Cte { name, statement, .. } in with.iter().flat_map(|with| &with.ctes) {
            self.ctes.push(&name.text);
            if let QueryStatement::Select(query) = statement {
                self.query(query, &[]);
            }
        }
    }

    fn insert(&mut self, insert: &'a Insert) {
        self.with(insert.with.as_ref());
        if let InsertSource::Query(query) = &insert.source {
            self.query(query, &[]);
        }
        let scope = self.scope(&[], [&insert.table]);
        let target = insert.on_conflict.as_ref().and_then(|conflict| conflict.target.as_ref());
        if let Some(ConflictTarget::Inference { elements, predicate }) = target {
            self.expressions(elements.iter().chain(predicate), &scope);
        }
        self.targets(&insert.returning, &scope);
    }

    fn query(&mut self, query: &'a Query, outer: &[InScope<'a>]) {
        self.with(query.with.as_ref());
        match &query.body {
            QueryBody::Select(select) => self.select(select, outer),
            QueryBody::Values(rows) => self.expressions(rows.iter().flatten(), outer),
            QueryBody::SetOperation { left, right, .. } => {
                self.query(left, outer);
                self.query(right, outer);
            }
        }
    }

    fn select(&mut self, select: &'a Select, outer: &[InScope<'a>]) {
        let mut scope = self.scope(&select.from, []);
        scope.extend_from_slice(outer);
        self.targets(&select.targets, &scope);
        let having = select.having.iter();
        self.expressions(select.filter.iter().chain(&select.group_by).chain(having), &scope);
        select.from.iter().for_each(|item| self.item(item, outer));
    }

    /// Queries in FROM.
    fn item(&mut self, item: &'a FromItem, outer: &[InScope<'a>]) {
        match item {
            FromItem::Subquery { query, lateral: false, .. } => self.query(query, outer),
            FromItem::Join { left, right, .. } => {
                self.item(left, outer);
                self.item(right, outer);
            }
            _ => {}
        }
    }

    /// The relations of FROM and others whose columns are known.
    fn scope<const N: usize>(&self, from: &'a [FromItem], others: [&'a RelationRef; N]) -> Vec<InScope<'a>> {
        fn relations<'f>(item: &'f FromItem, found: &mut Vec<&'f RelationRef>) {
            match item {
                FromItem::Relation(relation) => found.push(relation),
                FromItem::Join { left, right, .. } => {
                    relations(left, found);
                    relations(right, found);
                }
                FromItem::Subquery { .. } | FromItem::Function { .. } => {}
            }
        }
        let mut all = others.to_vec();
        from.iter().for_each(|item| relations(item, &mut all));
        let known = |relation: &'a RelationRef| {
            let name = &relation.name.name.text;
            let is_cte = relation.name.schema.is_none() && self.ctes.contains(&name);
            let has_own_columns = relation.alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
            let is_other = is_cte || has_own_columns || self.created.contains(&name);
            let table = if is_other { None } else { self.context.relation(&relation.name) };
            Some((table?, relation.called()))
        };
        all.into_iter().filter_map(known).collect()
    }

    fn assigned(&mut self, assignments: &'a [Assignment], scope: &[InScope<'a>]) {
        self.expressions(assignments.iter().map(|assignment| &assignment.value), scope);
    }

    fn targets(&mut self, targets: &'a [Target], scope: &[InScope<'a>]) {
        self.expressions(targets.iter().map(|target| &target.value), scope);
    }

    fn expressions(&mut self, expressions: impl Iterator<Item = &'a Expr>, scope: &[InScope<'a>]) {
        let mut queries = Vec::new();
        for expression in expressions {
            expression.walk(&mut |part| match &part.kind {
                ExprKind::Column(_) => self.column(part, scope),
                ExprKind::Subquery { query, .. } => queries.push(&**query),
                _ => {}
            });
        }
        queries.into_iter().for_each(|query| self.query(query, scope));
    }

    fn column(&mut self, part: &'a Expr, scope: &[InScope<'a>]) {
        let Some(name) = part.as_column() else { return };
        let Some(variable) = self.variables.iter().find(|variable| variable.name == *name) else { return };
        let Some((table, called)) = scope.iter().find(|(table, _)| table.column(name).is_some()) else { return };
        self.found.push(Found { range: part.range, variable, table, called });
    }
}
