//! Slow work while an earlier statement's lock is still held.

use super::{assumed_transaction, split_help};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::statement::locks::{stops_queries, strong_locks};
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{
    DataChange, DataChangeKind, Effects, Extent, PartitionWorkKind, Read, RelationName, Rows, RowsReason, Scan,
    ScanCause, Visibility,
};
use pgvet_model::place::Place;
use pgvet_model::session::HeldLock;
use pgvet_syntax::ast::{Ast, LockMode};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A scan, rewrite, index build or backfill while the transaction holds a strong lock that an earlier statement
    /// took.
    ///
    /// ## Why it matters
    ///
    /// Locks are held until the end of the transaction. A lock that would otherwise be held for milliseconds now
    /// blocks the application for as long as the slow statement runs, although that statement itself blocks nobody.
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
    /// - changes of bounded rows: constants, or the rows of a bounded query, for all columns of a unique index; a range
    ///   of a numeric key with both ends; LIMIT.
    /// - queries that find their rows with an index, or that need only the first row or the last entry of an index
    /// - work on tables that are new and empty, that can have only one row, or that the same transaction created and
    ///   fills with a few rows, written out or from the system catalogs
    /// - locks on tables that the same transaction created
    /// - slow statements that block writes to their table themselves, such as a plain `CREATE INDEX` or `SET NOT NULL`:
    ///   the rule about that statement says how to run it outside the transaction
    ///
    /// Each slow statement is a finding. Reports for people show those of one migration as one entry.
    ///
    /// ## Confidence
    ///
    /// The confidence is `likely`. It is only `possible` if the statement changes rows that an index selects by
    /// constants, or by values that are known only at run time.
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
    /// It reads all rows unless an index finds them, and the indexes of the table are not known.
    index_unknown: bool,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let works = works(context);
    let Some((work, lock)) = works.iter().find_map(|work| Some((work, blocking_lock(context, work)?))) else { return };
    let table = lock.unqualified_name();
    let access = if lock.mode.blocks_reads() { "read or write" } else { "write to" };
    let message = format!(
        "{} while the transaction holds {} on `{table}`: nobody can {access} `{table}` until it ends",
        work.what,
        lock.mode.sql()
    );
    let label = format!("`{table}` is locked here, until the end of the transaction");
    let mut finding = reporter.report(work.range, message).relation(work.relation).grows();
    if work.index_unknown {
        finding = finding.assuming(Assumption::NoIndexFinds { table: work.relation.name.clone() });
    }
    if let Some(rows) = work.rows.filter(|rows| !rows.is_whole()) {
        finding = finding.assuming(Assumption::many(&work.relation.name, rows));
    }
    let finding = finding.assuming(assumed_transaction(context, lock.place));
    finding.label_in(lock.place.file, lock.place.range, label).help(split_help(context, "the slow statement")).emit();
}

fn works<'a>(context: &'a RuleContext<'_>) -> Vec<Work<'a>> {
    let effects: &Effects = context.effects;
    let mut works = Vec::new();
    let mut add = |relation: &'a RelationName, what: String, range: TextRange| {
        works.push(Work { relation, what, range, rows: None, copies: false, index_unknown: false });
    };
    let rewrites = effects.rewrites.iter().filter(|rewrite| !blocks_by_itself(context, &rewrite.relation));
    for rewrite in rewrites {
        add(&rewrite.relation, format!("this rewrites `{}`", rewrite.relation.name), rewrite.range);
    }
    let builds = effects.index_builds.iter().filter(|build| !blocks_by_itself(context, &build.table));
    for build in builds {
        add(&build.table, format!("this builds an index on `{}`", build.table.name), build.range);
    }
    let (whole, part): (Vec<_>, Vec<_>) = changes(effects).partition(|change| change.rows.is_whole());
    works.extend(whole.into_iter().map(work_of));
    let scans = effects.scans.iter().filter(|scan| {
        !blocks_by_itself(context, &scan.relation) && !is_validation_of_new(context, &scan.cause, scan.relation.oid)
    });
    for scan in scans {
        let (relation, range) = (&scan.relation, scan.range);
        let what = format!("this reads all of `{}`", relation.name);
        works.push(Work {
            relation,
            what,
            range,
            rows: None,
            copies: false,
            index_unknown: lacks_index(context, scan),
        });
    }
    works.extend(partition_scans(context));
    works.extend(part.into_iter().map(work_of));
    // An INSERT takes as long as its source is large, however empty its target is.
    works.retain(|work| work.relation.visibility.may_have_rows() || work.copies);
    works.retain(|work| !has_one_row(context, work.relation) && !has_few_rows(context, work.relation));
    works
}

/// The validation of a constraint in partitions that no migration shows. Any other work on them blocks their writes itself.
fn partition_scans<'a>(context: &'a RuleContext<'_>) -> impl Iterator<Item = Work<'a>> {
    let scans = context.effects.partition_work.iter().filter(|work| match &work.kind {
        PartitionWorkKind::Scan(cause) => {
            !blocks_by_itself(context, &work.relation) && !is_validation_of_new(context, cause, work.relation.oid)
        }
        _ => false,
    });
    scans.map(|work| Work {
        relation: &work.relation,
        what: format!("this reads each partition of `{}`", work.relation.name),
        range: work.range,
        rows: None,
        copies: false,
        index_unknown: false,
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
    Work {
        relation: &change.relation,
        what,
        range: change.range,
        rows: Some(&change.rows),
        copies,
        index_unknown: false,
    }
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

/// The first lock of an earlier statement that blocks more than the working statement does itself.
fn blocking_lock(context: &RuleContext<'_>, work: &Work<'_>) -> Option<HeldLock> {
    let mut held = strong_locks(context.session);
    let earlier = held.find(|lock| lock.mode > own_lock(context, lock.relation));
    earlier.cloned().or_else(|| lock_in_code(context, work))
}

/// In a DO block the lock and the work are effects of the same statement, in the order of the text.
fn lock_in_code(context: &RuleContext<'_>, work: &Work<'_>) -> Option<HeldLock> {
    let is_change = context.effects.data_changes.iter().any(|change| change.range == work.range);
    if !matches!(context.ast, Ast::Do(_)) || !is_change {
        return None;
    }
    let mut locks = context.effects.locks.iter();
    let lock = locks.find(|lock| {
        lock.relation.visibility.is_exposed()
            && lock.mode.blocks_writes()
            && stops_queries(lock.relation.kind)
            && lock.range.end <= work.range.start
    })?;
    Some(HeldLock {
        relation: lock.relation.oid,
        name: lock.relation.name.clone(),
        kind: lock.relation.kind,
        mode: lock.mode,
        cause: lock.cause,
        exposed: true,
        place: Place { file: context.file, range: lock.range },
        range: lock.range,
    })
}
