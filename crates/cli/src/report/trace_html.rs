//! Measures as one page that needs nothing else: a timeline of locks for each migration, and tables that sort.

mod table;
mod timeline;

use super::plural;
use super::trace::{TraceReport, TracedFile, evidence, strongest_locks};
use super::trace_table::{
    bytes, cancelled, counts, deadlock_lines, extrapolated, failure, held, summary, time, totals,
};
use pgvet_linter::severity::Severity;
use pgvet_syntax::ast::LockMode;
use pgvet_trace::{Blocked, CanaryTrace, Deadlock, StatementTrace, WorkloadTrace};
use std::fmt::{self, Display, Write};
use table::{Cell, Table};

const STYLE: &str = include_str!("trace_html/style.css");
const SCRIPT: &str = include_str!("trace_html/script.js");

/// The whole page.
pub(crate) fn page(report: &TraceReport<'_>) -> String {
    let mut page = String::new();
    // Writing into a text does not fail.
    let _ = write_page(report, &mut page);
    page
}

fn write_page(report: &TraceReport<'_>, out: &mut String) -> fmt::Result {
    let trace = report.trace;
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>pgvet trace</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>pgvet trace</h1>\n\
         <p class=\"summary\">{}</p>\n<p>Measured on PostgreSQL {} ({}).</p>\n",
        Escaped(summary(report)),
        Escaped(&trace.server_version),
        trace.provider
    )?;
    for note in &trace.notes {
        writeln!(out, "<p class=\"note\">{}</p>", Escaped(note))?;
    }
    if !report.findings.findings.is_empty() {
        out.push_str(
            "<p class=\"note\"><code>pgvet explain RULE</code> says more about a finding, \
             <code>pgvet rewrite FILE</code> writes safer migrations that replace FILE.</p>\n",
        );
    }
    out.push_str(&timeline::legend());
    write_exceeded(report, out)?;
    write_overview(report, out)?;
    for (at, migration) in report.migrations.iter().enumerate() {
        write_migration(report, at, migration, out)?;
    }
    write_differences(report, out)?;
    write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}

/// Where links to a migration lead.
fn migration_id(at: usize) -> String {
    format!("m{at}")
}

/// Where links to a statement lead; to its migration for what the tool adds.
fn statement_id(at: usize, traced: &TracedFile<'_>, statement: &StatementTrace) -> String {
    let migration = migration_id(at);
    if statement.range.is_empty() { migration } else { format!("{migration}-{}", traced.line(statement)) }
}

fn write_exceeded(report: &TraceReport<'_>, out: &mut String) -> fmt::Result {
    if report.exceeded.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>Held longer than allowed</h2>\n");
    let mut table = Table::new(["Migration", "Relation", "Lock", "Held", "Limit"]);
    for (at, exceeded) in &report.exceeded {
        let (blocked, limit) = (exceeded.blocked, exceeded.limit);
        table.row([
            Cell::text(report.migrations[*at].path()).to(&migration_id(*at)),
            Cell::text(&blocked.relation),
            Cell::text(blocked.mode.sql()),
            Cell::number(blocked.held.best.as_micros(), held(blocked.held)),
            Cell::number(limit.held.as_micros(), time(limit.held)),
        ]);
    }
    table.write(out)
}

/// One line for each migration, where there are several.
fn write_overview(report: &TraceReport<'_>, out: &mut String) -> fmt::Result {
    if report.migrations.len() < 2 {
        return Ok(());
    }
    out.push_str("<h2>Migrations</h2>\n");
    let mut table = Table::new(["Migration", "Time", "Longest lock", "On", "Held", "Findings", "Outcome"]);
    for (at, traced) in report.migrations.iter().enumerate() {
        let longest = longest(traced);
        let findings = report.findings_in(traced);
        let of = |severity| findings.iter().filter(|finding| finding.diagnostic.severity == severity).count();
        let (errors, warnings, infos) = (of(Severity::Error), of(Severity::Warning), of(Severity::Info));
        let failed = traced.trace.failure().is_some();
        let cells = [
            Cell::text(traced.path()).to(&migration_id(at)),
            Cell::number(traced.trace.duration.as_micros(), time(traced.trace.duration)),
            Cell::text(longest.map_or("", |lock| lock.mode.sql())),
            Cell::text(longest.map(|lock| lock.relation.to_string()).unwrap_or_default()),
            Cell::number(
                longest.map_or(0, |lock| lock.held.best.as_micros()),
                longest.map(|lock| held(lock.held)).unwrap_or_default(),
            ),
            Cell::text(counts(errors, warnings, infos).join(", ")),
            Cell::text(if failed { "failed" } else { "" }),
        ];
        table.place(String::new(), if failed { "failed" } else { "" }, cells);
    }
    table.write(out)
}

