//! One file per command.

pub(crate) mod baseline;
mod calibrate;
pub(crate) mod capture;
pub(crate) mod check;
mod clone;
pub(crate) mod completions;
pub(crate) mod config;
mod crash;
pub(crate) mod diff;
pub(crate) mod drift;
pub(crate) mod effects;
pub(crate) mod explain;
mod fix;
mod ignore;
pub(crate) mod init;
pub(crate) mod lsp;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod precheck;
pub(crate) mod reduce;
pub(crate) mod rewrite;
pub(crate) mod roundtrip;
pub(crate) mod rules;
pub(crate) mod schema;
mod scratch;
mod sides;
pub(crate) mod snapshot;
pub(crate) mod squash;
pub(crate) mod trace;
mod verbose;
mod watch;

use crate::args::{AgainstArgs, CacheArgs, ColorChoice, InputArgs, LoudnessArgs};
use crate::error::Failure;
use crate::inert;
use crate::progress::Progress;
use pgvet_linter::check::Outcome;
use pgvet_linter::settings::Settings;
use pgvet_workspace::config::{Config, ConfigError};
use pgvet_workspace::{Project, Request};
use std::io;

/// Checks a project, with a progress bar.
fn check(project: &Project, settings: &(dyn Fn(&Config) -> Settings + Sync)) -> Outcome {
    let progress = Progress::new("checking");
    project.check(settings, &|done, all| progress.update(done, all))
}

/// [`load`] for a check, which parses the files itself as far as earlier runs have left nothing in the cache.
fn load_to_check(
    args: &InputArgs,
    against: &AgainstArgs,
    cache: &CacheArgs,
    settings: &(dyn Fn(&Config) -> Settings + Sync),
) -> Result<Project, Failure> {
    let cache = cache.cache();
    let request = args.request();
    loaded(args, &request, |request, progress| {
        let project = Project::load_to_check(request, cache.as_ref(), settings, progress)?;
        let precheck_files = project.precheck_files(against.precheck());
        if project.observed_files(against.schema()).is_empty() && precheck_files.is_empty() {
            return Ok(project);
        }
        // What a database has is compared with the migrations before they are checked.
        load_with_observed(request, against, progress)
    })
}

fn load_with_observed(
    request: &Request,
    against: &AgainstArgs,
    progress: OnProgress<'_>,
) -> Result<Project, ConfigError> {
    let mut project = Project::load(request, progress)?;
    project.add_observed(against.schema());
    project.add_prechecked(against.precheck());
    Ok(project)
}

/// [`load`] with what live databases have.
fn load_against(args: &InputArgs, against: &AgainstArgs) -> Result<Project, Failure> {
    loaded(args, &args.request(), |request, progress| load_with_observed(request, against, progress))
}

/// Loads what the arguments name, and writes problems and notes to standard error.
fn load(args: &InputArgs) -> Result<Project, Failure> {
    loaded(args, &args.request(), Project::load)
}

/// [`load`] that also lists the files that git ignores and those in hidden folders.
fn load_every_file(args: &InputArgs) -> Result<Project, Failure> {
    loaded(args, &Request { every_file: true, ..args.request() }, Project::load)
}

type OnProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

fn loaded(
    args: &InputArgs,
    request: &Request,
    load: impl FnOnce(&Request, OnProgress<'_>) -> Result<Project, ConfigError>,
) -> Result<Project, Failure> {
    let progress = Progress::new("reading");
    let project = load(request, &|done, all| progress.update(done, all));
    drop(progress);
    let project = project.map_err(|error| Failure::config(error, args.color))?;
    tell(&project, &args.loudness)?;
    Ok(project)
}

/// Loads what a request names, for commands that read more than one project.
fn load_request(request: &Request, loudness: &LoudnessArgs) -> Result<Project, Failure> {
    let project = Project::load(request, &|_, _| {}).map_err(|error| Failure::config(error, ColorChoice::Auto))?;
    tell(&project, loudness)?;
    Ok(project)
}

/// Writes problems and notes to standard error.
fn tell(project: &Project, loudness: &LoudnessArgs) -> Result<(), Failure> {
    let mut stderr = io::stderr().lock();
    for problem in &project.problems {
        Failure::from(problem).write(&mut stderr)?;
    }
    if !loudness.quiet {
        for note in &project.notes {
            Failure::from(note).write_note(&mut stderr)?;
        }
    }
    if loudness.verbose {
        inert::through(&mut stderr, inert::Kind::Text, |out| verbose::write(project, out))?;
    }
    Ok(())
}
