//! Measures for reading.

use super::trace::{TraceReport, TracedFile, blocks, matters, strongest_locks};
use super::{Finding, excerpt, plural};
use crate::style::Style;
use pgvet_linter::severity::Severity;
use pgvet_model::effect::Evidence;
use pgvet_trace::{
    Deadlock, Extrapolation, Failure, Growth, Held, LockTrace, MigrationTrace, Relation, StatementTrace, WorkloadTrace,
};
use std::io::{self, Write};
use std::time::Duration;

pub(crate) fn write(report: &TraceReport<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let trace = report.trace;
    writeln!(out, "Measured on PostgreSQL {} ({})", trace.server_version, trace.provider)?;
    for note in &trace.notes {
        writeln!(out, "{} {note}", style.yellow("note"))?;
    }
    for migration in &report.migrations {
        write_migration(report, migration, style, out)?;
    }
    write_differences(report, style, out)?;
    write_exceeded(report, style, out)?;
    writeln!(out, "\n{}", summary(report))
}

fn write_migration(
    report: &TraceReport<'_>,
    traced: &TracedFile<'_>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let trace = traced.trace;
    writeln!(out, "\n{}  {}", style.bold(traced.path()), style.dim(&time(trace.duration)))?;
    for note in &trace.notes {
        writeln!(out, "  {} {note}", style.yellow("note"))?;
    }
    for statement in traced.statements() {
        write_statement(traced, statement, style, out)?;
        if let Some(found) = report.extrapolation(traced, statement) {
            writeln!(out, "        {}   {} (extrapolated, not measured)", style.yellow("grows"), extrapolated(&found))?;
        }
        for finding in report.findings_about(traced, statement) {
            write_finding(finding, style, out)?;
        }
    }
    for finding in report.other_findings(traced) {
        let statement = traced.text(finding.diagnostic.statement);
        writeln!(out, "  {:>4}  {}", finding.start.line, style.dim(&excerpt(statement)))?;
        write_finding(finding, style, out)?;
    }
    writeln!(out, "        {}", style.dim(&totals(trace).join(", ")))?;
    for canary in &trace.canaries {
        let (relation, waited) = (&canary.relation, time(canary.longest_wait));
        writeln!(
            out,
            "        canary  {relation}  {} waited at most {waited} ({} probes)",
            canary.blocked, canary.probes
        )?;
    }
    for workload in &trace.workload {
        write_workload(workload, style, out)?;
    }
    for deadlock in &trace.deadlocks {
        writeln!(out, "        {}  {}", style.red("deadlock"), cancelled(deadlock))?;
        for line in deadlock_lines(deadlock) {
            writeln!(out, "                {line}")?;
        }
    }
    if trace.subtransactions.overflowed == Some(true) {
        let what = "more than 64 subtransactions in one transaction, which can slow down queries in every session";
        writeln!(out, "        {} {what}", style.yellow("overflow"))?;
    }
    for growth in trace.tables.iter().filter(|growth| growth.dead_rows > 0) {
        writeln!(out, "        {}   {}", style.yellow("bloat"), dead_rows(growth))?;
        let of_table = |index: &&Growth| index.relation.table == Some(growth.relation.oid);
        for index in trace.tables.iter().filter(of_table).filter(|index| index.bytes_before > 0) {
            writeln!(out, "                {}: {}", index.relation, sizes(index))?;
        }
    }
    Ok(())
}

/// Whose transaction PostgreSQL has cancelled.
pub(crate) fn cancelled(deadlock: &Deadlock) -> String {
    let session = deadlock.sessions.iter().find(|session| session.pid == deadlock.cancelled);
    let name = session.map_or("another session", |session| session.name.as_str());
    format!("PostgreSQL cancelled {name} (SQLSTATE 40P01)")
}

/// PostgreSQL's report, and what each session ran.
pub(crate) fn deadlock_lines(deadlock: &Deadlock) -> Vec<String> {
    let mut lines: Vec<String> = deadlock.report.lines().map(str::to_owned).collect();
    for session in &deadlock.sessions {
        lines.push(format!("Process {} is {}, which ran in its transaction:", session.pid, session.name));
        for statement in &session.statements {
            let place = statement.place.as_ref().map_or(String::new(), |place| format!("{place}  "));
            lines.push(format!("    {place}{}", excerpt(&statement.sql)));
        }
    }
    lines
}

/// The resources that a migration used.
pub(crate) fn totals(trace: &MigrationTrace) -> Vec<String> {
    let mut totals = vec![plural_of(trace.xids, "XID"), format!("{} of WAL", bytes(trace.wal_bytes))];
    if trace.temp_bytes > 0 {
        totals.push(format!("{} of temporary files", bytes(trace.temp_bytes)));
    }
    let catalog: i64 = trace.catalog_rows.values().map(|rows| rows.inserted + rows.updated + rows.deleted).sum();
    if catalog > 0 {
        totals.push(format!("{} in the catalog", plural_of(catalog, "row")));
    }
    if trace.subtransactions.max > 0 {
        totals.push(plural_of(trace.subtransactions.max, "subtransaction"));
    }
    totals
}

