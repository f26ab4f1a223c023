//! What tables hold, as counts and digests: equal contents have equal digests, in whatever order the rows are.

use crate::Error;
use crate::connection::{Connection, parsed, text};
use pgvet_schema::Name;
use pgvet_syntax::deparse::string;
use pgvet_syntax::lexer::quote_identifier;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The contents of all tables of a database.
pub(crate) type Contents = BTreeMap<Name, TableContents>;

/// The rows of a table, with those of its partitions and not of tables that inherit from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableContents {
    pub(crate) rows: u64,
    pub(crate) columns: BTreeMap<String, ColumnContents>,
}

/// The values of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnContents {
    /// Those that are not NULL.
    pub(crate) values: u64,
    pub(crate) digest: String,
}

/// How the contents of a table differ that is there before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "difference", rename_all = "kebab-case")]
pub enum ContentDifference {
    /// It has lost or gained rows.
    Rows {
        #[serde(flatten)]
        table: Name,
        before: u64,
        after: u64,
    },
    /// A column has lost or gained values that are not NULL, or has other ones.
    Values {
        #[serde(flatten)]
        table: Name,
        column: String,
        before: u64,
        after: u64,
    },
}

/// What differs in tables and columns that both have. The others are differences of the schema.
pub(crate) fn differences(before: &Contents, after: &Contents) -> Vec<ContentDifference> {
    let both = before.iter().filter_map(|(table, was)| Some((table, was, after.get(table)?)));
    let of_table = |(table, was, is): (&Name, &TableContents, &TableContents)| {
        if was.rows == is.rows {
            return values(table, was, is);
        }
        vec![ContentDifference::Rows { table: table.clone(), before: was.rows, after: is.rows }]
    };
    both.flat_map(of_table).collect()
}

fn values(table: &Name, was: &TableContents, is: &TableContents) -> Vec<ContentDifference> {
    let of_column = |(column, was): (&String, &ColumnContents)| {
        let is = is.columns.get(column).filter(|is| *is != was)?;
        let (before, after) = (was.values, is.values);
        Some(ContentDifference::Values { table: table.clone(), column: column.clone(), before, after })
    };
    was.columns.iter().filter_map(of_column).collect()
}

/// The columns whose values differ between two runs of the same migrations.
pub(crate) fn volatile(one: &Contents, other: &Contents) -> BTreeSet<(Name, String)> {
    let of_table = |(table, one): (&Name, &TableContents)| {
        let other = other.get(table).cloned().unwrap_or_default();
        let differs = one.columns.iter().filter(|(column, one)| other.columns.get(*column) != Some(*one));
        differs.map(|(column, _)| (table.clone(), column.clone())).collect::<Vec<_>>()
    };
    one.iter().flat_map(of_table).collect()
}

/// A table with the names of its columns.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: Name,
    is_partitioned: bool,
    columns: Vec<String>,
}

impl Table {
    /// The tables of the migrations, without those of extensions and temporary ones.
    pub(crate) async fn all(connection: &Connection) -> Result<Vec<Self>, Error> {
        let sql = "SELECT n.nspname, c.relname, c.relkind, a.attname FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
             WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' \
             AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass \
               AND d.objid = c.oid AND d.deptype = 'e') \
             ORDER BY n.nspname, c.relname, a.attname";
        let mut tables: Vec<Self> = Vec::new();
        for row in connection.rows(sql).await? {
            let name = Name { schema: text(&row, 0), name: text(&row, 1) };
            if tables.last().is_none_or(|last| last.name != name) {
                let is_partitioned = text(&row, 2) == "p";
                tables.push(Self { name, is_partitioned, columns: Vec::new() });
            }
            if let (Some(table), Some(column)) = (tables.last_mut(), row.try_get(3).ok().flatten()) {
                table.columns.push(column.to_owned());
            }
        }
        Ok(tables)
    }

    /// The table in FROM.
    pub(crate) fn source(&self) -> String {
        let only = if self.is_partitioned { "" } else { "ONLY " };
        format!("{only}{}", self.quoted())
    }

    /// Quoted for SQL.
    pub(crate) fn quoted(&self) -> String {
        format!("{}.{}", quote_identifier(&self.name.schema), quote_identifier(&self.name.name))
    }

    /// Source: PostgreSQL 18, `src/backend/utils/adt/varlena.c` and `src/backend/access/hash/hashfunc.c`: the hash of a
    /// text without a nondeterministic collation is that of its bytes, 64 bits long.
    async fn contents(&self, connection: &Connection) -> Result<TableContents, Error> {
        let mut contents = TableContents::default();
        // A query has at most 1664 columns.
        for columns in self.columns.chunks(500) {
            let of_column = |column: &String| {
                let column = quote_identifier(column);
                let hash =
                    format!("pg_catalog.hashtextextended(t.{column}::text COLLATE pg_catalog.\"C\", 0)::numeric");
                format!(", count(t.{column}), coalesce(sum({hash}), 0)")
            };
            let counts: String = columns.iter().map(of_column).collect();
            let sql = format!("SELECT count(*){counts} FROM {} t", self.source());
            let rows = connection.rows(&sql).await?;
            let Some(row) = rows.first() else { continue };
            contents.rows = parsed(row, 0).unwrap_or(0);
            for (at, column) in columns.iter().enumerate() {
                let (values, digest) = (parsed(row, 1 + 2 * at).unwrap_or(0), text(row, 2 + 2 * at));
                contents.columns.insert(column.clone(), ColumnContents { values, digest });
            }
        }
        if self.columns.is_empty() {
            contents.rows = connection.value(&format!("SELECT count(*) FROM {}", self.source())).await?;
        }
        Ok(contents)
    }

    /// The rows as text, each once with how often it occurs, without some columns. Keys are in an order of their own, so
    /// that the order of columns plays no part.
    pub(crate) async fn rows(
        &self,
        connection: &Connection,
        without: &[String],
    ) -> Result<BTreeMap<String, u64>, Error> {
        let without: Vec<String> = without.iter().map(|column| string(column)).collect();
        let array = format!("ARRAY[{}]::text[]", without.join(", "));
        let sql =
            format!("SELECT (pg_catalog.to_jsonb(t) - {array})::text, count(*) FROM {} t GROUP BY 1", self.source());
        let rows = connection.rows(&sql).await?;
        Ok(rows.iter().map(|row| (text(row, 0), parsed(row, 1).unwrap_or(0))).collect())
    }
}

/// Reads the contents of all tables.
pub(crate) async fn contents(connection: &Connection) -> Result<Contents, Error> {
    let mut contents = Contents::new();
    for table in Table::all(connection).await? {
        let own = table.contents(connection).await?;
        contents.insert(table.name, own);
    }
    Ok(contents)
}
