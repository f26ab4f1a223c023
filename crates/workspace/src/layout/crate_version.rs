//! Which version of a crate the Rust project around a migration uses.

use super::project::LEVELS;
use crate::boundary::Boundary;
use crate::config::absolute;
use crate::nearby::Nearby;
use std::path::Path;

/// The major and minor number of the version of a crate that the nearest lock file or manifest names.
pub(super) fn of(path: &Path, name: &'static str, nearby: &Nearby) -> Option<(u32, u32)> {
    let path = absolute(path);
    let boundary = Boundary::around(&path);
    let around = path.ancestors().skip(1).take(LEVELS).take_while(|folder| boundary.refusal(folder).is_none());
    let look = |folder: &Path| {
        let text = |file: &str| nearby.text(&folder.join(file));
        text("Cargo.lock")
            .and_then(|lock| locked(&lock, name))
            .or_else(|| text("Cargo.toml").and_then(|toml| required(&toml, name)))
    };
    around.into_iter().find_map(|folder| nearby.version(folder, name, || look(folder)))
}

/// The newest version that a lock file names.
fn locked(lock: &str, name: &str) -> Option<(u32, u32)> {
    let mut lines = lock.lines().map(str::trim);
    let mut newest = None;
    let wanted = format!("name = \"{name}\"");
    while lines.any(|line| line == wanted) {
        newest = newest.max(lines.next().and_then(version));
    }
    newest
}

/// The version that a manifest requires: `sqlx = "0.7"`, `sqlx = { version = "0.7", ... }`, or a table of its own.
fn required(toml: &str, name: &str) -> Option<(u32, u32)> {
    let table = format!("dependencies.{name}]");
    let mut lines = toml.lines().map(str::trim);
    lines.clone().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('=').and_then(version)).or_else(
        || {
            lines.find(|line| line.starts_with('[') && line.ends_with(&table))?;
            lines.take_while(|line| !line.starts_with('[')).find_map(|line| version(line.strip_prefix("version")?))
        },
    )
}

/// The major and minor number of the first version in quotes that follows `=` or `version`.
fn version(text: &str) -> Option<(u32, u32)> {
    let quoted = match text.split_once("version") {
        Some((_, after)) => after,
        None if text.starts_with('{') || text.starts_with(" {") => return None,
        None => text,
    };
    let number = quoted.split('"').nth(1)?.trim_start_matches(|one: char| !one.is_ascii_digit());
    let mut parts = number.split('.').map_while(|part| part.parse().ok());
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_and_lock_files_name_the_version() {
        for (toml, expected) in [
            ("[dependencies]\nsqlx = \"0.7\"\n", Some((0, 7))),
            ("sqlx = { features = [\"postgres\"], version = \"0.8.2\" }", Some((0, 8))),
            ("sqlx = { workspace = true, features = [\"postgres\"] }", None),
            ("[workspace.dependencies.sqlx]\nversion = \"^0.6.3\"\nfeatures = []\n", Some((0, 6))),
            ("sqlx-cli = \"0.7\"\nsqlx = \"0.8\"", Some((0, 8))),
            ("[dependencies.sqlx]\npath = \"..\"\n[dependencies.serde]\nversion = \"1.0\"\n", None),
        ] {
            assert_eq!(required(toml, "sqlx"), expected, "{toml}");
        }
        let lock = "[[package]]\nname = \"sqlx\"\nversion = \"0.7.4\"\n[[package]]\nname = \"sqlx-core\"\nversion = \"0.8.0\"\n";
        assert_eq!(locked(lock, "sqlx"), Some((0, 7)));
        assert_eq!(locked("name = \"serde\"\nversion = \"1.0.0\"\n", "sqlx"), None);
    }
}
