//! Copies of histories: all files of a folder are, byte for byte, files of another folder that follow each other, such as
//! its first or its last ones. Their findings would be the same twice.

use crate::plan::Database;
use crate::problem::Problem;
use crate::project::{ProjectFile, Role};
use crate::roots;
use crate::skipped::{SkipReason, Skipped};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was excluded because it is a copy.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pub(crate) skipped: Vec<Skipped>,
    /// One for each folder.
    pub(crate) notes: Vec<Problem>,
}

/// Removes the histories that another history repeats. `given`: the paths that the request names.
pub(crate) fn exclude(files: &mut Vec<ProjectFile>, databases: &[Database], given: &[PathBuf]) -> Copies {
    let mut histories = histories(files, databases);
    // Of equal ones the first is kept.
    histories.sort_by_key(|history| std::cmp::Reverse(history.files.len()));
    let mut kept: Vec<History> = Vec::new();
    let mut copies: BTreeSet<u32> = BTreeSet::new();
    let mut found = Copies::default();
    for history in histories {
        let is_wanted =
            history.files.iter().any(|file| given.contains(&file.path) || file.config.is_included(&file.path));
        match kept.iter().find(|other| !is_wanted && history.repeats(other)) {
            Some(other) => {
                found.notes.push(note(&history, other));
                copies.insert(history.number);
            }
            None => kept.push(history),
        }
    }
    let is_copied = |file: &ProjectFile| copies.contains(&file.database);
    let skipped = files.iter().filter(|file| is_copied(file) && file.role == Role::Reported);
    found.skipped = skipped.map(|file| Skipped { path: file.path.clone(), reason: SkipReason::Copy }).collect();
    files.retain(|file| !is_copied(file));
    found
}

/// The migrations of a database in their order.
struct History<'a> {
    number: u32,
    root: &'a Path,
    files: Vec<&'a ProjectFile>,
}

/// The histories that were found in folders.
fn histories<'a>(files: &'a [ProjectFile], databases: &'a [Database]) -> Vec<History<'a>> {
    let found = databases.iter().zip(1..).filter(|(database, _)| !database.root.as_os_str().is_empty());
    let history = |(database, number): (&'a Database, u32)| {
        let own = files.iter().filter(|file| file.database == number && file.role.is_migration());
        History { number, root: &database.root, files: own.collect() }
    };
    found.map(history).filter(|history| !history.files.is_empty()).collect()
}

impl History<'_> {
    /// Whether the other history has the same files, one after the other, and reports all that this one reports.
    fn repeats(&self, other: &Self) -> bool {
        self.place_in(other).is_some()
    }

    /// The place in the other history at which the same files begin.
    fn place_in(&self, other: &Self) -> Option<usize> {
        let is_same = |(own, others): (&&ProjectFile, &&ProjectFile)| {
            own.path.strip_prefix(self.root).ok() == others.path.strip_prefix(other.root).ok()
                && own.shown().text == others.shown().text
                && own.layout == others.layout
                && own.incidents == others.incidents
                && own.evidence.idle == others.evidence.idle
                && own.evidence.timeout == others.evidence.timeout
                && (Arc::ptr_eq(&own.config, &others.config) || own.config.files == others.config.files)
                && own.config.levels_of(&own.path) == others.config.levels_of(&others.path)
                && (own.role != Role::Reported || others.role == Role::Reported)
        };
        let first = self.files.first()?;
        // A name occurs once in a history.
        let place = other.files.iter().position(|file| is_same((first, file)))?;
        let others = &other.files[place..];
        (self.files.len() <= others.len() && self.files.iter().zip(others).all(is_same)).then_some(place)
    }
}

