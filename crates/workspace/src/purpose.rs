//! Files that were found in a folder and whose text says that they are no migrations for PostgreSQL. Whoever names a file
//! has it checked whatever it says.

use crate::dialect::{self, Dialect, Tokens};
use crate::discovery::{Problem, display};
use crate::layout::Folders;
use crate::order;
use crate::project::{ProjectFile, Role};
use crate::skipped;
use pgvet_linter::statement;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// What the text of a file says that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing says that it is anything else.
    Migration,
    /// Queries from which sqlc makes code.
    Queries,
    /// PostgreSQL refuses a statement of it, and another database reads what none but it does.
    Other(Dialect),
}

/// What precedes the name of a query of sqlc.
const QUERY_NAME: &str = "-- name:";

/// What sqlc makes of a query. Source: sqlc 1.30 documentation, "Query annotations".
const QUERY_COMMANDS: [&str; 10] = [
    ":one",
    ":many",
    ":exec",
    ":execrows",
    ":execresult",
    ":execlastid",
    ":copyfrom",
    ":batchexec",
    ":batchone",
    ":batchmany",
];

impl Purpose {
    pub(crate) fn of(file: &ProjectFile) -> Self {
        let text = file.parsed.source.text.as_str();
        if text.contains(QUERY_NAME) && text.lines().any(is_query_name) {
            return Self::Queries;
        }
        if !dialect::may_be_other(text) {
            return Self::Migration;
        }
        let tokens = Tokens::new(text);
        match tokens.dialect() {
            Some(dialect) if !tokens.are_own() && is_refused(file) => Self::Other(dialect),
            _ => Self::Migration,
        }
    }
}

/// Is the line `-- name: GetUser :one`?
fn is_query_name(line: &str) -> bool {
    let Some(words) = line.trim_start().strip_prefix(QUERY_NAME) else { return false };
    let mut words = words.split_whitespace();
    words.next().is_some() && words.next().is_some_and(|command| QUERY_COMMANDS.contains(&command))
}

/// Does PostgreSQL's parser refuse any of its statements?
fn is_refused(file: &ProjectFile) -> bool {
    let is_refused = |statements: &[statement::Statement]| statements.iter().any(|one| one.parsed.is_err());
    match file.parsed.statements.as_slice() {
        // It was read only, to be parsed when the check comes to it. Few files have marks and get so far.
        [] => is_refused(&statement::parse(&file.parsed.source.text)),
        statements => is_refused(statements),
    }
}

/// Files with what they say themselves; `None` for those that were named.
type Loaded = Vec<(ProjectFile, Option<Purpose>)>;

/// Takes away the files that are no migrations for PostgreSQL, and tells of those that somebody may miss in the report.
pub(crate) fn leave_out(loaded: Loaded, folders: &Folders) -> (Vec<ProjectFile>, Option<Problem>) {
    let groups = groups(&loaded);
    let (mut files, mut left_out) = (Vec::with_capacity(loaded.len()), Vec::new());
    for (file, purpose) in loaded {
        match purpose.and_then(|purpose| foreign(&file.path, purpose, &groups, folders)) {
            Some(reader) => left_out.push((file, reader)),
            None => files.push(file),
        }
    }
    let is_reported = |file: &ProjectFile| file.role == Role::Reported;
    // Beside migrations, nobody takes queries for some.
    let is_missed = |reader| reader != Reader::Sqlc || !files.iter().any(is_reported);
    left_out.retain(|(file, reader)| is_reported(file) && is_missed(*reader));
    (files, note(&left_out))
}

/// What reads a file in place of PostgreSQL's migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    Sqlc,
    Database(Dialect),
}

/// What reads a file that was found, going by the files beside it too; `None` for PostgreSQL.
fn foreign(path: &Path, purpose: Purpose, groups: &Groups, folders: &Folders) -> Option<Reader> {
    if purpose == Purpose::Queries {
        return Some(Reader::Sqlc);
    }
    if groups.is_empty() {
        return None;
    }
    let group = groups.get(&run_together(path))?;
    let dialect = match purpose {
        _ if group.is_foreign() => Some(group.dialect),
        // Among migrations for PostgreSQL it is a mistake; among other scripts it may be for what it says.
        Purpose::Other(dialect) => Some(dialect).filter(|_| !is_migration(path, folders)),
        Purpose::Migration | Purpose::Queries => None,
    };
    dialect.map(Reader::Database)
}

/// The folders that hold a file for another database.
type Groups = FxHashMap<PathBuf, Group>;

#[derive(Debug)]
struct Group {
    dialect: Dialect,
    /// Is any of the files unmistakably for PostgreSQL?
    has_own: bool,
    /// Has a folder around them the name of the database in its own: `riversqlite`?
    is_named: bool,
    /// How many files there are, and how many of them are for another database.
    files: usize,
    foreign: usize,
}

impl Group {
    /// Are all of the files for another database? One among many may be a mistake.
    fn is_foreign(&self) -> bool {
        !self.has_own && (self.is_named || self.foreign * MOST_PORTABLE >= self.files)
    }
}

/// Of so many files of a folder for another database, one does what PostgreSQL does not.
const MOST_PORTABLE: usize = 5;

fn groups(loaded: &Loaded) -> Groups {
    let mut groups = Groups::default();
    for (file, purpose) in loaded {
        if let Some(Purpose::Other(dialect)) = *purpose {
            let folder = run_together(&file.path);
            let is_named = folder.to_string_lossy().to_ascii_lowercase().contains(dialect.word());
            let group = Group { dialect, has_own: false, is_named: false, files: 0, foreign: 0 };
            let group = groups.entry(folder).or_insert(group);
            group.dialect = group.dialect.max(dialect);
            group.is_named |= is_named;
            group.foreign += 1;
        }
    }
    if groups.is_empty() {
        return groups;
    }
    for (file, _) in loaded {
        if let Some(group) = groups.get_mut(&run_together(&file.path)) {
            group.files += 1;
            group.has_own = group.has_own || Tokens::new(&file.parsed.source.text).are_own();
        }
    }
    groups
}

/// The folder whose files are for one database: folders of versions lie below it.
fn run_together(path: &Path) -> PathBuf {
    let mut folder = order::sequence(path);
    while order::is_versioned(&folder) && folder.pop() {}
    folder
}

/// Is it run with others in an order, and not named after another database?
fn is_migration(path: &Path, folders: &Folders) -> bool {
    let facts = folders.around(path);
    let is_among_migrations = order::is_versioned(path) || facts.named.is_some() || facts.root().is_some();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    is_among_migrations && !skipped::is_for_another(&name)
}

fn note(missed: &[(ProjectFile, Reader)]) -> Option<Problem> {
    let (first, _) = missed.first()?;
    let readers: BTreeSet<Reader> = missed.iter().map(|(_, reader)| *reader).collect();
    let readers = readers.iter().map(Reader::to_string).collect::<Vec<_>>().join(", ");
    let message = match missed.len() - 1 {
        0 => format!("was not checked: it looks written for {readers}"),
        1 => format!("and 1 other file were not checked: they look written for {readers}"),
        others => format!("and {others} other files were not checked: they look written for {readers}"),
    };
    let help = "name a file to have it checked all the same; `exclude` under [migrations] in pgvet.toml leaves files out \
                without a word";
    Some(Problem { path: display(&first.path), message, help: Some(help.to_owned()) })
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlc => f.write_str("sqlc"),
            Self::Database(dialect) => dialect.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
