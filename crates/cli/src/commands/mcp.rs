//! `pgvet mcp`.

use crate::args::McpArgs;
use crate::error::{ExitStatus, Failure};
use pgvet_mcp::Options;

pub(crate) fn run(args: &McpArgs) -> Result<ExitStatus, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find pgvet itself: {error}")))?;
    let options = Options { program, root: args.root.clone(), time_limit: args.time_limit };
    pgvet_mcp::serve(options).map_err(|error| Failure::new(format!("cannot serve: {error}")))?;
    Ok(ExitStatus::Clean)
}
