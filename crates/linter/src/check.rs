//! The run: parsed migrations in, diagnostics and effects out.

mod in_code;

use crate::ast::{Ast, Do};
use crate::catalog::Catalog;
use crate::checkpoint::{Checkpoint, Database};
use crate::declared::Subjects;
use crate::deployment::Deployment;
use crate::diagnostic::{Diagnostic, Severity};
use crate::effect::Effects;
use crate::execute::InFile;
use crate::fix::spare_placeholders;
use crate::guard::run_rule;
use crate::passes;
use crate::replay::{Replay, StatementVisit, Visitor, stands_for};
use crate::report::{self, Reporter};
use crate::routine::{Endings, Routine, RoutineContext, RoutineReader, Routines};
use crate::rule::{Earlier, MigrationContext, Rule};
use crate::rules::{self, lasting::Lasting};
use crate::runner::{AfterCommit, Refusal, Runner};
use crate::session::Session;
use crate::settings::Settings;
use crate::source::{SourceFile, TextRange};
use crate::statement::{self, Statement, SyntaxError, Unchanged};
use crate::suppression::{self, FoundComment, Suppressed};
use crate::version::PgVersion;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A file that has been read and split into statements. Made in parallel; needs no other file.
#[derive(Debug, Clone, Default)]
pub struct ParsedFile {
    pub source: SourceFile,
    pub statements: Vec<Statement>,
}

impl ParsedFile {
    /// Without the statements.
    pub fn unread(source: SourceFile) -> Self {
        Self { source, statements: Vec::new() }
    }
}

/// How the program that runs a migration wraps it in transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionMode {
    /// Each statement on its own, unless the file has BEGIN.
    #[default]
    Autocommit,
    /// The program opens a transaction around the file.
    Transaction,
    /// The file is sent as one string: an implicit transaction when it holds several statements.
    SingleString,
}

/// Which way a migration goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    Up,
    /// It takes an earlier migration back, or the tool does not run it at all. It must parse, so its syntax errors are reported; it is not replayed.
    Down,
}

/// What a run does with a file.
#[derive(Debug, Clone, Copy)]
pub struct Migration<'a> {
    pub file: &'a SourceFile,
    /// All statements of the file, or none where [`Host::statements`] has them.
    pub parsed: &'a [Statement],
    /// The part of the file that is run, for tools that keep both directions in one file; `None` for all of it.
    pub section: Option<TextRange>,
    pub direction: Direction,
    pub transaction: TransactionMode,
    /// What is sent as one string each where each statement is on its own otherwise, such as what stands between
    /// `StatementBegin` and `StatementEnd` of goose: several statements in one are an implicit transaction. In order,
    /// without overlap.
    pub strings: &'a [TextRange],
    /// How the program goes on behind a COMMIT, and to the next migration.
    pub runner: Runner,
    /// What the program refuses of the file: all of it belongs to the first migration of the file that is run.
    pub refusals: &'a [Refusal],
    /// Report findings, or only replay it as history?
    pub report: bool,
    /// A dump of a schema and no migration: what it creates counts as existing.
    pub baseline: bool,
    /// Is it known what runs before it? Not of scripts without numbers, and not where migrations in a programming language
    /// run among those in SQL.
    pub ordered: bool,
    /// Migrations with the same number are released together; `None`: nothing says with which.
    pub release: Option<u32>,
    /// Migrations of different databases do not see each other; what runs in database 0 before any other is the
    /// history of all.
    pub database: u32,
}

impl<'a> Migration<'a> {
    /// A whole file, run statement by statement and reported.
    pub fn new(file: &'a ParsedFile) -> Self {
        Self {
            file: &file.source,
            parsed: &file.statements,
            section: None,
            direction: Direction::Up,
            transaction: TransactionMode::Autocommit,
            strings: &[],
            runner: Runner::default(),
            refusals: &[],
            report: true,
            baseline: false,
            ordered: true,
            release: None,
            database: 0,
        }
    }

