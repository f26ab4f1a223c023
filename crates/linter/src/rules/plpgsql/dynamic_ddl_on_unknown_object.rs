//! Dynamic SQL that destroys an object whose name is known only at run time.

use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use pgvet_model::routine::{Around, Node, Routine, Sql, Step};
use pgvet_syntax::ast::{
    AlterTableAction, AlterTableCommand, Ast, Expr, ExprKind, Literal, ObjectKind, ObjectName, Part, QueryBody, Select,
    Target,
};
use pgvet_syntax::plpgsql::{DeclarationKind, HOLE, Into, LoopKind, SqlText, Statement, StatementKind};
use smol_str::SmolStr;

declare_rule! {
    /// `EXECUTE` of a statement that drops, alters or empties a table or schema whose name is known only at run time.
    ///
    /// ## Why it matters
    ///
    /// The statement locks or destroys a table, but its text does not show which one. If a query of the system catalogs
    /// returns one row too many, or an argument is wrong, the wrong table is lost. Tests with other data do not show
    /// this.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// DO $$
    /// DECLARE t record;
    /// BEGIN
    ///     FOR t IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'tmp%' LOOP
    ///         EXECUTE format('DROP TABLE %I', t.tablename);
    ///     END LOOP;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DROP TABLE tmp_import, tmp_export;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - names with a constant part, such as `'log_' || year`
    /// - names from a list of constants in the code
    /// - `ALTER` in a function, whose callers choose the table
    /// - statements that only change an owner or an option, or enable or disable a trigger
    "dynamic-ddl-on-unknown-object", Plpgsql, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let mut said = false;
    for step in context.routine.steps() {
        for sql in step.sql.iter().filter(|sql| sql.dynamic.is_some()) {
            let Some((verb, what, name)) = destroyed(sql.ast) else { continue };
            if name.name.text != HOLE
                || said
                || comes_from_list(context, &step, sql)
                || is_partly_constant(context, sql)
            {
                continue;
            }
            if verb == "alter" && context.function().is_some() {
                continue;
            }
            said = true;
            let message = format!("this can {verb} the wrong {what}: the {what}'s name is known only at run time");
            let help = "write the names as constants; or, in the query that finds the objects, filter by schema, by \
                        owner or by a fixed part of the name";
            reporter.report(sql.place(name.range()), message).help(help).emit();
        }
    }
}

/// The verb, what it destroys, and the name.
fn destroyed(ast: &Ast) -> Option<(&'static str, &'static str, &ObjectName)> {
    match ast {
        Ast::Drop(drop) => {
            let what = match drop.kind {
                ObjectKind::Table => "table",
                ObjectKind::Schema => "schema",
                ObjectKind::MaterializedView => "materialized view",
                _ => return None,
            };
            Some(("drop", what, &drop.objects.first()?.name))
        }
        Ast::AlterTable(alter) if alter.kind == ObjectKind::Table && alter.commands.iter().any(changes_table) => {
            Some(("alter", "table", &alter.name))
        }
        Ast::Truncate(truncate) => Some(("truncate", "table", &truncate.tables.first()?.0)),
        Ast::Delete(delete) if delete.filter.is_none() => Some(("delete all rows of", "table", &delete.table.name)),
        _ => None,
    }
}

/// Whether a command of ALTER TABLE does more than set an owner, an option or the state of a trigger.
fn changes_table(command: &AlterTableCommand) -> bool {
    !matches!(
        command.action,
        AlterTableAction::ChangeOwner { .. }
            | AlterTableAction::SetOptions(_)
            | AlterTableAction::ResetOptions(_)
            | AlterTableAction::SetStatistics { .. }
            | AlterTableAction::Trigger { .. }
            | AlterTableAction::RowSecurity(_)
            | AlterTableAction::ReplicaIdentity(_)
    )
}

