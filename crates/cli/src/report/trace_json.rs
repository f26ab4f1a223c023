//! Measures for programs. The names of fields are stable within a `schema_version`; units are in the names.

use super::trace::{TraceReport, TracedFile, blocks, strongest_locks};
use super::{JsonRange, json};
use pgvet_model::catalog::RelationKind;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::Position;
use pgvet_trace::{
    CanaryTrace, Deadlock, DeadlockSession, DeadlockStatement, Extrapolation, Growth, Latency, LockTrace, Relation,
    RowCounts, StatementTrace, WorkloadTrace,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

#[derive(Debug, Serialize)]
struct JsonMigration<'a> {
    path: &'a str,
    outcome: &'static str,
    failure: Option<JsonFailure<'a>>,
    duration_ms: f64,
    xids: i64,
    wal_bytes: i64,
    temp_bytes: i64,
    subtransactions: Value,
    catalog_rows: BTreeMap<&'a str, Value>,
    tables: Vec<Value>,
    indexes: Vec<Value>,
    statements: Vec<JsonStatement<'a>>,
    canaries: Vec<Value>,
    workload: Vec<Value>,
    deadlocks: Vec<Value>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct JsonFailure<'a> {
    sqlstate: &'a str,
    message: &'a str,
    detail: Option<&'a str>,
    hint: Option<&'a str>,
    range: JsonRange,
    position: Option<Position>,
    timed_out: bool,
}

#[derive(Debug, Serialize)]
struct JsonStatement<'a> {
    range: JsonRange,
    sql: &'a str,
    transaction: &'static str,
    started_ms: f64,
    duration_ms: f64,
    spread: Option<Value>,
    extrapolated: Option<Value>,
    /// Its locks were sampled, so short ones may be missing.
    sampled: bool,
    /// Other sessions used the tables, so scans and writes are missing.
    uncounted: bool,
    locks: Vec<JsonLock>,
    rewrites: Vec<String>,
    truncates: Vec<String>,
    scans: Vec<String>,
    scanned: Vec<Value>,
    writes: Vec<Value>,
    index_builds: Vec<String>,
    creates: Vec<String>,
    drops: Vec<String>,
    xids: Option<i64>,
    wal_bytes: i64,
    catalog_rows: BTreeMap<&'a str, Value>,
}

#[derive(Debug, Serialize)]
struct JsonLock {
    relation: String,
    kind: &'static str,
    mode: LockMode,
    /// Whether others can see the relation.
    exposed: bool,
    acquired_ms: f64,
    held_ms: f64,
    held_ms_low: f64,
    held_ms_high: f64,
    blocks: Vec<&'static str>,
}

