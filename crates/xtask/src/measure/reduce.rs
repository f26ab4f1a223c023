//! `cargo xtask measure reduce`: how small `pgvet reduce` makes statements that fail, and in what time.

use super::median::median;
use super::{fixtures, read, settings_for, share};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::settings::Settings;
use pgvet_linter::severity::Severity;
use pgvet_model::version::PgVersion;
use pgvet_reduce::{
    Control, Document, FindingOracle, NoReduction, Oracle, Reduction, ServerOracle, WantedError, reduce,
};
use pgvet_trace::provider::{Scratch, ScratchOptions};
use pgvet_trace::{Attempts, Limits, Question};
use pgvet_workspace::config::{Config, ConfigSource};
use pgvet_workspace::{Project, Request};
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[arg(long, value_name = "MAJOR", default_value_t = 18)]
    pg_version: u8,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// The fixtures: written by hand, and made up at random.
const FIXTURES: [&str; 2] = ["cases", "generated"];

/// The finding that is reduced without a server, of the statements that fail whatever the tables hold.
const STATIC_RULE: &str = "statement-will-fail";

/// Statements of which the last one fails.
struct Case {
    name: String,
    error: WantedError,
    sql: String,
    /// The smallest SQL with the same error that a person has found.
    minimum: String,
}

/// How a case was reduced.
pub struct Outcome {
    pub name: String,
    pub sql: String,
    /// The tokens of the original, of the result and of the minimum that a person has found.
    pub tokens: [usize; 3],
    pub tries: usize,
    /// Without the start of a server that serves all cases.
    pub took: Duration,
}

impl Outcome {
    /// Whether the result is larger than the minimum of a person by more than a fifth.
    pub fn is_large(&self) -> bool {
        let [_, reduced, minimum] = self.tokens;
        reduced * 5 > minimum * 6
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let version = PgVersion(arguments.pg_version);
    let mut text = String::new();
    for fixture in FIXTURES {
        let mut cases = cases(fixture)?;
        cases.retain(|case| case.name.contains(&arguments.only));
        on_servers(fixture, &cases, version, &mut text)?;
        statically(fixture, &cases, version, &mut text)?;
    }
    Ok(text)
}

/// Reduces each case on a server of its own.
fn on_servers(fixture: &str, cases: &[Case], version: PgVersion, text: &mut String) -> Result<(), String> {
    let mut outcomes = Vec::new();
    for case in cases {
        let started = Instant::now();
        let mut outcome = match of_case(case, server(version)?) {
            Ok((outcome, _)) => outcome,
            Err(why) => {
                let _ = writeln!(text, "{why}");
                continue;
            }
        };
        outcome.took = started.elapsed();
        let Outcome { name, sql, tokens: [original, reduced, minimum], tries, took } = &outcome;
        let mark = if outcome.is_large() { "  LARGE" } else { "" };
        let _ = writeln!(
            text,
            "{name}: {original} -> {reduced} tokens, by hand {minimum}, {tries} tries, {took:.1?}{mark}"
        );
        let _ = writeln!(text, "    {}", sql.trim().replace('\n', "\n    "));
        outcomes.push(outcome);
    }
    let large = outcomes.iter().filter(|outcome| outcome.is_large()).count();
    let times: Vec<f64> = outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).collect();
    let _ = writeln!(
        text,
        "{fixture}: {} of {} cases reduced, {large} larger than by hand by more than 20 %, median {:.2} s with the start \
         of a server",
        outcomes.len(),
        cases.len(),
        median(times)
    );
    Ok(())
}

