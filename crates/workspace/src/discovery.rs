//! From the paths on the command line to the SQL files behind them.

use crate::identity::Identities;
use crate::order;
use ignore::{DirEntry, WalkBuilder};
use rustc_hash::FxHashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why something that was asked for could not be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    /// What is wrong, as the end of the sentence "`path` ...".
    pub message: String,
    /// The next step, where there is one.
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn new(path: &Path, message: impl Into<String>, help: Option<&str>) -> Self {
        Self { path: display(path), message: message.into(), help: help.map(str::to_owned) }
    }

    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound if path.is_symlink() => {
                Self::new(path, "is a symbolic link to something that does not exist", None)
            }
            io::ErrorKind::NotFound => Self::new(
                path,
                "does not exist",
                Some("check the spelling; the path is relative to the current folder"),
            ),
            io::ErrorKind::PermissionDenied => {
                Self::new(path, format!("cannot be read: {error}"), Some("check its permissions"))
            }
            _ => Self::new(path, format!("cannot be read: {error}"), None),
        }
    }
}

/// Folders that hold no migrations of the project itself: those of its dependencies, builds and tests.
const SKIPPED_FOLDERS: [&str; 8] =
    ["node_modules", "vendor", "target", "testdata", "test", "tests", "__tests__", "spec"];

/// Names of other databases: `mysql/1_x.sql`, `sqlite-persistence/1_x.sql` and `1_x.mysql.up.sql` are not for PostgreSQL.
const OTHER_DIALECTS: [&str; 19] = [
    "mysql",
    "mariadb",
    "sqlite",
    "sqlite3",
    "cockroach",
    "cockroachdb",
    "crdb",
    "mssql",
    "sqlserver",
    "oracle",
    "h2",
    "hsqldb",
    "derby",
    "db2",
    "clickhouse",
    "redshift",
    "snowflake",
    "bigquery",
    "spanner",
];

/// Names of PostgreSQL, as in `mysql_to_postgres`.
const OWN_NAMES: [&str; 5] = ["postgres", "postgresql", "pg", "psql", "pgsql"];

/// The SQL files that `path` stands for: itself, or all below it in the order of its migration tool.
pub(crate) fn files_at(path: &Path, identities: &Identities, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return vec![path.to_owned()],
        Err(error) => {
            problems.push(Problem::io(path, &error));
            return Vec::new();
        }
    }
    let known = problems.len();
    let mut files = walk(path, true, identities, problems);
    if files.is_empty() {
        // Whoever names a folder that git ignores wants it checked.
        files = walk(path, false, identities, &mut Vec::new());
    }
    if files.is_empty() && problems.len() == known {
        problems.push(Problem::new(path, "holds no SQL files", Some("name a folder or file with `.sql` migrations")));
    }
    order::sort(files)
}

/// What stands in hidden folders is left out, and what git ignores: a build copies migrations. Links to folders are not
/// followed: they may lead back here.
fn walk(root: &Path, as_git: bool, identities: &Identities, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).hidden(true).filter_entry(|entry| !is_skipped(entry));
    walk.git_ignore(as_git).git_exclude(as_git).git_global(as_git).parents(as_git);
    let mut files = Vec::new();
    for entry in walk.build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.extend(problem(root, error));
                continue;
            }
        };
        let is_link = entry.path_is_symlink();
        let is_folder =
            if is_link { entry.path().is_dir() } else { entry.file_type().is_some_and(|kind| kind.is_dir()) };
        if !is_folder && is_sql(&entry.file_name().to_string_lossy()) {
            if !is_link {
                identities.know(entry.path());
            }
            files.push(entry.into_path());
        }
    }
    leave_out_variants(&mut files);
    files
}

fn is_skipped(entry: &DirEntry) -> bool {
    let skipped = |name: &str| SKIPPED_FOLDERS.contains(&name) || is_for_another(name);
    let is_below = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
    is_below && entry.file_name().to_str().is_some_and(skipped)
}

/// Does a word of a folder's name say that it is for another database, and none that it is for PostgreSQL? A folder with a
/// version may be a migration, and is about that database: `20240131_drop_mysql/migration.sql`.
fn is_for_another(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let mut words = name.split(SEPARATORS);
    words.clone().any(|word| OTHER_DIALECTS.contains(&word)) && !words.any(|word| OWN_NAMES.contains(&word))
}

const SEPARATORS: [char; 3] = ['-', '_', '.'];

/// Leaves out `schema-mysql.sql` beside `schema-postgresql.sql`: what a migration for PostgreSQL is about may well be MySQL.
fn leave_out_variants(files: &mut Vec<PathBuf>) {
    let variant = |file: &Path| {
        let stem = file.file_stem()?.to_str()?.to_ascii_lowercase();
        let (of, database) = stem.rsplit_once(SEPARATORS)?;
        Some((file.with_file_name(of), database.to_owned()))
    };
    let is_own = |database: &str| OWN_NAMES.contains(&database);
    let own: FxHashSet<PathBuf> = files
        .iter()
        .filter_map(|file| variant(file))
        .filter(|(_, database)| is_own(database))
        .map(|(of, _)| of)
        .collect();
    let is_of_another = |file: &PathBuf| {
        variant(file).is_some_and(|(of, database)| OTHER_DIALECTS.contains(&database.as_str()) && own.contains(&of))
    };
    files.retain(|file| !is_of_another(file));
}

