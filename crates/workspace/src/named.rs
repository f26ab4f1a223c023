//! Files that a hook names, of which only those are checked that a run without names would check.

use crate::identity::{Identities, identity};
use crate::problem::Problem;
use crate::project::{ProjectFile, Role};
use crate::skipped::{SkipReason, Skipped};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The paths that a request names.
#[derive(Debug)]
pub(crate) struct Named {
    /// Files as they were named, with their identities.
    files: Vec<(PathBuf, PathBuf)>,
    /// Identities of folders, which stand for all that is below them.
    folders: Vec<PathBuf>,
}

impl Named {
    /// Sorts the paths into files and folders; what does not exist is a problem.
    pub(crate) fn new(paths: &[PathBuf], problems: &mut Vec<Problem>) -> Self {
        let mut named = Self { files: Vec::new(), folders: Vec::new() };
        for path in paths {
            match std::fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => named.folders.push(identity(path)),
                Ok(_) => named.files.push((path.clone(), identity(path))),
                Err(error) => problems.push(Problem::io(path, &error)),
            }
        }
        named
    }

    /// Whether the request names the file, or a folder that holds it.
    fn holds(&self, identity: &Path) -> bool {
        self.files.iter().any(|(_, file)| file == identity)
            || self.folders.iter().any(|folder| identity.starts_with(folder))
    }

    /// Narrows a run without names to the named files: the others are history, and those after the last one of a
    /// database play no part. `skipped` becomes the named files that are not checked.
    pub(crate) fn narrow(&self, files: &mut Vec<ProjectFile>, skipped: &mut Vec<Skipped>) {
        let identities = Identities::default();
        for file in files.iter_mut().filter(|file| file.role == Role::Reported) {
            if !self.holds(&identities.of(&file.path)) {
                file.role = Role::History;
            }
        }
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, file) in files.iter().enumerate().filter(|(_, file)| file.role == Role::Reported) {
            last.insert(file.database, at);
        }
        let mut at = 0..;
        files.retain(|file| {
            let at = at.next();
            // Database 0 is what all of them share.
            if file.database == 0 { !last.is_empty() } else { last.get(&file.database).copied() >= at }
        });
        let checked: Vec<PathBuf> = files.iter().map(|file| identities.of(&file.path)).collect();
        let reason = |identity: &Path| {
            let known = skipped.iter().find(|file| identities.of(&file.path) == identity);
            known.map_or(SkipReason::NoMigration, |file| file.reason)
        };
        let left = self.files.iter().filter(|(_, identity)| !checked.contains(identity));
        let named = left.map(|(path, identity)| Skipped { path: path.clone(), reason: reason(identity) }).collect();
        let below = |file: &Skipped| {
            let identity = identities.of(&file.path);
            self.folders.iter().any(|folder| identity.starts_with(folder))
        };
        let in_folders: Vec<Skipped> = skipped.iter().filter(|file| below(file)).cloned().collect();
        *skipped = named;
        skipped.extend(in_folders);
    }
}
