//! `cargo xtask measure generated`: random statements on random schemas, run on servers and compared with the model.
//!
//! [`sequence`] makes up statements, [`laboratory`] runs them, [`judge`] compares, [`minimize`] shortens what differs,
//! and [`explained`] says which differences nobody could have foreseen.

mod cases;
mod catalog;
mod explained;
mod judge;
mod laboratory;
mod minimize;
mod scene;
mod sequence;
mod statements;
mod table;
mod template;
mod types;

use crate::measure::random::Random;
pub use cases::check_cases;
use judge::{Finding, judge};
use laboratory::Laboratory;
use pgvet_model::version::PgVersion;
use sequence::{Sequence, generate};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

/// Number of sequences that run before the next are generated.
const BATCH: usize = 20;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The same seed gives the same statements.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// About how many statements to run on each major.
    #[arg(long, default_value_t = 1000)]
    statements: usize,
    /// Majors, separated by commas.
    #[arg(long, value_name = "MAJORS", value_delimiter = ',', default_values_t = [14, 18])]
    pg_version: Vec<u8>,
    /// Also show a minimized example for each difference that is explained, or that the model warned of.
    #[arg(long)]
    all: bool,
}

/// The result of a run on one major.
pub struct Report {
    pub version: PgVersion,
    pub statements: usize,
    /// Refusals that were predicted.
    pub foreseen: usize,
    pub per_second: usize,
    /// How often each sort of difference was found, without those that are explained.
    pub differences: BTreeMap<String, usize>,
    /// For people: the differences, each with an example.
    pub text: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let mut text = String::new();
    for major in &arguments.pg_version {
        let report = measure(PgVersion(*major), arguments.seed, arguments.statements, arguments.all)?;
        let _ = writeln!(
            text,
            "PostgreSQL {major}: {} statements ({} a second), {} refusals foreseen, {} differences\n{}",
            report.statements,
            report.per_second,
            report.foreseen,
            report.differences.values().sum::<usize>(),
            report.text
        );
    }
    Ok(text)
}

/// The first example of a sort of difference.
struct Example {
    count: usize,
    sequence: Sequence,
    finding: Finding,
}

/// Runs about that many statements on one major.
///
/// # Errors
/// A server that is missing or breaks.
pub fn measure(version: PgVersion, seed: u64, statements: usize, all: bool) -> Result<Report, String> {
    let mut random = Random::new(seed);
    let mut laboratory = Laboratory::new(version);
    let mut examples: BTreeMap<String, Example> = BTreeMap::new();
    let mut report = Report {
        version,
        statements: 0,
        foreseen: 0,
        per_second: 0,
        differences: BTreeMap::new(),
        text: String::new(),
    };
    let started = Instant::now();
    let mut waiting: Vec<Sequence> = Vec::new();
    while report.statements < statements {
        while waiting.len() < BATCH {
            waiting.push(generate(&mut random, version));
        }
        let batch = std::mem::take(&mut waiting);
        let runs = laboratory.run(&batch)?;
        for (sequence, run) in batch.iter().zip(&runs) {
            let verdict = judge(sequence, run, version);
            if let Some(at) = verdict.depends_on_rows {
                // Without the statement that the rows refused, once more.
                waiting.push(sequence.without(at..at + 1));
                continue;
            }
            report.statements += verdict.statements;
            report.foreseen += verdict.foreseen;
            for finding in verdict.findings {
                let example = || Example { count: 0, sequence: sequence.clone(), finding: finding.clone() };
                examples.entry(label(&finding)).or_insert_with(example).count += 1;
            }
        }
    }
    let seconds = started.elapsed().as_secs().max(1);
    report.per_second = report.statements / seconds as usize;
    for (label, example) in examples {
        describe(&mut laboratory, &mut report, &label, &example, all)?;
    }
    Ok(report)
}

/// Differences with the same label are counted together.
fn label(finding: &Finding) -> String {
    match (&finding.explained, &finding.unknown) {
        (Some(reason), _) => format!("explained: {reason}"),
        (None, Some(unknown)) => format!("unknown: {unknown}"),
        (None, None) => finding.sort(),
    }
}

fn describe(
    laboratory: &mut Laboratory,
    report: &mut Report,
    label: &str,
    example: &Example,
    all: bool,
) -> Result<(), String> {
    let expected = example.finding.explained.is_some() || example.finding.unknown.is_some();
    let _ = writeln!(report.text, "{} x {label}", example.count);
    if !expected {
        report.differences.insert(label.to_owned(), example.count);
    }
    if expected && !all {
        return Ok(());
    }
    let (sequence, finding) = minimize::minimize(laboratory, &example.sequence, &example.finding, report.version)?;
    for line in sequence.text().lines() {
        let _ = writeln!(report.text, "    {line}");
    }
    let Finding { relation, predicted, observed, .. } = &finding;
    let place = if relation.is_empty() { String::new() } else { format!("  {relation}\n") };
    let _ = writeln!(report.text, "{place}  predicted: {predicted}\n  observed:  {observed}");
    Ok(())
}
