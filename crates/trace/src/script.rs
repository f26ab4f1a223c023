//! A migration as the sequence of commands that its tool would send.

use crate::Error;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_syntax::ast::{Ast, Setting, Transaction};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{self, Doubt, DoubtKind, PieceKind, PlaceholderKind, Statement};
use std::collections::BTreeMap;

/// Values for placeholders, by name.
pub type Variables = BTreeMap<String, String>;

/// One command to send.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) kind: StepKind,
    pub(crate) sql: String,
    /// `None` for what the tool adds.
    pub(crate) statement: Option<&'a Statement>,
    /// The lines after `COPY ... FROM stdin`.
    pub(crate) copy_data: Option<&'a str>,
    /// `sql` is not the text of the file, so positions in it mean nothing.
    pub(crate) filled: bool,
}

/// The effect of a command on the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// It has a transaction of its own.
    Alone,
    /// It runs in an open block.
    Inside,
    Begin,
    /// COMMIT or ROLLBACK. With `chain`, a block follows at once.
    End {
        chain: bool,
    },
    /// It touches no relation and must not be preceded by a query of ours: SET, SAVEPOINT, SET TRANSACTION.
    Control,
}

/// The commands of a migration, and what of it is not run.
#[derive(Debug, Default)]
pub(crate) struct Script<'a> {
    pub(crate) steps: Vec<Step<'a>>,
    pub(crate) skipped: Vec<String>,
}

impl<'a> Script<'a> {
    pub(crate) fn new(migration: &Migration<'a>, variables: &Variables) -> Result<Self, Error> {
        let file = migration.file;
        let inside = |range: TextRange| migration.section.is_none_or(|section| section.contains(range));
        let statements: Vec<&Statement> = migration.statements().collect();
        let text = &file.text;
        let mut data = CopyData::of(text);
        let is_sent_whole = migration.runner.is_known || migration.transaction == TransactionMode::SingleString;
        let is_read_otherwise = |doubt: &&Doubt| {
            let is_about_strings = matches!(doubt.kind, DoubtKind::SentTogether { .. });
            is_about_strings && is_sent_whole && inside(doubt.range) && migration.is_in_doubt(doubt, true)
        };
        if let Some(doubt) = data.doubts.iter().find(is_read_otherwise) {
            return Err(read_otherwise(file, doubt));
        }
        let skipped = data.commands.iter().filter(|command| inside(**command));
        let mut script = Script {
            skipped: skipped.map(|command| text[command.as_usize()].trim_end().to_owned()).collect(),
            ..Script::default()
        };
        script.steps.extend(first_schemas(migration));
        let mut block = false;
        // Not by a BEGIN of the file.
        let mut implicit = false;
        for (at, statement) in statements.iter().enumerate() {
            let sent = migration.sent(&statements, at);
            if sent.opens && !block {
                script.steps.push(Step::of_tool(StepKind::Begin, "BEGIN"));
                (block, implicit) = (true, true);
            }
            let kind = kind(statement, block);
            block = match kind {
                StepKind::Begin => true,
                StepKind::End { chain } => chain,
                _ => block,
            };
            let is_copy = matches!(statement.ast(), Some(Ast::Copy(_)));
            let copied = is_copy.then(|| data.after(statement.range.end)).flatten();
            script.steps.push(Step {
                kind,
                sql: fill(text, statement, variables, &file.path)?,
                statement: Some(statement),
                copy_data: copied.map(|range| &text[range.as_usize()]),
                filled: !statement.placeholders.is_empty(),
            });
            implicit &= block;
            if sent.closes && implicit {
                script.steps.push(Step::of_tool(StepKind::End { chain: false }, "COMMIT"));
                (block, implicit) = (false, false);
            }
        }
        if block {
            // A file that forgets its COMMIT loses what it did, unless the tool has opened a transaction: then it sends
            // COMMIT at the end, also if the file has opened the one that is open now.
            let commits = implicit || migration.transaction == TransactionMode::Transaction;
            let sql = if commits { "COMMIT" } else { "ROLLBACK" };
            script.steps.push(Step::of_tool(StepKind::End { chain: false }, sql));
        }
        Ok(script)
    }
}

