//! Sequences of statements, each drawn for the schema that those before it have left.

use super::scene::Scene;
use super::statements::{ALONE, KINDS};
use super::template::expand;
use crate::measure::random::Random;
use pgvet_model::effect::Effects;
use pgvet_model::predict::Database;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};

/// How many statements a sequence has, besides its first tables.
const LENGTH: usize = 30;

/// Statements that run one after the other in one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) statements: Vec<String>,
}

impl Sequence {
    /// The text of a migration, one statement a line.
    pub(super) fn text(&self) -> String {
        self.statements.iter().flat_map(|statement| [statement, ";\n"]).collect()
    }

    pub(super) fn parse(&self) -> ParsedFile {
        parsed(self.text())
    }

    pub(super) fn without(&self, range: std::ops::Range<usize>) -> Self {
        let mut statements = self.statements.clone();
        statements.drain(range);
        Self { statements }
    }
}

pub(super) fn parsed(text: String) -> ParsedFile {
    parse_file(SourceFile::new("generated.sql".to_owned(), text))
}

/// Makes up a sequence.
pub(super) fn generate(random: &mut Random, version: PgVersion) -> Sequence {
    let mut author = Author { random, version, database: Database::new(version), statements: Vec::new(), block: None };
    author.begin_with("CREATE SCHEMA app");
    author.begin_with("CREATE FUNCTION trg() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'");
    for _ in 0..2 {
        author.write("CREATE TABLE {new_table} ({columns_of_table})");
    }
    while author.statements.len() < LENGTH {
        if author.control() {
            continue;
        }
        if !author.next() {
            break;
        }
    }
    Sequence { statements: author.statements }
}

struct Author<'a> {
    random: &'a mut Random,
    version: PgVersion,
    database: Database,
    statements: Vec<String>,
    /// The savepoints of the open block.
    block: Option<Vec<String>>,
}

impl Author<'_> {
    fn begin_with(&mut self, statement: &str) {
        self.database.run(&parsed(statement.to_owned()));
        self.statements.push(statement.to_owned());
    }

    fn expand(&mut self, template: &str) -> Option<String> {
        expand(template, &mut Scene::new(self.random, self.database.catalog(), self.version.0))
    }

    /// Writes a statement of the template, if it seems to work.
    fn write(&mut self, template: &str) {
        let Some(statement) = self.expand(template) else { return };
        if let (database, None) = self.tried(&statement) {
            self.database = database;
            self.statements.push(statement);
        }
    }

    /// The database after the statement, and the SQLSTATE with which it is expected to be refused.
    fn tried(&self, statement: &str) -> (Database, Option<&'static str>) {
        let mut database = self.database.clone();
        let effects = database.run(&parsed(statement.to_owned()));
        let refused = |effects: &Effects| effects.fails.as_ref().map(|failure| failure.sqlstate);
        (database, effects.iter().find_map(refused))
    }

    /// Appends BEGIN, SAVEPOINT and so on, now and then.
    fn control(&mut self) -> bool {
        let name = ["s1", "s2", "\"S1\""][self.random.below(3)].to_owned();
        let Some(savepoints) = &mut self.block else {
            let begins = self.random.percent(9);
            if begins {
                self.block = Some(Vec::new());
                self.begin_with("BEGIN");
            }
            return begins;
        };
        let statement = match self.random.below(100) {
            0..=7 => {
                savepoints.push(name.clone());
                format!("SAVEPOINT {name}")
            }
            8..=12 if savepoints.contains(&name) => {
                let at = savepoints.iter().rposition(|other| *other == name).unwrap_or(0);
                savepoints.truncate(at + 1);
                format!("ROLLBACK TO {name}")
            }
            13..=15 if savepoints.contains(&name) => {
                let at = savepoints.iter().rposition(|other| *other == name).unwrap_or(0);
                savepoints.truncate(at);
                format!("RELEASE {name}")
            }
            16..=27 => {
                self.block = None;
                "COMMIT".to_owned()
            }
            28..=31 => {
                self.block = None;
                "ROLLBACK".to_owned()
            }
            _ => return false,
        };
        self.begin_with(&statement);
        true
    }

    /// One more statement; false where the sequence ends with it.
    fn next(&mut self) -> bool {
        loop {
            let template = self.template();
            let Some(statement) = self.expand(template) else { continue };
            let (database, refused) = self.tried(&statement);
            let wanted = match (refused, &self.block) {
                (None, _) => 100,
                // Too many mistakes would hide what comes after them.
                (Some("42601"), _) => 0,
                (Some(_), None) => 20,
                (Some(_), Some(_)) => 2,
            };
            if !self.random.percent(wanted) {
                continue;
            }
            self.database = database;
            self.statements.push(statement);
            // Whatever follows a refusal in a block is refused as well.
            let over = refused.is_some() && self.block.is_some();
            if over {
                self.begin_with("ROLLBACK");
            }
            return !over;
        }
    }

    fn template(&mut self) -> &'static str {
        // Their observer has to wait for statistics before 15.
        let alone = if self.version.0 < 15 { 1 } else { 5 };
        if self.random.percent(alone) {
            return self.random.one_of(ALONE).copied().unwrap_or_default();
        }
        let total: usize = KINDS.iter().map(|kind| kind.weight).sum();
        let mut at = self.random.below(total);
        for kind in KINDS {
            if at < kind.weight {
                return self.random.one_of(kind.templates).copied().unwrap_or_default();
            }
            at -= kind.weight;
        }
        unreachable!("a number below the sum of the weights belongs to one of them")
    }
}
