//! Uncertain parts of the catalog: relations that code may have changed whose text is known only at run time,
//! and functions, operators and casts that it does not keep.

use super::{Catalog, ConstraintKind, Oid, Relation};
use imbl::OrdSet;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// The doubted relations: these, and all that are older than an oid.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Doubts {
    relations: OrdSet<Oid>,
    before: Oid,
    /// Aggregates, operators, casts or functions of a type were made, which the catalog does not keep.
    more_code: bool,
    /// Code ran that was not analyzed and may have changed something.
    hidden_code: bool,
}

impl Catalog {
    /// The relation may have other parts than the catalog says, or be gone.
    pub fn doubt(&mut self, relation: Oid) {
        self.doubts.relations.insert(relation);
    }

    /// So may everything that there is now.
    pub fn doubt_everything(&mut self) {
        self.doubts.before = Oid(self.next_oid);
    }

    pub fn has_doubts(&self) -> bool {
        self.doubts_everything() || !self.doubts.relations.is_empty()
    }

    /// Whether anything may have been created, changed or dropped that the catalog does not know of.
    pub fn doubts_everything(&self) -> bool {
        self.doubts.before.is_valid()
    }

    /// Notes that code ran which was not analyzed and may have changed something.
    pub fn note_hidden_code(&mut self) {
        self.doubts.hidden_code = true;
    }

    /// Whether such code has run.
    pub fn follows_hidden_code(&self) -> bool {
        self.doubts.hidden_code
    }

    /// Notes that functions, operators or casts were made which the catalog does not keep.
    pub fn note_more_code(&mut self) {
        self.doubts.more_code = true;
    }

    /// Whether functions, operators or casts were made, other than by extensions, which the catalog does not keep.
    pub fn has_more_code(&self) -> bool {
        self.doubts.more_code
    }

    /// Whether the catalog has all functions, operators and casts that were created.
    pub fn knows_all_code(&self) -> bool {
        !self.doubts.more_code && self.knows_all_extensions()
    }

    pub fn is_doubtful(&self, relation: Oid) -> bool {
        relation < self.doubts.before || self.doubts.relations.contains(&relation)
    }

    /// After code that may not have run: what it made or changed is uncertain, and proves nothing about rows.
    pub fn doubt_changes_since(&mut self, before: &Self) {
        let differs =
            |relation: &&Arc<Relation>| before.get_relation(relation.oid).is_none_or(|old| !Arc::ptr_eq(old, relation));
        let changed: Vec<Oid> = self.relations().filter(differs).map(|relation| relation.oid).collect();
        for oid in changed {
            self.doubt(oid);
            if let Some(old) = before.get_relation(oid) {
                self.forget_proofs(old);
            }
        }
        let is_gone = |relation: &&Arc<Relation>| self.get_relation(relation.oid).is_none();
        let gone: Vec<&Arc<Relation>> = before.relations().filter(is_gone).collect();
        gone.iter().for_each(|relation| self.gone.remove(&relation.schema, &relation.name));
        let loses_code = before.functions().any(|function| self.get_function(function.oid).is_none());
        let loses_types = before.types().any(|definition| self.get_type(definition.oid).is_none());
        if loses_code {
            self.note_more_code();
        }
        if loses_code || loses_types || !gone.is_empty() {
            self.doubt_everything();
        }
    }

    /// Forgets what a relation says about its rows and `old`, its state before, does not say.
    fn forget_proofs(&mut self, old: &Relation) {
        let key: Vec<SmolStr> =
            self.relation(old.oid).primary_key().map(|key| key.columns().to_vec()).unwrap_or_default();
        let is_unproved = |column: &str| old.column(column).is_some_and(|column| !column.not_null);
        let relation = self.relation_mut(old.oid);
        let (now, then) = (&mut relation.birth, old.birth);
        (now.filled, now.many) = (now.filled || then.filled, now.many || then.many);
        now.at_most = now.at_most.filter(|_| now.at_most == then.at_most);
        (now.empty_in, now.emptied, now.changed_in) = (then.empty_in, None, then.changed_in);
        for column in &mut relation.columns {
            let earlier = old.column(&column.name);
            column.not_null &= !is_unproved(&column.name) || key.contains(&column.name);
            let is_same = earlier.is_none_or(|earlier| match (&earlier.held, &column.held) {
                (Some(earlier), Some(held)) => earlier.since == held.since,
                _ => false,
            });
            column.held = column.held.take().filter(|_| is_same);
        }
        let was_valid = |name: &SmolStr| old.constraint(name).is_some_and(|constraint| constraint.valid);
        let not_null = relation.constraints.iter().filter(|constraint| match &constraint.kind {
            ConstraintKind::NotNull { column } => is_unproved(column) && !key.contains(column),
            _ => false,
        });
        let not_null: Vec<SmolStr> = not_null.map(|constraint| constraint.name.clone()).collect();
        relation.constraints.update_where(
            |constraint| matches!(constraint.kind, ConstraintKind::Check { .. }) && !was_valid(&constraint.name),
            |constraint| constraint.valid = false,
        );
        not_null.iter().for_each(|name| drop(self.remove_constraint(old.oid, name)));
    }
}
