//! Files that were found in a folder and whose text says that they are not migrations for PostgreSQL. A file that
//! the user names is checked whatever its text says.

use crate::dialect::{self, Dialect, Tokens};
use crate::known_order::UnknownOrder;
use crate::layout::{Folders, Tool};
use crate::problem::{Problem, display};
use crate::project::{ProjectFile, Role};
use crate::skipped::{self, SkipReason, Skipped};
use crate::{framework, order};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::lexer::{Token, TokenKind};
use pgvet_syntax::statement::{self, Placeholder, PlaceholderKind, Statement};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The purpose of a file according to its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing says that it is anything else.
    Migration,
    /// Queries with names, from which sqlc, HugSQL, yesql, aiosql or `PgTyped` makes code.
    Queries,
    /// A statement of it has `$1`, `?` or `%s` where a program is to put a value.
    Parameters,
    /// PostgreSQL refuses a statement of it, and another database reads what none but it does.
    Other(Dialect),
    /// The schema of a whole database, as `pg_dump` prints it.
    Dump,
}

/// The text before the name of a query of sqlc, yesql and aiosql, of HugSQL, and of `PgTyped`.
const QUERY_NAMES: [&str; 3] = ["-- name:", "-- :name ", "/* @name "];

/// The commands for a query. Source: sqlc 1.30 documentation, "Query annotations"; HugSQL 0.5 documentation, "Command".
const QUERY_COMMANDS: [&str; 18] = [
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
    ":?",
    ":!",
    ":<!",
    ":i!",
    ":query",
    ":execute",
    ":returning-execute",
    ":insert",
];

