//! Slow work while an earlier statement's lock is still held.

use super::split_help;
use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead_of_maker};
use crate::rules::locking::type_change_rewrites_table::type_not_shown;
use crate::rules::statement::locks::{
    assumed_transaction, blocks_only_writes_of_lookup, show_lock, show_other_locks, stops_queries, strong_locks,
};
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{
    DataChange, DataChangeKind, Effects, Extent, IndexBuildCause, PartitionWorkKind, Read, RelationName, Rows,
    RowsReason, Scan, ScanCause, Visibility,
};
use pgvet_model::place::Place;
use pgvet_model::session::HeldLock;
use pgvet_syntax::ast::{Ast, LockMode};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;

declare_rule! {
    /// A scan, rewrite, index build or backfill while the transaction holds a strong lock from an earlier statement.
    ///
    /// ## Why it matters
    ///
    /// The lock blocks the application for as long as the slow statement runs, because PostgreSQL holds locks until the
    /// end of the transaction. The slow statement alone might block nobody, and in a separate transaction the lock
    /// might be held only for milliseconds.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- transaction
    /// ALTER TABLE orders ADD COLUMN total bigint;
    /// UPDATE orders SET total = price * quantity;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- autocommit
    /// ALTER TABLE orders ADD COLUMN total bigint;
    /// UPDATE orders SET total = price * quantity WHERE id BETWEEN 1 AND 10000;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - changes whose WHERE clause compares all columns of a unique index with constants, or with the result of a
    ///   query whose number of rows is limited
    /// - changes whose WHERE clause gives a numeric key a lower and an upper limit
    /// - changes of rows that a query with `LIMIT` selects
    /// - `SELECT`s that find their rows with an index, or that read only one row, with `LIMIT 1`, or with `min` or
    ///   `max` of an indexed column
    /// - work on tables that are new and empty, or that can have only one row
    /// - work on tables that the same transaction created and fills with a few rows: constants, or rows of the system
    ///   catalogs
    /// - locks on tables that the same deployment created
    /// - slow statements that themselves block writes to their table, such as a plain `CREATE INDEX` or `SET NOT NULL`,
    ///   unless the transaction holds ACCESS EXCLUSIVE on a table whose writes the statement does not block. Other rules
    ///   report these statements.
    ///
    /// The message names the locks that block most. Reports show the slow statements of one transaction as one finding
    /// with several locations.
    ///
    /// ## Confidence
    ///
    /// The confidence is `likely`. The confidence is only `possible` if the statement may read or change just a few
    /// rows, because a condition compares a column with a value, or because pgvet does not know the indexes of the
    /// table. It is also `possible` if the transaction blocks only writes, and only of tables whose rows are inserted by
    /// migrations.
    "work-after-strong-lock", Transaction, Error,
    {
        sources: &["eugene/E4", "pgls/runningStatementWhileHoldingAccessExclusive", "gitlab/with_lock_retries"],
    }
    statement = check,
}

/// Work whose duration grows with the size of a table.
struct Work<'a> {
    relation: &'a RelationName,
    what: String,
    range: TextRange,
    /// How many rows it changes.
    rows: Option<&'a Rows>,
    /// Its duration grows with the size of another table.
    copies: bool,
    /// Why it may take no time, although nothing shows that.
    doubt: Option<Assumption>,
}

