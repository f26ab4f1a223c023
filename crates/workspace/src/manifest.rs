//! The database that a project says its migrations are for: in manifests, configuration and code around them, or in files
//! that tools keep beside them.

use crate::config::absolute;
use crate::dialect::Dialect;
use crate::drivers::{Mentions, is_manifest, of_manifest};
use crate::nearby::Nearby;
use crate::queries::prepared_queries;
use crate::roots::Repositories;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use toml::Value;

/// Crates that reach databases, whose features name them.
const CRATES: [&str; 5] = ["diesel", "sqlx", "refinery", "refinery-core", "sea-orm"];

/// Crates that reach one database.
const DRIVERS: [(&str, Dialect); 3] =
    [("rusqlite", Dialect::Sqlite), ("libsql", Dialect::Sqlite), ("mysql_async", Dialect::MySql)];

/// The words of databases in features, drivers and providers.
const DATABASES: [(&str, Dialect); 5] = [
    ("sqlite", Dialect::Sqlite),
    ("rusqlite", Dialect::Sqlite),
    ("turso", Dialect::Sqlite),
    ("mysql", Dialect::MySql),
    ("sqlserver", Dialect::SqlServer),
];

/// A database with which projects for PostgreSQL are often tested.
const TEST_DATABASE: Dialect = Dialect::H2;

/// How many folders above migrations may have the code that runs them, counting their own.
const CODE_LEVELS: usize = 2;

/// What a project says about the database of a folder of migrations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Database {
    /// The database that is not PostgreSQL.
    pub(crate) other: Option<Dialect>,
    /// Another one of which a file of the repository speaks, although there are signs of PostgreSQL, too; or H2, of which
    /// alone the repository speaks.
    pub(crate) doubt: Option<(Dialect, PathBuf)>,
}

/// What single folders say, each of which is read once.
#[derive(Debug, Default)]
pub(crate) struct Manifests(FxHashMap<(PathBuf, bool), Level>);

/// What the files directly in a folder say.
#[derive(Debug, Clone, Default)]
struct Level {
    manifests: Mentions,
    /// Configuration, and code if it may be what runs the migrations.
    others: Mentions,
    /// A file that speaks of a database other than PostgreSQL.
    place: PathBuf,
}

impl Manifests {
    /// Returns what the project around a folder of migrations says about their database. The nearest manifest that has
    /// drivers decides, unless something nearer speaks of PostgreSQL.
    pub(crate) fn database(&mut self, migrations: &Path, nearby: &Nearby) -> Database {
        if let Some(listed) = of_lists(migrations, nearby) {
            return listed;
        }
        let migrations = absolute(migrations);
        let Some(top) = Repositories::default().top(&migrations) else { return Database::default() };
        let mut seen = Mentions::default();
        let mut place = None;
        let inside = migrations.ancestors().take_while(|folder| folder.starts_with(&top));
        for (above, folder) in inside.enumerate() {
            let level = self.level(folder, above < CODE_LEVELS, nearby);
            let all = level.manifests.and(level.others);
            let is_for_tests = level.manifests.other == Some(TEST_DATABASE);
            let is_known = level.manifests.other.is_some() && !all.postgresql && !seen.postgresql;
            if is_known && !is_for_tests {
                return Database { other: level.manifests.other, doubt: None };
            }
            place =
                place.or_else(|| all.other.map(|_| level.place.strip_prefix(&top).unwrap_or(&level.place).to_owned()));
            seen = Mentions { other: seen.other.or(all.other), ..seen.and(all) };
            if !level.manifests.are_none() && (!is_for_tests || all.postgresql) {
                seen.postgresql = true;
                break;
            }
        }
        // Beside PostgreSQL it is for tests. Alone it reads much of what PostgreSQL does.
        if seen.other == Some(TEST_DATABASE) {
            return Database { other: None, doubt: seen.other.zip(place).filter(|_| !seen.postgresql) };
        }
        let doubt = seen.other.zip(place).filter(|_| seen.postgresql);
        Database { other: seen.other.filter(|_| !seen.postgresql), doubt }
    }

    fn level(&mut self, folder: &Path, with_code: bool, nearby: &Nearby) -> &Level {
        self.0.entry((folder.to_owned(), with_code)).or_insert_with(|| Level::of(folder, with_code, nearby))
    }
}

impl Level {
    fn of(folder: &Path, with_code: bool, nearby: &Nearby) -> Self {
        let mut level = Self::default();
        for path in nearby.manifests_and_configuration(folder, with_code) {
            let Some(text) = nearby.text(&path) else { continue };
            let is_cargo = path.ends_with("Cargo.toml");
            let (mentions, of) = if is_cargo {
                (Mentions { other: in_manifest(&text), ..Mentions::of(&text) }, &mut level.manifests)
            } else if is_manifest(&path) {
                (of_manifest(&path, &text), &mut level.manifests)
            } else {
                (Mentions::of(&text), &mut level.others)
            };
            *of = of.and(mentions);
            if mentions.other.is_some() && level.place.as_os_str().is_empty() {
                level.place = path;
            }
        }
        level
    }
}

