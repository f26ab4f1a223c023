//! Code that looks for a row and inserts it if it is missing.

use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::conflict::existence_check::{guard_of, is_serialized};
use crate::rules::conflict::fresh::Variables;
use crate::rules::conflict::handled::handler_of;
use crate::rules::conflict::inserted::Inserted;
use crate::rules::conflict::unique::{ambiguity, unique_indexes};
use pgvet_model::catalog::RelationKind;
use pgvet_model::routine::SqlRole;
use pgvet_syntax::ast::Ast;
use smol_str::SmolStr;

declare_rule! {
    /// Code that searches for a row and inserts it if it finds none.
    ///
    /// ## Why it matters
    ///
    /// If two sessions search at the same time, neither finds a row, and both insert one. With a unique index, one of
    /// the two `INSERT`s fails. This usually happens under load, and hardly ever in tests. Without a unique index, the
    /// row exists twice.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE tags (id bigint GENERATED ALWAYS AS IDENTITY, name text UNIQUE);
    /// CREATE FUNCTION tag(wanted text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     IF NOT EXISTS (SELECT FROM tags WHERE name = wanted) THEN
    ///         INSERT INTO tags (name) VALUES (wanted);
    ///     END IF;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE tags (id bigint GENERATED ALWAYS AS IDENTITY, name text UNIQUE);
    /// CREATE FUNCTION tag(wanted text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO tags (name) VALUES (wanted) ON CONFLICT (name) DO NOTHING;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - `ON CONFLICT`
    /// - an exception handler that catches the duplicate
    /// - code that takes a lock first: `LOCK TABLE`, an advisory lock, or `FOR UPDATE` on another row, such as the
    ///   referenced row of a foreign key
    /// - temporary tables
    /// - `DO` blocks, which run once
    "select-then-insert", Data, Info,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    if context.function().is_none() {
        return;
    }
    let variables = Variables::of(context);
    let variable = |path: &[SmolStr]| variables.source(path);
    let is_variable = ambiguity(context);
    let steps = context.routine.steps();
    if is_serialized(&steps) {
        return;
    }
    for (at, step) in steps.iter().enumerate() {
        for sql in step.sql.iter().filter(|sql| sql.role == SqlRole::Statement) {
            let Ast::Insert(insert) = sql.ast else { continue };
            let Some(table) = context.relation(&insert.table.name) else { continue };
            if insert.on_conflict.is_some()
                || table.is_temporary()
                || !table.known
                || !matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable)
                || handler_of(step).is_some()
            {
                continue;
            }
            let Some(guard) = guard_of(context, &steps, at, table.oid) else { continue };
            let refusals =
                Inserted { insert, table, variable: &variable, earlier: &|_| Vec::new() }.refusals(context.catalog);
            if refusals.is_empty() && !unique_indexes(context.catalog, table).is_empty() {
                continue;
            }
            let (message, help) = match refusals.first() {
                Some(refusal) => (
                    format!(
                        "if two sessions run this at once, both try to insert, and one of them fails on `{}`",
                        refusal.index.name
                    ),
                    match refusal.index.conflict_target(&is_variable) {
                        Some(target) if guard.by_update => {
                            format!(
                                "check and insert in one statement:\n    INSERT ... ON CONFLICT {target} DO UPDATE \
                                    SET ...;"
                            )
                        }
                        Some(target) => {
                            format!(
                                "check and insert in one statement:\n    INSERT ... ON CONFLICT {target} DO \
                                    NOTHING;"
                            )
                        }
                        None => "take a lock first, for example pg_advisory_xact_lock()".to_owned(),
                    },
                ),
                None => (
                    format!(
                        "if two sessions run this at once, both insert, and `{}` contains the row twice",
                        table.name
                    ),
                    "create a unique index on the columns that identify the row, and use INSERT ... ON CONFLICT"
                        .to_owned(),
                ),
            };
            let asked = if guard.by_update {
                "this finds no row to update"
            } else {
                "another session may insert the row after this check"
            };
            let finding = reporter
                .report(insert.table.name.range(), message)
                .label(guard.question, asked)
                .relation(&context.relation_name(table));
            finding.help(help).emit();
        }
    }
}
