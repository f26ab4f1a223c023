//! How a migration that has stopped half way is run again.

use crate::rule::RuleContext;
use pgvet_model::runner::Retry;

/// Returns how to run a migration again after its remains have been cleaned up.
pub(super) fn run_again(context: &RuleContext<'_>) -> String {
    match context.migration.runner.retry {
        Retry::Again | Retry::Continues => "run the migration again".to_owned(),
        Retry::After(step) => format!("{step}, and run the migration again"),
    }
}