/// Drizzle's journal and snapshots, Prisma's lock file, and the queries that sqlx has prepared beside the migrations name
/// their database. Source: drizzle-kit 0.31, `meta/_journal.json`, and 1.0.0-rc.5, `snapshot.json`, `dialect`; Prisma 6
/// documentation, "`migration_lock.toml`"; sqlx 0.8, `sqlx-macros-core/src/query/data.rs`, `db_name`.
///
/// `None` if there is no such file.
fn of_lists(migrations: &Path, nearby: &Nearby) -> Option<Database> {
    let named =
        |line: &str| DATABASES.iter().find(|(word, _)| line.contains(&format!("\"{word}\""))).map(|(_, one)| *one);
    let line_of = |file: &Path, key: &str| {
        let text = nearby.text(file)?;
        text.lines().find(|line| line.trim_start().trim_start_matches('"').starts_with(key)).map(str::to_owned)
    };
    let journal = || line_of(&migrations.join("meta/_journal.json"), "dialect");
    let snapshot = || line_of(&migrations.join("snapshot.json"), "dialect");
    let lock = || line_of(&migrations.join("migration_lock.toml"), "provider");
    let lock_above = || line_of(&migrations.parent()?.join("migration_lock.toml"), "provider");
    journal()
        .or_else(snapshot)
        .or_else(lock)
        .or_else(lock_above)
        .or_else(|| {
            line_of(prepared_queries(migrations.parent()?).first()?, "db_name").map(|line| line.to_ascii_lowercase())
        })
        .map(|line| Database { other: named(&line), doubt: None })
}

/// The database of a Cargo.toml, if a crate has the features of that database or is its driver.
fn in_manifest(text: &str) -> Option<Dialect> {
    let manifest: Value = toml::from_str(text).ok()?;
    let of_feature =
        |feature: &str| DATABASES.iter().find(|(word, _)| feature.starts_with(word)).map(|(_, database)| *database);
    let driver =
        || DRIVERS.iter().find(|(name, _)| manifest.get("dependencies").is_some_and(|all| all.get(name).is_some()));
    features(&manifest).into_iter().find_map(of_feature).or_else(|| driver().map(|(_, database)| *database))
}

