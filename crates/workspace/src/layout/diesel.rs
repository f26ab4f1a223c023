//! Diesel: whether it notices that a migration has ended its transaction.

use super::{Layout, Tool, crate_version};
use crate::nearby::Nearby;
use std::path::Path;

/// The first version that asks the server for the state of the transaction. PostgreSQL only warns of a COMMIT without a
/// transaction, so that the COMMIT of an older one succeeds. Source: Diesel 2.0,
/// `diesel/src/connection/transaction_manager.rs`.
const ASKS: (u32, u32) = (2, 0);

/// Whether the project of a migration uses a version of Diesel for which a COMMIT in the migration is no error.
pub(super) fn accepts_commit(layout: &Layout, path: &Path, text: &str, nearby: &Nearby) -> bool {
    let has_end = || {
        let text = text.to_ascii_uppercase();
        text.contains("COMMIT") || text.contains("ROLLBACK")
    };
    layout.tool == Tool::Diesel
        && has_end()
        && crate_version::of(path, "diesel", nearby).is_some_and(|version| version < ASKS)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::layout::folder::Folders;
    use crate::layout::{Layout, detect};
    use std::fs;

    fn layout(version: &str, text: &str) -> Layout {
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join("diesel.toml"), "").unwrap();
        let lock = format!("[[package]]\nname = \"diesel\"\nversion = \"{version}\"\n");
        fs::write(project.path().join("Cargo.lock"), lock).unwrap();
        let folder = project.path().join("migrations/2024-01-01-000000_a");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("down.sql"), "").unwrap();
        let path = folder.join("up.sql");
        fs::write(&path, text).unwrap();
        detect(&path, text, &Folders::default(), &Config::default())
    }

    #[test]
    fn only_newer_versions_notice_a_commit() {
        let text = "BEGIN;\nDROP TABLE a;\nCOMMIT;\n";
        assert!(!layout("1.4.4", text).runner().misses_its_transaction);
        assert!(layout("2.1.0", text).runner().misses_its_transaction);
        assert!(layout("1.4.4", "DROP TABLE a;\n").runner().misses_its_transaction);
    }
}
