//! What a statement demands of the rows that a table already holds.

mod query;

use super::{RelationName, Using};
use crate::catalog::{Oid, SqlType};
use pgvet_syntax::ast::PartitionBound;
use pgvet_syntax::deparse::NotKept;
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::fmt;

/// A statement fails if a row of the table does not meet the demand.
#[derive(Debug, Clone, PartialEq)]
pub struct RowDemand {
    pub relation: RelationName,
    pub demand: Demand,
    /// Evidence for rows that meet it.
    pub met: Option<Met>,
    pub range: TextRange,
    /// Tables inherit from it whose rows are not meant.
    pub only: bool,
    /// Its conditions call only functions that change nothing, as far as their definitions say.
    pub is_pure: bool,
    /// What the schema before the statement allows, and the demand does not.
    pub counterexample: Option<Counterexample>,
    /// Rows that do not meet it, and that the table usually has.
    pub usual: Option<UsualRows>,
    /// How the query that counts the rows finds them.
    pub access: Access,
}

/// How a query finds the rows that do not meet a demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Access {
    /// One row or two decide it.
    FirstRows,
    Index {
        index: SmolStr,
    },
    /// It reads all rows.
    Table,
}

/// A row, or two rows, with which a statement fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counterexample {
    pub rows: u8,
    /// The values that matter, as SQL; other columns can have any.
    pub values: Vec<(SmolStr, String)>,
    /// How PostgreSQL then refuses the statement.
    pub sqlstate: &'static str,
}

/// Rows that a table usually has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsualRows {
    /// All: they have the same values in the columns that matter.
    All,
    /// Those with a value that the schema lists for a column.
    With {
        column: SmolStr,
        /// As SQL.
        value: String,
        listed: Listed,
    },
}

/// What lists the values of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listed {
    /// A CHECK that the deployment drops.
    ByDropped(SmolStr),
    ByCheck(SmolStr),
    ByEnum,
    /// The column is a boolean.
    ByBoolean,
}

/// An expression as SQL, or why it cannot be written.
pub type Written = Result<String, NotKept>;

/// What the rows have to be like.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// There are none: the column is NULL in all of them, or never NULL although the new table to which it refers has no
    /// rows.
    NoRows { column: SmolStr, referenced: Option<SmolStr> },
    /// There is at most one: all have the same value in the column, which is to be unique.
    OneRow { column: SmolStr },
    /// The column holds no null.
    NotNull { column: SmolStr },
    /// A condition does not yield false.
    Check { constraint: SmolStr, condition: Written },
    /// No two have the same key.
    Unique(UniqueKey),
    /// Each has a row that it refers to, or a null in one of the columns.
    References(Reference),
    /// No two conflict for an exclusion constraint.
    Exclusion(Exclusion),
    /// All values of a column fit a new type.
    Type(Conversion),
    /// All are within the bound of the partition that the table becomes.
    Bound(PartitionRows),
    /// None is within the bound of a new partition, because they are those of the DEFAULT partition.
    DefaultPartition(PartitionRows),
    /// All values of a domain satisfy a new constraint of it.
    Domain(DomainValues),
}

/// The key of a unique index.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueKey {
    pub index: SmolStr,
    pub parts: Vec<KeyPart>,
    /// The condition of a partial index.
    pub predicate: Option<Written>,
    /// Rows with a null in the key are never the same.
    pub nulls_distinct: bool,
}

/// A part of the key of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart {
    Column(SmolStr),
    Expression(Written),
}

/// The key of an exclusion constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Exclusion {
    pub constraint: SmolStr,
    /// The parts with their operators: two rows conflict if all of them yield true.
    pub parts: Vec<(KeyPart, SmolStr)>,
    pub predicate: Option<Written>,
    /// A key WITHOUT OVERLAPS, whose last part must not be empty.
    pub over_period: bool,
}

/// The rows of a partition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionRows {
    pub parent: Oid,
    pub bound: PartitionBound,
    /// What the bound requires.
    pub condition: Written,
}

/// A new type for the values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    pub column: SmolStr,
    pub from: SqlType,
    pub to: SqlType,
    /// The new type, as messages name it.
    pub name: String,
    pub using: Using,
    pub test: ConversionTest,
}

/// How the values that do not fit a new type are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversionTest {
    /// By a condition that is true for them.
    Condition(String),
    /// By converting all values, which fails at the first that does not fit.
    Convert(Written),
}

/// The values of a domain in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainValues {
    pub domain: SmolStr,
    /// The columns of the domain, and of domains over it.
    pub columns: Vec<SmolStr>,
    /// The condition on `value`; `None` for NOT NULL.
    pub check: Option<Written>,
}

/// The columns of a foreign key.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub constraint: SmolStr,
    pub columns: Vec<SmolStr>,
    pub referenced: RelationName,
    pub referenced_columns: Vec<SmolStr>,
    /// A row with a null in one of the columns has nulls in all.
    pub match_full: bool,
    /// Tables inherit from the referenced one whose rows are not meant.
    pub only: bool,
}

