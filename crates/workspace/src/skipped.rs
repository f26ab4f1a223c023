//! Files and folders whose names say that they are no migrations for PostgreSQL.

use crate::order;
use crate::roots::{self, Repositories};
use ignore::DirEntry;
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};

/// Folders that hold no migrations of the project itself: those of its dependencies, builds and tests.
const SKIPPED_FOLDERS: [&str; 8] =
    ["node_modules", "vendor", "target", "testdata", "test", "tests", "__tests__", "spec"];

/// Last words of the names of folders with what shows or tries something: `samples`, `spring-session-samples`.
const SHOWING: [&str; 12] = [
    "sample", "samples", "example", "examples", "demo", "demos", "stub", "stubs", "mock", "mocks", "fixture",
    "fixtures",
];

/// Folders of Perl's tests, which `prove` looks for in `t`, and of pgTAP's.
const PERL_TESTS: [&str; 2] = ["t", "pgtap"];

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

/// Is this a folder that holds no migrations of the project? With `asides`, those that stand beside them count.
pub(crate) fn is_skipped_folder(entry: &DirEntry, asides: bool) -> bool {
    let skipped = |name: &str| {
        SKIPPED_FOLDERS.contains(&name) || is_for_another(name) || (!asides && is_aside_folder(entry.path(), name))
    };
    let is_below = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
    is_below && entry.file_name().to_str().is_some_and(skipped)
}

/// Does a folder hold samples, tests, or data of developers, and no migrations? Below a folder that is named so,
/// everything is one: a module there may well be about samples.
fn is_aside_folder(path: &Path, name: &str) -> bool {
    (is_named_aside(name) || is_local(path, name)) && !is_among_migrations(path)
}

/// Does the name say that the folder stands beside what is run in production? One that begins with a version is a
/// migration: `20240131_add_samples/migration.sql`.
pub(crate) fn is_named_aside(name: &str) -> bool {
    if is_source_set_of_tests(name) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(SEPARATORS).next().unwrap_or_default();
    PERL_TESTS.contains(&name.as_str())
        || (SHOWING.contains(&last) && !name.starts_with(|first: char| first.is_ascii_digit()))
}

/// Gradle keeps tests of a kind in `src/integrationTest`.
fn is_source_set_of_tests(name: &str) -> bool {
    let kind = name.strip_suffix("Test").or_else(|| name.strip_suffix("Tests"));
    kind.is_some_and(|kind| kind.starts_with(char::is_lowercase) && kind.ends_with(char::is_lowercase))
}

/// Spring applications run `db/local` after `db/migration` on the computers of developers.
fn is_local(path: &Path, name: &str) -> bool {
    name == "local" && ["migration", "migrations"].iter().any(|beside| path.with_file_name(beside).is_dir())
}

fn is_among_migrations(path: &Path) -> bool {
    path.parent().is_some_and(|parent| roots::named_folder(parent, &mut Repositories::default()).is_some())
}

/// Does the name of a file say test or demo, as `test_x.sql`, `x.spec.sql` and `x_demo.sql` do? One with a version is a
/// migration, and about a test: `V2__demo.sql`.
pub(crate) fn is_aside_file(path: &Path) -> bool {
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let stem = stem.to_ascii_lowercase();
    let says_so = ["test", "demo"].contains(&stem.as_str())
        || ["test_", "test-", "test."].iter().any(|start| stem.starts_with(start))
        || ["_test", "-test", ".test", ".spec", "_demo", "-demo"].iter().any(|end| stem.ends_with(end));
    says_so && !order::is_versioned(path) && !is_among_migrations(path)
}

/// Does a word of a folder's name say that it is for another database, and none that it is for PostgreSQL? A folder with a
/// version may be a migration, and is about that database: `20240131_drop_mysql/migration.sql`.
pub(crate) fn is_for_another(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let mut words = name.split(SEPARATORS);
    words.clone().any(|word| OTHER_DIALECTS.contains(&word)) && !words.any(|word| OWN_NAMES.contains(&word))
}