impl Step<'_> {
    fn of_tool(kind: StepKind, sql: &str) -> Self {
        Self { kind, sql: sql.to_owned(), statement: None, copy_data: None, filled: false }
    }

    pub(crate) fn ast(&self) -> Option<&Ast> {
        self.statement.and_then(Statement::ast)
    }
}

/// What Flyway sends before a migration if its configuration names a default schema.
fn first_schemas<'a>(migration: &Migration<'_>) -> impl Iterator<Item = Step<'a>> {
    let names: Vec<String> = migration.first_schemas.iter().map(|name| quote_identifier(name)).collect();
    let path = (!names.is_empty()).then(|| format!("SET search_path = {}, \"$user\", public", names.join(", ")));
    let missing = migration.schemas_of_program();
    let schemas = missing.map(|name| format!("CREATE SCHEMA IF NOT EXISTS {}", quote_identifier(name)));
    let steps: Vec<String> = schemas.chain(path).collect();
    steps.into_iter().map(|sql| Step::of_tool(StepKind::Control, &sql))
}

fn kind(statement: &Statement, block: bool) -> StepKind {
    let usual = if block { StepKind::Inside } else { StepKind::Alone };
    let Some(ast) = statement.ast() else { return usual };
    match ast {
        Ast::Transaction(Transaction::Begin) => StepKind::Begin,
        Ast::Transaction(Transaction::Commit { chain } | Transaction::Rollback { chain }) if block => {
            StepKind::End { chain: *chain }
        }
        Ast::Transaction(Transaction::Prepare) if block => StepKind::End { chain: false },
        Ast::Transaction(_) => StepKind::Control,
        Ast::Set(set) => match &set.setting {
            Setting::Value { .. } | Setting::Default { .. } | Setting::ResetAll | Setting::Transaction => {
                StepKind::Control
            }
        },
        Ast::Discard(_) | Ast::Deallocate(_) => StepKind::Control,
        _ => usual,
    }
}

/// The text to send, with placeholders filled.
pub(crate) fn fill(text: &str, statement: &Statement, variables: &Variables, path: &str) -> Result<String, Error> {
    let range = statement.range;
    let mut sql = text[range.as_usize()].to_owned();
    for placeholder in statement.placeholders.iter().rev() {
        let value = match placeholder.kind {
            PlaceholderKind::Control | PlaceholderKind::MetaCommand => String::new(),
            PlaceholderKind::Omitted => value_of(&placeholder.text, variables).unwrap_or_default(),
            _ => value_of(&placeholder.text, variables).ok_or_else(|| unfilled(&placeholder.text, path))?,
        };
        let at = |offset: u32| (offset - range.start) as usize;
        sql.replace_range(at(placeholder.range.start)..at(placeholder.range.end), &value);
    }
    Ok(sql)
}

/// The value of `${name}`, `{{ name }}`, `:name` or `:'name'`; the last one as a string of SQL.
fn value_of(placeholder: &str, variables: &Variables) -> Option<String> {
    let value = variables.get(name_of(placeholder))?;
    Some(match placeholder.get(..2) {
        Some(":'") => format!("'{}'", value.replace('\'', "''")),
        Some(":\"") => format!("\"{}\"", value.replace('"', "\"\"")),
        _ => value.clone(),
    })
}

/// The last word of a placeholder: `Namespace` of `{{ index .Options "Namespace" }}`.
fn name_of(placeholder: &str) -> &str {
    let mut words = placeholder.split(|c: char| !(c.is_alphanumeric() || c == '_')).rev();
    words.find(|word| !word.is_empty()).unwrap_or(placeholder)
}

