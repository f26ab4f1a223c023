//! The database that a project says its migrations are for: in Cargo.toml, or in files that tools keep beside migrations.

use crate::config::absolute;
use crate::dialect::Dialect;
use crate::nearby::Nearby;
use crate::roots::Repositories;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use toml::Value;

/// Crates that reach databases, whose features name them.
const CRATES: [&str; 5] = ["diesel", "sqlx", "refinery", "refinery-core", "sea-orm"];

/// The words of databases in features, drivers and providers.
const DATABASES: [(&str, Dialect); 5] = [
    ("sqlite", Dialect::Sqlite),
    ("rusqlite", Dialect::Sqlite),
    ("turso", Dialect::Sqlite),
    ("mysql", Dialect::MySql),
    ("sqlserver", Dialect::SqlServer),
];

/// The databases of Rust projects, by the folder of their manifest.
#[derive(Debug, Default)]
pub(crate) struct Manifests(FxHashMap<PathBuf, Option<Dialect>>);

impl Manifests {
    /// Returns the database other than PostgreSQL that the project around a folder of migrations uses, if it says so.
    pub(crate) fn other_database(&mut self, migrations: &Path, nearby: &Nearby) -> Option<Dialect> {
        of_lists(migrations, nearby).or_else(|| self.of_crate(migrations, nearby))
    }

    /// The database of the nearest Cargo.toml.
    fn of_crate(&mut self, migrations: &Path, nearby: &Nearby) -> Option<Dialect> {
        let migrations = absolute(migrations);
        let top = Repositories::default().top(&migrations)?;
        let mut inside = migrations.ancestors().take_while(|folder| folder.starts_with(&top));
        let (folder, text) = inside.find_map(|folder| Some((folder, nearby.text(&folder.join("Cargo.toml"))?)))?;
        *self.0.entry(folder.to_owned()).or_insert_with(|| in_manifest(&text))
    }
}

/// Drizzle's journal and snapshots and Prisma's lock file name their database. Source: drizzle-kit 0.31,
/// `meta/_journal.json`, and 1.0.0-rc.5, `snapshot.json`, `dialect`; Prisma 6 documentation, "`migration_lock.toml`".
fn of_lists(migrations: &Path, nearby: &Nearby) -> Option<Dialect> {
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
    journal().or_else(snapshot).or_else(lock).or_else(lock_above).and_then(|line| named(&line))
}

/// The database of a Cargo.toml, if a crate has the features of that database, and nothing in the manifest speaks of
/// PostgreSQL.
fn in_manifest(text: &str) -> Option<Dialect> {
    if text.contains("postgres") {
        return None;
    }
    let manifest: Value = toml::from_str(text).ok()?;
    features(&manifest)
        .into_iter()
        .find_map(|feature| DATABASES.iter().find(|(word, _)| feature.starts_with(word)).map(|(_, database)| *database))
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
        Manifests::default().other_database(&root.path().join("app/migrations"), &Nearby::default())
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
