//! The order in which the application locks: by its known queries, by functions, views, foreign keys and triggers.

use super::cycle::Step;
use super::decisions::{Decisions, ends_transaction};
use super::reach::{Locked, Reach};
use super::request::{Placed, steps_of};
use crate::rules::deployment::queries::uses_new_relation;
use crate::settings::Settings;
use pgvet_model::application::{Application, KnownTransaction};
use pgvet_model::catalog::{Catalog, Function, Oid, Relation, RelationKind, SearchPath};
use pgvet_model::deployment::Deployment;
use pgvet_model::effect::{Branches, DataChangeKind, Effects, LockCause};
use pgvet_model::place::Place;
use pgvet_model::production::Functions;
use pgvet_model::routine::{Routine, Routines, Trial};
use pgvet_model::session::Session;
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::from_pg::parse_sql;
use pgvet_syntax::ast::{Ast, FunctionBody, ReferentialAction};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// What shows that the application locks in an order.
#[derive(Debug, Clone)]
pub(in super::super) enum Source {
    /// Queries of the project in one transaction, the first at this place.
    Query {
        place: SmolStr,
        is_alone: bool,
    },
    Function(Rc<Routine>),
    /// Any statement that reads the view.
    View(Oid),
    /// Any statement that changes rows of the table.
    Write(Oid, DataChangeKind),
}

/// The locks of a transaction of the application, in order.
#[derive(Debug)]
pub(in super::super) struct Sequence {
    pub(in super::super) source: Source,
    pub(in super::super) steps: Vec<Step>,
    /// One for each step.
    pub(in super::super) origins: Vec<Origin>,
    /// The steps of COMMIT.
    late: Vec<(Step, Origin)>,
    /// The number of statements so far.
    statements: usize,
}

/// What takes a lock of the application.
#[derive(Debug, Clone)]
pub(in super::super) struct Origin {
    pub(in super::super) cause: LockCause,
    /// The place in the code of a function.
    pub(in super::super) place: Option<Place>,
    /// The place of a query of the project.
    pub(in super::super) query: Option<SmolStr>,
    /// The table from which a DELETE of the code removes rows, if it takes the lock.
    pub(in super::super) deletes_from: Option<SmolStr>,
    /// The number of the statement in its sequence.
    pub(in super::super) statement: usize,
    /// Whether COMMIT takes it, because the foreign key is INITIALLY DEFERRED.
    pub(in super::super) at_commit: bool,
}

impl Origin {
    fn new(cause: LockCause) -> Self {
        Self { cause, place: None, query: None, deletes_from: None, statement: 0, at_commit: false }
    }
}

/// Where the application is observed.
pub(in super::super) struct Setting<'a> {
    pub(in super::super) catalog: &'a Catalog,
    pub(super) routines: &'a Routines<'a>,
    pub(super) application: &'a Application,
    pub(super) functions: &'a Functions,
    search_path: SearchPath,
    version: PgVersion,
    /// The catalog after the transaction, and the deployment that it is part of.
    pub(in super::super) after: &'a Catalog,
    pub(in super::super) deployment: Option<Deployment>,
    /// The calls of functions and triggers that were followed, in all statements together.
    calls: Rc<Cell<u32>>,
}

