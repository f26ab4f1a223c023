//! Changes that no lock, removal or renaming tells apart: triggers, rules, policies, extensions, functions, labels of enums,
//! privileges and settings.

use super::RelationName;
use crate::catalog::Oid;
use pgvet_syntax::ast::{FutureObjects, Grant, RuleEvent, Setting, TriggerChoice};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectChange {
    pub object: ChangedObject,
    pub action: ChangeAction,
    /// The part of the statement that requests it.
    pub range: TextRange,
}

/// The changed object.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangedObject {
    Trigger {
        table: RelationName,
        which: TriggerChoice,
    },
    /// A rule of a table or view.
    Rule {
        table: RelationName,
        name: SmolStr,
        /// What one that is created does.
        does: Option<RuleAction>,
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
    /// A function or procedure.
    Function {
        oid: Oid,
        /// The attributes that the statement mentions, by their names in the parse tree: `security`, `strict`.
        stated: Vec<SmolStr>,
    },
    /// A label of an enum.
    EnumLabel {
        /// `None` for a type that no statement shows.
        of_type: Option<Oid>,
        type_name: SmolStr,
        label: SmolStr,
        /// The old name of one that is renamed.
        was: Option<SmolStr>,
    },
    /// Privileges on objects, or on those that will be made.
    Privileges {
        grant: Grant,
        /// The objects of ALTER DEFAULT PRIVILEGES.
        future: Option<FutureObjects>,
        /// The relations, functions or types that the statement names, as far as they are known.
        on: Vec<Oid>,
    },
    /// How new values of a column are compressed.
    Compression {
        table: RelationName,
        column: SmolStr,
        method: SmolStr,
    },
    /// A publication. Dropping some of its objects is [`ChangeAction::Drop`].
    Publication {
        name: SmolStr,
    },
    /// A setting of the session.
    Setting {
        setting: Setting,
        /// SET LOCAL.
        local: bool,
    },
}

impl ChangedObject {
    /// The table that it belongs to.
    pub fn table(&self) -> Option<&RelationName> {
        match self {
            Self::Trigger { table, .. }
            | Self::Rule { table, .. }
            | Self::Policy { table, .. }
            | Self::RowSecurity { table }
            | Self::Compression { table, .. } => Some(table),
            Self::Extension { .. }
            | Self::Function { .. }
            | Self::EnumLabel { .. }
            | Self::Privileges { .. }
            | Self::Publication { .. }
            | Self::Setting { .. } => None,
        }
    }
}

/// What a rule does to the commands that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleAction {
    pub event: RuleEvent,
    /// The command itself is not run.
    pub instead: bool,
    /// No other statement is run.
    pub nothing: bool,
    /// It has a condition.
    pub conditional: bool,
}

/// How an object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAction {
    Create,
    Alter,
    Drop,
    Enable,
    Disable,
    Grant,
    Revoke,
}
