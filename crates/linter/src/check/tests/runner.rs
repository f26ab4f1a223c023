//! The behaviour of programs that run migrations, as the rules see it.

use crate::assumption::Assumption;
use crate::check::check;
use crate::confidence::Confidence;
use crate::diagnostic::Diagnostic;
use crate::settings::Settings;
use crate::severity::Severity;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::runner::*;
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{ParsedFile, parse_file};

const STRING: Runner = Runner {
    known_transaction: KnownTransaction::Known,
    after_commit: AfterCommit::Together,
    session: SessionScope::Run,
    one_transaction: false,
    keeps_apart: false,
    misses_its_transaction: false,
    every_run: false,
    session_per_string: false,
    sends_statements: false,
    retry: Retry::Again,
    restart: Restart { recording: Recording::Unknown, lock: RunLock::Unknown, after_kill: None, mark_applied: None },
    is_known: true,
};

fn files(texts: &[&str]) -> Vec<ParsedFile> {
    let file = |(at, text): (usize, &&str)| parse_file(SourceFile::new(format!("{at}.sql"), (*text).to_owned()));
    texts.iter().enumerate().map(file).collect()
}

/// Returns the findings of a rule in migrations that a program runs in a transaction each. The first `history` of them
/// have run before.
fn found(rule: &str, runner: Runner, texts: &[&str], history: usize, release: Option<u32>) -> Vec<Diagnostic> {
    let files = files(texts);
    let migration = |(at, file)| {
        let report = at >= history;
        let release = release.filter(|_| report);
        Migration { transaction: TransactionMode::Transaction, runner, report, release, ..Migration::new(file) }
    };
    let migrations: Vec<_> = files.iter().enumerate().map(migration).collect();
    check(&migrations, &Settings { only: vec![rule.to_owned()], ..Settings::default() })
}

#[test]
fn what_follows_a_commit_runs_alone_or_together() {
    let text = "CREATE TABLE t (id int); COMMIT; CREATE INDEX CONCURRENTLY i ON t (id); BEGIN;";
    let refused = |runner| found("concurrently-in-transaction", runner, &[text], 0, None).len();
    assert_eq!(refused(STRING), 1);
    assert_eq!(refused(Runner { after_commit: AfterCommit::Alone, ..STRING }), 0);
}

#[test]
fn a_timeout_of_another_file_counts_only_in_the_same_run() {
    let texts = ["CREATE TABLE t (id int);", "SET lock_timeout = '2s';", "ALTER TABLE t ADD COLUMN a int;"];
    let missing = |runner, history, release| found("missing-lock-timeout", runner, &texts, history, release).len();
    assert_eq!(missing(STRING, 1, Some(7)), 0);
    assert_eq!(missing(STRING, 1, None), 1, "they may be applied one by one");
    assert_eq!(missing(STRING, 2, Some(7)), 1, "the timeout was set in an earlier run");
    let apart = Runner { session: SessionScope::Migration, ..STRING };
    assert_eq!(missing(apart, 1, Some(7)), 1);
}

#[test]
fn a_timeout_that_may_be_in_effect_is_reported_where_it_harms() {
    let texts =
        ["CREATE TABLE t (id int); COMMIT; SET lock_timeout = '2s';", "COMMIT; CREATE INDEX CONCURRENTLY i ON t (id);"];
    let alone = Runner { after_commit: AfterCommit::Alone, ..STRING };
    let found = found("timeout-during-concurrent-build", alone, &texts, 0, None);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.confidence, Confidence::Likely);
    assert_eq!(finding.assumptions, [Assumption::SameRun { setting: "lock_timeout".into() }]);
}

#[test]
fn a_search_path_of_another_file_holds_as_far_as_the_program_keeps_it() {
    let texts = [
        "CREATE SCHEMA s; CREATE TABLE t (id int); CREATE TABLE s.t (id int); SET search_path = s;",
        "ALTER TABLE t ADD COLUMN a int;",
        "ALTER TABLE s.t ADD COLUMN a int;",
    ];
    let refused = |session| found("statement-will-fail", Runner { session, ..STRING }, &texts, 0, None);
    assert_eq!(refused(SessionScope::Run).len(), 1);
    assert_eq!(refused(SessionScope::Run)[0].confidence, Confidence::Likely);
    assert_eq!(refused(SessionScope::RunWithoutSearchPath).len(), 0);
    assert_eq!(refused(SessionScope::Migration).len(), 0);
    // In a session of its own the second file would find `public.t`.
    let hidden = ["CREATE TABLE t (id int); SET search_path = '';", "ALTER TABLE t ADD COLUMN a int;"];
    assert_eq!(found("statement-will-fail", STRING, &hidden, 0, None).len(), 0);
}

#[test]
fn one_transaction_may_hold_all_files_of_a_release() {
    let texts =
        ["CREATE TYPE mood AS ENUM ('a');", "ALTER TYPE mood ADD VALUE 'b';", "CREATE TABLE t (m mood DEFAULT 'b');"];
    let runner = Runner { one_transaction: true, ..STRING };
    let used = |runner, release| found("enum-value-used-in-same-transaction", runner, &texts, 1, release).len();
    assert_eq!(used(runner, Some(7)), 1);
    assert_eq!(used(runner, None), 1, "they may be pending together");
    assert_eq!(used(STRING, Some(7)), 0);
}

