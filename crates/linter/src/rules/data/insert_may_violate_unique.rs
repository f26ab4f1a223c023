//! INSERTs that a unique index may refuse.

use super::bulk_change_in_loop::makes;
use super::loaded;
use crate::assumption::{Assumption, KeyEvidence};
use crate::fix::{Applicability, Edit, Fix};
use crate::report::{Finding, Reporter};
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::conflict::companion::{is_companion, is_of_new};
use crate::rules::conflict::existence_check::guard_of;
use crate::rules::conflict::fresh::Variables;
use crate::rules::conflict::handled::{handler_of, raises};
use crate::rules::conflict::inserted::{Inserted, Refusal, ValueSource, Values};
use crate::rules::conflict::unique::{UniqueIndex, accepts_any_conflict, accepts_on_conflict, ambiguity, left_behind};
use crate::rules::text::{either, identifier};
use pgvet_model::catalog::{Oid, Relation, RelationKind};
use pgvet_model::routine::{Sql, SqlRole, Step};
use pgvet_syntax::ast::{Ast, Insert, InsertSource, ObjectName, Part, QueryBody};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::fmt::Write as _;

declare_rule! {
    /// A plain `INSERT` of a row that a unique index may reject.
    ///
    /// ## Why it matters
    ///
    /// In a migration, the deployment stops if the row already exists. In a function, each failed `INSERT` leaves bloat
    /// behind, consumes a transaction ID, and writes WAL for nothing. When PostgreSQL finds the duplicate, it has
    /// already written the row, and an entry in every index that is older than the unique index. `ON CONFLICT` checks
    /// before it writes, and leaves nothing behind.
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
    /// - A migration inserts rows into a table that an earlier deployment created, with constant keys or with keys
    ///   copied from another table.
    /// - A migration inserts a number into a column that has a sequence: the sequence has already generated that
    ///   number, or will generate it later.
    /// - A function inserts a key that is a constant, is copied from another table, or comes from its caller.
    ///
    /// If something suggests that no row with the same key exists, the confidence is `possible`, and the finding is
    /// shown only with `--confidence possible`:
    ///
    /// - earlier migrations insert rows into the table, and nothing shows that other code inserts rows as well
    /// - the key is a constant, and the table does not generate keys: tables without generated keys are usually filled
    ///   only by migrations
    /// - the key is a constant, and the keys of the other rows are random, such as UUIDs
    /// - the migration sets the sequence with `setval`, or has deleted some of the rows
    /// - the copied rows come from a table that the migration created or filled
    /// - the key comes from a variable, or from a function that no migration defines
    /// - the statement runs only under a condition (`IF`, `CASE`)
    /// - a trigger inserts the key of the row for which it fires: both tables then have the same keys
    /// - nothing shows that the function runs often
    /// - an exception handler catches the error and raises another
    ///
    /// ## When it is not reported
    ///
    /// - `ON CONFLICT`
    /// - a key that comes, at least in part, from a sequence, `gen_random_uuid()` or another generator
    /// - a key that references a row that the migration has just inserted, because no other row can refer to that row
    ///   yet. The row can come from an earlier statement, or from the `WITH` clause of the same statement.
    /// - a statement that excludes existing rows, for example with `WHERE NOT EXISTS`
    /// - tables that the same deployment created or emptied, and tables without a unique index
    /// - an exception handler that expects the error, which `exception-driven-upsert` reports
    /// - an `IF` that searches for the row first, which `select-then-insert` reports
    ///
    /// ## Fix safety
    ///
    /// `ON CONFLICT DO NOTHING` keeps the existing row, without an error. The fix is unsafe, because you may want to
    /// update that row, or to see the error.
    "insert-may-violate-unique", Data, Warning,
    { fixable: true, yields_to: &[&crate::rules::data::exception_driven_upsert::RULE.meta] }
    statement = loaded::check,
    routine = check_routine,
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

pub(super) fn names(refusals: &[Refusal<'_>]) -> String {
    let quoted: Vec<String> = refusals.iter().map(|refusal| format!("`{}`", refusal.index.name)).collect();
    either(&quoted)
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

/// Adds help, and a fix where the statement is an INSERT that ends at `end`.
pub(super) fn advise<'r, 'f>(
    finding: Finding<'r, 'f>,
    insert: &Insert,
    end: Option<u32>,
    clause: Option<String>,
    refusals: &[Refusal<'_>],
) -> Finding<'r, 'f> {
    let Some(clause) = clause else {
        return finding.help("check for the row in the statement itself: INSERT ... SELECT ... WHERE NOT EXISTS (...)");
    };
    let mut help = format!("use ON CONFLICT to keep an existing row:\n    INSERT ... {clause};");
    if let Some(update) = do_update(&clause, insert, refusals) {
        let _ = write!(help, "\nor to update it with the new values:\n    INSERT ... {update};");
    }
    let finding = finding.help(help);
    let Some(end) = end.filter(|_| insert.returning.is_empty() && insert.with.is_none()) else { return finding };
    let edit = Edit { range: TextRange::new(end, end), text: format!(" {clause}") };
    let title = "Keep the existing row".to_owned();
    finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] })
}

/// Adds the assumptions of the finding, and the evidence against it.
pub(super) fn assume<'r, 'f>(finding: Finding<'r, 'f>, table: &Relation, evidence: &[KeyEvidence]) -> Finding<'r, 'f> {
    let name = || table.name.clone();
    let usual = evidence.is_empty().then(|| Assumption::KeyTaken { table: name() });
    let against = evidence.iter().map(|because| Assumption::KeyTakenThough { table: name(), because: *because });
    usual.into_iter().chain(against).fold(finding, Finding::assuming)
}

pub(super) fn is_plain_table(table: &Relation) -> bool {
    matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable) && !table.is_temporary() && table.known
}

