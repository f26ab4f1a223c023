//! The statements of files, parsed shortly before the replay comes to them and forgotten when it has passed.
//!
//! The replay of a database is one thread. Threads that have nothing else to do parse for it; what none of them has got
//! to it parses itself.

use crate::parallel;
use pgvet_model::migration::Migration;
use pgvet_syntax::statement::{self, Statement};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes of text that are parsed before they are needed: enough for a slow migration, and little
/// beside the texts themselves.
const BYTES_AHEAD: usize = 128 << 10;

type Statements = Arc<Vec<Statement>>;

/// The statements of the file of a migration.
pub(crate) type Read<'a> = dyn Fn(u32) -> Statements + 'a;

/// Gives `work` the statements of migrations that are asked for in order, each file once.
pub(crate) fn with<R: Send>(migrations: &[Migration<'_>], work: impl FnOnce(&Read<'_>) -> R + Send) -> R {
    let (files, file_of) = files(migrations);
    parallel::with_helpers(&files, File::prepare, |prepare| {
        let (next, present) = (Cell::default(), RefCell::default());
        let reader = Reader { files: &files, file_of: &file_of, prepare, next, present };
        work(&|migration| reader.statements(migration))
    })
}

/// The files of migrations, and for each migration the index of its file. The sections of a file follow each other.
fn files<'m>(migrations: &[Migration<'m>]) -> (Vec<File<'m>>, Vec<usize>) {
    let mut files: Vec<File<'m>> = Vec::new();
    let mut file_of = Vec::with_capacity(migrations.len());
    for migration in migrations {
        let text = migration.file.text.as_str();
        if files.last().is_none_or(|file| !std::ptr::eq(file.text, text)) {
            let before = files.last().map_or(0, File::end);
            files.push(File { text, before, state: Mutex::new(State::Waiting), parsed: Condvar::new() });
        }
        file_of.push(files.len() - 1);
    }
    (files, file_of)
}

struct File<'m> {
    text: &'m str,
    /// Bytes of all texts before it.
    before: usize,
    state: Mutex<State>,
    /// Another thread has parsed it.
    parsed: Condvar,
}

enum State {
    Waiting,
    /// A thread is at it, or the replay has taken it.
    Begun,
    Parsed(Statements),
}

impl File<'_> {
    fn end(&self) -> usize {
        self.before + self.text.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parses it if nobody has begun to.
    fn prepare(&self) {
        let mut state = self.state();
        if !matches!(*state, State::Waiting) {
            return;
        }
        *state = State::Begun;
        drop(state);
        let parsed = catch_unwind(AssertUnwindSafe(|| statement::parse(self.text)));
        // The replay meets the same panic when it parses the text itself.
        *self.state() = parsed.map_or(State::Waiting, |statements| State::Parsed(Arc::new(statements)));
        self.parsed.notify_one();
    }

    fn take(&self) -> Statements {
        let mut state = self.state();
        loop {
            match std::mem::replace(&mut *state, State::Begun) {
                State::Waiting => {
                    drop(state);
                    return Arc::new(statement::parse(self.text));
                }
                State::Begun => state = self.parsed.wait(state).unwrap_or_else(PoisonError::into_inner),
                State::Parsed(statements) => return statements,
            }
        }
    }
}

/// Provides the statements that the replay requests.
struct Reader<'r, 'm> {
    files: &'r [File<'m>],
    file_of: &'r [usize],
    prepare: &'r dyn Fn(usize),
    /// The first file that nobody was asked to parse.
    next: Cell<usize>,
    /// The file that the replay is at.
    present: RefCell<Option<(usize, Statements)>>,
}

impl Reader<'_, '_> {
    fn statements(&self, migration: u32) -> Statements {
        let at = self.file_of[migration as usize];
        let mut present = self.present.borrow_mut();
        if let Some((_, statements)) = present.as_ref().filter(|(file, _)| *file == at) {
            return Arc::clone(statements);
        }
        *present = None;
        self.prepare_from(at);
        let statements = self.files[at].take();
        *present = Some((at, Arc::clone(&statements)));
        statements
    }

    /// Lets other threads parse what comes soon.
    fn prepare_from(&self, at: usize) {
        let mut next = self.next.get().max(at + 1);
        let end = self.files[at].end() + BYTES_AHEAD;
        while self.files.get(next).is_some_and(|file| file.before < end) {
            (self.prepare)(next);
            next += 1;
        }
        self.next.set(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::source::{SourceFile, TextRange};
    use pgvet_syntax::statement::ParsedFile;

    fn source(text: String) -> ParsedFile {
        ParsedFile::unread(SourceFile::new("m.sql".to_owned(), text))
    }

    /// Whether statements are read here or by other threads, they are those of the file that was asked for.
    #[test]
    fn each_migration_gets_the_statements_of_its_file() {
        for count in [1, 7, 200] {
            let texts = (0..count).map(|at| source(format!("SELECT {at};").repeat(at * 100)));
            let files: Vec<ParsedFile> = texts.collect();
            let up = |file| Migration { section: Some(TextRange::default()), ..Migration::new(file) };
            let migrations: Vec<Migration<'_>> =
                files.iter().flat_map(|file| [up(file), Migration::new(file)]).collect();
            // A run may begin anywhere.
            for first in [0, count] {
                let counts = with(&migrations, |statements| {
                    (first..migrations.len()).map(|at| statements(at as u32).len()).collect::<Vec<_>>()
                });
                assert_eq!(counts, (first..migrations.len()).map(|at| at / 2 * 100).collect::<Vec<_>>());
            }
        }
    }
}
