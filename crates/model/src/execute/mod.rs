//! Runs statements on the catalog as PostgreSQL would, and records what that does.
//!
//! One pass serves two purposes: the effects of a statement and the catalog after it come from the same code, which
//! follows PostgreSQL's own (`src/backend/commands`), one file per family of statements. Nothing is executed on data:
//! tables that existed before are assumed to hold rows.

mod alter_table;
mod catalog_rows;
mod column_rules;
mod comment;
mod create_table;
mod create_table_as;
mod demand;
mod drop;
mod executed;
mod expressions;
mod few_rows;
mod foreign_key;
mod function;
mod index;
mod maintenance;
mod metadata;
mod open;
mod partition;
mod privilege;
mod publication;
mod query;
pub(crate) mod reach;
mod record;
mod refused;
mod rename;
pub(crate) mod routine;
mod scope;
mod sequence;
mod settings;
mod since;
mod temporary;
#[cfg(test)]
mod testing;
mod trigger;
mod types;
mod unknown;
mod view;

pub use alter_table::command_lock_level;
pub use executed::{CodeKind, CodeRun, CodeText, Executed, InFile, Recorder};
pub use expressions::ask as ask_about_types;
pub use reach::reach_of_function;
pub(crate) use routine::{Bodies, may_be};

use crate::catalog::{Birth, Catalog, Oid, Relation, RelationKind, SqlType};
use crate::deployment::Deployment;
use crate::effect::{Effects, Failure, UnknownReason};
use crate::place::Place;
use crate::session::Session;
use crate::version::Target;
use pgvet_syntax::ast::{Ast, ObjectName, Transaction};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::cell::{Cell, RefCell};

/// The outcome of a part of a statement: an `Err` is PostgreSQL's refusal.
pub(crate) type Run<T = ()> = Result<T, Failure>;

/// Makes the `Err` of a [`Run`].
pub(crate) fn fail<T>(sqlstate: &'static str, reason: impl Into<String>, range: TextRange) -> Run<T> {
    Err(Failure::new(sqlstate, reason, range))
}

/// How much of the database the run has seen, and so what a name that no statement showed means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(crate) enum Knowledge {
    #[default]
    /// A file alone: what it uses was made elsewhere.
    Nothing,
    /// Migrations before it: what it uses may be older than they are, but what it makes IF NOT EXISTS or drops
    /// IF EXISTS is taken not to exist.
    History,
    /// A dump of the whole schema: what is missing does not exist.
    Everything,
}

/// Refusals of columns, functions, operators and types of values.
fn is_about_values(failure: &Failure) -> bool {
    matches!(failure.sqlstate, "42703" | "42883" | "42804" | "42809" | "42846")
}

/// Runs one statement for one major version.
pub(crate) struct Executor<'a> {
    /// The catalog; changed as the statement runs.
    pub(crate) catalog: Catalog,
    pub(crate) session: Session,
    pub(crate) effects: Effects,
    pub(crate) target: &'a Target,
    /// The code that the run has read.
    pub(crate) bodies: &'a Bodies,
    /// Where the statement stands.
    pub(crate) place: Place,
    /// Something in it stands in for what a template engine or psql puts there, such as a column for a value.
    pub(crate) has_placeholders: bool,
    /// How far into the file the text stands that is being run, so that ranges in it shift by that; `None` where it is
    /// no part of the file.
    pub(crate) text_at: Option<u32>,
    /// How often a program sent the statement, with these or other values.
    pub(crate) times_sent: u64,
    /// `None` for a dump of a schema, which is treated as there from the beginning.
    pub(crate) deployment: Option<Deployment>,
    /// See [`Migration::in_production`](crate::migration::Migration::in_production).
    pub(crate) in_production: bool,
    /// Number of the transaction that the statement runs in.
    pub(crate) transaction: u32,
    /// In a transaction block that forbids statements such as CREATE INDEX CONCURRENTLY.
    pub(crate) in_block: bool,
    /// How much of the database the run has seen.
    pub(crate) knowledge: Knowledge,
    /// Relations that this statement created.
    pub(crate) created: FxHashSet<Oid>,
    /// The relation that has the name which a new one was to get.
    pub(crate) in_the_way: Option<Oid>,
    /// Where an unqualified name was found because no statement has set `search_path`.
    pub(crate) assumed_schema: RefCell<Option<SmolStr>>,
    /// What the first refused statement that creates a relation was to create.
    pub(crate) refused_relation: Option<(ObjectName, RelationKind)>,
    /// How deep calls of functions nest.
    pub(crate) depth: u8,
    /// The functions that are being run, with their parameters, the outermost first.
    pub(crate) running: Vec<(Oid, routine::Variables)>,
    /// How many functions the statement has run.
    pub(crate) calls: u32,
    /// How many rounds of loops it has run.
    pub(crate) rounds: usize,
    /// How many rows of system catalogs its queries were compared with.
    pub(crate) compared: usize,
    /// The statements of code that has run.
    pub(crate) recorder: Recorder,
    /// The errors that the handlers catch which are being run, the innermost last.
    pub(crate) handled: Vec<Failure>,
    /// Whether a statement since the beginning of the innermost block with handlers may have raised an error.
    pub(crate) may_have_raised: bool,
    /// The loops around the code that is being run whose rounds are not run one by one.
    pub(crate) repeats: Vec<routine::Repeat>,
    /// How many queries were examined to count rows.
    pub(crate) queries: Cell<u32>,
    /// The values that every row of a table has in its columns, while a condition on them is decided.
    pub(crate) row: RefCell<routine::Variables>,
    /// Variables of the code that is being run.
    pub(crate) variables: routine::Variables,
    /// Settings that no statement makes, while an expression is evaluated.
    pub(crate) unset_settings: routine::UnsetSettings,
    /// What decides whether code has left the body before the rest of it.
    pub(crate) left_by: Option<routine::Environment>,
    /// The decisions that have led to the code that is being run.
    pub(crate) path: routine::Path,
}

