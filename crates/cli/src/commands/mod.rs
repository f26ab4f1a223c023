//! One file per command.

pub(crate) mod baseline;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod effects;
pub(crate) mod explain;
mod fix;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod rewrite;
pub(crate) mod rules;
pub(crate) mod snapshot;
pub(crate) mod trace;

use crate::args::InputArgs;
use crate::error::Failure;
use crate::progress::Progress;
use pgvet_linter::check::Outcome;
use pgvet_linter::settings::Settings;
use pgvet_workspace::Project;
use pgvet_workspace::config::Config;
use std::io;

/// Checks a project, with a progress bar.
fn check(project: &Project, settings: &(dyn Fn(&Config) -> Settings + Sync)) -> Outcome {
    let progress = Progress::new("checking");
    project.check(settings, &|done, all| progress.update(done, all))
}

/// Loads what the arguments name, and tells on standard error what could not be loaded.
fn load(args: &InputArgs) -> Result<Project, Failure> {
    let progress = Progress::new("reading");
    let project = Project::load(&args.request(), &|done, all| progress.update(done, all));
    drop(progress);
    let project = project.map_err(|error| Failure::config(error, args.color))?;
    let mut stderr = io::stderr().lock();
    for problem in &project.problems {
        Failure::from(problem).write(&mut stderr)?;
    }
    Ok(project)
}
