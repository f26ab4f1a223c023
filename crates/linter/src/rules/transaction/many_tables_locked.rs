//! Strong locks on many tables at once.

use super::{first_words, split_help};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::dropped_later::is_dropped_later;
use crate::rules::statement::locks::assumed_transaction;
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{Lock, LockCause, RelationName, ScanCause};
use pgvet_model::place::Place;
use pgvet_model::session::{HeldLock, TransactionBlock};
use pgvet_syntax::ast::LockMode;
use rustc_hash::FxHashSet;

declare_rule! {
    /// A transaction that locks many tables that are in use, or that adds foreign keys between several pairs of tables.
    ///
    /// ## Why it matters
    ///
    /// For each lock, the migration waits for the queries on the table, while its earlier locks already block queries
    /// on other tables. With every further table, the total wait grows. The risk of a deadlock with a transaction that
    /// locks the same tables in a different order also grows.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- transaction
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ALTER TABLE customers ADD COLUMN note text;
    /// ALTER TABLE products ADD COLUMN note text;
    /// ALTER TABLE invoices ADD COLUMN note text;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- autocommit
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ALTER TABLE customers ADD COLUMN note text;
    /// ALTER TABLE products ADD COLUMN note text;
    /// ALTER TABLE invoices ADD COLUMN note text;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables that the same transaction created or drops later
    /// - partitions, which are counted together with their parent
    /// - up to 3 tables that are locked in ACCESS EXCLUSIVE mode, or up to the value of the option `max-tables` of this
    ///   rule
    /// - statements after the statement that exceeds the limit
    /// - a second foreign key that is added without `NOT VALID`, which `foreign-key-without-not-valid` reports
    ///
    /// ## Confidence
    ///
    /// If the statements up to the reported one change only the catalog, the locks are held only for a moment. The
    /// confidence is then `possible`, and the finding is shown only with `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [Kilo-Org/cloud #5040](https://github.com/Kilo-Org/cloud/pull/5040): a migration that dropped twelve tables
    ///   deadlocked in five deployments and stopped 13 requests
    "many-tables-locked", Transaction, Warning,
    {
        sources: &["pgls/multipleAlterTable", "gitlab/multiple_tables_locked"],
    }
    statement = check,
}

/// Maximum number of tables that a message names.
const SHOWN: usize = 6;

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    let strong: Vec<&Lock> = context.effects.locks.iter().filter(|lock| is_strong(lock)).collect();
    if strong.is_empty() {
        return check_foreign_keys(context, block, reporter);
    }
    let limit = context.settings.max_locked_tables;
    let earlier = locked_tables(block, limit + 1);
    if earlier.len() > limit {
        return check_foreign_keys(context, block, reporter);
    }
    let mut all = earlier.clone();
    let mut seen: FxHashSet<Oid> = all.iter().map(|(oid, _)| *oid).collect();
    for lock in strong.into_iter().filter(|lock| !is_dropped_later(context, &lock.relation)) {
        if seen.insert(lock.relation.oid) {
            all.push((lock.relation.oid, &lock.relation.name));
        }
    }
    if all.len() > limit {
        let mut names: Vec<String> = all.iter().take(SHOWN).map(|(_, name)| format!("`{name}`")).collect();
        if all.len() > SHOWN {
            names.push(format!("{} more", all.len() - SHOWN));
        }
        let message = format!(
            "the transaction now holds ACCESS EXCLUSIVE on {} tables ({}), and blocks all reads and writes of these \
             tables until it ends",
            all.len(),
            names.join(", ")
        );
        let mut finding = reporter.report(first_words(context), message);
        let adds_keys = block.locks.of_foreign_keys().next().is_some()
            || context.effects.locks.iter().any(|lock| lock.cause == LockCause::ForeignKeyAdded);
        if block.work.is_empty() && context.effects.long_work().next().is_none() && !adds_keys {
            finding = finding.assuming(Assumption::LongTransaction);
        }
        let first = block.locks.iter().find(|lock| lock.exposed).filter(|_| !earlier.is_empty());
        finding
            .assuming(first.and_then(|lock| assumed_transaction(context, lock.place)))
            .help(if earlier.is_empty() {
                "change one table at a time, each in its own transaction".to_owned()
            } else {
                split_help(context, "this statement")
            })
            .emit();
    } else {
        check_foreign_keys(context, block, reporter);
    }
}

