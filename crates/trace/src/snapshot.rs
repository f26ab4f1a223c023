//! Reads what production knows about sizes and traffic: one read-only transaction, no locks on tables, no data.

use crate::Error;
use crate::address::Address;
use crate::connection::{Connection, parsed, text};
use crate::runtime::{block_on, unless_interrupted};
use pgvet_model::production::TableSettings;
use pgvet_model::statistics::{FunctionStatistics, SCHEMA_VERSION, Statistics, TableStatistics, TransactionStatistics};
use pgvet_syntax::ast::{Expr, ExprKind, Part};
use pgvet_syntax::statement;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The oldest server that is understood.
const OLDEST: u32 = 100_000;

/// Statements of `pg_stat_statements` that are examined: those that are called most.
const STATEMENTS: u32 = 3000;

/// Reads the statistics of a database. How often something happens is only told if it has been counted for `window`: after
/// a restart, minutes stand for nothing.
pub fn snapshot(database: &Address, window: Duration) -> Result<Statistics, Error> {
    block_on(unless_interrupted(async {
        let connection = Connection::open(database, "snapshot").await?;
        let snapshot = Snapshot { connection: &connection, window, statistics: Statistics::default() };
        snapshot.take().await
    }))
}

struct Snapshot<'c> {
    connection: &'c Connection,
    /// The shortest time of counting that says how often something happens.
    window: Duration,
    statistics: Statistics,
}

/// Sizes are those of the last VACUUM or ANALYZE: asking for present ones would lock each table.
const TABLES: &str = "
    SELECT c.oid, n.nspname, c.relname, greatest(c.reltuples, 0)::bigint, c.reltuples < 0,
        (c.relpages + coalesce(t.relpages, 0))::bigint * pg_catalog.current_setting('block_size')::bigint,
        s.n_live_tup, s.n_tup_ins + s.n_tup_upd + s.n_tup_del,
        coalesce(c.reloptions::text LIKE '%autovacuum_enabled=false%', false)
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_class t ON t.oid = c.reltoastrelid
    LEFT JOIN pg_catalog.pg_stat_all_tables s ON s.relid = c.oid
    WHERE c.relkind IN ('r', 'p', 'm') AND c.relpersistence <> 't'
        AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'";

const INDEXES: &str = "
    SELECT x.indrelid, c.relname, c.relpages::bigint * pg_catalog.current_setting('block_size')::bigint, s.idx_scan
    FROM pg_catalog.pg_index x
    JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid
    LEFT JOIN pg_catalog.pg_stat_all_indexes s ON s.indexrelid = c.oid
    WHERE c.relkind = 'i' AND c.relpages > 0";

const PARTITIONS: &str = "SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhparent WHERE c.relkind = 'p'";

const FUNCTIONS: &str = "SELECT schemaname, funcname, sum(calls)::bigint
    FROM pg_catalog.pg_stat_user_functions GROUP BY 1, 2";

/// Transactions of others are seen with the rights of `pg_read_all_stats` only.
const TRANSACTIONS: &str = "
    SELECT extract(epoch FROM max(pg_catalog.now() - xact_start))::bigint, pg_catalog.bool_or(query = '<insufficient privilege>')
    FROM pg_catalog.pg_stat_activity
    WHERE pid <> pg_catalog.pg_backend_pid() AND backend_type = 'client backend'";

/// About how long counters have counted. A database that was reset says when, but the reset of a single table also
/// is one, too: what was vacuumed or analyzed before that has counted longer. From 15 on a database that was never
/// reset says nothing; it counts since a crash or the first start, or since it was made, which nobody tells. A reset of
/// one kind of shared counters leaves it alone.
///
/// Source: PostgreSQL 18, `pgstat_reset` and `pgstat_reset_after_failure` in `src/backend/utils/activity/pgstat.c`;
/// PostgreSQL 14, `reset_dbentry_counters` in `src/backend/postmaster/pgstat.c`.
const COUNTED: &str = "
    SELECT extract(epoch FROM pg_catalog.clock_timestamp() - CASE WHEN d.stats_reset IS NULL
        THEN least(b.stats_reset, a.stats_reset) ELSE least(d.stats_reset, t.done) END)::bigint
    FROM pg_catalog.pg_stat_database d, pg_catalog.pg_stat_bgwriter b, pg_catalog.pg_stat_archiver a,
        (SELECT min(least(last_vacuum, last_autovacuum, last_analyze, last_autoanalyze)) AS done
        FROM pg_catalog.pg_stat_user_tables) t
    WHERE d.datname = pg_catalog.current_database()";

