//! What the second run of a migration says about the first, which did not end.

use super::{Moment, SessionEnd};
pub use crate::contents::ContentDifference;
use crate::contents::{self, Contents};
use crate::replay::RefusedStatement;
use crate::state::State;
use pgvet_schema::{Change, Name, compare};
use serde::Serialize;
use std::collections::BTreeSet;

/// What follows if the session of a migration ends, the worst that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The migration fails undisturbed.
    NotJudged,
    /// The next run succeeds, and the schema or the rows are others than those of an undisturbed run.
    Differs,
    /// PostgreSQL refuses a statement of the next run.
    Fails,
    /// The next run is safe, unless the session ends after the last statement and before the tool records the migration.
    NotRecorded,
    /// The next run results in the schema and the rows of an undisturbed run.
    Safe,
}

/// What the next run of the migration does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It results in the same schema and rows.
    Same,
    /// PostgreSQL refuses one of its statements.
    Fails { refused: RefusedStatement },
    /// It succeeds with another result.
    Differs {
        #[serde(flatten)]
        difference: Left,
    },
    /// The statement had nothing to wait for, and was complete: its session was not ended.
    Complete,
    /// The statement was not seen to wait for other sessions, so that its session was not ended.
    NotEnded,
}

/// How a database differs from another: what an ended session has left, or what is wrong at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    pub changes: Vec<Change>,
    pub rows: Vec<ContentDifference>,
    /// Partitions whose `DETACH ... CONCURRENTLY` is not complete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub half_detached: Vec<String>,
}

impl Left {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.rows.is_empty() && self.half_detached.is_empty()
    }

    pub(super) fn between(before: &State, after: &State) -> Self {
        Self {
            changes: compare(&before.schema, &after.schema).changes,
            rows: contents::differences(&before.contents, &after.contents),
            half_detached: Vec::new(),
        }
    }

    /// Without what differs each time.
    pub(super) fn without(mut self, volatile: &Volatile) -> Self {
        self.changes.retain(|change| !volatile.changes.contains(change));
        self.rows.retain(|row| match row {
            ContentDifference::Rows { .. } => true,
            ContentDifference::Values { table, column, .. } => {
                !volatile.columns.contains(&(table.clone(), column.clone()))
            }
        });
        self
    }
}

/// What differs between two undisturbed runs, of which the second began with other values of all sequences: times,
/// random values, and numbers of sequences, which a rollback does not take back.
#[derive(Debug, Default)]
pub(super) struct Volatile {
    changes: Vec<Change>,
    columns: BTreeSet<(Name, String)>,
}

impl Volatile {
    pub(super) fn between(one: &State, other: &State) -> Self {
        let columns: &Contents = &one.contents;
        Self {
            changes: compare(&one.schema, &other.schema).changes,
            columns: contents::volatile(columns, &other.contents),
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(table, column)| format!("{table}.{column}")).collect()
    }
}

pub(super) fn verdict(stops: &[SessionEnd]) -> Verdict {
    let of_stop = |stop: &SessionEnd| match (&stop.outcome, stop.point.moment) {
        (Outcome::Same | Outcome::Complete | Outcome::NotEnded, _) => Verdict::Safe,
        (_, Moment::BeforeRecord) => Verdict::NotRecorded,
        (Outcome::Fails { .. }, _) => Verdict::Fails,
        (Outcome::Differs { .. }, _) => Verdict::Differs,
    };
    stops.iter().map(of_stop).min().unwrap_or(Verdict::Safe)
}
