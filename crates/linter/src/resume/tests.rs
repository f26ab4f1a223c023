use super::*;
use crate::check;
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};

fn file(text: &str) -> ParsedFile {
    parse_file(SourceFile::new("m.sql".to_owned(), text.to_owned()))
}

fn migrations(files: &[ParsedFile], mode: TransactionMode) -> Vec<Migration<'_>> {
    let last = files.len() - 1;
    let of_file = |(at, file)| Migration { transaction: mode, report: at == last, database: 1, ..Migration::new(file) };
    files.iter().enumerate().map(of_file).collect()
}

const HISTORY: &str = "CREATE TABLE a (id int PRIMARY KEY, v varchar(20)); SET lock_timeout = '1s';";

const EDITED: &str = "ALTER TABLE a ADD COLUMN b int;
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TEMPORARY TABLE t (i int); END $$;
CREATE INDEX i ON a (b);
DO $$ BEGIN PERFORM f(); END $$;
SAVEPOINT s;
ALTER TABLE a ALTER COLUMN v TYPE text;
DROP TABLE a;
";

/// Returns the text after an edit, and where the edit begins.
fn edited(text: &str, at: usize, removed: usize, inserted: &str) -> String {
    [&text[..at], inserted, &text[at + removed..]].concat()
}

#[test]
fn a_check_from_a_state_finds_what_a_whole_run_finds() {
    let settings = Settings::default();
    for mode in [TransactionMode::Autocommit, TransactionMode::Transaction, TransactionMode::SingleString] {
        let files = [file(HISTORY), file(EDITED)];
        let migrations = migrations(&files, mode);
        let mut state = Checkpoint::default();
        state.advance(&migrations, 1, settings.versions, &());
        assert_eq!(state.next(), 1);
        let outcome = check_from(&state, &migrations, &settings, &mut Memory::default());
        assert_eq!(outcome.found, check::check(&migrations, &settings));
        assert!(outcome.found.len() >= 3, "{:?}", outcome.found);
    }
}

/// Every short edit everywhere: with memory the check finds what it finds without.
#[test]
fn a_check_after_an_edit_finds_what_a_whole_run_finds() {
    let settings = Settings::default();
    for mode in [TransactionMode::Autocommit, TransactionMode::SingleString] {
        let mut memory = Memory::default();
        let mut previous = EDITED.to_owned();
        for at in (0..EDITED.len()).step_by(3) {
            for (removed, inserted) in [(0, ";"), (1, " "), (0, "--"), (1, "$$")] {
                let text = edited(EDITED, at, removed, inserted);
                let same = text.bytes().zip(previous.bytes()).take_while(|(new, old)| new == old).count() as u32;
                drop(memory.forget(|range| range.end >= same));
                let files = [file(HISTORY), file(&text)];
                let migrations = migrations(&files, mode);
                let mut state = Checkpoint::default();
                state.advance(&migrations, 1, settings.versions, &());
                let outcome = check_from(&state, &migrations, &settings, &mut memory);
                assert_eq!(outcome.found, check::check(&migrations, &settings), "{text}");
                previous = text;
            }
        }
    }
}

/// The memory has functions of the first run, and the state has those of its own.
#[test]
fn a_check_with_memory_of_another_state_finds_the_callers_of_a_function() {
    let settings = Settings::default();
    let history = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION calls_f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN f(); END $$;";
    let files = [file(history), file("DROP FUNCTION f();")];
    let migrations = migrations(&files, TransactionMode::Autocommit);
    let expected = check::check(&migrations, &settings);
    assert!(expected.iter().any(|found| found.rule == "drop-object" && !found.labels.is_empty()), "{expected:?}");
    let mut memory = Memory::default();
    for _ in 0..2 {
        let mut state = Checkpoint::default();
        state.advance(&migrations, 1, settings.versions, &());
        assert_eq!(check_from(&state, &migrations, &settings, &mut memory).found, expected);
    }
}

#[test]
fn memory_has_the_effects_of_each_statement() {
    let settings = Settings::default();
    let files = [file(HISTORY), file(EDITED)];
    let migrations = migrations(&files, TransactionMode::Autocommit);
    let mut state = Checkpoint::default();
    state.advance(&migrations, 1, settings.versions, &());
    let mut memory = Memory::default();
    check_from(&state, &migrations, &settings, &mut memory);
    let remembered: Vec<_> = memory.statements().collect();
    assert_eq!(remembered.len(), 7);
    let shown = pgvet_model::predict::effects(&migrations, settings.versions.to, &settings.functions);
    for (remembered, shown) in remembered.iter().zip(&shown[1]) {
        assert_eq!(remembered.effects, &shown.effects);
        assert_eq!((remembered.statement, remembered.transaction), (shown.statement, shown.transaction));
    }
    drop(memory.forget(|range| range.start > 40));
    assert_eq!(memory.statements().count(), 2);
}
