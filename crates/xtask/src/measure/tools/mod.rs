//! Runs of real migration tools on projects, compared with the model.
//!
//! `fixtures/tools/NAME/tool.toml` declares a tool, `fixtures/tools/cases` holds projects that every tool runs, the other
//! folders of a tool projects of its own. `observed.txt` is what was seen; tests compare it with the model.

mod changes;
mod compare;
mod declaration;
pub(super) mod install;
pub(super) mod log;
mod observation;
mod predicted;
mod project;
mod server;

pub use changes::{Change, changes, difference};
pub use compare::{Difference, PARTS, differences};
pub use declaration::{Declaration, Install, folder};
pub use observation::{End, Observation, Protocol, Recorded, Step};
pub use predicted::{Prediction, predict};
pub use project::{Address, Case, Installed, cases};

use super::read;
use server::Observed;
use std::fmt::Write as _;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The tools to run; all of them if none is named.
    tools: Vec<String>,
    /// Run the tools, which are installed first, and write down what they do. Otherwise compare what was recorded.
    #[arg(long)]
    record: bool,
    /// Run only the changes of `fixtures/tools/changes`.
    #[arg(long)]
    changes: bool,
    /// Only this case; shows the log of the server, and records nothing.
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
    /// The versions of PostgreSQL.
    #[arg(long, value_delimiter = ',', default_values_t = [14, 18])]
    pg_version: Vec<u8>,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let all = Declaration::all()?;
    let tools: Vec<&Declaration> =
        all.iter().filter(|tool| arguments.tools.is_empty() || arguments.tools.contains(&tool.name)).collect();
    let unknown = arguments.tools.iter().find(|name| !all.iter().any(|tool| tool.name == **name));
    if let Some(name) = unknown {
        return Err(format!("fixtures/tools has no tool `{name}`"));
    }
    let mut report = String::new();
    if arguments.record || arguments.case.is_some() {
        let mut servers = Vec::new();
        for major in &arguments.pg_version {
            servers.push(Observed::start(*major)?);
        }
        for tool in &tools {
            let only = arguments.case.as_deref();
            let recorded = if arguments.changes { Ok(String::new()) } else { record(tool, &mut servers, only) };
            match recorded.and_then(|told| Ok(told + &record_changes(tool, &mut servers, only)?)) {
                Ok(told) => report += &told,
                Err(error) => {
                    let _ = writeln!(report, "{}: NOT RUN: {error}", tool.name);
                }
            }
        }
    }
    if arguments.case.is_none() {
        for tool in tools.iter().filter(|tool| tool.folder().join("observed.txt").is_file()) {
            report += &agreement(tool)?;
        }
    }
    Ok(report)
}

/// Runs all cases of a tool. With `only`, returns the log of that case and writes nothing.
fn record(tool: &Declaration, servers: &mut [Observed], only: Option<&str>) -> Result<String, String> {
    let cases = cases(tool)?;
    let mut recorded = Vec::new();
    let mut told = String::new();
    for version in &tool.versions {
        let folder = install::install(tool, version)?;
        let installed = Installed { tool, version };
        for case in cases.iter().filter(|case| only.is_none_or(|only| only == case.name)) {
            for server in &mut *servers {
                let run = server.run(installed, &folder, case)?;
                if only.is_some() {
                    let _ = writeln!(told, "=== {version}, PostgreSQL {}\n{}", server.major(), run.told);
                }
                recorded.push(Recorded {
                    case: case.name.clone(),
                    version: version.clone(),
                    majors: vec![server.major()],
                    seen: run.observation,
                });
            }
        }
    }
    recorded.sort_by(|one, other| one.case.cmp(&other.case));
    let text = observation::write(&observation::merge(recorded));
    if only.is_some() {
        return Ok(told + &text);
    }
    let path = tool.folder().join("observed.txt");
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(told)
}