impl Work<'_> {
    /// Whether there is evidence that it takes no time.
    fn is_doubtful(&self) -> bool {
        self.doubt.is_some() || self.relation.few.is_some() || self.rows.is_some_and(Rows::may_be_few)
    }
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let works = works(context);
    let under_locks = works.iter().map(|work| (work, blocking_locks(context, work)));
    let under_locks = under_locks.filter(|(_, locks)| !locks.is_empty());
    // The first of those without evidence that they take no time.
    let Some((work, locks)) = under_locks.min_by_key(|(work, _)| work.is_doubtful()) else { return };
    let (lock, others) = (&locks[0], &locks[1..]);
    let access = if lock.mode.blocks_reads() { "read or write" } else { "write to" };
    let (mode, table) = (lock.mode.sql(), shown_name(lock, work));
    let held = match others.len() {
        0 => format!("{mode} on `{table}`: nobody can {access} `{table}`"),
        1 => format!("{mode} on `{table}` and `{}`: nobody can {access} these tables", shown_name(&others[0], work)),
        more => {
            let has_more = strong_locks(context.session).nth(LOOKED_AT).is_some();
            let least = if has_more { "at least " } else { "" };
            format!("{mode} on `{table}` and {least}{more} other tables: nobody can {access} these tables")
        }
    };
    let message = format!("{} while the transaction holds {held} until the transaction ends", work.what);
    let cause = Cause::Transaction(context.transaction());
    let mut finding = reporter.report(work.range, message).relation(work.relation).grows().caused_by(cause);
    finding = finding.assuming(work.doubt.clone());
    if let Some(rows) = work.rows.filter(|rows| !rows.is_whole()) {
        finding = finding.assuming(Assumption::many(&work.relation.name, rows));
    }
    let is_idle = |lock: &HeldLock| blocks_only_writes_of_lookup(context, lock.relation, lock.mode);
    let written = locks.iter().all(is_idle).then(|| Assumption::WritesListedTable { table: table.into() });
    let unseen = lock.unseen_part.clone().map(|object| Assumption::DropsUnseen { object });
    let finding = finding.assuming(written).assuming(unseen).assuming(assumed_transaction(context, lock.place));
    let finding = locks.iter().fold(finding, show_lock);
    let named: Vec<Oid> = locks.iter().map(|lock| lock.relation).collect();
    let help = if are_created_again(context, &locks) {
        "create the new relations under other names first, then drop the old ones and rename the new ones in one short \
         transaction"
            .to_owned()
    } else {
        split_help(context, "this statement")
    };
    show_other_locks(finding, context, &named).help(help).emit();
}

/// Whether the transaction has dropped one of the locked relations, and the migration creates it again: it cannot end in
/// between.
fn are_created_again(context: &RuleContext<'_>, locks: &[HeldLock]) -> bool {
    let dropped = locks.iter().find(|lock| context.before.get_relation(lock.relation).is_none());
    dropped.is_some_and(|lock| {
        let name = lock.unqualified_name();
        let schema = lock.name.split_once('.').map_or("public", |(schema, _)| schema);
        let end = ahead_of_maker(context, name, Until::EndOfMigration);
        end.relation_named(schema, name).is_some()
    })
}

/// The name of a locked table, with its schema if the work is on another table of the same name.
fn shown_name<'l>(lock: &'l HeldLock, work: &Work<'_>) -> &'l str {
    let name = lock.unqualified_name();
    if name == work.relation.name && lock.relation != work.relation.oid { &lock.name } else { name }
}

fn works<'a>(context: &'a RuleContext<'_>) -> Vec<Work<'a>> {
    let effects: &Effects = context.effects;
    let mut works = Vec::new();
    let mut add = |relation: &'a RelationName, what: String, range: TextRange, doubt: Option<Assumption>| {
        works.push(Work { relation, what, range, rows: None, copies: false, doubt });
    };
    // A table that is perhaps not rewritten is not read for that either.
    let perhaps_not_rewritten = |table: &RelationName| {
        effects.rewrites.iter().filter(|rewrite| rewrite.relation.oid == table.oid).find_map(type_not_shown)
    };
    for rewrite in &effects.rewrites {
        let what = format!("this rewrites `{}`", rewrite.relation.name);
        add(&rewrite.relation, what, rewrite.range, type_not_shown(rewrite));
    }
    // TRUNCATE leaves nothing to build an index of.
    let is_emptied = |table: &RelationName| effects.truncates.iter().any(|emptied| emptied.oid == table.oid);
    for build in effects.index_builds.iter().filter(|build| !is_emptied(&build.table)) {
        let is_of_rewrite = build.cause == IndexBuildCause::Rewrite;
        let doubt = if is_of_rewrite { perhaps_not_rewritten(&build.table) } else { None };
        add(&build.table, format!("this builds an index on `{}`", build.table.name), build.range, doubt);
    }
    let (whole, part): (Vec<_>, Vec<_>) = changes(effects).partition(|change| change.rows.is_whole());
    works.extend(whole.into_iter().map(work_of));
    let scans = effects.scans.iter().filter(|scan| !is_validation_of_new(context, &scan.cause, scan.relation.oid));
    let is_changed = |scan: &Scan| effects.data_changes.iter().any(|change| change.relation.oid == scan.relation.oid);
    let (of_changed, of_others): (Vec<&Scan>, Vec<&Scan>) = scans.partition(|scan| is_changed(scan));
    let scans = of_changed.into_iter().chain(of_others);
    for scan in scans {
        let (relation, range) = (&scan.relation, scan.range);
        let what = what_reads(effects, scan);
        works.push(Work {
            relation,
            what,
            range,
            rows: None,
            copies: false,
            doubt: match scan.cause {
                ScanCause::Rewrite => perhaps_not_rewritten(relation),
                _ => lacks_index(context, scan).then(|| Assumption::NoIndexFinds { table: relation.name.clone() }),
            },
        });
    }
    works.extend(partition_scans(context));
    works.extend(part.into_iter().map(work_of));
    // An INSERT takes as long as its source is large, however empty its target is.
    works.retain(|work| work.relation.may_have_rows() || work.copies);
    works.retain(|work| !has_one_row(context, work.relation) && !has_few_rows(context, work.relation));
    works
}

