//! What the repository shows about migrations: that nothing may run them, or what the program sets that does.

mod archive;
mod creators;
mod dialects;
mod outside;
mod parts;
mod psql;
mod repeated;
mod replaced;
mod role_settings;
mod timeout;
pub(crate) mod whole;

use crate::known_order::UnknownOrder;
use crate::layout::flyway_locations::Locations;
use crate::layout::known_tool::ToolFolder;
use crate::layout::{Folders, Tool};
use crate::problem::{Problem, display};
use crate::project::{ProjectFile, Role};
use archive::Archives;
use outside::Outside;
use pgvet_linter::repository::IdleReason;
use pgvet_model::runner::KnownTransaction;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use timeout::Timeouts;

/// Looks for evidence about each reported file. `given`: the paths that the request names.
pub(crate) fn gather(
    files: &mut [ProjectFile],
    given: &[PathBuf],
    tools: &BTreeSet<ToolFolder>,
    mut locations: Locations,
    folders: &Folders,
) {
    let (mut archives, mut timeouts) = (Archives::new(given), Timeouts::default());
    let mut outside = Outside::new(given, tools);
    for file in files.iter_mut().filter(|file| is_judged(file)) {
        let of_location = || other_location(file, &mut locations, given, folders);
        let idle = archives.idle(file, folders);
        let idle = idle.or_else(of_location).or_else(|| outside.idle(file, folders));
        if matches!(idle, Some(IdleReason::OtherLocation { .. })) {
            file.in_production = false;
        }
        file.evidence.idle = idle;
        if file.layout.known_transaction == KnownTransaction::Selective {
            file.evidence.mentions_concurrently = folders.mention_of_concurrently(&file.path);
        }
        file.evidence.timeout = timeouts.of(file, folders.nearby());
        file.evidence.script = file.unknown_order == Some(UnknownOrder::NoVersion);
    }
    dialects::mark(files, folders);
    psql::mark(files, folders);
    role_settings::mark(files);
    replaced::mark(files);
    parts::mark(files);
    repeated::mark(files);
    repeated::mark_schemas(files);
    for file in files.iter_mut().filter(|file| file.role == Role::Reported && file.layout.unlisted) {
        if !file.config.is_included(&file.path) {
            file.evidence.idle = Some(IdleReason::Unlisted);
        }
    }
}

/// Why production may not run a migration of Flyway that the user does not name.
fn other_location(
    file: &ProjectFile,
    locations: &mut Locations,
    given: &[PathBuf],
    folders: &Folders,
) -> Option<IdleReason> {
    if file.layout.tool != Tool::Flyway || given.contains(&file.path) {
        return None;
    }
    let (listed, others) = locations.only(&file.path, folders.nearby())?;
    Some(IdleReason::OtherLocation { listed, others })
}

/// Whether findings about the file are reported for which evidence counts. What the configuration includes is run.
fn is_judged(file: &ProjectFile) -> bool {
    file.role == Role::Reported && file.is_run() && !file.config.is_included(&file.path)
}

/// Says that not all code was searched.
pub(crate) fn limit_note(files: &[ProjectFile], folders: &Folders) -> Option<Problem> {
    let first = files.iter().find(|file| file.role == Role::Reported)?;
    let message = "and the files beside it belong to a project with more code than pgvet searches, so pgvet may not know \
                   how they run";
    let help = "set `tool` and `transaction` under [migrations] in pgvet.toml";
    folders.nearby().is_exhausted().then(|| Problem::new(&first.path, message, Some(help)))
}

/// Says that not all changelogs were followed.
pub(crate) fn changelog_note(files: &[ProjectFile], folders: &Folders) -> Option<Problem> {
    let first = files.iter().find(|file| file.role == Role::Reported)?;
    let message = "belongs to a project whose Liquibase changelogs include too many files, so pgvet may not know their \
                   order";
    let help = "include each folder in one changelog only";
    folders.lack_changelogs().then(|| Problem::new(&first.path, message, Some(help)))
}

/// Names the files that nothing may run, one note for each reason.
pub(crate) fn notes(files: &[ProjectFile]) -> Vec<Problem> {
    let mut reasons: BTreeMap<(String, &str), (&Path, usize)> = BTreeMap::new();
    for file in files {
        let Some(idle) = &file.evidence.idle else { continue };
        let why = match idle {
            IdleReason::Folder { name } => format!("below a folder named `{name}`"),
            IdleReason::Replaced { .. } => idle.to_string(),
            IdleReason::OutsideTool { .. } | IdleReason::OtherLocation { .. } => idle.to_string(),
            // The summary counts them.
            IdleReason::Unlisted => continue,
        };
        let is_old = matches!(idle, IdleReason::Folder { .. } | IdleReason::Replaced { .. });
        let run = if is_old { "are probably no longer run" } else { "may not be run in production" };
        reasons.entry((why, run)).or_insert((&file.path, 0)).1 += 1;
    }
    let note = |((why, run), (first, count)): ((String, &str), (&Path, usize))| {
        let (others, their) = match count - 1 {
            0 => (String::new(), "its"),
            1 => ("and 1 other file ".to_owned(), "their"),
            others => (format!("and {others} other files "), "their"),
        };
        let run = if count == 1 { run.replacen("are", "is", 1) } else { run.to_owned() };
        let message = format!("{others}{run} ({why}), so {their} findings have the confidence `possible`");
        let help = "under [migrations] in pgvet.toml, list them in `include` if they run, or in `exclude` to skip them";
        Problem { path: display(first), message, help: Some(help.to_owned()) }
    };
    reasons.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests;
