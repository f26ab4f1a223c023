//! The run: parsed migrations in, diagnostics and effects out.

mod definitions;
mod in_code;

use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::declared::Subjects;
use crate::diagnostic::Diagnostic;
use crate::guard::run_rule;
use crate::meta::Category;
use crate::passes::{self, Hidden, Refused};
use crate::report::places::Places;
use crate::report::{self, Reporter};
use crate::rule::{Earlier, MigrationContext, RoutineContext, Rule};
use crate::rules::{self, deployment::lasting::Lasting};
use crate::settings::Settings;
use crate::severity::Severity;
use crate::suppression::{self, FoundComment, Suppressed};
use definitions::Definitions;
use pgvet_model::catalog::Catalog;
use pgvet_model::checkpoint::{Checkpoint, Database};
use pgvet_model::effect::Effects;
use pgvet_model::execute::InFile;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::replay::{Host, Replay, StatementVisit, Visitor, stands_for};
use pgvet_model::routine::{Endings, Routine, RoutineReader, Routines};
use pgvet_model::session::Session;
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::from_pg::parse_sql;
use pgvet_syntax::ast::{Ast, Do, SyntaxError};
use pgvet_syntax::lexer::refused_from;
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{self, Doubt, Placeholder, PlaceholderKind, Statement};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// In the order of files, and of places in them.
    #[serde(deserialize_with = "rules::read_findings")]
    pub found: Vec<Diagnostic>,
    /// Findings that comments suppressed, in the same order.
    pub suppressed: Vec<Suppressed>,
    /// How many findings the settings hide.
    pub hidden: Hidden,
}

/// Replays the migrations in order and reports what is wrong with those that are to be reported.
///
/// [`Diagnostic::file`] is an index into `migrations`.
pub fn check(migrations: &[Migration<'_>], settings: &Settings) -> Vec<Diagnostic> {
    run(migrations, settings, &()).found
}

/// Like [`check`], and returns what comments suppressed, too.
pub fn run(migrations: &[Migration<'_>], settings: &Settings, host: &dyn Host) -> Outcome {
    run_from(Checkpoint::default(), migrations, settings, host)
}

/// Like [`run`], but skips the migrations that led to a checkpoint. `migrations` contains them nevertheless; of their
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
        refused: Refused::default(),
        found_before: 0,
        statement_found: Vec::new(),
        statement_rules: (u32::MAX, Rc::from([])),
        done: Vec::new(),
        doubts: OfText::default(),
        strings_before: None,
        comments_of_text: OfText::default(),
        done_moves: Vec::new(),
        definitions: Definitions::default(),
    };
    replay.run_down = settings.lint_down;
    replay.run(migrations, &mut checker);
    let Checker { mut found, comments, refused, .. } = checker;
    let mut suppressed = Vec::new();
    rules::engine::table_never_created::compare(&mut found, migrations);
    passes::weigh(&mut found, settings);
    refused.doubt_later(&mut found);
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
    /// The subjects that statements of reported migrations declare.
    subjects: Subjects,
    /// Comments that may suppress something.
    comments: Vec<FoundComment>,
    found: Vec<Diagnostic>,
    refused: Refused,
    /// How many findings there were when the current migration began.
    found_before: usize,
    /// Findings about the present statement, for the versions seen so far.
    statement_found: Vec<Diagnostic>,
    /// The rules that look at the statements of a file, with their severities.
    statement_rules: (u32, Rc<[(&'static Rule, Severity)]>),
    /// The statements that the current migration has run so far, in code too, with the beginning of the statement of
    /// the file.
    done: Vec<Earlier>,
    doubts: OfText<'s, Doubt>,
    /// The value of `standard_conforming_strings` before the first statement of the current migration.
    strings_before: Option<bool>,
    comments_of_text: OfText<'s, suppression::Comment>,
    /// Those of them that give something another name or schema, as positions.
    done_moves: Vec<usize>,
    definitions: Definitions,
}

/// What is known about the last text that was looked at. A file has one text for all of its sections.
struct OfText<'s, T>(Option<(&'s SourceFile, Rc<[T]>)>);

impl<T> Default for OfText<'_, T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'s, T> OfText<'s, T> {
    fn get(&mut self, source: &'s SourceFile, read: impl FnOnce() -> Vec<T>) -> Rc<[T]> {
        match &self.0 {
            Some((last, known)) if std::ptr::eq(*last, source) => Rc::clone(known),
            _ => Rc::clone(&self.0.insert((source, read().into())).1),
        }
    }
}

