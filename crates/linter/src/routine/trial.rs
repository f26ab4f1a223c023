//! What statements of code would do if it were called: they run on a copy of the catalog.

use super::{RoutineContext, Sql, SqlRole};
use crate::ast::{Ast, CreateIndex, ObjectName, Persistence, QueryBody};
use crate::catalog::{Catalog, Oid};
use crate::effect::{CatalogRows, Effects};
use crate::execute::try_statement;
use crate::plpgsql::Context;
use crate::session::{Place, Session, SettingValue, search_path_value};
use crate::source::TextRange;
use crate::version::{PgVersion, Target};
use smol_str::SmolStr;
use std::cell::RefCell;

/// A copy of the catalog on which statements run one after the other.
#[derive(Debug)]
pub struct Trial {
    catalog: Catalog,
    session: Session,
    target: Target,
}

impl Trial {
    pub fn new(catalog: &Catalog, search_path: &[SmolStr], version: PgVersion) -> Self {
        let mut session = Session::default();
        let place = Place { file: 0, range: TextRange::default() };
        let value = SettingValue { value: search_path_value(search_path), place };
        session.settings.set(SmolStr::new_static("search_path"), value);
        Self { catalog: catalog.clone(), session, target: Target::new(version) }
    }

    /// What a statement does; the next one finds the catalog as this one leaves it.
    pub fn run(&mut self, ast: &Ast) -> Effects {
        let (catalog, effects) = try_statement(self.catalog.clone(), self.session.clone(), ast, &self.target);
        self.catalog = catalog;
        effects
    }

    /// The catalog as the statements so far leave it.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn find(&self, name: &ObjectName) -> Option<Oid> {
        self.catalog.find_relation(name, &self.session.settings.search_path())
    }
}

/// The catalogs at the ends of the transactions and of the migration that is looked at: what its statements ask for, one
/// after the other, is run once.
#[derive(Debug, Default)]
pub struct Endings(RefCell<Vec<(Ending, Catalog)>>);

/// The end of what begins in a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub file: u32,
    /// Where its last statement begins.
    pub last: u32,
    pub version: PgVersion,
}

impl Endings {
    /// The catalog at an ending, which `run` finds out.
    pub fn get(&self, ending: Ending, run: impl FnOnce() -> Catalog) -> Catalog {
        let known = |known: &&(Ending, Catalog)| known.0 == ending;
        if let Some((_, catalog)) = self.0.borrow().iter().find(known) {
            return catalog.clone();
        }
        let catalog = run();
        let mut kept = self.0.borrow_mut();
        kept.retain(|(other, _)| other.file == ending.file && other.last >= ending.last);
        kept.push((ending, catalog.clone()));
        catalog
    }
}

/// A table that code creates.
#[derive(Debug)]
pub struct Creation {
    pub name: ObjectName,
    /// The name in the file.
    pub range: TextRange,
    pub persistence: Persistence,
    /// A partition of another table.
    pub partition: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Dropped when the transaction commits, or by the code itself.
    pub dropped: bool,
    /// Where it is created.
    pub context: Context,
    /// Rows of the system catalogs for each creation, those of its indexes included; `None` where they are not known.
    pub rows: Option<CatalogRows>,
    oid: Option<Oid>,
}

impl RoutineContext<'_> {
    /// The tables that the code creates, with the catalog rows that the newest configured major inserts for each.
    ///
    /// Statements are taken to run in the order of the text. A table that is there already, and is created only if it
    /// does not exist, is left out.
    pub fn creations(&self) -> Vec<Creation> {
        let mut trial = Trial::new(self.catalog, &self.routine.search_path, self.settings.versions.to);
        let mut found: Vec<Creation> = Vec::new();
        for step in self.routine.steps() {
            for sql in step.sql.iter().filter(|sql| sql.role != SqlRole::Expression) {
                match sql.ast {
                    Ast::CreateIndex(index) => {
                        let table = index_table(&trial, index);
                        let effects = trial.run(sql.ast);
                        let creation =
                            found.iter_mut().rev().find(|creation| creation.oid.is_some() && creation.oid == table);
                        if let Some(rows) = creation.and_then(|creation| creation.rows.as_mut()) {
                            *rows += effects.catalog_rows;
                        }
                    }
                    Ast::Drop(drop) => {
                        for object in &drop.objects {
                            let same = |creation: &&mut Creation| creation.name.name.text == object.name.name.text;
                            found.iter_mut().filter(same).for_each(|creation| creation.dropped = true);
                        }
                        trial.run(sql.ast);
                    }
                    ast => {
                        if let Some(creation) = created(ast, sql, step.context) {
                            found.extend(run_creation(&mut trial, ast, creation));
                        } else if matches!(ast, Ast::AlterTable(_)) {
                            trial.run(ast);
                        }
                    }
                }
            }
        }
        found
    }
}

fn run_creation(trial: &mut Trial, ast: &Ast, mut creation: Creation) -> Option<Creation> {
    let effects = trial.run(ast);
    if effects.fails.is_none() && effects.creates.is_empty() {
        return None;
    }
    let known = effects.fails.is_none() && !effects.unknown.iter().any(|reason| reason.contains("catalog rows"));
    creation.rows = known.then_some(effects.catalog_rows);
    creation.oid = trial.find(&creation.name);
    Some(creation)
}

fn index_table(trial: &Trial, index: &CreateIndex) -> Option<Oid> {
    trial.find(&index.table)
}

/// The table that a statement creates, if it is one that does.
fn created(ast: &Ast, sql: &Sql<'_>, context: Context) -> Option<Creation> {
    let creation = |name: &ObjectName, persistence, partition, if_not_exists, dropped| Creation {
        name: name.clone(),
        range: sql.place(name.range()),
        persistence,
        partition,
        if_not_exists,
        dropped,
        context,
        rows: None,
        oid: None,
    };
    match ast {
        Ast::CreateTable(create) if !create.foreign => Some(creation(
            &create.name,
            create.persistence,
            create.partition_of.is_some(),
            create.if_not_exists,
            create.on_commit_drop,
        )),
        Ast::CreateTableAs(create) if !create.materialized_view => {
            let into = &create.into;
            Some(creation(&into.name, into.persistence, false, create.if_not_exists, into.on_commit_drop))
        }
        Ast::Select(query) => {
            let QueryBody::Select(select) = &query.body else { return None };
            let into = select.into.as_ref()?;
            Some(creation(&into.name, into.persistence, false, false, into.on_commit_drop))
        }
        _ => None,
    }
}
