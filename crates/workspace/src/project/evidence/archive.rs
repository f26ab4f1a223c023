//! Folders that are named as those are whose files nothing runs any more.

use crate::config::absolute;
use crate::layout::Folders;
use crate::nearby::Nearby;
use crate::problem::display;
use crate::project::ProjectFile;
use crate::roots::Repositories;
use pgvet_linter::repository::IdleReason;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::path::{Path, PathBuf};

/// Words that say that something is no longer used.
const UNUSED: [&str; 4] = ["old", "attic", "obsolete", "deprecated"];

/// Words that say so, and are names of services as well.
const AMBIGUOUS: [&str; 4] = ["archive", "archives", "archived", "legacy"];

/// Words at the end of a name that say so where the folder without the word is beside it.
const COPIES: [&str; 5] = ["original", "orig", "backup", "bak", "copy"];

/// Files that make a folder a program of its own.
pub(super) const MANIFESTS: [&str; 10] = [
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "pyproject.toml",
    "mix.exs",
    "Dockerfile",
];

/// Answers for which files a folder above them says that nothing runs them.
pub(super) struct Archives {
    /// The paths that the user names: what is above them says nothing.
    given: Vec<PathBuf>,
    repositories: Repositories,
    /// Whether something names a folder of that name as one of migrations.
    named: FxHashMap<PathBuf, bool>,
}

impl Archives {
    pub(super) fn new(given: &[PathBuf]) -> Self {
        let given = if given.is_empty() { vec![PathBuf::from(".")] } else { given.to_vec() };
        let given = given.iter().map(|path| absolute(path)).collect();
        Self { given, repositories: Repositories::default(), named: FxHashMap::default() }
    }

    pub(super) fn idle(&mut self, file: &ProjectFile, folders: &Folders) -> Option<IdleReason> {
        let path = absolute(&file.path);
        let configured = file.config.folder_of(&path).map(Path::to_owned);
        let given =
            || self.given.iter().filter(|given| path.starts_with(given)).max_by_key(|given| given.as_os_str().len());
        let top = configured.or_else(|| given().cloned())?;
        let below = path.ancestors().skip(1).take_while(|folder| *folder != top && folder.starts_with(&top));
        let folder = below.filter(|folder| is_archive(folder, &path)).last()?.to_owned();
        let name = SmolStr::new(folder.file_name()?.to_string_lossy());
        let list = folders.around(&file.path).list_with(&file.path).map(|root| absolute(&root));
        let is_listed = list.is_some_and(|root| root != folder && folder.starts_with(&root));
        (!is_listed && !self.is_named(&folder, folders.nearby())).then_some(IdleReason::Folder { name })
    }

    /// Whether configuration or code above a folder names it.
    fn is_named(&mut self, folder: &Path, nearby: &Nearby) -> bool {
        if let Some(known) = self.named.get(folder) {
            return *known;
        }
        let top = self.repositories.top(folder);
        let above = folder.ancestors().skip(1);
        let mut inside = above.take_while(|above| top.as_ref().is_some_and(|top| above.starts_with(top)));
        let names =
            |above: &Path| folder.strip_prefix(above).is_ok_and(|relative| nearby.runs_path(above, &display(relative)));
        let is_named = inside.any(names);
        self.named.insert(folder.to_owned(), is_named);
        is_named
    }
}

/// Whether a folder above a file has such a name, and is no program of that name.
fn is_archive(folder: &Path, file: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_version = name.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit());
    let mut words = name.split(['-', '_', '.', ' ']);
    let (first, last) = (words.next().unwrap_or_default(), words.next_back().unwrap_or_default());
    let says = |among: &[&str]| among.contains(&first) || among.contains(&last);
    let is_program = || {
        let between = file.ancestors().skip(1).take_while(|between| between.starts_with(folder));
        between.into_iter().any(|between| MANIFESTS.iter().any(|manifest| between.join(manifest).exists()))
    };
    !is_version && (says(&UNUSED) || (says(&AMBIGUOUS) && !is_program()) || is_copy(folder))
}

/// Whether a folder is called like one beside it with such a word: `migrations-original` and `migrations`.
fn is_copy(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(['-', '_', '.', ' ']).is_some_and(|(of, word)| {
        let says = COPIES.iter().any(|copy| word.eq_ignore_ascii_case(copy));
        says && !of.is_empty() && folder.with_file_name(of).is_dir()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_say_that_nothing_runs_them() {
        let file = |folder: &str| Path::new("/nowhere").join(folder).join("1.sql");
        for name in ["old", "migrations-old", "archived_migrations", "Legacy", "attic"] {
            assert!(is_archive(file(name).parent().unwrap(), &file(name)), "{name}");
        }
        for name in ["20240131_archive", "V2_old", "gold", "household", "archiver", "data"] {
            assert!(!is_archive(file(name).parent().unwrap(), &file(name)), "{name}");
        }
    }
}
