//! Applied migrations whose files are gone.

use super::{runs_once, version_of};
use crate::git::{Change, Changes};
use crate::identity::Identities;
use crate::layout::Reactions;
use crate::order;
use crate::plan::Source;
use pgvet_model::incident::{Consequence, IncidentKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What has become of an applied migration.
#[derive(Debug, Clone)]
pub(crate) struct Removed {
    pub(crate) kind: IncidentKind,
    /// Whether no other applied migration of its folder comes after it.
    was_newest: bool,
}

impl Removed {
    /// Returns what a tool does then.
    pub(super) fn consequence(&self, reactions: &Reactions) -> Consequence {
        match &self.kind {
            IncidentKind::Renamed { changes_version: false, .. } => reactions.retitled,
            IncidentKind::Renamed { .. } => reactions.renumbered,
            _ if self.was_newest => reactions.newest_removed,
            _ => reactions.removed,
        }
    }

    /// Finds the applied migrations of a database that are gone, with their identities: each that was renamed, and one that
    /// stands for all that were deleted.
    pub(crate) fn find(
        sources: &[Source],
        changes: &Changes,
        identities: &Identities,
        is_migration: impl Fn(&Path) -> bool,
    ) -> Vec<(Vec<PathBuf>, Self)> {
        let present: Vec<PathBuf> = sources.iter().map(|source| identities.of(&source.path)).collect();
        let folders: BTreeSet<PathBuf> = present.iter().map(|path| order::sequence(path)).collect();
        let is_of_database = |path: &&Path| runs_once(path) && folders.contains(&order::sequence(path));
        let mut gone: Vec<PathBuf> =
            changes.gone().filter(is_of_database).filter(|path| is_migration(path)).map(Path::to_owned).collect();
        order::sort_by(&mut gone, Clone::clone);
        let applied = |path: &&PathBuf| runs_once(path) && changes.of(path) != Some(Change::Added);
        let is_newest = |path: &Path| {
            let mut order: Vec<&Path> = present.iter().filter(applied).map(PathBuf::as_path).collect();
            order.retain(|other| order::sequence(other) == order::sequence(path));
            order.push(path);
            order::sort_by(&mut order, |path| path.to_path_buf());
            order.last() == Some(&path)
        };
        let mut found = Vec::new();
        let mut deleted: Vec<PathBuf> = Vec::new();
        for path in gone {
            match changes.renamed_to(&path).filter(|to| present.iter().any(|known| known == to)) {
                // It has moved to another folder.
                Some(to) if order::place(to).1 == order::place(&path).1 => {}
                Some(to) => {
                    let changes_version = version_of(to) != version_of(&path);
                    let kind = IncidentKind::Renamed { to: order::place(to).1, changes_version };
                    let was_newest = is_newest(&path);
                    found.push((vec![path], Self { kind, was_newest }));
                }
                None => deleted.push(path),
            }
        }
        let was_newest = deleted.iter().any(|path| is_newest(path));
        if !deleted.is_empty() {
            let may_be_replaced = present.iter().any(|path| changes.of(path).is_some() && runs_once(path));
            let kind = IncidentKind::Removed { others: deleted.len() - 1, may_be_replaced };
            found.push((deleted, Self { kind, was_newest }));
        }
        found
    }
}
