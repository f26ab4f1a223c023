//! How many rows of a table a statement reads or writes, and why.

use super::RelationName;
use crate::production::TableSettings;
use pgvet_syntax::ast::RowLockStrength;
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::fmt;

/// How many rows, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub extent: Extent,
    pub reason: RowsReason,
}

/// How many rows of a table. A WHERE clause alone bounds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// At most this many, whatever the table holds.
    AtMost(u64),
    /// A part of the table of which nothing says how large it is.
    UnknownPart,
    /// All but a few.
    Most,
    All,
}

/// Why a statement reads or writes so many rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowsReason {
    /// There is no condition, or it holds for every row.
    NoCondition,
    /// The column was added without a value, and no statement has given it one since.
    NullSinceAdded { column: SmolStr },
    /// Every row has the same value in the column: its default when it was added, or what a statement gave to all rows.
    SameValue { column: SmolStr },
    /// The column is never null.
    NeverNull { column: SmolStr },
    /// The condition excludes only rows with these values of a unique column.
    AllButListed { column: SmolStr },
    /// Each row is joined to the row that its foreign key refers to, or to itself.
    EveryRowJoined,
    /// Each round of a loop over all rows of the table reaches one of them.
    LoopOverTable,
    /// `WHEN NOT MATCHED BY SOURCE`: all rows but those of the source.
    NotInSource,

    /// Constants, or the values of a bounded query, for all columns of a unique index.
    UniqueIndex { index: SmolStr },
    /// `ctid` is compared with constants, or with the values of a bounded query.
    RowAddresses,
    /// LIMIT.
    Limit,
    /// The rows are written out.
    Listed,
    /// One row of aggregates.
    Aggregate,
    /// A constraint leaves the table one row.
    OneRowTable,
    /// The table holds what this deployment has put in.
    FilledHere,

    /// The condition compares the column, which is not unique, with constants.
    Picked { column: SmolStr },
    /// The rows are joined to a few others, each of which may match many.
    JoinedToFew { table: SmolStr },
    /// They refer to rows of the table that the statement deletes. `of_few`: to a few of them.
    Cascade { table: SmolStr, of_few: bool },
    /// Only rows with the same values in these columns as another row, one of which stays.
    Duplicates { columns: Vec<SmolStr> },
    /// The same statement has run before, and left no rows that its condition selects.
    RunBefore,
    /// A limit, a list or an end of a range that is known only at run time.
    GivenAtRunTime,
    /// Such a part in each round of a loop that commits its rounds.
    Batch,
    /// The rows of system catalogs.
    SystemCatalog,

    /// A condition on this column for which nothing bounds the rows.
    Condition { column: SmolStr },
    /// A condition for which nothing bounds the rows.
    OtherCondition,
    /// A join with rows that nothing bounds.
    Join { table: SmolStr },
    /// As many rounds of a loop as run time needs.
    Loop,
    /// The query is too large to follow, or what it reads is not known.
    NotKnown,

    /// Conditions on the partition key exclude partitions.
    PartitionKey,
    /// An index finds the rows.
    Index { index: SmolStr },
    /// The first row decides.
    FirstRow,
    /// The least or greatest value of an index.
    EndOfIndex,
    /// No index finds the rows.
    NoIndex,
    /// No index finds the rows that refer to a deleted one, so each of these reads the whole table.
    NoIndexOnForeignKey { columns: SmolStr },
}

/// A read of the rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    pub relation: RelationName,
    pub rows: Rows,
    /// FOR UPDATE, FOR SHARE and so on: how many rows are locked, and how strongly.
    pub row_lock: Option<(Rows, RowLockStrength)>,
    pub range: TextRange,
}

impl Rows {
    pub fn new(extent: Extent, reason: RowsReason) -> Self {
        Self { extent, reason }
    }

    pub fn at_most(rows: u64, reason: RowsReason) -> Self {
        Self::new(Extent::AtMost(rows), reason)
    }

    pub fn all(reason: RowsReason) -> Self {
        Self::new(Extent::All, reason)
    }

    pub fn unknown_part(reason: RowsReason) -> Self {
        Self::new(Extent::UnknownPart, reason)
    }

    /// Returns the greatest number of rows, where there is one.
    pub fn bound(&self) -> Option<u64> {
        match self.extent {
            Extent::AtMost(rows) => Some(rows),
            Extent::UnknownPart | Extent::Most | Extent::All => None,
        }
    }

    /// Whether the rows are so few that reading or writing them takes no time, however large the table is.
    pub fn is_few(&self) -> bool {
        self.bound().is_some_and(|rows| rows <= TableSettings::SMALL)
            || matches!(self.reason, RowsReason::SystemCatalog | RowsReason::Batch)
    }

