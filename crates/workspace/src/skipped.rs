//! Files and folders whose names say that they are not migrations for PostgreSQL.

use crate::config::absolute;
use crate::order;
use crate::problem::display;
use crate::roots::{self, Repositories};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Why a file with SQL is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// A folder of dependencies or of a build holds it.
    Dependency,
    /// Its name or that of a folder says that it is for tests.
    Test,
    /// Its name or that of a folder says that it is an example, or data of developers.
    Sample,
    /// Its name, that of a folder, or its text says that it is for another database.
    OtherDatabase,
    /// A library makes code of its queries: sqlc, HugSQL, yesql, aiosql or `PgTyped`.
    Queries,
    /// Programs put values in place of its `?`, `$1` or `%s`, so it is not a migration.
    Parameters,
    /// It is a dump of the whole schema beside migrations.
    Dump,
    /// It has no version, no tool names it, and it is in none of the folders that hold migrations.
    NoMigration,
    /// It is no text, and neither its name nor a tool makes it a migration.
    NoText,
    /// The configuration excludes it.
    Excluded,
    /// The configuration names folders of migrations, and none of them holds it.
    OutsidePaths,
    /// git ignores it and does not track it.
    Ignored,
    /// A folder whose name begins with a dot holds it.
    Hidden,
    /// It is behind a link to a folder, which is not followed.
    LinkedFolder,
    /// git tracks it, and a sparse checkout leaves it out.
    NotCheckedOut,
    /// Its name is that of a migration, but does not end in `.sql`.
    OtherExtension,
    /// Its folder is a copy of the first migrations of another folder, which are checked.
    Copy,
}

impl SkipReason {
    /// Returns the reason as the end of the sentence "3 files are ...".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Dependency => "in dependencies or build output",
            Self::Test => "for tests",
            Self::Sample => "for examples or development",
            Self::OtherDatabase => "for another database system",
            Self::Queries => "with application queries",
            Self::Parameters => "with `?`, `$1` or `%s` for values",
            Self::Dump => "with a dump of the schema",
            Self::NoMigration => "outside of migration folders",
            Self::NoText => "without text",
            Self::Excluded => "excluded by configuration",
            Self::OutsidePaths => "outside of [migrations] paths",
            Self::Ignored => "ignored by git",
            Self::Hidden => "in hidden folders",
            Self::LinkedFolder => "in symbolically linked folders",
            Self::NotCheckedOut => "not checked out",
            Self::OtherExtension => "with an extension other than .sql",
            Self::Copy => "in copies of folders that are checked",
        }
    }
}

/// A file with SQL that is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: PathBuf,
    pub reason: SkipReason,
}

impl Skipped {
    /// Returns the path as it is shown.
    pub fn shown(&self) -> String {
        display(&self.path)
    }
}

/// Why the names in a path say that a file is not a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) reason: SkipReason,
    /// The folder whose name says so; `None` if the name of the file does.
    pub(crate) folder: Option<PathBuf>,
    /// Whether the file is checked if nothing else is found.
    pub(crate) is_fallback: bool,
}

/// Returns the language of a program that a user names in place of the SQL that it runs.
pub(crate) fn language(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "py" => "Python",
        "rb" => "Ruby",
        "ts" | "mts" | "cts" => "TypeScript",
        "js" | "mjs" | "cjs" => "JavaScript",
        "go" => "Go",
        "java" => "Java",
        "kt" => "Kotlin",
        "cs" => "C#",
        "php" => "PHP",
        "ex" | "exs" => "Elixir",
        "rs" => "Rust",
        _ => return None,
    })
}

/// Folders of dependencies and builds.
const DEPENDENCIES: [&str; 3] = ["node_modules", "vendor", "target"];

/// Folders of tests.
const TESTS: [&str; 5] = ["testdata", "test", "tests", "__tests__", "spec"];

/// Names that are ordinary below a folder of migrations, if the migration has a version.
const ORDINARY: [&str; 4] = ["vendor", "target", "test", "tests"];

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

/// Judges the names of files and folders below one folder, each folder once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    folders: FxHashMap<PathBuf, Option<Skip>>,
}

impl Names {
    /// Returns why a file that was found below `root` is skipped, going by its path.
    pub(crate) fn skip(&mut self, root: &Path, file: &Path) -> Option<Skip> {
        if !file.file_name().is_some_and(|name| is_sql(&name.to_string_lossy())) {
            return Some(Skip { reason: SkipReason::OtherExtension, folder: None, is_fallback: false });
        }
        let folder = file.parent().and_then(|folder| self.of_folder(root, folder, order::is_versioned(file)));
        folder.or_else(|| of_file(file))
    }

    /// The outermost folder that is skipped decides.
    fn of_folder(&mut self, root: &Path, folder: &Path, is_versioned: bool) -> Option<Skip> {
        if folder == root || !folder.starts_with(root) {
            return None;
        }
        let name = folder.file_name()?.to_str()?;
        let above = folder.parent().and_then(|above| self.of_folder(root, above, is_versioned));
        if above.is_some() {
            return above;
        }
        let own = self.folders.entry(folder.to_owned()).or_insert_with(|| of_one_folder(folder, name)).clone();
        own.filter(|_| !(is_versioned && is_ordinary(folder, name)))
    }
}

