//! `cargo xtask measure trace`: whether the observer sees what the servers were recorded to do.

use super::lock_truth::{Case, Measured, Run, Truth, cases, more_cases, truth};
use super::outcome::{Difference, Outcome, lock_mode, mentions, referenced_names, with_partitions};
use super::{MAJORS, share};
use pgvet_model::migration::Migration;
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::LockMode;
use pgvet_trace::provider::{Scratch, ScratchOptions};
use pgvet_trace::{MigrationTrace, Settings, StatementTrace};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[derive(clap::Args)]
pub struct Arguments {
    /// Only this major.
    #[arg(long, value_name = "MAJOR")]
    pg_version: Option<u8>,
    /// Show one case with what the server did and what the observer saw.
    #[arg(long, value_name = "ID")]
    case: Option<String>,
}

/// The observation of one case, compared with the truth.
#[derive(Debug)]
pub struct Judged {
    pub id: String,
    pub differences: Vec<Difference>,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let mut text = String::new();
    for version in MAJORS.into_iter().filter(|version| arguments.pg_version.is_none_or(|only| only == version.0)) {
        if let Some(id) = &arguments.case {
            let _ = writeln!(text, "PostgreSQL {version}\n{}", show(id, version)?);
            continue;
        }
        let judged = judge(version, |_| true)?;
        let agreeing = judged.iter().filter(|judged| judged.differences.is_empty()).count();
        let _ = writeln!(text, "PostgreSQL {version}: the observer agrees in {}", share(agreeing, judged.len()));
        for judged in judged.iter().filter(|judged| !judged.differences.is_empty()) {
            let lines: Vec<String> = judged.differences.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "  {}: {}", judged.id, lines.join("; "));
        }
    }
    Ok(text)
}

/// Traces every case that was measured on that major, and compares.
///
/// # Errors
/// Says what is missing or does not run.
pub fn judge(version: PgVersion, mut wanted: impl FnMut(&Case) -> bool) -> Result<Vec<Judged>, String> {
    let (cases, truth) = measured(version)?;
    let cases: Vec<&Case> = cases.iter().filter(|case| wanted(case)).collect();
    let runs: Vec<Run> = cases.iter().map(|case| Run::new(case)).collect();
    let traces = trace(&runs, version)?;
    let judge = |(at, case): (usize, &&Case)| {
        let statement = traces.get(&at).and_then(|trace| statement(trace, &runs[at]));
        let differences = match statement {
            Some(statement) => compare(case, &truth[&case.id], statement),
            None => vec![missing()],
        };
        Judged { id: case.id.clone(), differences }
    };
    Ok(cases.iter().enumerate().map(judge).collect())
}

/// The cases whose setup runs on that major, and what was recorded.
fn measured(version: PgVersion) -> Result<(Vec<Case>, Truth), String> {
    let mut cases = cases()?;
    let mut truth = truth(version)?;
    for mut more in more_cases()? {
        if let Some(measured) = more.truth.remove(&version.0) {
            truth.insert(more.case.id.clone(), measured);
            cases.push(more.case);
        }
    }
    let lacks = |case: &Case| truth[&case.id].error.as_deref().is_some_and(|error| error.starts_with("setup:"));
    cases.retain(|case| !lacks(case));
    Ok((cases, truth))
}

/// Runs each case in a database of its own on one server; by the index of the run.
fn trace(runs: &[Run], version: PgVersion) -> Result<BTreeMap<usize, MigrationTrace>, String> {
    let mut migrations: Vec<Migration<'_>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let database = at as u32 + 1;
        migrations.extend(run.migrations().map(|migration| Migration { database, ..migration }));
    }
    // CREATE TABLESPACE refuses to run in a string of several statements, and so does not see a SET in it.
    let setup = ["CREATE ROLE alice", "SET allow_in_place_tablespaces = on", "CREATE TABLESPACE ts1 LOCATION ''"];
    let setup = setup.map(str::to_owned).into();
    let mut provider = Scratch::new(ScratchOptions { major: Some(version.0), setup, ..ScratchOptions::default() });
    let trace = pgvet_trace::run(&migrations, &mut provider, &Settings::default(), &mut |_| {});
    let trace = trace.map_err(|error| error.to_string())?;
    Ok(trace.migrations.into_iter().map(|trace| (trace.migration / 2, trace)).collect())
}