fn unfilled(placeholder: &str, path: &str) -> Error {
    Error::new(format!("`{path}` has the placeholder `{placeholder}`, which has no value"))
        .help(format!("give one: --var {}=VALUE", name_of(placeholder)))
}

/// A string that ends at a different quote if PostgreSQL gets it as the tool sends it.
fn read_otherwise(file: &SourceFile, doubt: &Doubt) -> Error {
    let line = file.text[..doubt.range.start as usize].matches('\n').count() + 1;
    Error::new(format!(
        "`{}` cannot be traced as its migration tool runs it: the tool sends the string in line {line} together with the \
         change of `standard_conforming_strings`, which decides where the string ends",
        file.path
    ))
    .help("write `E'...'` with doubled backslashes, which does not depend on the setting")
}

/// Input between statements: the data of COPY, and psql's commands.
struct CopyData {
    /// From the last to the first.
    data: Vec<TextRange>,
    commands: Vec<TextRange>,
    doubts: Vec<Doubt>,
}

impl CopyData {
    fn of(text: &str) -> Self {
        // Most files have neither, and splitting again takes its time.
        if !text.contains('\\') {
            return Self { data: Vec::new(), commands: Vec::new(), doubts: Vec::new() };
        }
        let split = statement::split(text);
        let of_kind = |kind| split.pieces.iter().filter(move |piece| piece.kind == kind).map(|piece| piece.range);
        Self {
            data: of_kind(PieceKind::CopyData).rev().collect(),
            commands: of_kind(PieceKind::MetaCommand).collect(),
            doubts: split.doubts.clone(),
        }
    }

    /// The data of the statement that ends there, if any.
    fn after(&mut self, end: u32) -> Option<TextRange> {
        while self.data.last().is_some_and(|range| range.start < end) {
            self.data.pop();
        }
        // Between the end of the statement and its data there is a semicolon and the end of the line.
        let next = *self.data.last()?;
        (next.start <= end + 64).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_model::migration::TransactionMode;
    use pgvet_syntax::statement::{ParsedFile, parse_file};

    fn file(text: &str) -> ParsedFile {
        parse_file(SourceFile::new("m.sql".to_owned(), text.to_owned()))
    }

    fn migration(file: &ParsedFile, transaction: TransactionMode) -> Migration<'_> {
        Migration { transaction, database: 1, ..Migration::new(file) }
    }

    fn steps(text: &str, transaction: TransactionMode) -> Vec<(StepKind, String)> {
        let file = file(text);
        let script = Script::new(&migration(&file, transaction), &Variables::new()).unwrap();
        script.steps.into_iter().map(|step| (step.kind, step.sql)).collect()
    }

    #[test]
    fn a_tool_wraps_the_file_and_the_file_wraps_itself() {
        use StepKind::{Alone, Begin, Control, End, Inside};
        let step = |kind, sql: &str| (kind, sql.to_owned());
        let end = End { chain: false };
        assert_eq!(
            steps("SELECT 1; SET a.b = 1;", TransactionMode::Transaction),
            [step(Begin, "BEGIN"), step(Inside, "SELECT 1"), step(Control, "SET a.b = 1"), step(end, "COMMIT")]
        );
        assert_eq!(
            steps("BEGIN; SELECT 1; COMMIT; SELECT 2;", TransactionMode::Autocommit),
            [step(Begin, "BEGIN"), step(Inside, "SELECT 1"), step(end, "COMMIT"), step(Alone, "SELECT 2")]
        );
    }

    #[test]
    fn the_default_schema_of_flyway_is_created_and_first() {
        let first = ["App".into()];
        let sent = |text: &str| {
            let file = file(text);
            let migration = Migration { first_schemas: &first, ..migration(&file, TransactionMode::Autocommit) };
            let script = Script::new(&migration, &Variables::new()).unwrap();
            script.steps.into_iter().map(|step| step.sql).collect::<Vec<_>>()
        };
        let path = "SET search_path = \"App\", \"$user\", public";
        assert_eq!(sent("SELECT 1"), ["CREATE SCHEMA IF NOT EXISTS \"App\"", path, "SELECT 1"]);
        let create = "CREATE SCHEMA \"App\"";
        assert_eq!(sent(create), [path, create]);
    }

