//! A foreign key that is checked for all rows when it is added.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::constraint::{self, without_check};
use crate::rules::advice::offer::offer;
use crate::rules::locking::unseen_partitions;
use crate::rules::statement::altered::{Altered, by_range, subject};
use crate::rules::statement::locks::{assumed_transaction, lock_on_reads, show_lock, show_other_locks};
use crate::rules::text::enumerate;
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{LockCause, PartitionWorkKind, RelationName, Scan, ScanCause};
use pgvet_model::throughput::Work;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A foreign key that is added without `NOT VALID`.
    ///
    /// ## Why it matters
    ///
    /// Nobody can write to the referencing or the referenced table until the transaction ends. PostgreSQL looks up
    /// every row of the referencing table in the referenced table, and holds SHARE ROW EXCLUSIVE locks on both tables.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ADD CONSTRAINT orders_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers (id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders ADD CONSTRAINT orders_customer_id_fkey
    ///     FOREIGN KEY (customer_id) REFERENCES customers (id) NOT VALID;
    /// ALTER TABLE orders VALIDATE CONSTRAINT orders_customer_id_fkey;
    /// ```
    ///
    /// With `NOT VALID`, PostgreSQL does not check existing rows, but it checks every row that is inserted or updated
    /// from then on. `VALIDATE` reads the table under a lock that allows reads and writes. Run the two statements in
    /// separate transactions.
    ///
    /// Before PostgreSQL 18, a foreign key of a partitioned table cannot be `NOT VALID`. Add the foreign key to each
    /// partition first, and then to the parent, which adopts the foreign keys of the partitions.
    ///
    /// ## When it is not reported
    ///
    /// - a foreign key with `NOT VALID` or `NOT ENFORCED`
    /// - `ADD COLUMN ... REFERENCES` without a default: all values are null, so PostgreSQL reads nothing
    /// - a referencing table that is new and empty. If the new table already has rows, the statement is reported,
    ///   because the referenced table is locked while PostgreSQL checks these rows.
    ///
    /// ## Fix safety
    ///
    /// If each statement of the file runs in its own transaction, one fix replaces the statement with the steps shown
    /// above. The resulting schema is the same. The fix is unsafe: if a row violates the foreign key, `VALIDATE` fails,
    /// and the foreign key remains as NOT VALID. The other fix only adds NOT VALID. That fix is unsafe, because a later
    /// migration has to validate the foreign key. Neither fix is offered for partitioned tables before PostgreSQL 18.
    "foreign-key-without-not-valid", Locking, Error,
    {
        fixable: true,
        sources: &[
            "squawk/adding-foreign-key-constraint",
            "squawk/constraint-missing-not-valid",
            "eugene/E1",
            "strong_migrations/add_foreign_key",
            "pgls/addingForeignKeyConstraint", "atlas/PG306"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let altered = Altered::of(context);
    for (range, scans) in checked_keys(context) {
        report(context, reporter, altered, range, &scans);
    }
    unseen_partitions::report(
        context,
        reporter,
        |work| match &work.kind {
            PartitionWorkKind::Scan(ScanCause::ForeignKey { .. })
                if altered.is_none_or(|it| it.type_change(work.range).is_none()) =>
            {
                Some("checking this foreign key reads".to_owned())
            }
            _ => None,
        },
        "add the foreign key NOT VALID to each partition, and validate it there. Then add the foreign key to the \
         parent",
    );
}

/// The foreign keys of a statement that are checked for the rows of a table that somebody waits for, itself or because
/// the referenced table is locked meanwhile.
pub(super) fn checked_keys<'e>(context: &RuleContext<'e>) -> Vec<(TextRange, Vec<&'e Scan>)> {
    let altered = Altered::of(context);
    let holds_other = context
        .effects
        .locks
        .iter()
        .any(|lock| lock.cause == LockCause::ForeignKeyAdded && lock.relation.visibility.is_exposed());
    let scans = context.effects.scans.iter().filter(|scan| {
        let changes_type = altered.is_some_and(|altered| altered.type_change(scan.range).is_some());
        let visibility = scan.relation.visibility;
        matches!(scan.cause, ScanCause::ForeignKey { .. })
            && !changes_type
            && (visibility.is_exposed() || (holds_other && visibility.may_have_rows()))
    });
    by_range(scans, |scan| scan.range)
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
    let referenced = referenced_tables(context, &tables);
    let subject = subject(altered, &tables);
    let table = altered.map_or(&first.relation, |altered| altered.table);
    let waiting =
        std::iter::once(table).chain(referenced.iter().copied()).filter(|table| table.visibility.is_exposed());
    let message = format!("checking this foreign key reads all of {subject}{}", blocked(context, waiting));
    let mut finding = reporter.report(range, message).relation(table).work(Work::ForeignKey);
    for table in &referenced {
        finding = finding.relation(table);
    }
    if let Some(lock) = lock_on_reads(context, table.oid) {
        finding = show_lock(finding, lock).assuming(assumed_transaction(context, lock.place));
        let named: Vec<Oid> = std::iter::once(table).chain(referenced).map(|table| table.oid).collect();
        finding = show_other_locks(finding, context, &named);
    }
    let written = altered.and_then(|altered| Some((altered, altered.constraint(range)?)));
    let name = match &first.cause {
        ScanCause::ForeignKey { constraint } => constraint.as_ref(),
        _ => None,
    };
    let finding = match (written, name) {
        (Some((altered, written)), Some(name)) => {
            offer(context, finding, constraint::foreign_key(context, altered, written, name, &tables))
        }
        _ => finding.help("add the foreign key NOT VALID, and validate it in a later transaction"),
    };
    finding.fix(written.and_then(|(altered, written)| without_check(context, altered, written))).emit();
}

