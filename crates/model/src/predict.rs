//! The effects of statements, without judgement.

use crate::catalog::Catalog;
use crate::checkpoint;
use crate::effect::{Effects, Failure, Reach};
use crate::migration::{Migration, TransactionState};
use crate::production::Functions;
use crate::replay::{Replay, StatementVisit, Visitor};
use crate::routine::{Bound, RoutineReader, Routines, reaches_of_definitions};
use crate::session::{Session, SettingsInEffect};
use crate::version::{PgVersion, VersionRange};
use pgvet_syntax::ast::{Ast, SyntaxError, Transaction};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{ParsedFile, Statement};

/// The prediction for one statement after a run, for one major version.
#[derive(Debug)]
pub struct StatementEffects {
    pub version: PgVersion,
    pub statement: TextRange,
    pub transaction: TransactionState,
    /// The transaction of the run that it is in; `None` for a transaction of its own.
    pub block: Option<u32>,
    /// The settings in effect before it.
    pub settings: SettingsInEffect,
    pub effects: Effects,
    /// What the functions would reach beyond the database that it defines, whatever calls them.
    pub defined_reaches: Vec<Reach>,
    /// Subtransactions that it begins in one transaction and that may write: SAVEPOINT, EXCEPTION in code that it runs.
    pub subtransactions: Bound,
}

/// Replays the migrations in order and returns, for each that is to be reported, what its statements do on one
/// major version. `functions` says how often production calls them. The lists run parallel to `migrations`; those of history are empty.
pub fn effects(migrations: &[Migration<'_>], version: PgVersion, functions: &Functions) -> Vec<Vec<StatementEffects>> {
    let effects = migrations.iter().map(|_| Vec::new()).collect();
    let reader = RoutineReader::default();
    let mut collector = Collector { migrations, functions, reader: &reader, effects };
    Replay::new(VersionRange { from: version, to: version }).run(migrations, &mut collector);
    collector.effects
}

/// A new database, in which nothing is but what the statements make that one session runs in it. Cloning it is cheap,
/// so that a statement can be tried.
#[derive(Clone)]
pub struct Database {
    replay: Replay,
}

impl Database {
    pub fn new(version: PgVersion) -> Self {
        Self { replay: Replay::of_new_database(VersionRange { from: version, to: version }) }
    }

    /// Runs the statements of a text, the first after the last that was run, and returns what they do.
    pub fn run(&mut self, file: &ParsedFile) -> Vec<Effects> {
        let mut seen = EffectsOnly::default();
        self.replay.go_on(&Migration::new(file), &mut seen);
        seen.0
    }

    pub fn catalog(&self) -> &Catalog {
        self.replay.catalog()
    }
}

#[derive(Default)]
struct EffectsOnly(Vec<Effects>);

impl Visitor for EffectsOnly {
    fn statement(&mut self, visit: &StatementVisit<'_>) {
        self.0.push(visit.effects.clone());
    }

    fn syntax_error(&mut self, _: u32, _: &Migration<'_>, _: &Statement, error: &SyntaxError) {
        self.0.push(Effects { fails: Some(refusal(error)), ..Effects::default() });
    }

    fn migration_end(&mut self, _: u32, _: &Migration<'_>, _: &Session, _: &Catalog, _: &Catalog) {}

    fn database_end(&mut self, _: u32, _: &checkpoint::Database) {}
}

fn refusal(error: &SyntaxError) -> Failure {
    Failure::new("42601", error.message.clone(), error.range)
}

struct Collector<'s> {
    migrations: &'s [Migration<'s>],
    functions: &'s Functions,
    reader: &'s RoutineReader,
    effects: Vec<Vec<StatementEffects>>,
}

impl Collector<'_> {
    /// The subtransactions that a statement begins, itself or in code that it runs.
    fn subtransactions(&self, visit: &StatementVisit<'_>) -> Bound {
        let routines = Routines::new(self.migrations, visit.before, self.functions, self.reader);
        let search_path = visit.session.settings.search_path();
        match visit.ast {
            Ast::Transaction(Transaction::Savepoint(_) | Transaction::RollbackTo(_)) => Bound::AtMost(1),
            Ast::Do(block) => routines
                .block(visit.file, visit.statement.range, block, search_path)
                .map_or(Bound::ZERO, |routine| routines.subtransactions(&routine).most),
            ast => routines.subtransactions_of(ast, &search_path).most,
        }
    }
}

impl Visitor for Collector<'_> {
    fn statement(&mut self, visit: &StatementVisit<'_>) {
        if visit.migration.report {
            let subtransactions = self.subtransactions(visit);
            self.effects[visit.file as usize].push(StatementEffects {
                version: visit.target.version(),
                statement: visit.statement.range,
                transaction: visit.transaction,
                block: visit.session.block.as_ref().map(|block| block.number),
                settings: visit.session.settings.clone(),
                effects: visit.effects.clone(),
                defined_reaches: reaches_of_definitions(visit.effects, visit.before, visit.after),
                subtransactions,
            });
        }
    }

    fn syntax_error(&mut self, file: u32, migration: &Migration<'_>, statement: &Statement, error: &SyntaxError) {
        if migration.report {
            let fails = Some(refusal(error));
            self.effects[file as usize].push(StatementEffects {
                version: PgVersion(0),
                statement: statement.range,
                transaction: TransactionState::None,
                block: None,
                settings: SettingsInEffect::default(),
                effects: Effects { fails, ..Effects::default() },
                defined_reaches: Vec::new(),
                subtransactions: Bound::ZERO,
            });
        }
    }

    fn migration_end(&mut self, _: u32, _: &Migration<'_>, _: &Session, _: &Catalog, _: &Catalog) {}

    fn database_end(&mut self, _: u32, _: &checkpoint::Database) {}
}