/// What could not be read; a line of `.gitignore` that cannot be read ignores nothing.
fn problem(root: &Path, error: ignore::Error) -> Option<Problem> {
    let path = match &error {
        ignore::Error::WithPath { path, .. } => path.clone(),
        ignore::Error::WithDepth { err, .. } => match &**err {
            ignore::Error::WithPath { path, .. } => path.clone(),
            _ => root.to_owned(),
        },
        _ => root.to_owned(),
    };
    error.into_io_error().map(|error| Problem::io(&path, &error))
}

fn is_sql(name: &str) -> bool {
    let Some(stem) = name.len().checked_sub(4).filter(|at| name.is_char_boundary(*at)).map(|at| name.split_at(at))
    else {
        return false;
    };
    stem.1.eq_ignore_ascii_case(".sql") && !stem.0.split('.').skip(1).any(|part| OTHER_DIALECTS.contains(&part))
}

/// A path as it is shown: the way the user named it, with slashes, and without `./` before it.
pub(crate) fn display(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = if std::path::MAIN_SEPARATOR == '\\' { text.replace('\\', "/") } else { text.into_owned() };
    match text.strip_prefix("./") {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sql_for_postgresql_counts() {
        for name in ["a.sql", "B.SQL", "1_x.up.sql", "1_x.postgres.up.sql"] {
            assert!(is_sql(name), "{name}");
        }
        for name in ["a.sql.conf", "sql", "1_x.mysql.up.sql", "1_x.cockroach.autocommit.up.sql", "é.rs"] {
            assert!(!is_sql(name), "{name}");
        }
    }

    #[test]
    fn hidden_and_foreign_folders_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        for folder in [
            ".git",
            "node_modules",
            "vendor",
            "target",
            "testdata",
            "src/test/db",
            "tests",
            "mysql",
            "sqlite-storage",
            "H2",
            "db",
        ] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("1.sql"), "").unwrap();
        }
        let mut problems = Vec::new();
        let mut files = |folder: &str| files_at(&root.path().join(folder), &Identities::default(), &mut problems);
        assert_eq!(files(""), [root.path().join("db/1.sql")]);
        // Whoever names such a folder wants it checked.
        for (folder, file) in [("tests", "tests/1.sql"), ("src/test/db", "src/test/db/1.sql"), ("mysql", "mysql/1.sql")]
        {
            assert_eq!(files(folder), [root.path().join(file)]);
        }
        assert_eq!(problems, []);
    }

    #[test]
    fn a_migration_about_another_database_is_none_for_it() {
        let root = tempfile::tempdir().unwrap();
        let migration = root.path().join("20240131_drop_mysql/migration.sql");
        fs::create_dir(migration.parent().unwrap()).unwrap();
        fs::write(&migration, "").unwrap();
        assert_eq!(files_at(root.path(), &Identities::default(), &mut Vec::new()), [migration]);
    }

    #[test]
    fn variants_for_other_databases_are_skipped_beside_that_for_postgresql() {
        let root = tempfile::tempdir().unwrap();
        for name in ["schema-mysql.sql", "schema-postgresql.sql", "1.1_oracle.sql", "1.1_pg.sql", "2_drop_mysql.sql"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let files = files_at(root.path(), &Identities::default(), &mut Vec::new());
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["1.1_pg.sql", "2_drop_mysql.sql", "schema-postgresql.sql"]);
    }

    #[test]
    fn what_git_ignores_is_skipped_unless_it_is_named() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in [".git", "db", "build/db"] {
            fs::create_dir_all(at(folder)).unwrap();
            fs::write(at(folder).join("1.sql"), "").unwrap();
        }
        fs::write(at("db/scratch.sql"), "").unwrap();
        fs::write(at(".gitignore"), "build/**\nscratch.*\n").unwrap();
        let mut problems = Vec::new();
        let mut files = |path: &str| files_at(&at(path), &Identities::default(), &mut problems);
        assert_eq!(files(""), [at("db/1.sql")]);
        assert_eq!(files("db"), [at("db/1.sql")]);
        assert_eq!(files("build"), [at("build/db/1.sql")]);
        assert_eq!(files("db/scratch.sql"), [at("db/scratch.sql")]);
        assert_eq!(problems, []);
    }

    #[test]
    fn a_folder_without_sql_and_a_missing_path_are_problems() {
        let root = tempfile::tempdir().unwrap();
        let mut problems = Vec::new();
        assert!(files_at(root.path(), &Identities::default(), &mut problems).is_empty());
        assert!(files_at(&root.path().join("no"), &Identities::default(), &mut problems).is_empty());
        let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages, ["holds no SQL files", "does not exist"]);
    }

    #[test]
    fn paths_are_shown_as_they_were_named() {
        assert_eq!(display(Path::new("./a/b.sql")), "a/b.sql");
        assert_eq!(display(Path::new("/a/b.sql")), "/a/b.sql");
        assert_eq!(display(Path::new(".")), ".");
    }
}