impl<'a> Setting<'a> {
    /// The application before the transaction, of which `routines` is the code.
    pub(in super::super) fn new(
        routines: &'a Routines<'a>,
        session: &Session,
        settings: &'a Settings,
        version: PgVersion,
        (after, deployment): (&'a Catalog, Option<Deployment>),
    ) -> Self {
        let search_path = session.settings.search_path();
        let (application, functions) = (&*settings.application, &settings.functions);
        let (catalog, calls) = (routines.catalog(), Rc::default());
        Self { catalog, routines, application, functions, search_path, version, after, deployment, calls }
    }

    /// The sequences that lock at least two of the relations that the migration locks, or one of them in two ways. The
    /// strongest evidence comes first.
    pub(in super::super) fn sequences(&self, steps: &[Step]) -> Vec<Sequence> {
        let relations: BTreeSet<Oid> = steps.iter().map(|step| step.relation).collect();
        let functions = self.functions(&relations);
        let reach = Reach::new(steps, &self.with_callers(&functions), self.routines);
        let mut found = self.of_queries(&reach);
        found.extend(functions.iter().filter_map(|function| self.of_function(function, &reach)));
        found.extend(self.of_views(&relations));
        found.extend(self.of_writes(&relations, &functions, &reach));
        for sequence in &mut found {
            sequence.keep(&relations);
        }
        found.retain(|sequence| sequence.steps.len() > 1);
        found
    }

    fn trial(&self) -> Trial {
        let trial = self.routines.trial(&self.search_path, self.version);
        trial.counting(&self.calls).for_lock_order()
    }

    fn of_queries(&self, reach: &Reach<'_>) -> Vec<Sequence> {
        let always = Branches::default();
        let sequence = |transaction: &KnownTransaction| {
            let first = transaction.statements.first()?;
            let is_alone = transaction.statements.len() == 1;
            let mut sequence = Sequence::new(Source::Query { place: first.place.clone(), is_alone });
            let mut trial = self.trial();
            for statement in &transaction.statements {
                let effects = trial.run(&statement.ast);
                if effects.fails.is_some() {
                    return None;
                }
                let deletes_from = deleted_table(&effects);
                let origin = |cause, _| Origin {
                    query: Some(statement.place.clone()),
                    deletes_from: deletes_from.clone(),
                    ..Origin::new(cause)
                };
                sequence.add(steps_of(&effects, &always), self.deferred(&effects), origin);
            }
            Some(sequence.committed())
        };
        let may_deadlock = |transaction: &&KnownTransaction| {
            let statements = transaction.with_words();
            reach.may_deadlock(statements.map(|(statement, words)| reach.of_query(&statement.ast, words)))
        };
        let is_deployed = |transaction: &&KnownTransaction| {
            let catalogs = [self.catalog, self.after];
            let is_new = |query| uses_new_relation(query, &self.search_path, catalogs, self.deployment);
            !transaction.statements.iter().any(is_new)
        };
        let transactions = self.application.with_one_of(reach.names());
        transactions.filter(may_deadlock).filter(is_deployed).filter_map(sequence).collect()
    }

    /// The functions whose code may name one of the relations, the oldest first.
    fn functions(&self, relations: &BTreeSet<Oid>) -> Vec<Arc<Function>> {
        let names = relations.iter().map(|oid| self.catalog.relation(*oid).name.as_str());
        let mut functions = self.routines.naming(names);
        // Their statements are a tree, not a text.
        let is_atomic = |function: &&Arc<Function>| matches!(&*function.body, FunctionBody::Atomic { .. });
        functions.extend(self.catalog.functions().filter(is_atomic).cloned());
        functions.sort_unstable_by_key(|function| function.oid);
        functions
    }

    /// The functions, and those whose code may call one of them or of the others.
    fn with_callers(&self, functions: &[Arc<Function>]) -> Vec<Arc<Function>> {
        let mut found = functions.to_vec();
        let mut known: FxHashSet<Oid> = functions.iter().map(|function| function.oid).collect();
        let mut first_new = 0;
        while first_new < found.len() {
            let callers = self.routines.naming(found[first_new..].iter().map(|function| function.name.as_str()));
            first_new = found.len();
            found.extend(callers.into_iter().filter(|function| known.insert(function.oid)));
        }
        found
    }

    /// The statements of a function in the order of its text. A trigger function is part of the change that fires it, and
    /// a function that changes the schema is a helper of migrations.
    fn of_function(&self, function: &Arc<Function>, reach: &Reach<'_>) -> Option<Sequence> {
        if !reach.may_deadlock_in(self.routines.all_words(function).as_deref()) {
            return None;
        }
        let routine = self.routines.function(function.oid)?;
        if !self.routines.triggers_of(function.oid).is_empty() {
            return None;
        }
        let steps = routine.steps();
        let all = steps.iter().flat_map(|step| &step.sql);
        let locked: Vec<Locked> = all.map(|sql| reach.of_text(sql.ast, self.routines.text(&routine, sql))).collect();
        if !reach.may_deadlock(locked.iter().copied()) {
            return None;
        }
        let mut locked = locked.into_iter();
        let mut sequence = Sequence::new(Source::Function(Rc::clone(&routine)));
        let trial = self.routines.trial(&routine.search_path, self.version);
        let trial = trial.counting(&self.calls).for_lock_order();
        let mut decisions = Decisions::default();
        for step in &steps {
            decisions.note(step);
            let branches = decisions.of(step);
            for sql in &step.sql {
                if !is_of_application(sql.ast) {
                    return None;
                }
                if locked.next().is_none_or(Locked::is_empty) {
                    continue;
                }
                let effects = trial.run_in_block(sql.ast);
                let place = |range| Some(Place { file: routine.file, range: sql.place(range) });
                let deletes_from = deleted_table(&effects);
                let origin = |cause, range| Origin {
                    place: place(range),
                    deletes_from: deletes_from.clone(),
                    ..Origin::new(cause)
                };
                sequence.add(steps_of(&effects, &branches), self.deferred(&effects), origin);
            }
            if ends_transaction(step) {
                break;
            }
        }
        Some(sequence.committed())
    }

    /// Queries of the views that read one of the relations, or are one.
    fn of_views(&self, relations: &BTreeSet<Oid>) -> Vec<Sequence> {
        let reads = |view: &&Arc<Relation>| {
            let read = view.view().map_or(&[][..], |view| &view.references).iter().map(|(oid, _)| *oid);
            let of_them: BTreeSet<Oid> = read.chain([view.oid]).filter(|oid| relations.contains(oid)).collect();
            view.kind == RelationKind::View && of_them.len() > 1
        };
        let views = self.catalog.views().filter(reads);
        let sequence = |view: &Arc<Relation>| self.of_text(Source::View(view.oid), &format!("TABLE {}", name_of(view)));
        views.filter_map(sequence).collect()
    }

    /// Changes of tables with foreign keys to or from one of the relations, or with triggers that may use one.
    fn of_writes(&self, relations: &BTreeSet<Oid>, functions: &[Arc<Function>], reach: &Reach<'_>) -> Vec<Sequence> {
        let mut tables: BTreeSet<Oid> = BTreeSet::new();
        for oid in relations {
            let relation = self.catalog.relation(*oid);
            tables.extend(relation.referenced_by.iter());
            let refers = relation.constraints.iter().any(|constraint| constraint.foreign_key().is_some());
            if refers || !relation.referenced_by.is_empty() {
                tables.insert(*oid);
            }
        }
        for function in functions {
            for used in self.routines.triggers_of(function.oid) {
                tables.insert(used.table.oid);
                // Rows of a partition can be written without a lock on the parent.
                tables.extend(used.table.children.iter());
            }
        }
        tables.retain(|table| reach.may_deadlock_from(*table));
        let tables = tables.into_iter().filter_map(|oid| self.catalog.get_relation(oid));
        let mut found: Vec<Sequence> = tables.flat_map(|table| self.of_table(table)).collect();
        // Rows are inserted and updated more often than deleted.
        found.sort_by_key(|sequence| matches!(sequence.source, Source::Write(_, DataChangeKind::Delete)));
        found
    }

    fn of_table<'t>(&self, table: &'t Arc<Relation>) -> Vec<Sequence> {
        let name = name_of(table);
        let mut texts = vec![(DataChangeKind::Insert, format!("INSERT INTO {name} DEFAULT VALUES"))];
        // A change of a key also locks the other side of its foreign keys, and is rare.
        let keys = self.key_columns(table);
        let of_trigger = |columns: &'t [SmolStr]| columns.iter().find(|name| !keys.contains(*name)).or(columns.first());
        let of_triggers = table.triggers.iter().filter_map(|trigger| of_trigger(&trigger.columns));
        let first = changed_column(table, &keys);
        let columns: BTreeSet<&SmolStr> = of_triggers.chain(first).collect();
        if !table.triggers.is_empty() && table.kind.is_table() {
            let update = |column| {
                let column = quote_identifier(column);
                (DataChangeKind::Update, format!("UPDATE {name} SET {column} = {column}"))
            };
            texts.extend(columns.into_iter().map(|column| update(column.as_str())));
        }
        texts.push((DataChangeKind::Delete, format!("DELETE FROM {name}")));
        let sequence = |(kind, text): (DataChangeKind, String)| self.of_text(Source::Write(table.oid, kind), &text);
        texts.into_iter().filter_map(sequence).collect()
    }