    /// Whether they refer to a few deleted rows only, which a foreign key changes: usually those are few, too.
    pub fn are_of_few(&self) -> bool {
        matches!(self.reason, RowsReason::Cascade { of_few: true, .. })
    }

    /// Whether a foreign key changes them, because they refer to deleted rows.
    pub fn are_referring(&self) -> bool {
        matches!(self.reason, RowsReason::Cascade { .. })
    }

    /// Whether all or most rows are concerned.
    pub fn is_whole(&self) -> bool {
        self.extent >= Extent::Most
    }

    /// Whether there is evidence for few rows, although nothing bounds them.
    pub fn may_be_few(&self) -> bool {
        use RowsReason as R;
        let few = matches!(
            self.reason,
            R::Picked { .. }
                | R::JoinedToFew { .. }
                | R::Duplicates { .. }
                | R::RunBefore
                | R::GivenAtRunTime
                | R::FirstRow
                | R::Cascade { of_few: true, .. }
        );
        self.extent == Extent::UnknownPart && few
    }

    /// The larger of two, with its reason.
    #[must_use]
    pub fn or_more(self, other: Self) -> Self {
        if other.extent > self.extent { other } else { self }
    }

    /// The smaller of two, with its reason.
    #[must_use]
    pub fn or_less(self, other: Self) -> Self {
        if other.extent < self.extent { other } else { self }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(1) => f.write_str("at most 1 row"),
            Self::AtMost(rows) => write!(f, "at most {rows} rows"),
            Self::UnknownPart => f.write_str("an unknown part of the rows"),
            Self::Most => f.write_str("most rows"),
            Self::All => f.write_str("all rows"),
        }
    }
}

impl fmt::Display for RowsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCondition => f.write_str("no condition excludes a row"),
            Self::NullSinceAdded { column } => write!(f, "no statement has filled `{column}` since it was added"),
            Self::SameValue { column } => write!(f, "every row got the same value of `{column}`"),
            Self::NeverNull { column } => write!(f, "`{column}` is never null"),
            Self::AllButListed { column } => write!(f, "only the listed values of `{column}` are excluded"),
            Self::EveryRowJoined => f.write_str("the join finds a row for every row"),
            Self::LoopOverTable => f.write_str("a loop goes through the whole table"),
            Self::NotInSource => f.write_str("only rows of the source are excluded"),
            Self::UniqueIndex { index } => write!(f, "the unique index `{index}` bounds the rows"),
            Self::RowAddresses => f.write_str("ctid bounds the rows"),
            Self::Limit => f.write_str("LIMIT bounds the rows"),
            Self::Listed => f.write_str("the rows are written out"),
            Self::Aggregate => f.write_str("an aggregate is one row"),
            Self::OneRowTable => f.write_str("a constraint allows one row only"),
            Self::FilledHere => f.write_str("the table holds only rows of this deployment"),
            Self::Picked { column } => write!(f, "the condition compares `{column}` only with constants"),
            Self::JoinedToFew { table } => write!(f, "the rows are joined to the few rows of `{table}`"),
            Self::Cascade { table, of_few: true } => write!(f, "only a few rows of `{table}` are deleted"),
            Self::Cascade { table, of_few: false } => {
                write!(f, "nothing limits how many rows refer to the deleted rows of `{table}`")
            }
            Self::Duplicates { columns } => {
                let columns = columns.join(", ");
                write!(f, "it deletes only rows that repeat the values of another row in `{columns}`")
            }
            Self::RunBefore => f.write_str("an earlier migration has run the same statement"),
            Self::GivenAtRunTime => f.write_str("a value that is known only at run time limits the rows"),
            Self::Batch => f.write_str("each iteration of a loop commits its part"),
            Self::SystemCatalog => f.write_str("the rows are those of system catalogs"),
            Self::Condition { column } => write!(f, "nothing limits how many rows the condition on `{column}` selects"),
            Self::OtherCondition => f.write_str("nothing limits how many rows the condition selects"),
            Self::Join { table } => write!(f, "nothing limits how many rows the join with `{table}` returns"),
            Self::Loop => f.write_str("a loop repeats the statement, and nothing limits its iterations"),
            Self::NotKnown => f.write_str("nothing is known about the rows"),
            Self::Index { index } => write!(f, "the index `{index}` finds the rows"),
            Self::PartitionKey => f.write_str("the partition key excludes partitions"),
            Self::FirstRow => f.write_str("the query stops at the first row that it finds"),
            Self::EndOfIndex => f.write_str("the end of an index has the value"),
            Self::NoIndex => f.write_str("no index finds the rows"),
            Self::NoIndexOnForeignKey { columns } => write!(f, "no index begins with the foreign key `{columns}`"),
        }
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.extent, self.reason)
    }
}
