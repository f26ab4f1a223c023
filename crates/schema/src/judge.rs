//! Drift: what a database has otherwise than its migrations say, and how bad that is.

use crate::compare::{Action, Change, Comparison, Property};
use crate::object::{Relation, Schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A difference between migrations and a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    pub severity: Severity,
    pub sort: Sort,
    /// `table`, `column` and so on.
    pub kind: String,
    /// The full name of the object.
    pub object: String,
    pub message: String,
    /// What stays the same as long as the database has the same drift.
    pub key: String,
}

/// How bad drift is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Warning,
    /// The application or a later migration may fail, rows may be wrong, or somebody may see or do what they should not.
    Error,
}

/// What sort of drift it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// The database lacks what the migrations create.
    Missing,
    /// No migration creates it.
    Unmanaged,
    /// An index that no query uses, because its build has failed or has not ended.
    InvalidIndex,
    /// A constraint that old rows may violate.
    NotValidated,
    /// Who may do and see what.
    Access,
    /// Any other property.
    Differs,
}

/// Judges the comparison of migrations with a database, worst first.
pub fn judge(comparison: &Comparison, database: &Schema) -> Vec<Drift> {
    let mut found: Vec<Drift> = comparison.changes.iter().flat_map(of_change).collect();
    found.extend(invalid_parts(database));
    let mut known = BTreeSet::new();
    found.retain(|drift| known.insert((drift.sort, drift.kind.clone(), drift.object.clone(), drift.key.clone())));
    found.sort_by(|one, other| {
        (std::cmp::Reverse(one.severity), one.sort, &one.object).cmp(&(
            std::cmp::Reverse(other.severity),
            other.sort,
            &other.object,
        ))
    });
    found
}

fn of_change(change: &Change) -> Vec<Drift> {
    let (kind, name) = (change.kind.as_str(), change.name());
    let drift = |severity, sort, message: String, detail: &str| Drift {
        severity,
        sort,
        kind: kind.to_owned(),
        object: name.clone(),
        key: [sort_word(sort), kind, &name, detail].join("|"),
        message,
    };
    match change.action {
        Action::Removed => {
            let message = format!("{kind} {name} is missing: migrations create it, and the database has none");
            // An index alone changes only how long queries take, unless it is unique.
            let is_plain_index = kind == "index" && !change.definition.starts_with("UNIQUE");
            let is_harmless = is_plain_index || kind == "sequence" || kind == "publication";
            let severity = if is_harmless { Severity::Warning } else { Severity::Error };
            vec![drift(severity, Sort::Missing, message, "")]
        }
        Action::Added => {
            let message = format!("{kind} {name} is unmanaged: no migration creates it");
            // These change what statements do, or who may run them.
            let acts = matches!(kind, "trigger" | "rule" | "constraint" | "policy");
            let severity = if acts { Severity::Error } else { Severity::Warning };
            vec![drift(severity, Sort::Unmanaged, message, &change.definition)]
        }
        Action::Changed => change.properties.iter().map(|property| of_property(kind, &name, property)).collect(),
    }
}

fn of_property(kind: &str, name: &str, property: &Property) -> Drift {
    let nothing = || "nothing".to_owned();
    let (before, after) =
        (property.before.clone().unwrap_or_else(nothing), property.after.clone().unwrap_or_else(nothing));
    let what = property.name.as_str();
    let (sort, severity) = match (kind, what) {
        ("index", "valid") => (Sort::InvalidIndex, Severity::Error),
        (_, "validated") if after == "no" => (Sort::NotValidated, Severity::Error),
        ("policy", _) | (_, "privileges" | "row-level security" | "forced row-level security" | "SECURITY DEFINER") => {
            (Sort::Access, Severity::Error)
        }
        (_, "column order" | "options" | "statistics" | "defined by" | "counting" | "parent" | "owner column") => {
            (Sort::Differs, Severity::Warning)
        }
        ("index", "method" | "order and operator classes" | "included columns") => (Sort::Differs, Severity::Warning),
        _ => (Sort::Differs, Severity::Error),
    };
    let message = match sort {
        Sort::InvalidIndex => invalid_index(name),
        Sort::NotValidated => not_validated(name),
        _ => format!("{kind} {name} differs in {what}: {before} in the migrations, {after} in the database"),
    };
    Drift {
        severity,
        sort,
        kind: kind.to_owned(),
        object: name.to_owned(),
        key: key_of(sort, kind, name, what, &after),
        message,
    }
}

fn key_of(sort: Sort, kind: &str, name: &str, property: &str, value: &str) -> String {
    // What is invalid is one fact, however the migrations say it.
    match sort {
        Sort::InvalidIndex | Sort::NotValidated => [sort_word(sort), kind, name].join("|"),
        _ => [sort_word(sort), kind, name, property, value].join("|"),
    }
}

fn sort_word(sort: Sort) -> &'static str {
    match sort {
        Sort::Missing => "missing",
        Sort::Unmanaged => "unmanaged",
        Sort::InvalidIndex => "invalid-index",
        Sort::NotValidated => "not-validated",
        Sort::Access => "access",
        Sort::Differs => "differs",
    }
}

fn invalid_index(name: &str) -> String {
    format!("index {name} is invalid: its build failed or has not ended, so that no query uses it")
}

fn not_validated(name: &str) -> String {
    format!("constraint {name} is NOT VALID: rows that were there before it may violate it")
}

/// Invalid indexes and constraints of the database, even if the migrations leave them so.
fn invalid_parts(database: &Schema) -> Vec<Drift> {
    let mut found = Vec::new();
    for relation in &database.relations {
        found.extend(invalid_indexes(relation));
        for constraint in relation.constraints.iter().filter(|one| !one.valid && one.enforced) {
            let name = format!("{}.{}", relation.name, constraint.name);
            found.push(Drift {
                severity: Severity::Error,
                sort: Sort::NotValidated,
                kind: "constraint".to_owned(),
                key: key_of(Sort::NotValidated, "constraint", &name, "", ""),
                message: not_validated(&name),
                object: name,
            });
        }
    }
    found
}

fn invalid_indexes(relation: &Relation) -> Vec<Drift> {
    let invalid = relation.indexes.iter().filter(|index| !index.valid);
    let drift = |name: String| Drift {
        severity: Severity::Error,
        sort: Sort::InvalidIndex,
        kind: "index".to_owned(),
        key: key_of(Sort::InvalidIndex, "index", &name, "", ""),
        message: invalid_index(&name),
        object: name,
    };
    invalid.map(|index| drift(format!("{}.{}", relation.name, index.name))).collect()
}
