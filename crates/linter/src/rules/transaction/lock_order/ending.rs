//! A transaction of a migration at its end, and its deadlocks with the application.

use super::application::{Sequence, Setting, Source};
use super::cycle::{self, Cycle, Requested, Step};
use super::doubts::Between;
use super::migration::Taken;
use super::words::why;
use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::report::{Finding, Reporter};
use indexmap::IndexMap;
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{LockCause, RelationName};
use pgvet_model::session::LongWork;
use rustc_hash::{FxHashMap, FxHashSet};

/// A transaction that ends, and what is known at its beginning.
pub(in super::super) struct Ending<'a> {
    pub(in super::super) locks: Vec<Taken>,
    /// Tables of which it changes a part of the rows.
    pub(in super::super) partly_changed: FxHashSet<Oid>,
    /// Whether it is one statement outside a transaction block, which takes its locks right after each other.
    pub(in super::super) is_alone: bool,
    /// What it does besides changing the catalog and a few rows.
    pub(in super::super) work: Vec<LongWork>,
    /// The beginnings of the statements that run code.
    pub(in super::super) with_code: FxHashSet<u32>,
    pub(in super::super) split: Split,
    pub(in super::super) database: u32,
    pub(in super::super) assumed: Option<Assumption>,
    pub(in super::super) setting: Setting<'a>,
}

/// How the work of a transaction can be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Split {
    /// In the same file.
    Transaction,
    /// The program opens the transaction for the file.
    Migration,
    /// The program opens one transaction for all files that are pending.
    Release,
}

/// A lock of the migration, by its position, and the statements of the application that can deadlock with it.
#[derive(Clone, Copy)]
pub(super) struct Deadlock<'s> {
    pub(super) wanted: usize,
    pub(super) cycle: Cycle,
    pub(super) sequence: &'s Sequence,
}

/// The default of `deadlock_timeout`, in milliseconds: a session waits for this time before it looks for a deadlock.
///
/// Source: PostgreSQL 18 documentation, 19.12.
const DEADLOCK_TIMEOUT: u64 = 1_000;

/// What is assumed about a lock for which the migration waits no longer than this.
pub(in super::super) fn gives_up(patience: Option<u64>) -> Option<Assumption> {
    let milliseconds = patience.filter(|milliseconds| *milliseconds < DEADLOCK_TIMEOUT)?;
    Some(Assumption::DeadlockBeforeTimeout { milliseconds })
}