/// Reduces the cases of which the model says that they fail.
fn statically(fixture: &str, cases: &[Case], version: PgVersion, text: &mut String) -> Result<(), String> {
    let settings =
        |_: &Config| Settings { level: Severity::Info, confidence: Confidence::Possible, ..settings_for(version) };
    let mut times = Vec::new();
    for case in cases {
        let started = Instant::now();
        let (project, _folder) = case.project()?;
        let mut oracle = FindingOracle::new(project, STATIC_RULE, &settings);
        let control = Control { deadline: None, interrupted: &AtomicBool::new(false), progress: &mut |_| {} };
        match reduce(case.document(), &mut oracle, control) {
            Ok(_) => times.push(started.elapsed().as_secs_f64() * 1000.0),
            Err(NoReduction::DoesNotHold) => {}
            Err(none) => return Err(format!("{}: {none:?}", case.name)),
        }
    }
    let found = share(times.len(), cases.len());
    let _ =
        writeln!(text, "{fixture}, without a server: {found} with `{STATIC_RULE}`, median {:.0} ms\n", median(times));
    Ok(())
}

/// Reduces one of `every` cases of a file of `fixtures/reduce`, all on one server.
///
/// # Errors
/// A fixture or a server that is missing, or a case whose original or minimum does not have its error.
pub fn measure(version: PgVersion, fixture: &str, every: usize) -> Result<Vec<Outcome>, String> {
    let mut server = server(version)?;
    let mut outcomes = Vec::new();
    for case in cases(fixture)?.into_iter().step_by(every) {
        let (outcome, again) = of_case(&case, server)?;
        server = again;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn server(version: PgVersion) -> Result<Attempts, String> {
    let options = ScratchOptions { major: Some(version.0), ..ScratchOptions::default() };
    let server = Attempts::start(Scratch::new(options), Question::Runs, Duration::from_secs(10), Limits::default());
    server.map_err(|error| error.to_string())
}

fn of_case(case: &Case, server: Attempts) -> Result<(Outcome, Attempts), String> {
    let started = Instant::now();
    let (project, _folder) = case.project()?;
    let document = case.document();
    let mut oracle = ServerOracle::new(project, case.error.clone(), server);
    let control = Control { deadline: None, interrupted: &AtomicBool::new(false), progress: &mut |_| {} };
    let reduction = reduce(document.clone(), &mut oracle, control);
    let failed = |what: &str| format!("{}: {what}: {:?}", case.name, oracle.last());
    let Reduction { document: reduced, progress, .. } =
        reduction.map_err(|none: NoReduction| failed(&format!("{none:?}")))?;
    let took = started.elapsed();
    let minimum = Document::new([("case.sql", case.minimum.as_str())]);
    if !oracle.holds(&minimum).map_err(|error| error.to_string())? {
        return Err(format!("{}: the minimum has another error: {:?}", case.name, oracle.last()));
    }
    let outcome = Outcome {
        name: case.name.clone(),
        sql: reduced.texts().map(|(_, text)| text).collect(),
        tokens: [document.size().tokens, reduced.size().tokens, minimum.size().tokens],
        tries: progress.tries,
        took,
    };
    Ok((outcome, oracle.into_server()))
}

impl Case {
    /// A project of the one file, which stays as long as its folder.
    fn project(&self) -> Result<(Project, TempDir), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path().join("case.sql");
        std::fs::write(&path, &self.sql).map_err(|error| error.to_string())?;
        let request = Request { paths: vec![path], config: ConfigSource::None, ..Request::default() };
        let project = Project::load(&request, &|_, _| {}).map_err(|error| format!("{error:?}"))?;
        Ok((project, folder))
    }

    fn document(&self) -> Document {
        Document::new([("case.sql", self.sql.as_str())])
    }
}

/// The cases of a file of `fixtures/reduce`.
fn cases(fixture: &str) -> Result<Vec<Case>, String> {
    let text = read(&fixtures("reduce").join(format!("{fixture}.sql")))?;
    let case = |part: &str| {
        let (name, rest) = part.split_once("\n-- error: ")?;
        let (error, rest) = rest.split_once('\n')?;
        let (sql, minimum) = rest.split_once("-- minimum:\n")?;
        let error = WantedError::parse(error);
        Some(Case { name: name.to_owned(), error, sql: sql.to_owned(), minimum: minimum.trim().to_owned() })
    };
    let cases: Option<Vec<Case>> = text.split("-- case: ").skip(1).map(case).collect();
    cases.ok_or_else(|| "a case of fixtures/reduce has no error or no minimum".to_owned())
}
