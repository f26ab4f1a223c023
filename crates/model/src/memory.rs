//! The effects of the statements of some migrations, so that a run after an edit repeats only what the edit can have
//! changed.

use crate::catalog::Catalog;
use crate::effect::Effects;
use crate::execute::CodeRun;
use crate::migration::{Direction, Migration, TransactionMode, TransactionState};
use crate::place::Place;
use crate::runner::Runner;
use crate::session::Session;
use crate::version::{PgVersion, Target};
use pgvet_syntax::source::TextRange;
use std::sync::Arc;

/// The effects of the statements of some migrations, in the order in which they were run.
#[derive(Debug, Default, Clone)]
pub struct Memory {
    steps: Vec<(Step, Vec<Arc<Ran>>)>,
    /// How many of them the present run has come to; the last one is the present statement.
    done: usize,
}

/// A statement that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    place: Place,
    transaction: TransactionState,
    /// How its migration was run.
    direction: Direction,
    mode: TransactionMode,
    runner: Runner,
    in_production: bool,
}

/// The memory of a statement: its effects on the newest configured version.
#[derive(Debug, Clone, Copy)]
pub struct Remembered<'a> {
    /// Index of the migration.
    pub file: u32,
    pub statement: TextRange,
    pub transaction: TransactionState,
    pub version: PgVersion,
    pub effects: &'a Effects,
}

impl Memory {
    /// Forgets everything from the first statement on for which `is_changed` says so. What a statement does follows
    /// from all that was run before it. To free what is returned takes a while.
    #[must_use]
    pub fn forget(&mut self, is_changed: impl Fn(TextRange) -> bool) -> Self {
        let unchanged = self.steps.iter().take_while(|(step, _)| !is_changed(step.place.range)).count();
        Self { steps: self.steps.split_off(unchanged), done: 0 }
    }

    /// Every statement that was run, in order.
    pub fn statements(&self) -> impl Iterator<Item = Remembered<'_>> {
        self.steps.iter().filter_map(|(step, runs)| {
            let newest = runs.iter().max_by_key(|ran| ran.version)?;
            Some(Remembered {
                file: step.place.file,
                statement: step.place.range,
                transaction: step.transaction,
                version: newest.version,
                effects: &newest.effects,
            })
        })
    }

    pub fn rewind(&mut self) {
        self.done = 0;
    }

    /// The run has ended: nothing came after the last step.
    pub fn end(&mut self) {
        self.steps.truncate(self.done);
    }

    /// The next statement is about to be run. One that is not the remembered one changes all that follow.
    pub(crate) fn begin(&mut self, step: Step) {
        if self.steps.get(self.done).is_none_or(|(known, _)| *known != step) {
            self.steps.truncate(self.done);
            self.steps.push((step, Vec::new()));
        }
        self.done += 1;
    }

    /// Returns the effects of the current statement for a version, if they are known.
    pub(crate) fn recall(&self, version: PgVersion) -> Option<Arc<Ran>> {
        let (_, runs) = self.steps.get(self.done.checked_sub(1)?)?;
        runs.iter().find(|ran| ran.version == version).cloned()
    }

    pub(crate) fn keep(&mut self, ran: &Arc<Ran>) {
        let present = self.done.checked_sub(1).and_then(|at| self.steps.get_mut(at));
        if let Some((_, runs)) = present {
            runs.push(Arc::clone(ran));
        }
    }
}

impl Step {
    pub(crate) fn new(migration: &Migration<'_>, place: Place, transaction: TransactionState) -> Self {
        Self {
            place,
            transaction,
            direction: migration.direction,
            mode: migration.transaction,
            runner: migration.runner,
            in_production: migration.in_production,
        }
    }
}

/// The effects of one statement for one version, and the state after it.
#[derive(Debug)]
pub(crate) struct Ran {
    version: PgVersion,
    /// See [`Target::asked`].
    asked: u32,
    pub(crate) catalog: Catalog,
    session: Session,
    pub(crate) effects: Arc<Effects>,
    pub(crate) code: CodeRun,
}

impl Ran {
    pub(crate) fn new(target: &Target, catalog: Catalog, session: Session, effects: Effects, code: CodeRun) -> Self {
        Self { version: target.version(), asked: target.asked(), catalog, session, effects: Arc::new(effects), code }
    }

    pub(crate) fn target(&self) -> Target {
        Target::recalled(self.version, self.asked)
    }

    pub(crate) fn into_parts(ran: Arc<Self>) -> (Catalog, Session, Arc<Effects>) {
        match Arc::try_unwrap(ran) {
            Ok(ran) => (ran.catalog, ran.session, ran.effects),
            Err(shared) => (shared.catalog.clone(), shared.session.clone(), Arc::clone(&shared.effects)),
        }
    }
}
