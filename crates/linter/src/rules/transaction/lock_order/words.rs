//! What findings about lock orders say.

use super::application::{Origin, Sequence, Source};
use super::cycle::{self, Cycle, Requested, Step};
use super::ending::{Deadlock, Ending, Split, is_of_code};
use super::migration::Taken;
use crate::rules::text::qualified;
use pgvet_model::catalog::{Oid, RelationKind};
use pgvet_model::effect::{DataChangeKind, LockCause};

impl Ending<'_> {
    /// Both sequences in one sentence.
    pub(super) fn message(&self, deadlock: &Deadlock<'_>) -> String {
        let Deadlock { wanted, cycle, sequence } = *deadlock;
        format!(
            "this can deadlock with {}: this transaction holds {} and now needs {}, but the {} {}",
            self.subject(&sequence.source),
            self.lock(&self.locks[cycle.held].placed.step),
            self.lock(&self.locks[wanted].placed.step),
            noun(&sequence.source),
            self.order(sequence, &cycle)
        )
    }

    /// The way out: the lock first, unless that deadlocks with other statements of the application.
    pub(super) fn help(&self, wanted: usize, held: &Taken, all: &[Sequence]) -> String {
        let wants = &self.locks[wanted];
        let mut steps: Vec<Step> = self.locks.iter().map(|taken| taken.placed.step.clone()).collect();
        steps.insert(0, wants.placed.step.clone());
        let is_safe = || {
            let used = all.iter().filter(|sequence| self.is_used(sequence));
            let mut deadlocks = used.flat_map(|sequence| {
                let steps = &steps;
                (1..steps.len()).filter_map(move |wanted| cycle::at(steps, wanted, &sequence.steps))
            });
            deadlocks.next().is_none()
        };
        let retry = "Set lock_timeout in any case, and run the migration again if the timeout expires";
        let split = self.division(held, wants);
        let wanted = wants.placed.step.relation;
        match wants.mode().filter(|_| is_safe()) {
            // LOCK TABLE of a view also locks the tables that it reads.
            Some(_) if self.setting.catalog.relation(wanted).kind == RelationKind::View => {
                let split = split.as_deref().unwrap_or("run this while the application does not write");
                format!("{split}. {retry}")
            }
            Some(mode) => {
                let or = split.map_or_else(String::new, |split| format!(", or {split}"));
                let table = self.sql_name(wanted);
                format!("begin the transaction with LOCK TABLE {table} IN {} MODE{or}. {retry}", mode.sql())
            }
            None => split.map_or_else(
                || format!("run this while the application does not write. {retry}"),
                |split| {
                    format!(
                        "{split}. LOCK TABLE at the beginning does not help, because the application's statements do \
                         not all lock these tables in the same order. {retry}"
                    )
                },
            ),
        }
    }

    /// How to keep the two locks apart; `None` if one statement takes both.
    fn division(&self, held: &Taken, wants: &Taken) -> Option<String> {
        if held.place == wants.place {
            return None;
        }
        let what = if held.placed.step.relation == wants.placed.step.relation { "statement" } else { "table" };
        Some(match self.split {
            Split::Transaction => format!("use a separate transaction for each {what}"),
            Split::Migration => format!("use a separate migration for each {what}"),
            Split::Release => format!(
                "change each {what} in a release of its own, because the migration tool runs all pending migrations in \
                 one transaction"
            ),
        })
    }

    /// The statement of the application, in words.
    pub(super) fn subject(&self, source: &Source) -> String {
        match source {
            Source::Query { place, is_alone: true } => format!("the query at `{place}`"),
            Source::Query { place, is_alone: false } => format!("the transaction at `{place}`"),
            Source::Function(routine) => routine.name(),
            Source::View(view) => format!("a query of the view `{}`", self.name(*view)),
            Source::Write(table, kind) => {
                let words = match kind {
                    DataChangeKind::Insert => "an INSERT into",
                    DataChangeKind::Update => "an UPDATE of",
                    DataChangeKind::Delete => "a DELETE from",
                };
                format!("{words} `{}`", self.name(*table))
            }
        }
    }

    /// ``ACCESS EXCLUSIVE on `orders` ``.
    pub(super) fn lock(&self, step: &Step) -> String {
        match step.lock {
            Requested::Relation(_) => format!("{} on `{}`", step.lock, self.name(step.relation)),
            Requested::Rows(_) => format!("{} in `{}`", step.lock, self.name(step.relation)),
        }
    }

    /// How the application locks first and then, and why if its statement does not show that.
    fn order(&self, sequence: &Sequence, cycle: &Cycle) -> String {
        let (first, second) = (&sequence.steps[cycle.other_held], &sequence.steps[cycle.other_wanted]);
        let why = |at: usize| match why(&sequence.source, &sequence.origins[at]) {
            "" if matches!(sequence.source, Source::Write(..)) && is_of_code(self, sequence, at) => " in a trigger",
            why => why,
        };
        let (why_first, why_second) = (why(cycle.other_held), why(cycle.other_wanted));
        let name = |step: &Step| self.name(step.relation);
        if first.relation == second.relation {
            return format!("takes {} on `{}` and then {}", first.lock, name(first), second.lock);
        }
        let rows = if matches!(second.lock, Requested::Rows(_)) { "rows of " } else { "" };
        if why_first == why_second && !why_first.is_empty() {
            format!("locks `{}` first and then {rows}`{}`, each{why_first}", name(first), name(second))
        } else {
            format!("locks `{}`{why_first} first and then {rows}`{}`{why_second}", name(first), name(second))
        }
    }

    pub(super) fn name(&self, relation: Oid) -> &str {
        &self.setting.catalog.relation(relation).name
    }

    fn sql_name(&self, relation: Oid) -> String {
        let relation = self.setting.catalog.relation(relation);
        qualified(&relation.schema, &relation.name)
    }
}

/// Why the application takes a lock, if its statement does not show that.
pub(super) fn why(source: &Source, origin: &Origin) -> &'static str {
    match (origin.cause, source) {
        (LockCause::ForeignKey, _) if origin.at_commit => " for a deferred foreign key, at COMMIT",
        (LockCause::ForeignKey, _) => " for a foreign key",
        (LockCause::Function, Source::Write(..)) => " in a trigger",
        (LockCause::Function, _) => " in a function or trigger",
        _ => "",
    }
}

/// The statement or transaction of the application, after it was named.
fn noun(source: &Source) -> &'static str {
    match source {
        Source::Query { is_alone: false, .. } => "other transaction",
        Source::Query { .. } | Source::View(_) => "query",
        Source::Function(_) => "function",
        Source::Write(_, DataChangeKind::Insert) => "INSERT",
        Source::Write(_, DataChangeKind::Update) => "UPDATE",
        Source::Write(_, DataChangeKind::Delete) => "DELETE",
    }
}
