//! `pgvet man`.

use crate::args::{Cli, ManArgs};
use crate::error::{ExitStatus, Failure};
use clap::{Command, CommandFactory};
use std::io::Write;

pub(crate) fn run(args: &ManArgs, mut out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let program = built();
    if let Some(folder) = &args.out {
        let failure = |error| Failure::new(format!("cannot write to `{}`: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failure)?;
        clap_mangen::generate_to(program, folder).map_err(failure)?;
        return Ok(ExitStatus::Clean);
    }
    let page = match &args.command {
        None => program,
        Some(name) => page_of(&program, name)?,
    };
    clap_mangen::Man::new(page).render(&mut out)?;
    Ok(ExitStatus::Clean)
}

fn built() -> Command {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    program
}

/// The command, which has the name of its page once the program is built.
fn page_of(program: &Command, name: &str) -> Result<Command, Failure> {
    let command = program.get_subcommands().find(|command| command.get_name() == name);
    let command = command.ok_or_else(|| {
        let names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
        Failure::new(format!("there is no command `{name}`")).help(format!("commands are {}", names.join(", ")))
    })?;
    Ok(command.clone())
}
