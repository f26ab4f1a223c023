//! What the states of a database say about a down migration.

use super::Roundtrip;
use super::trial::Trial;
use crate::contents::{ContentDifference, differences};
use crate::replay::RefusedStatement;
use crate::state::State;
use pgvet_schema::{Action, COLUMN_ORDER, Change, Name, NotCompared, Severity, compare};
use serde::Serialize;
use std::collections::BTreeSet;

/// A part of a round trip, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    Up,
    Down,
    UpAgain,
}

/// The judgement of a down migration, the worst that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The up migration itself fails here.
    NotJudged,
    /// PostgreSQL refuses it.
    Fails,
    /// The up migration changes something, and none of that is undone.
    Empty,
    /// The schema is another one than before.
    Dishonest,
    /// After it the up migration fails, or results in a different schema.
    NotRepeatable,
    /// The objects are as before, and rows, values or the order of columns are not.
    Partial,
    /// The schema and the rows are as before, and the up migration can run again.
    Honest,
}

/// What is wrong with a down migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum Problem {
    /// A part does not run to its end.
    Fails {
        part: Part,
        #[serde(flatten)]
        refused: RefusedStatement,
        /// Whether it runs if tables hold only what migrations insert.
        only_with_rows: bool,
    },
    /// None of the up migration's changes is undone: the schema, or only rows.
    TakesNothingBack { only_rows: bool },
    /// After this part the schema is not what it was: before the up migration, or after it for the first time.
    SchemaDiffers { part: Part, changes: Vec<Change>, gaps: Vec<String> },
    /// The columns of a table are in another order, because one was dropped and added again. No SQL restores it.
    ColumnOrder {
        part: Part,
        #[serde(flatten)]
        table: Name,
        before: String,
        after: String,
    },
    /// A table that is there before and after has lost or gained rows.
    RowsDiffer {
        #[serde(flatten)]
        table: Name,
        before: u64,
        after: u64,
    },
    /// A column has lost or gained values that are not NULL, or has other ones.
    ValuesDiffer {
        #[serde(flatten)]
        table: Name,
        column: String,
        before: u64,
        after: u64,
    },
}

impl Problem {
    pub fn severity(&self) -> Severity {
        match self {
            // What the migrations themselves demand of rows is not the down migration's fault.
            Self::Fails { part: Part::Up, .. }
            | Self::TakesNothingBack { only_rows: true }
            | Self::ColumnOrder { .. }
            | Self::RowsDiffer { .. }
            | Self::ValuesDiffer { .. } => Severity::Warning,
            Self::Fails { .. } | Self::SchemaDiffers { .. } | Self::TakesNothingBack { .. } => Severity::Error,
        }
    }
}

/// Judges a trial. `with_rows` is where another trial failed that had generated rows.
pub(super) fn judge(reversal: usize, trial: &Trial, with_rows: Option<&(Part, RefusedStatement)>) -> Roundtrip {
    let mut found = Found::default();
    if let Some((part, refused)) = with_rows {
        found.problems.push(Problem::Fails { part: *part, refused: refused.clone(), only_with_rows: true });
    }
    if let Some((part, refused)) = &trial.failed {
        found.problems.push(Problem::Fails { part: *part, refused: refused.clone(), only_with_rows: false });
    }
    if let (Some(up), Some(down)) = (&trial.up, &trial.down) {
        found.down(&trial.before, up, down);
    }
    if let (Some(up), Some(again)) = (&trial.up, &trial.again) {
        found.schema(Part::UpAgain, up, again);
    }
    Roundtrip {
        reversal,
        verdict: verdict(&found.problems),
        problems: found.problems,
        tables_with_rows: trial.filled(),
        empty_tables: trial.empty_tables.clone(),
        not_compared: found.not_compared.into_iter().collect(),
    }
}

fn verdict(problems: &[Problem]) -> Verdict {
    let of_problem = |problem: &Problem| match problem {
        Problem::Fails { part: Part::Up, only_with_rows, .. } => {
            if *only_with_rows {
                Verdict::Honest
            } else {
                Verdict::NotJudged
            }
        }
        Problem::Fails { part: Part::Down, .. } => Verdict::Fails,
        Problem::TakesNothingBack { .. } => Verdict::Empty,
        Problem::SchemaDiffers { part: Part::Down, .. } => Verdict::Dishonest,
        Problem::Fails { part: Part::UpAgain, .. } | Problem::SchemaDiffers { .. } => Verdict::NotRepeatable,
        Problem::ColumnOrder { .. } | Problem::RowsDiffer { .. } | Problem::ValuesDiffer { .. } => Verdict::Partial,
    };
    problems.iter().map(of_problem).min().unwrap_or(Verdict::Honest)
}

#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
    not_compared: BTreeSet<NotCompared>,
}

impl Found {
    fn down(&mut self, before: &State, up: &State, down: &State) {
        let at = self.problems.len();
        self.schema(Part::Down, before, down);
        self.rows(before, down);
        let is_restored = self.problems.len() == at;
        if !is_restored && up.schema == down.schema && up.contents == down.contents {
            let only_rows = !self.problems[at..].iter().any(|problem| matches!(problem, Problem::SchemaDiffers { .. }));
            self.problems.insert(at, Problem::TakesNothingBack { only_rows });
        }
    }

