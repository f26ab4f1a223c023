//! How files are run that no tool claims: by a program of the project, or by psql.

use super::framework_code::{self, Sent};
use super::model::of_code;
use super::runner_code::{self, RunnerCode};
use super::statements::{Words, statements};
use super::{Folders, Layout, Section, Sign};
use crate::nearby::Nearby;
use crate::order;
use crate::read;
use crate::rollback_name;
use crate::skipped::is_sql;
use pgvet_model::migration::TransactionMode;
use pgvet_model::runner::KnownTransaction;
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// What is known about the program that runs the files of a folder.
#[derive(Debug)]
pub(super) struct UnknownRunner {
    pub(super) code: Option<RunnerCode>,
    /// Files that migrations of a framework send, by name.
    sent: FxHashMap<String, Sent>,
    /// The files with statements that cannot run in a transaction.
    unfit: Vec<(OsString, Unfit)>,
}

/// Which statements of a file cannot run in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The only one of the file. It works with a program that sends each file as one string, too.
    Lone,
    /// All but settings. Like the next, it works only statement by statement.
    All,
    /// Some of them.
    Some,
}

impl Unfit {
    /// Whether the author has not written the file for a program that opens a transaction.
    pub(super) fn is_whole(self) -> bool {
        self != Self::Some
    }
}

impl UnknownRunner {
    /// Looks at the files of a folder, and at the code around it up to `top`.
    pub(super) fn of(folder: &Path, top: Option<&Path>, nearby: &Nearby) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
        let is_migration = |path: &Path| {
            path.file_name().is_some_and(|name| is_sql(&name.to_string_lossy()))
                && !rollback_name::is_rollback_migration(path)
        };
        let files = entries.filter(|path| is_migration(path));
        let unfit = files.filter_map(|path| Some((path.file_name()?.to_owned(), unfit(&read::text(&path).ok()?)?)));
        Self {
            unfit: unfit.collect(),
            code: top.and_then(|top| runner_code::find(folder, top, nearby)),
            sent: top.map(|top| framework_code::find(folder, top, nearby)).unwrap_or_default(),
        }
    }

    /// How a migration of a framework sends a file, if one does.
    pub(super) fn sent(&self, path: &Path) -> Option<Sent> {
        self.sent.get(path.file_name()?.to_str()?).copied()
    }

    /// Whether code of the project runs the files of the folder, or a page says how to.
    pub(super) fn is_known(&self) -> bool {
        self.code.is_some() || !self.sent.is_empty()
    }

    /// Whether another file of the folder shows that the program opens no transaction for a file like this one. One with
    /// a single statement says nothing about several, which may be sent as one string. One that holds nothing else may be
    /// treated apart, and says nothing about files of both sorts.
    pub(super) fn runs_outside_elsewhere(&self, path: &Path, own: Option<Unfit>) -> bool {
        let others = self.unfit.iter().filter(|(name, _)| Some(name.as_os_str()) != path.file_name());
        others.into_iter().any(|(_, unfit)| *unfit == Unfit::Some || (*unfit == Unfit::All && own.is_none()))
    }
}

/// Which statements of a text cannot run in a transaction, if any are.
pub(super) fn unfit(text: &str) -> Option<Unfit> {
    // Most files have none of these words.
    let may_be = ["CONCURRENTLY", "VACUUM", "DATABASE", "TABLESPACE", "SUBSCRIPTION", "SYSTEM", "ALL", "COMMIT"];
    if !has_word(text, &may_be) || is_script_of_psql(text) {
        return None;
    }
    let is_unfit = |words: &Words<'_>| {
        let commits = || words.at(0) == "DO" && words.texts().any(|text| has_word(text, &["COMMIT"]));
        words.is_known_to_run_alone() || words.is_other_concurrent() || commits()
    };
    let statements = statements(text);
    let (unfit, others): (Vec<_>, Vec<_>) =
        statements.iter().map(|(_, words)| words).partition(|words| is_unfit(words));
    let is_setting = |words: &&Words<'_>| matches!(words.at(0), "SET" | "RESET");
    match unfit.len() {
        0 => None,
        1 if others.is_empty() => Some(Unfit::Lone),
        _ if others.iter().all(is_setting) => Some(Unfit::All),
        _ => Some(Unfit::Some),
    }
}