    /// The columns on either side of the foreign keys of a table. An UPDATE of others locks nothing for these, and its row
    /// locks (FOR NO KEY UPDATE) do not conflict with those of a foreign key check (FOR KEY SHARE).
    fn key_columns(&self, table: &Relation) -> BTreeSet<SmolStr> {
        let to = self.catalog.foreign_keys_to(table.oid);
        let referenced = to.iter().filter_map(|(_, key)| key.foreign_key()).flat_map(|key| &key.referenced_columns);
        let own = table.constraints.iter().filter_map(|key| key.foreign_key()).flat_map(|key| &key.columns);
        referenced.chain(own).cloned().collect()
    }

    fn of_text(&self, source: Source, text: &str) -> Option<Sequence> {
        let statement: Ast = parse_sql(text).ok()?.pop()?;
        let effects = self.trial().run_in_block(&statement);
        let mut sequence = Sequence::new(source);
        sequence.add(steps_of(&effects, &Branches::default()), self.deferred(&effects), |cause, _| Origin::new(cause));
        effects.fails.is_none().then(|| sequence.committed())
    }

    /// The tables that a statement locks only at COMMIT: all foreign keys between them and the tables that it changes
    /// are INITIALLY DEFERRED. What ON DELETE and ON UPDATE change is changed at once.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `createForeignKeyActionTriggers`.
    fn deferred(&self, effects: &Effects) -> FxHashSet<Oid> {
        let (mut late, mut at_once) = (FxHashSet::default(), FxHashSet::default());
        for change in &effects.data_changes {
            let Some(table) = self.catalog.get_relation(change.relation.oid) else { continue };
            for constraint in &table.constraints {
                let Some(key) = constraint.foreign_key().filter(|_| change.kind != DataChangeKind::Delete) else {
                    continue;
                };
                let found = if constraint.initially_deferred { &mut late } else { &mut at_once };
                found.insert(key.referenced);
            }
            if change.kind == DataChangeKind::Insert {
                continue;
            }
            for (referencing, constraint) in self.catalog.foreign_keys_to(table.oid) {
                let Some(key) = constraint.foreign_key() else { continue };
                let action = if change.kind == DataChangeKind::Delete { key.on_delete } else { key.on_update };
                let is_late = constraint.initially_deferred && action == ReferentialAction::NoAction;
                let found = if is_late { &mut late } else { &mut at_once };
                found.insert(referencing);
            }
        }
        late.retain(|table| !at_once.contains(table));
        late
    }
}

