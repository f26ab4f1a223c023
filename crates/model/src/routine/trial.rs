//! Trial runs of statements on a copy of the catalog.

use super::Outline;
use crate::catalog::{Catalog, Oid, SearchPath, SqlType, search_path_value};
use crate::effect::Effects;
use crate::execute::{self, Bodies, Conditions, Tried, try_statement};
use crate::migration::Migration;
use crate::place::Place;
use crate::session::{Session, SettingValue};
use crate::version::{PgVersion, Target};
use pgvet_syntax::ast::{Ast, ObjectName, Set};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// A copy of the catalog on which statements run one after the other.
#[derive(Debug)]
pub struct Trial {
    catalog: Catalog,
    session: Session,
    target: Target,
    /// Whether names may stand for variables of code.
    has_variables: bool,
    /// The code of the functions that its statements call.
    bodies: Rc<Bodies>,
    /// The number of calls that were followed, if the limit is for all statements together.
    calls: Option<Rc<Cell<u32>>>,
    /// The number of decisions of code so far, if effects carry theirs.
    decisions: Option<Cell<u32>>,
    /// Whether the statements that code runs are recorded one by one.
    records: bool,
}

impl Trial {
    pub fn new(catalog: &Catalog, search_path: &SearchPath, version: PgVersion) -> Self {
        let mut session = Session::default();
        let place = Place { file: 0, range: TextRange::default() };
        let value = SettingValue { value: search_path_value(search_path), place };
        session.settings.set(SmolStr::new_static("search_path"), value);
        Self {
            catalog: catalog.clone(),
            session,
            target: Target::new(version),
            has_variables: false,
            bodies: Rc::default(),
            calls: None,
            decisions: None,
            records: true,
        }
    }

    /// For statements of code, in which a name that is no column stands for a variable.
    pub fn of_code(catalog: &Catalog, search_path: &SearchPath, version: PgVersion) -> Self {
        Self { has_variables: true, ..Self::new(catalog, search_path, version) }
    }

    /// The same with code of functions that was read before.
    pub(super) fn with_bodies(self, bodies: &Rc<Bodies>) -> Self {
        Self { bodies: Rc::clone(bodies), ..self }
    }

    /// The same with a limit of followed calls that counts those of other trials, too.
    #[must_use]
    pub fn counting(self, calls: &Rc<Cell<u32>>) -> Self {
        Self { calls: Some(Rc::clone(calls)), ..self }
    }

    /// For the order of locks: effects carry the decisions of code that lead to them, whose numbers differ between
    /// statements. How many rows statements read and write is not found out, and code is not recorded.
    #[must_use]
    pub fn for_lock_order(self) -> Self {
        Self { decisions: Some(Cell::new(0)), ..self.unrecorded() }
    }

    /// The same without a record of the statements that code runs, which takes longer than to run them.
    fn unrecorded(self) -> Self {
        Self { records: false, ..self }
    }

    /// Runs a statement and returns its effects. The next one starts from the catalog and settings that it leaves.
    pub fn run(&mut self, ast: &Ast) -> Effects {
        self.try_next(ast).effects
    }

    /// What a statement does inside a transaction block; nothing of it stays.
    pub fn run_in_block(&self, ast: &Ast) -> Effects {
        self.try_in(ast, true).effects
    }

    /// The names and types of the columns that a statement returns; `None` where they are not known.
    pub fn result_columns(&self, ast: &Ast) -> Option<Vec<(SmolStr, SqlType)>> {
        execute::result_columns(&self.catalog, &self.session, ast, &self.target)
    }

    /// The statements that its code runs.
    pub fn run_code(&mut self, ast: &Ast) -> Vec<Arc<Ast>> {
        let executed = self.try_next(ast).code.executed;
        executed.into_iter().filter_map(|run| run.statement.parsed.ok()).collect()
    }

    fn try_next(&mut self, ast: &Ast) -> Tried {
        // The statements are those of one transaction, or of one that commits each.
        let lasting = match ast {
            Ast::Set(set) if set.local => Some(Ast::Set(Set { local: false, ..set.clone() })),
            _ => None,
        };
        let ast = lasting.as_ref().unwrap_or(ast);
        let tried = self.try_in(ast, true);
        // Some statements need a transaction block, others must not be in one.
        let is_refused_there = tried.effects.fails.as_ref().is_some_and(|failure| failure.sqlstate == "25001");
        let tried = if is_refused_there { self.try_in(ast, false) } else { tried };
        self.catalog = tried.catalog.clone();
        self.session.settings = tried.session.settings.clone();
        self.session.prepared = tried.session.prepared.clone();
        tried
    }

    fn try_in(&self, ast: &Ast, in_block: bool) -> Tried {
        let before = self.calls.as_ref().map_or(0, |calls| calls.get());
        let decisions = self.decisions.as_ref().map(Cell::get);
        let (has_placeholders, records) = (self.has_variables, self.records);
        let conditions = Conditions { has_placeholders, in_block, calls: before, decisions, records };
        let tried = try_statement(&self.catalog, &self.session, ast, &self.target, &self.bodies, conditions);
        if let Some(calls) = &self.calls {
            calls.set(tried.calls);
        }
        if let Some(decisions) = &self.decisions {
            decisions.set(tried.decisions);
        }
        tried
    }

    /// The catalog as the statements so far leave it.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn find(&self, name: &ObjectName) -> Option<Oid> {
        self.catalog.find_relation(name, &self.session.settings.search_path())
    }
}