/// What a statement does that reads all of a table: to find a part of the rows that it changes, or nothing else.
fn what_reads(effects: &Effects, scan: &Scan) -> String {
    let name = &scan.relation.name;
    let is_of_change = |change: &&DataChange| change.relation.oid == scan.relation.oid && change.range == scan.range;
    let change = effects.data_changes.iter().filter(is_of_change).map(|change| change.kind);
    match change.max_by_key(|kind| *kind == DataChangeKind::Delete) {
        Some(DataChangeKind::Delete) => format!("this deletes rows of `{name}`, and reads all of it to find them,"),
        Some(DataChangeKind::Update) => format!("this updates rows of `{name}`, and reads all of it to find them,"),
        Some(DataChangeKind::Insert) | None => format!("this reads all of `{name}`"),
    }
}

/// The validation of a constraint in partitions that no migration shows. Any other work on them blocks their writes itself.
fn partition_scans<'a>(context: &'a RuleContext<'_>) -> impl Iterator<Item = Work<'a>> {
    let scans = context.effects.partition_work.iter().filter(|work| match &work.kind {
        PartitionWorkKind::Scan(cause) => !is_validation_of_new(context, cause, work.relation.oid),
        _ => false,
    });
    scans.map(|work| Work {
        relation: &work.relation,
        what: format!("this reads each partition of `{}`", work.relation.name),
        range: work.range,
        rows: None,
        copies: false,
        doubt: None,
    })
}

/// Whether a query reads all rows only because no index finds them, of a table whose indexes no migration shows.
fn lacks_index(context: &RuleContext<'_>, scan: &Scan) -> bool {
    let is_unseen = context.before.get_relation(scan.relation.oid).is_some_and(|table| !table.known);
    let is_of_index = |read: &Read| {
        read.relation.oid == scan.relation.oid && read.range == scan.range && read.rows.reason == RowsReason::NoIndex
    };
    scan.cause == ScanCause::Query && is_unseen && context.effects.reads.iter().any(is_of_index)
}

/// The changes of more than a few rows.
fn changes(effects: &Effects) -> impl Iterator<Item = &DataChange> {
    effects.data_changes.iter().filter(|change| !change.rows.is_few())
}

fn work_of(change: &DataChange) -> Work<'_> {
    let name = &change.relation.name;
    let all = if change.rows.extent == Extent::All { "all rows" } else { "rows" };
    let what = match change.kind {
        DataChangeKind::Insert => format!("this copies rows into `{name}`"),
        DataChangeKind::Update => format!("this updates {all} of `{name}`"),
        DataChangeKind::Delete => format!("this deletes {all} of `{name}`"),
    };
    let copies = change.kind == DataChangeKind::Insert;
    Work { relation: &change.relation, what, range: change.range, rows: Some(&change.rows), copies, doubt: None }
}

/// A table that only this session sees contains only what the migration inserted.
fn has_few_rows(context: &RuleContext<'_>, relation: &RelationName) -> bool {
    let is_own = matches!(relation.visibility, Visibility::SameTransaction { .. });
    is_own && context.after.get_relation(relation.oid).is_some_and(|table| !table.birth.many)
}

