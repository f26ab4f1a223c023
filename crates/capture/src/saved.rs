//! An earlier capture, from whose end a run can go on.

use crate::cut::Capture;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_syntax::ast::{Ast, ExprKind, Part};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse, parse_file};
use pgvet_workspace::captured::{Header, Manifest, split_own_statements, staleness, transaction};
use pgvet_workspace::{Boundary, Problem, sql_to_run};
use std::fs;
use std::path::{Component, Path};

/// The migrations of an earlier capture that still say what their sources do, up to the first that does not.
#[derive(Debug, Default)]
pub struct Saved {
    pub tool: Option<String>,
    pub migrations: Vec<SavedMigration>,
    /// Why the others have to run again.
    pub ends: Option<String>,
}

/// A captured migration.
#[derive(Debug)]
pub struct SavedMigration {
    /// The name of its file, and the text.
    pub file: String,
    pub text: String,
    /// What is sent to restore the state after it.
    replay: ParsedFile,
    transaction: TransactionMode,
    /// How many of its statements are not replayed.
    omitted: usize,
}

impl SavedMigration {
    /// The migration as it is replayed.
    pub(crate) fn migration(&self) -> Migration<'_> {
        Migration { transaction: self.transaction, report: false, database: 1, ..Migration::new(&self.replay) }
    }
}

impl Saved {
    /// Reads a capture of a project. `None`: the folder has no capture.
    pub fn read(folder: &Path, project: &Path) -> Option<Self> {
        let manifest = Manifest::of(folder)?;
        let mut saved = Self { tool: Some(manifest.tool.clone()), ..Self::default() };
        if !is_same_folder(&folder.join(&manifest.root), project) {
            saved.ends = Some("it was captured in another folder".to_owned());
            return Some(saved);
        }
        let boundary = Boundary::within(folder);
        for name in &manifest.files {
            match migration(folder, name, &boundary) {
                Ok(migration) => saved.migrations.push(migration),
                Err(why) => {
                    saved.ends = Some(why);
                    break;
                }
            }
        }
        Some(saved)
    }

    /// How many statements are not replayed, because they only change rows or the values that they need are not recorded.
    pub fn omitted(&self) -> usize {
        self.migrations.iter().map(|migration| migration.omitted).sum()
    }

    /// Removes the migrations that another capture has.
    pub fn remove(&mut self, capture: &Capture) {
        let is_captured = |name: &str| capture.migrations.iter().any(|migration| migration.name == name);
        self.migrations.retain(|migration| !is_captured(&Header::of(&migration.text).name));
    }

    /// The migrations as they are replayed.
    pub fn migrations(&self) -> Vec<Migration<'_>> {
        self.migrations.iter().map(SavedMigration::migration).collect()
    }

    /// The names of files with what is sent to restore the state after them.
    pub(crate) fn files_to_run(&self) -> Vec<(String, String)> {
        let replay = |migration: &SavedMigration| (migration.file.clone(), migration.replay.source.text.clone());
        self.migrations.iter().map(replay).collect()
    }

    /// The names of files with their texts.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        self.migrations.iter().map(|migration| (migration.file.clone(), migration.text.clone())).collect()
    }
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn migration(folder: &Path, name: &str, boundary: &Boundary) -> Result<SavedMigration, String> {
    let path = folder.join(name);
    let is_name = matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    if let Some(why) = boundary.refusal(&path).or_else(|| (!is_name).then(|| "is not the name of a file".to_owned())) {
        return Err(format!("`{name}` {why}"));
    }
    let text = sql_to_run(&path).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
    if let Some(Problem { message, .. }) = staleness(&path, &text) {
        return Err(format!("`{name}` {message}"));
    }
    let (sql, own) = split_own_statements(&text);
    if own.is_empty() || Header::of(&text).name.is_empty() {
        return Err(format!("`{name}` does not say how the migration tool recorded it"));
    }
    let (mut replayed, omitted) = without_rows(sql);
    own.iter().for_each(|sql| replayed.extend([sql, ";\n"]));
    let replay = parse_file(SourceFile::new(path.display().to_string(), replayed));
    Ok(SavedMigration { file: name.to_owned(), transaction: transaction(&text), replay, text, omitted })
}

/// The text with blanks in place of statements that only change rows, and of those with parameters, and their number.
///
/// Rows are incomplete in a capture: a statement is in it once, however often it was sent, and values of parameters are
/// not recorded.
fn without_rows(text: &str) -> (String, usize) {
    let (mut kept, mut omitted) = (text.to_owned(), 0);
    for statement in parse(text) {
        let Some(ast) = statement.ast() else { continue };
        let is_about_rows = matches!(ast, Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_));
        if is_about_rows || has_parameters(ast) {
            omitted += 1;
            let range = statement.range.as_usize();
            let blank = " ".repeat(range.len());
            kept.replace_range(range, &blank);
        }
    }
    (kept, omitted)
}

fn has_parameters(ast: &Ast) -> bool {
    let mut found = false;
    ast.visit(&mut |part| found |= matches!(part, Part::Expr(value) if matches!(value.kind, ExprKind::Parameter(_))));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_pipe_among_the_saved_migrations_is_not_waited_for() {
        let project = tempfile::tempdir().unwrap();
        let manifest = Manifest::new("knex".to_owned(), ".".into(), vec!["1.sql".to_owned()]);
        fs::write(project.path().join(pgvet_workspace::captured::MANIFEST), manifest.to_text()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(project.path().join("1.sql")).status().unwrap();
        assert!(made.success());
        let saved = Saved::read(project.path(), project.path()).unwrap();
        assert!(saved.migrations.is_empty());
        assert!(saved.ends.is_some_and(|why| why.starts_with("`1.sql` cannot be read")));
    }

    #[test]
    fn rows_are_not_replayed() {
        let text = "CREATE TABLE t (a int);\nINSERT INTO t VALUES (1);\nSELECT f($1);\nSELECT g();\n";
        let (kept, omitted) = without_rows(text);
        let left: Vec<&str> = kept.split_whitespace().collect();
        assert_eq!(left.join(" "), "CREATE TABLE t (a int); ; ; SELECT g();");
        assert_eq!((omitted, kept.len()), (2, text.len()));
    }
}
