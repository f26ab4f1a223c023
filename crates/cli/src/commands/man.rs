//! `pgvet man`.

use crate::args::Cli;
use crate::error::{ExitStatus, Failure};
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(mut out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    clap_mangen::Man::new(Cli::command()).render(&mut out)?;
    Ok(ExitStatus::Clean)
}
