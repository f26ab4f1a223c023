//! Compares how scripts are read with how psql reads them. `fixtures/scripts` holds scripts and the statements that a
//! server was asked to run by psql: those of `cases.txt`, and scripts put together at random.

mod compare;
mod generate;
mod record;

pub use compare::{Verdict, compare};
pub use record::Psql;

use super::{fixtures, read};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many scripts are made up, with seeds from 0 on.
const GENERATED: u64 = 200;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Run all scripts through psql again, and record what the server was asked to run.
    #[arg(long)]
    record: bool,
    /// Show one script, what the server ran and what pgvet reads.
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Also make up this many scripts, with other seeds, and run them through psql.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    more: u64,
}

/// A script, and the statements that a server has run because of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    pub name: String,
    pub script: String,
    /// In order, without those that do not parse.
    pub ran: Vec<String>,
}

/// The scripts by name: those of `cases.txt`, and generated ones.
///
/// # Errors
/// Says what could not be read.
pub fn scripts() -> Result<BTreeMap<String, String>, String> {
    let cases = read(&fixtures("scripts").join("cases.txt"))?;
    let cases = cases.split("=== ").skip(1).map(|case| case.split_once('\n').unwrap_or((case, "")));
    let cases = cases.map(|(name, script)| (name.to_owned(), script.to_owned()));
    Ok(cases.chain((0..GENERATED).map(generated)).collect())
}

fn generated(seed: u64) -> (String, String) {
    (format!("generated {seed}"), generate::script(seed))
}

/// Returns the recorded scripts.
///
/// # Errors
/// Says what could not be read.
pub fn recorded() -> Result<Vec<Recorded>, String> {
    let text = read(&fixtures("scripts").join("recorded.jsonl"))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| error.to_string())).collect()
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    if arguments.record {
        record_all(&scripts()?)?;
    }
    let mut cases = recorded()?;
    if arguments.more > 0 {
        let psql = Psql::start()?;
        for (name, script) in (GENERATED..GENERATED + arguments.more).map(generated) {
            cases.push(psql.run(&name, &script)?);
        }
    }
    if let Some(name) = &arguments.case {
        let case = cases.iter().find(|case| case.name == *name).ok_or("no such script")?;
        return Ok(format!("{}\n{:#?}\n{:#?}", case.script, case.ran, compare(case)));
    }
    Ok(report(&cases))
}

fn record_all(scripts: &BTreeMap<String, String>) -> Result<(), String> {
    let psql = Psql::start()?;
    let mut text = String::new();
    for (name, script) in scripts {
        let line = serde_json::to_string(&psql.run(name, script)?).map_err(|error| error.to_string())?;
        let _ = writeln!(text, "{line}");
    }
    let path = fixtures("scripts").join("recorded.jsonl");
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn report(cases: &[Recorded]) -> String {
    let mut text = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases {
        let verdict = compare(case);
        *counts.entry(verdict.as_str()).or_default() += 1;
        if verdict != Verdict::Same {
            let _ = writeln!(text, "{}: {}: {verdict}", case.name, verdict.as_str());
        }
    }
    let _ = writeln!(text, "\n{} scripts", cases.len());
    for (verdict, count) in counts {
        let _ = writeln!(text, "{count:5} {verdict}");
    }
    text
}
