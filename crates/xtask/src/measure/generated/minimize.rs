//! The smallest sequence with the same sort of difference, as `pgvet reduce` finds it.

use super::judge::{Finding, judge};
use super::laboratory::Laboratory;
use super::sequence::Sequence;
use pgvet_model::version::PgVersion;
use pgvet_reduce::{Control, Document, Oracle, reduce};
use pgvet_syntax::statement::PARSE_STACK_BYTES;
use pgvet_trace::Error;
use std::sync::atomic::AtomicBool;

/// The smallest sequence that was found, and the difference in it.
pub(super) fn minimize(
    laboratory: &mut Laboratory,
    sequence: &Sequence,
    finding: &Finding,
    version: PgVersion,
) -> Result<(Sequence, Finding), String> {
    let mut begin = sequence.clone();
    if let Some(last) = finding.statement {
        begin.statements.truncate(last + 1);
    }
    let search = || {
        let mut same = Same { laboratory, wanted: finding, found: finding.clone(), version };
        let control = Control { deadline: None, interrupted: &AtomicBool::new(false), progress: &mut |_| {} };
        // A difference that is there only sometimes is shown as it was found.
        let reduced = reduce(Document::new([("generated.sql", begin.text().as_str())]), &mut same, control);
        let smallest = reduced.map(|reduction| sequence_of(&reduction.document)).unwrap_or(begin);
        // The last one that was accepted is the one that was found.
        (smallest, same.found)
    };
    // Syntax trees may be deep.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn_scoped(scope, search);
        let thread = thread.map_err(|error| error.to_string())?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Whether a sequence has the same sort of difference.
struct Same<'a> {
    laboratory: &'a mut Laboratory,
    wanted: &'a Finding,
    /// The difference in the last sequence that has it.
    found: Finding,
    version: PgVersion,
}

impl Oracle for Same<'_> {
    fn holds(&mut self, document: &Document) -> Result<bool, Error> {
        let sequence = sequence_of(document);
        let runs = self.laboratory.run(std::slice::from_ref(&sequence)).map_err(Error::new)?;
        let found = runs.first().map(|run| judge(&sequence, run, self.version).findings).unwrap_or_default();
        let is_same = |found: &Finding| found.sort() == self.wanted.sort() && found.explained == self.wanted.explained;
        let same = found.into_iter().find(is_same);
        let holds = same.is_some();
        self.found = same.unwrap_or_else(|| self.found.clone());
        Ok(holds)
    }
}

fn sequence_of(document: &Document) -> Sequence {
    Sequence { statements: document.sql().map(str::to_owned).collect() }
}
