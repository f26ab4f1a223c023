//! The code of a project that runs its SQL files, recognized by its words.

use crate::nearby::Nearby;
use crate::problem::display;
use pgvet_model::migration::TransactionMode;
use smol_str::{SmolStr, format_smolstr};
use std::path::{Path, PathBuf};

/// What code of the project says about the transaction of the files in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunnerCode {
    pub(super) transaction: TransactionMode,
    /// Whether the code names a transaction itself.
    pub(super) is_named: bool,
    /// Where it names statements that cannot run in a transaction, so that it may treat them apart: `migrate.js:41`.
    pub(super) concurrently: Option<SmolStr>,
}

/// Code that may run the files of a folder.
struct Candidate {
    code: RunnerCode,
    /// Whether it also sends something to a server: other programs read the files, too.
    sends: bool,
}

impl RunnerCode {
    /// Whether only a page for readers tells it.
    pub(super) fn is_of_page(&self) -> bool {
        !self.is_named && self.transaction != TransactionMode::SingleString
    }
}

/// So far above the files code is searched for.
const LEVELS: usize = 4;

/// Most files of code that are read for one folder.
const FILES: usize = 300;

/// Finds the code that reads the SQL files of a folder: the nearest that also sends something, or else the nearest.
pub(super) fn find(folder: &Path, top: &Path, nearby: &Nearby) -> Option<RunnerCode> {
    let name = folder.file_name()?.to_str()?.to_owned();
    let mut looked_at = 0;
    let around = || folder.ancestors().take(LEVELS).take_while(|above| above.starts_with(top));
    for above in around() {
        let folders = nearby.code_folders(above);
        let code = folders.iter().flat_map(|below| nearby.code(below)).take(FILES - looked_at);
        let files: Vec<PathBuf> = code.collect();
        looked_at += files.len();
        let judge = |path: PathBuf| judge(&path, &nearby.text(&path)?, &name, top);
        if let Some(found) = nearest(files.into_iter().filter_map(judge).collect()) {
            return Some(found);
        }
    }
    let mut pages = around().flat_map(|above| nearby.readme(above));
    pages.find_map(|page| by_hand(&nearby.text(&page)?, &name))
}

/// The first program of several, which may run some files in another way if any of them mentions such files.
fn nearest(mut found: Vec<Candidate>) -> Option<RunnerCode> {
    if found.iter().any(|candidate| candidate.sends) {
        found.retain(|candidate| candidate.sends);
    } else {
        found.truncate(1);
    }
    let concurrently = found.iter().find_map(|candidate| candidate.code.concurrently.clone());
    let first = found.into_iter().next()?;
    Some(RunnerCode { concurrently, ..first.code })
}

/// How a page says to run a file of the folder by hand.
fn by_hand(text: &str, folder: &str) -> Option<RunnerCode> {
    let files = format!("{folder}/");
    let is_of_folder = |line: &&str| line.contains(&files) && line.contains(".sql") && runs_psql(line);
    let transaction = transaction_of_psql(text.lines().find(is_of_folder)?);
    Some(RunnerCode { transaction, is_named: false, concurrently: None })
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

/// What code calls that sends SQL.
const SENDS: [&str; 18] = [
    ".query(",
    ".execute(",
    "->exec(",
    ".Exec(",
    "ExecContext(",
    "batch_execute(",
    ".raw(",
    ".unsafe(",
    ".none(",
    "executescript(",
    "createStatement(",
    "execute!",
    "query!",
    "ExecuteNonQuery",
    "ExecuteSqlRaw",
    "pg_query",
    "psql",
    "Repo.query",
];

/// Whether code reads the SQL files of a folder of this name.
pub(crate) fn reads_files(text: &str, folder: &str) -> bool {
    text.contains(folder) && text.contains(".sql") && READS.iter().any(|word| text.contains(word))
}

fn judge(path: &Path, text: &str, folder: &str, top: &Path) -> Option<Candidate> {
    if !text.contains(folder) {
        return None;
    }
    let found = |transaction, is_named, sends| {
        let concurrently = mention(path, text, top);
        Some(Candidate { code: RunnerCode { transaction, is_named, concurrently }, sends })
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !reads_files(text, folder) {
        return None;
    }
    let sends = SENDS.iter().any(|word| text.contains(word));
    if BEGINS.iter().any(|word| text.contains(word)) {
        return found(TransactionMode::Transaction, true, sends);
    }
    // A text without values is sent as one string by the drivers of these.
    let sends_strings = matches!(extension, "go" | "ts" | "mts" | "js" | "mjs" | "cjs" | "rs");
    if sends_strings { found(TransactionMode::SingleString, false, sends) } else { None }
}

/// The first line of code that names CONCURRENTLY, or else of a comment.
fn mention(path: &Path, text: &str, top: &Path) -> Option<SmolStr> {
    let is_comment = |line: &str| ["//", "*", "/*", "#", "--"].iter().any(|mark| line.trim_start().starts_with(mark));
    let names = |line: &str| line.to_ascii_uppercase().contains("CONCURRENTLY");
    let lines = || text.lines().zip(1..).filter(|(line, _)| names(line));
    let (_, line) = lines().find(|(line, _)| !is_comment(line)).or_else(|| lines().next())?;
    Some(format_smolstr!("{}:{line}", display(path.strip_prefix(top).unwrap_or(path))))
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

    #[test]
    fn the_program_that_sends_the_files_is_found_among_others() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || find(&root.path().join("migrations"), root.path(), &Nearby::default()).unwrap();
        write("migrations/1_a.sql", "");
        write("scripts/count.mjs", "readdirSync('migrations').filter(name => name.endsWith('.sql')).length\n");
        assert_eq!((found().transaction, found().concurrently), (TransactionMode::SingleString, None));
        let begins = "readFileSync(join('migrations', file)) // .sql\nawait client.query('BEGIN');\n";
        write("scripts/migrate.js", begins);
        assert_eq!((found().transaction, found().concurrently), (TransactionMode::Transaction, None));
        write(
            "scripts/migrate.js",
            &format!("// concurrently\n{begins}if (/\\bCONCURRENTLY\\b/i.test(sql)) split(sql);\n"),
        );
        assert_eq!(found().concurrently.as_deref(), Some("scripts/migrate.js:4"));
        fs::remove_file(root.path().join("scripts/migrate.js")).unwrap();
        let go =
            "//go:embed *.sql\nos.ReadFile(\"migrations\")\ntx.Exec(sql)\nstrings.Contains(sql, \"CONCURRENTLY\")\n";
        write("internal/dbmigrate/run.go", go);
        assert_eq!(found().concurrently.as_deref(), Some("internal/dbmigrate/run.go:4"));
    }
}
