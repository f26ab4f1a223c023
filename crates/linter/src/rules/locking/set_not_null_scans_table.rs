//! SET NOT NULL that has to look at every row.

use crate::ast::{AlterTableAction, ConstraintKind};
use crate::effect::{IndexBuild, IndexBuildCause, RelationName, Scan, ScanCause};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::not_null;
use crate::rules::advice::offer::offer;
use crate::rules::altered::{Altered, by_range, subject};
use crate::rules::text::enumerate;
use crate::source::TextRange;
use crate::statistics::Work;
use smol_str::SmolStr;

declare_rule! {
    /// `SET NOT NULL` that reads the whole table while nobody can use it.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL looks at every row for a null, under an ACCESS EXCLUSIVE lock: no query runs on the table until it has
    /// seen the last one. Since PostgreSQL 12 it does not look where a valid CHECK proves that there is none.
    /// Adding a primary key over columns that may hold nulls does the same, also with USING INDEX.
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
    /// The first two statements must not share a transaction. From PostgreSQL 18 on, `ADD CONSTRAINT ... NOT NULL note NOT
    /// VALID` and `VALIDATE CONSTRAINT` are enough.
    ///
    /// ## When it is not reported
    ///
    /// When a valid CHECK proves it by PostgreSQL's own rules: `note IS NOT NULL`, alone or joined with AND. When the
    /// column is NOT NULL already. For a table that the same transaction created, or the same migration while it is empty.
    /// `ADD COLUMN ... NOT NULL` without default is `required-column-without-default`, and so is `SET NOT NULL` of a column that
    /// the same migration adds; a primary key that also builds its index is `constraint-builds-index`.
    ///
    /// ## Fix safety
    ///
    /// Where each statement of the file is a transaction of its own, the fix writes the steps in its place. It
    /// ends in the same schema, but a null now leaves the constraint that was to prove that there is none. It
    /// is unsafe, and needs PostgreSQL 12.
    "set-not-null-scans-table", Locking, Error,
    {
        fixable: true,
        sources: &[
            "squawk/adding-not-nullable-field",
            "eugene/E2",
            "eugene/W14",
            "strong_migrations/change_column_null",
            "pgls/addingNotNullField", "atlas/MF104", "atlas/PG303"],
        yields_to: &[&crate::rules::compatibility::required_column_without_default::RULE],
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
}

/// Is it a column of a primary key whose index is built here? `constraint-builds-index` is about both.
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

/// Is no other rule about this scan?
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
        "making {names} NOT NULL reads all of {subject} under ACCESS EXCLUSIVE: nobody can read or write meanwhile"
    );
    let advice = not_null::advice(context, table, &columns);
    offer(context, reporter.report(range, message).relation(table).work(Work::Scan), advice).emit();
}
