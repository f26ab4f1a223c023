//! Dynamic SQL that destroys something that only run time knows.

use crate::ast::{Ast, ObjectKind, ObjectName};
use crate::plpgsql::{HOLE, LoopKind};
use crate::report::Reporter;
use crate::routine::{Around, RoutineContext, Sql, Step};
use crate::rule::declare_rule;

declare_rule! {
    /// `EXECUTE` of `DROP`, `ALTER`, `TRUNCATE` or a `DELETE` of all rows on a table that only run time knows.
    ///
    /// ## Why it matters
    ///
    /// The lock and the loss are certain, the table is not: a query over the system catalogs that finds one row too many,
    /// or a wrong argument, and the wrong table is gone. No test with other data shows it.
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
    /// Where a part of the name is constant, where the names come from a list in the code, and for `ALTER` in a function,
    /// whose callers choose the table.
    "dynamic-ddl-on-unknown-object", Plpgsql, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let mut said = false;
    for step in context.routine.steps() {
        for sql in step.sql.iter().filter(|sql| sql.dynamic.is_some()) {
            let Some((verb, name)) = destroyed(sql.ast) else { continue };
            if name.name.text != HOLE || said || comes_from_list(&step, sql) {
                continue;
            }
            if verb == "ALTER TABLE" && context.function().is_some() {
                continue;
            }
            said = true;
            let message = format!("{verb} on a table that only run time knows");
            let help = "name the tables, or make sure that the query finds no other: by schema, by owner, \
                        by a part of the name that is constant";
            drop(reporter.report(sql.place(name.range()), message).help(help));
        }
    }
}

fn destroyed(ast: &Ast) -> Option<(&'static str, &ObjectName)> {
    match ast {
        Ast::Drop(drop) => {
            let verb = match drop.kind {
                ObjectKind::Table => "DROP TABLE",
                ObjectKind::Schema => "DROP SCHEMA",
                ObjectKind::MaterializedView => "DROP MATERIALIZED VIEW",
                _ => return None,
            };
            Some((verb, &drop.objects.first()?.name))
        }
        Ast::AlterTable(alter) if alter.kind == ObjectKind::Table => Some(("ALTER TABLE", &alter.name)),
        Ast::Truncate(truncate) => Some(("TRUNCATE", &truncate.tables.first()?.0)),
        Ast::Delete(delete) if delete.filter.is_none() => Some(("DELETE of all rows", &delete.table.name)),
        _ => None,
    }
}

/// Is the name a variable of a loop over constants?
fn comes_from_list(step: &Step<'_>, sql: &Sql<'_>) -> bool {
    let holes = sql.dynamic.and_then(|dynamic| dynamic.constant.as_ref()).map_or(&[][..], |constant| &constant.holes);
    !holes.is_empty()
        && step.around.iter().any(|around| match around {
            Around::Loop { a_loop, .. } => match &a_loop.kind {
                LoopKind::Foreach { array, .. } => array.text.contains('\''),
                LoopKind::Query { query, .. } => {
                    let text = query.text.to_ascii_lowercase();
                    text.trim_start().starts_with("values") || (!text.contains(" from ") && text.contains("unnest"))
                }
                _ => false,
            },
            _ => false,
        })
}
