//! INSERTs that a unique index is likely to refuse.

use super::bulk_change_in_loop::makes;
use super::companion::{is_companion, is_of_new};
use super::existence_check::guard_of;
use super::fresh::Variables;
use super::handled::handler_of;
use super::inserted::{Inserted, Refusal, ValueSource, Values};
use super::loaded::check_migration;
use super::unique::{UniqueIndex, accepts_any_conflict, accepts_on_conflict, ambiguity, left_behind};
use crate::ast::{Ast, Insert, InsertSource, ObjectName, Part, Query, QueryBody};
use crate::catalog::{Oid, Relation};
use crate::diagnostic::Severity;
use crate::effect::RelationKind;
use crate::fix::{Applicability, Edit, Fix};
use crate::report::{Finding, Reporter};
use crate::routine::{RoutineContext, Sql, SqlRole, Step};
use crate::rule::declare_rule;
use crate::rules::text::identifier;
use crate::source::TextRange;
use smol_str::SmolStr;
use std::fmt::Write as _;

declare_rule! {
    /// A plain `INSERT` of a row that a unique index is likely to refuse.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL writes the row, and an entry into every index that is older than the one that refuses it, before it
    /// finds the duplicate. Each failed `INSERT` leaves all of that behind as bloat, uses up a transaction id and writes
    /// WAL for nothing. In a migration it is worse: where the row is there already, the deployment stops.
    /// `ON CONFLICT` looks first and leaves nothing behind.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, active boolean);
    /// CREATE TABLE settings (user_id bigint PRIMARY KEY, theme text);
    /// -- migration:
    /// INSERT INTO settings (user_id, theme) SELECT id, 'light' FROM users;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, active boolean);
    /// CREATE TABLE settings (user_id bigint PRIMARY KEY, theme text);
    /// -- migration:
    /// INSERT INTO settings (user_id, theme) SELECT id, 'light' FROM users ON CONFLICT (user_id) DO NOTHING;
    /// ```
    ///
    /// ## When it is reported
    ///
    /// - A migration copies rows into a table that was there before, with keys that other code may have inserted.
    /// - A migration gives a number to a column that has a sequence: the sequence has given that number to another row,
    ///   or will do so later. This is a note, for many projects number some tables by hand.
    /// - A function that runs often inserts a key that its caller gives; as a note where nothing says that it runs often.
    /// - A migration that is no transaction inserts constant keys: as a note, for it cannot be run again.
    ///
    /// ## When it is not reported
    ///
    /// With `ON CONFLICT`; where the key comes from a sequence or `gen_random_uuid()`; where a column of it refers, by
    /// a foreign key, to a row that the same statement inserts in `WITH`, or that the migration has inserted before,
    /// for then no other row can refer to it yet; where the statement asks for the row first; for tables that the same
    /// migration or release has made, filled or emptied, and tables without a unique index.
    /// In the function of triggers that fire for each row on `INSERT` alone, where it puts one row of `NEW` in whose key
    /// is that of the new row, as for a supertype: the error is meant, and as rare as one in the table itself. Where code
    /// has deleted rows of the table before, it puts others in their place.
    /// Where a handler expects the failure, `exception-driven-upsert` says it; where an `IF` asks first,
    /// `select-then-insert` does.
    ///
    /// ## Fix safety
    ///
    /// `ON CONFLICT DO NOTHING` keeps the row that is there and says nothing. Whether that is meant is for you to judge.
    "insert-may-violate-unique", Data, Warning,
    { fixable: true }
    routine = check_routine,
    migration = check_migration,
}

/// ON CONFLICT for a statement that these indexes may refuse; `None` where PostgreSQL accepts none, or none is known.
pub(super) fn do_nothing(
    table: &Relation,
    refusals: &[Refusal<'_>],
    is_variable: &dyn Fn(&SmolStr) -> bool,
) -> Option<String> {
    match refusals {
        _ if !accepts_on_conflict(table) => None,
        [only] => {
            let target = only.index.conflict_target(is_variable)?;
            Some(format!("ON CONFLICT {target} DO NOTHING"))
        }
        _ => accepts_any_conflict(table).then(|| "ON CONFLICT DO NOTHING".to_owned()),
    }
}

fn names(refusals: &[Refusal<'_>]) -> String {
    let quoted: Vec<String> = refusals.iter().map(|refusal| format!("`{}`", refusal.index.name)).collect();
    quoted.join(" or ")
}

fn indexes<'a>(refusals: &[Refusal<'a>]) -> Vec<UniqueIndex<'a>> {
    refusals.iter().map(|refusal| refusal.index.clone()).collect()
}

/// ON CONFLICT DO UPDATE with what the statement gives beside the key: DO NOTHING would lose it.
fn do_update(clause: &str, insert: &Insert, refusals: &[Refusal<'_>]) -> Option<String> {
    let [only] = refusals else { return None };
    let target = clause.strip_suffix("DO NOTHING")?;
    let key: Vec<&SmolStr> = only.index.all_columns().collect();
    let others = insert.columns.iter().filter(|column| !key.contains(&&column.text));
    let set: Vec<String> =
        others.map(|column| identifier(&column.text)).map(|column| format!("{column} = excluded.{column}")).collect();
    (!set.is_empty()).then(|| format!("{target}DO UPDATE SET {}", set.join(", ")))
}

/// Adds help and fix.
pub(super) fn advise<'r, 'f>(
    finding: Finding<'r, 'f>,
    insert: &Insert,
    end: u32,
    clause: Option<String>,
    refusals: &[Refusal<'_>],
) -> Finding<'r, 'f> {
    let Some(clause) = clause else {
        return finding.help("ask for the row in the statement itself: INSERT ... SELECT ... WHERE NOT EXISTS (...)");
    };
    let mut help = format!("if the row may be there already:\n    INSERT ... {clause};");
    if let Some(update) = do_update(&clause, insert, refusals) {
        let _ = write!(help, "\nor, where it is to get the values that this gives:\n    INSERT ... {update};");
    }
    let finding = finding.help(help);
    if !insert.returning.is_empty() || insert.with.is_some() {
        return finding;
    }
    let edit = Edit { range: TextRange::new(end, end), text: format!(" {clause}") };
    let title = "Keep the row that is there".to_owned();
    finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] })
}