    fn schema(&mut self, part: Part, expected: &State, observed: &State) {
        let mut comparison = compare(&expected.schema, &observed.schema);
        let orders = comparison.changes.iter_mut().filter_map(|change| column_order(part, change));
        self.problems.extend(orders);
        comparison.changes.retain(|change| change.action != Action::Changed || !change.properties.is_empty());
        // What is not read is at least counted.
        let unread = |state: &State| state.schema.gaps.iter().cloned().collect::<BTreeSet<String>>();
        let (before, after) = (unread(expected), unread(observed));
        let lost = before.difference(&after).map(|gap| format!("before: {gap}"));
        let gained = after.difference(&before).map(|gap| format!("after: {gap}"));
        let gaps: Vec<String> = lost.chain(gained).collect();
        if !comparison.changes.is_empty() || !gaps.is_empty() {
            self.problems.push(Problem::SchemaDiffers { part, changes: comparison.changes, gaps });
        }
        self.not_compared.extend(comparison.not_compared);
    }

    fn rows(&mut self, before: &State, after: &State) {
        let problem = |difference| match difference {
            ContentDifference::Rows { table, before, after } => Problem::RowsDiffer { table, before, after },
            ContentDifference::Values { table, column, before, after } => {
                Problem::ValuesDiffer { table, column, before, after }
            }
        };
        self.problems.extend(differences(&before.contents, &after.contents).into_iter().map(problem));
    }
}

/// Takes the order of columns out of what differs.
fn column_order(part: Part, change: &mut Change) -> Option<Problem> {
    let at = change.properties.iter().position(|property| property.name == COLUMN_ORDER)?;
    let property = change.properties.remove(at);
    let (before, after) = (property.before().to_owned(), property.after().to_owned());
    Some(Problem::ColumnOrder { part, table: change.object.clone(), before, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::{ColumnContents, TableContents};
    use pgvet_schema::{Enum, Schema};

    fn name(name: &str) -> Name {
        Name { schema: "public".to_owned(), name: name.to_owned() }
    }

    /// A database with an enum of these labels, and a table with that many rows and values of a column.
    fn state(labels: &[&str], rows: u64, values: u64) -> State {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let schema = Schema { enums: vec![Enum { name: name("mood"), labels }], ..Schema::default() };
        let column = ColumnContents { values, ..ColumnContents::default() };
        let table = TableContents { rows, columns: [("note".to_owned(), column)].into() };
        State { schema, contents: [(name("t"), table)].into() }
    }

    fn judged([before, up, down, again]: [State; 4]) -> (Verdict, Vec<Severity>) {
        let trial = Trial {
            empty_tables: Vec::new(),
            before,
            up: Some(up),
            down: Some(down),
            again: Some(again),
            failed: None,
        };
        let roundtrip = judge(0, &trial, None);
        (roundtrip.verdict, roundtrip.problems.iter().map(Problem::severity).collect())
    }

    fn refused() -> RefusedStatement {
        RefusedStatement {
            path: "m.sql".to_owned(),
            line: None,
            column: None,
            message: "refused".to_owned(),
            hint: None,
            at_begin: false,
        }
    }

    #[test]
    fn verdicts_follow_from_states() {
        let (old, new) = (["sad"], ["sad", "ok"]);
        let same = |rows| [state(&old, 2, 2), state(&new, 2, 2), state(&old, 2, rows), state(&new, 2, 2)];
        assert_eq!(judged(same(2)), (Verdict::Honest, vec![]));
        assert_eq!(judged(same(0)), (Verdict::Partial, vec![Severity::Warning]), "values are lost");
        let nothing = [state(&old, 2, 2), state(&new, 2, 2), state(&new, 2, 2), state(&new, 2, 2)];
        assert_eq!(judged(nothing), (Verdict::Empty, vec![Severity::Error; 2]));
        let other = [state(&old, 2, 2), state(&new, 2, 2), state(&["glad"], 2, 2), state(&new, 2, 2)];
        assert_eq!(judged(other), (Verdict::Dishonest, vec![Severity::Error]));
        let twice = [state(&old, 2, 2), state(&new, 2, 2), state(&old, 2, 2), state(&old, 2, 2)];
        assert_eq!(judged(twice), (Verdict::NotRepeatable, vec![Severity::Error]));
        let changes_nothing = [state(&old, 2, 2), state(&old, 2, 2), state(&old, 2, 2), state(&old, 2, 2)];
        assert_eq!(judged(changes_nothing), (Verdict::Honest, vec![]), "nothing has to be undone");
    }

    #[test]
    fn rows_that_were_inserted_and_stay_are_a_warning() {
        let [one, three] = [1, 3].map(|rows| move || state(&["sad"], rows, rows));
        assert_eq!(judged([one(), three(), three(), three()]), (Verdict::Empty, vec![Severity::Warning; 2]));
        assert_eq!(judged([one(), three(), one(), three()]), (Verdict::Honest, vec![]));
    }

    #[test]
    fn a_failure_on_rows_alone_is_that_of_the_part() {
        let whole = || Trial {
            empty_tables: Vec::new(),
            before: state(&[], 0, 0),
            up: Some(state(&[], 0, 0)),
            down: Some(state(&[], 0, 0)),
            again: Some(state(&[], 0, 0)),
            failed: None,
        };
        let verdict = |part| judge(0, &whole(), Some(&(part, refused()))).verdict;
        assert_eq!(verdict(Part::Up), Verdict::Honest, "the down migration is not to blame");
        assert_eq!(verdict(Part::Down), Verdict::Fails);
        assert_eq!(verdict(Part::UpAgain), Verdict::NotRepeatable);
        let failed = Trial { up: None, down: None, again: None, failed: Some((Part::Up, refused())), ..whole() };
        assert_eq!(judge(0, &failed, None).verdict, Verdict::NotJudged);
    }
}
