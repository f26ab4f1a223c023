//! Drizzle: which folders it reads, and what it sends together.
//!
//! From 1.0 on each migration is a folder, and no journal names them. Seen in runs of 1.0.0-rc.5; read in the releases
//! from 1.0.0-beta.5 on: up to beta.14 they still follow a journal if there is one, and later ones refuse to run then.
//!
//! It splits a file at `--> statement-breakpoint`, and sends each part as one string in one transaction for all pending
//! files. COMMIT ends that transaction, and Drizzle opens no other. Seen in runs of 0.45.4 with `pg`. Source:
//! `drizzle-orm/src/migrator.ts`, `readMigrationFiles`; `drizzle-orm/src/pg-core/dialect.ts`, `migrate`.

use super::folder::is_of_supabase;
use super::statements::{Words, statements};
use crate::boundary::Boundary;
use crate::config::absolute;
use pgvet_syntax::source::TextRange;
use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

/// The file with the statements in the folder of a migration, without `.sql`.
const MIGRATION: &str = "migration";

/// The folders that may hold the folders of migrations, for files in `parent`: itself, and the one above.
pub(super) fn roots(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let own = if parent.as_os_str().is_empty() { absolute(parent) } else { parent.to_owned() };
    let is_inside = |above: &&Path| Boundary::around(&absolute(&own)).refusal(&absolute(above)).is_none();
    let above = own.parent().filter(is_inside).map(Path::to_owned);
    std::iter::once(parent.to_owned()).chain(above)
}

/// The migrations of a folder in the order of Drizzle 1.0, each without `.sql`; `None` for a folder of anything else.
/// Drizzle Kit writes a `snapshot.json` into the folders; the migrator reads each that has a `migration.sql`. Source:
/// drizzle-orm 1.0.0-rc.5, `migrator.js`, `readMigrationFiles`.
pub(super) fn migrations(root: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(absolute(root)).ok()?.filter_map(Result::ok);
    let migrations = entries.map(|entry| entry.path()).filter(|folder| folder.join("migration.sql").is_file());
    let migrations: Vec<PathBuf> = migrations.collect();
    let has_snapshot = migrations.iter().any(|folder| folder.join("snapshot.json").is_file());
    if !has_snapshot || root.join("migration_lock.toml").is_file() || is_of_supabase(&absolute(root)) {
        return None;
    }
    let name = |folder: &PathBuf| Some(folder.file_name()?.to_string_lossy().into_owned());
    let mut names: Vec<String> = migrations.iter().filter_map(name).collect();
    names.sort_by_cached_key(|name| collation_key(name));
    Some(names.into_iter().map(|name| format!("{name}/{MIGRATION}")).collect())
}

/// The order of `localeCompare`: signs before digits before letters, and lower case first where nothing else differs.
fn collation_key(name: &str) -> (Vec<(u8, char)>, Reverse<String>) {
    let class = |one: char| match one {
        '_' => 0,
        _ if one.is_alphabetic() => 3,
        _ if one.is_numeric() => 2,
        _ => 1,
    };
    (name.to_lowercase().chars().map(|one| (class(one), one)).collect(), Reverse(name.to_owned()))
}

const BREAKPOINT: &str = "--> statement-breakpoint";

/// What is sent together in a file that has breakpoints and ends Drizzle's transaction; otherwise nothing. The first of
/// the ranges is in that transaction.
pub(super) fn sent(text: &str) -> Vec<TextRange> {
    let mut starts = text.match_indices(BREAKPOINT).map(|(at, _)| at as u32).peekable();
    if starts.peek().is_none() {
        return Vec::new();
    }
    let Some((end, _)) = statements(text).into_iter().find(|(_, words)| ends_transaction(words)) else {
        return Vec::new();
    };
    let mut sent = Vec::new();
    let mut start = 0;
    for next in starts.chain([text.len() as u32]) {
        if next > end.start {
            sent.push(TextRange::new(start, next));
            start = next;
        }
    }
    sent
}

fn ends_transaction(words: &Words<'_>) -> bool {
    let is_to_savepoint = || words.at(1) == "TO" || words.at(2) == "TO";
    match words.at(0) {
        "COMMIT" | "END" | "ABORT" => true,
        "ROLLBACK" => !is_to_savepoint(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_migrations_beside_a_snapshot() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), "").unwrap();
        };
        for name in ["1_b", "1_A", "1_a", "1_a-b", "1_a_c", "12_x"] {
            write(&format!("{name}/migration.sql"));
        }
        write("2_other/up.sql");
        assert_eq!(migrations(root.path()), None, "Prisma and others have such folders, too");
        write("1_b/snapshot.json");
        let expected = ["1_a", "1_A", "1_a_c", "1_a-b", "1_b", "12_x"].map(|name| format!("{name}/migration"));
        assert_eq!(migrations(root.path()).unwrap(), expected);
        write("migration_lock.toml");
        assert_eq!(migrations(root.path()), None);
    }

    #[test]
    fn the_parts_after_a_commit_are_sent_alone() {
        for (text, parts) in [
            ("SELECT 1;--> statement-breakpoint\nSELECT 2;", &[][..]),
            ("SELECT 1; COMMIT; SELECT 2;", &[]),
            ("SELECT 1;--> statement-breakpoint\nROLLBACK TO a;--> statement-breakpoint\nSELECT 2;", &[]),
            (
                "SELECT 1;--> statement-breakpoint\nCOMMIT;--> statement-breakpoint\nVACUUM;--> statement-breakpoint\nSELECT 2; SELECT 3;",
                &[
                    "SELECT 1;--> statement-breakpoint\nCOMMIT;",
                    "--> statement-breakpoint\nVACUUM;",
                    "--> statement-breakpoint\nSELECT 2; SELECT 3;",
                ],
            ),
        ] {
            let ranges = sent(text);
            let found: Vec<&str> = ranges.iter().map(|range| &text[range.as_usize()]).collect();
            assert_eq!(found, parts, "{text}");
        }
    }
}