/// The other tables that the statement locks for foreign keys.
fn referenced_tables<'e>(context: &RuleContext<'e>, tables: &[&RelationName]) -> Vec<&'e RelationName> {
    let locks = context.effects.locks.iter().filter(|lock| {
        matches!(lock.cause, LockCause::ForeignKeyAdded | LockCause::ForeignKeyDropped | LockCause::ForeignKey)
    });
    let mut referenced: Vec<&RelationName> = Vec::new();
    for lock in locks {
        if !tables.iter().chain(&referenced).any(|known| known.oid == lock.relation.oid) {
            referenced.push(&lock.relation);
        }
    }
    referenced
}

/// What nobody can do with the tables meanwhile, by the strongest lock that the whole statement and the transaction before
/// it take on each. The foreign key alone blocks only writes.
fn blocked<'t>(context: &RuleContext<'_>, tables: impl Iterator<Item = &'t RelationName>) -> String {
    let taken = |table: &RelationName| {
        context.effects.locks.iter().any(|lock| lock.relation.oid == table.oid && lock.mode.blocks_reads())
    };
    let tables: Vec<&RelationName> = tables.collect();
    let is_taken = tables.iter().any(|table| taken(table));
    let is_unreadable = |table: &&RelationName| taken(table) || lock_on_reads(context, table.oid).is_some();
    let (unreadable, unwritable): (Vec<&RelationName>, Vec<_>) = tables.into_iter().partition(is_unreadable);
    let names = |tables: &[&'t RelationName]| enumerate(tables.iter().map(|table| table.name.as_str()));
    if unreadable.is_empty() {
        return format!(", and blocks all writes to {} until the transaction ends", names(&unwritable));
    }
    let holder = if is_taken { "another part of the statement" } else { "the transaction" };
    let held = if unreadable.len() == 1 { names(&unreadable) } else { "these tables".to_owned() };
    let others = match unwritable.as_slice() {
        [] => String::new(),
        others => format!(", and nobody can write to {}", names(others)),
    };
    format!(
        " while {holder} holds ACCESS EXCLUSIVE on {}: until the transaction ends, nobody can read or write {held}{others}",
        names(&unreadable)
    )
}
