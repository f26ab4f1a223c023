//! The command line of pgvet.

mod args;
mod baseline;
mod bookkeeping;
mod commands;
mod detected;
mod error;
mod inert;
mod named_files;
mod progress;
mod report;
mod rule_names;
mod sql_files;
mod style;
mod trace_args;

use args::{Cli, Command};
use clap::Parser;
use error::{ExitStatus, Failure};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Each statement leaves a catalog that shares most of its nodes with the one before: with mimalloc a check takes a tenth
/// less time than with the allocator of glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Syntax trees are walked recursively, and the main thread's stack is not ours to size. The arguments are read there,
    // too, because a second thread would need memory of its own for what it allocates.
    let run = std::thread::Builder::new().stack_size(pgvet_workspace::STACK_SIZE).spawn(run);
    match run.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status.into(),
        // The panic has printed its message.
        Ok(Err(_)) => ExitStatus::NotChecked.into(),
        Err(error) => {
            report_failure(&Failure::new(format!("cannot start a thread: {error}")));
            ExitStatus::NotChecked.into()
        }
    }
}

fn run() -> ExitStatus {
    if let Err(failure) = named_files::check(std::env::args_os().skip(1)) {
        report_failure(&failure);
        return ExitStatus::NotChecked;
    }
    run_command(&Cli::parse().command).unwrap_or_else(|failure| {
        // The reader of the output has closed it.
        if !failure.is_broken_pipe() {
            report_failure(&failure);
        }
        ExitStatus::NotChecked
    })
}

fn run_command(command: &Command) -> Result<ExitStatus, Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let result = match command {
        Command::Check(args) => commands::check::run(args, &mut out),
        Command::Rewrite(args) => commands::rewrite::run(args, &mut out),
        Command::Effects(args) => commands::effects::run(args, &mut out),
        Command::Init(args) => shown(&mut out, |out| commands::init::run(args, out)),
        Command::Baseline(args) => shown(&mut out, |out| commands::baseline::run(args, out)),
        Command::Config(args) => commands::config::run(args, &mut out),
        Command::Trace(args) => commands::trace::run(args, &mut out),
        Command::Precheck(args) => commands::precheck::run(args, &mut out),
        Command::Capture(args) => commands::capture::run(args, &mut out),
        Command::Reduce(args) => commands::reduce::run(args, &mut out),
        Command::Snapshot(args) => commands::snapshot::run(args, &mut out),
        Command::Explain(args) => commands::explain::run(args, &mut out),
        Command::Rules(args) => commands::rules::run(args, &mut out),
        Command::Completions(args) => commands::completions::run(args, &mut out),
        Command::Man(args) => commands::man::run(args, &mut out),
        Command::Schema(args) => commands::schema::run(args, &mut out),
        Command::Diff(args) => commands::diff::run(args, &mut out),
        Command::Drift(args) => commands::drift::run(args, &mut out),
        Command::Roundtrip(args) => commands::roundtrip::run(args, &mut out),
        Command::Squash(args) => commands::squash::run(args, &mut out),
        Command::JsonSchema => report::json_schema::run(&mut out),
        Command::Mcp(args) => {
            // The server writes by itself.
            drop(out);
            return commands::mcp::run(args);
        }
        Command::Lsp(_) => {
            // The server writes from a thread of its own.
            drop(out);
            return commands::lsp::run();
        }
    };
    result.and_then(|status| out.flush().map(|()| status).map_err(Failure::from))
}

/// Runs a command whose output is text.
fn shown(
    out: &mut dyn Write,
    run: impl FnOnce(&mut dyn Write) -> Result<ExitStatus, Failure>,
) -> Result<ExitStatus, Failure> {
    let mut status = ExitStatus::Clean;
    inert::through(out, inert::Kind::Text, |out| {
        status = run(out)?;
        Ok::<_, Failure>(())
    })?;
    Ok(status)
}

fn report_failure(failure: &Failure) {
    // Nobody is left to tell when standard error is closed.
    let _ = failure.write(&mut io::stderr().lock());
}