fn note(copy: &History<'_>, original: &History<'_>) -> Problem {
    let count = copy.files.len();
    let which = match copy.place_in(original) {
        _ if count == original.files.len() => "the ",
        Some(0) => "the first ",
        Some(place) if place + count == original.files.len() => "the last ",
        _ => "",
    };
    let (migrations, them) = match count {
        1 if which.is_empty() => ("a migration".to_owned(), "it"),
        1 => (format!("{which}migration"), "it"),
        _ => (format!("{which}{count} migrations"), "them"),
    };
    let message =
        format!("repeats {migrations} of `{}`, so pgvet does not check {them} again", roots::shown(original.root));
    let help = "under [migrations] in pgvet.toml, `exclude` one of the folders, or `include` both";
    Problem::new(copy.root, message, Some(help))
}

#[cfg(test)]
mod tests {
    use crate::project::{Project, Request};
    use std::fs;
    use std::path::Path;

    /// The files that are checked, those that are skipped, and the notes.
    fn checked(files: &[(&str, &str)]) -> (Vec<String>, usize, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let request = Request { paths: vec![folder.path().to_owned()], ..Request::default() };
        let project = Project::load(&request, &|_, _| {}).unwrap();
        let shown = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
        let notes = project.notes.iter().map(|note| note.message.replace(&format!("{}/", folder.path().display()), ""));
        (project.files.iter().map(|file| shown(&file.path)).collect(), project.skipped.len(), notes.collect())
    }

    #[test]
    fn a_folder_whose_files_begin_another_one_is_a_copy() {
        let (one, two) = ("CREATE TABLE a (b int);", "ALTER TABLE a ADD c int NOT NULL;");
        let files = [("x/migrations/1_a.sql", one), ("y/migrations/1_a.sql", one), ("y/migrations/2_b.sql", two)];
        let said = "repeats the first migration of `y/migrations`, so pgvet does not check it again";
        let kept = ["y/migrations/1_a.sql", "y/migrations/2_b.sql"].map(str::to_owned).to_vec();
        assert_eq!(checked(&files), (kept, 1, vec![said.to_owned()]));
        let equal = [files[0], ("x/migrations/2_b.sql", two), files[1], files[2]];
        let said = "repeats the 2 migrations of `x/migrations`, so pgvet does not check them again";
        let kept = ["x/migrations/1_a.sql", "x/migrations/2_b.sql"].map(str::to_owned).to_vec();
        assert_eq!(checked(&equal), (kept, 2, vec![said.to_owned()]));
    }

    #[test]
    fn another_text_name_or_order_makes_another_history() {
        let (one, two) = ("CREATE TABLE a (b int);", "ALTER TABLE a ADD c int NOT NULL;");
        let first = ("x/migrations/1_a.sql", one);
        for (path, text) in [
            ("y/migrations/1_a.sql", "CREATE TABLE a (b int); "),
            ("y/migrations/1_b.sql", one),
            ("y/migrations/2_b.sql", two),
        ] {
            assert_eq!(checked(&[first, (path, text)]).1, 0, "{path}");
        }
    }

    #[test]
    fn a_folder_that_has_the_last_files_of_another_one_is_a_copy() {
        let texts = ["CREATE TABLE a (b int);", "ALTER TABLE a ADD c int NOT NULL;", "CREATE INDEX ON a (c);"];
        let paths = ["x/migrations/1_a.sql", "x/migrations/2_b.sql", "x/migrations/3_c.sql"];
        let whole: Vec<(&str, &str)> = paths.into_iter().zip(texts).collect();
        let with = |others: &[(&str, &str)]| checked(&[&whole, others].concat());
        let last = [("y/migrations/2_b.sql", texts[1]), ("y/migrations/3_c.sql", texts[2])];
        let (kept, skipped, notes) = with(&last);
        assert_eq!((kept, skipped), (paths.map(str::to_owned).to_vec(), 2));
        assert_eq!(notes, ["repeats the last 2 migrations of `x/migrations`, so pgvet does not check them again"]);
        assert_eq!(with(&[last[0]]).2, ["repeats a migration of `x/migrations`, so pgvet does not check it again"]);
        assert_eq!(with(&[("y/migrations/1_a.sql", texts[0]), last[1]]).1, 0, "one of the middle is missing");
        assert_eq!(with(&[last[0], ("y/migrations/3_c.sql", texts[0])]).1, 0, "another text");
    }
}