impl Checker<'_> {
    /// What is in doubt in the text of a migration, for the program that runs it.
    fn doubts(&mut self, file: u32, migration: &Migration<'_>) -> Vec<Doubt> {
        let Some(source) = self.migrations.get(file as usize).map(|migration| migration.file) else {
            return Vec::new();
        };
        let before = self.strings_before.unwrap_or(true);
        let doubts = self.doubts.get(source, || statement::doubts(&source.text));
        doubts.iter().filter(|doubt| migration.is_in_doubt(doubt, before)).copied().collect()
    }

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
                found.is_of(&rules::engine::statement_will_fail::RULE.meta) && !found.pg_versions.contains(&newest)
            };
            self.found.extend(self.statement_found.drain(..).filter(|found| keep_old || !refused_by_old(found)));
        }
    }
}

const REFUSED_HELP: &str = "correct this statement, which PostgreSQL refuses (pgvet still checks the rest of the file)";
const KEYWORD_HELP: &str =
    "put the name in double quotes, which works in every version (pgvet still checks the rest of the file)";

/// What is said of a statement that only newer servers refuse.
fn not_read(from: PgVersion) -> String {
    format!(
        "pgvet does not check this statement: a name in it is a keyword from PostgreSQL {from} on, and pgvet uses the \
         grammar of PostgreSQL 18"
    )
}

/// Findings about the state at the end of a migration.
impl Checker<'_> {
    /// A ROLLBACK takes away what harms only by staying.
    fn forget_undone(&mut self, file: u32, migration: &Migration<'_>) {
        let undone: HashSet<TextRange> =
            Lasting::of(migration).undone.iter().map(|statement| statement.range).collect();
        let needs_commit = |rule: &str| rules::find(rule).is_some_and(|rule| rule.meta.needs_commit);
        if !undone.is_empty() {
            let is_undone = |found: &Diagnostic| found.file == file && undone.contains(&found.statement);
            let own = self.found.split_off(self.found_before);
            self.found.extend(own.into_iter().filter(|found| !(is_undone(found) && needs_commit(found.rule))));
        }
    }
}

