//! Which statements of a migration stay, and which a ROLLBACK undoes.

use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::statement::Statement;
use smol_str::SmolStr;

/// The statements of a migration by what becomes of them, without those that control transactions.
///
/// A transaction that is open at the end is treated as committed: `nested-transaction` reports it.
#[derive(Debug, Default)]
pub(crate) struct Lasting<'a> {
    pub(crate) statements: Vec<&'a Statement>,
    pub(crate) undone: Vec<&'a Statement>,
}

impl<'a> Lasting<'a> {
    pub(crate) fn of(migration: &Migration<'a>) -> Self {
        let wrapped = migration.transaction != TransactionMode::Autocommit;
        let implicit = wrapped && migration.begins_another();
        let mut walk = Walk { found: Self::default(), begun: None, savepoints: Vec::new() };
        walk.end(wrapped);
        for statement in migration.statements() {
            match statement.ast() {
                Some(Ast::Transaction(control)) => walk.control(control, implicit),
                _ => walk.found.statements.push(statement),
            }
        }
        walk.found
    }

    /// Undoes what has been done since there were so many lasting statements.
    fn undo(&mut self, since: usize) {
        self.undone.extend(self.statements.drain(since..));
    }
}

struct Walk<'a> {
    found: Lasting<'a>,
    /// How many lasting statements there were when the open transaction began, and when each of its savepoints was set.
    begun: Option<usize>,
    savepoints: Vec<(SmolStr, usize)>,
}

impl Walk<'_> {
    /// `implicit`: where a transaction ends, another one begins.
    fn control(&mut self, control: &Transaction, implicit: bool) {
        let present = self.found.statements.len();
        let find = |name: &SmolStr| self.savepoints.iter().rposition(|(set, _)| set == name);
        match control {
            Transaction::Begin => _ = self.begun.get_or_insert(present),
            Transaction::Commit { chain } => self.end(*chain || implicit),
            Transaction::Prepare => self.end(implicit),
            Transaction::Rollback { chain } => {
                self.found.undo(self.begun.unwrap_or(present));
                self.end(*chain || implicit);
            }
            Transaction::Savepoint(name) => {
                if self.begun.is_some() {
                    self.savepoints.push((name.text.clone(), present));
                }
            }
            Transaction::Release(name) => {
                if let Some(at) = find(&name.text) {
                    self.savepoints.truncate(at);
                }
            }
            Transaction::RollbackTo(name) => {
                if let Some(at) = find(&name.text) {
                    self.found.undo(self.savepoints[at].1);
                    self.savepoints.truncate(at + 1);
                }
            }
            Transaction::CommitPrepared | Transaction::RollbackPrepared => {}
        }
    }

    fn end(&mut self, begins: bool) {
        self.begun = begins.then_some(self.found.statements.len());
        self.savepoints.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    /// The numbers that the lasting statements select, and those of the others.
    fn lasting(text: &str, transaction: TransactionMode) -> (String, String) {
        let file = parse_file(SourceFile::new("m.sql".into(), text.into()));
        let found = Lasting::of(&Migration { transaction, ..Migration::new(&file) });
        let numbers = |statements: &[&Statement]| {
            statements.iter().map(|statement| text[statement.range.as_usize()].trim_start_matches("SELECT ")).collect()
        };
        (numbers(&found.statements), numbers(&found.undone))
    }

    #[test]
    fn rollback_undoes_what_is_in_its_transaction() {
        use TransactionMode::{Autocommit, SingleString, Transaction};
        for (mode, text, stays, undone) in [
            (Autocommit, "1; ROLLBACK; 2", "12", ""),
            (Transaction, "1; ROLLBACK; 2; ROLLBACK", "2", "1"),
            (SingleString, "1; ROLLBACK; 2; ROLLBACK", "", "12"),
            (SingleString, "1; COMMIT; 2; ROLLBACK; 3", "13", "2"),
            (Autocommit, "1; BEGIN; 2; BEGIN; 3; ROLLBACK; 4", "14", "23"),
            (Transaction, "1; BEGIN; 2; ROLLBACK", "", "12"),
            (Autocommit, "BEGIN; 1; ROLLBACK AND CHAIN; 2; ABORT; 3", "3", "12"),
            (Autocommit, "BEGIN; 1; COMMIT AND CHAIN; 2; ROLLBACK", "1", "2"),
            (Autocommit, "BEGIN; 1; PREPARE TRANSACTION 'p'; 2; ROLLBACK PREPARED 'p'", "12", ""),
            (Autocommit, "BEGIN; 1", "1", ""),
        ] {
            assert_eq!(lasting(&selects(text), mode), (stays.to_owned(), undone.to_owned()), "{mode:?} {text}");
        }
    }

    #[test]
    fn rollback_to_a_savepoint_undoes_what_followed_it() {
        for (text, stays, undone) in [
            ("BEGIN; 1; SAVEPOINT a; 2; ROLLBACK TO a; 3; ROLLBACK TO a; 4; COMMIT", "14", "23"),
            ("BEGIN; SAVEPOINT a; 1; SAVEPOINT b; 2; ROLLBACK TO a; 3; ROLLBACK TO b; COMMIT", "3", "12"),
            ("BEGIN; SAVEPOINT a; 1; SAVEPOINT a; 2; RELEASE a; 3; ROLLBACK TO a; COMMIT", "", "123"),
            ("BEGIN; SAVEPOINT a; 1; COMMIT; BEGIN; 2; ROLLBACK TO a; COMMIT", "12", ""),
            ("SAVEPOINT a; 1; ROLLBACK TO a; 2", "12", ""),
        ] {
            let found = lasting(&selects(text), TransactionMode::Autocommit);
            assert_eq!(found, (stays.to_owned(), undone.to_owned()), "{text}");
        }
    }

    /// `SELECT 1` for `1`.
    fn selects(text: &str) -> String {
        let select = |part: &str| if part.parse::<u32>().is_ok() { format!("SELECT {part}") } else { part.to_owned() };
        text.split("; ").map(select).collect::<Vec<_>>().join("; ")
    }
}
