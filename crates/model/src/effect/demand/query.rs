//! The queries that count the rows which do not meet a demand.

use super::{
    Conversion, ConversionTest, Demand, DomainValues, Exclusion, KeyPart, Reference, RowDemand, UniqueKey, Written,
};
use crate::effect::RelationName;
use pgvet_syntax::deparse::NotKept;
use pgvet_syntax::lexer::quote_identifier;

impl RowDemand {
    /// Returns [`Self::query`] with qualified names.
    ///
    /// # Errors
    /// Names the part of a condition that cannot be written.
    pub fn qualified_query(&self) -> Written {
        self.query(|table| format!("{}.{}", quote_identifier(&table.schema), quote_identifier(&table.name)))
    }

    /// Returns the query that counts what makes the statement fail, 0 if nothing does. It fails with an error of class 22
    /// if the evaluation of an expression fails for a row, as the statement then does. `sql_name` writes the name of a
    /// table.
    ///
    /// # Errors
    /// Names the part of a condition that cannot be written.
    pub fn query(&self, sql_name: impl Fn(&RelationName) -> String) -> Written {
        let rows = |relation: &RelationName, only: bool| {
            if only { format!("ONLY {}", sql_name(relation)) } else { sql_name(relation) }
        };
        let table = rows(&self.relation, self.only);
        let where_true = |condition: &str| format!("SELECT count(*) FROM {table} WHERE {condition}");
        let sql = |written: &Written| written.clone();
        Ok(match &self.demand {
            Demand::NoRows { .. } => format!("SELECT count(*) FROM (SELECT FROM {table} LIMIT 1) AS found"),
            Demand::OneRow { .. } => format!("SELECT count(*) FROM (SELECT FROM {table} OFFSET 1 LIMIT 1) AS found"),
            Demand::NotNull { column } => where_true(&format!("{} IS NULL", quote_identifier(column))),
            Demand::Check { condition, .. } => where_true(&format!("NOT ({})", sql(condition)?)),
            Demand::Bound(rows) => where_true(&format!("NOT ({})", sql(&rows.condition)?)),
            Demand::DefaultPartition(rows) => where_true(&sql(&rows.condition)?),
            Demand::Unique(key) => key.query(&table)?,
            Demand::References(key) => key.query(&table, &rows(&key.referenced, key.only)),
            Demand::Exclusion(exclusion) => exclusion.query(&table)?,
            Demand::Type(Conversion { test: ConversionTest::Condition(condition), .. }) => where_true(condition),
            Demand::Type(Conversion { test: ConversionTest::Convert(converted), .. }) => {
                format!("SELECT 0 * count({}) FROM {table}", sql(converted)?)
            }
            Demand::Domain(values) => values.query(&table)?,
        })
    }
}

impl Exclusion {
    /// Counts pairs of rows, and rows with an empty period.
    ///
    /// Source: PostgreSQL 18, `src/backend/executor/execIndexing.c`, `ExecWithoutOverlapsNotEmpty`.
    fn query(&self, table: &str) -> Written {
        let mut columns = String::from("tableoid AS part, ctid AS id");
        let mut conflict = String::from("(a.part, a.id) < (b.part, b.id)");
        for (at, (part, operator)) in self.parts.iter().enumerate() {
            columns = format!("{columns}, {} AS k{at}", part.sql()?);
            conflict = format!("{conflict} AND a.k{at} {operator} b.k{at}");
        }
        let filter = match &self.predicate {
            Some(predicate) => format!(" WHERE {}", predicate.as_ref().map_err(|why| *why)?),
            None => String::new(),
        };
        let rows = format!("(SELECT {columns} FROM {table}{filter})");
        let pairs = format!("SELECT count(*) FROM {rows} AS a JOIN {rows} AS b ON {conflict}");
        match self.parts.last().filter(|_| self.over_period) {
            Some((period, _)) => {
                let empty = format!("SELECT count(*) FROM {table} WHERE isempty({})", period.sql()?);
                Ok(format!("SELECT ({pairs}) + ({empty})"))
            }
            None => Ok(pairs),
        }
    }
}

impl DomainValues {
    fn query(&self, table: &str) -> Written {
        let condition = match &self.check {
            Some(check) => format!("NOT ({})", check.as_ref().map_err(|why| *why)?),
            None => "value IS NULL".to_owned(),
        };
        let values =
            self.columns.iter().map(|column| format!("SELECT {} AS value FROM {table}", quote_identifier(column)));
        let values = values.collect::<Vec<String>>().join(" UNION ALL ");
        Ok(format!("SELECT count(*) FROM ({values}) AS used WHERE {condition}"))
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
