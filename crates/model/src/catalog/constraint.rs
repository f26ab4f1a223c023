//! Constraints of tables.

use super::{Catalog, Oid};
use pgvet_syntax::ast::{Expr, ReferentialAction};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// A constraint: a row of `pg_constraint`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Constraint {
    pub name: SmolStr,
    pub kind: ConstraintKind,
    /// Checked for all rows (`convalidated`).
    pub valid: bool,
    pub enforced: bool,
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub no_inherit: bool,
    /// Defined here and not only inherited.
    pub is_local: bool,
    /// Number of parents that have it.
    pub inherited_from: u16,
}

/// The kinds of constraint, with their definitions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// Stored as a constraint from 18 on; in the model always, so that its name is known.
    NotNull {
        column: SmolStr,
    },
    Check {
        expression: Arc<Expr>,
        columns: Vec<SmolStr>,
    },
    PrimaryKey {
        columns: Vec<SmolStr>,
        index: Oid,
    },
    Unique {
        columns: Vec<SmolStr>,
        index: Oid,
    },
    Exclude {
        index: Oid,
    },
    ForeignKey(ForeignKeyConstraint),
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKeyConstraint {
    pub columns: Vec<SmolStr>,
    pub referenced: Oid,
    pub referenced_columns: Vec<SmolStr>,
    /// The index of the referenced table that it relies on; invalid where not known.
    pub referenced_index: Oid,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
    /// The columns that ON DELETE SET NULL or SET DEFAULT sets, where it does not set all.
    pub set_columns: Vec<SmolStr>,
    pub match_full: bool,
}

impl Constraint {
    /// A valid constraint of the table itself, without options.
    pub fn new(name: SmolStr, kind: ConstraintKind) -> Self {
        Self {
            name,
            kind,
            valid: true,
            enforced: true,
            deferrable: false,
            initially_deferred: false,
            no_inherit: false,
            is_local: true,
            inherited_from: 0,
        }
    }

    /// The index that implements it.
    pub fn index(&self) -> Option<Oid> {
        match &self.kind {
            ConstraintKind::PrimaryKey { index, .. }
            | ConstraintKind::Unique { index, .. }
            | ConstraintKind::Exclude { index } => Some(*index),
            _ => None,
        }
    }

    pub fn foreign_key(&self) -> Option<&ForeignKeyConstraint> {
        match &self.kind {
            ConstraintKind::ForeignKey(foreign_key) => Some(foreign_key),
            _ => None,
        }
    }

    /// Whether a child would inherit this constraint as that one. NOT NULL goes by its column, CHECK by its name;
    /// constraints of indexes and foreign keys are compared elsewhere.
    pub fn is_counterpart(&self, of_child: &Self) -> bool {
        match (&self.kind, &of_child.kind) {
            (ConstraintKind::NotNull { column: ours }, ConstraintKind::NotNull { column: theirs }) => ours == theirs,
            (ConstraintKind::Check { .. }, ConstraintKind::Check { .. }) => self.name == of_child.name,
            (_, ConstraintKind::NotNull { .. } | ConstraintKind::Check { .. }) => false,
            _ => true,
        }
    }

    pub fn is_primary_key(&self) -> bool {
        matches!(self.kind, ConstraintKind::PrimaryKey { .. })
    }

    /// Columns of its own table that it mentions.
    pub fn columns(&self) -> &[SmolStr] {
        match &self.kind {
            ConstraintKind::NotNull { column } => std::slice::from_ref(column),
            ConstraintKind::Check { columns, .. }
            | ConstraintKind::PrimaryKey { columns, .. }
            | ConstraintKind::Unique { columns, .. } => columns,
            ConstraintKind::Exclude { .. } => &[],
            ConstraintKind::ForeignKey(foreign_key) => &foreign_key.columns,
        }
    }
}

impl Catalog {
    pub fn add_constraint(&mut self, table: Oid, constraint: Constraint) {
        let schema = self.relation(table).schema.clone();
        self.note_constraint_name(&schema, &constraint.name);
        if let Some(foreign_key) = constraint.foreign_key() {
            let referenced = foreign_key.referenced;
            let is_first = !self.relation(table).references(referenced);
            if is_first && self.relations.contains_key(&referenced) {
                self.relation_mut(referenced).referenced_by.push_back(table);
            }
        }
        self.relation_mut(table).constraints.push(constraint);
    }

    /// Removes a constraint by name and returns it; its index is the caller's business.
    pub fn remove_constraint(&mut self, table: Oid, name: &SmolStr) -> Option<Arc<Constraint>> {
        let relation = self.relation_mut(table);
        let constraint = relation.constraints.remove(name)?;
        let schema = relation.schema.clone();
        self.forget_constraint_name(&schema, &constraint.name);
        if let Some(foreign_key) = constraint.foreign_key() {
            let referenced = foreign_key.referenced;
            let still = self.relation(table).references(referenced);
            if !still && self.relations.contains_key(&referenced) {
                self.relation_mut(referenced).referenced_by.retain(|oid| *oid != table);
            }
        }
        Some(constraint)
    }

    pub fn rename_constraint(&mut self, table: Oid, old: &SmolStr, new: SmolStr) {
        let schema = self.relation(table).schema.clone();
        if self.relation_mut(table).constraints.rename(old, new.clone()) {
            self.forget_constraint_name(&schema, old);
            self.note_constraint_name(&schema, &new);
        }
    }

    pub fn constraint_name_exists(&self, schema: &str, name: &str) -> bool {
        self.constraint_names.contains(schema, name)
    }

    /// The foreign keys that reference a table, with the table that has each.
    pub fn foreign_keys_to(&self, referenced: Oid) -> Vec<(Oid, Arc<Constraint>)> {
        let Some(relation) = self.relations.get(&referenced) else { return Vec::new() };
        let mut found = Vec::new();
        for table in &relation.referenced_by {
            let Some(referencing) = self.relations.get(table) else { continue };
            found.extend(
                referencing
                    .constraints
                    .iter()
                    .filter(|constraint| constraint.foreign_key().is_some_and(|key| key.referenced == referenced))
                    .map(|constraint| (*table, Arc::clone(constraint))),
            );
        }
        found
    }
}