/// The result of trying a statement outside of any migration.
pub(crate) struct Tried {
    pub(crate) catalog: Catalog,
    pub(crate) session: Session,
    pub(crate) effects: Effects,
    pub(crate) code: CodeRun,
    /// The number of calls that were followed, with those before.
    pub(crate) calls: u32,
    /// The number of decisions of its code, with those before.
    pub(crate) decisions: u32,
}

/// How a statement is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions {
    pub(crate) has_placeholders: bool,
    pub(crate) in_block: bool,
    /// The number of calls that were followed before, towards the same limit.
    pub(crate) calls: u32,
    /// The number of decisions of code before, if effects are to carry theirs.
    pub(crate) decisions: Option<u32>,
    /// Whether the statements that code runs are recorded.
    pub(crate) records: bool,
}

/// Tries a statement on a copy of the catalog, for one major version.
pub(crate) fn try_statement(
    catalog: &Catalog,
    session: &Session,
    ast: &Ast,
    target: &Target,
    bodies: &Bodies,
    Conditions { has_placeholders, in_block, calls, decisions, records }: Conditions,
) -> Tried {
    let executor = Executor::for_trial(catalog, session, target, bodies);
    let path = decisions.map(routine::Path::noted_from).unwrap_or_default();
    let recorder = Recorder::new(records);
    let mut executor = Executor { has_placeholders, in_block, calls, recorder, path, ..executor };
    executor.run(ast);
    let code = executor.recorder.finish(&executor.effects);
    let (calls, decisions) = (executor.calls, executor.path.count);
    let Executor { catalog, session, effects, .. } = executor;
    Tried { catalog, session, effects, code, calls, decisions }
}

/// The names and types of the columns that a statement returns; `None` where they are not known.
pub(crate) fn result_columns(
    catalog: &Catalog,
    session: &Session,
    ast: &Ast,
    target: &Target,
) -> Option<Vec<(SmolStr, SqlType)>> {
    let bodies = Bodies::default();
    Executor::for_trial(catalog, session, target, &bodies).describe_statement(ast)
}

impl<'a> Executor<'a> {
    /// Runs a statement outside of any migration.
    fn for_trial(catalog: &Catalog, session: &Session, target: &'a Target, bodies: &'a Bodies) -> Self {
        Self {
            catalog: catalog.clone(),
            session: session.clone(),
            effects: Effects::default(),
            target,
            bodies,
            place: Place { file: 0, range: TextRange::default() },
            has_placeholders: false,
            text_at: None,
            times_sent: 1,
            deployment: Some(Deployment::Alone(u32::MAX)),
            in_production: true,
            transaction: u32::MAX,
            in_block: false,
            knowledge: Knowledge::History,
            created: FxHashSet::default(),
            in_the_way: None,
            assumed_schema: RefCell::default(),
            refused_relation: None,
            depth: 0,
            running: Vec::new(),
            calls: 0,
            rounds: 0,
            compared: 0,
            recorder: Recorder::default(),
            handled: Vec::new(),
            may_have_raised: false,
            repeats: Vec::new(),
            queries: Cell::new(0),
            row: RefCell::default(),
            variables: routine::Variables::default(),
            unset_settings: routine::UnsetSettings::default(),
            left_by: None,
            path: routine::Path::default(),
        }
    }
}

