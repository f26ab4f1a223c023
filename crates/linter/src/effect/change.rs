//! Changes of objects that no lock, removal or renaming tells apart: triggers, rules, policies and extensions.

use super::RelationName;
use crate::source::TextRange;
use smol_str::SmolStr;

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectChange {
    pub object: ChangedObject,
    pub action: ChangeAction,
    /// What asks for it.
    pub range: TextRange,
}

/// What changes.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangedObject {
    /// A trigger; without a name all of the table.
    Trigger {
        table: RelationName,
        name: Option<SmolStr>,
    },
    /// A rule of a table or view.
    Rule {
        table: RelationName,
        name: SmolStr,
    },
    Policy {
        table: RelationName,
        name: SmolStr,
    },
    /// Row-level security as a whole.
    RowSecurity {
        table: RelationName,
    },
    Extension {
        name: SmolStr,
    },
}

impl ChangedObject {
    /// The table that it belongs to.
    pub fn table(&self) -> Option<&RelationName> {
        match self {
            Self::Trigger { table, .. }
            | Self::Rule { table, .. }
            | Self::Policy { table, .. }
            | Self::RowSecurity { table } => Some(table),
            Self::Extension { .. } => None,
        }
    }
}

/// How an object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAction {
    Create,
    Alter,
    Drop,
    Enable,
    Disable,
}
