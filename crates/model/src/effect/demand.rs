//! What a statement demands of the rows that a table already holds.

use super::RelationName;
use pgvet_syntax::deparse::NotKept;
use pgvet_syntax::lexer::quote_identifier;
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
    /// Its conditions call only functions that change nothing, as far as their definitions say.
    pub is_pure: bool,
}

/// An expression as SQL, or why it cannot be written.
pub type Written = Result<String, NotKept>;

/// What the rows have to be like.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// There are none: the column is NULL in all of them.
    NoRows { column: SmolStr },
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
    /// Something for which there is no query.
    Other(OtherDemand),
}

/// A demand that no query of ours can count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherDemand {
    /// No two rows conflict for an exclusion constraint.
    Exclusion { constraint: SmolStr },
    /// All values fit a new type.
    Type { column: SmolStr },
    /// All rows are within the bound of the partition that the table becomes.
    Bound,
    /// No row of the DEFAULT partition belongs to a new one.
    DefaultPartition,
    /// All values satisfy a domain.
    Domain { domain: SmolStr },
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

/// The columns of a foreign key.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub constraint: SmolStr,
    pub columns: Vec<SmolStr>,
    pub referenced: RelationName,
    pub referenced_columns: Vec<SmolStr>,
    /// A row with a null in one of the columns has nulls in all.
    pub match_full: bool,
}

/// Why the rows may meet a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Met {
    /// An earlier statement of the deployment changes rows of the table.
    Changed,
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
            Demand::NoRows { column } => write!(f, "fails if `{table}` has rows: `{column}` is NULL in all of them"),
            Demand::OneRow { column } => {
                write!(f, "fails if `{table}` has more than one row: all have the same `{column}`")
            }
            Demand::NotNull { column } => write!(f, "fails if `{column}` is NULL in an existing row of `{table}`"),
            Demand::Check { constraint, .. } => {
                write!(f, "fails if an existing row of `{table}` violates the constraint `{constraint}`")
            }
            Demand::Unique(key) => {
                write!(f, "fails if two existing rows of `{table}` have the same {}", key.in_words())
            }
            Demand::References(key) => write!(
                f,
                "fails if an existing row of `{table}` has a value in {} that `{}` does not have",
                quoted(&key.columns),
                key.referenced.name
            ),
            Demand::Other(OtherDemand::Exclusion { constraint }) => {
                write!(f, "fails if two existing rows of `{table}` conflict for the constraint `{constraint}`")
            }
            Demand::Other(OtherDemand::Type { column }) => {
                write!(f, "fails if a value of `{column}` in `{table}` does not fit the new type")
            }
            Demand::Other(OtherDemand::Bound) => {
                write!(f, "fails if a row of `{table}` is outside of the bound of the partition")
            }
            Demand::Other(OtherDemand::DefaultPartition) => {
                write!(f, "fails if a row of the DEFAULT partition `{table}` belongs to the new partition")
            }
            Demand::Other(OtherDemand::Domain { domain }) => {
                write!(f, "fails if a value in `{table}` violates the domain `{domain}`")
            }
        }
    }
}

/// `` `a`, `b` and `c` ``.
fn quoted(names: &[SmolStr]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

impl UniqueKey {
    fn in_words(&self) -> String {
        let columns = self.parts.iter().map(|part| match part {
            KeyPart::Column(name) => Some(name.clone()),
            KeyPart::Expression(_) => None,
        });
        let columns: Option<Vec<SmolStr>> = columns.collect();
        columns.map_or_else(|| format!("key in `{}`", self.index), |columns| quoted(&columns))
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "an earlier statement of this deployment changes its rows",
            Self::NewColumns => "this deployment adds the columns and fills them",
            Self::Replaced => "an earlier statement of this deployment drops a constraint of the same name",
            Self::Retriable => "the statement blocks nobody and can be repeated",
        })
    }
}

impl RowDemand {
    /// Returns the query that counts what makes the statement fail, 0 if nothing does. `sql_name` writes the name of a
    /// table.
    ///
    /// # Errors
    /// Names the part of a condition that cannot be written.
    pub fn query(&self, sql_name: impl Fn(&RelationName) -> String) -> Written {
        let table = sql_name(&self.relation);
        Ok(match &self.demand {
            Demand::NoRows { .. } => format!("SELECT count(*) FROM (SELECT FROM {table} LIMIT 1) AS found"),
            Demand::OneRow { .. } => format!("SELECT count(*) FROM (SELECT FROM {table} OFFSET 1 LIMIT 1) AS found"),
            Demand::NotNull { column } => {
                format!("SELECT count(*) FROM {table} WHERE {} IS NULL", quote_identifier(column))
            }
            Demand::Check { condition, .. } => {
                format!("SELECT count(*) FROM {table} WHERE NOT ({})", condition.as_ref().map_err(|why| *why)?)
            }
            Demand::Unique(key) => key.query(&table)?,
            Demand::References(key) => key.query(&table, &sql_name(&key.referenced)),
            Demand::Other(other) => return Err(other.not_kept()),
        })
    }
}

impl OtherDemand {
    fn not_kept(&self) -> NotKept {
        NotKept(match self {
            Self::Exclusion { .. } => "the operators of an exclusion constraint",
            Self::Type { .. } => "the conversion to another type",
            Self::Bound | Self::DefaultPartition => "the bound of a partition",
            Self::Domain { .. } => "the conditions of a domain",
        })
    }
}

impl UniqueKey {
    fn query(&self, table: &str) -> Written {
        let parts = self.parts.iter().map(KeyPart::sql).collect::<Result<Vec<String>, NotKept>>()?;
        let mut conditions = Vec::new();
        if let Some(predicate) = &self.predicate {
            conditions.push(format!("({})", predicate.as_ref().map_err(|why| *why)?));
        }
        if self.nulls_distinct {
            conditions.extend(parts.iter().map(|part| format!("{part} IS NOT NULL")));
        }
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let parts = parts.join(", ");
        Ok(format!(
            "SELECT count(*) FROM (SELECT FROM {table}{filter} GROUP BY {parts} HAVING count(*) > 1) AS duplicates"
        ))
    }
}

impl KeyPart {
    fn sql(&self) -> Written {
        match self {
            Self::Column(name) => Ok(quote_identifier(name)),
            Self::Expression(written) => written.as_ref().map(|sql| format!("({sql})")).map_err(|why| *why),
        }
    }
}

impl Reference {
    fn query(&self, table: &str, referenced: &str) -> String {
        let columns: Vec<String> = self.columns.iter().map(|column| quote_identifier(column)).collect();
        let not_null: Vec<String> = columns.iter().map(|column| format!("r.{column} IS NOT NULL")).collect();
        let not_null = if self.match_full && columns.len() > 1 {
            format!("({})", not_null.join(" OR "))
        } else {
            not_null.join(" AND ")
        };
        let pairs = std::iter::zip(&self.referenced_columns, &columns);
        let same: Vec<String> =
            pairs.map(|(key, column)| format!("k.{} = r.{column}", quote_identifier(key))).collect();
        let same = same.join(" AND ");
        format!(
            "SELECT count(*) FROM {table} AS r WHERE {not_null} AND NOT EXISTS (SELECT FROM {referenced} AS k WHERE {same})"
        )
    }
}
