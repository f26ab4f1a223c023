//! The questions that the observer asks, and the difference between two answers.
//!
//! Statistics of a transaction are exact and are there at once, but a session's own earlier transactions count until
//! they are flushed; so only differences within one transaction are used. What refuses to run in a transaction block
//! is judged by the cumulative statistics, which must be flushed first.

use crate::Error;
use crate::connection::{Connection, parsed, text};
use crate::observation::{Growth, Relation, RowCounts, ScanTrace, StatementTrace, TableBytes};
use pgvet_syntax::ast::{Ast, LockMode};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::SimpleQueryRow;

/// PostgreSQL's `FirstNormalObjectId`: smaller ones are the system's.
pub(crate) const FIRST_USER_OID: u32 = 16384;

/// Which statistics to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistics {
    /// Of the present transaction.
    Transaction,
    /// Of the present transaction, but for what its parallel workers read.
    TransactionWithoutWorkers,
    /// Of all that was flushed.
    Cumulative,
}

/// All relations of a database at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) relations: BTreeMap<u32, State>,
}

#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) relation: Relation,
    filenode: u32,
    scans: i64,
    rows_read: i64,
    written: RowCounts,
}

impl Snapshot {
    pub(crate) async fn take(connection: &Connection, statistics: Statistics) -> Result<Self, Error> {
        let prefix = match statistics {
            Statistics::Transaction | Statistics::TransactionWithoutWorkers => "pg_stat_get_xact",
            Statistics::Cumulative => "pg_stat_get",
        };
        let of_table = |what: &str| format!("CASE WHEN c.relkind IN ('r','m','p') THEN {prefix}_{what}(c.oid) END");
        let counters = ["numscans", "tuples_returned", "tuples_inserted", "tuples_updated", "tuples_deleted"];
        let counters = counters.map(of_table).join(", ");
        // Parallel workers have reported by the time that the statement ends.
        let of_workers = match statistics {
            Statistics::Transaction => "CASE WHEN c.relkind IN ('r','m') THEN pg_stat_get_tuples_returned(c.oid) END",
            Statistics::TransactionWithoutWorkers | Statistics::Cumulative => "0",
        };
        let sql = format!(
            "SELECT c.oid::int8, n.nspname, c.relname, c.relkind, i.indrelid::int8, c.relfilenode::int8, {counters}, {of_workers} \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid \
             WHERE n.nspname <> 'pg_toast' AND n.nspname !~ '^pg_toast_temp_' \
             AND n.nspname <> 'information_schema' AND (c.oid >= {FIRST_USER_OID} OR c.relkind = 'r')"
        );
        let states = connection.rows(&sql).await?.iter().filter_map(state).collect::<Vec<_>>();
        Ok(Self { relations: states.into_iter().map(|state| (state.relation.oid, state)).collect() })
    }

    pub(crate) fn relation(&self, oid: u32) -> Option<&Relation> {
        self.relations.get(&oid).map(|state| &state.relation)
    }

    fn user_relations(&self) -> impl Iterator<Item = &State> {
        self.relations.values().filter(|state| state.relation.oid >= FIRST_USER_OID)
    }
}

fn state(row: &SimpleQueryRow) -> Option<State> {
    let count = |column| parsed(row, column).unwrap_or(0);
    Some(State {
        relation: Relation {
            oid: parsed(row, 0)?,
            schema: text(row, 1),
            name: text(row, 2),
            kind: parsed(row, 3)?,
            table: parsed(row, 4),
        },
        filenode: parsed(row, 5)?,
        scans: count(6),
        rows_read: count(7) + count(11),
        written: RowCounts { inserted: count(8), updated: count(9), deleted: count(10) },
    })
}

/// Writes into the trace of a statement what changed between the moments before and after it.
pub(crate) fn differences(before: &Snapshot, after: &Snapshot, ast: Option<&Ast>, trace: &mut StatementTrace) {
    let truncated = truncated(before, after, ast);
    for state in after.user_relations() {
        let relation = &state.relation;
        let Some(old) = before.relations.get(&relation.oid) else {
            trace.creates.push(relation.clone());
            let of_existing = relation.table.is_some_and(|table| before.relations.contains_key(&table));
            if !state.written.is_zero() {
                trace.changes.push((relation.clone(), state.written));
            }
            if relation.kind == 'i' && of_existing && !taken_over(before, state.filenode) {
                trace.index_builds.push(relation.clone());
            }
            continue;
        };
        if old.relation.name != relation.name || old.relation.schema != relation.schema {
            trace.renames.push((old.relation.clone(), relation.clone()));
        }
        let moved = state.filenode != old.filenode && state.filenode != 0;
        let emptied = truncated.contains(&relation.table.unwrap_or(relation.oid));
        match (moved, emptied, relation.kind) {
            (true, true, 'r') => trace.truncates.push(old.relation.clone()),
            (true, false, 'r' | 'm') => trace.rewrites.push(old.relation.clone()),
            (true, _, 'i') => trace.index_builds.push(old.relation.clone()),
            _ => {}
        }
        let changes = state.written.since(old.written);
        if !changes.is_zero() {
            trace.changes.push((old.relation.clone(), changes));
        }
        let times = state.scans - old.scans;
        if times > 0 && !truncated.contains(&relation.oid) {
            let rows = (state.rows_read - old.rows_read).max(0);
            trace.scans.push(ScanTrace { relation: old.relation.clone(), times, rows });
        }
    }
    if trace.uncounted {
        trace.scans.clear();
        trace.changes.clear();
    }
    let gone = before.user_relations().filter(|state| !after.relations.contains_key(&state.relation.oid));
    trace.drops = gone.map(|state| state.relation.clone()).collect();
    trace.catalog_rows = catalog_rows(before, after);
}