/// The lock that kept writes out of a table for longest.
fn longest<'a>(traced: &TracedFile<'a>) -> Option<&'a Blocked> {
    let blocked = traced.trace.transactions.iter().flat_map(|transaction| &transaction.blocked);
    let tables = blocked.filter(|blocked| blocked.mode >= LockMode::Share && !blocked.relation.is_index());
    tables.max_by_key(|blocked| blocked.held.best)
}

fn write_migration(report: &TraceReport<'_>, at: usize, traced: &TracedFile<'_>, out: &mut String) -> fmt::Result {
    let trace = traced.trace;
    let (id, path) = (migration_id(at), Escaped(traced.path()));
    let totals = format!("{}, {}", time(trace.duration), totals(trace).join(", "));
    writeln!(out, "<section id=\"{id}\">\n<h2>{path} <small>{}</small></h2>", Escaped(&totals))?;
    for note in &trace.notes {
        writeln!(out, "<p class=\"note\">{}</p>", Escaped(note))?;
    }
    if let Some((statement, failed)) = trace.failure() {
        let (id, line) = (statement_id(at, traced, statement), traced.line(statement));
        let said = Escaped(failure(traced, failed));
        write!(out, "<p class=\"failure\"><a href=\"#{id}\">Line {line}</a> fails: {said}")?;
        for more in failed.detail.iter().chain(&failed.hint) {
            write!(out, "<br>{}", Escaped(more))?;
        }
        out.push_str("</p>\n");
    }
    timeline::write(at, traced, out)?;
    write_findings(report, at, traced, out)?;
    write_statements(report, at, traced, out)?;
    write_canaries(&trace.canaries, out)?;
    write_workload(&trace.workload, out)?;
    write_deadlocks(&trace.deadlocks, out)?;
    out.push_str("</section>\n");
    Ok(())
}

fn write_findings(report: &TraceReport<'_>, at: usize, traced: &TracedFile<'_>, out: &mut String) -> fmt::Result {
    let findings = report.findings_in(traced);
    if findings.is_empty() {
        return Ok(());
    }
    out.push_str("<h3>Findings</h3>\n");
    let mut table = Table::new(["Line", "Severity", "Rule", "Finding", "Next step", "Evidence"]);
    for finding in findings {
        let (found, line) = (finding.diagnostic, finding.start.line);
        let severity = found.severity.as_str();
        let place = Cell::number(line.into(), line);
        let cells = [
            match traced.statement_of(finding) {
                Some(statement) => place.to(&statement_id(at, traced, statement)),
                None => place,
            },
            Cell::text(severity),
            Cell::text(found.rule),
            Cell::prose(&found.message),
            Cell::help(found.help.as_deref().unwrap_or_default()),
            Cell::text(evidence(found.evidence)),
        ];
        table.place(String::new(), severity, cells);
    }
    table.write(out)
}

