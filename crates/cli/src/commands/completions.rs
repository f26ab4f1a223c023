//! `pgvet completions`.

use crate::args::{Cli, CompletionsArgs};
use crate::error::{ExitStatus, Failure};
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(args: &CompletionsArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    // The generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pgvet", &mut script);
    out.write_all(&script)?;
    Ok(ExitStatus::Clean)
}
