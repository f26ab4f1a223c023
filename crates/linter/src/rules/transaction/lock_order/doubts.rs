//! Evidence against a deadlock of a migration with the application.

use super::application::{Origin, Sequence, Source};
use super::cycle::{Cycle, Requested, Step};
use super::ending::{Deadlock, Ending};
use super::migration::Taken;
use crate::assumption::Assumption;
use pgvet_model::catalog::{Catalog, EmptiedBy, Oid};
use pgvet_model::effect::{DataChangeKind, LockCause};
use pgvet_model::place::Place;
use pgvet_model::session::LongWork;
use pgvet_syntax::ast::LockMode;
use smol_str::SmolStr;
use std::cmp::Ordering;

/// What takes long between two locks.
pub(super) enum Between<'e> {
    Work(LongWork),
    /// The transaction waits for another table.
    Wait(&'e Taken),
}

impl Ending<'_> {
    /// The evidence against a deadlock with the application.
    pub(super) fn doubts(&self, deadlock: &Deadlock<'_>) -> Vec<Assumption> {
        let mut doubts = Vec::new();
        doubts.extend(self.of_partial_rows(deadlock));
        doubts.extend(self.of_short_time(deadlock));
        doubts.extend(self.of_unknown_call(deadlock));
        doubts.extend(self.of_write(deadlock));
        doubts.extend(self.of_dropped(deadlock));
        doubts.extend(self.of_first_row_security(deadlock));
        doubts.extend(self.of_empty(deadlock));
        doubts
    }

    fn of_partial_rows(&self, deadlock: &Deadlock<'_>) -> Option<Assumption> {
        let ours = [deadlock.wanted, deadlock.cycle.held].map(|at| &self.locks[at].placed.step);
        let is_part =
            |step: &&&Step| matches!(step.lock, Requested::Rows(_)) && self.partly_changed.contains(&step.relation);
        let step = ours.iter().find(is_part)?;
        Some(Assumption::SameRows { table: self.name(step.relation).into() })
    }

    /// One statement of the application takes both locks, so it has to run in the time between those of the migration.
    fn of_short_time(&self, deadlock: &Deadlock<'_>) -> Option<Assumption> {
        let Deadlock { wanted, cycle, sequence } = *deadlock;
        if are_of_two_statements(sequence, &cycle) {
            return None;
        }
        match self.between(cycle.held, wanted) {
            None => Some(Assumption::LocksBetween),
            Some(Between::Wait(other)) => {
                Some(Assumption::LocksDuringWait { table: self.name(other.placed.step.relation).into() })
            }
            Some(Between::Work(_)) => None,
        }
    }

    fn of_unknown_call(&self, deadlock: &Deadlock<'_>) -> Option<Assumption> {
        let Source::Function(routine) = &deadlock.sequence.source else { return None };
        let function = routine.function.as_ref()?;
        let is_known = self.setting.is_known_to_run(function.oid);
        (!is_known).then(|| Assumption::CallsFunction { function: routine.name().into() })
    }

    /// Evidence that the application does not change rows in this way.
    fn of_write(&self, deadlock: &Deadlock<'_>) -> Option<Assumption> {
        if let Some(table) = deleted_for(deadlock) {
            return Some(Assumption::DeletesRows { table });
        }
        let Source::Write(table, kind) = deadlock.sequence.source else { return None };
        let relation = self.setting.catalog.relation(table);
        let (table, application) = (relation.name.clone(), self.setting.application);
        if kind == DataChangeKind::Delete {
            return Some(Assumption::DeletesRows { table });
        }
        if self.setting.catalog.lookup_rows(relation).is_some() {
            return Some(Assumption::WritesListedTable { table });
        }
        let is_inserted =
            || relation.birth.inserted_by.is_some() || application.inserts_into(&relation.schema, &relation.name);
        let is_missing = kind == DataChangeKind::Insert && application.inserts() && !is_inserted();
        is_missing.then_some(Assumption::InsertsWithoutQuery { table })
    }

    /// The migration drops what makes the application lock in this order, as if no code used it any more.
    fn of_dropped(&self, deadlock: &Deadlock<'_>) -> Option<Assumption> {
        let Deadlock { cycle, sequence, .. } = *deadlock;
        let (before, after) = (self.setting.catalog, self.setting.after);
        if let Source::Function(routine) = &sequence.source
            && let Some(function) = &routine.function
            && after.functions_named(&function.schema, &function.name).next().is_none()
        {
            return Some(Assumption::UsesUntilDropped { object: routine.name().into() });
        }
        [cycle.other_held, cycle.other_wanted].into_iter().find_map(|at| {
            let other = before.get_relation(sequence.steps[at].relation)?;
            if after.relation_named(&other.schema, &other.name).is_none() {
                return Some(Assumption::UsesUntilDropped { object: format!("`{}`", other.name).into() });
            }
            let Source::Write(table, _) = sequence.source else { return None };
            let is_dropped = sequence.origins[at].cause == LockCause::ForeignKey
                && is_connected(before, table, other.oid)
                && !is_connected(after, table, other.oid);
            let names = (self.name(table), &other.name);
            is_dropped.then(|| Assumption::UsesUntilDropped {
                object: format!("a foreign key between `{}` and `{}`", names.0, names.1).into(),
            })
        })
    }

    /// The migration enables row-level security on both tables, which had none.
    fn of_first_row_security(&self, deadlock: &Deadlock<'_>) -> Option<Assumption> {
        let (before, after) = (self.setting.catalog, self.setting.after);
        let is_first = |oid: &Oid| {
            let had = before.get_relation(*oid).is_some_and(|table| table.row_security || !table.policies.is_empty());
            !had && after.get_relation(*oid).is_some_and(|table| table.row_security)
        };
        let tables = [deadlock.wanted, deadlock.cycle.held].map(|at| self.locks[at].placed.step.relation);
        let is_both = tables.iter().all(is_first);
        is_both.then(|| Assumption::UsedBeforeRowSecurity { table: self.name(tables[0]).into() })
    }

    /// The migration stops with an error if one of the tables has rows.
    fn of_empty(&self, deadlock: &Deadlock<'_>) -> Option<Assumption> {
        let found = |catalog: &Catalog, oid: Oid| catalog.get_relation(oid).and_then(|table| table.birth.emptied);
        let is_empty = |oid: &Oid| {
            let after = found(self.setting.after, *oid);
            after.is_some_and(|emptied| emptied.by == EmptiedBy::Nobody) && after != found(self.setting.catalog, *oid)
        };
        let tables = [deadlock.wanted, deadlock.cycle.held].map(|at| self.locks[at].placed.step.relation);
        let table = tables.into_iter().find(is_empty)?;
        Some(Assumption::InUseThoughEmpty { table: self.name(table).into() })
    }

    /// What the migration does between two locks that can take long: it reads or writes many rows, or waits for another
    /// table that the application uses.
    pub(super) fn between(&self, held: usize, wanted: usize) -> Option<Between<'_>> {
        if self.is_alone {
            return None;
        }
        let (first, last) = (&self.locks[held], &self.locks[wanted]);
        let work = self.work.iter().find(|work| self.is_between(work, first, last));
        let ends = [first, last].map(|taken| self.root(taken.placed.step.relation));
        let is_other = |taken: &&Taken| {
            taken.mode().is_some_and(LockMode::blocks_writes) && !ends.contains(&self.root(taken.placed.step.relation))
        };
        let waits = || self.locks[held + 1..wanted].iter().find(is_other);
        work.map(|work| Between::Work(*work)).or_else(|| waits().map(Between::Wait))
    }

    /// Whether work is done after the one lock, and before the other. A statement locks what it names before it works;
    /// code does one after the other.
    fn is_between(&self, work: &LongWork, first: &Taken, last: &Taken) -> bool {
        let start = |place: &Place| (place.file, place.range.start);
        let at = start(&work.place);
        let is_code = |place: &Place| self.with_code.contains(&place.range.start);
        let is_after_first = match at.cmp(&start(&first.place)) {
            Ordering::Greater => true,
            Ordering::Equal => !is_code(&first.place) || first.range().start <= work.range.start,
            Ordering::Less => false,
        };
        let is_before_last = match at.cmp(&start(&last.place)) {
            Ordering::Less => true,
            Ordering::Equal => is_code(&last.place) && work.range.start < last.range().start,
            Ordering::Greater => false,
        };
        is_after_first && is_before_last
    }
}

