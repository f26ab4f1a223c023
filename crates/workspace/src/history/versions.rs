//! Migrations that have one version.

use super::{runs_once, version_of};
use crate::layout::Tool;
use crate::order::{self, Number};
use crate::project::{ProjectFile, Role};
use crate::rollback_name;
use pgvet_model::incident::{Applied, Incident, IncidentKind};
use rustc_hash::FxHashMap;
use std::path::PathBuf;

/// Notes of migrations that another one has the same version.
pub(crate) fn compare_versions(files: &mut [ProjectFile]) {
    let mut known: FxHashMap<(u32, PathBuf, Vec<Number>), Vec<usize>> = FxHashMap::default();
    let is_compared = |file: &ProjectFile| {
        file.is_run() && file.role.is_migration() && file.layout.tool != Tool::Plain && runs_once(&file.path)
    };
    for (at, file) in files.iter().enumerate().filter(|(_, file)| is_compared(file)) {
        if let Some(version) = order::version(&file.path) {
            known.entry((file.database, order::sequence(&file.path), version)).or_default().push(at);
        }
    }
    let mut found = Vec::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| is_compared(file)) {
        if let Some(twin) = file.past.twin.clone().filter(|_| file.role == Role::Reported) {
            found.push((at, incident(file, twin.0, Some(twin.1))));
        }
    }
    // Any of those that nobody has applied could have another version: the later ones are to get one.
    for same in known.into_values().filter(|same| same.iter().all(|at| files[*at].past.twin.is_none())) {
        for (&other, &at) in same.iter().zip(same.iter().skip(1)) {
            if files[at].role == Role::Reported {
                found.push((at, incident(&files[at], order::place(&files[other].path).1, None)));
            }
        }
    }
    for (at, incident) in found {
        files[at].incidents.push(incident);
    }
}

fn incident(file: &ProjectFile, other: String, applied: Option<Applied>) -> Incident {
    let reactions = file.layout.tool.reactions_to(&file.path);
    let version = version_of(&file.path);
    let is_rollback = rollback_name::has_word(&order::place(&file.path).1) || rollback_name::has_word(&other);
    let consequence = if applied.is_some() { reactions.same_as_applied } else { reactions.same_version };
    let applied = applied.unwrap_or(Applied::Any);
    Incident {
        kind: IncidentKind::SameVersion { version, other, is_rollback },
        consequence,
        tool: file.layout.tool.title(),
        applied,
    }
}