/// Whether the name is a variable that the code combines with constant text.
fn is_partly_constant(context: &RoutineContext<'_>, sql: &Sql<'_>) -> bool {
    let holes = sql.dynamic.and_then(|dynamic| dynamic.constant.as_ref()).map_or(&[][..], |constant| &constant.holes);
    let filled = holes.first().and_then(|hole| Routine::expression_of(context.text(hole.expression)));
    let Some(variable) = filled.as_ref().and_then(variable_of) else { return false };
    let has_constant = |text: &SqlText| context.routine.expression(text).is_some_and(|ast| names_constant(&ast));
    context.routine.steps().iter().any(|step| match step.node {
        Node::Block(block) => block.declarations.iter().any(|declaration| match &declaration.kind {
            DeclarationKind::Variable(own) if declaration.name.text == *variable => {
                own.default.as_ref().is_some_and(has_constant)
            }
            _ => false,
        }),
        Node::Statement(statement) => match &statement.kind {
            StatementKind::Assign(assign) => {
                assign.target.names.first().is_some_and(|name| name == variable) && has_constant(&assign.value)
            }
            StatementKind::Sql(own) => {
                let gets = |into: &Into| {
                    into.targets.iter().any(|target| target.names.first().is_some_and(|name| name == variable))
                };
                own.into.as_ref().is_some_and(gets) && context.routine.sql(&own.text).is_some_and(selects_constant)
            }
            _ => false,
        },
        Node::Sql(_) => false,
    })
}

/// The variable that an expression is, if it is nothing else.
fn variable_of(ast: &Ast) -> Option<&SmolStr> {
    match &selected(ast)?.targets.as_slice() {
        [Target { value: Expr { kind: ExprKind::Column(path), .. }, .. }] => match path.as_slice() {
            [only] => Some(only),
            _ => None,
        },
        _ => None,
    }
}

fn selected(ast: &Ast) -> Option<&Select> {
    let Ast::Select(query) = ast else { return None };
    match &query.body {
        QueryBody::Select(select) => Some(select),
        _ => None,
    }
}

/// Whether a text of the code is a part of what an expression computes.
fn names_constant(ast: &Ast) -> bool {
    let mut names = false;
    ast.visit(&mut |part| {
        if let Part::Expr(expr) = part {
            names |= matches!(expr.kind, ExprKind::Literal(Literal::String(_)));
        }
    });
    names
}

/// Whether what a query returns has constant text in it: `SELECT format('log_%s', year) INTO name`.
fn selects_constant(ast: &Ast) -> bool {
    let mut names = false;
    for target in selected(ast).map_or(&[][..], |select| &select.targets) {
        target.value.walk(&mut |part| names |= matches!(part.kind, ExprKind::Literal(Literal::String(_))));
    }
    names
}

/// Whether the name is a variable of a loop over constants.
fn comes_from_list(context: &RoutineContext<'_>, step: &Step<'_>, sql: &Sql<'_>) -> bool {
    let holes = sql.dynamic.and_then(|dynamic| dynamic.constant.as_ref()).map_or(&[][..], |constant| &constant.holes);
    !holes.is_empty()
        && step.around.iter().any(|around| match around {
            Around::Loop { a_loop, .. } => match &a_loop.kind {
                LoopKind::Foreach { array, .. } => is_list(context, array),
                LoopKind::Query { query, .. } => context.routine.sql(query).is_some_and(lists_constants),
                _ => false,
            },
            _ => false,
        })
}

/// Whether an array consists of constants, itself or as a variable that the code declares so and never assigns.
fn is_list(context: &RoutineContext<'_>, array: &SqlText) -> bool {
    let routine = &context.routine;
    let Some(ast) = routine.expression(array) else { return false };
    let Some(variable) = variable_of(&ast) else { return lists_constants(&ast) };
    let mut is_declared = false;
    for step in routine.steps() {
        match step.node {
            Node::Block(block) => {
                is_declared |= block.declarations.iter().any(|declaration| match &declaration.kind {
                    DeclarationKind::Variable(own) if declaration.name.text == *variable => {
                        let default = own.default.as_ref().and_then(|default| routine.expression(default));
                        default.is_some_and(|default| lists_constants(&default))
                    }
                    _ => false,
                });
            }
            Node::Statement(statement) if sets(statement, variable) => return false,
            _ => {}
        }
    }
    is_declared
}

/// Whether a statement gives a variable a value.
fn sets(statement: &Statement, variable: &SmolStr) -> bool {
    let targets = match &statement.kind {
        StatementKind::Assign(assign) => std::slice::from_ref(&assign.target),
        StatementKind::Sql(sql) => sql.into.as_ref().map_or(&[][..], |into| &into.targets),
        StatementKind::Execute(execute) => execute.into.as_ref().map_or(&[][..], |into| &into.targets),
        _ => &[],
    };
    targets.iter().any(|target| target.names.first() == Some(variable))
}

/// Whether a query reads no relation and names constants: `VALUES ('a')`, `SELECT unnest(ARRAY['a'])`.
fn lists_constants(ast: &Ast) -> bool {
    let mut reads = false;
    ast.visit(&mut |part| reads |= matches!(part, Part::Read(_)));
    names_constant(ast) && !reads
}
