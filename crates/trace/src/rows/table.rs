//! A table in the catalog, and the INSERT that fills it.

use super::column::Column;
use crate::Error;
use crate::connection::{Connection, parsed, text};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tokio_postgres::SimpleQueryRow;

#[derive(Debug)]
pub(super) struct Table {
    oid: u32,
    /// Quoted for SQL, with its schema.
    pub(super) name: String,
    columns: Vec<Column>,
    keys: Vec<BTreeSet<i16>>,
    foreign_keys: Vec<ForeignKey>,
}

#[derive(Debug)]
struct ForeignKey {
    parent: Parent,
    parent_name: String,
    columns: Vec<i16>,
    parent_columns: Vec<String>,
    parent_rows: u64,
}

/// A table that another refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent {
    pub(super) oid: u32,
    /// A row without it is not allowed.
    pub(super) required: bool,
}

/// The table of a name that the user wrote.
pub(super) async fn find(connection: &Connection, name: &str) -> Result<u32, Error> {
    let quoted = name.replace('\'', "''");
    let sql = format!("SELECT coalesce(to_regclass('{quoted}')::oid::int8, 0)");
    match connection.value::<u32>(&sql).await {
        Ok(oid) if oid > 0 => Ok(oid),
        _ => Err(Error::new(format!("--rows: there is no table `{name}` before the first traced migration"))
            .help("give the migrations that create it as --history, or a dump of the schema as --schema")),
    }
}

pub(super) async fn is_empty(connection: &Connection, oid: u32) -> Result<bool, Error> {
    let sql = format!("SELECT {oid}::regclass::text");
    let name: String = connection.value(&sql).await?;
    Ok(connection.rows(&format!("SELECT 1 FROM {name} LIMIT 1")).await?.is_empty())
}

impl Table {
    pub(super) async fn read(connection: &Connection, oid: u32) -> Result<Self, Error> {
        let name = format!(
            "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_catalog.pg_class c \
                            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {oid}"
        );
        let mut table = Self {
            oid,
            name: connection.value(&name).await?,
            columns: connection.rows(&columns_sql(oid)).await?.iter().filter_map(column).collect(),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
        };
        for row in connection.rows(&keys_sql(oid)).await? {
            table.keys.push(numbers(&text(&row, 0)).into_iter().collect());
        }
        for row in connection.rows(&checks_sql(oid)).await? {
            let number = parsed(&row, 0);
            let column = table.columns.iter_mut().find(|column| Some(column.number) == number);
            column.into_iter().for_each(|column| column.allowed.add(&text(&row, 1)));
        }
        for column in &mut table.columns {
            column.unique = table.keys.iter().any(|key| key.contains(&column.number));
        }
        for row in connection.rows(&foreign_keys_sql(oid)).await? {
            table.foreign_keys.extend(foreign_key(&row, &table.columns));
        }
        Ok(table)
    }

    /// Tables that this one refers to, without itself.
    pub(super) fn parents(&self) -> Vec<Parent> {
        self.foreign_keys.iter().map(|key| key.parent).filter(|parent| parent.oid != self.oid).collect()
    }

    /// Counts the rows that foreign keys can refer to.
    pub(super) async fn count_parents(&mut self, connection: &Connection) -> Result<(), Error> {
        for key in &mut self.foreign_keys {
            key.parent_rows = connection.value(&format!("SELECT count(*) FROM {}", key.parent_name)).await?;
        }
        Ok(())
    }

    /// The INSERT of this number of rows.
    pub(super) fn insert(&self, rows: u64) -> Result<String, Error> {
        let mut names = Vec::new();
        let mut values = Vec::new();
        for column in &self.columns {
            let Some(value) = self.value(column)? else { continue };
            names.push(column.name.as_str());
            values.push(value);
        }
        let (names, values) = (names.join(", "), values.join(", "));
        let from = self.source(rows);
        Ok(format!("INSERT INTO {} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {from}", self.name))
    }

    /// Statements with which the sequences follow the rows.
    pub(super) fn sequences(&self, rows: u64) -> Vec<String> {
        let sequences = self.columns.iter().filter_map(|column| column.sequence.as_ref());
        sequences.map(|sequence| format!("SELECT setval('{}', {rows})", sequence.replace('\'', "''"))).collect()
    }

    /// The value of a column; `None` where its default is to be used, or NULL.
    fn value(&self, column: &Column) -> Result<Option<String>, Error> {
        let key = self.foreign_keys.iter().position(|key| key.columns.contains(&column.number));
        if let Some(at) = key {
            let key = &self.foreign_keys[at];
            let own = key.parent.oid == self.oid;
            if key.parent_rows > 0 {
                let place = key.columns.iter().position(|number| *number == column.number).unwrap_or(0);
                return Ok(Some(format!("k{at}.c{place}")));
            }
            if !column.not_null {
                return Ok(None);
            }
            // The first generation of a table that refers to itself refers to itself.
            if !own {
                let message = format!("cannot generate rows for `{}`: `{}` is empty", self.name, key.parent_name);
                return Err(Error::new(message).help("add rows for that table, too"));
            }
        }
        if column.has_default && !column.unique && column.sequence.is_none() && column.allowed.list.is_empty() {
            return Ok(None);
        }
        match column.value() {
            None if column.not_null && !column.has_default => Err(Error::new(format!(
                "cannot generate rows for `{}`: no values are known for its column {} of type {}",
                self.name, column.name, column.sql_type
            ))),
            value => Ok(value),
        }
    }