pub(crate) fn write(report: &TraceReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (trace, findings) = (report.trace, &report.findings);
    let document = json!({
        "schema_version": 1,
        "pg_version": trace.major,
        "server_version": trace.server_version,
        "provider": trace.provider,
        "notes": trace.notes,
        "migrations": report.migrations.iter().map(|traced| migration(report, traced)).collect::<Vec<_>>(),
        "diagnostics": findings.findings.iter().map(|finding| json::traced(findings, finding)).collect::<Vec<_>>(),
        "model_differences": report.differences.iter().map(|difference| json!({
            "path": report.place(difference).0,
            "range": report.place(difference).1,
            "what": difference.what,
            "relation": difference.relation,
            "predicted": difference.predicted,
            "observed": difference.observed,
            "unknown": difference.unknown,
        })).collect::<Vec<_>>(),
        "exceeded": report.exceeded.iter().map(|(at, exceeded)| json!({
            "path": report.migrations[*at].path(),
            "relation": exceeded.blocked.relation.to_string(),
            "mode": exceeded.blocked.mode,
            "held_ms": milliseconds(exceeded.blocked.held.best),
            "limit_mode": exceeded.limit.mode,
            "limit_ms": milliseconds(exceeded.limit.held),
        })).collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

/// To a microsecond.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn migration<'a>(report: &TraceReport<'_>, traced: &TracedFile<'a>) -> JsonMigration<'a> {
    let trace = traced.trace;
    let failure = trace.failure().map(|(statement, failure)| JsonFailure {
        sqlstate: &failure.sqlstate,
        message: &failure.message,
        detail: failure.detail.as_deref(),
        hint: failure.hint.as_deref(),
        range: traced.range(statement.range),
        position: failure.position.map(|offset| traced.position(offset)),
        timed_out: failure.timed_out,
    });
    let (indexes, tables): (Vec<_>, Vec<_>) = trace.tables.iter().partition(|growth| growth.relation.is_index());
    JsonMigration {
        path: traced.path(),
        outcome: if failure.is_some() { "failed" } else { "ok" },
        failure,
        duration_ms: milliseconds(trace.duration),
        xids: trace.xids,
        wal_bytes: trace.wal_bytes,
        temp_bytes: trace.temp_bytes,
        subtransactions: json!({ "max": trace.subtransactions.max, "overflowed": trace.subtransactions.overflowed }),
        catalog_rows: catalog_rows(&trace.catalog_rows),
        tables: tables.into_iter().map(growth).collect(),
        indexes: indexes.into_iter().map(growth).collect(),
        statements: trace.statements.iter().map(|found| statement(report, traced, found)).collect(),
        canaries: trace.canaries.iter().map(canary).collect(),
        workload: trace.workload.iter().map(workload).collect(),
        deadlocks: trace.deadlocks.iter().map(deadlock).collect(),
        notes: &trace.notes,
    }
}

fn canary(canary: &CanaryTrace) -> Value {
    json!({
        "relation": canary.relation,
        "blocked": canary.blocked,
        "probes": canary.probes,
        "usual_ms": milliseconds(canary.usual),
        "longest_wait_ms": milliseconds(canary.longest_wait),
    })
}

fn deadlock(deadlock: &Deadlock) -> Value {
    let statement = |one: &DeadlockStatement| json!({ "place": one.place, "sql": one.sql });
    let session = |session: &DeadlockSession| {
        json!({
            "pid": session.pid,
            "name": session.name,
            "statements": session.statements.iter().map(statement).collect::<Vec<_>>(),
        })
    };
    json!({
        "report": deadlock.report,
        "cancelled": deadlock.cancelled,
        "sessions": deadlock.sessions.iter().map(session).collect::<Vec<_>>(),
    })
}

fn workload(workload: &WorkloadTrace) -> Value {
    let latency = |latency: Latency| {
        json!({
            "runs": latency.runs,
            "median_ms": milliseconds(latency.median),
            "p95_ms": milliseconds(latency.p95),
            "max_ms": milliseconds(latency.longest),
        })
    };
    json!({
        "place": workload.place,
        "sql": workload.sql,
        "before": latency(workload.before),
        "during": latency(workload.during),
        "after": latency(workload.after),
        "errors": workload.refused.runs,
        "errors_max_ms": milliseconds(workload.refused.longest),
        "error": workload.error,
    })
}

fn growth(growth: &Growth) -> Value {
    json!({
        "relation": growth.relation.to_string(),
        "dead_tuples": growth.dead_rows,
        "bytes_before": growth.bytes_before,
        "bytes_after": growth.bytes_after,
    })
}

fn written((relation, rows): &(Relation, RowCounts)) -> Value {
    json!({
        "relation": relation.to_string(),
        "inserted": rows.inserted,
        "updated": rows.updated,
        "deleted": rows.deleted,
    })
}

fn catalog_rows(rows: &BTreeMap<String, RowCounts>) -> BTreeMap<&str, Value> {
    let counts = |counts: &RowCounts| json!({ "inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted });
    rows.iter().map(|(catalog, rows)| (catalog.as_str(), counts(rows))).collect()
}

fn statement<'a>(
    report: &TraceReport<'_>,
    traced: &TracedFile<'a>,
    statement: &'a StatementTrace,
) -> JsonStatement<'a> {
    let names = |relations: &[Relation]| relations.iter().map(ToString::to_string).collect();
    let scanned = statement
        .scans
        .iter()
        .map(|scan| json!({ "relation": scan.relation.to_string(), "times": scan.times, "rows": scan.rows }));
    JsonStatement {
        range: traced.range(statement.range),
        sql: &statement.sql,
        transaction: if statement.in_block { "block" } else { "none" },
        started_ms: milliseconds(statement.started),
        duration_ms: milliseconds(statement.duration),
        spread: statement.spread.map(|spread| {
            json!({ "runs": spread.runs, "min_ms": milliseconds(spread.least), "max_ms": milliseconds(spread.most) })
        }),
        extrapolated: report.extrapolation(traced, statement).as_ref().map(extrapolated),
        sampled: statement.sampled,
        uncounted: statement.uncounted,
        locks: strongest_locks(statement).into_iter().map(lock).collect(),
        rewrites: names(&statement.rewrites),
        truncates: names(&statement.truncates),
        scans: statement.scans.iter().map(|scan| scan.relation.to_string()).collect(),
        scanned: scanned.collect(),
        writes: statement.changes.iter().map(written).collect(),
        index_builds: names(&statement.index_builds),
        creates: names(&statement.creates),
        drops: names(&statement.drops),
        xids: statement.xids,
        wal_bytes: statement.wal_bytes,
        catalog_rows: catalog_rows(&statement.catalog_rows),
    }
}

fn extrapolated(found: &Extrapolation) -> Value {
    json!({
        "relation": found.relation.to_string(),
        "rows": found.rows,
        "production_rows": found.production_rows,
        "duration_ms": milliseconds(found.duration),
        "lower_bound": found.sorts,
    })
}

fn lock(lock: &LockTrace) -> JsonLock {
    JsonLock {
        relation: lock.relation.to_string(),
        kind: RelationKind::of_relkind(lock.relation.kind).map_or("other", RelationKind::noun),
        mode: lock.mode,
        exposed: lock.exposed,
        acquired_ms: milliseconds(lock.acquired),
        held_ms: milliseconds(lock.held.best),
        held_ms_low: milliseconds(lock.held.low),
        held_ms_high: milliseconds(lock.held.high),
        blocks: blocks(lock),
    }
}
