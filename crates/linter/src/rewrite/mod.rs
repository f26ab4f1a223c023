//! A sequence of migrations in place of one that would block: what findings offer as [`Step`](crate::fix::Step)s, put
//! into files, and checked again until nothing more is offered.
//!
//! Nothing is said about names and forms of files, which are the business of the migration tool.

mod divided;
mod draft;
#[cfg(test)]
mod tests;
mod title;

use crate::phase::Phase;
use crate::settings::Settings;
use draft::Draft;
use pgvet_model::migration::Migration;
use pgvet_syntax::statement::ParsedFile;

/// The migrations that take the place of one, in the order of their deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub files: Vec<PlannedFile>,
    /// The findings of `check` about them for which there is no recipe: rule and message.
    pub unsolved: Vec<Unsolved>,
}

/// A rule and its message.
pub type Unsolved = (&'static str, String);

/// One migration of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// Its purpose, in words of a file name: `validate_orders_customer_fk`.
    pub title: String,
    /// Whether it runs in one transaction. If not, it holds one statement, unless the tool runs each on its own.
    pub transaction: bool,
    pub statements: Vec<PlannedStatement>,
}

/// One statement of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedStatement {
    /// Comments that stood before it, as they were written.
    pub comments: String,
    /// The phase that begins with it, of a change that takes several releases.
    pub phase: Option<Phase>,
    /// A decision or precondition for a person, before it runs.
    pub note: Option<String>,
    /// Without a semicolon at its end.
    pub sql: String,
    /// Why what rules say about it is meant to be, and which rules those are.
    pub accepted: Option<String>,
    pub suppressed: Vec<&'static str>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing that it would do better was found.
    NothingToDo,
    /// The migration holds something that cannot be moved about.
    Unsupported(String),
    /// PostgreSQL refuses the plan, as far as the model knows.
    Fails(String),
}

impl PlannedStatement {
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), ..Self::default() }
    }

    fn write(&self, text: &mut String) {
        if let Some(phase) = self.phase {
            *text += &[&phase.comment(), "\n"].concat();
        }
        text.push_str(&self.comments);
        if let Some(note) = &self.note {
            text.push_str(&wrapped(note));
        }
        if let Some(reason) = self.accepted.as_ref().filter(|_| !self.suppressed.is_empty()) {
            *text += &["-- pgvet: ignore[", &self.suppressed.join(", "), "] ", reason, "\n"].concat();
        }
        text.push_str(&self.sql);
        text.push_str(";\n");
    }
}

impl PlannedFile {
    /// Whether code in it ends transactions, as a loop over batches does.
    pub fn commits(&self) -> bool {
        self.statements.iter().any(|statement| draft::commits(&statement.sql))
    }

    /// The statements with their comments, without what the tool puts around them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.statements.iter().for_each(|statement| statement.write(&mut text));
        text
    }
}

/// A comment of lines that are not too long.
fn wrapped(note: &str) -> String {
    const WIDTH: usize = 100;
    let mut text = String::new();
    let mut line = String::from("--");
    for word in note.split_whitespace() {
        if line.len() + word.len() >= WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("--");
        }
        line.push(' ');
        line.push_str(word);
    }
    text + &line + "\n"
}

/// Makes the plan for the last of the migrations; those before it are history.
pub fn rewrite(migrations: &[Migration<'_>], settings: &Settings) -> Result<Plan, Refusal> {
    let Some((original, history)) = migrations.split_last() else { return Err(Refusal::NothingToDo) };
    let mut draft = Draft::new(original)?;
    let settings = Settings {
        only: Vec::new(),
        ignore: Vec::new(),
        level: crate::severity::Severity::Warning,
        file_levels: rustc_hash::FxHashMap::default(),
        ..settings.clone()
    };
    draft.improve(history, original, &settings)
}

/// A file of a plan, parsed.
fn parsed(file: &PlannedFile) -> ParsedFile {
    pgvet_syntax::statement::parse_file(pgvet_syntax::source::SourceFile::new(file.title.clone(), file.text()))
}
