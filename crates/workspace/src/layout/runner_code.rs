//! The code of a project that runs its SQL files, recognized by its words.

use crate::nearby::Nearby;
use pgvet_model::migration::TransactionMode;
use std::path::Path;

/// What code of the project says about the transaction of the files in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunnerCode {
    pub(super) transaction: TransactionMode,
    /// Whether the code names a transaction itself.
    pub(super) is_named: bool,
    /// Whether it names statements that cannot run in a transaction, so that it may treat them apart.
    pub(super) knows_concurrently: bool,
}

impl RunnerCode {
    /// Whether only a page for readers tells it.
    pub(super) fn is_of_page(&self) -> bool {
        !self.is_named && self.transaction != TransactionMode::SingleString
    }
}

/// So far above the files code is searched for.
const LEVELS: usize = 4;

/// Folders of code beside the migrations or around them.
const FOLDERS: [&str; 12] =
    ["", "src", "src/db", "cmd", "scripts", "script", "bin", "db", "lib", "internal", "server", "tools"];

/// Most files of code that are read for one folder.
const FILES: usize = 200;

/// Finds the code that reads the SQL files of a folder.
pub(super) fn find(folder: &Path, top: &Path, nearby: &Nearby) -> Option<RunnerCode> {
    let name = folder.file_name()?.to_str()?.to_owned();
    let mut looked_at = 0;
    let around = || folder.ancestors().take(LEVELS).take_while(|above| above.starts_with(top));
    for above in around() {
        for code in FOLDERS.iter().flat_map(|below| nearby.code(&above.join(below))) {
            looked_at += 1;
            if looked_at > FILES {
                return None;
            }
            let Some(text) = nearby.text(&code) else { continue };
            if let Some(found) = judge(&code, &text, &name) {
                return Some(found);
            }
        }
    }
    let mut pages = around().flat_map(|above| nearby.readme(above));
    pages.find_map(|page| by_hand(&nearby.text(&page)?, &name))
}

/// How a page says to run a file of the folder by hand.
fn by_hand(text: &str, folder: &str) -> Option<RunnerCode> {
    let files = format!("{folder}/");
    let is_of_folder = |line: &&str| line.contains(&files) && line.contains(".sql") && runs_psql(line);
    let transaction = transaction_of_psql(text.lines().find(is_of_folder)?);
    Some(RunnerCode { transaction, is_named: false, knows_concurrently: false })
}

/// Whether a command runs a file with psql.
fn runs_psql(line: &str) -> bool {
    line.contains("psql") && (line.contains("-f") || line.contains('<'))
}

fn transaction_of_psql(line: &str) -> TransactionMode {
    let in_one = line.contains("-1 ") || line.contains("--single-transaction");
    if in_one { TransactionMode::Transaction } else { TransactionMode::Autocommit }
}

/// What code calls that reads files.
const READS: [&str; 16] = [
    "ReadDir",
    "ReadFile",
    "readdir",
    "readFile",
    "read_dir",
    "read_to_string",
    "include_str!",
    "include_dir!",
    "glob",
    "listdir",
    "iterdir",
    "read_text",
    "Files.",
    "getResource",
    "slurp",
    "scandir",
];

/// What opens a transaction, in the languages that are read.
const BEGINS: [&str; 16] = [
    ".Begin(",
    "BeginTx",
    "\"BEGIN",
    "'BEGIN",
    "`BEGIN",
    "\"begin",
    "'begin",
    "`begin",
    ".begin(",
    ".transaction(",
    "setAutoCommit(false)",
    "with-transaction",
    "start_transaction",
    "beginTransaction",
    "BeginTransaction",
    "$transaction(",
];

fn judge(path: &Path, text: &str, folder: &str) -> Option<RunnerCode> {
    let knows_concurrently = text.to_ascii_uppercase().contains("CONCURRENTLY");
    let found = |transaction, is_named| Some(RunnerCode { transaction, is_named, knows_concurrently });
    if !text.contains(folder) {
        return None;
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !text.contains(".sql") || !READS.iter().any(|word| text.contains(word)) {
        return None;
    }
    if BEGINS.iter().any(|word| text.contains(word)) {
        return found(TransactionMode::Transaction, true);
    }
    // A text without values is sent as one string by the drivers of these.
    let sends_strings = matches!(extension, "go" | "ts" | "mts" | "js" | "mjs" | "cjs" | "rs");
    if sends_strings { found(TransactionMode::SingleString, false) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn code_of_the_project_tells_its_transaction() {
        use TransactionMode::{Autocommit, SingleString, Transaction};
        for (file, text, expected) in [
            (
                "db/migrate.go",
                "//go:embed migrations/*.sql\nb, _ := files.ReadFile(name)\ntx, err := pool.Begin(ctx)\n",
                Some((Transaction, true)),
            ),
            (
                "src/migrate.ts",
                "readFile(join('db/migrations', f.endsWith('.sql')));\nawait client.query(sql);\n",
                Some((SingleString, false)),
            ),
            ("README.md", "    psql app < db/migrations/001_users.sql\n", Some((Autocommit, false))),
            ("README.md", "    psql -1 app -f db/migrations/001_users.sql\n", Some((Transaction, false))),
            ("README.md", "psql app < schema.sql, then see db/migrations\n", None),
            ("src/other.py", "for f in Path('db/migrations').iterdir(): pass\n", None),
            ("src/migrate_test.go", "migrations .sql ReadFile BeginTx", None),
        ] {
            let root = tempfile::tempdir().unwrap();
            let code = root.path().join(file);
            for folder in [code.parent().unwrap(), &root.path().join("db/migrations")] {
                fs::create_dir_all(folder).unwrap();
            }
            fs::write(&code, text).unwrap();
            let found = find(&root.path().join("db/migrations"), root.path(), &Nearby::default());
            assert_eq!(found.map(|found| (found.transaction, found.is_named)), expected, "{file}");
        }
    }
}