/// How long a statement of the user's own took before, during and after the migration.
fn write_workload(workload: &WorkloadTrace, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "        client  {}  {}", workload.place, excerpt(&workload.sql))?;
    let phases = [("before", workload.before), ("during", workload.during), ("after", workload.after)];
    for (phase, latency) in phases.into_iter().filter(|(_, latency)| latency.runs > 0) {
        let (runs, median, p95) = (plural(latency.runs, "run"), time(latency.median), time(latency.p95));
        let longest = time(latency.longest);
        writeln!(out, "                {phase:6}  median {median:>9}  p95 {p95:>9}  longest {longest:>9}  {runs}")?;
    }
    match &workload.error {
        Some(error) => {
            let (refused, times) = (style.red("refused"), plural(workload.refused.runs, "time"));
            let longest = time(workload.refused.longest);
            writeln!(out, "                {refused} {times}, after {longest} at most: {error}")
        }
        None => Ok(()),
    }
}

fn write_statement(
    traced: &TracedFile<'_>,
    statement: &StatementTrace,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let line = traced.line(statement);
    let spread = statement.spread.map(|spread| format!(" ({} to {})", time(spread.least), time(spread.most)));
    let duration = style.dim(&format!("  {}{}", time(statement.duration), spread.unwrap_or_default()));
    writeln!(out, "  {line:>4}  {}{duration}", excerpt(&statement.sql))?;
    write_locks(statement, style, out)?;
    for scan in &statement.scans {
        let again = if scan.times > 1 { format!(" in {} reads", scan.times) } else { String::new() };
        writeln!(out, "        scan    {}  {}{again}", scan.relation, plural_of(scan.rows, "row"))?;
    }
    for (relation, rows) in &statement.changes {
        let counts = [(rows.inserted, "inserted"), (rows.updated, "updated"), (rows.deleted, "deleted")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, what)| format!("{} {what}", plural_of(count, "row"))).collect();
        writeln!(out, "        write   {relation}  {}", counts.join(", "))?;
    }
    let lists = [
        ("rewrite", &statement.rewrites),
        ("empty", &statement.truncates),
        ("build", &statement.index_builds),
        ("create", &statement.creates),
        ("drop", &statement.drops),
    ];
    for (verb, relations) in lists {
        let names: Vec<String> = relations.iter().map(Relation::to_string).collect();
        if !names.is_empty() {
            writeln!(out, "        {verb:7} {}", names.join(", "))?;
        }
    }
    match &statement.failure {
        Some(failure) => write_failure(traced, failure, style, out),
        None => Ok(()),
    }
}

/// Writes the message of a rule, with its next step.
fn write_finding(finding: &Finding<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let found = finding.diagnostic;
    let severity = format!("{:7}", found.severity.as_str());
    let severity = match found.severity {
        Severity::Error => style.red(&severity),
        Severity::Warning => style.yellow(&severity),
        Severity::Info => severity,
    };
    let predicted = if found.evidence == Evidence::Predicted { style.dim(" (predicted)") } else { String::new() };
    writeln!(out, "        {severity} {}: {}{predicted}", found.rule, found.message)?;
    let mut lead = "help: ";
    for line in found.help.iter().flat_map(|help| help.lines()) {
        writeln!(out, "                {}", style.dim(&format!("{lead}{line}")))?;
        lead = "";
    }
    Ok(())
}

/// Locks that somebody may have to wait for.
fn write_locks(statement: &StatementTrace, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let all = strongest_locks(statement);
    let locks: Vec<&LockTrace> = all.iter().copied().filter(|lock| matters(lock, &all)).collect();
    let width = locks.iter().map(|lock| lock.relation.to_string().chars().count()).max().unwrap_or(0);
    for lock in locks {
        let relation = lock.relation.to_string();
        let mode = lock.mode.sql();
        writeln!(
            out,
            "        lock    {relation:width$}  {mode:22}  held {:>9}{}",
            held(lock.held),
            blocked(lock, style)
        )?;
    }
    Ok(())
}

fn blocked(lock: &LockTrace, style: Style) -> String {
    let blocks = blocks(lock);
    if blocks.contains(&"reads") {
        format!("  {}", style.red("blocks reads and writes"))
    } else if blocks.contains(&"writes") {
        format!("  {}", style.yellow("blocks writes"))
    } else if !lock.exposed {
        style.dim("  (new in this transaction)")
    } else {
        String::new()
    }
}