fn of_file(file: &Path) -> Option<Skip> {
    let skip = |reason, is_fallback| Some(Skip { reason, folder: None, is_fallback });
    if file.file_name().is_some_and(|name| is_named_for_another(&name.to_string_lossy())) {
        return skip(SkipReason::OtherDatabase, false);
    }
    if is_test_or_demo(file) { skip(SkipReason::Test, true) } else { None }
}

fn of_one_folder(folder: &Path, name: &str) -> Option<Skip> {
    let skip = |reason, is_fallback| Some(Skip { reason, folder: Some(folder.to_owned()), is_fallback });
    if DEPENDENCIES.contains(&name) {
        return skip(SkipReason::Dependency, false);
    }
    if TESTS.contains(&name) {
        return skip(SkipReason::Test, false);
    }
    if is_for_another(name) {
        return skip(SkipReason::OtherDatabase, false);
    }
    if (is_named_for_samples(name) || is_local(folder, name)) && !is_among_migrations(folder) {
        let is_test = is_source_set_of_tests(name) || PERL_TESTS.contains(&name.to_ascii_lowercase().as_str());
        return skip(if is_test { SkipReason::Test } else { SkipReason::Sample }, true);
    }
    None
}

/// Whether a folder below one of migrations has a name that says nothing there: `migrations/test/V3__a.sql`. `db2` is
/// the second database, unless a folder beside it is named after another one. `src/test` holds tests of Maven and Gradle.
fn is_ordinary(folder: &Path, name: &str) -> bool {
    if name == "test" && folder.parent().is_some_and(|parent| parent.ends_with("src")) {
        return false;
    }
    let is_second = || {
        let beside = folder.parent().and_then(|parent| parent.read_dir().ok()).into_iter().flatten();
        let mut names = beside.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().to_lowercase());
        !names.any(|name| OWN_NAMES.contains(&&*name) || (name != "db2" && OTHER_DIALECTS.contains(&&*name)))
    };
    let is_candidate = ORDINARY.contains(&name) || (name == "db2" && is_second());
    is_candidate && folder.parent().is_some_and(|parent| roots::is_below_migrations(&absolute(parent)))
}

/// Whether the name says that the folder holds samples, tests, or data of developers. Below a folder that is named so,
/// everything is one: a module there may well be about samples. A name that begins with a version is that of a
/// migration: `20240131_add_samples/migration.sql`.
pub(crate) fn is_named_for_samples(name: &str) -> bool {
    if is_source_set_of_tests(name) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(SEPARATORS).next().unwrap_or_default();
    PERL_TESTS.contains(&name.as_str())
        || (SHOWING.contains(&last) && !name.starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether the name says that the folder holds tests, samples, or the rows of developers.
pub(crate) fn is_named_for_tests(name: &str) -> bool {
    const SEEDS: [&str; 2] = ["seed", "seeds"];
    TESTS.contains(&name) || SEEDS.contains(&name) || is_named_for_samples(name)
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

/// Whether the name of a file says test or demo, as `test_x.sql`, `x.spec.sql` and `x_demo.sql` do. One with a version
/// is a migration about a test: `V2__demo.sql`.
fn is_test_or_demo(path: &Path) -> bool {
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let stem = stem.to_ascii_lowercase();
    let says_so = ["test", "demo"].contains(&stem.as_str())
        || ["test_", "test-", "test."].iter().any(|start| stem.starts_with(start))
        || ["_test", "-test", ".test", ".spec", "_demo", "-demo"].iter().any(|end| stem.ends_with(end));
    says_so && !order::is_versioned(path) && !is_among_migrations(path)
}

/// Whether a word of a folder's name says that it is for another database, and none that it is for PostgreSQL. A folder
/// with a version may be a migration about that database: `20240131_drop_mysql/migration.sql`.
pub(crate) fn is_for_another(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let mut words = name.split(SEPARATORS);
    words.clone().any(|word| OTHER_DIALECTS.contains(&word)) && !words.any(|word| OWN_NAMES.contains(&word))
}

const SEPARATORS: [char; 3] = ['-', '_', '.'];

/// Returns the files such as `schema-mysql.sql` beside `schema-postgresql.sql`: alone, what a migration for PostgreSQL is
/// about may well be MySQL.
pub(crate) fn variants<'f>(files: impl Iterator<Item = &'f Path> + Clone) -> FxHashSet<PathBuf> {
    let variant = |file: &Path| {
        let stem = file.file_stem()?.to_str()?.to_ascii_lowercase();
        let (of, database) = stem.rsplit_once(SEPARATORS)?;
        Some((file.with_file_name(of), database.to_owned()))
    };
    let is_own = |database: &str| OWN_NAMES.contains(&database);
    let own: FxHashSet<PathBuf> =
        files.clone().filter_map(variant).filter(|(_, database)| is_own(database)).map(|(of, _)| of).collect();
    let is_of_another = |file: &&Path| {
        variant(file).is_some_and(|(of, database)| OTHER_DIALECTS.contains(&database.as_str()) && own.contains(&of))
    };
    files.filter(is_of_another).map(Path::to_owned).collect()
}

/// Returns the files such as `1_x.up.sql` beside `1_x.postgres.up.sql`: of one version and direction, pop runs the file
/// for its database, and the one for all only where there is none.
///
/// Source: pop, `migration_info.go`, `SortAndFilter`; ory/x, `popx/migration_info.go`, `sortAndFilter`.
pub(crate) fn generic_beside_own<'f>(files: impl Iterator<Item = &'f Path> + Clone) -> FxHashSet<PathBuf> {
    let step = |file: &'f Path| {
        let stem = file.file_name()?.to_str()?.strip_suffix(".sql")?;
        let (name, direction) = stem.rsplit_once('.').filter(|(_, end)| matches!(*end, "up" | "down"))?;
        let (version, name) =
            name.split_once('_').filter(|(version, _)| version.bytes().all(|one| one.is_ascii_digit()))?;
        let database = name.split('.').skip(1).find(|part| *part != "autocommit");
        Some(((file.parent(), version, direction), database))
    };
    let is_own = |database: Option<&str>| database.is_some_and(|database| OWN_NAMES.contains(&database));
    let own: FxHashSet<_> =
        files.clone().filter_map(step).filter(|(_, database)| is_own(*database)).map(|(step, _)| step).collect();
    let is_replaced =
        |file: &&'f Path| step(file).is_some_and(|(step, database)| database.is_none() && own.contains(&step));
    files.filter(is_replaced).map(Path::to_owned).collect()
}