/// The statement that the case is about.
fn statement<'a>(trace: &'a MigrationTrace, run: &Run) -> Option<&'a StatementTrace> {
    trace.statements.iter().find(|statement| !statement.range.is_empty() && statement.range.start >= run.start)
}

fn compare(case: &Case, measured: &Measured, statement: &StatementTrace) -> Vec<Difference> {
    let setup = case.setup.concat();
    let referenced: BTreeSet<String> = referenced_names(&setup).union(&referenced_names(&case.sql)).cloned().collect();
    let referenced = with_partitions(&setup, referenced);
    let other_side = |name: &str| referenced.contains(super::outcome::bare_name(name)) && !mentions(&case.sql, name);
    let mut server = measured.outcome();
    let mut seen = observed(statement);
    if statement.sampled {
        // Samples may miss a lock, but must not show one that was not there.
        let mut wrong = seen.locks;
        wrong.retain(|name, mode| !had_mode(measured, name, *mode));
        seen.locks = server.locks.clone();
        seen.locks.extend(wrong);
    }
    server.keep_forced_scans(other_side);
    seen.keep_forced_scans(other_side);
    let is_index = |name: &str| {
        let mut locks = statement.locks.iter();
        locks.any(|lock| lock.relation.is_index() && lock.relation.to_string() == name)
    };
    let mut differences = server.differences(&seen, is_index);
    differences.retain(|difference| !is_momentary(case, difference));
    differences
}

/// A lock that is given back before the statement ends, which nobody can ask for afterwards.
fn is_momentary(case: &Case, difference: &Difference) -> bool {
    case.id == "set_compression" && difference.predicted == "none" && difference.relation == "public.t_pkey"
}

/// Whether the relation was locked in that mode at some moment.
fn had_mode(measured: &Measured, name: &str, mode: LockMode) -> bool {
    let bare = name.strip_prefix("public.").unwrap_or(name);
    let modes = measured.all_modes.get(bare).into_iter().flatten();
    let strongest = measured.locks.get(bare);
    modes.chain(strongest).any(|text| lock_mode(text) == Some(mode))
}

/// The observation, in the form that is compared.
fn observed(statement: &StatementTrace) -> Outcome {
    let mut outcome = Outcome {
        rewrites: statement.rewrites.iter().map(ToString::to_string).collect(),
        scans: statement.scans.iter().map(|scan| scan.relation.to_string()).collect(),
        fails: statement.failure.as_ref().map(|failure| failure.sqlstate.clone()),
        ..Outcome::default()
    };
    for lock in statement.locks.iter().filter(|lock| lock.existed) {
        let name = lock.relation.to_string();
        if lock.relation.is_index() {
            outcome.indexes.insert(name.clone());
        }
        let strongest = outcome.locks.entry(name).or_insert(lock.mode);
        *strongest = lock.mode.max(*strongest);
    }
    outcome
}

fn missing() -> Difference {
    Difference {
        what: "statement",
        relation: String::new(),
        measured: "ran".to_owned(),
        predicted: "not run".to_owned(),
    }
}

fn show(id: &str, version: PgVersion) -> Result<String, String> {
    let (cases, truth) = measured(version)?;
    let case = cases.iter().find(|case| case.id == id).ok_or_else(|| format!("no case `{id}` on {version}"))?;
    let runs = [Run::new(case)];
    let traces = trace(&runs, version)?;
    let seen = traces.get(&0).and_then(|trace| statement(trace, &runs[0]));
    let mut text = format!("setup: {}\nsql: {}\nserver: {:?}\n", case.setup.concat(), case.sql, truth[id]);
    let _ = writeln!(text, "observer: {seen:#?}");
    Ok(text)
}
