//! Drift: where a database differs from its migrations, and how bad that is.

use crate::compare::{Action, Change, Comparison, Property};
use crate::facets::COLUMN_ORDER;
use crate::kind::Kind;
use crate::object::{Column, Index, Relation, RelationKind, Schema};
use serde::{Serialize, Serializer};
use std::cmp::Reverse;

/// A difference between migrations and a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    pub severity: Severity,
    pub sort: Sort,
    pub kind: Kind,
    /// The full name of the object.
    pub object: String,
    pub message: String,
    /// What stays the same as long as the database has the same drift.
    pub key: String,
}

/// How bad drift is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Warning,
    /// The application or a later migration may fail, rows may be wrong, or somebody may see or do what they should not.
    Error,
}

/// What sort of drift it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// The database lacks what the migrations have.
    Missing,
    /// No migration creates it.
    Unmanaged,
    /// An index that no query uses, because its build failed or has not finished.
    InvalidIndex,
    /// A constraint that existing rows may violate.
    NotValidated,
    /// Who may do and see what.
    Access,
    /// Any other property.
    Differs,
}

impl Sort {
    fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unmanaged => "unmanaged",
            Self::InvalidIndex => "invalid-index",
            Self::NotValidated => "not-validated",
            Self::Access => "access",
            Self::Differs => "differs",
        }
    }
}

impl Serialize for Sort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl Drift {
    /// The details distinguish this drift from other drift of the object.
    fn new(severity: Severity, sort: Sort, kind: Kind, object: String, message: String, details: &[&str]) -> Self {
        let key = [&[sort.word(), kind.noun(), &object], details].concat().join("|");
        Self { severity, sort, kind, object, message, key }
    }
}

/// Judges the comparison of migrations with a database, worst first.
pub fn judge(comparison: &Comparison, migrations: &Schema, database: &Schema) -> Vec<Drift> {
    let invalid = invalid_parts(database);
    let is_invalid = |change: &Change| {
        let name = change.name();
        invalid.iter().any(|drift| drift.kind == change.kind && drift.object == name)
    };
    let mut found: Vec<Drift> = Vec::new();
    for change in &comparison.changes {
        match change.action {
            Action::Removed => found.push(missing(change, migrations)),
            Action::Added => found.push(unmanaged(change, database)),
            Action::Changed => {
                let mut properties: Vec<&Property> = change.properties.iter().collect();
                // This is reported whatever the migrations say.
                if is_invalid(change) {
                    properties.retain(|property| !matches!(property.name.as_str(), "valid" | "validated"));
                }
                found.extend(properties.into_iter().map(|property| differs(change, property)));
            }
        }
    }
    found.extend(invalid);
    found.sort_by(|one, other| {
        let order = |drift: &Drift| (Reverse(drift.severity), drift.sort);
        order(one).cmp(&order(other)).then_with(|| one.object.cmp(&other.object))
    });
    found
}

fn missing(change: &Change, migrations: &Schema) -> Drift {
    let (kind, name) = (change.kind, change.name());
    // Without an index that is not unique, only queries take longer.
    let only_slows = index(change, migrations).is_some_and(|index| !index.unique);
    let severity = if only_slows { Severity::Warning } else { Severity::Error };
    let is_created = relation(change, migrations).is_none_or(|relation| relation.created_by_migrations);
    let verb = if is_created { "create" } else { "use" };
    let message =
        format!("{} {name} is missing: the migrations {verb} it, but the database does not have it", kind.noun());
    Drift::new(severity, Sort::Missing, kind, name, message, &[])
}

fn unmanaged(change: &Change, database: &Schema) -> Drift {
    let (kind, name) = (change.kind, change.name());
    // These change what statements do, refuse rows, or decide who sees what.
    let acts = match kind {
        Kind::Trigger | Kind::Rule | Kind::Constraint | Kind::Policy => true,
        Kind::Index => index(change, database).is_some_and(|index| index.unique),
        Kind::Column => column(change, database).is_some_and(is_required),
        _ => false,
    };
    let severity = if acts { Severity::Error } else { Severity::Warning };
    let message = format!("{} {name} is unmanaged: no migration creates it", kind.noun());
    Drift::new(severity, Sort::Unmanaged, kind, name, message, &[&change.definition])
}

/// Whether an INSERT that does not name the column fails.
fn is_required(column: &Column) -> bool {
    column.not_null && column.default.is_none() && column.identity.is_none()
}

fn relation<'a>(change: &Change, schema: &'a Schema) -> Option<&'a Relation> {
    schema.relations.iter().find(|relation| relation.name == change.object)
}

fn index<'a>(change: &Change, schema: &'a Schema) -> Option<&'a Index> {
    let name = change.part.as_ref().filter(|_| change.kind == Kind::Index)?;
    relation(change, schema)?.indexes.iter().find(|index| index.name == *name)
}

fn column<'a>(change: &Change, schema: &'a Schema) -> Option<&'a Column> {
    let name = change.part.as_ref()?;
    relation(change, schema)?.columns.iter().find(|column| column.name == *name)
}

fn differs(change: &Change, property: &Property) -> Drift {
    let (kind, name, what) = (change.kind, change.name(), property.name.as_str());
    let (sort, severity) = match (kind, what) {
        (Kind::Policy, _)
        | (_, "privileges" | "row-level security" | "forced row-level security" | "SECURITY DEFINER") => {
            (Sort::Access, Severity::Error)
        }
        (
            _,
            COLUMN_ORDER | "options" | "statistics" | "defined by" | "counting" | "parent" | "owner column" | "valid"
            | "validated",
        )
        | (Kind::Index, "method" | "order and operator classes" | "included columns") => {
            (Sort::Differs, Severity::Warning)
        }
        _ => (Sort::Differs, Severity::Error),
    };
    let (before, after) = (property.before(), property.after());
    let noun = kind.noun();
    let message = format!("{noun} {name} differs in {what}: {before} in the migrations, {after} in the database");
    Drift::new(severity, sort, kind, name, message, &[what, after])
}

/// Invalid indexes and constraints of the database, even if the migrations leave them so.
fn invalid_parts(database: &Schema) -> Vec<Drift> {
    let mut found = Vec::new();
    for relation in &database.relations {
        for index in relation.indexes.iter().filter(|index| !index.valid) {
            let name = format!("{}.{}", relation.name, index.name);
            let why = if relation.kind == RelationKind::PartitionedTable {
                "some partitions have no index attached to it"
            } else {
                "its build failed or has not finished, and no query uses it"
            };
            let message = format!("index {name} is invalid: {why}");
            found.push(Drift::new(Severity::Error, Sort::InvalidIndex, Kind::Index, name, message, &[]));
        }
        for constraint in relation.constraints.iter().filter(|one| !one.valid && one.enforced) {
            let name = format!("{}.{}", relation.name, constraint.name);
            let message = format!("constraint {name} is NOT VALID: existing rows may violate it");
            found.push(Drift::new(Severity::Error, Sort::NotValidated, Kind::Constraint, name, message, &[]));
        }
    }
    for domain in &database.domains {
        let invalid = domain.checks.iter().filter(|check| !check.valid);
        let names: Vec<&str> = invalid.map(|check| check.name.as_str()).collect();
        if !names.is_empty() {
            let (name, checks) = (domain.name.to_string(), names.join(", "));
            let message = format!("domain {name} has NOT VALID constraints ({checks}): existing rows may violate them");
            found.push(Drift::new(Severity::Error, Sort::NotValidated, Kind::Domain, name, message, &[&checks]));
        }
    }
    found
}

#[cfg(test)]
mod tests;