/// Whether a script brings transactions or commands of psql of its own: a program that opens one would not run it well.
pub(super) fn is_script_of_psql(text: &str) -> bool {
    has_commands(text) || has_transactions(text)
}

/// Whether a script has commands that only psql knows.
fn has_commands(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('\\'))
}

/// Whether a script begins or ends transactions.
fn has_transactions(text: &str) -> bool {
    const CONTROL: [&str; 4] = ["BEGIN", "START", "COMMIT", "END"];
    has_word(text, &CONTROL) && statements(text).iter().any(|(_, words)| CONTROL.contains(&words.at(0)))
}

/// Whether any statement of a text cannot run in a transaction.
fn runs_alone(text: &str) -> bool {
    let is_alone = |words: &Words<'_>| words.is_known_to_run_alone() || words.is_other_concurrent();
    statements(text).iter().any(|(_, words)| is_alone(words))
}

/// Whether a text has one of the words anywhere. Needs no memory, however long the text is.
fn has_word(text: &str, words: &[&str]) -> bool {
    if text.is_ascii() {
        let is_edge = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
        let is_word = |part: &[u8]| words.iter().any(|word| part.eq_ignore_ascii_case(word.as_bytes()));
        return text.as_bytes().split(is_edge).any(is_word);
    }
    let is_edge = |one: char| !one.is_alphanumeric() && one != '_';
    text.split(is_edge).any(|part| words.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

/// Most programs that run files with versions open a transaction for each. A script that begins its own is for psql, and
/// a file in which nothing can run in a transaction is for a program that opens none.
pub(super) fn guess_transaction(layout: &mut Layout, path: &Path, text: &str, folders: &Folders) {
    if folders.fills_new_database(path) {
        layout.sign = Sign::RunnerCode;
        layout.sections.iter_mut().for_each(|section| section.transaction = TransactionMode::Autocommit);
        return;
    }
    let runner = folders.unknown_runner(path);
    if let Some(sent) = runner.sent(path) {
        return sent.apply(layout);
    }
    let is_usual = |section: &Section| section.transaction == TransactionMode::Autocommit;
    // A program that opens no transaction can send scripts that bring their own.
    let sends_strings = runner.code.as_ref().is_some_and(|code| code.transaction == TransactionMode::SingleString);
    let is_for_psql = if sends_strings { has_commands(text) } else { is_script_of_psql(text) };
    if !order::is_versioned(path) || !layout.sections.iter().all(is_usual) || is_for_psql {
        return;
    }
    let unfit = self::unfit(text);
    let mut transaction = TransactionMode::Transaction;
    let is_unfit = unfit.is_some_and(Unfit::is_whole);
    // It may send the statements of such a file one by one, even if the file has transactions of its own.
    let is_apart = |code: &RunnerCode| code.concurrently.is_some() && (unfit.is_some() || runs_alone(text));
    let script = folders.psql_run(path).filter(|_| runner.code.as_ref().is_none_or(RunnerCode::is_of_page));
    if let Some(script) = script {
        return script.apply(layout);
    }
    layout.known_transaction = match &runner.code {
        Some(code) if !is_apart(code) => {
            transaction = code.transaction;
            if sends_strings {
                layout.runner_of_code = Some(of_code());
            }
            if code.is_named {
                layout.sign = Sign::RunnerCode;
            }
            KnownTransaction::Recognized
        }
        _ if is_unfit => KnownTransaction::Unlikely,
        Some(code) => {
            transaction = code.transaction;
            if sends_strings {
                layout.runner_of_code = Some(of_code());
            }
            KnownTransaction::Selective
        }
        _ if runner.runs_outside_elsewhere(path, unfit) => KnownTransaction::Doubtful,
        _ => KnownTransaction::Assumed,
    };
    if layout.known_transaction != KnownTransaction::Unlikely {
        layout.sections.iter_mut().for_each(|section| section.transaction = transaction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::layout::detect;
    use pgvet_model::runner::AfterCommit;

    #[test]
    fn scripts_of_psql_have_transactions_or_commands_of_their_own() {
        assert!(is_script_of_psql("BEGIN;\nSELECT 1;\nCOMMIT;\n"));
        assert!(is_script_of_psql("\\set x 1\nSELECT 1;\n"));
        assert!(!is_script_of_psql("DO $$ BEGIN NULL; END $$;\n"));
    }

    #[test]
    fn code_that_sends_strings_sends_scripts_with_their_own_transactions() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("migrations");
        fs::create_dir_all(root.path().join(".git")).unwrap();
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("1_a.sql");
        let layout = |code: &str, text: &str| {
            fs::write(root.path().join("migrate.cjs"), code).unwrap();
            fs::write(&path, text).unwrap();
            let layout = detect(&path, text, &Folders::default(), &Config::default());
            (layout.sections[0].transaction, layout.runner().after_commit)
        };
        let sends = "glob: 'migrations/*.sql', up: () => sequelize.query(readFileSync(path))";
        let begins = format!("{sends}; client.query('BEGIN')");
        let text = "BEGIN;\nSELECT 1;\nCOMMIT;\nSELECT 2;\n";
        assert_eq!(layout(sends, text), (TransactionMode::SingleString, AfterCommit::Together));
        assert_eq!(layout(&begins, text), (TransactionMode::Autocommit, AfterCommit::Alone));
        assert_eq!(layout(sends, "\\set x 1\nSELECT 1;\n"), (TransactionMode::Autocommit, AfterCommit::Alone));
        let known = |code: &str, text: &str| {
            fs::write(root.path().join("migrate.cjs"), code).unwrap();
            fs::write(&path, text).unwrap();
            detect(&path, text, &Folders::default(), &Config::default()).known_transaction
        };
        let splits = format!("{sends}; if (/\\bconcurrently\\b/i.test(text)) split(text)");
        let both = format!("{text}CREATE INDEX CONCURRENTLY i ON t (a);\n");
        assert_eq!(known(&splits, &both), KnownTransaction::Selective);
        assert_eq!(known(&splits, text), KnownTransaction::Recognized);
        assert_eq!(known(sends, &both), KnownTransaction::Recognized);
    }

    #[test]
    fn files_whose_statements_cannot_run_in_a_transaction_are_recognized() {
        for (text, expected) in [
            ("CREATE INDEX CONCURRENTLY i ON t (a);", Some(Unfit::Lone)),
            (
                "SET lock_timeout = 0;\nDROP INDEX CONCURRENTLY i; CREATE INDEX CONCURRENTLY i ON t (a);",
                Some(Unfit::All),
            ),
            ("VACUUM t;", Some(Unfit::Lone)),
            ("DO $$ BEGIN UPDATE t SET a = 1; COMMIT; END $$;", Some(Unfit::Lone)),
            ("ALTER TABLE t ADD COLUMN a int;\nCREATE INDEX CONCURRENTLY i ON t (a);", Some(Unfit::Some)),
            ("BEGIN; CREATE INDEX CONCURRENTLY i ON t (a); COMMIT;", None),
            ("-- CONCURRENTLY\nCREATE INDEX i ON t (a);", None),
            ("DO $$ BEGIN UPDATE t SET a = 1; END $$; -- COMMIT", None),
        ] {
            assert_eq!(unfit(text), expected, "{text}");
        }
    }

    #[test]
    fn other_files_speak_against_a_transaction() {
        let root = tempfile::tempdir().unwrap();
        let own = |text| {
            UnknownRunner::of(root.path(), None, &Nearby::default())
                .runs_outside_elsewhere(Path::new("2.sql"), unfit(text))
        };
        let (plain, mixed) = ("SELECT 1;", "SELECT 1; VACUUM t;");
        fs::write(root.path().join("2.sql"), mixed).unwrap();
        assert!(!own(plain) && !own(mixed), "its own statements are not those of another file");
        fs::write(root.path().join("1.sql"), "CREATE INDEX CONCURRENTLY i ON t (a);").unwrap();
        assert!(!own(plain) && !own(mixed), "it may be sent as one string");
        fs::write(root.path().join("1.sql"), "SET lock_timeout = 0; CREATE INDEX CONCURRENTLY i ON t (a);").unwrap();
        assert!(own(plain) && !own(mixed));
        fs::write(root.path().join("3.sql"), mixed).unwrap();
        assert!(own(plain) && own(mixed));
    }
}
