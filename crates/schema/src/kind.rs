//! The kinds of object that are compared.

use serde::{Serialize, Serializer};

/// A kind of object. Their order is that of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A namespace, or the schema of the database as a whole.
    Schema,
    Extension,
    Enum,
    Domain,
    CompositeType,
    Sequence,
    Table,
    PartitionedTable,
    ForeignTable,
    View,
    MaterializedView,
    Column,
    Constraint,
    Index,
    Trigger,
    Policy,
    Rule,
    Function,
    Procedure,
    Aggregate,
    Publication,
}

impl Kind {
    pub fn noun(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Extension => "extension",
            Self::Enum => "enum",
            Self::Domain => "domain",
            Self::CompositeType => "composite type",
            Self::Sequence => "sequence",
            Self::Table => "table",
            Self::PartitionedTable => "partitioned table",
            Self::ForeignTable => "foreign table",
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::Column => "column",
            Self::Constraint => "constraint",
            Self::Index => "index",
            Self::Trigger => "trigger",
            Self::Policy => "policy",
            Self::Rule => "rule",
            Self::Function => "function",
            Self::Procedure => "procedure",
            Self::Aggregate => "aggregate",
            Self::Publication => "publication",
        }
    }

    /// The kind that stands for all that share its names: one object of them can take the place of another.
    pub(crate) fn of_names(self) -> Self {
        match self {
            Self::PartitionedTable | Self::ForeignTable | Self::View | Self::MaterializedView => Self::Table,
            Self::Procedure | Self::Aggregate => Self::Function,
            kind => kind,
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.noun())
    }
}