pub(super) fn is_plain_table(table: &Relation) -> bool {
    matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable) && !table.is_temporary() && table.known
}

fn check_routine(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let variables = Variables::of(context);
    let is_fresh = |path: &[SmolStr]| variables.is_fresh(path);
    let steps = context.routine.steps();
    for (at, step) in steps.iter().enumerate() {
        for sql in step.sql.iter().filter(|sql| sql.role == SqlRole::Statement) {
            let Ast::Insert(insert) = sql.ast else { continue };
            let Some(table) = context.relation(&insert.table.name) else { continue };
            if insert.on_conflict.is_some()
                || !is_plain_table(table)
                || makes(&steps, &insert.table.name)
                || handler_of(step).is_some()
                || guard_of(context, &steps, at, table.oid).is_some()
                || deletes_before(context, &steps[..at], step, table.oid)
            {
                continue;
            }
            let inserted = Inserted { insert, table, is_fresh: &is_fresh, earlier: &[] };
            let mut refusals = match context.function() {
                Some(_) => given(context, &inserted, &variables),
                None => copied(context, &inserted),
            };
            if !refusals.is_empty() && is_companion(context, step, &inserted) {
                refusals.retain(|refusal| !is_of_new(&inserted, refusal));
            }
            if !refusals.is_empty() {
                report(context, reporter, sql, &inserted, &refusals);
            }
        }
    }
}

/// Does the code delete rows of the table before, so that it puts others in their place?
fn deletes_before(context: &RoutineContext<'_>, before: &[Step<'_>], step: &Step<'_>, table: Oid) -> bool {
    let deletes = |sql: &Sql<'_>| match sql.ast {
        Ast::Delete(delete) => context.relation(&delete.table.name).is_some_and(|relation| relation.oid == table),
        _ => false,
    };
    before.iter().any(|earlier| earlier.around.len() <= step.around.len() && earlier.sql.iter().any(deletes))
}

fn report(
    context: &RoutineContext<'_>,
    reporter: &mut Reporter<'_>,
    sql: &Sql<'_>,
    inserted: &Inserted<'_>,
    refusals: &[Refusal<'_>],
) {
    let Inserted { insert, table, .. } = *inserted;
    let hotness = context.hotness();
    let (message, severity) = match context.function() {
        Some(_) => {
            let left = left_behind(table, &indexes(refusals));
            let message = format!(
                "a row that {} refuses makes `{}` fail here, and leaves {left}",
                names(refusals),
                context.name()
            );
            (message, if hotness.is_hot() { Severity::Warning } else { Severity::Info })
        }
        None => (copy_message(refusals), Severity::Warning),
    };
    let finding = reporter
        .report(sql.place(insert.table.name.range()), message)
        .relation(&context.relation_name(table))
        .severity(severity);
    let clause = do_nothing(table, refusals, &ambiguity(context));
    advise(hotness.label(finding), insert, sql.range.end, clause, refusals).emit();
}

/// The indexes for whose keys the caller gives a part.
fn given<'a>(context: &'a RoutineContext<'_>, inserted: &Inserted<'a>, variables: &Variables) -> Vec<Refusal<'a>> {
    let is_given = |refusal: &Refusal<'_>| {
        refusal.source == ValueSource::Given
            && refusal.index.all_columns().any(|column| match inserted.values_of(column) {
                Values::Rows(rows) => rows.iter().any(|value| variables.is_given(value)),
                Values::Default | Values::Unknown => false,
            })
    };
    inserted.refusals(context.catalog).into_iter().filter(is_given).collect()
}

/// In a DO block: keys that are copied into a table that was there before.
fn copied<'a>(context: &'a RoutineContext<'_>, inserted: &Inserted<'a>) -> Vec<Refusal<'a>> {
    let is_new = inserted.table.birth.is_of(context.deployment());
    let oid = |name: &ObjectName| context.relation(name).map(|relation| relation.oid);
    if is_new || !is_copy(inserted.insert, &oid, inserted.table.oid) {
        return Vec::new();
    }
    let is_given = |refusal: &Refusal<'_>| refusal.source == ValueSource::Given;
    inserted.refusals(context.catalog).into_iter().filter(is_given).collect()
}

/// Does an INSERT take its rows from other tables, without asking the table itself?
pub(super) fn is_copy(insert: &Insert, oid: &dyn Fn(&ObjectName) -> Option<Oid>, table: Oid) -> bool {
    let InsertSource::Query(query) = &insert.source else { return false };
    let mut reads_itself = false;
    let mut reads = false;
    insert.visit(&mut |part| {
        if let Part::Read(read) = part {
            reads = true;
            reads_itself |= oid(&read.name) == Some(table);
        }
    });
    reads && !reads_itself && reads_many(query)
}

/// A query with FROM over relations, as opposed to constants with subqueries.
fn reads_many(query: &Query) -> bool {
    match &query.body {
        QueryBody::Select(select) => !select.from.is_empty(),
        QueryBody::Values(_) => false,
        QueryBody::SetOperation { .. } => true,
    }
}

pub(super) fn copy_message(refusals: &[Refusal<'_>]) -> String {
    format!("this fails where a row with the same key is there already: {} refuses it", names(refusals))
}
