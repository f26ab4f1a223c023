//! Takes statements away from a sequence as long as the same sort of difference stays.

use super::judge::{Finding, judge};
use super::laboratory::Laboratory;
use super::sequence::Sequence;
use pgvet_model::version::PgVersion;

/// The shortest sequence that was found, and the difference in it.
pub(super) fn minimize(
    laboratory: &mut Laboratory,
    sequence: &Sequence,
    finding: &Finding,
    version: PgVersion,
) -> Result<(Sequence, Finding), String> {
    let mut best = (sequence.clone(), finding.clone());
    if let Some(last) = finding.statement {
        best.0.statements.truncate(last + 1);
    }
    // From the end, because later statements stand on earlier ones.
    let mut size = (best.0.statements.len() / 2).max(1);
    loop {
        let mut end = best.0.statements.len();
        while end > 0 {
            let start = end.saturating_sub(size);
            let candidate = best.0.without(start..end);
            if let Some(found) = same(laboratory, &candidate, &best.1, version)? {
                best = (candidate, found);
            }
            end = start;
        }
        if size == 1 {
            return Ok(best);
        }
        size = (size / 2).max(1);
    }
}

fn same(
    laboratory: &mut Laboratory,
    candidate: &Sequence,
    wanted: &Finding,
    version: PgVersion,
) -> Result<Option<Finding>, String> {
    let runs = laboratory.run(std::slice::from_ref(candidate))?;
    let found = runs.first().map(|run| judge(candidate, run, version).findings).unwrap_or_default();
    Ok(found.into_iter().find(|found| found.sort() == wanted.sort() && found.explained == wanted.explained))
}