/// The catalogs at the ends of the transactions and of the migration that is examined: what its statements ask for, one
/// after the other, is run once.
#[derive(Debug, Default)]
pub struct Endings {
    catalogs: RefCell<Vec<(Ending, Catalog)>>,
    later: RefCell<Option<Later>>,
    outline: RefCell<Option<(u32, Rc<Outline>)>>,
    /// See [`Endings::remember`].
    remembered: RefCell<Vec<Box<dyn Any>>>,
}

/// The statements that a migration will run after a statement of a file.
#[derive(Debug)]
struct Later {
    file: u32,
    after: u32,
    statements: Rc<[(u32, Arc<Ast>)]>,
    /// Those of them that drop something.
    drops: Rc<[(u32, Arc<Ast>)]>,
}

/// The end of what begins in a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub file: u32,
    /// Where its last statement begins.
    pub last: u32,
    pub version: PgVersion,
}

impl Endings {
    /// Returns the value of this type that a caller last gave to [`Endings::remember`], and forgets it.
    pub fn recall<T: Any>(&self) -> Option<T> {
        let mut remembered = self.remembered.borrow_mut();
        let at = remembered.iter().position(|value| value.is::<T>())?;
        remembered.swap_remove(at).downcast().ok().map(|value| *value)
    }

    /// Keeps how far a caller has read the migration, so that it need not read it again at the next statement.
    pub fn remember<T: Any>(&self, value: T) {
        drop(self.recall::<T>());
        self.remembered.borrow_mut().push(Box::new(value));
    }

    /// The catalog at an ending, which `run` finds out.
    pub fn get(&self, ending: Ending, run: impl FnOnce() -> Catalog) -> Catalog {
        let known = |known: &&(Ending, Catalog)| known.0 == ending;
        if let Some((_, catalog)) = self.catalogs.borrow().iter().find(known) {
            return catalog.clone();
        }
        let catalog = run();
        let mut kept = self.catalogs.borrow_mut();
        kept.retain(|(other, _)| other.file == ending.file && other.last >= ending.last);
        kept.push((ending, catalog.clone()));
        catalog
    }

    /// The statements that a migration will run after the one that begins at `start`, and perhaps some before it.
    pub fn later(&self, file: u32, start: u32, run: impl FnOnce() -> Vec<(u32, Arc<Ast>)>) -> Rc<[(u32, Arc<Ast>)]> {
        let known = |known: &&Later| known.file == file && known.after <= start;
        if let Some(later) = self.later.borrow().as_ref().filter(known) {
            return Rc::clone(&later.statements);
        }
        let statements: Rc<[_]> = run().into();
        let drops = statements.iter().filter(|(_, ast)| matches!(**ast, Ast::Drop(_))).cloned().collect();
        *self.later.borrow_mut() = Some(Later { file, after: start, statements: Rc::clone(&statements), drops });
        statements
    }

    /// Those of [`Endings::later`] that drop something.
    pub fn later_drops(
        &self,
        file: u32,
        start: u32,
        run: impl FnOnce() -> Vec<(u32, Arc<Ast>)>,
    ) -> Rc<[(u32, Arc<Ast>)]> {
        self.later(file, start, run);
        self.later.borrow().as_ref().map(|later| Rc::clone(&later.drops)).unwrap_or_default()
    }

    /// What kinds of statements the migration with this index has, and where.
    pub fn outline(&self, file: u32, migration: &Migration<'_>) -> Rc<Outline> {
        if let Some((_, outline)) = self.outline.borrow().as_ref().filter(|(known, _)| *known == file) {
            return Rc::clone(outline);
        }
        let outline = Rc::new(Outline::of(migration));
        *self.outline.borrow_mut() = Some((file, Rc::clone(&outline)));
        outline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::ast::from_pg::parse_sql;

    #[test]
    fn settings_stay_for_the_statements_that_follow() {
        let mut trial = Trial::new(&Catalog::new(), &vec!["public".into()].into(), PgVersion(18));
        let sql = "CREATE SCHEMA a; CREATE SCHEMA b; SET LOCAL search_path = a; CREATE TABLE t (id int);
            SELECT set_config('search_path', 'b', false); CREATE TABLE t (id int)";
        for statement in parse_sql(sql).unwrap() {
            assert_eq!(trial.run(&statement).fails, None);
        }
        assert!(
            trial.catalog().relation_named("a", "t").is_some() && trial.catalog().relation_named("b", "t").is_some()
        );
    }

    #[test]
    fn what_is_not_recorded_has_the_same_effects() {
        let mut trial = Trial::new(&Catalog::new(), &vec!["public".into()].into(), PgVersion(18));
        let sql = "CREATE TABLE t (id int); CREATE TABLE u (id int); CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql
            AS $$ BEGIN UPDATE t SET id = 1; IF random() > 0 THEN LOCK TABLE u; DELETE FROM t; END IF; END $$";
        for statement in parse_sql(sql).unwrap() {
            trial.run(&statement);
        }
        let call = parse_sql("SELECT f()").unwrap().remove(0);
        let recorded = trial.run_in_block(&call);
        assert_eq!(recorded.data_changes.len(), 2);
        let unrecorded = trial.unrecorded().run_in_block(&call);
        assert_eq!((unrecorded.locks, unrecorded.data_changes), (recorded.locks, recorded.data_changes));
    }
}
