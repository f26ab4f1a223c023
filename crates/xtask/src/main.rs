//! Tasks of the project itself: generators and checks that need more than `cargo test`.

mod builtin;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use xtask::measure;

#[derive(Parser)]
#[command(name = "xtask", about = "Generators and checks of the project itself")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Regenerate the tables of built-in objects from the catalogs of real servers.
    Builtin(builtin::Arguments),
    /// Hold pgvet against measured truth, and against other linters.
    Measure(measure::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Builtin(arguments) => builtin::run(&arguments),
        Task::Measure(arguments) => measure::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

#[expect(clippy::print_stderr, reason = "the one place where a task reports")]
fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}
