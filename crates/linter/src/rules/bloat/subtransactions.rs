//! What the rules about subtransactions say alike.

use crate::report::Finding;
use crate::routine::Routines;
use crate::routine::subtransactions::Source;

pub(super) fn fix_help() -> &'static str {
    "do without the exception: INSERT ... ON CONFLICT for duplicates, a WHERE that leaves out what would fail; \
     or one statement for all rows, with one block around it"
}

/// Shows where the function that a source calls begins its subtransactions.
#[must_use = "a finding is recorded when it is dropped"]
pub(super) fn label_callee<'r, 'a>(
    routines: &Routines<'_>,
    source: &Source,
    mut finding: Finding<'r, 'a>,
) -> Finding<'r, 'a> {
    let mut callee = source.callee;
    // The chain of calls is short, or ends in recursion.
    for _ in 0..8 {
        let Some(routine) = callee.and_then(|oid| routines.function(oid)) else { break };
        let inside = routines.subtransactions(&routine);
        let Some(first) = inside.sources.first() else { break };
        let message = match first.callee {
            None => format!("the subtransaction, in {}", routine.name()),
            Some(_) => format!("called here, in {}", routine.name()),
        };
        finding = finding.label_in(routine.file, first.range, message);
        callee = first.callee;
    }
    finding
}