struct Found {
    name: String,
    table: TableStatistics,
    writes: u64,
}

impl Snapshot<'_> {
    async fn take(mut self) -> Result<Statistics, Error> {
        self.connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        self.connection.run("SET LOCAL statement_timeout = '30s'; SET LOCAL lock_timeout = '2s'").await?;
        let number: u32 = self.connection.value("SELECT pg_catalog.current_setting('server_version_num')").await?;
        if number < OLDEST {
            return Err(Error::new(format!("the server is PostgreSQL {}, which is too old", number / 10_000))
                .help("snapshots need PostgreSQL 10"));
        }
        self.statistics.schema_version = SCHEMA_VERSION;
        self.statistics.pg_version = self
            .connection
            .value::<String>("SELECT pg_catalog.split_part(pg_catalog.current_setting('server_version'), ' ', 1)")
            .await?;
        self.statistics.taken_at = self
            .connection
            .value("SELECT pg_catalog.to_char(pg_catalog.now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
            .await?;
        let counted = self.optional("how long writes have been counted", COUNTED).await?;
        self.statistics.counted_seconds = counted.first().and_then(|row| parsed(row, 0)).filter(|seconds| *seconds > 0);
        if let Some(seconds) = self.statistics.counted_seconds.filter(|seconds| !self.is_enough(*seconds)) {
            let least = self.window.as_secs();
            self.statistics.missing.push(format!(
                "writes of tables and calls of functions: their counters cover only {seconds} s, and {least} s are needed"
            ));
        }
        self.tables(number).await?;
        self.functions().await?;
        self.statements(number).await?;
        self.transactions().await?;
        self.autovacuum().await?;
        self.connection.run("ROLLBACK").await?;
        Ok(self.statistics)
    }

    /// Whether a time of counting says how often something happens.
    fn is_enough(&self, seconds: u64) -> bool {
        seconds >= self.window.as_secs()
    }

    /// The rows of a query that rights or settings may forbid; then it is noted what is missing.
    async fn optional(&mut self, what: &str, sql: &str) -> Result<Vec<tokio_postgres::SimpleQueryRow>, Error> {
        self.connection.run("SAVEPOINT optional").await?;
        match self.connection.rows(sql).await {
            Ok(rows) => {
                self.connection.run("RELEASE optional").await?;
                Ok(rows)
            }
            Err(error) => {
                self.connection.run("ROLLBACK TO optional").await?;
                self.statistics.missing.push(format!("{what}: {}", error.message));
                Ok(Vec::new())
            }
        }
    }

    async fn tables(&mut self, number: u32) -> Result<(), Error> {
        let mut found: BTreeMap<u32, Found> = BTreeMap::new();
        for row in self.connection.rows(TABLES).await? {
            let Some(oid) = parsed(&row, 0) else { continue };
            // Before the first ANALYZE the server has only its counters, which a crash or a reset clears. Until 13 the
            // estimate is 0 then.
            let is_new = text(&row, 4) == "t";
            let estimated: Option<u64> = parsed(&row, 3).filter(|_| !is_new);
            let live: Option<u64> = parsed(&row, 6).filter(|live| *live > 0);
            let bytes: Option<u64> = parsed(&row, 5);
            let is_measured = bytes.is_some_and(|bytes| bytes > 0) || number >= 140_000 && !is_new;
            let table = TableStatistics {
                rows: if estimated.is_some_and(|rows| rows > 0) {
                    estimated
                } else {
                    live.or(estimated.filter(|_| is_measured))
                },
                bytes: bytes.filter(|_| is_measured),
                autovacuum_off: text(&row, 8) == "t",
                ..TableStatistics::default()
            };
            let name = format!("{}.{}", text(&row, 1), text(&row, 2));
            found.insert(oid, Found { name, table, writes: parsed(&row, 7).unwrap_or(0) });
        }
        for row in self.connection.rows(INDEXES).await? {
            if let Some(found) = parsed::<u32>(&row, 0).and_then(|oid| found.get_mut(&oid)) {
                found.table.indexes.insert(text(&row, 1), parsed(&row, 2).unwrap_or(0));
                if let Some(scans) = parsed(&row, 3).filter(|scans| *scans > 0) {
                    found.table.index_scans.insert(text(&row, 1), scans);
                }
            }
        }
        let mut parents = BTreeMap::new();
        for row in self.connection.rows(PARTITIONS).await? {
            if let (Some(child), Some(parent)) = (parsed::<u32>(&row, 0), parsed::<u32>(&row, 1)) {
                parents.insert(child, parent);
            }
        }
        add_partitions(&mut found, &parents);
        let seconds = self.statistics.counted_seconds.filter(|seconds| self.is_enough(*seconds));
        self.statistics.tables = found
            .into_values()
            .map(|Found { name, mut table, writes }| {
                table.writes_per_second = seconds.map(|seconds| writes / seconds.max(1));
                (name, table)
            })
            .collect();
        Ok(())
    }

    async fn functions(&mut self) -> Result<(), Error> {
        let tracked =
            self.optional("calls of functions", "SELECT pg_catalog.current_setting('track_functions')").await?;
        if tracked.first().is_some_and(|row| text(row, 0) == "none") {
            let message = "calls of functions: track_functions is `none`";
            self.statistics.missing.push(message.to_owned());
        }
        let seconds = self.statistics.counted_seconds.filter(|seconds| self.is_enough(*seconds));
        let Some(seconds) = seconds else { return Ok(()) };
        for row in self.optional("calls of functions", FUNCTIONS).await? {
            let name = format!("{}.{}", text(&row, 0), text(&row, 1));
            self.add_calls(name, parsed(&row, 2).unwrap_or(0), seconds);
        }
        Ok(())
    }

    fn add_calls(&mut self, name: String, calls: u64, seconds: u64) {
        let calls_per_hour = calls.saturating_mul(3600) / seconds.max(1);
        if calls_per_hour > 0 {
            let known = self.statistics.functions.entry(name).or_insert(FunctionStatistics { calls_per_hour });
            known.calls_per_hour = known.calls_per_hour.max(calls_per_hour);
        }
    }

    /// Functions that `pg_stat_statements` has seen in statements; the texts stay here.
    async fn statements(&mut self, number: u32) -> Result<(), Error> {
        let sql = "SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
                   WHERE e.extname = 'pg_stat_statements'";
        let Some(schema) = self.connection.rows(sql).await?.first().map(|row| text(row, 0)) else { return Ok(()) };
        let schema = format!("\"{}\"", schema.replace('"', "\"\""));
        let mut seconds = self.statistics.counted_seconds;
        if number >= 140_000 {
            let sql = format!(
                "SELECT extract(epoch FROM pg_catalog.clock_timestamp() - stats_reset)::bigint FROM {schema}.pg_stat_statements_info"
            );
            let rows = self.optional("calls in pg_stat_statements", &sql).await?;
            seconds = rows.first().and_then(|row| parsed(row, 0)).or(seconds);
        }
        let Some(seconds) = seconds.filter(|seconds| self.is_enough(*seconds)) else { return Ok(()) };
        let users = self.user_functions().await?;
        if users.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT query, calls FROM {schema}.pg_stat_statements \
             WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) \
             ORDER BY calls DESC LIMIT {STATEMENTS}"
        );
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        for row in self.optional("calls in pg_stat_statements", &sql).await? {
            let times: u64 = parsed(&row, 1).unwrap_or(0);
            for name in called(&text(&row, 0)) {
                if let Some(schema) = users.get(&name) {
                    *calls.entry(format!("{schema}.{name}")).or_default() += times;
                }
            }
        }
        for (name, times) in calls {
            self.add_calls(name, times, seconds);
        }
        Ok(())
    }

    /// The schema of each user function, where only one has that name.
    async fn user_functions(&self) -> Result<BTreeMap<String, String>, Error> {
        let sql = "SELECT p.proname, pg_catalog.min(n.nspname) FROM pg_catalog.pg_proc p \
                   JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
                   WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') \
                   GROUP BY 1 HAVING pg_catalog.count(DISTINCT n.nspname) = 1";
        let rows = self.connection.rows(sql).await?;
        Ok(rows.iter().map(|row| (text(row, 0), text(row, 1))).collect())
    }

    async fn transactions(&mut self) -> Result<(), Error> {
        let rows = self.optional("open transactions", TRANSACTIONS).await?;
        let row = rows.first();
        if row.is_some_and(|row| text(row, 1) == "t") {
            let message = "open transactions of other roles: the role lacks the privileges of pg_read_all_stats";
            self.statistics.missing.push(message.to_owned());
        }
        let sql =
            "SELECT extract(epoch FROM max(pg_catalog.now() - prepared))::bigint FROM pg_catalog.pg_prepared_xacts";
        let prepared = self.optional("prepared transactions", sql).await?;
        self.statistics.transactions = TransactionStatistics {
            oldest_seconds: row.and_then(|row| parsed(row, 0)),
            oldest_prepared_seconds: prepared.first().and_then(|row| parsed(row, 0)),
        };
        Ok(())
    }

    async fn autovacuum(&mut self) -> Result<(), Error> {
        let sql = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name LIKE 'autovacuum%'";
        let rows = self.optional("settings of autovacuum", sql).await?;
        self.statistics.autovacuum = rows.iter().map(|row| (text(row, 0), text(row, 1))).collect();
        Ok(())
    }
}

