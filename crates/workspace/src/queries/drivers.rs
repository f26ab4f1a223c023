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
}

/// Drivers that keep prepared statements unless they are configured not to.
///
/// Sources: sqlx 0.8, `PgConnectOptions::statement_cache_capacity`, 100 by default; pgx 5,
/// `QueryExecModeCacheStatement`, the default; pgjdbc 42, `prepareThreshold`, 5 by default, and
/// `preparedStatementCacheQueries`; asyncpg 0.30, `statement_cache_size`, 100 by default; psycopg 3,
/// `Connection.prepare_threshold`, 5 by default; Rails, `prepared_statements`, true by default.
const KNOWN: [Known; 6] = [
    Known { name: "sqlx", manifests: &["Cargo.toml"], text: "sqlx" },
    Known { name: "pgx", manifests: &["go.mod"], text: "github.com/jackc/pgx/" },
    Known {
        name: "pgjdbc",
        manifests: &["pom.xml", "build.gradle", "build.gradle.kts", "build.sbt"],
        text: "org.postgresql",
    },
    Known { name: "asyncpg", manifests: PYTHON, text: "asyncpg" },
    Known { name: "psycopg 3", manifests: PYTHON, text: "psycopg[" },
    Known { name: "Rails", manifests: &["Gemfile"], text: "rails" },
];

const PYTHON: &[&str] = &["pyproject.toml", "requirements.txt", "Pipfile", "setup.cfg", "setup.py"];

/// Returns the drivers that manifests in the folders require.
pub(super) fn of(folders: &BTreeSet<PathBuf>) -> Vec<CachingDriver> {
    let mut found: Vec<CachingDriver> = Vec::new();
    // The nearest manifest is that of the deepest folder.
    for folder in folders.iter().rev() {
        for known in &KNOWN {
            let is_new = !found.iter().any(|driver| driver.name == known.name);
            let manifest = known.manifests.iter().find(|name| is_new && requires(&folder.join(name), known.text));
            if let Some(manifest) = manifest {
                found.push(CachingDriver { name: known.name, manifest: SmolStr::new_static(manifest) });
            }
        }
    }
    found
}

fn requires(manifest: &Path, driver: &str) -> bool {
    let names = |line: &str| {
        let line = line.trim_start();
        line.contains(driver) && !["#", "//", "<!--"].iter().any(|mark| line.starts_with(mark))
    };
    read::text(manifest).is_ok_and(|text| text.lines().any(names))
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
}
