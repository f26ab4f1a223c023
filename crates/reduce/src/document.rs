//! What is reduced: the statements of files, with the text between them.

use crate::size::{Size, token_count};
use pgvet_syntax::statement::{self, Piece, PieceKind};
use rustc_hash::FxHasher;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Files with statements. Cloning it is cheap.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub(crate) files: Vec<File>,
}

/// One file. A file that has lost everything stays, without text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct File {
    /// As it is shown.
    pub(crate) path: String,
    pub(crate) parts: Vec<Arc<Part>>,
}

/// A statement, or the text between two.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// White space.
    Space(String),
    /// Comments, commands of psql and other text that is not SQL, with a number of its own.
    Other(usize, String),
    Statement(Statement),
}

/// A statement of the document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Statement {
    /// Its number among all statements of the original document.
    pub(crate) id: usize,
    /// Without the semicolon.
    pub(crate) sql: String,
    /// The semicolon, and the data of COPY.
    pub(crate) end: String,
}

/// A statement in the text of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) id: usize,
    /// The offset of its first byte.
    pub(crate) start: u32,
}

impl Document {
    /// Takes texts apart. Each is the shown path of a file and its text.
    pub fn new<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let (mut statements, mut others) = (0, 0);
        let file = |(path, text): (&str, &str)| File {
            path: path.to_owned(),
            parts: parts(text, &mut statements, &mut others).into_iter().map(Arc::new).collect(),
        };
        Self { files: texts.into_iter().map(file).collect() }
    }

    /// The text of each file.
    pub fn texts(&self) -> impl Iterator<Item = (&str, String)> {
        self.files.iter().map(|file| (file.path.as_str(), file.text()))
    }

    /// The text of each statement, without its semicolon.
    pub fn sql(&self) -> impl Iterator<Item = &str> {
        self.statements().map(|statement| statement.sql.as_str())
    }

    pub(crate) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.files.iter().flat_map(File::statements)
    }

    pub(crate) fn statement(&self, id: usize) -> Option<&Statement> {
        self.statements().find(|statement| statement.id == id)
    }

    /// The numbers of what is not SQL.
    pub(crate) fn others(&self) -> Vec<usize> {
        let number = |part: &Arc<Part>| match **part {
            Part::Other(number, _) => Some(number),
            _ => None,
        };
        self.files.iter().flat_map(|file| &file.parts).filter_map(number).collect()
    }

    /// Removes the statements that are not among these.
    pub(crate) fn with_statements(&self, kept: &BTreeSet<usize>) -> Self {
        self.filtered(&|part| match part {
            Part::Statement(statement) => kept.contains(&statement.id),
            _ => true,
        })
    }

    /// Removes what is not SQL and not among these.
    pub(crate) fn with_others(&self, kept: &BTreeSet<usize>) -> Self {
        self.filtered(&|part| match part {
            Part::Other(number, _) => kept.contains(number),
            _ => true,
        })
    }

    fn filtered(&self, keeps: &dyn Fn(&Part) -> bool) -> Self {
        Self { files: self.files.iter().map(|file| file.filtered(keeps)).collect() }
    }

    /// The same digest in every run for the same texts.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for file in &self.files {
            file.parts.len().hash(&mut hasher);
            file.parts.iter().for_each(|part| part.hash(&mut hasher));
        }
        hasher.finish()
    }

    /// Removes the files that are not among these.
    pub(crate) fn with_files(&self, kept: &BTreeSet<usize>) -> Self {
        let of_file = |(at, file): (usize, &File)| {
            if kept.contains(&at) { file.clone() } else { File { path: file.path.clone(), parts: Vec::new() } }
        };
        Self { files: self.files.iter().enumerate().map(of_file).collect() }
    }

    /// Puts another text in place of that of a statement.
    pub(crate) fn with_sql(&self, id: usize, sql: &str) -> Self {
        let mut changed = self.clone();
        for part in changed.files.iter_mut().flat_map(|file| &mut file.parts) {
            if let Part::Statement(statement) = &**part
                && statement.id == id
            {
                *part = Arc::new(Part::Statement(Statement { sql: sql.to_owned(), ..statement.clone() }));
            }
        }
        changed
    }

    pub fn size(&self) -> Size {
        Size {
            files: self.files.iter().filter(|file| !file.parts.is_empty()).count(),
            statements: self.statements().count(),
            tokens: self.statements().map(|statement| token_count(&statement.sql)).sum(),
        }
    }
}

