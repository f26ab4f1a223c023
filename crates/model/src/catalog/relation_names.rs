//! Relations by name: who has one, who had one, and names known only at run time.

use super::{Catalog, Oid, Relation, TEMPORARY_SCHEMA};
use crate::catalog::SearchPath;
use pgvet_syntax::ast::ObjectName;
use pgvet_syntax::plpgsql::HOLE;
use smol_str::SmolStr;
use std::sync::Arc;

impl Catalog {
    pub fn relation_named(&self, schema: &str, name: &str) -> Option<Oid> {
        self.relation_names.get(schema, name).copied()
    }

    /// Finds a relation as PostgreSQL does: the temporary schema first, then the search path. Where that is assumed, a
    /// relation that only another schema has is found there.
    pub fn find_relation(&self, name: &ObjectName, search_path: &SearchPath) -> Option<Oid> {
        if let Some(schema) = &name.schema {
            self.relation_named(&schema.text, &name.name.text)
        } else {
            // Temporary relations come first unless the path names their schema.
            let first = (!search_path.iter().any(|schema| schema == TEMPORARY_SCHEMA)).then_some(TEMPORARY_SCHEMA);
            let mut schemas = first.into_iter().chain(search_path.iter().map(SmolStr::as_str));
            let found = schemas.find_map(|schema| self.relation_named(schema, &name.name.text));
            found.or_else(|| self.find_elsewhere(name, search_path))
        }
    }

    /// The relation of an unqualified name that only one schema outside of an assumed search path has.
    fn find_elsewhere(&self, name: &ObjectName, search_path: &SearchPath) -> Option<Oid> {
        if !search_path.is_assumed() || self.is_gone(name, search_path) {
            return None;
        }
        let mut others = self.relations_with_name(&name.name.text);
        let only = others.next()?;
        others.next().is_none().then_some(only.oid)
    }

    /// Whether the relation, or the one that it is a part of, is in a schema that only an assumed search path says.
    pub fn is_placed_by_path(&self, relation: &Relation) -> bool {
        let sequence = relation.sequence().and_then(|sequence| sequence.owned_by.as_ref()).map(|(table, _)| *table);
        let whole = relation.index().map(|index| index.table).or(sequence);
        let whole = whole.and_then(|oid| self.get_relation(oid)).map_or(relation, |whole| whole);
        whole.placed_by_path
    }

    /// Whether a relation of this name was dropped, renamed or moved away, so that it certainly does not exist.
    pub fn is_gone(&self, name: &ObjectName, search_path: &[SmolStr]) -> bool {
        let gone = |schema: &SmolStr| self.gone.contains(schema, &name.name.text);
        match &name.schema {
            Some(schema) => gone(&schema.text),
            None => search_path.iter().any(gone),
        }
    }

    /// Something may have made a relation of this name again.
    pub fn forget_gone(&mut self, schema: &str, name: &str) {
        self.gone.remove(schema, name);
    }

    /// How many names relations once had that none has now.
    pub fn names_gone(&self) -> usize {
        self.gone.len()
    }

    /// The relations of that name in any schema, in the order of the schemas' names.
    pub fn relations_with_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<Relation>> {
        self.relation_names.in_all_schemas(name).filter_map(|oid| self.get_relation(*oid))
    }

    /// The relations under names that are partly known only at run time.
    pub fn open_relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        let known = self.open_names.iter().filter_map(|oid| self.get_relation(*oid));
        known.filter(|relation| relation.name.contains(HOLE))
    }

    /// Renames a relation or moves it to another schema.
    pub fn rename_relation(&mut self, oid: Oid, schema: SmolStr, name: SmolStr) {
        let relation = self.relation_mut(oid);
        let old = (
            std::mem::replace(&mut relation.schema, schema.clone()),
            std::mem::replace(&mut relation.name, name.clone()),
        );
        let constraints: Vec<_> = relation.constraint_names().cloned().collect();
        if old.0 != schema {
            for constraint in constraints {
                self.forget_constraint_name(&old.0, &constraint);
                self.note_constraint_name(&schema, &constraint);
            }
        }
        self.relation_names.remove(&old.0, &old.1);
        self.gone.insert(&old.0, &old.1, ());
        self.give_name(&schema, &name, oid);
    }

    pub(super) fn give_name(&mut self, schema: &SmolStr, name: &SmolStr, oid: Oid) {
        if self.gone.contains(schema, name) {
            self.gone.remove(schema, name);
        }
        self.relation_names.insert(schema, name, oid);
        if name.contains(HOLE) {
            self.open_names.insert(oid);
        }
    }
}