pub(crate) fn is_sql(name: &str) -> bool {
    let extension = name.len().checked_sub(4).filter(|at| name.is_char_boundary(*at)).map(|at| &name[at..]);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case(".sql"))
}

/// The same, or a name that golang-migrate runs whatever its extension: `1_x.up.pgsql`. Those that end as programs do are
/// of other tools.
///
/// Source: golang-migrate, `source/parse.go`.
pub(crate) fn may_be_sql(name: &str) -> bool {
    const OTHER: [&str; 12] = ["go", "fizz", "py", "rb", "js", "ts", "mjs", "cjs", "json", "md", "yml", "yaml"];
    let is_versioned = name.starts_with(|first: char| first.is_ascii_digit());
    let ends_otherwise = || {
        let (stem, extension) = name.rsplit_once('.')?;
        let is_step = stem.strip_suffix(".up").is_some_and(|stem| stem.contains('_'));
        Some(is_step && !extension.is_empty() && !OTHER.contains(&extension))
    };
    is_sql(name) || (is_versioned && ends_otherwise().unwrap_or(false))
}

/// Whether a part of the name is another database: `1_x.mysql.up.sql`.
fn is_named_for_another(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, _)| stem.split('.').skip(1).any(|part| OTHER_DIALECTS.contains(&part)))
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
            assert!(is_sql(name) && !is_named_for_another(name), "{name}");
        }
        for name in ["a.sql.conf", "sql", "é.rs"] {
            assert!(!is_sql(name), "{name}");
        }
        for name in ["1_x.mysql.up.sql", "1_x.cockroach.autocommit.up.sql"] {
            assert!(is_named_for_another(name), "{name}");
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
        // A folder that the user names is checked.
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
        let relative = |file: PathBuf| crate::problem::display(file.strip_prefix(root.path()).unwrap());
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
            "db/migrations/test/V3__a.sql",
            "db/migrations/vendor/2_a/up.sql",
            "db/migrations/db1/1.sql",
            "db/migrations/db2/1.sql",
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
            "db/migrations/tests/helpers.sql",
            "db/migrations/node_modules/1.sql",
            "src/test/resources/db/migration/test/V1__a.sql",
            "all/migrations/db2/1.sql",
            "all/migrations/mysql/1.sql",
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
    fn of_one_step_of_pop_the_file_for_postgresql_is_checked() {
        let kept = [
            "m/1_a.down.sql",
            "m/1_a.postgres.up.sql",
            "m/2_b.postgres.autocommit.up.sql",
            "m/3_c.up.sql",
            "m/4_d.up.sql",
            "n/1_a.up.sql",
        ];
        let skipped = ["m/1_a.up.sql", "m/2_renamed.autocommit.up.sql", "m/3_c.cockroach.up.sql", "m/4_d.mysql.up.sql"];
        assert_eq!(found(&[kept.as_slice(), &skipped].concat()), kept);
    }

    #[test]
    fn what_is_beside_nothing_is_checked() {
        assert_eq!(found(&["examples/a/1.sql", "demo.sql"]), ["demo.sql", "examples/a/1.sql"]);
    }

    #[test]
    fn a_folder_of_samples_that_is_named_is_checked_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("t/pgtap")).unwrap();
        fs::write(at("t/pgtap/a.sql"), "").unwrap();
        fs::write(at("t/b_test.sql"), "").unwrap();
        let files = files_at(&at("t"), &Identities::default(), &mut Vec::new());
        assert_eq!(files, [at("t/b_test.sql"), at("t/pgtap/a.sql")]);
    }
}