/// A change of one row is short, and so is a copy into a table that holds no more than one.
fn has_one_row(context: &RuleContext<'_>, relation: &RelationName) -> bool {
    context.before.get_relation(relation.oid).is_some_and(|table| context.before.has_one_row(table))
}

/// Whether the statement itself blocks the writes of the table in use that it works on. Another rule then reports the
/// work, and its advice also moves it out of the transaction.
fn blocks_by_itself(context: &RuleContext<'_>, relation: &RelationName) -> bool {
    relation.visibility.is_exposed() && own_lock(context, relation.oid).blocks_writes()
}

/// The strongest lock that the statement takes on a relation.
fn own_lock(context: &RuleContext<'_>, relation: Oid) -> LockMode {
    context.effects.locks.strongest(relation).unwrap_or(LockMode::AccessShare)
}

/// `validate-in-same-transaction` reports that more precisely.
fn is_validation_of_new(context: &RuleContext<'_>, cause: &ScanCause, table: Oid) -> bool {
    let ScanCause::Validate { constraint } = cause else { return false };
    super::validate_in_same_transaction::is_new(context, table, constraint)
}

/// How many locks of a transaction are compared for each statement: one may lock tens of thousands of tables.
const LOOKED_AT: usize = 100;

/// The locks of earlier statements that block more than the working statement does itself, one of each table: those that
/// block most, with that on the table of the work first.
fn blocking_locks(context: &RuleContext<'_>, work: &Work<'_>) -> Vec<HeldLock> {
    let blocks_by_itself = blocks_by_itself(context, work.relation);
    let is_in_the_way = |lock: &&HeldLock| {
        lock.mode > own_lock(context, lock.relation)
            && !is_of_deployment(context, lock.relation)
            && (lock.mode.blocks_reads() || !blocks_by_itself)
    };
    let held = strong_locks(context.session).take(LOOKED_AT);
    let mut locks: Vec<HeldLock> = held.filter(is_in_the_way).cloned().collect();
    // The rule that reports the work then also says that the transaction blocks reads, of this table and of others.
    if blocks_by_itself && locks.iter().any(|lock| lock.relation == work.relation.oid) {
        locks.clear();
    }
    // That rule names the held locks on all tables whose writes the statement blocks.
    locks.retain(|lock| !(blocks_by_itself && own_lock(context, lock.relation).blocks_writes()));
    if locks.is_empty() {
        locks.extend(locks_in_code(context, work));
    }
    if locks.iter().any(|lock| lock.unseen_part.is_none()) {
        locks.retain(|lock| lock.unseen_part.is_none());
    }
    let strongest = locks.iter().map(|lock| lock.mode).max();
    let mut seen = FxHashSet::default();
    locks.retain(|lock| Some(lock.mode) == strongest && seen.insert(lock.relation));
    locks.sort_by_key(|lock| lock.relation != work.relation.oid);
    locks
}

/// Whether the deployment of the migration created the relation: nobody else uses it yet.
fn is_of_deployment(context: &RuleContext<'_>, relation: Oid) -> bool {
    context.before.get_relation(relation).is_some_and(|relation| relation.birth.is_of(context.deployment()))
}

/// In a DO block the lock and the work are effects of the same statement, in the order of the text.
fn locks_in_code(context: &RuleContext<'_>, work: &Work<'_>) -> impl Iterator<Item = HeldLock> {
    let is_change = context.effects.data_changes.iter().any(|change| change.range == work.range);
    let looks = matches!(context.ast, Ast::Do(_)) && is_change;
    let locks = context.effects.locks.iter().filter(move |lock| {
        looks
            && lock.relation.visibility.is_exposed()
            && !is_of_deployment(context, lock.relation.oid)
            && lock.mode.blocks_writes()
            && stops_queries(lock.relation.kind)
            && lock.range.end <= work.range.start
    });
    locks.map(|lock| HeldLock {
        relation: lock.relation.oid,
        name: lock.relation.name.clone(),
        kind: lock.relation.kind,
        mode: lock.mode,
        cause: lock.cause,
        patience: lock.patience,
        exposed: true,
        unseen_part: lock.relation.unseen_part.clone(),
        place: Place { file: context.file, range: lock.range },
        range: lock.range,
    })
}
