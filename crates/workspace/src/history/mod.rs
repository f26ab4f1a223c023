//! What git says about migrations that databases have applied: edited, renamed, deleted, overtaken by a new one.
//!
//! Migrations of the base revision are treated as applied. Without a base revision, none are.

mod edited;
pub(crate) mod gone;
mod journal;
mod late;
mod removed;
mod sums;
mod versions;

use crate::config::Config;
use crate::git::{self, Changes};
use crate::identity::Identities;
use crate::layout::{Folders, Layout, Tool};
use crate::order::{self, FlywayName};
use crate::plan::Source;
use crate::rollback_name;
pub(crate) use late::mark_late;
use pgvet_model::incident::{Applied, Consequence, Incident, IncidentKind, OrderedBy};
use pgvet_model::migration::Direction;
use removed::Removed;
use std::path::Path;
use std::sync::Arc;
pub(crate) use sums::compare_sums;
pub(crate) use versions::compare_versions;

/// What git says about one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    /// Its text in the base revision, if it was there and has changed or is gone.
    pub(crate) before: Option<Arc<str>>,
    /// Whether the base revision had it under another name.
    pub(crate) is_renamed: bool,
    /// The newest applied migration that sorts after it, although it is new.
    pub(crate) newest: Option<Other>,
    /// The newest applied migration of the journal of Drizzle, if its time is not earlier, although the file is new.
    pub(crate) outdated_by: Option<Other>,
    /// An applied migration that has the same version, although it is new.
    pub(crate) twin: Option<Other>,
    /// What has become of an applied migration for which the file only stands.
    pub(crate) removed: Option<Removed>,
    /// The migrations that are treated as applied; `None` without a base revision.
    pub(crate) applied: Option<Applied>,
    /// Whether the base revision lacks it.
    pub(crate) is_new: bool,
}

/// The name of an applied migration, and where it is applied.
pub(crate) type Other = (String, Applied);

/// Notes of each file of a database what git says about it.
pub(crate) fn mark(sources: &mut [Source], changes: &Changes, identities: &Identities) {
    for source in sources.iter_mut() {
        let identity = identities.of(&source.path);
        source.past.applied = Some(changes.applied(changes.renamed_from(&identity).unwrap_or(&identity)));
        source.past.is_new = changes.is_new(&identity);
        source.past.before = changes.before(&identity).map(|text| Arc::from(String::from_utf8_lossy(text)));
        source.past.is_renamed = changes.renamed_from(&identity).is_some();
    }
    mark_late(sources, changes, identities);
    journal::mark_outdated(sources);
}

/// Whether a tool runs a file of this name once, forward, by its version.
pub(crate) fn runs_once(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_unversioned_by_flyway = FlywayName::parse(&name).is_some_and(|name| name.kind != 'V');
    order::is_versioned(path) && !rollback_name::is_rollback_migration(path) && !is_unversioned_by_flyway
}

/// Returns the version of a migration as its name has it.
fn version_of(path: &Path) -> String {
    git::version(Path::new(&order::place(path).1))
}

/// Returns what has happened to a file. `text` is what it holds on disk.
pub(crate) fn incidents(
    past: &Past,
    path: &Path,
    text: &str,
    layout: &Layout,
    folders: &Folders,
    config: &Config,
) -> Vec<Incident> {
    // No database runs such scripts a second time, and nothing compares them with what it has run.
    let Some(applied) = past.applied.filter(|_| !folders.fills_new_database(path)) else { return Vec::new() };
    let tool = layout.tool;
    let reactions = tool.reactions_to(path);
    let incident = |kind, consequence| Incident { kind, consequence, tool: tool.title(), applied };
    if let Some(removed) = &past.removed {
        let listed = layout.lists_gone(path, folders);
        return vec![incident(removed.kind.clone(), listed.unwrap_or_else(|| removed.consequence(&reactions)))];
    }
    let is_run = layout.sections.iter().any(|section| section.direction == Direction::Up) && !layout.unlisted;
    let mut incidents = Vec::new();
    if let Some((list, consequence)) = layout.missing_from(path, text, folders).filter(|_| past.is_new) {
        incidents.push(incident(IncidentKind::NotListed { list }, consequence));
    }
    if !is_run || tool == Tool::Liquibase {
        return incidents;
    }
    // With another name it may be a new migration for the tool, and then it has no old text.
    let is_same = !past.is_renamed || reactions.retitled == Consequence::Ignores;
    let is_listed = matches!(tool, Tool::Sqitch | Tool::Drizzle | Tool::Yuniql | Tool::Grate);
    if let Some(before) = past.before.as_deref().filter(|_| is_same && (runs_once(path) || is_listed))
        && !layout.runs_again
        && let Some(changes_sql) = edited::changes_sql((path, text), before, layout, folders, config)
    {
        incidents.push(incident(IncidentKind::Edited { changes_sql }, reactions.edited));
    }
    let by_name = past.newest.clone().filter(|_| tool.runs_by_order(path)).map(|newest| (newest, OrderedBy::Name));
    let by_journal = past.outdated_by.clone().filter(|_| tool == Tool::Drizzle);
    let by_journal = by_journal.map(|newest| (newest, OrderedBy::Journal));
    incidents.extend(by_name.into_iter().chain(by_journal).map(|((newest, applied), by)| {
        let kind = IncidentKind::OutOfOrder { newest, by };
        Incident { applied, ..incident(kind, reactions.late) }
    }));
    incidents
}