/// The first tables under ACCESS EXCLUSIVE, partitions not counted.
fn locked_tables(block: &TransactionBlock, at_most: usize) -> Vec<(Oid, &str)> {
    let mut tables: Vec<(Oid, &str)> = Vec::new();
    let mut seen = FxHashSet::default();
    for lock in block.locks.strong() {
        let counts = lock.mode == LockMode::AccessExclusive
            && lock.kind.is_table()
            && !matches!(lock.cause, LockCause::Child | LockCause::Part);
        if counts && seen.insert(lock.relation) {
            let name = lock.name.rsplit_once('.').map_or(lock.name.as_str(), |(_, name)| name);
            tables.push((lock.relation, name));
            if tables.len() == at_most {
                break;
            }
        }
    }
    tables
}

fn is_strong(lock: &Lock) -> bool {
    lock.mode == LockMode::AccessExclusive
        && lock.relation.kind.is_table()
        && lock.relation.visibility.is_exposed()
        && !matches!(lock.cause, LockCause::Child | LockCause::Part)
}

/// Reports the second foreign key between existing tables.
fn check_foreign_keys(context: &RuleContext<'_>, block: &TransactionBlock, reporter: &mut Reporter<'_>) {
    let exposed = |cause: LockCause| {
        context.effects.locks.iter().find(move |lock| {
            lock.cause == cause && lock.relation.kind.is_table() && lock.relation.visibility.is_exposed()
        })
    };
    // `foreign-key-without-not-valid` says that.
    if context.effects.scans.iter().any(|scan| matches!(scan.cause, ScanCause::ForeignKey { .. })) {
        return;
    }
    let (Some(target), Some(other)) = (exposed(LockCause::Target), exposed(LockCause::ForeignKeyAdded)) else { return };
    let earlier = first_foreign_keys(block);
    let [place] = earlier.as_slice() else { return };
    let is_new = |relation: &&RelationName| !block.locks.blocks_writes(relation.oid);
    let new: Vec<&RelationName> = [&target.relation, &other.relation].into_iter().filter(is_new).collect();
    let named = match new.as_slice() {
        // The same pair again locks nothing new.
        [] => return,
        [one] => format!("`{}`", one.name),
        [first, rest @ ..] => format!("`{}` and `{}`", first.name, rest[0].name),
    };
    let message = format!(
        "the transaction already blocks writes to both tables of its first foreign key, and this foreign key also \
         blocks writes to {named} until the transaction ends"
    );
    let finding = reporter.report(first_words(context), message).relation(&target.relation).relation(&other.relation);
    let finding = finding.label_in(place.file, place.range, "the first foreign key is added here");
    let finding = finding.assuming(assumed_transaction(context, *place));
    finding.help(split_help(context, "this foreign key")).emit();
}

/// The first two statements of the transaction that added a foreign key between existing tables.
fn first_foreign_keys(block: &TransactionBlock) -> Vec<Place> {
    let with = |place: Place, cause: LockCause| {
        let mut locks = block.locks.iter();
        locks.any(|lock: &HeldLock| lock.place == place && lock.cause == cause && lock.exposed && lock.kind.is_table())
    };
    let mut places: Vec<Place> = Vec::new();
    for lock in block.locks.of_foreign_keys() {
        if with(lock.place, LockCause::Target) && !places.contains(&lock.place) {
            places.push(lock.place);
            if places.len() == 2 {
                break;
            }
        }
    }
    places
}
