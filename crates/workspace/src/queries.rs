//! Queries of the project, which show what deployed code runs: files with named queries, and the queries that sqlx has
//! prepared.

mod drivers;

use crate::config::absolute;
use crate::problem::{Problem, display};
use crate::read;
use crate::roots::{self, Repositories};
use crate::skipped::{SkipReason, Skipped};
use crate::texts::Texts;
use pgvet_model::application::{Application, KnownStatement, KnownTransaction, QueryLibrary};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use serde::Deserialize;
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of queries that are read.
const MAX_QUERIES: usize = 5_000;
/// Maximum size of their texts, in bytes.
const MAX_BYTES: usize = 8 << 20;

/// The queries that were read, and a note about those that were not.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    pub(crate) application: Application,
    pub(crate) notes: Vec<Problem>,
    /// The size of the texts that were read.
    bytes: usize,
}

impl Queries {
    /// Reads the queries in skipped files and in folders around the migrations.
    pub(crate) fn gather<'f>(reported: impl Iterator<Item = &'f Path>, skipped: &[Skipped], texts: &Texts) -> Self {
        let mut queries = Self::default();
        for skipped in skipped.iter().filter(|skipped| skipped.reason == SkipReason::Queries) {
            queries.named(&skipped.path, texts);
        }
        let around = folders_around(reported);
        for folder in &around {
            queries.of_sqlx(folder);
        }
        queries.application.drivers = drivers::of(&around);
        queries
    }

    fn is_full(&self) -> bool {
        self.application.transactions.len() >= MAX_QUERIES || self.bytes >= MAX_BYTES
    }

    /// The queries of a file, each of which is a transaction.
    fn named(&mut self, path: &Path, texts: &Texts) {
        if self.is_full() {
            return self.note(path, "queries");
        }
        let Ok((source, _)) = texts.read(path) else { return };
        self.bytes += source.text.len();
        let library = library(&source.text);
        let file = parse_file(source);
        let mut unread = 0;
        for statement in &file.statements {
            if self.is_full() {
                unread += 1;
                continue;
            }
            match &statement.parsed {
                Ok(ast) if is_query(ast) => {
                    let line = file.source.position(statement.range.start).line;
                    let place = format_smolstr!("{}:{line}", file.source.path);
                    self.add(place, &file.source.text[statement.range.as_usize()], Arc::clone(ast), library);
                }
                Ok(_) => {}
                Err(_) => unread += 1,
            }
        }
        self.note_unread(path, unread);
    }

    /// The queries that `cargo sqlx prepare` has saved. Source: sqlx 0.8 documentation, "Enable building in offline mode".
    fn of_sqlx(&mut self, folder: &Path) {
        let mut unread = 0;
        for path in prepared_queries(folder) {
            let read = if self.is_full() { None } else { Prepared::read(&path) };
            match read {
                Some(Prepared { db_name, .. }) if db_name != "PostgreSQL" => {}
                Some(Prepared { query, .. }) => unread += usize::from(!self.prepared(&path, query)),
                None => unread += 1,
            }
        }
        self.note_unread(&folder.join(PREPARED), unread);
    }

    /// Whether the query was understood.
    fn prepared(&mut self, path: &Path, query: String) -> bool {
        self.bytes += query.len();
        let file = parse_file(SourceFile::new(display(path), query));
        let [statement] = file.statements.as_slice() else { return false };
        let Ok(ast) = &statement.parsed else { return false };
        if is_query(ast) {
            self.add(shortened(path), &file.source.text, Arc::clone(ast), Some(QueryLibrary::Sqlx));
        }
        true
    }

    fn add(&mut self, place: SmolStr, sql: &str, ast: Arc<Ast>, library: Option<QueryLibrary>) {
        let statement = KnownStatement { place, sql: sql.into(), ast };
        self.application.transactions.push(KnownTransaction::new(vec![statement], library));
    }

    fn note_unread(&mut self, path: &Path, count: usize) {
        if count == 0 {
            return;
        }
        let queries = if count == 1 { "1 query".to_owned() } else { format!("{count} queries") };
        self.note(path, &queries);
    }

    fn note(&mut self, path: &Path, queries: &str) {
        let message = format!("has {queries} that pgvet did not read, so findings about deployed code may be missing");
        self.notes.push(Problem { path: roots::shown(path), message, help: None });
    }
}

/// The folder of the queries that sqlx has prepared.
const PREPARED: &str = ".sqlx";