const SEPARATORS: [char; 3] = ['-', '_', '.'];

/// Leaves out `schema-mysql.sql` beside `schema-postgresql.sql`: what a migration for PostgreSQL is about may well be MySQL.
pub(crate) fn leave_out_variants(files: &mut Vec<PathBuf>) {
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

pub(crate) fn is_sql(name: &str) -> bool {
    let Some(stem) = name.len().checked_sub(4).filter(|at| name.is_char_boundary(*at)).map(|at| name.split_at(at))
    else {
        return false;
    };
    stem.1.eq_ignore_ascii_case(".sql") && !stem.0.split('.').skip(1).any(|part| OTHER_DIALECTS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::files_at;
    use crate::identity::Identities;
    use std::fs;

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

    /// Which of the files are found below a folder that holds all of them.
    fn found(all: &[&str]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".git")).unwrap();
        for file in all {
            fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
            fs::write(root.path().join(file), "").unwrap();
        }
        let mut problems = Vec::new();
        let found = files_at(root.path(), &Identities::default(), &mut problems);
        assert_eq!(problems, []);
        let relative = |file: PathBuf| crate::discovery::display(file.strip_prefix(root.path()).unwrap());
        let mut found: Vec<String> = found.into_iter().map(relative).collect();
        found.sort();
        found
    }

    #[test]
    fn folders_beside_migrations_are_skipped() {
        let kept = [
            "db/dev/1.sql",
            "db/migration/V1__a.sql",
            "db/migration/samples/V2__a.sql",
            "local/migrations/1.sql",
            "20240131_add_samples/migration.sql",
            "modules/sampler/1.sql",
            "t2/1.sql",
            "LabTest/1.sql",
        ];
        let skipped = [
            "t/sql/a.sql",
            "core/pgtap/a.sql",
            "x/popx/stub/migrations/1.sql",
            "spring-session-samples/boot/schema.sql",
            "Examples/a/db/migrations/1.sql",
            "src/mocks/1.sql",
            "db/fixtures/users.sql",
            "db/local/V99__data.sql",
            "src/integrationTest/sql/a.sql",
        ];
        let mut expected = kept;
        expected.sort_unstable();
        assert_eq!(found(&[kept.as_slice(), &skipped].concat()), expected);
    }

    #[test]
    fn files_named_for_tests_are_skipped_unless_they_have_a_version() {
        let kept = [
            "sql/20240101_add_ab_test.sql",
            "sql/1_demo.sql",
            "sql/V2__demo.sql",
            "sql/R__test.sql",
            "sql/latest.sql",
            "sql/testimonials.sql",
            "sql/lab_tests.sql",
            "sql/order_spec.sql",
            "deploy/add_ab_test.sql",
            "deploy/test_accounts.sql",
        ];
        let skipped = [
            "sql/emaj_demo.sql",
            "sql/x_test.sql",
            "sql/Test-uniqueness.sql",
            "sql/x.spec.sql",
            "demo.sql",
            "test.sql",
        ];
        let mut expected = kept;
        expected.sort_unstable();
        assert_eq!(found(&[kept.as_slice(), &skipped].concat()), expected);
    }

    #[test]
    fn what_is_beside_nothing_is_checked() {
        assert_eq!(found(&["examples/a/1.sql", "demo.sql"]), ["demo.sql", "examples/a/1.sql"]);
    }

    #[test]
    fn whoever_names_a_folder_of_samples_wants_all_of_it_checked() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("t/pgtap")).unwrap();
        fs::write(at("t/pgtap/a.sql"), "").unwrap();
        fs::write(at("t/b_test.sql"), "").unwrap();
        let files = files_at(&at("t"), &Identities::default(), &mut Vec::new());
        assert_eq!(files, [at("t/b_test.sql"), at("t/pgtap/a.sql")]);
    }
}
