//! `pgvet baseline`.

use super::load_against;
use crate::args::{BaselineArgs, BaselineFileArgs};
use crate::baseline::{self, Baseline};
use crate::error::{ExitStatus, Failure};
use crate::report::{Report, plural, relative_path};
use crate::rule_names;
use pgvet_linter::settings::Settings;
use pgvet_workspace::config::Config;
use pgvet_workspace::{KnownFinding, Project, create_report};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &BaselineArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    rule_names::check(&args.rules)?;
    let project = load_against(&args.input, &args.against)?;
    if !project.problems.is_empty() {
        // What could not be read would be missing, and be reported as new later.
        return Ok(ExitStatus::NotChecked);
    }
    let settings = |config: &Config| args.rules.apply(config, config.fails(), args.input.settings(config));
    let outcome = super::check(&project, &settings);
    let report = Report::new(&project, &outcome);
    let path = path(&project, &args.file);
    // A checkout may call any of its files the baseline.
    if args.file.baseline.is_none() && KnownFinding::is_of_others(&path) {
        let help = "remove the file, or name it with `--baseline` to overwrite it";
        let message = format!("`{}` was not written: the file exists, and it is not a baseline", path.display());
        return Err(Failure::new(message).help(help));
    }
    let mut file = create_report(&path).map_err(|problem| Failure::from(&problem))?;
    file.write_all(baseline::text(&report.findings).as_bytes())
        .map_err(|error| Failure::new(format!("cannot write `{}`: {error}", path.display())))?;
    let shown = relative_path(&path.to_string_lossy());
    let findings = plural(report.findings.len(), "known finding");
    writeln!(out, "Wrote {findings} to {shown}; `pgvet check` now reports only new findings.")?;
    if !is_default(&project, &path) {
        writeln!(out, "Add `baseline = \"{shown}\"` to pgvet.toml, or give `--baseline {shown}`.")?;
    }
    Ok(ExitStatus::Clean)
}

/// The baseline of a run, if there is one.
pub(super) fn known(
    project: &Project,
    args: &BaselineFileArgs,
    settings: &dyn Fn(&Config) -> Settings,
) -> Result<Option<Baseline>, Failure> {
    if args.no_baseline {
        return Ok(None);
    }
    let config = project.config_of(1);
    let path = path(project, args);
    let is_named = args.baseline.is_some() || config.baseline.is_some();
    if !is_named && !path.is_file() {
        return Ok(None);
    }
    Baseline::read(&path, settings(&config)).map(Some)
}

fn path(project: &Project, args: &BaselineFileArgs) -> PathBuf {
    args.baseline.clone().unwrap_or_else(|| project.config_of(1).baseline_path())
}

fn is_default(project: &Project, path: &Path) -> bool {
    project.config_of(1).baseline_path() == path
}