impl Purpose {
    pub(crate) fn of(file: &ProjectFile) -> Self {
        let text = file.parsed.source.text.as_str();
        // sqlc reads migrations with versions as the schema, and takes no queries from them.
        let has_names = || text.lines().any(is_query_name) || begins_with_name(text);
        let has_names = || QUERY_NAMES.iter().any(|name| text.contains(name)) && has_names();
        let is_versioned = order::is_versioned(&file.path);
        if !is_versioned && has_names() {
            return Self::Queries;
        }
        if is_dump(text) {
            return Self::Dump;
        }
        let has_marks = text.contains(['?', '%']) || text.contains("$1");
        if !is_versioned
            && has_marks
            && with_statements(file, |all, text| all.iter().any(|one| has_parameter(one, text)))
        {
            return Self::Parameters;
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

/// Whether `pg_dump` has printed the text. Rails leaves its comments out of `structure.sql`, and not its settings.
///
/// Source: PostgreSQL 18, `src/bin/pg_dump/pg_backup_archiver.c`: `RestoreArchive` and `_doSetFixedOutputState`.
pub fn is_dump(text: &str) -> bool {
    const START: usize = 4096;
    let end = (0..=START.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = &text[..end];
    start.contains("-- PostgreSQL database dump\n")
        || (start.contains("SET check_function_bodies = false;")
            && start.contains("SET client_min_messages = warning;"))
}

/// Ends of names that say what a query returns. Source: aiosql 13 documentation, "Defining SQL Queries"; yesql 0.5,
/// README, "Usage".
const NAME_ENDS: [&str; 6] = ["<!", "*!", "!", "^", "$", "#"];

/// Whether the line is one such as `-- name: GetUser :one`, `-- :name get-user :? :1`, `-- name: delete-user!`, or
/// `/* @name GetUser */`. Source: `PgTyped` 2 documentation, "Annotated SQL files".
fn is_query_name(line: &str) -> bool {
    let line = line.trim_start();
    let Some((mark, words)) = QUERY_NAMES.iter().find_map(|name| Some((*name, line.strip_prefix(name)?))) else {
        return false;
    };
    let mut words = words.split_whitespace();
    let Some(name) = words.next() else { return false };
    match words.next() {
        Some(command) if mark.starts_with("/*") => command == "*/",
        Some(command) => QUERY_COMMANDS.contains(&command),
        None => mark == "-- name:" && NAME_ENDS.iter().any(|end| name.len() > end.len() && name.ends_with(end)),
    }
}

/// Whether the first line of a text is the name of a query of yesql or aiosql, and nothing but it: `-- name: get-users`.
fn begins_with_name(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let name = first.and_then(|line| line.strip_prefix("-- name:")).map(str::trim).unwrap_or_default();
    !name.is_empty() && name.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '_'))
}

/// Whether PostgreSQL's parser refuses any of its statements.
fn is_refused(file: &ProjectFile) -> bool {
    with_statements(file, |statements, _| statements.iter().any(|one| one.parsed.is_err()))
}

/// Calls `ask` with the statements of a file, and its text.
fn with_statements<T>(file: &ProjectFile, ask: impl Fn(&[Statement], &str) -> T) -> T {
    let text = file.parsed.source.text.as_str();
    match file.parsed.statements.as_slice() {
        // It was read only, to be parsed when the check comes to it. Few files have marks and get so far.
        [] => ask(&statement::parse(text), text),
        statements => ask(statements, text),
    }
}

/// Whether a program must put values into the statement before PostgreSQL can run it.
fn has_parameter(statement: &Statement, text: &str) -> bool {
    has_numbered_parameter(statement) || has_question_mark(statement, text) || has_format_mark(statement, text)
}

/// Whether it has `$1` although neither PREPARE nor a function gives it a value.
fn has_numbered_parameter(statement: &Statement) -> bool {
    let has_values = matches!(statement.ast(), Some(Ast::Prepare(_) | Ast::CreateFunction(_)));
    let is_replaced = |placeholder: &Placeholder| placeholder.kind == PlaceholderKind::Parameter;
    !has_values
        && (statement.tokens.iter().any(|token| token.kind == TokenKind::Parameter)
            || statement.placeholders.iter().any(is_replaced))
}

/// Whether PostgreSQL refuses it, and `?` stands for a value. Elsewhere `?` is an operator, between two values.
fn has_question_mark(statement: &Statement, text: &str) -> bool {
    let tokens = &statement.tokens;
    let ends_value = |token: Option<&Token>| {
        token.is_none_or(|token| matches!(token.kind, TokenKind::Punctuation(b')' | b',' | b';') | TokenKind::Word))
    };
    let is_parameter = |at: usize| {
        let begins_value = at.checked_sub(1).is_some_and(|before| {
            matches!(
                tokens[before].kind,
                TokenKind::Punctuation(b'(' | b',' | b'=') | TokenKind::Operator | TokenKind::Word
            )
        });
        tokens[at].text(text) == "?" && begins_value && ends_value(tokens.get(at + 1))
    };
    statement.parsed.is_err() && (0..tokens.len()).any(is_parameter)
}

/// Whether PostgreSQL stops at a mark of `printf`: `%s`, `%d`, `%[1]s`, `%(name)s`.
fn has_format_mark(statement: &Statement, text: &str) -> bool {
    let Err(error) = &statement.parsed else { return false };
    let Some(mark) = statement.tokens.iter().find(|token| token.range.start == error.range.start) else { return false };
    let after = text.get(mark.range.end as usize..).unwrap_or_default();
    let of_conversion = |after: &str| {
        let mut letters = after.chars();
        letters.next().is_some_and(|letter| "sdvqiLI".contains(letter))
            && letters.next().is_none_or(|next| !next.is_ascii_alphanumeric() && next != '_')
    };
    let named = [('(', ')'), ('[', ']')]
        .iter()
        .find_map(|(open, close)| Some(after.strip_prefix(*open)?.split_once(*close)?.1));
    mark.text(text) == "%" && of_conversion(named.unwrap_or(after))
}

/// Files with what they say themselves; `None` for those that were named.
type Loaded = Vec<(ProjectFile, Option<Purpose>)>;

/// Files that are not migrations for PostgreSQL.
#[derive(Debug, Default)]
pub(crate) struct Excluded {
    pub(crate) skipped: Vec<Skipped>,
    /// Reports the excluded files that somebody may miss in the report.
    pub(crate) note: Option<Problem>,
}

/// Separates the migrations from files that are not migrations for PostgreSQL.
pub(crate) fn exclude(loaded: Loaded, folders: &Folders) -> (Vec<ProjectFile>, Excluded) {
    let groups = groups(&loaded);
    let migrations = || loaded.iter().filter(|(file, purpose)| is_ordered_migration(file, *purpose));
    let with_migrations: BTreeSet<u32> = migrations().map(|(file, _)| file.database).collect();
    // A folder of scripts alone is one of migrations only where there is no other.
    let are_known = migrations().any(|(file, _)| !is_script(file));
    let of_migrations: BTreeSet<PathBuf> = migrations()
        .filter(|(file, _)| !are_known || !is_script(file))
        .map(|(file, _)| run_together(&file.path))
        .collect();
    let (mut files, mut excluded) = (Vec::with_capacity(loaded.len()), Vec::new());
    for (file, purpose) in loaded {
        let reader = match purpose {
            Some(Purpose::Dump) => is_beside_migrations(&file, &with_migrations).then_some(Reader::Restore),
            purpose => {
                purpose.and_then(|purpose| foreign(&file.path, &file.parsed.source.text, purpose, &groups, folders))
            }
        };
        let reader = reader.or_else(|| {
            let is_elsewhere = purpose.is_some() && is_script(&file) && is_outside(&file.path, &of_migrations);
            is_elsewhere.then_some(Reader::Somebody)
        });
        match reader {
            Some(reader) => excluded.push((file, reader)),
            None => files.push(file),
        }
    }
    excluded.retain(|(file, _)| file.role == Role::Reported);
    let skipped = excluded.iter().map(|(file, reader)| Skipped { path: file.path.clone(), reason: reader.reason() });
    let skipped = skipped.collect();
    let foreign = excluded.iter().filter_map(|(file, reader)| match reader {
        Reader::Database(dialect) => Some((file.path.as_path(), *dialect)),
        Reader::Queries | Reader::Restore | Reader::Program | Reader::Somebody => None,
    });
    (files, Excluded { skipped, note: note(&foreign.collect::<Vec<_>>()) })
}

/// Whether it is known when the up migration runs, and it is no dump itself.
fn is_ordered_migration(file: &ProjectFile, purpose: Option<Purpose>) -> bool {
    file.role != Role::Baseline
        && file.is_run()
        && purpose != Some(Purpose::Dump)
        && !matches!(file.unknown_order, Some(UnknownOrder::NoVersion))
        && !file.layout.unlisted
}

/// Whether a dump is the state that migrations lead to, and not one of them: nothing shows when it runs, and there are
/// migrations for which something does, or a framework has them in programs.
fn is_beside_migrations(file: &ProjectFile, with_migrations: &BTreeSet<u32>) -> bool {
    let has_no_order = file.unknown_order == Some(UnknownOrder::NoVersion) || is_script(file);
    let around = || file.path.parent().and_then(framework::around);
    let of_framework = || around().is_some_and(|found| found.framework.has_programs());
    has_no_order && (with_migrations.contains(&file.database) || of_framework())
}

/// Whether neither the name of a file nor a tool makes it a migration.
pub(crate) fn is_script(file: &ProjectFile) -> bool {
    file.layout.tool == Tool::Plain && !order::is_versioned(&file.path)
}

/// Whether there are migrations, and none of their folders holds the file: it may be a query of the program, a template
/// or a script for something else.
fn is_outside(path: &Path, of_migrations: &BTreeSet<PathBuf>) -> bool {
    !of_migrations.is_empty() && !path.ancestors().skip(1).any(|folder| of_migrations.contains(folder))
}

/// The program that reads a file in place of a migration tool for PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    /// A library that makes code of queries.
    Queries,
    /// psql or `pg_restore`, which makes a database of a dump.
    Restore,
    /// A program that puts values in place of `?`.
    Program,
    Database(Dialect),
    /// An unknown program, or a person.
    Somebody,
}

impl Reader {
    fn reason(self) -> SkipReason {
        match self {
            Self::Queries => SkipReason::Queries,
            Self::Restore => SkipReason::Dump,
            Self::Program => SkipReason::Parameters,
            Self::Database(_) => SkipReason::OtherDatabase,
            Self::Somebody => SkipReason::NoMigration,
        }
    }
}

/// The reader of a file that was found, judging by the files beside it too; `None` for PostgreSQL.
fn foreign(path: &Path, text: &str, purpose: Purpose, groups: &Groups, folders: &Folders) -> Option<Reader> {
    if purpose == Purpose::Queries {
        return Some(Reader::Queries);
    }
    if purpose == Purpose::Parameters {
        return Some(Reader::Program).filter(|_| !is_migration(path, folders));
    }
    let own = |text: &str| Tokens::new(text).are_own();
    if let Some(dialect) = folders.around(path).database.other.filter(|_| !own(text)) {
        return Some(Reader::Database(dialect));
    }
    if groups.is_empty() {
        return None;
    }
    let group = groups.get(&run_together(path))?;
    let dialect = match purpose {
        _ if group.is_foreign() => Some(group.dialect),
        // Among migrations for PostgreSQL it is a mistake; among other scripts it may be for what it says.
        Purpose::Other(dialect) => Some(dialect).filter(|_| !is_migration(path, folders)),
        Purpose::Migration | Purpose::Queries | Purpose::Parameters | Purpose::Dump => None,
    };
    dialect.map(Reader::Database)
}

/// The folders that hold a file for another database.
type Groups = FxHashMap<PathBuf, Group>;

#[derive(Debug)]
struct Group {
    dialect: Dialect,
    /// Whether any of the files is unmistakably for PostgreSQL.
    has_own: bool,
    /// Whether a folder around them has the name of the database in its own: `riversqlite`.
    is_named: bool,
    /// How many files there are, and how many of them are for another database.
    files: usize,
    foreign: usize,
}

impl Group {
    /// Whether all of the files are for another database. One among many may be a mistake.
    fn is_foreign(&self) -> bool {
        !self.has_own && (self.is_named || self.foreign * MOST_PORTABLE >= self.files)
    }
}

/// Number of files of a folder for another database, of which at least one does what PostgreSQL does not.
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

/// Whether it is run with others in an order, and not named after another database.
fn is_migration(path: &Path, folders: &Folders) -> bool {
    let facts = folders.around(path);
    let is_among_migrations = order::is_versioned(path) || facts.named.is_some() || facts.root().is_some();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    is_among_migrations && !skipped::is_for_another(&name)
}

/// Reports files whose text is written for another database: that is a guess. The summary counts the other ones.
fn note(foreign: &[(&Path, Dialect)]) -> Option<Problem> {
    let (first, _) = foreign.first()?;
    let databases: BTreeSet<Dialect> = foreign.iter().map(|(_, dialect)| *dialect).collect();
    let databases = databases.iter().map(Dialect::to_string).collect::<Vec<_>>().join(", ");
    let message = match foreign.len() - 1 {
        0 => format!("was not checked: it seems to be written for {databases}"),
        1 => format!("and 1 other file were not checked: they seem to be written for {databases}"),
        others => format!("and {others} other files were not checked: they seem to be written for {databases}"),
    };
    let help = "name a file to check it; under [migrations] in pgvet.toml, `include` checks files and `exclude` skips \
                them without this note";
    Some(Problem { path: display(first), message, help: Some(help.to_owned()) })
}

#[cfg(test)]
mod tests;