/// The code of functions and DO blocks.
impl Checker<'_> {
    /// Whether any rule looks at code.
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
            until: None,
        };
        self.judge(&context, rules::all());
    }

    /// Shows code to rules.
    fn judge(&mut self, context: &RoutineContext<'_>, rules: &[&'static Rule]) {
        let (file, statement) = (context.file, context.routine.statement);
        for rule in rules {
            let Some(function) = rule.routine else { continue };
            let at = self.found.len();
            let version = self.settings.versions.from;
            if let Some(mut reporter) =
                Reporter::new(self.settings, &rule.meta, file, statement, version, &mut self.found)
            {
                run_rule(rule, &mut reporter, |reporter| function(context, reporter));
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
        let routines = Routines::new(self.migrations, visit.before, &self.settings.functions, self.reader);
        let search_path = visit.session.settings.search_path();
        if let Some(routine) = routines.block(visit.file, visit.statement.range, block, search_path) {
            self.routine(&routines, &routine, Some(visit), (visit.before, visit.after), true);
        }
    }
}

impl Checker<'_> {
    /// Judges declarations by the final state of their objects.
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
                    if let Some(reporter) = Reporter::new(settings, &rule.meta, file, statement, version, &mut own) {
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
        self.strings_before = None;
        self.done.clear();
        self.done_moves.clear();
        self.found_before = self.found.len();
        if let Some(known) = self.migrations.get(file as usize).filter(|_| migration.report) {
            // Only `migration` still has its statements.
            let comments = self.comments_of_text.get(known.file, || suppression::comments(migration));
            self.comments.extend(comments.iter().map(|&comment| FoundComment { file, comment }));
        }
    }

    fn observed(&self, file: u32, statement: TextRange, predicted: &Effects, after: &Catalog) -> Option<Effects> {
        self.host.observed(file, statement, predicted, after)
    }

    fn statement(&mut self, visit: &StatementVisit<'_>) {
        if !visit.migration.report {
            return;
        }
        self.strings_before.get_or_insert(visit.session.settings.conforming_strings().unwrap_or(true));
        let rules = self.statement_rules(visit.file);
        let mut found = self.found_in_code(visit, &rules);
        let mut own = self.found_by_rules(&self.context(visit, None), visit.statement.range, &rules);
        own.iter_mut().for_each(|found| in_code::label_calls(found, visit, |call| call.is_direct));
        found.append(&mut own);
        let mut places = Places::default();
        found.into_iter().for_each(|diagnostic| places.record(&mut self.statement_found, diagnostic));
        self.statement_found.iter_mut().for_each(|found| found.evidence = visit.evidence);
        passes::keep_placeholders(&mut self.statement_found, &visit.statement.placeholders);
        self.refused.note(visit);
        self.finish_version(visit);
        if visit.migration.direction == Direction::Up {
            self.subjects.note(visit);
            self.definitions.note(visit);
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
        let routines = Routines::new(migrations, catalog, &self.settings.functions, self.reader);
        let is_reported = |file: u32| {
            migrations.get(file as usize).is_some_and(|migration| migration.report && migration.database == number)
        };
        let mut failing = FxHashSet::default();
        for oid in routines.defined_in(is_reported) {
            if let Some(routine) = routines.function(oid) {
                let called = database.called.contains(&oid);
                let at = self.found.len();
                self.routine(&routines, &routine, None, (catalog, catalog), called);
                if self.found[at..].iter().any(definitions::is_about_failure) {
                    failing.insert(oid);
                }
            }
        }
        self.definitions(number, database, failing);
    }

    fn syntax_error(&mut self, file: u32, migration: &Migration<'_>, statement: &Statement, error: &SyntaxError) {
        if !migration.report {
            return;
        }
        let versions = self.settings.versions;
        let text = migration.file.text.get(statement.range.as_usize()).filter(|_| statement.placeholders.is_empty());
        let from = text.and_then(|text| refused_from(text, |text| parse_sql(text).is_ok())).map(PgVersion);
        let from = from.filter(|from| *from > versions.from);
        let is_refused = from.is_none_or(|from| from <= versions.to);
        let rule = if is_refused { &rules::engine::syntax_error::RULE } else { &rules::engine::not_analyzed::RULE };
        if let Some(mut reporter) =
            Reporter::new(self.settings, &rule.meta, file, statement.range, versions.from, &mut self.found)
        {
            let (message, help) = match from {
                None => (error.message.clone(), REFUSED_HELP),
                Some(from) if is_refused => (format!("{} (from PostgreSQL {from} on)", error.message), KEYWORD_HELP),
                Some(from) => (not_read(from), KEYWORD_HELP),
            };
            let newer = from.filter(|_| !self.settings.versions_configured);
            let placeholder = statement.placeholders.iter().find(|one| one.kind == PlaceholderKind::Template);
            let of_placeholder =
                |one: &Placeholder| Assumption::RefusedWithAnyValue { placeholder: one.text.as_str().into() };
            let finding = reporter.report(error.range, message).help(help).caused_by(Cause::Message);
            let finding = finding.assuming(newer.map(|version| Assumption::ServerIsAtLeast { version }));
            finding.assuming(placeholder.map(of_placeholder)).emit();
            if let Some(diagnostic) = self.found.last_mut() {
                let is_meant = |version: &PgVersion| from.is_none_or(|from| !is_refused || *version >= from);
                diagnostic.pg_versions = versions.iter().filter(is_meant).collect();
            }
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
        self.definitions.leave(self.migrations, file, migration, after);
        let (migrations, settings) = (self.migrations, self.settings);
        let reader = self.reader;
        let doubts = &self.doubts(file, migration);
        let ran = &*self.done;
        let context =
            MigrationContext { file, migration, migrations, session, before, after, ran, doubts, settings, reader };
        let found = found_in_migration(&context, rules::all());
        self.found.extend(found);
    }

    /// Findings about the text, and about the file among the others, are reported for rollback migrations, too.
    fn rollback_migration_read(&mut self, file: u32, migration: &Migration<'_>) {
        if !migration.report {
            return;
        }
        let (migrations, settings, reader) = (self.migrations, self.settings, self.reader);
        let (session, catalog) = (&Session::default(), &Catalog::new());
        let (before, after) = (catalog, catalog);
        self.strings_before = None;
        let doubts = &self.doubts(file, migration);
        let context = MigrationContext {
            file,
            migration,
            migrations,
            session,
            before,
            after,
            ran: &[],
            doubts,
            settings,
            reader,
        };
        let about_text = [&rules::engine::ambiguous_text::RULE, &rules::engine::unchecked_psql_command::RULE];
        self.found.extend(found_in_migration(&context, &about_text));
        let about_history: Vec<_> =
            rules::all().iter().copied().filter(|rule| rule.meta.category == Category::History).collect();
        self.found.extend(found_in_migration(&context, &about_history));
    }
}

/// Returns the findings in a migration as a whole.
fn found_in_migration(context: &MigrationContext<'_>, rules: &[&'static Rule]) -> Vec<Diagnostic> {
    let (settings, file) = (context.settings, context.file);
    let mut found = Vec::new();
    for rule in rules {
        let Some(function) = rule.migration else { continue };
        let (range, version) = (TextRange::default(), settings.versions.from);
        if let Some(mut reporter) = Reporter::new(settings, &rule.meta, file, range, version, &mut found) {
            run_rule(rule, &mut reporter, |reporter| function(context, reporter));
        }
    }
    found
        .iter_mut()
        .for_each(|diagnostic: &mut Diagnostic| diagnostic.pg_versions = settings.versions.iter().collect());
    found
}

#[cfg(test)]
mod tests;
