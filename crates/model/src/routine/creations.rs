//! The tables that code would create if it were called.

use super::{Routine, Sql, SqlRole, Trial};
use crate::catalog::{Catalog, Oid};
use crate::effect::CatalogRows;
use crate::version::PgVersion;
use pgvet_syntax::ast::{Ast, CreateIndex, ObjectName, Persistence, QueryBody};
use pgvet_syntax::plpgsql::Context;
use pgvet_syntax::source::TextRange;

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

impl Routine {
    /// The tables that the code creates, with the catalog rows that a major version inserts for each.
    ///
    /// Statements are assumed to run in the order of the text. A table that already exists, and is created only if it
    /// does not exist, is skipped.
    pub fn creations(&self, catalog: &Catalog, version: PgVersion) -> Vec<Creation> {
        let mut trial = Trial::new(catalog, &self.search_path, version);
        let mut found: Vec<Creation> = Vec::new();
        for step in self.steps() {
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
    let known = effects.fails.is_none() && effects.knows_catalog_rows();
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