impl Ending<'_> {
    pub(in super::super) fn report(&self, reporter: &mut Reporter<'_>) {
        let steps: Vec<Step> = self.locks.iter().map(|taken| taken.placed.step.clone()).collect();
        let relations: FxHashSet<Oid> = steps.iter().map(|step| step.relation).collect();
        let upgraded = upgraded(&steps);
        if relations.len() < 2 && upgraded.is_empty() {
            return;
        }
        let sequences = self.setting.sequences(&steps);
        let mut seen = FxHashSet::default();
        let mut deadlocks: IndexMap<[Oid; 2], Vec<Deadlock<'_>>> = IndexMap::new();
        for wanted in 1..steps.len() {
            let is_nowait = self.locks[wanted].placed.patience == Some(0);
            if is_nowait || self.is_reported_elsewhere(wanted) || seen.contains(&steps[wanted].relation) {
                continue;
            }
            let used = sequences.iter().filter(|sequence| self.is_used(sequence));
            let found = used.filter_map(|sequence| {
                let cycle = cycle::at(&steps, wanted, &sequence.steps)?;
                Some(Deadlock { wanted, cycle, sequence })
            });
            if let Some(deadlock) = self.surest(found) {
                seen.insert(steps[wanted].relation);
                let pair = [deadlock.cycle.held, wanted].map(|at| self.root(steps[at].relation));
                deadlocks.entry(pair).or_default().push(deadlock);
            }
        }
        let Some(tables) = deadlocks.keys().map(|[left, right]| [*left.min(right), *left.max(right)]).min() else {
            return;
        };
        // All of them have one remedy, so they are one finding, with those of other transactions on the same tables.
        let cause = Cause::LockOrder { tables, database: self.database };
        for of_pair in deadlocks.values() {
            self.report_pair(of_pair, &sequences, cause, reporter);
        }
    }

    /// The partitioned table or parent at the top, or the relation itself.
    pub(super) fn root(&self, relation: Oid) -> Oid {
        let parent = self.setting.catalog.get_relation(relation).and_then(|relation| relation.parents.first());
        parent.map_or(relation, |parent| self.root(*parent))
    }

    /// The first deadlock without evidence against it, or else the first.
    fn surest<'s>(&self, deadlocks: impl Iterator<Item = Deadlock<'s>>) -> Option<Deadlock<'s>> {
        let mut first = None;
        for deadlock in deadlocks {
            if self.doubts(&deadlock).is_empty() {
                return Some(deadlock);
            }
            first.get_or_insert(deadlock);
        }
        first
    }

    /// Reports the surest deadlock of two tables; those of their partitions are counted.
    fn report_pair(&self, of_pair: &[Deadlock<'_>], all: &[Sequence], cause: Cause, reporter: &mut Reporter<'_>) {
        let Some(deadlock) = self.surest(of_pair.iter().copied()) else { return };
        let mut finding = self.describe(&deadlock, reporter).caused_by(cause);
        let wants = &self.locks[deadlock.wanted];
        let others = of_pair.len() - 1;
        if others > 0 {
            let also = if others == 1 { "another partition".to_owned() } else { format!("{others} other partitions") };
            let label = format!("{also} of these tables can deadlock in the same way");
            finding = finding.label_in(wants.place.file, wants.range(), label);
        }
        for doubt in self.doubts(&deadlock) {
            finding = finding.assuming(doubt);
        }
        let held = &self.locks[deadlock.cycle.held];
        let finding = finding.assuming(gives_up(wants.placed.patience)).assuming(self.assumed.clone());
        finding.help(self.help(deadlock.wanted, held, all)).emit();
    }

    /// Whether the table or view that would deadlock is in use: one that the migration drops is not used any more, and
    /// one that the deployment has created is not used yet.
    pub(super) fn is_used(&self, sequence: &Sequence) -> bool {
        let is_new = |oid| self.setting.catalog.relation(oid).birth.is_of(self.setting.deployment);
        match sequence.source {
            Source::Write(relation, _) | Source::View(relation) => {
                self.setting.after.get_relation(relation).is_some() && !is_new(relation)
            }
            Source::Query { .. } | Source::Function(_) => true,
        }
    }

    /// Whether the transaction has changed all rows of the same table before, which `mixed-ddl-and-bulk-dml` reports.
    fn is_reported_elsewhere(&self, wanted: usize) -> bool {
        let wants = &self.locks[wanted];
        let is_same = |taken: &&Taken| taken.placed.step.relation == wants.placed.step.relation;
        let mut earlier = self.locks[..wanted].iter().filter(is_same);
        wants.mode().is_some() && earlier.any(|taken| taken.mode().is_none())
    }

    /// Both sequences: the message, and labels at the places of the four locks.
    fn describe<'r, 'a>(&self, deadlock: &Deadlock<'_>, reporter: &'r mut Reporter<'a>) -> Finding<'r, 'a> {
        let Deadlock { wanted, cycle, sequence } = *deadlock;
        let (held, wants) = (&self.locks[cycle.held], &self.locks[wanted]);
        let mut finding = reporter.report(wants.range(), self.message(deadlock));
        for step in [&wants.placed.step, &held.placed.step] {
            finding = finding.relation(&RelationName::existing(self.setting.catalog.relation(step.relation)));
        }
        if held.range() != wants.range() {
            let label = format!("the transaction takes {} here, until it ends", self.lock(&held.placed.step));
            finding = finding.label_in(held.place.file, held.range(), label);
        }
        finding = match self.between(cycle.held, wanted) {
            Some(Between::Work(work)) if work.range != held.range() && work.range != wants.range() => {
                let label = "this takes longer the larger the table is, while the transaction holds the lock";
                finding.label_in(work.place.file, work.range, label)
            }
            Some(Between::Wait(other)) if other.range() != held.range() && other.range() != wants.range() => {
                let label = format!("the transaction also waits for {} in between", self.lock(&other.placed.step));
                finding.label_in(other.place.file, other.range(), label)
            }
            _ => finding,
        };
        let subject = self.subject(&sequence.source);
        for (at, words) in [(cycle.other_held, "takes"), (cycle.other_wanted, "then waits for")] {
            let origin = &sequence.origins[at];
            let who = origin.query.as_ref().map_or_else(|| subject.clone(), |place| format!("the query at `{place}`"));
            let label = format!("{who} {words} {}{}", self.lock(&sequence.steps[at]), why(&sequence.source, origin));
            finding = match origin.place {
                Some(place) => finding.label_in(place.file, place.range, label),
                None => finding.label_in(wants.place.file, wants.range(), label),
            };
        }
        finding
    }
}

/// Whether code of the application or of a trigger takes a lock, and not only a foreign key, a view or the changed table.
pub(super) fn is_of_code(ending: &Ending<'_>, sequence: &Sequence, at: usize) -> bool {
    match sequence.source {
        Source::Query { .. } | Source::Function(_) => true,
        Source::View(_) => false,
        Source::Write(table, _) => {
            let is_own = ending.root(sequence.steps[at].relation) == ending.root(table);
            !is_own && sequence.origins[at].cause != LockCause::ForeignKey
        }
    }
}

/// The relations on which the transaction takes more than one lock.
fn upgraded(steps: &[Step]) -> FxHashSet<Oid> {
    let mut count: FxHashMap<Oid, usize> = FxHashMap::default();
    let locks = steps.iter().filter(|step| matches!(step.lock, Requested::Relation(_)));
    locks.for_each(|step| *count.entry(step.relation).or_default() += 1);
    count.into_iter().filter(|(_, count)| *count > 1).map(|(relation, _)| relation).collect()
}