/// A changed type may make a new index of the storage of the old one (`TryReuseIndex` in tablecmds.c).
fn taken_over(before: &Snapshot, filenode: u32) -> bool {
    filenode != 0 && before.user_relations().any(|state| state.filenode == filenode)
}

/// Tables that got new storage because they were emptied. TRUNCATE reads a table once for each index that it
/// rebuilds; a rewrite reads it once more, unless it copies blocks or fills the table with a query.
fn truncated(before: &Snapshot, after: &Snapshot, ast: Option<&Ast>) -> BTreeSet<u32> {
    let copies = matches!(
        ast,
        Some(
            Ast::AlterTable(_)
                | Ast::AlterTableMoveAll(_)
                | Ast::RefreshMaterializedView(_)
                | Ast::Vacuum(_)
                | Ast::Cluster(_)
        )
    );
    let moved: Vec<(&State, &State)> = after
        .user_relations()
        .filter_map(|state| Some((before.relations.get(&state.relation.oid)?, state)))
        .filter(|(old, new)| old.filenode != new.filenode)
        .collect();
    let of_table = |new: &State, table: u32| i64::from(new.relation.table == Some(table));
    let indexes = |table: u32| moved.iter().map(|(_, new)| of_table(new, table)).sum::<i64>();
    let emptied =
        |(old, new): &&(&State, &State)| new.relation.kind == 'r' && new.scans - old.scans <= indexes(new.relation.oid);
    moved.iter().filter(|_| !copies).filter(emptied).map(|(_, new)| new.relation.oid).collect()
}

fn catalog_rows(before: &Snapshot, after: &Snapshot) -> BTreeMap<String, RowCounts> {
    let catalogs = after.relations.values().filter(|state| state.relation.schema == "pg_catalog");
    let written = catalogs.map(|state| {
        let old = before.relations.get(&state.relation.oid).map(|old| old.written).unwrap_or_default();
        let counts = state.written.since(old);
        (state.relation.name.clone(), counts)
    });
    written.filter(|(_, counts)| !counts.is_zero()).collect()
}

/// The table locks that the backend of a connection holds on relations of users.
pub(crate) async fn own_locks(connection: &Connection) -> Result<BTreeSet<(u32, LockMode)>, Error> {
    let rows = connection.rows(&locks_sql("pg_catalog.pg_backend_pid()")).await?;
    Ok(rows.iter().filter_map(lock).map(|(oid, mode, _)| (oid, mode)).collect())
}

/// `(relation, mode, granted?)` of one backend, for a connection to any database of the server.
pub(crate) fn locks_sql(pid: &str) -> String {
    format!(
        "SELECT l.relation::int8, l.mode, l.granted FROM pg_catalog.pg_locks l \
         WHERE l.pid = {pid} AND l.locktype = 'relation' AND l.database <> 0 AND l.relation >= {FIRST_USER_OID}"
    )
}

pub(crate) fn lock(row: &SimpleQueryRow) -> Option<(u32, LockMode, bool)> {
    let mode = text(row, 1);
    let name = mode.strip_suffix("Lock")?;
    let mode = LockMode::ALL.into_iter().find(|mode| format!("{mode:?}") == name)?;
    Some((parsed(row, 0)?, mode, text(row, 2) == "t"))
}

/// Where the write-ahead log ends, and the next XID. Uses none.
pub(crate) async fn cluster(observer: &Connection) -> Result<(i64, i64), Error> {
    let sql = "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::int8, \
               pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::int8";
    let rows = observer.rows(sql).await?;
    let figures = rows.first().and_then(|row| Some((parsed(row, 0)?, parsed(row, 1)?)));
    figures.ok_or_else(|| Error::new("the server does not return its write-ahead log position"))
}

