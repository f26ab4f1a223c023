//! Kinds of relations.

use serde::{Deserialize, Serialize};

/// PostgreSQL's relkind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RelationKind {
    Table,
    PartitionedTable,
    Index,
    PartitionedIndex,
    Sequence,
    View,
    MaterializedView,
    CompositeType,
    ForeignTable,
}

impl RelationKind {
    /// That of `pg_class.relkind`; `None` for TOAST tables.
    ///
    /// Source: PostgreSQL 18, `src/include/catalog/pg_class.h`.
    pub fn of_relkind(relkind: char) -> Option<Self> {
        Some(match relkind {
            'r' => Self::Table,
            'p' => Self::PartitionedTable,
            'i' => Self::Index,
            'I' => Self::PartitionedIndex,
            'S' => Self::Sequence,
            'v' => Self::View,
            'm' => Self::MaterializedView,
            'c' => Self::CompositeType,
            'f' => Self::ForeignTable,
            _ => return None,
        })
    }

    /// `partitioned table`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::PartitionedTable => "partitioned table",
            Self::PartitionedIndex => "partitioned index",
            other => other.word(),
        }
    }

    /// The word for it in PostgreSQL's messages: a partitioned table is a `table`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Table | Self::PartitionedTable => "table",
            Self::Index | Self::PartitionedIndex => "index",
            Self::Sequence => "sequence",
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::CompositeType => "composite type",
            Self::ForeignTable => "foreign table",
        }
    }

    /// Has rows of its own or in its partitions.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::PartitionedTable | Self::ForeignTable)
    }

    pub fn is_index(self) -> bool {
        matches!(self, Self::Index | Self::PartitionedIndex)
    }
}
