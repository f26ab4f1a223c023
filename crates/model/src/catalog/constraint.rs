//! Constraints of tables.

use super::{Catalog, Named, Oid};
use pgvet_syntax::ast::{Expr, ExprKind, Literal, ReferentialAction};
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::hash::{Hash, Hasher};
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
    /// Whether code may have dropped it, or changed it, that names constraints only at run time.
    pub may_be_gone: bool,
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
            may_be_gone: false,
        }
    }

    /// Whether all rows certainly satisfy it.
    pub fn holds(&self) -> bool {
        self.valid && self.enforced && !self.may_be_gone
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

    /// Whether a child would inherit this constraint as that one. NOT NULL is identified by its column, CHECK by its name;
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

/// A number that is the same for expressions of which [`Expr::is_same`] says so, and seldom for others.
pub(super) fn likeness(expression: &Expr) -> u64 {
    let mut hasher = FxHasher::default();
    expression.walk(&mut |part| {
        std::mem::discriminant(&part.kind).hash(&mut hasher);
        match &part.kind {
            ExprKind::Column(path) => path.last().hash(&mut hasher),
            ExprKind::Literal(Literal::Integer(number)) => number.hash(&mut hasher),
            ExprKind::Literal(Literal::String(text) | Literal::Numeric(text)) => text.hash(&mut hasher),
            ExprKind::Call(call) => call.name.hash(&mut hasher),
            ExprKind::Operator { operator, .. } => operator.hash(&mut hasher),
            _ => {}
        }
    });
    hasher.finish()
}

impl Named<Constraint> {
    /// The enforced CHECK with this condition that comes first.
    pub fn enforced_check(&self, condition: &Expr) -> Option<&Arc<Constraint>> {
        self.beginning_with_like(likeness(condition)).find(|constraint| match &constraint.kind {
            ConstraintKind::Check { expression, .. } => constraint.enforced && expression.is_same(condition),
            _ => false,
        })
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

#[cfg(test)]
mod tests {
    use super::likeness;
    use pgvet_syntax::ast::from_pg::parse_sql;
    use pgvet_syntax::ast::{AlterTableAction, Ast, ConstraintKind, Expr};

    fn condition(text: &str) -> Expr {
        let Ast::AlterTable(alter) = parse_sql(&format!("ALTER TABLE t ADD CHECK ({text})")).unwrap().remove(0) else {
            panic!("{text}")
        };
        let AlterTableAction::AddConstraint(constraint) = &alter.commands[0].action else { panic!("{text}") };
        let ConstraintKind::Check(condition) = &constraint.kind else { panic!("{text}") };
        condition.clone()
    }

    #[test]
    fn the_same_conditions_are_alike() {
        for (one, other) in [("a > 0", "t.a  >  0"), ("f(a, 'x') IS NOT NULL", "f(a, 'x')   IS NOT NULL")] {
            let (one, other) = (condition(one), condition(other));
            assert!(one.is_same(&other) && likeness(&one) == likeness(&other));
        }
        assert_ne!(likeness(&condition("a > 0")), likeness(&condition("a > 1")));
    }
}