fn write_statements(report: &TraceReport<'_>, at: usize, traced: &TracedFile<'_>, out: &mut String) -> fmt::Result {
    out.push_str("<h3>Statements</h3>\n");
    let titles = [
        "Line",
        "Statement",
        "Time",
        "Extrapolated",
        "Strongest lock",
        "On",
        "Held",
        "Blocks",
        "Rows read",
        "Rewrites",
        "WAL",
    ];
    let mut table = Table::new(titles);
    for statement in traced.statements() {
        let lock = strongest_locks(statement).into_iter().find(|lock| lock.mode >= LockMode::ShareUpdateExclusive);
        let line = traced.line(statement);
        let grown = report.extrapolation(traced, statement);
        let rows: i64 = statement.scans.iter().map(|scan| scan.rows).sum();
        let rewrites: Vec<String> = statement.rewrites.iter().map(ToString::to_string).collect();
        let cells = [
            Cell::number(line.into(), line),
            Cell::code(&statement.sql),
            Cell::number(statement.duration.as_micros(), time(statement.duration)),
            Cell::text(grown.as_ref().map(extrapolated).unwrap_or_default())
                .sorted_by(grown.as_ref().map_or(0, |found| found.duration.as_micros())),
            Cell::text(lock.map_or("", |lock| lock.mode.sql())),
            Cell::text(lock.map(|lock| lock.relation.to_string()).unwrap_or_default()),
            Cell::number(
                lock.map_or(0, |lock| lock.held.best.as_micros()),
                lock.map(|lock| held(lock.held)).unwrap_or_default(),
            ),
            Cell::text(lock.map_or("", |lock| timeline::Blocking::of(lock).short())),
            Cell::number(rows.unsigned_abs().into(), if rows > 0 { rows.to_string() } else { String::new() }),
            Cell::text(rewrites.join(", ")),
            Cell::number(statement.wal_bytes.unsigned_abs().into(), bytes(statement.wal_bytes)),
        ];
        let class = if statement.failure.is_some() { "failed" } else { "" };
        table.place(statement_id(at, traced, statement), class, cells);
    }
    table.write(out)
}

fn write_canaries(canaries: &[CanaryTrace], out: &mut String) -> fmt::Result {
    if canaries.is_empty() {
        return Ok(());
    }
    out.push_str("<h3>Other sessions waited</h3>\n");
    let mut table = Table::new(["Relation", "What waited", "At most", "Probes"]);
    for canary in canaries {
        table.row([
            Cell::text(&canary.relation),
            Cell::text(canary.blocked),
            Cell::number(canary.longest_wait.as_micros(), time(canary.longest_wait)),
            Cell::number(canary.probes as u128, canary.probes),
        ]);
    }
    table.write(out)
}

fn write_workload(workload: &[WorkloadTrace], out: &mut String) -> fmt::Result {
    if workload.is_empty() {
        return Ok(());
    }
    out.push_str("<h3>Workload</h3>\n");
    let titles = [
        "Where",
        "Statement",
        "Median before",
        "Median during",
        "Median after",
        "Longest during",
        "Refused",
        "After at most",
        "Why",
    ];
    let mut table = Table::new(titles);
    for client in workload {
        let latency = [client.before.median, client.during.median, client.after.median, client.during.longest];
        let [before, during, after, longest] = latency.map(|latency| Cell::number(latency.as_micros(), time(latency)));
        table.row([
            Cell::text(&client.place),
            Cell::code(&client.sql),
            before,
            during,
            after,
            longest,
            Cell::number(client.refused.runs as u128, client.refused.runs),
            Cell::number(client.refused.longest.as_micros(), time(client.refused.longest)),
            Cell::text(client.error.as_deref().unwrap_or_default()),
        ]);
    }
    table.write(out)
}

fn write_deadlocks(deadlocks: &[Deadlock], out: &mut String) -> fmt::Result {
    for deadlock in deadlocks {
        writeln!(out, "<h3>Deadlock</h3>\n<p>{}</p>", Escaped(cancelled(deadlock)))?;
        writeln!(out, "<pre>{}</pre>", Escaped(deadlock_lines(deadlock).join("\n")))?;
    }
    Ok(())
}

fn write_differences(report: &TraceReport<'_>, out: &mut String) -> fmt::Result {
    if report.differences.is_empty() {
        return Ok(());
    }
    let count = plural(report.differences.len(), "difference");
    writeln!(out, "<h2>Differences from the prediction <small>{count}</small></h2>")?;
    let mut table =
        Table::new(["Where", "What", "Relation", "Predicted", "Observed", "Why pgvet could not predict it"]);
    for difference in &report.differences {
        let (path, range) = report.place(difference);
        table.row([
            Cell::text(format!("{path}:{}", range.start.line)),
            Cell::text(difference.what),
            Cell::text(&difference.relation),
            Cell::text(&difference.predicted),
            Cell::text(&difference.observed),
            Cell::text(difference.unknown.as_deref().unwrap_or_default()),
        ]);
    }
    table.write(out)
}

/// Text in HTML, in attributes too.
struct Escaped<T>(T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string().chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_migration_cannot_become_markup() {
        let text = "<script>alert('1 & \"2\"')</script>";
        assert_eq!(Escaped(text).to_string(), "&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;");
    }
}