    /// `generate_series` and, for each foreign key, the row of its table that row `g` refers to.
    fn source(&self, rows: u64) -> String {
        let mut source = format!("generate_series(1::int8, {rows}::int8) AS g");
        for (at, key) in self.foreign_keys.iter().enumerate().filter(|(_, key)| key.parent_rows > 0) {
            let columns = key.parent_columns.iter().enumerate();
            let columns: Vec<String> = columns.map(|(place, name)| format!("{name} AS c{place}")).collect();
            let divisor = self.divisor(at);
            let _ = write!(
                source,
                " LEFT JOIN (SELECT row_number() OVER () - 1 AS n, {} FROM {}) k{at} ON k{at}.n = ((g - 1) / {divisor}) % {}",
                columns.join(", "),
                key.parent_name,
                key.parent_rows
            );
        }
        source
    }

    /// Several foreign keys in one unique key count like the digits of a number, so that their combinations differ.
    fn divisor(&self, at: usize) -> u64 {
        let together = |other: &ForeignKey| {
            let both = |key: &&BTreeSet<i16>| {
                let holds = |foreign: &ForeignKey| foreign.columns.iter().any(|number| key.contains(number));
                holds(other) && holds(&self.foreign_keys[at])
            };
            self.keys.iter().any(|key| both(&key))
        };
        let earlier = self.foreign_keys[..at].iter().filter(|other| together(other));
        earlier.fold(1, |product: u64, key| product.saturating_mul(key.parent_rows.max(1))).min(i64::MAX as u64)
    }
}

/// Reads `1 2 3`, the text of an `int2vector`.
fn numbers(text: &str) -> Vec<i16> {
    text.split([' ', ',', '{', '}']).filter_map(|number| number.parse().ok()).collect()
}

fn columns_sql(oid: u32) -> String {
    format!(
        "SELECT a.attnum, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), b.typname, b.typcategory, \
         CASE WHEN b.typname = 'numeric' AND m.typmod >= 4 \
              THEN ((m.typmod - 4) >> 16 & 65535) - ((m.typmod - 4) & 2047) \
              WHEN b.typname IN ('varchar', 'bpchar') AND m.typmod >= 4 THEN m.typmod - 4 END, \
         (SELECT count(*) FROM pg_catalog.pg_enum e WHERE e.enumtypid = b.oid), \
         a.attnotnull OR t.typnotnull, a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL, \
         pg_get_serial_sequence({oid}::regclass::text, a.attname) \
         FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
         JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, \
         LATERAL (SELECT CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS typmod) m \
         WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum"
    )
}

fn column(row: &SimpleQueryRow) -> Option<Column> {
    Some(Column {
        number: parsed(row, 0)?,
        name: text(row, 1),
        sql_type: text(row, 2),
        base_type: text(row, 3),
        category: parsed(row, 4)?,
        size: parsed(row, 5),
        enum_labels: parsed(row, 6).unwrap_or(0),
        not_null: text(row, 7) == "t",
        has_default: text(row, 8) == "t",
        sequence: row.try_get(9).ok().flatten().map(str::to_owned),
        ..Column::default()
    })
}

/// Columns of unique indexes.
fn keys_sql(oid: u32) -> String {
    format!("SELECT indkey::text FROM pg_catalog.pg_index WHERE indrelid = {oid} AND indisunique")
}

/// Checks of one column, its own and those of its domain.
fn checks_sql(oid: u32) -> String {
    format!(
        "SELECT c.conkey[1], pg_get_constraintdef(c.oid) FROM pg_catalog.pg_constraint c \
         WHERE c.conrelid = {oid} AND c.contype = 'c' AND cardinality(c.conkey) = 1 \
         UNION ALL SELECT a.attnum, pg_get_constraintdef(c.oid) FROM pg_catalog.pg_attribute a \
         JOIN pg_catalog.pg_constraint c ON c.contypid = a.atttypid WHERE a.attrelid = {oid} AND c.contype = 'c'"
    )
}

fn foreign_keys_sql(oid: u32) -> String {
    format!(
        "SELECT c.confrelid::int8, quote_ident(n.nspname) || '.' || quote_ident(r.relname), c.conkey::text, \
         (SELECT string_agg(quote_ident(a.attname), E'\\x01' ORDER BY k.place) \
          FROM unnest(c.confkey) WITH ORDINALITY k(number, place) \
          JOIN pg_catalog.pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number) \
         FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_class r ON r.oid = c.confrelid \
         JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace \
         WHERE c.conrelid = {oid} AND c.contype = 'f' AND c.conparentid = 0 ORDER BY c.oid"
    )
}

fn foreign_key(row: &SimpleQueryRow, columns: &[Column]) -> Option<ForeignKey> {
    let own = numbers(&text(row, 2));
    let required = |column: &&Column| own.contains(&column.number) && column.not_null;
    Some(ForeignKey {
        parent: Parent { oid: parsed(row, 0)?, required: columns.iter().any(|column| required(&column)) },
        parent_name: text(row, 1),
        parent_columns: text(row, 3).split('\u{1}').map(str::to_owned).collect(),
        columns: own,
        parent_rows: 0,
    })
}
