//! A test case as text: migrations with directives in comments.
//!
//! ```sql
//! -- pg-version: 14-18
//! -- mode: transaction              (or single-string, autocommit; `-- transaction` alone does as well)
//! -- set: table orders rows=100 hot
//! -- set: query sqlx SELECT * FROM orders; SELECT 1   (a transaction of the application)
//! -- set: index public.orders_note scans=5 days=30
//! -- set: whole-history             the first migration begins with an empty database
//! -- set: deployed 2.4              the release that is deployed
//! -- set: run-lock waits            a second run of the tool waits in pg_advisory_lock
//! -- captured                      (written by `pgvet capture`)
//! -- unordered                     (scripts of which nobody knows which runs first)
//! -- baseline:                      a schema dump that is not reported
//! CREATE TABLE orders (id bigint);
//! -- history:                       a migration that is not reported
//! -- migration: autocommit          a migration that is reported, with a mode of its own
//! -- path: 20240131_orders.sql      the path of the section's file
//! -- release: 1                     it is released together with the sections of the same number
//! -- not in production              the section is a script that no migration tool runs
//! ```
//!
//! Without sections the whole text is one migration.

use pgvet_linter::check::check;
use pgvet_linter::confidence::Confidence;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::fix::Edit;
use pgvet_linter::repository::{RepositoryEvidence, WholeHistory};
use pgvet_linter::settings::{LockTimeout, Settings};
use pgvet_linter::severity::Severity;
use pgvet_model::application::{CachingDriver, KnownStatement, KnownTransaction, QueryLibrary};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::production::IndexUse;
use pgvet_model::runner::{Restart, RunLock, Runner, SessionScope};
use pgvet_model::version::VersionRange;
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{ParsedFile, Statement, parse, parse_file};
use std::sync::Arc;

pub(crate) struct Scenario {
    pub(crate) sections: Vec<Section>,
    /// Whether the order of the sections is the order in which they run.
    pub(crate) ordered: bool,
    /// Whether all sections run in one session.
    pub(crate) one_session: bool,
    /// How the tool keeps a second run of itself away.
    pub(crate) lock: RunLock,
    pub(crate) captured: bool,
    pub(crate) settings: Settings,
}

/// The comment by which the tool of `-- set: opt-out` leaves its transaction out.
const OPT_OUT: &str = "-- no transaction";

/// Maximum number of migrations of a scenario.
const MIGRATIONS: u32 = 100;

/// One migration of a scenario. Its text starts with as many empty lines as stand before it, so that lines agree.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    pub(crate) mode: TransactionMode,
    pub(crate) path: String,
    pub(crate) release: Option<u32>,
    pub(crate) in_production: bool,
    pub(crate) text: String,
}

impl Section {
    pub(crate) fn new(kind: SectionKind, mode: TransactionMode, text: String) -> Self {
        Self { kind, mode, path: "migration.sql".to_owned(), release: None, in_production: true, text }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    Baseline,
    History,
    Migration,
}

/// The findings of a run of a scenario, with the files that they are about.
pub(crate) struct Outcome {
    pub(crate) files: Vec<ParsedFile>,
    pub(crate) found: Vec<Diagnostic>,
}

impl Scenario {
    /// Panics on directives that mean nothing: the text is a test's own.
    pub(crate) fn parse(text: &str) -> Self {
        Self::read(text).unwrap_or_else(|directive| panic!("no directive: {directive}"))
    }

    /// An error is the directive that means nothing.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let settings =
            Settings { strict: true, level: Severity::Info, confidence: Confidence::Possible, ..Settings::default() };
        let mut scenario = Self {
            sections: Vec::new(),
            ordered: true,
            one_session: false,
            lock: RunLock::Unknown,
            captured: false,
            settings,
        };
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
                    let mode = if value.is_empty() { mode } else { transaction_mode(value)? };
                    scenario.sections.push(Section::new(kind, mode, "\n".repeat(number + 1)));
                    continue;
                }
                ("pg-version", _) => {
                    scenario.settings.versions = VersionRange::parse(value)?;
                    scenario.settings.versions_configured = true;
                }
                ("unordered", "") => scenario.ordered = false,
                ("captured", "") => scenario.captured = true,
                ("mode", _) => mode = transaction_mode(value)?,
                ("transaction" | "single-string" | "autocommit", "") => mode = transaction_mode(word)?,
                ("set", "one-session") => scenario.one_session = true,
                ("set", "run-lock waits") => scenario.lock = RunLock::Waits { by_its_session: true },
                ("set", _) => set(&mut scenario.settings, value).ok_or(value)?,
                ("release", _) => {
                    let section = scenario.sections.last_mut().ok_or("a release stands in a section")?;
                    section.release = Some(value.parse().map_err(|_| value)?);
                }
                ("not in production", "") => {
                    let section = scenario.sections.last_mut().ok_or("a script is a section")?;
                    section.in_production = false;
                }
                ("path", _) => {
                    let section = scenario.sections.last_mut().ok_or("a path stands in a section")?;
                    value.clone_into(&mut section.path);
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
        Ok(scenario)
    }

    /// Puts sections before all others.
    pub(crate) fn prepend(&mut self, sections: Vec<Section>) {
        let by = sections.len() as u32;
        self.sections.splice(0..0, sections);
        let opt_outs = std::mem::take(&mut self.settings.opt_outs);
        self.settings.opt_outs = opt_outs.into_iter().map(|(file, edit)| (file + by, edit)).collect();
    }

