//! `cargo xtask measure deparse`: what is written as SQL again, and parsed again by PostgreSQL's own parser: queries by
//! pgvet's own deparser, and all statements as a reduction writes them.

use super::{fixtures, share};
use pgvet_reduce::{WrittenAgain, is_same_statement, written_again};
use pgvet_syntax::ast::{Ast, Query};
use pgvet_syntax::deparse::query;
use pgvet_syntax::statement::parse;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A folder whose SQL files are read; else the fixtures.
    #[arg(long, value_name = "DIR")]
    checkouts: Option<PathBuf>,
}

/// What was read and written.
#[derive(Debug, Default)]
pub struct Report {
    pub files: usize,
    /// Files that are not UTF-8.
    pub unread: usize,
    pub statements: usize,
    /// Queries: SELECT, and those of views and of CREATE TABLE AS.
    pub queries: usize,
    /// Queries whose text parses to the same tree.
    pub same: usize,
    /// Queries that are not written, by the part that the tree does not keep.
    pub refused: BTreeMap<&'static str, usize>,
    /// Queries whose text parses to another tree, or does not parse: the file and the text.
    pub differing: Vec<String>,
    /// Queries whose typed tree is the same, and the tree of PostgreSQL's parser another one: the file and the text.
    pub not_kept: Vec<String>,
    /// Statements that PostgreSQL's parser reads.
    pub parsed: usize,
    /// Statements that a reduction writes with the same tree.
    pub reducible: usize,
    /// Statements that a reduction cannot write: the file and the statement.
    pub not_written: Vec<String>,
    /// Statements that a reduction writes with another tree: the file and the text.
    pub changed: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let report = measure(arguments.checkouts.as_deref().unwrap_or(&fixtures("")))?;
    let mut text = format!("{} files ({} unread), {} statements\n", report.files, report.unread, report.statements);
    let _ = writeln!(text, "queries that parse to the same tree: {}", share(report.same, report.queries));
    let _ = writeln!(text, "refused: {}", report.refused.values().sum::<usize>());
    for (part, count) in &report.refused {
        let _ = writeln!(text, "  {count} {part}");
    }
    let _ = writeln!(text, "not the same: {}", report.differing.len());
    for differing in &report.differing {
        let _ = writeln!(text, "  {differing}");
    }
    let _ = writeln!(text, "the same in pgvet's tree only: {}", report.not_kept.len());
    for not_kept in &report.not_kept {
        let _ = writeln!(text, "  {}", not_kept.replace('\n', " "));
    }
    let _ = writeln!(text, "statements that a reduction writes: {}", share(report.reducible, report.parsed));
    for (title, statements) in [("not written", &report.not_written), ("another tree", &report.changed)] {
        let _ = writeln!(text, "{title}: {}", statements.len());
        for statement in statements {
            let _ = writeln!(text, "  {}", statement.replace('\n', " "));
        }
    }
    Ok(text)
}

/// Writes and parses the queries of all SQL files below a folder.
///
/// # Errors
/// Names a folder that cannot be read.
pub fn measure(folder: &Path) -> Result<Report, String> {
    let mut report = Report::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| !path.is_symlink()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sql") {
                report.files += 1;
                match std::fs::read_to_string(&path) {
                    Ok(text) => report.file(&path, &text),
                    Err(_) => report.unread += 1,
                }
            }
        }
    }
    for list in [&mut report.differing, &mut report.not_kept, &mut report.not_written, &mut report.changed] {
        list.sort();
    }
    Ok(report)
}

impl Report {
    fn file(&mut self, path: &Path, text: &str) {
        for statement in parse(text) {
            self.statements += 1;
            let Ok(ast) = &statement.parsed else { continue };
            if statement.placeholders.is_empty() {
                self.statement(path, &text[statement.range.as_usize()]);
            }
            let Some(read) = query_of(ast) else { continue };
            self.queries += 1;
            match query(read) {
                Err(part) => *self.refused.entry(part.0).or_default() += 1,
                Ok(written) if is_same(read, &written) => {
                    self.same += 1;
                    let is_whole = statement.placeholders.is_empty();
                    if is_whole && !is_same_statement(&text[read.range.as_usize()], &written) {
                        self.not_kept.push(format!("{}: {written}", path.display()));
                    }
                }
                Ok(written) => self.differing.push(format!("{}: {written}", path.display())),
            }
        }
    }

    fn statement(&mut self, path: &Path, sql: &str) {
        self.parsed += 1;
        match written_again(sql) {
            WrittenAgain::Same => self.reducible += 1,
            WrittenAgain::Refused => self.not_written.push(format!("{}: {sql}", path.display())),
            WrittenAgain::Differs(written) => self.changed.push(format!("{}: {written}", path.display())),
        }
    }
}

fn query_of(ast: &Ast) -> Option<&Query> {
    match ast {
        Ast::Select(query) => Some(query),
        Ast::CreateView(create) => Some(&create.query),
        Ast::CreateTableAs(create) => create.query.as_deref(),
        _ => None,
    }
}

/// Whether a text parses to the same tree, wherever its parts stand.
fn is_same(read: &Query, written: &str) -> bool {
    let statements = parse(written);
    let [statement] = statements.as_slice() else { return false };
    match statement.parsed.as_deref() {
        Ok(Ast::Select(again)) => without_places(read) == without_places(again),
        _ => false,
    }
}

fn without_places(query: &Query) -> Option<Value> {
    fn clear(value: &mut Value) {
        match value {
            Value::Object(fields)
                if fields.len() == 2 && fields.contains_key("start") && fields.contains_key("end") =>
            {
                *value = Value::Null;
            }
            Value::Object(fields) => fields.values_mut().for_each(clear),
            Value::Array(items) => items.iter_mut().for_each(clear),
            _ => {}
        }
    }
    let mut tree = serde_json::to_value(query).ok()?;
    clear(&mut tree);
    Some(tree)
}
