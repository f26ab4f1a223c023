//! Tasks of the project itself: generators and checks that need more than `cargo test`.

mod builtin;
mod docs;
mod ecosystem;
mod messages;
mod new_rule;
mod nodes;
mod schema;
mod site;
mod tool_pages;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
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
    /// Regenerate the pages of `rules/` and `docs/tools/`.
    Docs,
    /// Regenerate `pgvet.schema.json`.
    Schema,
    /// Register rules that are not registered, and regenerate the pages and the schema.
    Generate,
    /// Write the source of the documentation site.
    Site(site::Arguments),
    /// Create and register a rule, with a fixture.
    NewRule(new_rule::Arguments),
    /// Generate the node types of the parser from the headers of `pg_query`.
    Nodes(nodes::Arguments),
    /// Compare the findings of two builds in public migrations.
    Ecosystem(ecosystem::Arguments),
    /// Hold pgvet against measured truth, and against other linters.
    Measure(measure::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Builtin(arguments) => builtin::run(&arguments),
        Task::Docs => docs::run().and_then(|()| tool_pages::run()),
        Task::Schema => schema::run(),
        Task::Generate => generate(),
        Task::Site(arguments) => site::run(&arguments),
        Task::NewRule(arguments) => new_rule::run(&arguments),
        Task::Nodes(arguments) => nodes::run(&arguments),
        Task::Ecosystem(arguments) => ecosystem::run(&arguments),
        Task::Measure(arguments) => measure::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

/// Regenerates the files that depend on the rules and options.
fn generate() -> Result<(), String> {
    if new_rule::register_all(&repository())? {
        // The pages are those of the rules that this program was built with.
        return Err("rules were registered: run `cargo xtask generate` again".to_owned());
    }
    docs::run().and_then(|()| tool_pages::run()).and_then(|()| schema::run())
}

/// The top folder of the repository.
fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[expect(clippy::print_stderr, reason = "the one place where a task reports")]
fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}