/// A partitioned table has what its partitions have. Partitions without counters yet, such as those created in advance,
/// are excluded; but the others cannot prove that the whole is small.
fn add_partitions(found: &mut BTreeMap<u32, Found>, parents: &BTreeMap<u32, u32>) {
    let partitioned: BTreeSet<u32> = parents.values().copied().collect();
    for oid in &partitioned {
        if let Some(parent) = found.get_mut(oid) {
            (parent.table.rows, parent.table.bytes, parent.writes) = (Some(0), Some(0), 0);
        }
    }
    let leaves: Vec<(u32, Option<u64>, Option<u64>, u64)> = found
        .iter()
        .filter(|(oid, _)| !partitioned.contains(oid))
        .map(|(oid, found)| (*oid, found.table.rows, found.table.bytes, found.writes))
        .collect();
    let mut uncounted = BTreeSet::new();
    for (leaf, rows, bytes, writes) in leaves {
        let mut above = parents.get(&leaf);
        while let Some(oid) = above {
            if let Some(parent) = found.get_mut(oid) {
                parent.table.rows = Some(parent.table.rows.unwrap_or(0) + rows.unwrap_or(0));
                parent.table.bytes = Some(parent.table.bytes.unwrap_or(0) + bytes.unwrap_or(0));
                parent.writes += writes;
            }
            if rows.is_none() {
                uncounted.insert(*oid);
            }
            above = parents.get(oid);
        }
    }
    for oid in uncounted {
        if let Some(parent) = found.get_mut(&oid).filter(|parent| parent.table.rows <= Some(TableSettings::SMALL)) {
            (parent.table.rows, parent.table.bytes) = (None, None);
        }
    }
}

/// The names of the functions that a statement calls.
fn called(sql: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in statement::parse(sql) {
        let Ok(ast) = &statement.parsed else { continue };
        ast.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
                names.insert(call.name.to_string());
            }
        });
    }
    names
}
