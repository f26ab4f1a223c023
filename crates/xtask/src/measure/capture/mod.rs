//! Captures of real frameworks: what they send through the proxy, beside what the server says that it was sent.
//!
//! `fixtures/capture/NAME/sample.toml` declares a sample, `project` is its project, `recording.jsonl` what was recorded.
//! `crates/capture/tests/integration/samples.rs` cuts, writes and checks the recordings.

mod overhead;
mod sample;
mod server;

use super::median::median;
use pgvet_capture::{Captured, Request, State, Tables};
use sample::Sample;
use server::Logged;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The samples to run; all of them if none is named.
    samples: Vec<String>,
    /// Write what was recorded into the fixtures.
    #[arg(long)]
    record: bool,
    /// How often the command runs alone and through the proxy, in turn.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(long, default_value_t = 18)]
    pg_version: u8,
    #[command(flatten)]
    overhead: overhead::Overhead,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    if arguments.overhead.is_wanted {
        return overhead::run(&arguments.overhead, arguments.rounds, arguments.pg_version);
    }
    let samples = Sample::all()?;
    if let Some(name) = arguments.samples.iter().find(|name| !samples.iter().any(|sample| sample.name == **name)) {
        return Err(format!("fixtures/capture has no sample `{name}`"));
    }
    let mut server = Logged::start(arguments.pg_version)?;
    let mut report =
        "sample | sent | in the log | only recorded | only in the log | alone | through the proxy | more | ended without encryption\n".to_owned();
    for sample in samples.iter().filter(|one| arguments.samples.is_empty() || arguments.samples.contains(&one.name)) {
        match measure(sample, &mut server, arguments) {
            Ok(line) => report += &line,
            Err(error) => {
                let _ = writeln!(report, "{}: NOT RUN: {error}", sample.name);
            }
        }
    }
    Ok(report)
}

fn measure(sample: &Sample, server: &mut Logged, arguments: &Arguments) -> Result<String, String> {
    let installed = sample.install()?;
    let (mut alone, mut proxied) = (Vec::new(), Vec::new());
    let mut last = None;
    let mut required = 0;
    for _ in 0..arguments.rounds.max(1) {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let project = sample.project(folder.path(), &installed)?;
        let place = server.fresh()?;
        alone.push(sample.run_alone(&project, &installed, &place)?.as_secs_f64());
        server.drop()?;
        if last.is_none() {
            for variables in &sample.encrypted {
                assert_refused(sample, server, &project, &installed, variables)?;
                required += 1;
            }
        }
        let (captured, log) = capture(sample, server, &project, &installed, &BTreeMap::new())?;
        proxied.push(captured.took.as_secs_f64());
        last = Some((captured, log));
    }
    let (captured, log) = last.ok_or("no round was run")?;
    if captured.status.success() == sample.fails {
        return Err(format!("the command ended with {}", captured.status));
    }
    if arguments.record {
        let path = sample.folder().join("recording.jsonl");
        std::fs::write(&path, captured.recording.to_lines()).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let recorded = texts(&captured);
    let (only_recorded, only_logged) = (difference(&recorded, &log), difference(&log, &recorded));
    let (alone, proxied) = (median(alone), median(proxied));
    let more = 100.0 * (proxied / alone - 1.0);
    let required = if required == 0 { String::new() } else { format!(" | {required}") };
    let mut line = format!(
        "{} | {} | {} | {} | {} | {:.2} s | {:.2} s | {more:+.1} %{required}\n",
        sample.name,
        captured.recording.statements.len(),
        log.len(),
        only_recorded.len(),
        only_logged.len(),
        alone,
        proxied
    );
    for (list, texts) in [("only recorded", only_recorded), ("only in the log", only_logged)] {
        for text in texts {
            let _ = writeln!(line, "  {list}: {text}");
        }
    }
    Ok(line)
}

/// A client that requires encryption ends its connections, and the capture knows why.
fn assert_refused(
    sample: &Sample,
    server: &mut Logged,
    project: &Path,
    installed: &Path,
    variables: &BTreeMap<String, String>,
) -> Result<(), String> {
    let (captured, _) = capture(sample, server, project, installed, variables)?;
    let is_known = captured.refused_by_command > 0 && captured.recording.sessions.is_empty();
    if captured.status.success() || !is_known {
        return Err(format!(
            "with {variables:?} the command does not require encryption, or the capture does not see it"
        ));
    }
    Ok(())
}

fn capture(
    sample: &Sample,
    server: &mut Logged,
    project: &Path,
    installed: &Path,
    more: &BTreeMap<String, String>,
) -> Result<(Captured, Vec<String>), String> {
    let tables = Tables::with(None);
    let (command, mut variables) = sample.command(project, installed);
    variables.extend(more.clone());
    let request = Request {
        command: &command,
        folder: Path::new("."),
        variables: &variables,
        keep_values: Box::new(move |sql| tables.needs_values(sql)),
        state: State::default(),
        allow_server_changes: false,
    };
    let before = server.log_length();
    let captured = pgvet_capture::run(server, request, &mut |_| ()).map_err(|error| error.to_string())?;
    let log = server.statements_since(before)?;
    Ok((captured, log))
}

const SYNTAX_ERROR: &str = "42601";

/// The texts that the server logs before it runs them: not those that it could not parse or bind.
fn texts(captured: &Captured) -> Vec<String> {
    let is_logged = |statement: &&pgvet_capture::Recorded| {
        statement.was_run() && statement.error().is_none_or(|error| !error.when_prepared && error.code != SYNTAX_ERROR)
    };
    captured.recording.statements.iter().filter(is_logged).map(|statement| statement.sql.trim().to_owned()).collect()
}

/// What one list has more often than another.
fn difference(one: &[String], other: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    other.iter().for_each(|text| *counts.entry(text).or_default() += 1);
    let mut more = Vec::new();
    for text in one {
        match counts.get_mut(text.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => more.push(text.clone()),
        }
    }
    more
}
