//! Adding or dropping a foreign key, and the table at its other end.

use super::foreign_key_without_not_valid::checked_keys;
use super::{Held, held};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::{Advice, constraint, one_line};
use crate::rules::deployment::dropped_later::is_dropped_later;
use crate::rules::statement::altered::{Altered, by_range};
use crate::rules::statement::locks::blocks_only_writes_of_lookup;
use crate::rules::text::{enumerate, sql_name};
use crate::severity::Severity;
use pgvet_model::effect::{Lock, LockCause, RelationName};
use pgvet_syntax::ast::{Ast, LockMode};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A statement that adds or drops a foreign key, and therefore also locks the other table of the foreign key.
    ///
    /// ## Why it matters
    ///
    /// A foreign key has triggers on both of its tables. If a statement drops a foreign key, or a table or column with
    /// a foreign key, it also takes an ACCESS EXCLUSIVE lock on the referenced table. Every query on that table then
    /// waits until the transaction ends, although the statement does not name the table. Adding a foreign key takes
    /// SHARE ROW EXCLUSIVE on the referenced table, which blocks writes.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE customers (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint REFERENCES customers);
    /// -- migration:
    /// DROP TABLE orders;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE customers (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint REFERENCES customers);
    /// ALTER TABLE orders DROP CONSTRAINT orders_customer_id_fkey;
    /// -- migration:
    /// DROP TABLE orders;
    /// ```
    ///
    /// Dropping the foreign key still takes a strong lock on both tables. Drop it in a transaction of its own with a
    /// short `lock_timeout`, and retry if the timeout expires.
    ///
    /// ## When it is not reported
    ///
    /// - statements that name the other table
    /// - statements, if the same migration drops the other table
    /// - statements in a transaction that already holds the same or a stronger lock on the other table
    /// - statements, if the same transaction created the other table, or if the same migration created it and left it
    ///   empty
    /// - a foreign key that is added without `NOT VALID`, which `foreign-key-without-not-valid` reports
    ///
    /// ## Confidence
    ///
    /// If an earlier statement of the migration takes the same locks, and its transaction is still open, the later
    /// statement adds no lock. If pgvet does not know whether the transaction is still open, the confidence is
    /// `possible`.
    ///
    /// The confidence is also `possible` if only writes are blocked, and only of tables whose rows are inserted by
    /// migrations.
    ///
    /// If the foreign key is added to a new table or with `NOT VALID`, the severity is `info`, because the lock is then
    /// short.
    "foreign-key-locks-other-table", Locking, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let read: Vec<TextRange> = checked_keys(context).into_iter().map(|(range, _)| range).collect();
    let effects = context.effects;
    let locks = effects.locks.iter().filter(|lock| {
        matches!(lock.cause, LockCause::ForeignKeyAdded | LockCause::ForeignKeyDropped)
            && lock.relation.visibility.is_exposed()
            && lock.relation.kind.is_table()
            && !effects.drops.iter().any(|dropped| dropped.oid == lock.relation.oid)
            && !is_dropped_later(context, &lock.relation)
            && held(context, &lock.relation, lock.mode) != Held::Surely
            && !effects
                .locks
                .iter()
                .any(|other| other.relation.oid == lock.relation.oid && other.cause == LockCause::Target)
    });
    for (range, locks) in by_range(locks, |lock| lock.range) {
        if locks.iter().all(|lock| lock.cause == LockCause::ForeignKeyAdded) && !read.is_empty() {
            continue;
        }
        report(context, reporter, range, &locks);
    }
}

fn report(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange, locks: &[&Lock]) {
    let tables: Vec<&RelationName> = locks.iter().map(|lock| &lock.relation).collect();
    let names = enumerate(tables.iter().map(|table| table.name.as_str()));
    let exclusive = locks.iter().any(|lock| lock.mode == LockMode::AccessExclusive);
    let message = match context.ast {
        _ if !exclusive => format!("adding this foreign key blocks writes to {names} until the transaction ends"),
        Ast::Drop(_) if tables.len() > 1 => format!(
            "this also drops foreign keys, and therefore takes ACCESS EXCLUSIVE on {names} and blocks all reads and \
             writes there until the transaction ends"
        ),
        _ => format!(
            "dropping this foreign key also takes ACCESS EXCLUSIVE on {names} and blocks all reads and writes there \
             until the transaction ends"
        ),
    };
    let mut finding = reporter.report(range, message);
    for table in &tables {
        finding = finding.relation(table);
    }
    // In a transaction an earlier statement would hold them already.
    if locks.iter().all(|lock| held(context, &lock.relation, lock.mode) == Held::IfInTransaction) {
        finding = finding.assuming(Assumption::NoTransactionAround);
    }
    let is_idle = |lock: &&Lock| blocks_only_writes_of_lookup(context, lock.relation.oid, lock.mode);
    if locks.iter().all(is_idle) {
        finding = finding.assuming(Assumption::WritesListedTable { table: tables[0].name.clone() });
    }
    if !exclusive {
        let help = Advice::new("keep the transaction short, and set a lock_timeout first:");
        finding.severity(Severity::Info).help(help.sql("SET lock_timeout = '2s'")).emit();
        return;
    }
    let help = match context.ast {
        Ast::Drop(_) => constraint::drop_foreign_keys(context, &dropped(context), &tables),
        _ => constraint::give_up_and_retry().all(command(context, range)),
    };
    finding.help(help).emit();
}

/// The command alone, as a statement.
fn command(context: &RuleContext<'_>, range: TextRange) -> Option<String> {
    let altered = Altered::of(context)?;
    let command = one_line(context, altered.command(range)?.range)?;
    Some(format!("ALTER TABLE {} {command}", sql_name(context, altered.table)))
}

fn dropped<'e>(context: &RuleContext<'e>) -> Vec<&'e RelationName> {
    context.effects.drops.iter().filter(|relation| relation.kind.is_table()).collect()
}