#[test]
fn a_program_that_misses_its_transaction_fails() {
    let nested = |text: &str| {
        let runner = Runner { misses_its_transaction: true, ..STRING };
        let found = found("nested-transaction", runner, &[text], 0, None);
        found.iter().map(|found| found.severity).collect::<Vec<_>>()
    };
    assert_eq!(nested("BEGIN; SELECT 1; COMMIT;"), [Severity::Error]);
    assert_eq!(nested("SELECT 1; COMMIT; SELECT 2;"), [Severity::Error]);
    assert_eq!(nested("SELECT 1; COMMIT; SELECT 2; BEGIN;"), [Severity::Warning; 2], "it takes the last for its own");
    assert_eq!(nested("SELECT 1;"), []);
}

#[test]
fn what_the_program_refuses_is_reported() {
    let files = files(&["SELECT 1;"]);
    let refusal = |by_default, unproven| Refusal {
        kind: RefusalKind::Fails,
        range: TextRange::new(0, 8),
        message: "goose refuses this".to_owned(),
        help: "mend it".to_owned(),
        by_default,
        unproven,
    };
    for (by_default, unproven, confidence) in [
        (false, None, Confidence::Certain),
        (true, None, Confidence::Likely),
        (false, Some("goose"), Confidence::Likely),
    ] {
        let refusals = [refusal(by_default, unproven)];
        let migration = Migration { refusals: &refusals, ..Migration::new(&files[0]) };
        let found =
            check(&[migration], &Settings { only: vec!["statement-will-fail".to_owned()], ..Settings::default() });
        assert_eq!(found.iter().map(|found| found.confidence).collect::<Vec<_>>(), [confidence]);
    }
}

/// What a rule finds in a migration of a program that is not known, with its confidence and assumptions.
fn assumed(rule: &str, text: &str, known: KnownTransaction, transaction: TransactionMode) -> Option<Diagnostic> {
    let files = files(&["CREATE TABLE orders (id bigint, note text);", text]);
    let runner = Runner { known_transaction: known, is_known: false, ..Runner::default() };
    let history = Migration { report: false, ..Migration::new(&files[0]) };
    let migration = Migration { transaction, runner, ..Migration::new(&files[1]) };
    let mut found = check(
        &[history, migration],
        &Settings { only: vec![rule.to_owned()], confidence: Confidence::Possible, ..Settings::default() },
    );
    assert!(found.len() < 2, "{found:?}");
    found.pop()
}

#[test]
fn what_needs_an_assumed_transaction_is_no_surer_than_that() {
    use KnownTransaction::{Assumed, Doubtful, Known, Unlikely};
    use TransactionMode::{Autocommit, SingleString, Transaction};
    let index = "CREATE INDEX CONCURRENTLY i ON orders (note);";
    let both = format!("ALTER TABLE orders ADD COLUMN a int; {index}");
    let code = "DO $$ BEGIN EXECUTE 'CREATE INDEX CONCURRENTLY i ON orders (note)'; END $$;";
    let (own, others, unfit) = (
        Assumption::TransactionOfFile,
        Assumption::TransactionOfFileThoughNotOfOthers,
        Assumption::TransactionOfFileThoughUnfit,
    );
    for (text, known, transaction, expected) in [
        (both.as_str(), Known, Transaction, Some(None)),
        (&both, Assumed, Transaction, Some(Some(own))),
        (&both, Assumed, SingleString, Some(Some(Assumption::SentAsString))),
        (&both, Doubtful, Transaction, Some(Some(others))),
        (index, Unlikely, Autocommit, Some(Some(unfit))),
        (index, Known, Autocommit, None),
        ("SET lock_timeout = 0;", Unlikely, Autocommit, None),
        // Code is in a transaction whatever runs the file.
        (code, Doubtful, Transaction, Some(None)),
        // So is what the file itself begins.
        ("BEGIN; CREATE INDEX CONCURRENTLY i ON orders (note); COMMIT;", Assumed, Autocommit, Some(None)),
    ] {
        let found = assumed("concurrently-in-transaction", text, known, transaction);
        let assumption = |found: Diagnostic| found.assumptions.into_iter().find(Assumption::is_about_transaction);
        assert_eq!(found.map(assumption), expected, "{text} {known:?}");
    }
    assert_eq!(Assumption::TransactionOfFile.confidence(), Confidence::Likely);
    assert_eq!(Assumption::TransactionOfFileThoughUnfit.confidence(), Confidence::Possible);
}

#[test]
fn work_under_a_lock_of_an_earlier_statement_needs_the_transaction() {
    use KnownTransaction::{Assumed, Doubtful};
    let work = |text, known| {
        let found = assumed("work-after-strong-lock", text, known, TransactionMode::Transaction);
        found.map(|found| (found.confidence, found.assumptions.contains(&Assumption::TransactionOfFile)))
    };
    let apart = "ALTER TABLE orders ADD COLUMN a int; UPDATE orders SET a = 1;";
    assert_eq!(work(apart, Assumed), Some((Confidence::Likely, true)));
    assert_eq!(work(apart, Doubtful), Some((Confidence::Possible, false)));
    let together = "DO $$ BEGIN ALTER TABLE orders ADD COLUMN a int; UPDATE orders SET a = 1; END $$;";
    assert_eq!(work(together, Doubtful), Some((Confidence::Likely, false)));
}
