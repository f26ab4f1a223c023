//! Fills tables with generated rows, so that durations mean something.
//!
//! A value depends on the number of its row alone, and satisfies the type, NOT NULL, checks of simple form, unique
//! keys and foreign keys of its column.

mod check;
mod column;
mod table;

use crate::Error;
use crate::connection::Connection;
use std::collections::BTreeMap;
use table::Table;

/// How many rows a table is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowTarget {
    /// With or without schema.
    pub table: String,
    pub rows: u64,
}

/// Number of rows that a table gets if others must refer to it and no number was requested.
const REFERENCED_ROWS: u64 = 1000;

impl RowTarget {
    /// Reads `orders=2000000`; `2M` and `500k` are understood.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = || {
            format!(
                "`{text}` does not name a table and a number of rows: expected TABLE=ROWS, such as orders=2000000 or orders=2M"
            )
        };
        let (table, rows) = text.rsplit_once('=').ok_or_else(help)?;
        let digits = rows.trim().replace('_', "");
        let (number, factor) = match digits.char_indices().last() {
            Some((at, 'k' | 'K')) => (&digits[..at], 1_000),
            Some((at, 'm' | 'M')) => (&digits[..at], 1_000_000),
            _ => (&digits[..], 1),
        };
        let rows = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(help)?;
        Ok(Self { table: table.trim().to_owned(), rows })
    }
}

/// Fills the tables, what they refer to first. Calls `tell` before each.
pub(crate) async fn fill(
    connection: &Connection,
    targets: &[RowTarget],
    tell: &mut dyn FnMut(&str, u64),
) -> Result<(), Error> {
    // The rows satisfy all constraints, so neither triggers nor foreign keys have to look at each.
    connection.run("SET session_replication_role = replica").await?;
    let mut wanted = BTreeMap::new();
    for target in targets {
        let oid = table::find(connection, &target.table).await?;
        wanted.insert(oid, target.rows);
    }
    let mut filler = Filler { connection, wanted, done: Vec::new(), for_times: true, tell };
    let oids: Vec<u32> = filler.wanted.keys().copied().collect();
    for oid in oids {
        filler.fill(oid, &mut Vec::new()).await?;
    }
    Ok(())
}

/// Fills those of the tables that are empty, and returns why others stay empty. Triggers fire and foreign keys are
/// checked, so that all rows are such as an application could have written.
pub(crate) async fn fill_empty(connection: &Connection, tables: &[String], rows: u64) -> Result<Vec<String>, Error> {
    let mut wanted = BTreeMap::new();
    for table in tables {
        let oid = table::find(connection, table).await?;
        if table::is_empty(connection, oid).await? {
            wanted.insert(oid, rows);
        }
    }
    let mut filler = Filler { connection, wanted, done: Vec::new(), for_times: false, tell: &mut |_, _| () };
    let oids: Vec<u32> = filler.wanted.keys().copied().collect();
    let mut unfilled = Vec::new();
    for oid in oids {
        if let Err(error) = filler.fill(oid, &mut Vec::new()).await {
            unfilled.push(error.message);
        }
    }
    unfilled.sort();
    unfilled.dedup();
    Ok(unfilled)
}

struct Filler<'a> {
    connection: &'a Connection,
    wanted: BTreeMap<u32, u64>,
    done: Vec<u32>,
    /// Whether statistics and the visibility map are to be as in production.
    for_times: bool,
    tell: &'a mut dyn FnMut(&str, u64),
}

impl Filler<'_> {
    /// Fills a table after those that it must refer to. `path` has the tables that are waiting for it.
    async fn fill(&mut self, oid: u32, path: &mut Vec<u32>) -> Result<(), Error> {
        if self.done.contains(&oid) || path.contains(&oid) {
            return Ok(());
        }
        path.push(oid);
        let mut table = Table::read(self.connection, oid).await?;
        let rows = self.wanted.get(&oid).copied().unwrap_or(REFERENCED_ROWS);
        for parent in table.parents() {
            if self.wanted.contains_key(&parent.oid)
                || (parent.required && table::is_empty(self.connection, parent.oid).await?)
            {
                Box::pin(self.fill(parent.oid, path)).await?;
            }
        }
        path.pop();
        self.done.push(oid);
        (self.tell)(&table.name, rows);
        table.count_parents(self.connection).await?;
        let sql = table.insert(rows)?;
        self.connection.run(&sql).await.map_err(|error| cannot_fill(&table.name, &error))?;
        for sql in table.sequences(rows) {
            self.connection.run(&sql).await?;
        }
        if !self.for_times {
            return Ok(());
        }
        self.connection.run(&format!("VACUUM (ANALYZE) {}", table.name)).await?;
        self.connection.run(&format!("ANALYZE {}", table.name)).await
    }
}

fn cannot_fill(table: &str, error: &Error) -> Error {
    Error::new(format!("cannot generate rows for `{table}`: {}", error.message))
        .help("pgvet cannot generate rows for a constraint of this form: insert rows in a file, and pass the file as --history")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_or_refused_with_help() {
        let target = |table: &str, rows| Ok(RowTarget { table: table.to_owned(), rows });
        assert_eq!(RowTarget::parse("orders=2000000"), target("orders", 2_000_000));
        assert_eq!(RowTarget::parse("app.orders=2M"), target("app.orders", 2_000_000));
        assert_eq!(RowTarget::parse("t=1_000k"), target("t", 1_000_000));
        for wrong in ["orders", "orders=many", "orders=", "orders=-1"] {
            assert!(RowTarget::parse(wrong).unwrap_err().contains("such as"), "{wrong}");
        }
    }
}