fn write_failure(traced: &TracedFile<'_>, failed: &Failure, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "        {}   {}", style.red("fails"), failure(traced, failed))?;
    for more in failed.detail.iter().chain(&failed.hint) {
        writeln!(out, "                {more}")?;
    }
    Ok(())
}

/// `relation "t" does not exist (42P01) at 3:15`.
pub(crate) fn failure(traced: &TracedFile<'_>, failure: &Failure) -> String {
    let place = failure.position.map(|offset| {
        let at = traced.position(offset);
        format!(" at {}:{}", at.line, at.column)
    });
    let why = if failure.timed_out { ", because it took longer than --statement-timeout" } else { "" };
    format!("{} ({}){}{why}", failure.message, failure.sqlstate, place.unwrap_or_default())
}

fn write_differences(report: &TraceReport<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if report.differences.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("Differences from the prediction"))?;
    for difference in &report.differences {
        let (path, range) = report.place(difference);
        let what = format!("{} {}", difference.what, difference.relation);
        writeln!(out, "  {path}:{}:{}: {}", range.start.line, range.start.column, what.trim_end())?;
        writeln!(out, "        predicted {}, observed {}", difference.predicted, difference.observed)?;
        if let Some(reason) = &difference.unknown {
            writeln!(out, "        pgvet could not predict this: {reason}")?;
        }
    }
    Ok(())
}

fn write_exceeded(report: &TraceReport<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if report.exceeded.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("Held longer than allowed"))?;
    for (at, exceeded) in &report.exceeded {
        let path = report.migrations[*at].path();
        let (blocked, limit) = (exceeded.blocked, exceeded.limit);
        let (relation, mode) = (&blocked.relation, blocked.mode.sql());
        let limit = format!("{}={}", limit.mode.sql().to_lowercase().replace(' ', "-"), time(limit.held));
        writeln!(out, "  {path}: {relation}  {mode}  {}  (limit {limit})", style.red(&held(blocked.held)))?;
    }
    Ok(())
}

/// `about 12.3 s at 50000000 rows of public.orders`.
pub(crate) fn extrapolated(found: &Extrapolation) -> String {
    let about = if found.sorts { "at least" } else { "about" };
    format!("{about} {} at {} rows of {}", time(found.duration), found.production_rows, found.relation)
}

pub(crate) fn summary(report: &TraceReport<'_>) -> String {
    let mut parts = vec![format!(
        "{} in {}",
        plural(report.statements(), "statement"),
        plural(report.migrations.len(), "migration")
    )];
    if report.failed() {
        parts.push("1 failed (later statements were not run)".to_owned());
    }
    let differences = report.differences.len();
    parts.push(match differences {
        0 => "every prediction matched".to_owned(),
        _ => plural(differences, "difference") + " from the prediction",
    });
    let findings = &report.findings.summary;
    parts.extend(counts(findings.errors, findings.warnings, findings.infos));
    if !report.exceeded.is_empty() {
        parts.push(format!("{} held too long", plural(report.exceeded.len(), "lock")));
    }
    parts.join("; ")
}

/// How many findings of each severity there are, where there are any.
pub(crate) fn counts(errors: usize, warnings: usize, infos: usize) -> Vec<String> {
    let counts = [(errors, "error"), (warnings, "warning"), (infos, "info")];
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(count, noun)).collect()
}

/// `123 ms`, with more digits where they mean something.
pub(crate) fn time(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1000.0;
    if milliseconds > 0.0 && milliseconds < 0.05 {
        "<0.1 ms".to_owned()
    } else if milliseconds < 10.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < 10_000.0 {
        format!("{milliseconds:.0} ms")
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

pub(crate) fn held(held: Held) -> String {
    time(held.best)
}

pub(crate) fn bytes(bytes: i64) -> String {
    if bytes < 10_240 {
        format!("{bytes} B")
    } else if bytes < 10_485_760 {
        format!("{} kB", bytes / 1024)
    } else {
        format!("{} MB", bytes / 1_048_576)
    }
}

fn dead_rows(growth: &Growth) -> String {
    format!("{}: {}, {}", growth.relation, plural_of(growth.dead_rows, "dead row"), sizes(growth))
}

fn sizes(growth: &Growth) -> String {
    format!("{} before, {} after", bytes(growth.bytes_before), bytes(growth.bytes_after))
}

fn plural_of(count: i64, noun: &str) -> String {
    plural(usize::try_from(count).unwrap_or_default(), noun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_the_digits_that_mean_something() {
        assert_eq!([0, 20, 340].map(|micros| time(Duration::from_micros(micros))), ["0.0 ms", "<0.1 ms", "0.3 ms"]);
        assert_eq!(time(Duration::from_micros(123_456)), "123 ms");
        assert_eq!(time(Duration::from_secs(75)), "75.0 s");
        assert_eq!([bytes(120), bytes(20_480), bytes(20_971_520)], ["120 B", "20 kB", "20 MB"]);
    }
}
