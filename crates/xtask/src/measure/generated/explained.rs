//! Differences that no look at the statements can foresee, each with its reason.

use pgvet_linter::version::PgVersion;
use pgvet_trace::{ModelDifference, StatementTrace};

/// Why this difference is no defect of the model.
pub(super) fn explanation(
    _difference: &ModelDifference,
    _seen: &StatementTrace,
    _version: PgVersion,
) -> Option<&'static str> {
    None
}
