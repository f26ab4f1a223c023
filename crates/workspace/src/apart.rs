//! Folders below one root that hold the migrations of databases of their own.

use crate::config::Config;
use crate::layout::{self, Folders};
use crate::{order, read, rollback_name, roots};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Returns for each file below a folder of migrations the folder of its own database, if there are several: a folder that
/// its tool reads alone is a history of its own, and so are folders beside each other with the same versions. Scripts that
/// fill a new database run before any other file.
pub(crate) fn databases(root: &Path, files: &[&Path], folders: &Folders, config: &Config) -> Vec<Option<PathBuf>> {
    let alone = read_alone(files, folders, config);
    let is_own = |file: &Path, folder: &PathBuf| alone.contains(folder) || folders.fills_new_database(file);
    let own = files.iter().map(|file| Some(order::sequence(file)).filter(|folder| is_own(file, folder)));
    own.zip(roots::databases_below(root, files)).map(|(alone, below)| alone.or(below)).collect()
}

/// The folders with versions whose tool reads nothing but them, if there are others.
fn read_alone(files: &[&Path], folders: &Folders, config: &Config) -> Vec<PathBuf> {
    let mut first: FxHashMap<PathBuf, &Path> = FxHashMap::default();
    for file in files.iter().filter(|file| order::is_versioned(file) && !rollback_name::is_rollback_migration(file)) {
        first.entry(order::sequence(file)).or_insert(file);
    }
    if first.len() < 2 {
        return Vec::new();
    }
    let is_read_alone = |file: &Path| {
        let text = read::whole(file).unwrap_or_default();
        layout::detect(file, &text, folders, config).tool.reads_one_folder()
    };
    first.into_iter().filter(|(_, file)| is_read_alone(file)).map(|(folder, _)| folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::display;
    use std::fs;

    fn apart(text: &str, paths: &[&str]) -> Vec<Option<String>> {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = paths.iter().map(|path| folder.path().join(path)).collect();
        for file in &files {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let own = databases(&folder.path().join("m"), &files, &Folders::default(), &Config::default());
        let shown = |own: PathBuf| display(own.strip_prefix(folder.path()).unwrap());
        own.into_iter().map(|own| own.map(shown)).collect()
    }

    #[test]
    fn scripts_that_fill_a_new_database_are_no_history_of_others() {
        let own = apart("SELECT 1;\n", &["m/1_a.sql", "m/docker-entrypoint-initdb.d/2_b.sql", "m/c/3_c.sql"]);
        assert_eq!(own, [None, Some("m/docker-entrypoint-initdb.d".to_owned()), None]);
    }

    #[test]
    fn a_tool_that_reads_one_folder_never_gets_those_below_or_beside() {
        let goose = "-- +goose Up\nSELECT 1;\n-- +goose Down\nSELECT 2;\n";
        let (outer, inner) = (Some("m/pg".to_owned()), Some("m/pg/enterprise".to_owned()));
        assert_eq!(apart(goose, &["m/pg/1_a.sql", "m/pg/enterprise/2_b.sql"]), [outer, inner]);
        let (one, other) = (Some("m/a".to_owned()), Some("m/b".to_owned()));
        assert_eq!(apart(goose, &["m/a/1_a.sql", "m/b/2_b.sql"]), [one, other]);
        assert_eq!(apart(goose, &["m/1_a.sql", "m/2_b.sql"]), [None, None]);
    }

    #[test]
    fn folders_are_one_history_where_the_tool_looks_below_or_is_unknown() {
        assert_eq!(apart("SELECT 1;", &["m/V1__a.sql", "m/sub/V2__b.sql"]), [None, None]);
        assert_eq!(apart("SELECT 1;", &["m/v1/1_a.sql", "m/v2/2_b.sql"]), [None, None]);
    }
}