fn check_routine(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    // What a migration runs is reported where it runs.
    if context.function().is_none() || context.called_by_migration {
        return;
    }
    let variables = Variables::of(context);
    let variable = |path: &[SmolStr]| variables.source(path);
    let steps = context.routine.steps();
    for (at, step) in steps.iter().enumerate() {
        for sql in step.sql.iter().filter(|sql| sql.role == SqlRole::Statement) {
            let Ast::Insert(insert) = sql.ast else { continue };
            let Some(table) = context.relation(&insert.table.name) else { continue };
            let handler = handler_of(step).map(|(_, handler)| handler);
            if insert.on_conflict.is_some()
                || !is_plain_table(table)
                || makes(&steps, &insert.table.name)
                || handler.is_some_and(|handler| !raises(&handler.statements))
                || guard_of(context, &steps, at, table.oid).is_some()
            {
                continue;
            }
            let inserted = Inserted { insert, table, variable: &variable, earlier: &|_| Vec::new() };
            let refusals = inserted.refusals(context.catalog);
            if !refusals.is_empty() && !reads(context, insert, table.oid) {
                let before = &steps[..at];
                let found = Found { context, step, before, inserted, refusals, is_caught: handler.is_some() };
                found.report(sql, &variables, reporter);
            }
        }
    }
}

/// An INSERT of a function.
struct Found<'f, 'a> {
    context: &'f RoutineContext<'f>,
    step: &'f Step<'a>,
    before: &'f [Step<'a>],
    inserted: Inserted<'f>,
    refusals: Vec<Refusal<'f>>,
    is_caught: bool,
}

impl Found<'_, '_> {
    fn report(&self, sql: &Sql<'_>, variables: &Variables, reporter: &mut Reporter<'_>) {
        let Self { context, refusals, .. } = self;
        let Inserted { insert, table, .. } = self.inserted;
        let left = left_behind(table, &indexes(refusals));
        let message = format!(
            "{1} fails here with a duplicate key error on {0} if a row with the same key exists, and leaves {left}",
            names(refusals),
            context.name()
        );
        let finding =
            reporter.report(sql.place(insert.table.name.range()), message).relation(&context.relation_name(table));
        let clause = do_nothing(table, refusals, &ambiguity(context));
        let finding = advise(finding, insert, Some(sql.range.end), clause, refusals).runs_often(&context.hotness());
        assume(finding, table, &self.evidence(variables)).emit();
    }

    /// Evidence against a row with the same key.
    fn evidence(&self, variables: &Variables) -> Vec<KeyEvidence> {
        let Self { context, inserted, refusals, .. } = self;
        let is_maybe = |refusal: &Refusal<'_>| refusal.source == ValueSource::MayBeGenerated;
        let is_of_variable = |refusal: &Refusal<'_>| {
            refusal.source == ValueSource::Given
                && !is_copy(inserted.insert)
                && !is_of_caller(inserted, refusal, variables)
        };
        let is_companion = is_companion(context, self.step, inserted);
        let found = [
            (!context.hotness().is_hot(), KeyEvidence::NotKnownToRunOften),
            (self.deletes_before(), KeyEvidence::RowsDeleted),
            (is_companion && refusals.iter().all(|refusal| is_of_new(inserted, refusal)), KeyEvidence::KeyOfNewRow),
            (refusals.iter().all(is_maybe), KeyEvidence::MayBeGenerated),
            (refusals.iter().all(is_of_variable), KeyEvidence::Variable),
            (self.is_caught, KeyEvidence::Caught),
        ];
        found.into_iter().filter_map(|(holds, evidence)| holds.then_some(evidence)).collect()
    }

    /// Whether the code deletes rows of the table before.
    fn deletes_before(&self) -> bool {
        let is_table = |name: &ObjectName| {
            self.context.relation(name).is_some_and(|relation| relation.oid == self.inserted.table.oid)
        };
        let deletes = |sql: &Sql<'_>| matches!(sql.ast, Ast::Delete(delete) if is_table(&delete.table.name));
        self.before.iter().any(|earlier| earlier.sql.iter().any(deletes))
    }
}

/// Whether the caller, or the row that fired the trigger, gives a part of the key.
fn is_of_caller(inserted: &Inserted<'_>, refusal: &Refusal<'_>, variables: &Variables) -> bool {
    refusal.index.all_columns().any(|column| match inserted.values_of(column) {
        Values::Rows(rows) => rows.iter().any(|value| variables.is_given(value)),
        Values::Default | Values::Unknown => false,
    })
}

/// Whether an INSERT reads the table to exclude rows that exist.
fn reads(context: &RoutineContext<'_>, insert: &Insert, table: Oid) -> bool {
    let mut found = false;
    insert.visit(&mut |part| {
        if let Part::Read(read) = part {
            found = found || context.relation(&read.name).is_some_and(|relation| relation.oid == table);
        }
    });
    found
}

/// Whether an INSERT takes its rows from other relations, as opposed to constants with subqueries.
pub(super) fn is_copy(insert: &Insert) -> bool {
    let InsertSource::Query(query) = &insert.source else { return false };
    let has_source = match &query.body {
        QueryBody::Select(select) => !select.from.is_empty(),
        QueryBody::Values(_) => false,
        QueryBody::SetOperation { .. } => true,
    };
    let mut reads = false;
    insert.visit(&mut |part| reads = reads || matches!(part, Part::Read(_)));
    has_source && reads
}
