//! A test case as text: migrations with directives in comments.
//!
//! ```sql
//! -- pg-version: 14-18
//! -- mode: transaction              (or single-string, autocommit; `-- transaction` alone does as well)
//! -- set: table orders rows=100 hot
//! -- baseline:                      a schema dump that is not reported
//! CREATE TABLE orders (id bigint);
//! -- history:                       a migration that is not reported
//! -- migration: autocommit          a migration that is reported, with a mode of its own
//! -- path: 20240131_orders.sql      the path of the section's file
//! ```
//!
//! Without sections the whole text is one migration.

use pgvet_linter::check::{Migration, ParsedFile, TransactionMode, check, parse_file};
use pgvet_linter::diagnostic::{Diagnostic, Severity};
use pgvet_linter::fix::Edit;
use pgvet_linter::settings::{LockTimeout, Settings};
use pgvet_linter::source::{SourceFile, TextRange};
use pgvet_linter::version::VersionRange;

pub(crate) struct Scenario {
    pub(crate) sections: Vec<Section>,
    pub(crate) settings: Settings,
}

/// The comment by which the tool of `-- set: opt-out` leaves its transaction out.
const OPT_OUT: &str = "-- no transaction";

/// One migration of a scenario. Its text starts with as many empty lines as stand before it, so that lines agree.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    pub(crate) mode: TransactionMode,
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Section {
    fn new(kind: SectionKind, mode: TransactionMode, text: String) -> Self {
        Self { kind, mode, path: "migration.sql".to_owned(), text }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    Baseline,
    History,
    Migration,
}

/// What a run of a scenario found, with the files that the findings are about.
pub(crate) struct Outcome {
    pub(crate) files: Vec<ParsedFile>,
    pub(crate) found: Vec<Diagnostic>,
}

impl Scenario {
    /// Panics on directives that mean nothing: the text is a test's own.
    pub(crate) fn parse(text: &str) -> Self {
        let settings = Settings { strict: true, level: Severity::Info, ..Settings::default() };
        let mut scenario = Self { sections: Vec::new(), settings };
        let mut mode = TransactionMode::default();
        let mut header = String::new();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let comment = line.trim().strip_prefix("--").map_or("", str::trim);
            let (word, value) = comment.split_once(':').map_or((comment, ""), |(word, value)| (word, value.trim()));
            match (word, value) {
                ("baseline" | "history" | "migration", _) if comment.contains(':') => {
                    let kind = match word {
                        "baseline" => SectionKind::Baseline,
                        "history" => SectionKind::History,
                        _ => SectionKind::Migration,
                    };
                    let mode = if value.is_empty() { mode } else { transaction_mode(value) };
                    scenario.sections.push(Section::new(kind, mode, "\n".repeat(number + 1)));
                    continue;
                }
                ("pg-version", _) => {
                    scenario.settings.versions = VersionRange::parse(value).unwrap();
                    scenario.settings.versions_configured = true;
                }
                ("mode", _) => mode = transaction_mode(value),
                ("transaction" | "single-string" | "autocommit", "") => mode = transaction_mode(word),
                ("set", _) => set(&mut scenario.settings, value),
                ("path", _) => {
                    value.clone_into(&mut scenario.sections.last_mut().expect("a path stands in a section").path);
                }
                _ => {}
            }
            match scenario.sections.last_mut() {
                Some(section) => section.text.push_str(line),
                None => header.push_str(line),
            }
        }
        if scenario.sections.is_empty() {
            scenario.sections.push(Section::new(SectionKind::Migration, mode, header));
        }
        scenario
    }

    pub(crate) fn run(&self) -> Outcome {
        let source = |section: &Section| SourceFile { path: section.path.clone(), text: section.text.clone() };
        let files: Vec<ParsedFile> = self.sections.iter().map(|section| parse_file(source(section))).collect();
        let migrations: Vec<Migration<'_>> = std::iter::zip(&self.sections, &files)
            .map(|(section, file)| Migration {
                transaction: if section.text.starts_with(OPT_OUT) { TransactionMode::Autocommit } else { section.mode },
                report: section.kind == SectionKind::Migration,
                baseline: section.kind == SectionKind::Baseline,
                ..Migration::new(file)
            })
            .collect();
        let found = check(&migrations, &self.settings);
        Outcome { files, found }
    }
}

fn transaction_mode(word: &str) -> TransactionMode {
    match word {
        "transaction" => TransactionMode::Transaction,
        "single-string" => TransactionMode::SingleString,
        "autocommit" => TransactionMode::Autocommit,
        _ => panic!("no transaction mode: {word}"),
    }
}

fn set(settings: &mut Settings, directive: &str) {
    let words: Vec<&str> = directive.split_whitespace().collect();
    match words.as_slice() {
        ["table", name, options @ ..] => {
            let table = settings.tables.entry((*name).to_owned()).or_default();
            for option in options {
                match option.split_once('=') {
                    Some(("rows", rows)) => table.rows = Some(rows.parse().unwrap()),
                    None if *option == "hot" => table.hot = true,
                    None if *option == "ignore" => table.ignore = true,
                    _ => panic!("no option of a table: {option}"),
                }
            }
        }
        ["function", name, calls] => {
            let calls = calls.strip_prefix("calls-per-hour=").expect("`calls-per-hour=` is all that can be set");
            let function = settings.functions.entry((*name).to_owned()).or_default();
            function.calls_per_hour = Some(calls.parse().unwrap());
        }
        ["max-locked-tables", number] => settings.max_locked_tables = number.parse().unwrap(),
        ["lock-timeout", "runner"] => settings.lock_timeout = LockTimeout::Runner,
        ["opt-out", file] => {
            let edit = Edit { range: TextRange::at(0), text: OPT_OUT.to_owned() };
            settings.opt_outs.insert(file.parse().unwrap(), edit);
        }
        ["require-reasons"] => settings.require_reasons = true,
        ["recommended"] => settings.strict = false,
        _ => panic!("no setting: {directive}"),
    }
}

impl Outcome {
    pub(crate) fn of_rule(&self, rule: &str) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter().filter(move |diagnostic| diagnostic.rule == rule)
    }

    /// The line on which a finding starts.
    pub(crate) fn line(&self, diagnostic: &Diagnostic) -> u32 {
        let file = &self.files[diagnostic.file as usize];
        file.lines.position(&file.source.text, diagnostic.range.start).line
    }
}