    pub(crate) fn run(&self) -> Outcome {
        let files = self.files();
        let found = check(&self.migrations(&files), &self.settings);
        Outcome { files, found }
    }

    pub(crate) fn files(&self) -> Vec<ParsedFile> {
        let source = |section: &Section| SourceFile::new(section.path.clone(), section.text.clone());
        self.sections.iter().map(|section| parse_file(source(section))).collect()
    }

    /// The migrations of a run over the [`files`](Self::files).
    pub(crate) fn migrations<'a>(&self, files: &'a [ParsedFile]) -> Vec<Migration<'a>> {
        std::iter::zip(&self.sections, files)
            .map(|(section, file)| Migration {
                transaction: if section.text.starts_with(OPT_OUT) { TransactionMode::Autocommit } else { section.mode },
                report: section.kind == SectionKind::Migration,
                baseline: section.kind == SectionKind::Baseline,
                ordered: self.ordered,
                runner: Runner {
                    session: if self.one_session { SessionScope::Run } else { SessionScope::Migration },
                    restart: Restart { lock: self.lock, ..Restart::default() },
                    ..Runner::default()
                },
                captured: self.captured,
                release: section.release,
                in_production: section.in_production,
                ..Migration::new(file)
            })
            .collect()
    }
}

fn transaction_mode(word: &str) -> Result<TransactionMode, String> {
    match word {
        "transaction" => Ok(TransactionMode::Transaction),
        "single-string" => Ok(TransactionMode::SingleString),
        "autocommit" => Ok(TransactionMode::Autocommit),
        _ => Err(word.to_owned()),
    }
}

/// The second word of a directive.
fn library_word(directive: &str) -> Option<&str> {
    directive.split_whitespace().nth(1)
}

/// `None` where the directive means nothing.
fn set(settings: &mut Settings, directive: &str) -> Option<()> {
    let words: Vec<&str> = directive.split_whitespace().collect();
    match words.as_slice() {
        ["table", name, options @ ..] => {
            let table = settings.tables.entry((*name).to_owned()).or_default();
            for option in options {
                match option.split_once('=') {
                    Some(("rows", rows)) => table.rows = Some(rows.parse().ok()?),
                    None if *option == "hot" => table.hot = true,
                    None if *option == "ignore" => table.ignore = true,
                    _ => return None,
                }
            }
        }
        ["function", name, calls] => {
            let function = settings.functions.entry((*name).to_owned()).or_default();
            function.calls_per_hour = Some(calls.strip_prefix("calls-per-hour=")?.parse().ok()?);
        }
        ["query", library, ..] => {
            let (library, driver) = match *library {
                "sqlx" => (Some(QueryLibrary::Sqlx), None),
                "sqlc" => (Some(QueryLibrary::Sqlc), Some("pgx")),
                "aiosql" => (Some(QueryLibrary::Other), None),
                _ => return None,
            };
            let (_, sql) = directive.split_once(library_word(directive)?)?;
            let statement = |(at, one): (usize, &Statement)| {
                let ast = one.parsed.clone().ok()?;
                let place = format!("queries.sql:{}", at + 1).into();
                Some(KnownStatement { place, sql: sql[one.range.as_usize()].into(), ast })
            };
            let statements = parse(sql);
            let statements: Option<Vec<_>> = statements.iter().enumerate().map(statement).collect();
            let application = Arc::make_mut(&mut settings.application);
            application.transactions.push(KnownTransaction::new(statements?, library));
            let driver = driver.map(|name| CachingDriver { name, manifest: "go.mod".into() });
            application.drivers.extend(driver);
        }
        ["index", name, scans, rest @ ..] => {
            let scans = scans.strip_prefix("scans=")?.parse().ok()?;
            let seconds = rest.first().and_then(|days| days.strip_prefix("days=")?.parse::<u64>().ok());
            let used = IndexUse { scans, seconds: seconds.map(|days| days * 86_400) };
            settings.used_indexes.insert((*name).to_owned(), used);
        }
        ["whole-history"] => {
            let evidence =
                RepositoryEvidence { history: Some(WholeHistory::default()), ..RepositoryEvidence::default() };
            settings.repository.extend((0..MIGRATIONS).map(|file| (file, evidence.clone())));
        }
        ["max-locked-tables", number] => settings.max_locked_tables = number.parse().ok()?,
        ["lock-timeout", "runner"] => settings.lock_timeout = LockTimeout::Runner,
        ["opt-out", file] => {
            let edit = Edit { range: TextRange::at(0), text: OPT_OUT.to_owned() };
            settings.opt_outs.insert(file.parse().ok()?, edit);
        }
        ["deployed", releases @ ..] => settings.releases.deployed.extend(releases.iter().map(|name| (*name).into())),
        ["require-reasons"] => settings.require_reasons = true,
        ["recommended"] => settings.strict = false,
        _ => return None,
    }
    Some(())
}

impl Outcome {
    pub(crate) fn of_rule(&self, rule: &str) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter().filter(move |diagnostic| diagnostic.rule == rule)
    }

    /// The line on which a finding starts.
    pub(crate) fn line(&self, diagnostic: &Diagnostic) -> u32 {
        let file = &self.files[diagnostic.file as usize];
        file.source.position(diagnostic.range.start).line
    }
}
