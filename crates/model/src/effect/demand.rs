//! What a statement demands of the rows that a table already holds.

use super::RelationName;
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
    /// What speaks for rows that meet it.
    pub met: Option<Met>,
    pub range: TextRange,
    /// The text shows its conditions as the server gets them: neither code nor a template makes them.
    pub is_shown: bool,
    /// Its conditions call only functions that change nothing, as far as their definitions say.
    pub is_pure: bool,
}

/// What the rows have to be like.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// There are none: the column is NULL in all of them.
    NoRows { column: SmolStr },
    /// There is at most one: all have the same value in the column, which is to be unique.
    OneRow { column: SmolStr },
    /// The column holds no null.
    NotNull { column: SmolStr },
    /// A condition does not yield false. `condition` is where the statement writes it.
    Check { constraint: SmolStr, condition: Option<TextRange> },
    /// No two have the same key.
    Unique(UniqueKey),
    /// Each has a row that it refers to, or a null in one of the columns.
    References(Reference),
}

/// The key of a unique index.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueKey {
    pub index: SmolStr,
    pub parts: Vec<KeyPart>,
    /// Where the statement writes the condition of a partial index.
    pub predicate: Option<TextRange>,
    /// Rows with a null in the key are never the same.
    pub nulls_distinct: bool,
}

/// A part of the key of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart {
    Column(SmolStr),
    /// Where the statement writes it.
    Expression(TextRange),
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
    /// Returns the query that counts what makes the statement fail, 0 if nothing does. `text` is that of which its
    /// ranges are offsets, `sql_name` writes the name of a table. `None` where the statement does not show a condition.
    pub fn query(&self, text: &str, sql_name: impl Fn(&RelationName) -> String) -> Option<String> {
        let table = sql_name(&self.relation);
        let written = |range: &TextRange| {
            // What a backslash means depends on the session.
            text.get(range.as_usize()).filter(|written| self.is_shown && !written.contains('\\'))
        };
        Some(match &self.demand {
            Demand::NoRows { .. } => format!("SELECT count(*) FROM (SELECT FROM {table} LIMIT 1) AS found"),
            Demand::OneRow { .. } => format!("SELECT count(*) FROM (SELECT FROM {table} OFFSET 1 LIMIT 1) AS found"),
            Demand::NotNull { column } => {
                format!("SELECT count(*) FROM {table} WHERE {} IS NULL", quote_identifier(column))
            }
            Demand::Check { condition, .. } => {
                format!("SELECT count(*) FROM {table} WHERE NOT ({})", written(condition.as_ref()?)?)
            }
            Demand::Unique(key) => {
                let key_parts: Option<Vec<String>> = key.parts.iter().map(|part| part.sql(written)).collect();
                let key_parts = key_parts?;
                let mut conditions = Vec::new();
                if let Some(predicate) = &key.predicate {
                    conditions.push(format!("({})", written(predicate)?));
                }
                if key.nulls_distinct {
                    conditions.extend(key_parts.iter().map(|part| format!("{part} IS NOT NULL")));
                }
                let filter =
                    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
                let key_parts = key_parts.join(", ");
                format!(
                    "SELECT count(*) FROM (SELECT FROM {table}{filter} GROUP BY {key_parts} HAVING count(*) > 1) AS duplicates"
                )
            }
            Demand::References(key) => key.query(&table, &sql_name(&key.referenced)),
        })
    }
}

impl KeyPart {
    fn sql<'t>(&self, written: impl Fn(&TextRange) -> Option<&'t str>) -> Option<String> {
        match self {
            Self::Column(name) => Some(quote_identifier(name)),
            Self::Expression(range) => written(range).map(|expression| format!("({expression})")),
        }
    }
}

impl Reference {
    fn query(&self, table: &str, referenced: &str) -> String {
        let joined = |parts: Vec<String>, word: &str| parts.join(word);
        let columns: Vec<String> = self.columns.iter().map(|column| quote_identifier(column)).collect();
        let not_null = columns.iter().map(|column| format!("r.{column} IS NOT NULL")).collect();
        let not_null = if self.match_full && columns.len() > 1 {
            format!("({})", joined(not_null, " OR "))
        } else {
            joined(not_null, " AND ")
        };
        let same = std::iter::zip(&self.referenced_columns, &columns)
            .map(|(key, column)| format!("k.{} = r.{column}", quote_identifier(key)))
            .collect();
        let same = joined(same, " AND ");
        format!(
            "SELECT count(*) FROM {table} AS r WHERE {not_null} AND NOT EXISTS (SELECT FROM {referenced} AS k WHERE {same})"
        )
    }
}
