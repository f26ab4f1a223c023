//! Replays migrations in order: one catalog through all of them, a session for each or for each run, and every statement
//! judged against the state before it.

mod unparsed;

use crate::catalog::{Birth, Catalog, RelationKind};
use crate::checkpoint::{Checkpoint, Database};
use crate::effect::{Effects, Evidence};
use crate::execute::{Bodies, CodeRun, Executor, Knowledge, Recorder};
use crate::memory::{Memory, Ran, Step};
use crate::migration::{Direction, Migration, TransactionState};
use crate::place::Place;
use crate::runner::SessionScope;
use crate::session::{Change, HeldLock, Left, LongWork, Session, SettingValue, SettingsInEffect};
use crate::version::{PgVersion, Target, VersionRange};
use imbl::OrdMap;
use pgvet_syntax::ast::{Ast, SyntaxError, Transaction};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
use smol_str::SmolStr;
use std::rc::Rc;
use std::sync::Arc;

/// The information that a run needs from the program around it. `()` provides none.
pub trait Host {
    /// The statements of the file of a migration that was given without them. Asked for each migration, in order.
    fn statements(&self, _migration: u32) -> Option<Arc<Vec<Statement>>> {
        None
    }

    /// The observed effects of a statement of a reported migration on a server, if they are known; given what the model
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

/// Who looks at what the replay finds.
pub trait Visitor {
    /// The statements of a file that the migration does not hold.
    fn statements(&self, _file: u32) -> Option<Arc<Vec<Statement>>> {
        None
    }
    /// The statements of a migration are about to be run.
    fn migration_start(&mut self, _file: u32, _migration: &Migration<'_>) {}
    /// A statement was run for one major version, which stands for all up to `until`.
    fn statement(&mut self, visit: &StatementVisit<'_>);
    /// A statement could not be read.
    fn syntax_error(&mut self, file: u32, migration: &Migration<'_>, statement: &Statement, error: &SyntaxError);
    /// All statements of a migration were run; an open transaction is still open.
    fn migration_end(
        &mut self,
        file: u32,
        migration: &Migration<'_>,
        session: &Session,
        before: &Catalog,
        after: &Catalog,
    );
    /// Called when a rollback migration was read, and not run.
    fn rollback_migration_read(&mut self, _file: u32, _migration: &Migration<'_>) {}
    /// All migrations of a database were run.
    fn database_end(&mut self, number: u32, database: &Database);
    /// The observed effects of a statement of a reported migration, if they are known: they take precedence over what
    /// the model says.
    fn observed(&self, _file: u32, _statement: TextRange, _predicted: &Effects, _after: &Catalog) -> Option<Effects> {
        None
    }
}

/// A statement with its effects and the state around it.
pub struct StatementVisit<'a> {
    pub file: u32,
    pub migration: &'a Migration<'a>,
    pub statement: &'a Statement,
    pub ast: &'a Ast,
    pub effects: &'a Effects,
    /// The effects of the code that the statement ran.
    pub code: &'a CodeRun,
    pub evidence: Evidence,
    pub before: &'a Catalog,
    pub after: &'a Catalog,
    pub session: &'a Session,
    pub(crate) transaction: TransactionState,
    pub target: &'a Target,
}

/// The outcome of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Usual,
    /// PostgreSQL would refuse it for something that is not there.
    Lacks,
}

impl Outcome {
    /// Source: PostgreSQL 18 documentation, appendix A: undefined table, column and object, no such schema.
    fn of(effects: &Effects) -> Self {
        match &effects.fails {
            Some(failure) if ["42P01", "42703", "42704", "3F000"].contains(&failure.sqlstate) => Self::Lacks,
            _ => Self::Usual,
        }
    }
}

/// A run of migrations.
#[derive(Clone)]
pub struct Replay {
    versions: VersionRange,
    /// Whether rollback migrations are run as well.
    pub run_down: bool,
    /// The state that the migrations so far have left.
    pub(crate) state: Checkpoint,
    session: Session,
    /// See [`Left::since`].
    since: u32,
    /// The settings of migrations that each run runs again, in the session of the current one.
    steady: OrdMap<SmolStr, SettingValue>,
    bodies: Rc<Bodies>,
    /// The settings with which sessions begin.
    settings: SettingsInEffect,
    /// The effects of statements in an earlier run, if they are kept.
    pub memory: Option<Memory>,
}

impl Replay {
    pub(crate) fn new(versions: VersionRange) -> Self {
        Self::from_checkpoint(versions, Checkpoint::default())
    }

    /// Goes on where an earlier run stopped.
    pub fn from_checkpoint(versions: VersionRange, state: Checkpoint) -> Self {
        Self {
            versions,
            run_down: false,
            state,
            session: Session::default(),
            since: 0,
            steady: OrdMap::new(),
            bodies: Rc::default(),
            settings: SettingsInEffect::default(),
            memory: None,
        }
    }

    /// Begins with a database of which everything is known, because it is new.
    pub(crate) fn of_new_database(versions: VersionRange) -> Self {
        let mut replay = Self::new(versions);
        replay.state.database.knowledge = Knowledge::Everything;
        replay.settings = SettingsInEffect::of_new_server();
        replay.session.settings = replay.settings.clone();
        replay
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.state.database.catalog
    }

    /// Runs further statements of the same session.
    pub(crate) fn go_on(&mut self, migration: &Migration<'_>, visitor: &mut dyn Visitor) {
        for statement in migration.statements() {
            self.read_and_run(0, migration, statement, visitor);
        }
    }

    /// Runs all migrations from the checkpoint on; only those that are to be reported are shown to the visitor.
    pub fn run(&mut self, migrations: &[Migration<'_>], visitor: &mut dyn Visitor) {
        self.advance(migrations, visitor);
        for (number, database) in self.state.databases() {
            visitor.database_end(number, database);
        }
    }

    /// The same without the end of the databases.
    pub(crate) fn advance(&mut self, migrations: &[Migration<'_>], visitor: &mut dyn Visitor) {
        for (file, migration) in migrations.iter().enumerate().skip(self.state.next()) {
            let file = file as u32;
            let statements = visitor.statements(file);
            let parsed = statements.as_ref().map_or(migration.parsed, |statements| statements);
            let migration = &Migration { parsed, ..*migration };
            visitor.migration_start(file, migration);
            self.state.enter(migration.database);
            self.migration(file, migration, visitor);
            self.state.leave(migration);
        }
    }

    fn migration(&mut self, file: u32, migration: &Migration<'_>, visitor: &mut dyn Visitor) {
        match migration.direction {
            Direction::Up => self.run_migration(file, migration, visitor),
            Direction::Down if self.run_down && migration.report => self.try_rollback(file, migration, visitor),
            Direction::Down => only_parse(file, migration, visitor),
        }
    }

    /// Runs a rollback migration on the state after the migrations so far, and then restores that state.
    fn try_rollback(&mut self, file: u32, migration: &Migration<'_>, visitor: &mut dyn Visitor) {
        let before = self.state.clone();
        self.run_migration(file, migration, visitor);
        self.state = before;
    }

    fn run_migration(&mut self, file: u32, migration: &Migration<'_>, visitor: &mut dyn Visitor) {
        let certain = self.begin_session(migration);
        if !certain {
            self.state.database.catalog.remove_temporary_objects();
        }
        self.doubt_others(migration);
        self.create_first_schemas(migration);
        let statements: Vec<&Statement> = migration.statements().collect();
        let before = self.state.database.catalog.clone();
        let mut lacking = Vec::new();
        for (at, statement) in statements.iter().enumerate() {
            if migration.begins_session(&statements, at) && !self.session.in_transaction() {
                self.session = self.new_session(migration);
            }
            let sent = migration.sent(&statements, at);
            if sent.opens && !self.session.in_transaction() {
                self.begin(false, Place { file, range: TextRange::at(statement.range.start) });
            }
            if self.read_and_run(file, migration, statement, visitor) == Outcome::Lacks {
                lacking.push(*statement);
            }
            if sent.closes && self.session.block.as_ref().is_some_and(|block| !block.explicit) {
                self.session.commit();
            }
        }
        visitor.migration_end(file, migration, &self.session, &before, &self.state.database.catalog);
        let goes_on = migration.runner.one_transaction && migration.release.is_some();
        if !goes_on {
            self.session.commit();
        }
        self.leave_session(file, migration);
        lacking.into_iter().for_each(|statement| self.doubt_what_ran(statement, migration));
        self.doubt_others(migration);
    }

    /// Gives a migration its session: that of the one before it, if the program continues it. Returns whether that is
    /// certain.
    ///
    /// Migrations of an earlier run have set nothing here. Of files that are checked together nothing shows whether
    /// they are pending together, unless they are released together or are parts of one file.
    fn begin_session(&mut self, migration: &Migration<'_>) -> bool {
        let left = self.state.database.left.take();
        self.since = self.state.transaction + 1;
        let shares = |left: &Left| {
            let scope = migration.runner.session;
            scope != SessionScope::Migration && scope == left.scope
        };
        let is_of_run = left.as_ref().is_some_and(|left| left.report == migration.report);
        let left = left.filter(shares).and_then(|left| if is_of_run { Some(left) } else { left.in_every_run() });
        self.steady = left.as_ref().map(Left::steady_settings).unwrap_or_default();
        let Some(left) = left else {
            self.session = self.new_session(migration);
            return false;
        };
        let is_same_file = left.path == migration.file.path;
        let is_same_release = migration.release.is_some() && left.release == migration.release;
        let certain = is_of_run && (is_same_file || is_same_release);
        if certain && migration.runner.one_transaction && migration.release.is_some() && self.session.in_transaction() {
            return true;
        }
        if is_of_run && migration.runner.one_transaction {
            self.since = left.since;
        }
        let prepared = std::mem::take(&mut self.session.prepared);
        self.session = Session::after(&self.settings.with_first_schemas(migration.first_schemas), &left, certain);
        if certain {
            self.session.prepared = prepared;
        }
        certain
    }

    /// Creates the schemas that a new database lacks, and that the program creates. Others may have them already.
    fn create_first_schemas(&mut self, migration: &Migration<'_>) {
        let database = &mut self.state.database;
        if database.knowledge == Knowledge::Everything {
            let missing = migration.schemas_of_program().filter(|name| !database.catalog.has_schema(name));
            missing.cloned().collect::<Vec<_>>().into_iter().for_each(|name| database.catalog.add_schema(name));
        }
    }

    /// A session in which nothing has run yet.
    fn new_session(&self, migration: &Migration<'_>) -> Session {
        let settings = self.settings.with_first_schemas(migration.first_schemas);
        Session { settings, ..Session::default() }
    }

    /// Remembers the session for the next migration.
    fn leave_session(&mut self, file: u32, migration: &Migration<'_>) {
        let scope = migration.runner.session;
        let settings = self.session.settings_left();
        let is_steady = |(name, value): &(&SmolStr, &SettingValue)| {
            let is_own = migration.runner.every_run && value.place.file == file;
            is_own || self.steady.get(*name) == Some(*value)
        };
        let steady = settings.iter().filter(is_steady).map(|(name, _)| name.clone()).collect();
        let is_shared = scope != SessionScope::Migration && !migration.baseline;
        self.state.database.left = is_shared.then(|| Left {
            settings,
            steady,
            path: migration.file.path.clone(),
            report: migration.report,
            release: migration.release,
            scope,
            since: self.since,
        });
        if !is_shared {
            self.state.database.catalog.remove_temporary_objects();
        }
    }

    /// Doubts what a statement lacks here and what it makes: databases that ran the migrations so far have both, so
    /// something other than a migration has added them.
    fn doubt_what_ran(&mut self, statement: &Statement, migration: &Migration<'_>) {
        if self.state.database.knowledge != Knowledge::Everything {
            self.doubt(statement, &migration.file.text);
        }
    }

    /// Doubts the objects of other scripts, which may exist, or not yet. Those in a dump of the schema exist.
    fn doubt_others(&mut self, migration: &Migration<'_>) {
        let database = &mut self.state.database;
        if !migration.ordered && database.knowledge != Knowledge::Everything {
            database.catalog.doubt_everything();
        }
    }

    fn read_and_run(
        &mut self,
        file: u32,
        migration: &Migration<'_>,
        statement: &Statement,
        visitor: &mut dyn Visitor,
    ) -> Outcome {
        match &statement.parsed {
            Ok(ast) => self.statement(file, migration, statement, ast, visitor),
            Err(error) => {
                self.add_unparsed_table(file, migration, statement);
                self.doubt(statement, &migration.file.text);
                visitor.syntax_error(file, migration, statement, error);
                Outcome::Usual
            }
        }
    }

    fn begin(&mut self, explicit: bool, place: Place) {
        self.state.transaction += 1;
        self.session.begin(explicit, self.state.transaction, place, &self.state.database.catalog);
        if let Some(block) = &mut self.session.block {
            block.may_be_since = Some(self.since).filter(|since| *since < block.number);
        }
    }

    /// Relations that a statement names which could not be read may be anything now.
    fn doubt(&mut self, statement: &Statement, text: &str) {
        let path = self.session.settings.search_path();
        for name in unparsed::names(statement, text) {
            for schema in path.iter() {
                match self.state.database.catalog.relation_named(schema, &name) {
                    Some(oid) => self.state.database.catalog.relation_mut(oid).known = false,
                    None => self.state.database.catalog.forget_gone(schema, &name),
                }
            }
        }
    }

    /// A table that an unreadable statement would create belongs to this migration, whatever its columns are.
    fn add_unparsed_table(&mut self, file: u32, migration: &Migration<'_>, statement: &Statement) {
        let Some((schema, name)) = unparsed::created_table(statement, &migration.file.text) else { return };
        let path = self.session.settings.search_path();
        let schema = schema.or_else(|| path.first().cloned()).unwrap_or_else(|| SmolStr::new_static("public"));
        let (deployment, transaction) = (migration.deployment(file), self.state.transaction);
        let catalog = &mut self.state.database.catalog;
        let birth = Birth::empty(deployment, transaction);
        catalog.add_refused_relation(schema, name, RelationKind::Table, birth);
    }

    fn statement(
        &mut self,
        file: u32,
        migration: &Migration<'_>,
        statement: &Statement,
        ast: &Ast,
        visitor: &mut dyn Visitor,
    ) -> Outcome {
        if !self.session.in_transaction() {
            self.state.transaction += 1;
        }
        let transaction = self.transaction_state();
        let place = Place { file, range: statement.range };
        if let Some(memory) = &mut self.memory {
            memory.begin(Step::new(migration, place, transaction));
        }
        let mut version = self.versions.from;
        let outcome = loop {
            let ran = self.run_for(version, migration, place, statement);
            let target = ran.target();
            let observe = || visitor.observed(file, statement.range, &ran.effects, &ran.catalog);
            let observed = if migration.report { observe() } else { None };
            let evidence = if observed.is_some() { Evidence::Observed } else { Evidence::Predicted };
            visitor.statement(&StatementVisit {
                file,
                migration,
                statement,
                ast,
                effects: observed.as_ref().unwrap_or(&ran.effects),
                code: &ran.code,
                evidence,
                before: &self.state.database.catalog,
                after: &ran.catalog,
                session: &self.session,
                transaction,
                target: &target,
            });
            if let Some(next) = target.next_difference(self.versions.to) {
                version = next;
            } else {
                let outcome = Outcome::of(&ran.effects);
                self.accept(ran, observed, place);
                break outcome;
            }
        };
        if let Ast::Transaction(control) = ast {
            self.control(control, place);
        }
        outcome
    }

    /// Returns the effects of a statement for one version: remembered, or computed.
    fn run_for(
        &mut self,
        version: PgVersion,
        migration: &Migration<'_>,
        place: Place,
        statement: &Statement,
    ) -> Arc<Ran> {
        if let Some(known) = self.memory.as_ref().and_then(|memory| memory.recall(version)) {
            return known;
        }
        let ran = Arc::new(self.execute(migration, place, statement, &Target::new(version)));
        if let Some(memory) = &mut self.memory {
            memory.keep(&ran);
        }
        ran
    }

    /// Runs one statement for one version on copies of the state.
    fn execute(&self, migration: &Migration<'_>, place: Place, statement: &Statement, target: &Target) -> Ran {
        let mut executor = Executor {
            catalog: self.state.database.catalog.clone(),
            session: self.session.clone(),
            effects: Effects::default(),
            target,
            bodies: &self.bodies,
            place,
            has_placeholders: !statement.placeholders.is_empty(),
            text_at: Some(0),
            times_sent: migration.times_sent(place.range.start),
            deployment: migration.deployment(place.file),
            in_production: migration.in_production,
            transaction: self.session.block.as_ref().map_or(self.state.transaction, |block| block.number),
            in_block: self.session.in_transaction(),
            knowledge: self.state.database.knowledge,
            created: rustc_hash::FxHashSet::default(),
            in_the_way: None,
            assumed_schema: std::cell::RefCell::default(),
            refused_relation: None,
            depth: 0,
            running: Vec::new(),
            calls: 0,
            rounds: 0,
            compared: 0,
            recorder: Recorder::new(migration.report),
            handled: Vec::new(),
            may_have_raised: false,
            repeats: Vec::new(),
            queries: std::cell::Cell::new(0),
            row: std::cell::RefCell::default(),
            variables: crate::execute::routine::Variables::default(),
            unset_settings: crate::execute::routine::UnsetSettings::default(),
            left_by: None,
            path: crate::execute::routine::Path::default(),
        };
        if let Some(ast) = statement.ast() {
            executor.run(ast);
        }
        let Executor { catalog, mut session, effects, recorder, .. } = executor;
        session.end_statement();
        let code = recorder.finish(&effects);
        Ran::new(target, catalog, session, effects, code)
    }

    /// Takes over the state after a statement.
    fn accept(&mut self, ran: Arc<Ran>, observed: Option<Effects>, place: Place) {
        let predicted;
        (self.state.database.catalog, self.session, predicted) = Ran::into_parts(ran);
        let effects = observed.map_or(predicted, Arc::new);
        if effects.unknown.iter().any(|unknown| unknown.may_change && unknown.reason.hides_code()) {
            self.state.database.catalog.note_hidden_code();
        }
        self.state.database.called.extend(effects.calls.iter().map(|call| call.oid));
        let Some(block) = &mut self.session.block else { return };
        for lock in &effects.locks {
            if !block.locks.holds(lock.relation.oid, lock.mode) {
                block.locks.push(HeldLock::new(lock, place, lock.range));
            }
        }
        block.changes.extend(effects.data_changes.iter().map(|change| Change::new(change, place)));
        block.work.extend(effects.long_work().map(|range| LongWork { place, range }));
    }

    fn transaction_state(&self) -> TransactionState {
        match &self.session.block {
            None => TransactionState::None,
            Some(block) if block.explicit => TransactionState::Explicit,
            Some(_) => TransactionState::Implicit,
        }
    }

    fn control(&mut self, control: &Transaction, place: Place) {
        match control {
            Transaction::Begin => match &mut self.session.block {
                // A warning and nothing else, but from here on the block ends where the file says.
                Some(block) => block.explicit = true,
                None => self.begin(true, place),
            },
            Transaction::Commit { chain } => self.end(*chain, place, |replay| replay.session.commit()),
            Transaction::Rollback { chain } => {
                self.end(*chain, place, |replay| replay.session.rollback(&mut replay.state.database.catalog));
            }
            Transaction::Savepoint(name) => {
                self.session.savepoint(name.text.clone(), &self.state.database.catalog);
            }
            Transaction::Release(name) => {
                self.session.release(&name.text);
            }
            Transaction::RollbackTo(name) => {
                self.session.rollback_to(&name.text, &mut self.state.database.catalog);
            }
            Transaction::Prepare => self.session.commit(),
            Transaction::CommitPrepared | Transaction::RollbackPrepared => {}
        }
    }

    fn end(&mut self, chain: bool, place: Place, finish: impl FnOnce(&mut Self)) {
        finish(self);
        if chain {
            self.begin(true, place);
        }
    }
}

/// Parses a rollback migration. It is not run here, but must be readable when it is needed.
fn only_parse(file: u32, migration: &Migration<'_>, visitor: &mut dyn Visitor) {
    for statement in migration.statements() {
        if let Err(error) = &statement.parsed {
            visitor.syntax_error(file, migration, statement, error);
        }
    }
    visitor.rollback_migration_read(file, migration);
}

/// The majors that a run for one major stands for: up to the one for which something differs.
pub fn stands_for(target: &Target, versions: VersionRange) -> impl Iterator<Item = PgVersion> {
    let until = target.next_difference(versions.to).map_or(versions.to.0 + 1, |next| next.0);
    (target.version().0..until).map(PgVersion)
}

impl Checkpoint {
    /// Replays the migrations up to `next`, which is not one of them, as history.
    pub fn advance(&mut self, migrations: &[Migration<'_>], next: usize, versions: VersionRange, host: &dyn Host) {
        let mut replay = Replay::from_checkpoint(versions, std::mem::take(self));
        replay.advance(&migrations[..next], &mut Nobody(host));
        *self = replay.state;
    }
}

/// Looks at nothing.
struct Nobody<'h>(&'h dyn Host);

impl Visitor for Nobody<'_> {
    fn statements(&self, file: u32) -> Option<Arc<Vec<Statement>>> {
        self.0.statements(file)
    }
    fn statement(&mut self, _: &StatementVisit<'_>) {}
    fn syntax_error(&mut self, _: u32, _: &Migration<'_>, _: &Statement, _: &SyntaxError) {}
    fn migration_end(&mut self, _: u32, _: &Migration<'_>, _: &Session, _: &Catalog, _: &Catalog) {}
    fn database_end(&mut self, _: u32, _: &Database) {}
}