/// Runs all changes with a tool, as [`record`] does cases.
fn record_changes(tool: &Declaration, servers: &mut [Observed], only: Option<&str>) -> Result<String, String> {
    if !tool.changes || tool.tool.is_none() {
        return Ok(String::new());
    }
    let changes = changes()?;
    let mut recorded = Vec::new();
    let mut told = String::new();
    // Older versions are run for cases alone.
    let version = tool.versions.last().ok_or("no version is named")?;
    let folder = install::install(tool, version)?;
    let installed = Installed { tool, version };
    for change in changes.iter().filter(|change| only.is_none_or(|only| only == change.name)) {
        if tool.skip.contains_key(&change.name) {
            continue;
        }
        for server in &mut *servers {
            let run = server.run_change(installed, &folder, change)?;
            if only.is_some() {
                let _ = writeln!(told, "=== {version}, PostgreSQL {}\n{}", server.major(), run.told);
            }
            recorded.push(Recorded {
                case: change.name.clone(),
                version: version.clone(),
                majors: vec![server.major()],
                seen: run.observation,
            });
        }
    }
    let text = observation::write(&observation::merge(recorded));
    if only.is_some() {
        return Ok(told + &text);
    }
    let path = tool.folder().join("changes.txt");
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(told)
}

/// Returns what a tool was seen to do after changes; nothing if that is not recorded.
///
/// # Errors
/// Says what cannot be read.
pub fn recorded_changes(tool: &Declaration) -> Result<Vec<Recorded>, String> {
    let path = tool.folder().join("changes.txt");
    if path.is_file() { observation::read(&read(&path)?) } else { Ok(Vec::new()) }
}

/// Returns the recorded runs of a tool.
///
/// # Errors
/// Says what cannot be read.
pub fn recorded(tool: &Declaration) -> Result<Vec<Recorded>, String> {
    observation::read(&read(&tool.folder().join("observed.txt"))?)
}

/// A recorded run beside what the model says.
#[derive(Debug)]
pub struct Compared {
    pub recorded: Recorded,
    pub predicted: Prediction,
    pub differences: Vec<Difference>,
}

/// Compares everything that was recorded of a tool.
///
/// # Errors
/// Says what cannot be read or loaded.
pub fn compare(tool: &Declaration) -> Result<Vec<Compared>, String> {
    let cases = cases(tool)?;
    let mut compared = Vec::new();
    for recorded in recorded(tool)? {
        let case = cases.iter().find(|case| case.name == recorded.case);
        let case = case.ok_or_else(|| format!("{}: the case {} is gone: record it again", tool.name, recorded.case))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let root = folder.path().join("project");
        case.write(&Installed { tool, version: &recorded.version }, &Address::of_nothing(), &root)?;
        std::fs::create_dir_all(root.join(".git")).map_err(|error| error.to_string())?;
        let major = recorded.majors.last().copied().unwrap_or(18);
        let predicted = predict(&root, major)?;
        let differences = differences(&recorded, &predicted);
        compared.push(Compared { recorded, predicted, differences });
    }
    Ok(compared)
}

/// How much of what was recorded the model says, and where it says something else.
fn agreement(tool: &Declaration) -> Result<String, String> {
    let compared = compare(tool)?;
    let agreeing = compared.iter().filter(|one| one.differences.is_empty()).count();
    let mut text = format!("{}: {agreeing} of {} runs agree\n", tool.name, compared.len());
    for recorded in recorded_changes(tool)? {
        if let Some(Difference { recorded: seen, predicted, .. }) = difference(tool, &recorded) {
            let _ = writeln!(text, "  {} {}: {seen} / pgvet: {predicted}", recorded.case, recorded.version);
        }
    }
    for Compared { recorded, differences, .. } in compared.iter().filter(|one| !one.differences.is_empty()) {
        let explained = if tool.differences.contains_key(&recorded.case) { " (explained)" } else { "" };
        let _ = writeln!(text, "  {} {}{explained}", recorded.case, recorded.version);
        for Difference { part, recorded, predicted } in differences {
            let _ = writeln!(text, "    {part}: {recorded} / pgvet: {predicted}");
        }
    }
    Ok(text)
}
