//! sqlx: whether it knows the comment that takes a migration out of its transaction.

use super::header::SQLX_NO_TRANSACTION;
use super::{Layout, Tool};
use crate::boundary::Boundary;
use crate::config::absolute;
use crate::read;
use pgvet_model::migration::TransactionMode;
use std::path::Path;

/// The first version that reads `-- no-transaction`. Source: sqlx, CHANGELOG.md, 0.8.0, pull request 3181.
const READS_COMMENT: (u32, u32) = (0, 8);

/// Maximum number of levels above the migrations at which their manifest is searched.
const LEVELS: usize = 8;

/// Whether the project of a migration uses a version of sqlx that does not read the comment.
pub(super) fn ignores_comment(path: &Path) -> bool {
    let path = absolute(path);
    let boundary = Boundary::around(&path);
    let around = path.ancestors().skip(1).take(LEVELS).take_while(|folder| boundary.refusal(folder).is_none());
    let version = around.into_iter().find_map(|folder| {
        let text = |name: &str| read::text(&folder.join(name)).ok();
        text("Cargo.lock")
            .and_then(|lock| locked(&lock))
            .or_else(|| text("Cargo.toml").and_then(|toml| required(&toml)))
    });
    version.is_some_and(|version| version < READS_COMMENT)
}

/// Whether the library of the project opens a transaction although the migration has the comment. sqlx-cli, which may run
/// it instead, can be newer.
pub(super) fn has_doubtful_transaction(layout: &Layout, text: &str) -> bool {
    layout.tool == Tool::Sqlx
        && text.starts_with(SQLX_NO_TRANSACTION)
        && layout.sections.iter().any(|section| section.transaction == TransactionMode::Transaction)
}

/// The newest version that a lock file names.
fn locked(lock: &str) -> Option<(u32, u32)> {
    let mut lines = lock.lines().map(str::trim);
    let mut newest = None;
    while lines.any(|line| line == "name = \"sqlx\"") {
        newest = newest.max(lines.next().and_then(version));
    }
    newest
}

/// The version that a manifest requires: `sqlx = "0.7"`, `sqlx = { version = "0.7", ... }`, or a table of its own.
fn required(toml: &str) -> Option<(u32, u32)> {
    let mut lines = toml.lines().map(str::trim);
    lines.clone().find_map(|line| line.strip_prefix("sqlx")?.trim_start().strip_prefix('=').and_then(version)).or_else(
        || {
            lines.find(|line| line.starts_with('[') && line.ends_with("dependencies.sqlx]"))?;
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
            assert_eq!(required(toml), expected, "{toml}");
        }
        let lock = "[[package]]\nname = \"sqlx\"\nversion = \"0.7.4\"\n[[package]]\nname = \"sqlx-core\"\nversion = \"0.8.0\"\n";
        assert_eq!(locked(lock), Some((0, 7)));
        assert_eq!(locked("name = \"serde\"\nversion = \"1.0.0\"\n"), None);
    }
}