/// Whether the application takes its two locks in different statements, or one of them in COMMIT. A single statement is
/// usually a transaction of its own.
fn are_of_two_statements(sequence: &Sequence, cycle: &Cycle) -> bool {
    let [held, wanted] = [cycle.other_held, cycle.other_wanted].map(|at| &sequence.origins[at]);
    match sequence.source {
        Source::View(_) | Source::Write(..) | Source::Query { is_alone: true, .. } => false,
        Source::Query { .. } | Source::Function(_) => {
            held.statement != wanted.statement || (wanted.at_commit && !held.at_commit)
        }
    }
}

/// Whether a foreign key leads from one of the tables to the other.
fn is_connected(catalog: &Catalog, table: Oid, other: Oid) -> bool {
    [(table, other), (other, table)]
        .iter()
        .any(|(referencing, referenced)| catalog.foreign_keys_to(*referenced).iter().any(|key| key.0 == *referencing))
}

/// The table whose rows a query or function has to delete for the deadlock: both locks belong to a DELETE, or one is
/// caused by the foreign keys of its rows, whose referencing tables are seldom changed in this way.
fn deleted_for(deadlock: &Deadlock<'_>) -> Option<SmolStr> {
    let Deadlock { cycle, sequence, .. } = *deadlock;
    let locks = [cycle.other_wanted, cycle.other_held].map(|at| &sequence.origins[at]);
    let is_for_keys = |origin: &&&Origin| origin.cause == LockCause::ForeignKey && origin.deletes_from.is_some();
    let by_key = || locks.iter().find(is_for_keys);
    let all_delete = locks.iter().all(|origin| origin.deletes_from.is_some());
    let origin = if all_delete { locks.first() } else { by_key() };
    origin.and_then(|origin| origin.deletes_from.clone())
}
