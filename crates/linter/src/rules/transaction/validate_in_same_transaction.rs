//! NOT VALID and VALIDATE CONSTRAINT in one transaction.

use super::split_help;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::statement::locks::assumed_transaction;
use pgvet_model::catalog::Oid;
use pgvet_model::effect::ScanCause;

declare_rule! {
    /// A constraint is added as `NOT VALID` and validated in the same transaction.
    ///
    /// ## Why it matters
    ///
    /// `NOT VALID` exists so that the strong lock of `ADD CONSTRAINT` is released before all rows are checked. If both
    /// statements run in one transaction, PostgreSQL holds that lock during the check, as if the constraint had been
    /// added without `NOT VALID`.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- transaction
    /// ALTER TABLE orders ADD CONSTRAINT total_positive CHECK (total > 0) NOT VALID;
    /// ALTER TABLE orders VALIDATE CONSTRAINT total_positive;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// BEGIN;
    /// ALTER TABLE orders ADD CONSTRAINT total_positive CHECK (total > 0) NOT VALID;
    /// COMMIT;
    /// ALTER TABLE orders VALIDATE CONSTRAINT total_positive;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that the same transaction created
    /// - adding and validating a constraint in one statement, which `validate-with-stronger-subcommand` reports
    "validate-in-same-transaction", Transaction, Error,
    {
        sources: &["squawk/constraint-missing-not-valid", "strong_migrations/validate_constraint"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    for scan in &context.effects.scans {
        let ScanCause::Validate { constraint } = &scan.cause else { continue };
        let table = &scan.relation;
        if !table.visibility.is_exposed() || !is_new(context, table.oid, constraint) {
            continue;
        }
        let held = block.locks.of(table.oid).filter(|lock| lock.mode.blocks_writes());
        let Some(lock) = held.max_by_key(|lock| (lock.mode, std::cmp::Reverse(lock.place.range.start))) else {
            continue;
        };
        let access = if lock.mode.blocks_reads() { "read or write" } else { "write to" };
        let message = format!(
            "validating `{constraint}` here reads all rows while the transaction holds {} on `{}`: nobody can {access} \
             the table until the transaction ends",
            lock.mode.sql(),
            table.name
        );
        let finding = reporter.report(scan.range, message).relation(table);
        let finding = finding.label_in(lock.place.file, lock.place.range, format!("`{}` is locked here", table.name));
        let finding = finding.assuming(assumed_transaction(context, lock.place));
        finding.help(split_help(context, "VALIDATE CONSTRAINT")).emit();
    }
}

/// Whether an earlier statement of the transaction added the constraint.
pub(super) fn is_new(context: &RuleContext<'_>, table: Oid, constraint: &str) -> bool {
    let Some(block) = &context.session.block else { return false };
    let has = |catalog: &pgvet_model::catalog::Catalog| {
        catalog.get_relation(table).is_some_and(|table| table.constraint(constraint).is_some())
    };
    has(context.before) && !has(block.catalog_before())
}
