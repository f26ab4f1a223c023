//! `pgvet lsp`.

use crate::error::{ExitStatus, Failure};

/// The exit status is that of the protocol: 1 where the client did not say that it would leave.
pub(crate) fn run() -> Result<ExitStatus, Failure> {
    let told = pgvet_lsp::serve().map_err(|error| Failure::new(format!("cannot start the server: {error}")))?;
    Ok(if told { ExitStatus::Clean } else { ExitStatus::Findings })
}