/// Subtransactions with an XID in the open transaction of a backend, and whether the cache overflowed: 16 and later.
pub(crate) async fn subtransactions(observer: &Connection, pid: i32) -> Result<Option<(i64, bool)>, Error> {
    let sql = format!(
        "SELECT s.subxact_count, s.subxact_overflowed FROM pg_catalog.pg_stat_get_backend_idset() b, \
         LATERAL pg_catalog.pg_stat_get_backend_subxact(b) s WHERE pg_catalog.pg_stat_get_backend_pid(b) = {pid}"
    );
    let rows = observer.rows(&sql).await?;
    Ok(rows.first().and_then(|row| Some((parsed(row, 0)?, text(row, 1) == "t"))))
}

/// Makes the counts of a connection's finished transactions visible to everybody.
pub(crate) async fn flush(connection: &Connection, major: u8) -> Result<(), Error> {
    if major >= 15 {
        return connection.run("SELECT pg_catalog.pg_stat_force_next_flush()").await;
    }
    // Before 15 a session reports at most twice a second (PGSTAT_STAT_INTERVAL), and only when it becomes idle.
    connection.run("SELECT pg_catalog.pg_sleep(0.6)").await?;
    connection.run("SELECT pg_catalog.pg_stat_clear_snapshot()").await
}

/// Bytes and dead rows of every table, and bytes of every index.
pub(crate) async fn sizes(connection: &Connection) -> Result<BTreeMap<u32, Growth>, Error> {
    let sql = format!(
        "SELECT c.oid::int8, n.nspname, c.relname, c.relkind, i.indrelid::int8, \
         CASE WHEN c.relkind = 'i' THEN pg_catalog.pg_relation_size(c.oid) ELSE pg_catalog.pg_table_size(c.oid) END, \
         pg_catalog.pg_stat_get_dead_tuples(c.oid) \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid \
         WHERE c.oid >= {FIRST_USER_OID} AND c.relkind IN ('r','m','i') AND n.nspname !~ '^pg_toast'"
    );
    let growth = |row: &SimpleQueryRow| {
        let relation = Relation {
            oid: parsed(row, 0)?,
            schema: text(row, 1),
            name: text(row, 2),
            kind: parsed(row, 3)?,
            table: parsed(row, 4),
        };
        let bytes = parsed(row, 5).unwrap_or(0);
        let dead_rows = parsed(row, 6).unwrap_or(0);
        Some((relation.oid, Growth { relation, dead_rows, bytes_before: bytes, bytes_after: bytes }))
    };
    Ok(connection.rows(&sql).await?.iter().filter_map(growth).collect())
}

/// About how many rows each table has: what ANALYZE counted for a page, times the pages that there are now, as the
/// planner does it (`estimate_rel_size` in plancat.c). Tables that were never analyzed are skipped.
pub(crate) async fn rows(connection: &Connection) -> Result<BTreeMap<String, u64>, Error> {
    let sql = format!(
        "SELECT n.nspname, c.relname, CASE WHEN s.pages = 0 THEN 0 \
         WHEN c.reltuples > 0 AND c.relpages > 0 THEN round(c.reltuples::numeric / c.relpages * s.pages) END \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace, \
         LATERAL (SELECT pg_catalog.pg_relation_size(c.oid) / current_setting('block_size')::int AS pages) s \
         WHERE c.oid >= {FIRST_USER_OID} AND c.relkind IN ('r','m') AND n.nspname !~ '^pg_'"
    );
    let rows = connection.rows(&sql).await?;
    let known = rows.iter().filter_map(|row| Some((format!("{}.{}", text(row, 0), text(row, 1)), parsed(row, 2)?)));
    Ok(known.collect())
}

/// The size of each table of [`sizes`], and of its indexes.
pub(crate) fn bytes(sizes: &BTreeMap<u32, Growth>) -> BTreeMap<String, TableBytes> {
    let of = |size: &Growth| u64::try_from(size.bytes_before).unwrap_or(0);
    let mut tables: BTreeMap<String, TableBytes> = BTreeMap::new();
    for size in sizes.values() {
        let table = size.relation.table.map_or(Some(size), |table| sizes.get(&table));
        let Some(table) = table else { continue };
        let bytes = tables.entry(table.relation.to_string()).or_default();
        if size.relation.is_index() {
            bytes.indexes += of(size);
        } else {
            bytes.table = of(size);
        }
    }
    tables
}

/// Returns the changes of each relation between two measurements of [`sizes`].
pub(crate) fn growth(before: &BTreeMap<u32, Growth>, after: BTreeMap<u32, Growth>) -> Vec<Growth> {
    let change = |(oid, new): (u32, Growth)| {
        let old = before.get(&oid);
        let bytes_before = old.map_or(0, |old| old.bytes_after);
        let dead_rows = new.dead_rows - old.map_or(0, |old| old.dead_rows);
        (bytes_before != new.bytes_after || dead_rows != 0).then_some(Growth { dead_rows, bytes_before, ..new })
    };
    after.into_iter().filter_map(change).collect()
}