    /// What is released together with it, if it is the migration at this index; `None` for what was there before.
    pub fn deployment(&self, index: u32) -> Option<Deployment> {
        (!self.baseline).then(|| self.release.map_or(Deployment::Alone(index), Deployment::Release))
    }

    /// Another file in its place.
    #[must_use]
    pub fn of(self, file: &'a ParsedFile) -> Self {
        Self { file: &file.source, parsed: &file.statements, ..self }
    }

    /// The statements of the part of the file that is run.
    pub fn statements(&self) -> impl DoubleEndedIterator<Item = &'a Statement> + use<'a> {
        self.own_statements().iter()
    }

    /// The same in one piece.
    pub fn own_statements(&self) -> &'a [Statement] {
        let Some(section) = self.section else { return self.parsed };
        let start = self.parsed.partition_point(|statement| statement.range.start < section.start);
        let end = self.parsed.partition_point(|statement| statement.range.end <= section.end);
        &self.parsed[start..end.max(start)]
    }

    /// The statement of this range.
    pub fn statement_at(&self, range: TextRange) -> Option<&'a Statement> {
        let at = self.parsed.partition_point(|statement| statement.range.start < range.start);
        let mut here = self.parsed[at..].iter().take_while(|statement| statement.range.start == range.start);
        here.find(|statement| statement.range == range)
    }

    /// The statements that end before an offset, the last one first. Unlike a search through all of them, this costs no more
    /// than what is taken of it.
    pub fn statements_before(&self, end: u32) -> impl Iterator<Item = &'a Statement> + use<'a> {
        let count = self.parsed.partition_point(|statement| statement.range.end <= end);
        let section = self.section;
        let before = self.parsed[..count].iter().rev();
        before.filter(move |statement| section.is_none_or(|section| section.contains(statement.range)))
    }

    /// The statements that begin behind an offset, at the same cost.
    pub fn statements_after(&self, start: u32) -> impl Iterator<Item = &'a Statement> + use<'a> {
        let count = self.parsed.partition_point(|statement| statement.range.start <= start);
        let section = self.section;
        let after = self.parsed[count..].iter();
        after.filter(move |statement| section.is_none_or(|section| section.contains(statement.range)))
    }

    /// What becomes of a transaction around the statement at `at` because of how it is sent.
    pub fn sent<S: Borrow<Statement>>(&self, statements: &[S], at: usize) -> Sent {
        let Some(together) = self.sent_together(statements, at) else { return Sent::default() };
        Sent {
            opens: at == together.start || self.begins_another(),
            closes: at + 1 == together.end && together.end < statements.len(),
        }
    }

    /// Is what follows a COMMIT in another transaction that is not the file's own?
    pub(crate) fn begins_another(&self) -> bool {
        self.transaction != TransactionMode::Transaction || self.runner.after_commit == AfterCommit::Together
    }

    /// The statements that run in one transaction with the one at `at` because of how they are sent, whatever BEGIN and
    /// COMMIT stand among them.
    fn sent_together<S: Borrow<Statement>>(&self, statements: &[S], at: usize) -> Option<Range<usize>> {
        match self.transaction {
            _ if self.baseline => None,
            TransactionMode::Transaction => Some(0..statements.len()),
            TransactionMode::SingleString => (statements.len() > 1).then_some(0..statements.len()),
            TransactionMode::Autocommit => {
                let range_of = |statement: &S| statement.borrow().range;
                let range = range_of(&statements[at]);
                let string =
                    self.strings[..self.strings.partition_point(|string| string.start <= range.start)].last()?;
                if !string.contains(range) {
                    return None;
                }
                let start = statements.partition_point(|statement| range_of(statement).start < string.start);
                let end = start + statements[start..].partition_point(|statement| string.contains(range_of(statement)));
                (end - start > 1).then_some(start..end)
            }
        }
    }
}

/// The transaction that a statement gets without a BEGIN or COMMIT of the file.
///
/// Source: PostgreSQL 18 documentation, 54.2.2.1: several statements in one string are an implicit transaction, and so is
/// what follows a COMMIT in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// One opens before it, if none is open.
    pub opens: bool,
    /// It ends before the next statement, unless BEGIN has opened it.
    pub closes: bool,
}