/// Why the rows may meet a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Met {
    /// An earlier statement of the deployment changes rows of the table.
    Changed,
    /// An earlier statement of the transaction deletes all rows.
    Emptied,
    /// The transaction stops if the table has rows.
    FoundEmpty,
    /// The deployment added the columns and gave them values.
    NewColumns,
    /// The deployment drops a constraint of this name first, which no migration shows.
    Replaced,
    /// The statement only checks, or builds concurrently: if it fails, nobody was blocked, and it can be tried again.
    Retriable,
}

/// `fails if two existing rows of ...`.
impl fmt::Display for RowDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.relation.name;
        match &self.demand {
            Demand::NoRows { column, referenced: None } => {
                write!(f, "fails if `{table}` has rows: `{column}` is NULL in all of them")
            }
            Demand::NoRows { column, referenced: Some(referenced) } => write!(
                f,
                "fails if `{table}` has rows: `{column}` is never NULL, and the new table `{referenced}` that it \
                 references has no rows"
            ),
            Demand::OneRow { column } => {
                write!(f, "fails if `{table}` has more than one row: all rows have the same value in `{column}`")
            }
            Demand::NotNull { column } => write!(f, "fails if `{column}` is NULL in an existing row of `{table}`"),
            Demand::Check { constraint, .. } => {
                write!(f, "fails if an existing row of `{table}` violates the constraint `{constraint}`")
            }
            Demand::Unique(key) => {
                write!(f, "fails if two existing rows of `{table}` have the same {}", key.in_words())
            }
            Demand::References(key) => {
                let value = if key.columns.len() == 1 { "a value in" } else { "a combination of" };
                let (columns, referenced) = (quoted(&key.columns), &key.referenced.name);
                write!(
                    f,
                    "fails if an existing row of `{table}` has {value} {columns} that does not exist in `{referenced}`"
                )
            }
            Demand::Exclusion(exclusion) => {
                let constraint = &exclusion.constraint;
                write!(f, "fails if two existing rows of `{table}` conflict under the constraint `{constraint}`")
            }
            Demand::Type(conversion) => {
                let Conversion { column, name, .. } = conversion;
                write!(f, "fails if a value of `{column}` in `{table}` does not fit the type `{name}`")
            }
            Demand::Bound(_) => {
                write!(f, "fails if a row of `{table}` is outside the bounds of the partition")
            }
            Demand::DefaultPartition(_) => {
                write!(f, "fails if a row of the DEFAULT partition `{table}` belongs to the new partition")
            }
            Demand::Domain(values) => {
                write!(f, "fails if a value in `{table}` violates the domain `{}`", values.domain)
            }
        }
    }
}

/// `` `a`, `b` and `c` ``.
fn quoted(names: &[SmolStr]) -> String {
    listed(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<String>>())
}

fn listed(items: &[String]) -> String {
    match items {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        items => items.concat(),
    }
}

impl UniqueKey {
    fn in_words(&self) -> String {
        let columns = self.parts.iter().map(|part| match part {
            KeyPart::Column(name) => Some(name.clone()),
            KeyPart::Expression(_) => None,
        });
        let columns: Option<Vec<SmolStr>> = columns.collect();
        columns.map_or_else(|| format!("key in the index `{}`", self.index), |columns| quoted(&columns))
    }
}

/// `a row with ...`.
impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(|(column, value)| format!("`{column}` = {value}")).collect();
        let rows = if self.rows == 1 { "a row with" } else { "two rows with" };
        write!(f, "{rows} {}", listed(&values))
    }
}

/// `rows with ...`.
impl fmt::Display for UsualRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::With { column, value, listed } = self else { return f.write_str("rows") };
        write!(f, "rows with `{column}` = {value}")?;
        match listed {
            Listed::ByDropped(check) => write!(f, ", a value that the dropped constraint `{check}` allowed"),
            Listed::ByCheck(check) => write!(f, ", a value that the constraint `{check}` allows"),
            Listed::ByEnum => f.write_str(", a label of its enum type"),
            Listed::ByBoolean => Ok(()),
        }
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "an earlier statement of this deployment changes its rows",
            Self::Emptied => "an earlier statement of this transaction deletes all rows",
            Self::FoundEmpty => "the transaction stops before if the table has rows",
            Self::NewColumns => "this deployment adds the columns and fills them",
            Self::Replaced => {
                "a constraint of the same name, dropped earlier in this deployment, may have excluded such rows"
            }
            Self::Retriable => "a failed run blocks no reads or writes and can be repeated",
        })
    }
}

impl Demand {
    /// What distinguishes two demands of one statement on one table that are of one kind.
    pub fn subject(&self) -> Option<&SmolStr> {
        match self {
            Self::NoRows { column, referenced: None } | Self::OneRow { column } | Self::NotNull { column } => {
                Some(column)
            }
            Self::Check { constraint, .. } => Some(constraint),
            Self::Type(conversion) => Some(&conversion.column),
            // Partitions have indexes and foreign keys of other names, and only one statement makes them.
            _ => None,
        }
    }
}
