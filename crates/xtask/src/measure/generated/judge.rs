//! Holds what a server did with a sequence against what the model says.

use super::catalog::lines;
use super::explained::explanation;
use super::laboratory::Run;
use super::sequence::Sequence;
use pgvet_model::migration::Migration;
use pgvet_model::predict::{Database, effects};
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;
use pgvet_trace::{ModelDifference, StatementTrace, compare};

/// Something in which the model and the server differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// `lock`, `rewrite`, ..., `error`, or `catalog`.
    pub(super) what: &'static str,
    /// The statement; `None` for the catalog after all of them.
    pub(super) statement: Option<usize>,
    pub(super) relation: String,
    pub(super) predicted: String,
    pub(super) observed: String,
    /// Why the model says that it may be wrong there.
    pub(super) unknown: Option<String>,
    /// Why that cannot be told from the statements.
    pub(super) explained: Option<&'static str>,
}

impl Finding {
    /// The kind of difference, whatever the names, which minimizing must keep.
    pub(super) fn sort(&self) -> String {
        if self.what == "catalog rows" {
            return format!("{}: {}", self.what, self.relation);
        }
        let general = |text: &str| match self.what {
            "catalog" => text.split(' ').next().unwrap_or_default().to_owned(),
            // Up to the first name in the message.
            "error" => {
                text.split(['"', '[']).next().unwrap_or_default().split(" type ").next().unwrap_or_default().to_owned()
            }
            _ => text.to_owned(),
        };
        format!("{}: predicted {}, observed {}", self.what, general(&self.predicted), general(&self.observed))
    }
}

/// The judgement about one sequence.
pub(super) struct Verdict {
    pub(super) statements: usize,
    /// Refusals that were predicted.
    pub(super) foreseen: usize,
    pub(super) findings: Vec<Finding>,
    /// A statement that rows made fail, which the model cannot know.
    pub(super) depends_on_rows: Option<usize>,
}

pub(super) fn judge(sequence: &Sequence, run: &Run, version: PgVersion) -> Verdict {
    let file = sequence.parse();
    // An empty dump says that nothing else is there.
    let nothing = super::sequence::parsed(String::new());
    let dump = Migration { report: false, baseline: true, ..Migration::new(&nothing) };
    let predicted = effects(&[dump, Migration::new(&file)], version, &Functions::default()).pop().unwrap_or_default();
    let at = |start: u32| file.statements.iter().position(|statement| statement.range.start == start);
    let traced: Vec<&StatementTrace> =
        run.trace.statements.iter().filter(|statement| !statement.range.is_empty()).collect();
    let found = compare(&run.trace, &predicted);
    let mut verdict = Verdict { statements: traced.len(), foreseen: 0, findings: Vec::new(), depends_on_rows: None };
    for statement in &traced {
        let Some(failure) = &statement.failure else { continue };
        let prediction = predicted.iter().find(|one| one.statement.start == statement.range.start);
        let foreseen = prediction.and_then(|one| one.effects.fails.as_ref());
        if foreseen.is_some_and(|foreseen| foreseen.sqlstate == failure.sqlstate) {
            verdict.foreseen += 1;
        } else if foreseen.is_none() && of_rows(&failure.sqlstate) {
            verdict.depends_on_rows = at(statement.range.start);
            return verdict;
        } else if !found.iter().any(|difference| difference.what == "error" && difference.range == statement.range) {
            // SAVEPOINT, RELEASE and so on outside a block: later statements were not run.
            return verdict;
        }
    }
    for difference in found {
        let text = traced.iter().find(|statement| statement.range == difference.range);
        let finding = finding(difference, at, text.copied());
        let stops = finding.what == "error";
        verdict.findings.push(finding);
        if stops {
            // Later statements run on a schema that differs from the model's.
            return verdict;
        }
    }
    let refused = traced.iter().find(|statement| statement.in_block && statement.failure.is_some());
    let mut done = sequence.clone();
    if let Some(last) = refused.and_then(|statement| at(statement.range.start)) {
        // The runner stops there and rolls back.
        done.statements.truncate(last);
    }
    verdict.findings.extend(catalog_findings(&done, run, version));
    verdict
}

/// SQLSTATEs of values that do not fit.
fn of_rows(sqlstate: &str) -> bool {
    sqlstate.starts_with("23") || sqlstate.starts_with("22") || sqlstate.starts_with("57")
}

fn finding(difference: ModelDifference, at: impl Fn(u32) -> Option<usize>, seen: Option<&StatementTrace>) -> Finding {
    let message = seen.and_then(|seen| seen.failure.as_ref()).map(|failure| format!(": {}", failure.message));
    Finding {
        what: difference.what,
        statement: at(difference.range.start),
        explained: seen.and_then(|seen| explanation(&difference, seen)),
        relation: difference.relation,
        predicted: difference.predicted,
        observed: difference.observed + message.unwrap_or_default().as_str(),
        unknown: difference.unknown,
    }
}

fn catalog_findings(sequence: &Sequence, run: &Run, version: PgVersion) -> Vec<Finding> {
    let mut database = Database::new(version);
    database.run(&sequence.parse());
    database.run(&super::sequence::parsed("ROLLBACK".to_owned()));
    let mut catalog = database.catalog().clone();
    catalog.remove_temporary_objects();
    let model = lines(&catalog, version.0);
    let finding = |predicted: &str, observed: &str| Finding {
        what: "catalog",
        statement: None,
        relation: String::new(),
        predicted: predicted.to_owned(),
        observed: observed.to_owned(),
        unknown: None,
        explained: None,
    };
    let missing = model.difference(&run.catalog).map(|line| finding(line, "nothing"));
    missing.chain(run.catalog.difference(&model).map(|line| finding("nothing", line))).collect()
}
