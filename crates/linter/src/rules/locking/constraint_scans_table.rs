//! A CHECK or NOT NULL constraint that is checked for all rows when it is added.

use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::constraint::{self, without_check};
use crate::rules::advice::offer::offer;
use crate::rules::locking::unseen_partitions;
use crate::rules::statement::altered::{Altered, by_range, subject};
use pgvet_model::effect::{PartitionWorkKind, RelationName, Scan, ScanCause};
use pgvet_model::throughput::Work;
use pgvet_syntax::ast::{AlterTableAction, ConstraintKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A `CHECK` or `NOT NULL` constraint that is added without `NOT VALID`.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks every row under an ACCESS EXCLUSIVE lock: no query can use the table until the transaction
    /// ends. The same applies to `ADD COLUMN ... CHECK`, although the new column has the same value in all rows.
    /// PostgreSQL also checks every row if the constraint replaces another constraint that the same statement drops.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ADD CONSTRAINT orders_total_check CHECK (total >= 0);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders ADD CONSTRAINT orders_total_check CHECK (total >= 0) NOT VALID;
    /// ALTER TABLE orders VALIDATE CONSTRAINT orders_total_check;
    /// ```
    ///
    /// With `NOT VALID`, PostgreSQL does not check existing rows, but it checks every row that is inserted or updated
    /// from then on. `VALIDATE` reads the table under a lock that allows reads and writes. Run the two statements in
    /// separate transactions.
    ///
    /// ## When it is not reported
    ///
    /// - `NOT VALID` and `NOT ENFORCED` constraints
    /// - statements that rewrite the table anyway, which other rules report
    /// - a table that the same transaction created, or that the same migration created and left empty
    ///
    /// ## Fix safety
    ///
    /// If each statement of the file runs in its own transaction, one fix replaces the statement with the steps shown
    /// above. The resulting schema is the same. The fix is unsafe: if a row violates the constraint, `VALIDATE` fails,
    /// and the constraint remains as NOT VALID. The other fix only adds NOT VALID. That fix is unsafe, because a later
    /// migration has to validate the constraint.
    "constraint-scans-table", Locking, Error,
    {
        fixable: true,
        sources: &[
            "squawk/constraint-missing-not-valid",
            "eugene/E1",
            "strong_migrations/add_check_constraint",
            "pgls/constraintMissingNotValid", "atlas/PG305"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let altered = Altered::of(context);
    let scans = context.effects.scans.iter().filter(|scan| {
        scan.relation.visibility.is_exposed()
            && match scan.cause {
                ScanCause::Check { .. } => true,
                ScanCause::NotNull { .. } => altered.is_some_and(|altered| adds_not_null(altered, scan.range)),
                _ => false,
            }
    });
    for (range, scans) in by_range(scans, |scan| scan.range) {
        report(context, reporter, altered, range, &scans);
    }
    unseen_partitions::report(
        context,
        reporter,
        |work| match &work.kind {
            PartitionWorkKind::Scan(ScanCause::Check { .. }) => Some("checking this constraint reads".to_owned()),
            PartitionWorkKind::Scan(ScanCause::NotNull { .. })
                if altered.is_some_and(|it| adds_not_null(it, work.range)) =>
            {
                Some("checking this constraint reads".to_owned())
            }
            _ => None,
        },
        "add the constraint NOT VALID, and validate it in a later transaction",
    );
}

/// ADD CONSTRAINT ... NOT NULL (18).
fn adds_not_null(altered: Altered<'_>, range: TextRange) -> bool {
    altered.command(range).is_some_and(|command| match &command.action {
        AlterTableAction::AddConstraint(constraint) => matches!(constraint.kind, ConstraintKind::NotNull { .. }),
        _ => false,
    })
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    altered: Option<Altered<'_>>,
    range: TextRange,
    scans: &[&Scan],
) {
    let Some(first) = scans.first() else { return };
    let tables: Vec<&RelationName> = scans.iter().map(|scan| &scan.relation).collect();
    let subject = subject(altered, &tables);
    let written = altered.and_then(|altered| Some((altered, altered.constraint(range)?)));
    let place = written.map_or(range, |(_, written)| written.constraint.keyword);
    let name = match &first.cause {
        ScanCause::Check { constraint } => constraint.clone(),
        _ => written.and_then(|(altered, written)| not_null_name(context, altered, written.constraint)),
    };
    let message = format!(
        "checking this constraint reads all of {subject} under ACCESS EXCLUSIVE, and blocks all reads and writes \
         until the transaction ends"
    );
    let table = altered.map_or(&first.relation, |altered| altered.table);
    let cause = Cause::Pass { relation: table.oid, statement: context.in_file(context.statement.range) };
    let finding = reporter.report(place, message).relation(table).work(Work::Scan).caused_by(cause);
    let finding = match (written, name) {
        (Some((altered, written)), Some(name)) => {
            offer(context, finding, constraint::not_valid(context, altered, written, &name))
        }
        _ => finding.help("add the constraint NOT VALID, and validate it in a later transaction"),
    };
    finding.fix(written.and_then(|(altered, written)| without_check(context, altered, written))).emit();
}

/// The name that PostgreSQL gives the constraint.
fn not_null_name(
    context: &RuleContext<'_>,
    altered: Altered<'_>,
    constraint: &pgvet_syntax::ast::Constraint,
) -> Option<SmolStr> {
    let ConstraintKind::NotNull { column: Some(column) } = &constraint.kind else { return None };
    Some(match &constraint.name {
        Some(name) => name.text.clone(),
        None => context.before.choose_constraint_name(
            &altered.table.name,
            Some(&column.text),
            "not_null",
            &altered.table.schema,
            &[],
        ),
    })
}
