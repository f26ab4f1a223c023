//! Objects that go away or get another name: what code that still uses them would notice.

use super::RelationName;
use crate::catalog::QualifiedName;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// An object that a statement takes away.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    pub object: RemovedObject,
    /// As PostgreSQL describes it: `view "v"`.
    pub description: String,
    pub reason: RemovalReason,
    pub range: TextRange,
}

/// The removed object.
#[derive(Debug, Clone, PartialEq)]
pub enum RemovedObject {
    Relation(RelationName),
    Column {
        table: RelationName,
        column: SmolStr,
    },
    Constraint {
        table: RelationName,
        constraint: SmolStr,
    },
    /// A default, trigger, policy, rule, type, function, schema or extension.
    Other,
}

/// Why an object goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// The statement names it.
    Named,
    /// It belongs to something that goes, and goes silently with it.
    Part,
    /// It depends on something that goes, and only CASCADE takes it, too.
    Cascade,
}

/// An object that a statement renames or moves to another schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Renaming {
    pub object: RenamedObject,
    pub range: TextRange,
}

/// The object that is renamed or moved.
#[derive(Debug, Clone, PartialEq)]
pub enum RenamedObject {
    /// The relation under its old name, and its new schema and name.
    Relation {
        before: RelationName,
        schema: SmolStr,
        name: SmolStr,
    },
    Column {
        table: RelationName,
        old: SmolStr,
        new: SmolStr,
    },
    /// A constraint that ON CONFLICT can name: a primary key, or a unique or exclusion constraint.
    Constraint {
        table: RelationName,
        old: SmolStr,
        new: SmolStr,
    },
    Schema {
        old: SmolStr,
        new: SmolStr,
    },
    /// A type, domain or function: its kind, and its schema and name before and after.
    Other {
        kind: &'static str,
        before: QualifiedName,
        after: QualifiedName,
    },
}