impl Executor<'_> {
    /// Runs the statement. On refusal the catalog is as it was, and [`Effects::fails`] says why where that is certain.
    pub(crate) fn run(&mut self, ast: &Ast) {
        let before = self.catalog.clone();
        let first_lock = self.effects.locks.len();
        let named = if self.has_placeholders { Ok(()) } else { self.check_named_columns(ast) };
        let done = named.and_then(|()| self.statement(ast));
        self.note_missing_functions(ast);
        if let Err(failure) = done {
            let sqlstate = failure.sqlstate;
            if self.is_doubtful(&failure) {
                self.doubt_refused();
                self.note_unknown(UnknownReason::Doubt);
            } else if self.has_placeholders && is_about_values(&failure) {
                self.unknown("a placeholder whose value is not known");
            } else {
                self.effects.fails = Some(self.with_assumption(failure));
            }
            self.note_refused(ast);
            let failed = std::mem::replace(&mut self.catalog, before);
            if !self.run_alone(ast, sqlstate) {
                self.stand_in_for_refused(&failed);
            }
        } else {
            self.gather_demands(&before);
            self.note_new_evidence(first_lock);
        }
        self.place_unknown();
    }

    fn statement(&mut self, ast: &Ast) -> Run {
        self.note_reach(ast);
        self.check_available(ast)?;
        match ast {
            Ast::AlterTable(statement) => self.alter_table(statement),
            Ast::Do(statement) => self.run_do(statement),
            Ast::CreateTable(create) => self.create_table(create),
            Ast::CreateTableAs(create) => self.create_table_as(create),
            Ast::CreateIndex(statement) => self.create_index(statement),
            Ast::Drop(statement) => self.drop_objects(statement),
            Ast::AlterTableMoveAll(statement) => self.alter_table_move_all(statement),
            Ast::CreateView(statement) => self.create_view(statement),
            Ast::RefreshMaterializedView(statement) => self.refresh_materialized_view(statement),
            Ast::CreateSequence(statement) => self.create_sequence(statement),
            Ast::AlterSequence(statement) => self.alter_sequence(statement),
            Ast::CreateType(statement) => self.create_type(statement),
            Ast::CreateDomain(statement) => self.create_domain(statement),
            Ast::AlterDomain(statement) => self.alter_domain(statement),
            Ast::AlterEnum(statement) => self.alter_enum(statement),
            Ast::CreateFunction(statement) => self.create_function(statement),
            Ast::AlterFunction(statement) => self.alter_function(statement),
            Ast::CreateTrigger(statement) => self.create_trigger(statement),
            Ast::CreateRule(statement) => self.create_rule(statement),
            Ast::CreatePolicy(statement) => self.create_policy(statement),
            Ast::AlterPolicy(statement) => self.alter_policy(statement),
            Ast::CreatePublication(statement) => self.create_publication(statement),
            Ast::AlterPublication(statement) => self.alter_publication(statement),
            Ast::CreateSchema(statement) => self.create_schema(statement),
            Ast::CreateExtension(statement) => self.create_extension(statement),
            Ast::CreateStatistics(statement) => self.create_statistics(statement),
            Ast::CreateOther(statement) => self.create_other(statement),
            Ast::Rename(statement) => self.rename(statement),
            Ast::SetSchema(statement) => self.set_schema(statement),
            Ast::Comment(statement) => self.comment(statement),
            Ast::Grant(statement) => self.grant(statement),
            Ast::GrantRole(statement) => {
                self.grant_role(statement);
                Ok(())
            }
            Ast::CreateRole(statement) => {
                self.create_role(statement);
                Ok(())
            }
            Ast::ReassignOwned(statement) => self.reassign_owned(statement),
            Ast::DropOwned(_) => {
                self.skip_code(UnknownReason::Owned, TextRange::default(), true);
                Ok(())
            }
            Ast::AlterDefaultPrivileges(statement) => self.alter_default_privileges(statement),
            Ast::ChangeOwner(_) => Ok(()),
            Ast::Truncate(statement) => self.truncate(statement),
            Ast::LockTable(statement) => self.lock_table(statement),
            Ast::Vacuum(statement) => self.vacuum(statement),
            Ast::Cluster(statement) => self.cluster(statement),
            Ast::Reindex(statement) => self.reindex(statement),
            Ast::Select(query) => self.select_statement(query),
            Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_) | Ast::DeclareCursor(_) => {
                self.read_statement(ast, query::Depth::Run)
            }
            Ast::Copy(statement) => self.copy(statement),
            Ast::Explain(statement) => self.explain(statement),
            Ast::Prepare(statement) => self.prepare(statement),
            Ast::Execute(name) => self.execute_prepared(name),
            Ast::Call(statement) => self.call(statement),
            Ast::Set(statement) => self.set(statement),
            Ast::Discard(discard) => self.discard(*discard),
            Ast::Deallocate(name) => self.deallocate(name.as_ref()),
            Ast::Transaction(Transaction::Commit { .. }) => self.drop_at_commit(),
            _ => Ok(()),
        }
    }

    /// The birth of an object that this statement makes.
    pub(crate) fn birth(&self, filled: bool) -> Birth {
        let filled_in = self.deployment.filter(|_| filled);
        Birth { filled, many: filled, filled_in, ..Birth::empty(self.deployment, self.transaction) }
    }

    /// Whether this deployment created the relation.
    pub(crate) fn is_new(&self, relation: &Relation) -> bool {
        relation.birth.is_of(self.deployment)
    }
}