/// A column that an ordinary UPDATE changes: no foreign key looks at its values, unless one looks at all columns.
fn changed_column<'t>(table: &'t Relation, keys: &BTreeSet<SmolStr>) -> Option<&'t SmolStr> {
    let mut names = table.columns.iter().filter(|column| column.generated.is_none()).map(|column| &column.name);
    names.clone().find(|name| !keys.contains(*name)).or(names.next())
}

/// The table from which a statement only deletes rows, itself or in the functions that it calls. What foreign keys and
/// triggers change because of a DELETE is a part of it.
fn deleted_table(effects: &Effects) -> Option<SmolStr> {
    let mut own = effects.data_changes.iter().filter(|change| !change.by_trigger);
    let first = own.next()?;
    let only_deletes = std::iter::once(first).chain(own).all(|change| change.kind == DataChangeKind::Delete);
    only_deletes.then(|| first.relation.name.clone())
}

/// Whether applications run such statements, too.
fn is_of_application(ast: &Ast) -> bool {
    matches!(
        ast,
        Ast::Select(_)
            | Ast::Insert(_)
            | Ast::Update(_)
            | Ast::Delete(_)
            | Ast::Merge(_)
            | Ast::LockTable(_)
            | Ast::Truncate(_)
            | Ast::Copy(_)
            | Ast::Call(_)
            | Ast::Set(_)
            | Ast::Transaction(_)
    )
}

/// A relation as SQL, whatever the search path.
fn name_of(relation: &Relation) -> String {
    format!("{}.{}", quote_identifier(&relation.schema), quote_identifier(&relation.name))
}

impl Sequence {
    fn new(source: Source) -> Self {
        Self { source, steps: Vec::new(), origins: Vec::new(), late: Vec::new(), statements: 0 }
    }

    /// Adds the locks of a statement. `deferred`: the tables that its foreign keys lock at COMMIT.
    fn add(&mut self, placed: Vec<Placed>, deferred: FxHashSet<Oid>, origin: impl Fn(LockCause, TextRange) -> Origin) {
        self.statements += 1;
        for one in placed {
            let at_commit = one.cause == LockCause::ForeignKey && deferred.contains(&one.step.relation);
            let origin = Origin { statement: self.statements, at_commit, ..origin(one.cause, one.range) };
            if at_commit {
                self.late.push((one.step, origin));
            } else {
                self.push(one.step, origin);
            }
        }
    }

    fn push(&mut self, step: Step, origin: Origin) {
        if !self.steps.contains(&step) {
            self.origins.push(origin);
            self.steps.push(step);
        }
    }

    /// Adds the locks of COMMIT.
    fn committed(mut self) -> Self {
        for (step, origin) in std::mem::take(&mut self.late) {
            self.push(step, origin);
        }
        self
    }

    /// Forgets the locks on other relations.
    fn keep(&mut self, relations: &BTreeSet<Oid>) {
        let all = std::mem::take(&mut self.steps).into_iter().zip(std::mem::take(&mut self.origins));
        (self.steps, self.origins) = all.filter(|(step, _)| relations.contains(&step.relation)).unzip();
    }
}