/// The transaction that a statement runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    /// Its own.
    None,
    /// BEGIN in the file.
    Explicit,
    /// Opened by the program, or by several statements in one string.
    Implicit,
}

/// Splits and parses a file.
pub fn parse_file(source: SourceFile) -> ParsedFile {
    let statements = statement::parse(&source.text);
    ParsedFile { source, statements }
}

/// [`parse_file`] of a text whose last version was `previous`. Also tells where the first statement begins that is not
/// in both as it is.
pub fn parse_file_again(source: SourceFile, previous: ParsedFile) -> (ParsedFile, Option<u32>) {
    let unchanged = Unchanged::between(&previous.source.text, &source.text);
    let known: Vec<TextRange> = previous.statements.iter().map(|statement| statement.range).collect();
    let statements = statement::parse_again(&source.text, previous.statements, unchanged);
    let present = statements.iter().map(|statement| statement.range);
    let changed = known.into_iter().chain(present).filter(|range| !unchanged.holds(*range)).map(|range| range.start);
    let first_change = changed.min();
    (ParsedFile { source, statements }, first_change)
}

/// What a run found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// In the order of files, and of places in them.
    pub found: Vec<Diagnostic>,
    /// What comments took away, in the same order.
    pub suppressed: Vec<Suppressed>,
    /// How many findings the settings hide.
    pub hidden: Hidden,
}

/// Findings that a run made and does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// Less severe than [`Settings::level`].
    pub below_level: usize,
    /// Severe enough, but less sure than [`Settings::confidence`].
    pub below_confidence: usize,
}

/// What a run asks of the program around it. `()` stands for one that has nothing to say.
pub trait Host {
    /// The statements of the file of a migration that was given without them. Asked for each migration, in order.
    fn statements(&self, _migration: u32) -> Option<Arc<Vec<Statement>>> {
        None
    }

    /// What a statement of a reported migration was seen to do on a server, where that is known; given what the model
    /// says, and the catalog after it.
    fn observed(
        &self,
        _migration: u32,
        _statement: TextRange,
        _predicted: &Effects,
        _after: &Catalog,
    ) -> Option<Effects> {
        None
    }

    /// A migration has been run.
    fn done(&self) {}
}

impl Host for () {}

