//! Drivers that keep prepared statements, as the manifests of a project require them.

use crate::read;
use pgvet_model::application::CachingDriver;
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A driver: its name, the files that require it, and the text there.
struct Known {
    name: &'static str,
    manifests: &'static [&'static str],
    text: &'static str,
    /// A framework that configures the driver to keep none.
    unless: Option<&'static str>,
}

/// Drivers that keep prepared statements unless they are configured not to.
///
/// Sources: sqlx 0.9, `sqlx-postgres/src/options/mod.rs`, `statement_cache_capacity`; pgx 5.12, `conn.go`,
/// `QueryExecModeCacheStatement`; pgjdbc 42.7, `PGProperty.java`, `PREPARE_THRESHOLD`; asyncpg 0.32, `connection.py`,
/// `statement_cache_size`; psycopg 3.3, `_preparing.py`, `prepare_threshold`, which Django 5.2 sets to None in
/// `postgresql/base.py`; postgres.js 3.4, `index.js`, `prepare`; Postgrex 0.22, `postgrex.ex`, `:prepare`; Rails 8.1,
/// `abstract_adapter.rb`, `default_prepared_statements`.
const KNOWN: [Known; 8] = [
    known("sqlx", &["Cargo.toml"], "sqlx"),
    known("pgx", &["go.mod"], "github.com/jackc/pgx/"),
    known("pgjdbc", &["pom.xml", "build.gradle", "build.gradle.kts", "build.sbt"], "org.postgresql"),
    known("asyncpg", PYTHON, "asyncpg"),
    Known { unless: Some("django"), ..known("psycopg 3", PYTHON, "psycopg[") },
    known("postgres.js", &["package.json"], "\"postgres\":"),
    known("Postgrex", &["mix.exs"], ":postgrex"),
    known("Rails", &["Gemfile"], "rails"),
];

const fn known(name: &'static str, manifests: &'static [&'static str], text: &'static str) -> Known {
    Known { name, manifests, text, unless: None }
}

const PYTHON: &[&str] = &["pyproject.toml", "requirements.txt", "Pipfile", "setup.cfg", "setup.py"];

/// Returns the drivers that manifests in the folders require.
pub(super) fn of(folders: &BTreeSet<PathBuf>) -> Vec<CachingDriver> {
    let mut found: Vec<CachingDriver> = Vec::new();
    // The nearest manifest is that of the deepest folder.
    for folder in folders.iter().rev() {
        for known in &KNOWN {
            let is_new = !found.iter().any(|driver| driver.name == known.name);
            let manifest = known.manifests.iter().find(|name| is_new && known.is_required_by(&folder.join(name)));
            if let Some(manifest) = manifest {
                found.push(CachingDriver { name: known.name, manifest: SmolStr::new_static(manifest) });
            }
        }
    }
    found
}

impl Known {
    fn is_required_by(&self, manifest: &Path) -> bool {
        let Ok(text) = read::text(manifest) else { return false };
        requires(&text, self.text) && !self.unless.is_some_and(|framework| requires(&text, framework))
    }
}

fn requires(manifest: &str, package: &str) -> bool {
    manifest.lines().any(|line| {
        let line = line.trim_start().to_ascii_lowercase();
        line.contains(package) && !["#", "//", "<!--"].iter().any(|mark| line.starts_with(mark))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn manifests_name_drivers() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("go.mod"), "require github.com/jackc/pgx/v5 v5.7.1\n").unwrap();
        fs::write(root.path().join("requirements.txt"), "# asyncpg\nflask\n").unwrap();
        let names: Vec<_> = of(&BTreeSet::from([root.path().to_owned()])).iter().map(|driver| driver.name).collect();
        assert_eq!(names, ["pgx"]);
    }

    #[test]
    fn frameworks_can_turn_prepared_statements_off() {
        for (manifest, text, expected) in [
            ("requirements.txt", "psycopg[binary]==3.2\nflask\n", &["psycopg 3"][..]),
            ("requirements.txt", "psycopg[binary]==3.2\nDjango==5.2\n", &[]),
            ("package.json", "{ \"dependencies\": { \"postgres\": \"^3.4.9\" } }", &["postgres.js"]),
            ("package.json", "{ \"dependencies\": { \"pg\": \"^8\", \"postgres-date\": \"2\" } }", &[]),
            ("mix.exs", "{:postgrex, \">= 0.0.0\"},\n", &["Postgrex"]),
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::write(root.path().join(manifest), text).unwrap();
            let found = of(&BTreeSet::from([root.path().to_owned()]));
            assert_eq!(found.iter().map(|driver| driver.name).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