/// The files of the queries that sqlx has prepared in a folder, in order.
pub(crate) fn prepared_queries(folder: &Path) -> Vec<PathBuf> {
    let prepared = folder.join(PREPARED);
    if fs::symlink_metadata(&prepared).is_ok_and(|folder| folder.is_symlink()) {
        return Vec::new();
    }
    let entries = fs::read_dir(&prepared).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let is_prepared = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("query-") && path.extension().is_some_and(|extension| extension == "json")
    };
    let mut paths: Vec<PathBuf> = entries.filter(is_prepared).collect();
    paths.sort();
    paths
}

/// A query that sqlx has prepared.
#[derive(Deserialize)]
struct Prepared {
    db_name: String,
    query: String,
}

impl Prepared {
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_str(&read::text(path).ok()?).ok()
    }
}

/// Whether an application runs such statements repeatedly.
fn is_query(ast: &Ast) -> bool {
    matches!(ast, Ast::Select(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_) | Ast::Call(_))
}

/// The path with the first digits of the digest: `.sqlx/query-0123abcd….json`.
fn shortened(path: &Path) -> SmolStr {
    let shown = roots::shown(path);
    match shown.rfind("query-") {
        Some(at) if shown.is_char_boundary(at + 14) => format_smolstr!("{}….json", &shown[..at + 14]),
        _ => shown.into(),
    }
}

/// The library that a file with named queries is for, by the command after a name: `:one` is sqlc's.
fn library(text: &str) -> Option<QueryLibrary> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("-- name:"));
    let is_of_sqlc = |name: &str| name.split_whitespace().nth(1).is_some_and(|command| command.starts_with(':'));
    Some(if names.into_iter().any(is_of_sqlc) { QueryLibrary::Sqlc } else { QueryLibrary::Other })
}

/// The folders above the migrations, up to the top of their repository.
fn folders_around<'f>(reported: impl Iterator<Item = &'f Path>) -> BTreeSet<PathBuf> {
    let mut repositories = Repositories::default();
    let mut found = BTreeSet::new();
    let mut known = BTreeSet::new();
    for path in reported {
        let Some(folder) = absolute(path).parent().map(Path::to_owned) else { continue };
        if !known.insert(folder.clone()) {
            continue;
        }
        let Some(top) = repositories.top(&folder) else { continue };
        found.extend(folder.ancestors().take_while(|above| above.starts_with(&top)).map(Path::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_after_a_name_shows_the_library() {
        assert_eq!(library("-- name: GetUser :one\nSELECT 1;"), Some(QueryLibrary::Sqlc));
        assert_eq!(library("-- name: get-users\nSELECT 1;"), Some(QueryLibrary::Other));
        assert_eq!(library("/* @name GetUser */\nSELECT 1;"), Some(QueryLibrary::Other));
    }

    #[test]
    fn queries_of_libraries_are_read() {
        let root = tempfile::tempdir().unwrap();
        let query = root.path().join("users.sql");
        let text = "-- name: get-user\nSELECT * FROM users WHERE id = :id;\n\n-- name: SetName :exec\n\
                    UPDATE users SET name = @name WHERE id = $1;\n-- name: broken\nSELEKT 1;\n";
        fs::write(&query, text).unwrap();
        fs::create_dir(root.path().join(".sqlx")).unwrap();
        let digest = "0123456789abcdef";
        let json = r#"{"db_name":"PostgreSQL","query":"SELECT * FROM users WHERE id = $1","describe":{},"hash":"0"}"#;
        fs::write(root.path().join(format!(".sqlx/query-{digest}.json")), json).unwrap();
        fs::write(root.path().join(".sqlx/query-ffffffffffff.json"), "{").unwrap();
        let mut queries = Queries::default();
        queries.named(&query, &Texts::default());
        queries.of_sqlx(root.path());
        let places: Vec<String> = queries
            .application
            .transactions
            .iter()
            .map(|one| {
                let place = one.statements[0].place.as_str();
                place[place.rfind('/').unwrap() + 1..].to_owned()
            })
            .collect();
        assert_eq!(places, ["users.sql:2", "users.sql:5", "query-01234567….json"]);
        assert_eq!(queries.notes.len(), 2, "{:?}", queries.notes);
    }

    #[test]
    fn queries_are_read_up_to_a_size() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".sqlx")).unwrap();
        let query = format!("SELECT '{}'", "x".repeat(MAX_BYTES / 2));
        let json = format!(r#"{{"db_name":"PostgreSQL","query":"{query}"}}"#);
        for number in 0..4 {
            fs::write(root.path().join(format!(".sqlx/query-{number}.json")), &json).unwrap();
        }
        let mut queries = Queries::default();
        queries.of_sqlx(root.path());
        assert_eq!(queries.application.transactions.len(), 2);
        assert!(queries.notes[0].message.starts_with("has 2 queries that pgvet did not read"), "{:?}", queries.notes);
    }
}