/// Replays the migrations in order and reports what is wrong with those that are to be reported.
///
/// [`Diagnostic::file`] is an index into `migrations`.
pub fn check(migrations: &[Migration<'_>], settings: &Settings) -> Vec<Diagnostic> {
    run(migrations, settings, &()).found
}

/// [`check`] that also tells what comments suppressed.
pub fn run(migrations: &[Migration<'_>], settings: &Settings, host: &dyn Host) -> Outcome {
    run_from(Checkpoint::default(), migrations, settings, host)
}

/// [`run`] that leaves out the migrations which led to a checkpoint. They stand in `migrations` nevertheless; of their
/// files only the text is needed.
pub fn run_from(checkpoint: Checkpoint, migrations: &[Migration<'_>], settings: &Settings, host: &dyn Host) -> Outcome {
    report(&mut Replay::from_checkpoint(settings.versions, checkpoint), migrations, settings, host)
}

/// Runs what is left of the migrations, and reports what is wrong with them.
pub(crate) fn report(
    replay: &mut Replay,
    migrations: &[Migration<'_>],
    settings: &Settings,
    host: &dyn Host,
) -> Outcome {
    let (reader, endings) = (RoutineReader::default(), Endings::default());
    let mut checker = Checker {
        migrations,
        settings,
        host,
        reader: &reader,
        endings: &endings,
        subjects: Subjects::default(),
        comments: Vec::new(),
        found: Vec::new(),
        statement_found: Vec::new(),
        statement_rules: (u32::MAX, Rc::from([])),
        done: Vec::new(),
    };
    replay.run_down = settings.lint_down;
    replay.run(migrations, &mut checker);
    let Checker { mut found, comments, .. } = checker;
    let mut suppressed = Vec::new();
    // Overlap comes before suppression: a comment that suppresses a finding must not bring back the one that it replaced.
    passes::yield_to_others(&mut found, settings);
    suppression::apply(&comments, migrations, settings, &mut found, &mut suppressed);
    let hidden = passes::hide(&mut found, settings);
    suppressed.retain(|suppressed| passes::is_shown(&suppressed.diagnostic, settings));
    let place = |diagnostic: &Diagnostic| (diagnostic.file, diagnostic.range.start, diagnostic.range.end);
    found.sort_by_key(place);
    suppressed.sort_by_key(|suppressed| place(&suppressed.diagnostic));
    Outcome { found, suppressed, hidden }
}

/// Runs the rules over what the replay shows.
struct Checker<'s> {
    migrations: &'s [Migration<'s>],
    settings: &'s Settings,
    host: &'s dyn Host,
    reader: &'s RoutineReader,
    endings: &'s Endings,
    /// What statements of reported migrations declare.
    subjects: Subjects,
    /// Comments that may suppress something.
    comments: Vec<FoundComment>,
    found: Vec<Diagnostic>,
    /// Findings about the present statement, for the versions seen so far.
    statement_found: Vec<Diagnostic>,
    /// The rules that look at the statements of a file, with their severities.
    statement_rules: (u32, Rc<[(&'static Rule, Severity)]>),
    /// What the present migration has run so far, code and all, with the beginning of the statement of the file.
    done: Vec<Earlier>,
}

impl Checker<'_> {
    fn statement_rules(&mut self, file: u32) -> Rc<[(&'static Rule, Severity)]> {
        let (known, rules) = &mut self.statement_rules;
        if *known != file {
            let looking = rules::all().iter().filter(|rule| rule.statement.is_some());
            let running = looking.filter_map(|rule| Some((*rule, self.settings.severity_in(file, &rule.meta)?)));
            (*known, *rules) = (file, running.collect());
        }
        Rc::clone(rules)
    }

    /// Gives findings the versions that their run stood for, and drops what only an unconfigured old major refuses.
    fn finish_version(&mut self, visit: &StatementVisit<'_>) {
        let version = visit.target.version();
        let versions: Vec<PgVersion> = stands_for(visit.target, self.settings.versions).collect();
        for diagnostic in &mut self.statement_found {
            if diagnostic.pg_versions.contains(&version) {
                diagnostic.pg_versions.extend(versions.iter().skip(1));
            }
        }
        if versions.last() == Some(&self.settings.versions.to) {
            let newest = self.settings.versions.to;
            let keep_old = self.settings.versions_configured;
            let refused_by_old = |found: &Diagnostic| {
                found.is_of(&rules::engine::statement_will_fail::RULE) && !found.pg_versions.contains(&newest)
            };
            self.found.extend(self.statement_found.drain(..).filter(|found| keep_old || !refused_by_old(found)));
        }
    }
}

/// What a migration has left when it ends.
impl Checker<'_> {
    /// A ROLLBACK takes away what harms only by staying.
    fn forget_undone(&mut self, file: u32, migration: &Migration<'_>) {
        let undone: HashSet<TextRange> =
            Lasting::of(migration).undone.iter().map(|statement| statement.range).collect();
        let needs_commit = |rule: &str| rules::find(rule).is_some_and(|rule| rule.meta.needs_commit);
        if !undone.is_empty() {
            let is_undone = |found: &Diagnostic| found.file == file && undone.contains(&found.statement);
            self.found.retain(|found| !(is_undone(found) && needs_commit(found.rule)));
        }
    }
}

/// The code of functions and DO blocks.
impl Checker<'_> {
    /// Does any rule look at code?
    fn reads_routines(&self) -> bool {
        rules::all().iter().any(|rule| rule.routine.is_some() && self.settings.severity_of(&rule.meta).is_some())
    }

    fn routine(
        &mut self,
        routines: &Routines<'_>,
        routine: &Rc<Routine>,
        block: Option<&StatementVisit<'_>>,
        (catalog, after): (&Catalog, &Catalog),
        called_by_migration: bool,
    ) {
        let file = routine.file;
        let source = self.migrations[file as usize].file;
        let routine = Rc::clone(routine);
        let statement = routine.statement;
        let settings = self.settings;
        let context = RoutineContext {
            file,
            source,
            migration: block.map(|visit| visit.migration),
            session: block.map(|visit| visit.session),
            routine,
            catalog,
            after,
            settings,
            routines,
            called_by_migration,
        };
        for rule in rules::all() {
            let Some(function) = rule.routine else { continue };
            let at = self.found.len();
            let version = self.settings.versions.from;
            if let Some(mut reporter) = Reporter::new(self.settings, rule, file, statement, version, &mut self.found) {
                run_rule(rule, &mut reporter, |reporter| function(&context, reporter));
            }
            for diagnostic in &mut self.found[at..] {
                diagnostic.pg_versions = self.settings.versions.iter().collect();
            }
        }
    }

    /// A DO block meets the catalog of its place.
    fn block(&mut self, visit: &StatementVisit<'_>, block: &Do) {
        if visit.target.version() != self.settings.versions.from || !self.reads_routines() {
            return;
        }
        let routines = Routines::new(self.migrations, visit.before, self.settings, self.reader);
        let search_path = visit.session.settings.search_path();
        if let Some(routine) = routines.block(visit.file, visit.statement.range, block, search_path) {
            self.routine(&routines, &routine, Some(visit), (visit.before, visit.after), true);
        }
    }
}

impl Checker<'_> {
    /// What is declared is judged by what has become of it.
    fn declarations(&mut self, database: u32, catalog: &Catalog) {
        let active = rules::all().iter().filter(|rule| self.settings.severity_of(&rule.meta).is_some());
        let rules: Vec<_> = active.filter_map(|rule| Some((*rule, rule.declaration?))).collect();
        let settings = self.settings;
        for (file, migration) in self.migrations.iter().enumerate() {
            if rules.is_empty() || migration.database != database {
                continue;
            }
            let (file, found) = (file as u32, &mut self.found);
            self.subjects.visit(file, catalog, &mut |context, statement, code| {
                let mut own = Vec::new();
                for (rule, function) in &rules {
                    let version = settings.versions.from;
                    if let Some(reporter) = Reporter::new(settings, rule, file, statement, version, &mut own) {
                        let mut reporter = if code.is_some() { reporter.in_code() } else { reporter };
                        run_rule(rule, &mut reporter, |reporter| function(context, reporter));
                    }
                }
                for diagnostic in &mut own {
                    code.into_iter().for_each(|code| report::place_in_file(diagnostic, file, code));
                    diagnostic.pg_versions = settings.versions.iter().collect();
                }
                found.append(&mut own);
            });
        }
    }
}

impl Visitor for Checker<'_> {
    fn statements(&self, file: u32) -> Option<Arc<Vec<Statement>>> {
        self.host.statements(file)
    }

    fn migration_start(&mut self, file: u32, migration: &Migration<'_>) {
        self.done.clear();
        if migration.report {
            suppression::find_comments(file, migration, &mut self.comments);
        }
    }

    fn observed(&self, file: u32, statement: TextRange, predicted: &Effects, after: &Catalog) -> Option<Effects> {
        self.host.observed(file, statement, predicted, after)
    }

    fn statement(&mut self, visit: &StatementVisit<'_>) {
        if !visit.migration.report {
            return;
        }
        let rules = self.statement_rules(visit.file);
        let mut found = self.found_in_code(visit, &rules);
        let mut own = self.found_by_rules(&self.context(visit, None), visit.statement.range, &rules);
        own.iter_mut().for_each(|found| in_code::label_calls(found, visit, |call| call.is_direct));
        found.append(&mut own);
        found.into_iter().for_each(|diagnostic| report::record(&mut self.statement_found, diagnostic));
        self.statement_found.iter_mut().for_each(|found| found.evidence = visit.evidence);
        spare_placeholders(&mut self.statement_found, &visit.statement.placeholders);
        self.finish_version(visit);
        if visit.migration.direction == Direction::Up {
            self.subjects.note(visit);
        }
        self.note_done(visit);
        if let Ast::Do(block) = visit.ast {
            self.block(visit, block);
        }
        for run in &visit.code.executed {
            // Elsewhere the ranges of its body would be no places in the file.
            if let (Some(Ast::Do(block)), InFile::Shifted(by)) = (run.statement.ast(), run.code.shown) {
                self.block(visit, &block.clone().shifted(by));
            }
        }
    }

    fn database_end(&mut self, number: u32, database: &Database) {
        let catalog = &database.catalog;
        self.declarations(number, catalog);
        if !self.reads_routines() {
            return;
        }
        let migrations = self.migrations;
        let routines = Routines::new(migrations, catalog, self.settings, self.reader);
        let is_reported = |file: u32| {
            migrations.get(file as usize).is_some_and(|migration| migration.report && migration.database == number)
        };
        for oid in routines.defined_in(is_reported) {
            if let Some(routine) = routines.function(oid) {
                let called = database.called.contains(&oid);
                self.routine(&routines, &routine, None, (catalog, catalog), called);
            }
        }
    }

    fn syntax_error(&mut self, file: u32, migration: &Migration<'_>, statement: &Statement, error: &SyntaxError) {
        if !migration.report {
            return;
        }
        let rule = &rules::engine::syntax_error::RULE;
        let version = self.settings.versions.from;
        if let Some(mut reporter) = Reporter::new(self.settings, rule, file, statement.range, version, &mut self.found)
        {
            let help = "PostgreSQL refuses the whole statement; correct it (the rest of the file is still checked)";
            reporter.report(error.range, error.message.clone()).help(help).emit();
        }
        if let Some(diagnostic) = self.found.last_mut() {
            diagnostic.pg_versions = self.settings.versions.iter().collect();
        }
    }

    fn migration_end(
        &mut self,
        file: u32,
        migration: &Migration<'_>,
        session: &Session,
        before: &Catalog,
        after: &Catalog,
    ) {
        self.host.done();
        if !migration.report {
            return;
        }
        self.forget_undone(file, migration);
        let (migrations, settings) = (self.migrations, self.settings);
        let reader = self.reader;
        let context =
            MigrationContext { file, migration, migrations, session, before, after, ran: &self.done, settings, reader };
        let found = found_in_migration(&context, rules::all());
        self.found.extend(found);
    }

    /// What is said about the text holds for the way back, too.
    fn way_back_read(&mut self, file: u32, migration: &Migration<'_>) {
        if !migration.report {
            return;
        }
        let (migrations, settings, reader) = (self.migrations, self.settings, self.reader);
        let (session, catalog) = (&Session::default(), &Catalog::new());
        let (before, after) = (catalog, catalog);
        let context =
            MigrationContext { file, migration, migrations, session, before, after, ran: &[], settings, reader };
        let about_text = [&rules::engine::ambiguous_text::RULE, &rules::engine::unchecked_psql_command::RULE];
        self.found.extend(found_in_migration(&context, &about_text));
    }
}

/// What rules find in a migration as a whole.
fn found_in_migration(context: &MigrationContext<'_>, rules: &[&'static Rule]) -> Vec<Diagnostic> {
    let (settings, file) = (context.settings, context.file);
    let mut found = Vec::new();
    for rule in rules {
        let Some(function) = rule.migration else { continue };
        let (range, version) = (TextRange::default(), settings.versions.from);
        if let Some(mut reporter) = Reporter::new(settings, rule, file, range, version, &mut found) {
            run_rule(rule, &mut reporter, |reporter| function(context, reporter));
        }
    }
    found
        .iter_mut()
        .for_each(|diagnostic: &mut Diagnostic| diagnostic.pg_versions = settings.versions.iter().collect());
    found
}

/// All rules; re-exported for front ends.
pub fn all_rules() -> &'static [&'static Rule] {
    rules::all()
}