/// The features of the crates that reach databases; none where the workspace says them.
fn features(manifest: &Value) -> Vec<&str> {
    let tables = ["dependencies", "build-dependencies"].iter().filter_map(|table| manifest.get(table));
    let crates = tables.flat_map(|table| CRATES.iter().filter_map(|name| table.get(name)));
    let dependencies: Vec<&Value> = crates.collect();
    if dependencies.iter().any(|one| one.get("workspace").is_some()) {
        return Vec::new();
    }
    let lists = dependencies.into_iter().filter_map(|one| one.get("features")?.as_array());
    lists.flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn database(file: &str, text: &str) -> Option<Dialect> {
        let root = tempfile::tempdir().unwrap();
        for folder in [".git", "app/migrations/1_a", "app/migrations/meta"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join(file), text).unwrap();
        Manifests::default().database(&root.path().join("app/migrations"), &Nearby::default()).other
    }

    fn of_files(files: &[(&str, &str)]) -> (Option<Dialect>, Option<(Dialect, String)>) {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("app/migrations")).unwrap();
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = Manifests::default().database(&root.join("app/migrations"), &Nearby::default());
        (found.other, found.doubt.map(|(dialect, path)| (dialect, path.to_string_lossy().into_owned())))
    }

    #[test]
    fn queries_that_sqlx_has_prepared_name_their_database() {
        let query = |name: &str| format!("{{\n  \"db_name\": \"{name}\",\n  \"query\": \"SELECT 1\"\n}}\n");
        let setting = ("app/.env", "DATABASE_URL=postgres://localhost/app\n");
        let of = |name: &str| of_files(&[("app/.sqlx/query-0a.json", &query(name)), setting]);
        assert_eq!(of("SQLite"), (Some(Dialect::Sqlite), None));
        assert_eq!(of("MySQL"), (Some(Dialect::MySql), None));
        assert_eq!(of("PostgreSQL"), (None, None));
    }

    #[test]
    fn the_nearest_manifest_with_drivers_decides() {
        let go = ("app/go.mod", "require github.com/mattn/go-sqlite3 v1\n");
        let above = ("package.json", r#"{"dependencies": {"pg": "8"}}"#);
        assert_eq!(of_files(&[go, above]), (Some(Dialect::Sqlite), None));
        assert_eq!(of_files(&[above]), (None, None));
        // A setting for PostgreSQL beside it leaves that open.
        let setting = ("app/.env", "DATABASE_URL=postgres://localhost/app\n");
        assert_eq!(of_files(&[go, setting]), (None, Some((Dialect::Sqlite, "app/go.mod".to_owned()))));
        let both = ("app/go.mod", "require (\n\tmodernc.org/sqlite v1\n\tgithub.com/jackc/pgx/v5 v5\n)\n");
        assert_eq!(of_files(&[both]), (None, Some((Dialect::Sqlite, "app/go.mod".to_owned()))));
        let without = ("app/package.json", r#"{"dependencies": {"react": "19"}}"#);
        assert_eq!(of_files(&[without, ("go.mod", go.1)]), (Some(Dialect::Sqlite), None));
    }

    #[test]
    fn a_project_that_has_only_h2_is_doubted() {
        let manifest = ("app/pom.xml", "<groupId>com.h2database</groupId>");
        let setting = ("app/application.properties", "spring.datasource.url=jdbc:h2:mem:app\n");
        assert_eq!(of_files(&[manifest]), (None, Some((Dialect::H2, "app/pom.xml".to_owned()))));
        assert_eq!(of_files(&[setting]), (None, Some((Dialect::H2, "app/application.properties".to_owned()))));
        let both = ("app/pom.xml", "<groupId>org.postgresql</groupId><groupId>com.h2database</groupId>");
        assert_eq!(of_files(&[both]), (None, None), "it is for tests");
        assert_eq!(
            of_files(&[manifest, ("app/application-prod.yml", "url: jdbc:postgresql://db/app\n")]),
            (None, None)
        );
        assert_eq!(of_files(&[manifest, ("pom.xml", "<groupId>org.postgresql</groupId>")]), (None, None));
        let mysql = ("app/pom.xml", "<groupId>com.h2database</groupId><artifactId>mysql-connector-j</artifactId>");
        assert_eq!(of_files(&[mysql]), (Some(Dialect::MySql), None));
    }

    #[test]
    fn configuration_and_code_name_the_database_where_no_manifest_does() {
        let code = ("app/store.py", "import sqlite3\n");
        assert_eq!(of_files(&[code]), (Some(Dialect::Sqlite), None));
        assert_eq!(of_files(&[("store.py", code.1)]), (None, None), "too far away");
        let compose = ("compose.yml", "services:\n  db:\n    image: postgres:16\n");
        assert_eq!(of_files(&[code, compose]), (None, Some((Dialect::Sqlite, "app/store.py".to_owned()))));
        let mysql = ("compose.yml", "services:\n  db:\n    image: mysql:8\n");
        assert_eq!(of_files(&[mysql]), (Some(Dialect::MySql), None));
        let address = ("app/config.toml", "url = \"sqlite://app.db\"\n");
        assert_eq!(of_files(&[address]), (Some(Dialect::Sqlite), None));
    }

    #[test]
    fn a_manifest_names_the_database() {
        let diesel =
            |features: &str| format!("[dependencies]\ndiesel = {{ version = \"2\", features = [{features}] }}\n");
        assert_eq!(database("app/Cargo.toml", &diesel("\"sqlite\", \"r2d2\"")), Some(Dialect::Sqlite));
        assert_eq!(database("Cargo.toml", "[dependencies.sqlx]\nfeatures = [\"mysql\"]\n"), Some(Dialect::MySql));
        assert_eq!(database("app/Cargo.toml", &diesel("\"sqlite\", \"postgres\"")), None);
        assert_eq!(database("app/Cargo.toml", &diesel("\"r2d2\"")), None);
        let optional = diesel("\"sqlite\"") + "[features]\npostgresql = [\"diesel/postgres\"]\n";
        assert_eq!(database("app/Cargo.toml", &optional), None);
        assert_eq!(database("app/Cargo.toml", "not TOML ["), None);
    }

    #[test]
    fn lists_of_tools_name_the_database() {
        assert_eq!(
            database("app/migrations/meta/_journal.json", "{\n  \"dialect\": \"sqlite\",\n"),
            Some(Dialect::Sqlite)
        );
        assert_eq!(database("app/migrations/meta/_journal.json", "{\n  \"dialect\": \"postgresql\",\n"), None);
        assert_eq!(database("app/migrations/snapshot.json", "{\n  \"dialect\": \"sqlite\",\n"), Some(Dialect::Sqlite));
        assert_eq!(database("app/migrations/migration_lock.toml", "provider = \"mysql\"\n"), Some(Dialect::MySql));
    }
}
