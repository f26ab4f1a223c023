//! Migrations with the down migrations that take them back: sections of the same file, or a file with the same version.

use crate::layout::explicit_order::Orders;
use crate::order;
use crate::project::{Project, ProjectFile, Role};
use crate::rollback_name;
use pgvet_model::migration::Direction;
use std::path::{Path, PathBuf};

/// A file with up migrations, and what takes them back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reversal {
    /// The index in [`Project::files`].
    pub file: usize,
    /// The indexes of its up migrations in [`Project::migrations`].
    pub up: Vec<usize>,
    /// The file with the down migrations, which may be the same.
    pub down_file: Option<usize>,
    /// The indexes of the down migrations in [`Project::migrations`].
    pub down: Vec<usize>,
}

/// The folder whose migrations are run as one sequence with this one, so that the other half of a pair is in it.
pub fn migrations_folder(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(Path::new(""));
    let folder = order::explicit_root(parent).unwrap_or_else(|| order::sequence(path));
    let folder = match folder.parent() {
        Some(around) if rollback_name::is_beside_down_folder(&folder) => around.to_owned(),
        _ => folder,
    };
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder }
}

impl Project {
    /// The files that are run, in order, with their down migrations. A dump has none.
    pub fn reversals(&self) -> Vec<Reversal> {
        let indexes = self.file_indexes();
        let migrations = self.migrations();
        let of_file = |file: usize, direction| -> Vec<usize> {
            let own = indexes.iter().enumerate().filter(|(_, own)| **own == file).map(|(at, _)| at);
            own.filter(|at| migrations[*at].direction == direction).collect()
        };
        let mut orders = Orders::default();
        let mut keyed = |file: &ProjectFile| {
            let parent = file.path.parent().unwrap_or(Path::new(""));
            order::pair_key(&file.path, orders.around(parent).as_deref())
        };
        let is_down = |file: &ProjectFile| {
            let sections = &file.layout.sections;
            !file.layout.unlisted
                && !sections.is_empty()
                && sections.iter().all(|section| section.direction == Direction::Down)
                && (rollback_name::is_rollback_migration(&file.path) || order::is_flyway_undo(&file.path))
        };
        let files = || self.files.iter().enumerate();
        let downs: Vec<(usize, u32, order::PairKey)> =
            files().filter(|(_, file)| is_down(file)).map(|(at, file)| (at, file.database, keyed(file))).collect();
        let run = files().filter(|(_, file)| file.is_run() && !file.is_removed() && !file.layout.unlisted);
        let reversal = |(at, file): (usize, &ProjectFile)| {
            let (up, own) = (of_file(at, Direction::Up), of_file(at, Direction::Down));
            if file.role == Role::Baseline || !own.is_empty() {
                let down_file = (!own.is_empty() && file.role != Role::Baseline).then_some(at);
                return Reversal { file: at, up, down_file, down: own };
            }
            let key = keyed(file);
            let candidates = || downs.iter().filter(|(_, database, _)| *database == file.database);
            let exact = candidates().find(|(_, _, other)| *other == key);
            // Some tools pair by the version alone.
            let of_version = || {
                let mut same = candidates().filter(|(_, _, other)| key.has_version_of(other));
                same.next().filter(|_| same.next().is_none())
            };
            let down_file = exact.or_else(of_version).map(|(down, _, _)| *down);
            let down = down_file.map_or_else(Vec::new, |down| of_file(down, Direction::Down));
            Reversal { file: at, up, down_file, down }
        };
        run.map(reversal).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSource;
    use crate::project::Request;
    use std::fs;

    /// Each migration with its down migration, as paths below the folder.
    fn pairs(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let request = Request { paths: vec![root.path().to_owned()], config: ConfigSource::None, ..Request::default() };
        let project = Project::load(&request, &|_, _| ()).unwrap();
        let name = |file: usize| {
            let path = project.files[file].path.strip_prefix(root.path()).unwrap_or(&project.files[file].path);
            path.display().to_string()
        };
        let pair = |reversal: Reversal| {
            let down = reversal.down_file.map_or_else(|| "nothing".to_owned(), name);
            format!("{} by {down} ({})", name(reversal.file), reversal.down.len())
        };
        project.reversals().into_iter().map(pair).collect()
    }

    const TABLE: &str = "CREATE TABLE t (a int);";
    const DROP: &str = "DROP TABLE t;";

    #[test]
    fn files_are_paired_by_their_names_or_else_by_their_versions() {
        let files = [
            ("m/1_a.up.sql", TABLE),
            ("m/1_a.down.sql", DROP),
            ("m/2_b.up.sql", TABLE),
            ("m/2_renamed.down.sql", DROP),
            ("m/3_c.up.sql", TABLE),
        ];
        assert_eq!(
            pairs(&files),
            [
                "m/1_a.up.sql by m/1_a.down.sql (1)",
                "m/2_b.up.sql by m/2_renamed.down.sql (1)",
                "m/3_c.up.sql by nothing (0)"
            ]
        );
        let folders = [("m/1_a/up.sql", TABLE), ("m/1_a/down.sql", DROP), ("m/2_b/up.sql", TABLE)];
        assert_eq!(pairs(&folders), ["m/1_a/up.sql by m/1_a/down.sql (1)", "m/2_b/up.sql by nothing (0)"]);
    }

    #[test]
    fn sections_of_a_file_are_a_pair() {
        let goose = "-- +goose Up\nCREATE TABLE t (a int);\n-- +goose Down\nDROP TABLE t;\n";
        assert_eq!(pairs(&[("m/1_a.sql", goose)]), ["m/1_a.sql by m/1_a.sql (1)"]);
    }
}
