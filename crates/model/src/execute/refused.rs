//! Relations that refused statements would have created. Once such a statement is corrected, later statements meet a new
//! relation, and none that has been in use for long.

use super::{Executor, Knowledge};
use crate::catalog::{Catalog, Relation, RelationKind};
use pgvet_syntax::ast::{Ast, Name, ObjectName, Persistence, QueryBody};
use smol_str::SmolStr;
use std::sync::Arc;

/// The SQLSTATE of statements that cannot run in a transaction.
const ACTIVE_SQL_TRANSACTION: &str = "25001";

impl Executor<'_> {
    /// Remembers what a refused statement was to create.
    pub(super) fn note_refused(&mut self, ast: &Ast) {
        self.refused_relation = self.refused_relation.take().or_else(|| created_by(ast));
    }

    /// Runs a statement that PostgreSQL refuses only in a transaction as if it ran alone, and keeps what it changes: once
    /// it is moved out of the transaction, later statements meet that. Returns whether it would succeed.
    pub(super) fn run_alone(&mut self, ast: &Ast, failure: &str) -> bool {
        if failure != ACTIVE_SQL_TRANSACTION || !self.in_block || self.knowledge == Knowledge::Everything {
            return false;
        }
        let before = self.catalog.clone();
        let effects = std::mem::take(&mut self.effects);
        self.in_block = false;
        let succeeds = self.check_named_columns(ast).and_then(|()| self.statement(ast)).is_ok();
        (self.in_block, self.effects) = (true, effects);
        if succeeds {
            self.refused_relation = None;
        } else {
            self.catalog = before;
        }
        succeeds
    }

    /// Adds the relation that a refused statement was to create, and those that its code had created before. In a history
    /// that was run, they were created in some other way. `failed` is the catalog when PostgreSQL refused the statement.
    pub(super) fn stand_in_for_refused(&mut self, failed: &Catalog) {
        let refused = self.refused_relation.take();
        if self.knowledge == Knowledge::Everything {
            return;
        }
        let is_lost = |relation: &&Arc<Relation>| !relation.is_temporary() && !relation.kind.is_index();
        let lost = failed.relations_since(&self.catalog).filter(is_lost);
        let mut names: Vec<(SmolStr, SmolStr, RelationKind)> =
            lost.map(|relation| (relation.schema.clone(), relation.name.clone(), relation.kind)).collect();
        if let Some((name, kind)) = refused {
            names.push((self.schema_for(&name, false), name.name.text, kind));
        }
        for (schema, name, kind) in names {
            let birth = self.birth(false);
            let taken = self.catalog.relation_named(&schema, &name);
            if let Some(relation) = self.catalog.add_refused_relation(schema, name, kind, birth) {
                self.catalog.doubt(relation);
            } else if let Some(taken) = taken.filter(|_| kind.is_table()) {
                self.catalog.relation_mut(taken).birth.created_again_in = self.deployment;
            }
        }
    }
}

/// The relation that a statement creates, unless it is temporary.
fn created_by(ast: &Ast) -> Option<(ObjectName, RelationKind)> {
    let lasts = |persistence: Persistence| persistence != Persistence::Temporary;
    match ast {
        Ast::CreateTable(create) => {
            let is_partitioned = create.partition_by.is_some();
            let kind = if is_partitioned { RelationKind::PartitionedTable } else { RelationKind::Table };
            lasts(create.persistence).then(|| (create.name.clone(), kind))
        }
        Ast::CreateTableAs(create) => {
            let kind = if create.materialized_view { RelationKind::MaterializedView } else { RelationKind::Table };
            lasts(create.into.persistence).then(|| (create.into.name.clone(), kind))
        }
        Ast::Select(query) => {
            let QueryBody::Select(select) = &query.body else { return None };
            let into = select.into.as_ref().filter(|into| lasts(into.persistence))?;
            Some((into.name.clone(), RelationKind::Table))
        }
        Ast::CreateView(create) => lasts(create.persistence).then(|| (create.name.clone(), RelationKind::View)),
        Ast::CreateSequence(create) => lasts(create.persistence).then(|| (create.name.clone(), RelationKind::Sequence)),
        Ast::CreateIndex(create) => {
            let name: &Name = create.name.as_ref()?;
            let name = ObjectName { schema: create.table.schema.clone(), name: name.clone() };
            Some((name, RelationKind::Index))
        }
        _ => None,
    }
}
