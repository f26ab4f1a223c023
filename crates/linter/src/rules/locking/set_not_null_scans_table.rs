//! SET NOT NULL that has to look at every row.

use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::not_null;
use crate::rules::advice::offer::offer;
use crate::rules::locking::unseen_partitions;
use crate::rules::statement::altered::{Altered, by_range, subject};
use crate::rules::text::enumerate;
use pgvet_model::effect::{IndexBuild, IndexBuildCause, PartitionWorkKind, RelationName, Scan, ScanCause};
use pgvet_model::throughput::Work;
use pgvet_syntax::ast::{AlterTableAction, ConstraintKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// `SET NOT NULL` that reads the whole table while nobody can use the table.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks every row for nulls under an ACCESS EXCLUSIVE lock: no query runs on the table until the scan
    /// has ended. From PostgreSQL 12 on, it skips the scan if a valid CHECK constraint proves that there are no nulls.
    /// Adding a primary key over nullable columns also reads all rows, even with USING INDEX.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ALTER COLUMN note SET NOT NULL;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders ADD CONSTRAINT orders_note_is_not_null CHECK (note IS NOT NULL) NOT VALID;
    /// ALTER TABLE orders VALIDATE CONSTRAINT orders_note_is_not_null;
    /// ALTER TABLE orders ALTER COLUMN note SET NOT NULL;
    /// ALTER TABLE orders DROP CONSTRAINT orders_note_is_not_null;
    /// ```
    ///
    /// Run the first two statements in separate transactions. From PostgreSQL 18 on,
    /// `ADD CONSTRAINT ... NOT NULL note NOT VALID` and `VALIDATE CONSTRAINT` are enough.
    ///
    /// PostgreSQL checks several columns of one `ALTER TABLE` in one scan. pgvet reports these columns as one finding
    /// with several locations.
    ///
    /// ## When it is not reported
    ///
    /// - a column for which a valid CHECK constraint proves that it has no nulls: `note IS NOT NULL`, alone or joined
    ///   with AND
    /// - a column that is NOT NULL already
    /// - `ADD COLUMN ... NOT NULL` without a default, and `SET NOT NULL` of a column that the same migration adds,
    ///   which `required-column-without-default` reports
    /// - a primary key that also builds its index, which `constraint-builds-index` reports
    /// - a table that the same transaction created, or that the same migration created and left empty
    ///
    /// ## Fix safety
    ///
    /// If each statement of the file runs in its own transaction, the fix replaces the statement with the steps shown
    /// above. The resulting schema is the same. The fix is unsafe: if the column is null in a row, `VALIDATE` fails,
    /// and the additional CHECK constraint remains as NOT VALID. The fix needs PostgreSQL 12.
    "set-not-null-scans-table", Locking, Error,
    {
        fixable: true,
        sources: &[
            "squawk/adding-not-nullable-field",
            "eugene/E2",
            "eugene/W14",
            "strong_migrations/change_column_null",
            "pgls/addingNotNullField", "atlas/MF104", "atlas/PG303"],
        yields_to: &[&crate::rules::compatibility::required_column_without_default::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let altered = Altered::of(context);
    let scans = context.effects.scans.iter().filter(|scan| {
        matches!(scan.cause, ScanCause::NotNull { .. })
            && scan.relation.visibility.is_exposed()
            && altered.is_none_or(|altered| is_ours(altered, scan.range))
            && !is_of_new_key(context, scan)
    });
    for (range, scans) in by_range(scans, |scan| scan.range) {
        report(context, reporter, altered, range, &scans);
    }
    unseen_partitions::report(
        context,
        reporter,
        |work| match &work.kind {
            PartitionWorkKind::Scan(ScanCause::NotNull { column })
                if altered.is_none_or(|it| is_ours(it, work.range)) =>
            {
                Some(format!("SET NOT NULL on `{column}` reads"))
            }
            _ => None,
        },
        "first add a CHECK (... IS NOT NULL) constraint NOT VALID to each partition, and validate it in a later \
         transaction. Then run SET NOT NULL, which no longer reads the rows (PostgreSQL 12 and later)",
    );
}

/// Whether it is a column of a primary key whose index is built here. `constraint-builds-index` reports both.
fn is_of_new_key(context: &RuleContext<'_>, scan: &Scan) -> bool {
    let ScanCause::NotNull { column } = &scan.cause else { return false };
    let here = |build: &&IndexBuild| {
        build.range == scan.range && build.table.oid == scan.relation.oid && build.cause == IndexBuildCause::Constraint
    };
    context.effects.index_builds.iter().filter(here).any(|build| {
        let index = context.after.get_relation(build.index.oid).and_then(|index| index.index()?.plain_columns());
        index.is_some_and(|columns| columns.contains(column))
    })
}

/// Whether no other rule reports this scan.
fn is_ours(altered: Altered<'_>, range: TextRange) -> bool {
    let Some(command) = altered.command(range) else { return true };
    match &command.action {
        AlterTableAction::AddColumn { .. } => false,
        AlterTableAction::AddConstraint(constraint) => match &constraint.kind {
            ConstraintKind::PrimaryKey(key) => key.using_index.is_some(),
            _ => false,
        },
        _ => true,
    }
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    altered: Option<Altered<'_>>,
    range: TextRange,
    scans: &[&Scan],
) {
    let mut columns: Vec<SmolStr> = Vec::new();
    let mut tables: Vec<&RelationName> = Vec::new();
    for scan in scans {
        if let ScanCause::NotNull { column } = &scan.cause
            && !columns.contains(column)
        {
            columns.push(column.clone());
        }
        if !tables.iter().any(|table| table.oid == scan.relation.oid) {
            tables.push(&scan.relation);
        }
    }
    let Some(first) = tables.first() else { return };
    let table = altered.map_or(*first, |altered| altered.table);
    let names = enumerate(columns.iter().map(SmolStr::as_str));
    let subject = subject(altered, &tables);
    let message = format!(
        "SET NOT NULL on {names} reads all of {subject} under ACCESS EXCLUSIVE, and blocks all reads and writes until \
         the transaction ends"
    );
    let advice = not_null::advice(context, table, &columns);
    let cause = Cause::Pass { relation: table.oid, statement: context.in_file(context.statement.range) };
    let finding = reporter.report(range, message).relation(table).work(Work::Scan).caused_by(cause);
    offer(context, finding, advice).emit();
}