impl File {
    /// Whether it is a copy that has changed nowhere.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.parts.iter().filter_map(|part| match &**part {
            Part::Statement(statement) => Some(statement),
            _ => None,
        })
    }

    pub(crate) fn text(&self) -> String {
        self.placed().0
    }

    /// The text, and where its statements are in it.
    pub(crate) fn placed(&self) -> (String, Vec<Placed>) {
        let (mut text, mut placed) = (String::new(), Vec::new());
        for part in &self.parts {
            match &**part {
                Part::Space(other) | Part::Other(_, other) => text.push_str(other),
                Part::Statement(statement) => {
                    placed.push(Placed { id: statement.id, start: text.len() as u32 });
                    text.push_str(&statement.sql);
                    text.push_str(&statement.end);
                }
            }
        }
        (text, placed)
    }

    /// White space goes with the part before it.
    fn filtered(&self, keeps: &dyn Fn(&Part) -> bool) -> Self {
        let mut parts: Vec<Arc<Part>> = Vec::with_capacity(self.parts.len());
        let mut after_dropped = false;
        for part in &self.parts {
            let is_space = matches!(**part, Part::Space(_));
            let keep = if is_space { !after_dropped } else { keeps(part) };
            if keep {
                parts.push(Arc::clone(part));
            }
            after_dropped = !is_space && !keep;
        }
        if parts.iter().all(|part| matches!(**part, Part::Space(_))) {
            parts.clear();
        }
        Self { path: self.path.clone(), parts }
    }
}

fn parts(text: &str, statements: &mut usize, others: &mut usize) -> Vec<Part> {
    let split = statement::split(text);
    let mut parts = Vec::new();
    let mut at = 0;
    let mut pieces = split.pieces.iter().peekable();
    while let Some(piece) = pieces.next() {
        if !piece.kind.is_statement() {
            continue;
        }
        let range = piece.range.as_usize();
        let data = pieces.peek().filter(|next| next.kind == PieceKind::CopyData);
        let end = end_of(text, piece, data.copied());
        between(&text[at..range.start], others, &mut parts);
        parts.push(Part::Statement(Statement {
            id: *statements,
            sql: text[range.clone()].to_owned(),
            end: text[range.end..end].to_owned(),
        }));
        *statements += 1;
        at = end;
    }
    between(&text[at..], others, &mut parts);
    parts
}

/// Where a statement ends, with its semicolon and its data.
fn end_of(text: &str, piece: &Piece, data: Option<&Piece>) -> usize {
    let end = piece.range.end as usize;
    if let Some(data) = data {
        return data.range.end as usize;
    }
    let rest = text[end..].trim_start();
    if piece.terminated && rest.starts_with(';') { text.len() - rest.len() + 1 } else { end }
}

fn between(text: &str, others: &mut usize, parts: &mut Vec<Part>) {
    let content = text.trim();
    if content.is_empty() {
        if !text.is_empty() {
            parts.push(Part::Space(text.to_owned()));
        }
        return;
    }
    let start = text.len() - text.trim_start().len();
    let end = start + content.len();
    let space = |space: &str| (!space.is_empty()).then(|| Part::Space(space.to_owned()));
    parts.extend(space(&text[..start]));
    parts.push(Part::Other(*others, content.to_owned()));
    *others += 1;
    parts.extend(space(&text[end..]));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "-- first\nCREATE TABLE t (a int);\n\nCOPY t FROM stdin;\n1\n\\.\n\nDROP TABLE t; -- gone\n";

    #[test]
    fn a_document_is_its_text() {
        let document = Document::new([("a.sql", TEXT), ("b.sql", "SELECT 1")]);
        let texts: Vec<(&str, String)> = document.texts().collect();
        assert_eq!(texts, [("a.sql", TEXT.to_owned()), ("b.sql", "SELECT 1".to_owned())]);
        assert_eq!(document.size(), Size { files: 2, statements: 4, tokens: 7 + 4 + 3 + 2 });
    }

    #[test]
    fn a_statement_goes_with_its_end_and_the_space_after_it() {
        let document = Document::new([("a.sql", TEXT)]);
        let text = |document: Document| document.files[0].text();
        assert_eq!(text(document.with_statements(&BTreeSet::from([2]))), "-- first\nDROP TABLE t; -- gone\n");
        let bare = document.with_others(&BTreeSet::new());
        assert_eq!(text(bare.with_statements(&BTreeSet::from([0]))), "CREATE TABLE t (a int);\n\n");
        assert_eq!(text(bare.with_statements(&BTreeSet::new())), "");
    }

    #[test]
    fn statements_are_where_the_text_has_them() {
        let document = Document::new([("a.sql", TEXT)]).with_sql(0, "SELECT 1");
        let (text, placed) = document.files[0].placed();
        let starts: Vec<&str> = placed.iter().map(|placed| &text[placed.start as usize..][..6]).collect();
        assert_eq!(starts, ["SELECT", "COPY t", "DROP T"]);
    }
}