    #[test]
    fn several_statements_in_one_string_are_a_transaction_and_one_is_not() {
        let kinds =
            |text| steps(text, TransactionMode::SingleString).into_iter().map(|step| step.0).collect::<Vec<_>>();
        assert_eq!(kinds("SELECT 1"), [StepKind::Alone]);
        let end = StepKind::End { chain: false };
        let (begin, inside) = (StepKind::Begin, StepKind::Inside);
        assert_eq!(kinds("SELECT 1; COMMIT; SELECT 2"), [begin, inside, end, begin, inside, end]);
    }

    #[test]
    fn a_string_among_single_statements_is_a_transaction() {
        let file = file("SELECT 1; SELECT 2; SELECT 3; SELECT 4;");
        let strings = [TextRange::new(9, 29), TextRange::new(29, 39)];
        let migration = Migration { strings: &strings, ..migration(&file, TransactionMode::Autocommit) };
        let kinds: Vec<StepKind> =
            Script::new(&migration, &Variables::new()).unwrap().steps.into_iter().map(|step| step.kind).collect();
        let (begin, inside, end) = (StepKind::Begin, StepKind::Inside, StepKind::End { chain: false });
        assert_eq!(kinds, [StepKind::Alone, begin, inside, inside, end, StepKind::Alone]);
    }

    #[test]
    fn an_open_transaction_at_the_end_of_a_file_is_lost() {
        assert_eq!(steps("BEGIN; SELECT 1", TransactionMode::Autocommit)[2].1, "ROLLBACK");
    }

    #[test]
    fn a_tool_that_has_opened_a_transaction_commits_the_one_that_is_open_at_the_end() {
        let text = "SELECT 1; COMMIT; BEGIN; SELECT 2";
        let last = |mode| steps(text, mode).pop().unwrap().1;
        assert_eq!(last(TransactionMode::Transaction), "COMMIT");
        assert_eq!(last(TransactionMode::Autocommit), "ROLLBACK");
    }

    #[test]
    fn copy_gets_its_data_and_commands_of_psql_are_skipped() {
        let text = "\\set x 1\nSELECT 0;\nCOPY t FROM stdin;\n1\ta\n\\.\nSELECT 1;\n";
        let file = file(text);
        let script = Script::new(&migration(&file, TransactionMode::Autocommit), &Variables::new()).unwrap();
        assert_eq!(script.skipped, ["\\set x 1"]);
        assert_eq!(script.steps[0].copy_data, None);
        assert!(script.steps[1].copy_data.unwrap().contains("1\ta\n"));
        assert_eq!(script.steps[2].copy_data, None);
    }

    #[test]
    fn a_string_that_is_sent_with_its_setting_is_not_cut() {
        let file = file("SET standard_conforming_strings = off;\nSELECT 'a\\'; DROP TABLE t; --';\n");
        let script = |transaction| Script::new(&migration(&file, transaction), &Variables::new()).map(|_| ());
        let error = script(TransactionMode::SingleString).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(script(TransactionMode::Autocommit).is_ok(), "as psql runs it");
    }

    #[test]
    fn placeholders_take_values_or_are_asked_for() {
        assert_eq!(name_of(r#"{{ index .Options "Namespace" }}"#), "Namespace");
        let file = file("INSERT INTO ${schema}.t VALUES (:'name')");
        let migration = migration(&file, TransactionMode::Autocommit);
        let variables = [("schema", "app"), ("name", "it's")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let script = Script::new(&migration, &variables.into()).unwrap();
        assert_eq!(script.steps[0].sql, "INSERT INTO app.t VALUES ('it''s')");
        let error = Script::new(&migration, &Variables::new()).unwrap_err();
        assert!(error.to_string().contains("--var"), "{error}");
    }
}
