//! Measures as one page that needs nothing else: a timeline of locks for each migration, and tables that sort.

use super::plural;
use super::trace::{TraceReport, TracedFile, blocks, evidence, strongest_locks};
use super::trace_table::{bytes, extrapolated, held, plural_of, summary, time};
use pgvet_linter::effect::LockMode;
use pgvet_trace::{LockTrace, StatementTrace, WorkloadTrace};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};
use std::time::Duration;

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
    write_legend(out)?;
    write_exceeded(report, out)?;
    write_findings(report, out)?;
    for migration in &report.migrations {
        write_migration(report, migration, out)?;
    }
    write_differences(report, out)?;
    write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}

fn write_legend(out: &mut String) -> fmt::Result {
    let kinds = [Blocking::Reads, Blocking::Writes, Blocking::Schema, Blocking::Nobody];
    let keys: String =
        kinds.map(|kind| format!("<span class=\"key {}\"></span>{} ", kind.class(), kind.text())).concat();
    writeln!(out, "<p class=\"legend\">{keys}</p>")
}

fn write_exceeded(report: &TraceReport<'_>, out: &mut String) -> fmt::Result {
    if report.exceeded.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Held longer than allowed</h2>\n<table>")?;
    head(out, &["Migration", "Relation", "Lock", "Held", "Limit"])?;
    for (at, exceeded) in &report.exceeded {
        let (blocked, limit) = (exceeded.blocked, exceeded.limit);
        out.push_str("<tr>");
        cell(out, report.migrations[*at].path())?;
        cell(out, &blocked.relation)?;
        cell(out, blocked.mode.sql())?;
        number(out, blocked.held.best.as_micros(), held(blocked.held))?;
        number(out, limit.held.as_micros(), time(limit.held))?;
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    Ok(())
}

fn write_findings(report: &TraceReport<'_>, out: &mut String) -> fmt::Result {
    let findings = &report.findings.findings;
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Findings <small>{}</small></h2>\n<table>", findings.len())?;
    head(out, &["Where", "Severity", "Rule", "Finding", "Next step", "Evidence"])?;
    for finding in findings {
        let found = finding.diagnostic;
        write!(out, "<tr class=\"{}\">", found.severity.as_str())?;
        cell(out, format!("{}:{}", finding.path, finding.start.line))?;
        cell(out, found.severity.as_str())?;
        cell(out, found.rule)?;
        cell(out, &found.message)?;
        write!(out, "<td class=\"help\">{}</td>", Escaped(found.help.as_deref().unwrap_or_default()))?;
        cell(out, evidence(found.evidence))?;
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    Ok(())
}

fn write_migration(report: &TraceReport<'_>, traced: &TracedFile<'_>, out: &mut String) -> fmt::Result {
    let trace = traced.trace;
    let totals =
        format!("{}, {}, {} of WAL", time(trace.duration), plural_of(trace.xids, "XID"), bytes(trace.wal_bytes));
    writeln!(out, "<section>\n<h2>{} <small>{totals}</small></h2>", Escaped(traced.path()))?;
    for note in &trace.notes {
        writeln!(out, "<p class=\"note\">{}</p>", Escaped(note))?;
    }
    if let Some((_, failure)) = trace.failure() {
        writeln!(out, "<p class=\"failure\">{} ({})</p>", Escaped(&failure.message), failure.sqlstate)?;
    }
    write_timeline(traced, out)?;
    write_statements(report, traced, out)?;
    write_workload(&trace.workload, out)?;
    out.push_str("</section>\n");
    Ok(())
}

/// One row for each relation that others can see, and one for the statements below.
fn write_timeline(traced: &TracedFile<'_>, out: &mut String) -> fmt::Result {
    let trace = traced.trace;
    let ends = trace.statements.iter().flat_map(|statement| {
        let locks = statement.locks.iter().map(|lock| lock.acquired + lock.held.best);
        locks.chain([statement.started + statement.duration])
    });
    let whole = ends.max().unwrap_or_default();
    let rows = rows(&trace.statements);
    if rows.is_empty() || whole.is_zero() {
        return Ok(());
    }
    out.push_str("<div class=\"timeline\">\n");
    for (relation, locks) in &rows {
        write!(out, "<div class=\"name\">{}</div><div class=\"track\">", Escaped(relation))?;
        for lock in locks {
            let title = format!("{} on {relation}: held {}", lock.mode.sql(), held(lock.held));
            bar(out, lock.acquired, lock.held.best, whole, Blocking::of(lock).class(), &title)?;
        }
        out.push_str("</div>\n");
    }
    out.push_str("<div class=\"name\">statements</div><div class=\"track axis\">");
    for statement in &trace.statements {
        let line = traced.line(statement);
        let title = format!("line {line}, {}: {}", time(statement.duration), statement.sql);
        bar(out, statement.started, statement.duration, whole, "statement", &title)?;
    }
    let end = time(whole);
    writeln!(out, "</div>\n<div></div><div class=\"scale\"><span>0</span><span>{end}</span></div>\n</div>")
}

/// The locks that somebody may wait for, by relation, in the order in which the relations are locked.
fn rows(statements: &[StatementTrace]) -> Vec<(String, Vec<&LockTrace>)> {
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let mut rows: Vec<(String, Vec<&LockTrace>)> = Vec::new();
    for lock in statements.iter().flat_map(|statement| &statement.locks) {
        let weakest = if lock.relation.is_index() { LockMode::Share } else { LockMode::ShareUpdateExclusive };
        if !lock.exposed || lock.mode < weakest {
            continue;
        }
        let place = *places.entry(lock.relation.oid).or_insert_with(|| {
            rows.push((lock.relation.to_string(), Vec::new()));
            rows.len() - 1
        });
        rows[place].1.push(lock);
    }
    rows
}

fn bar(out: &mut String, from: Duration, length: Duration, whole: Duration, class: &str, title: &str) -> fmt::Result {
    let percent = |part: Duration| part.as_secs_f64() / whole.as_secs_f64() * 100.0;
    write!(
        out,
        "<span class=\"bar {class}\" style=\"left:{:.3}%;width:{:.3}%\" title=\"{}\"></span>",
        percent(from),
        percent(length),
        Escaped(title)
    )
}

fn write_statements(report: &TraceReport<'_>, traced: &TracedFile<'_>, out: &mut String) -> fmt::Result {
    out.push_str("<table>\n");
    head(
        out,
        &[
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
        ],
    )?;
    for statement in traced.statements() {
        let lock = strongest_locks(statement).into_iter().find(|lock| lock.mode >= LockMode::ShareUpdateExclusive);
        let line = traced.line(statement);
        out.push_str("<tr>");
        number(out, line.into(), line)?;
        write!(out, "<td><code>{}</code></td>", Escaped(&statement.sql))?;
        number(out, statement.duration.as_micros(), time(statement.duration))?;
        let grown = report.extrapolation(traced, statement);
        let key = grown.as_ref().map_or(0, |found| found.duration.as_micros());
        number(out, key, grown.as_ref().map(extrapolated).unwrap_or_default())?;
        cell(out, lock.map_or("", |lock| lock.mode.sql()))?;
        cell(out, lock.map(|lock| lock.relation.to_string()).unwrap_or_default())?;
        number(
            out,
            lock.map_or(0, |lock| lock.held.best.as_micros()),
            lock.map(|lock| held(lock.held)).unwrap_or_default(),
        )?;
        cell(out, lock.map_or("", |lock| Blocking::of(lock).short()))?;
        let rows: i64 = statement.scans.iter().map(|scan| scan.rows).sum();
        let shown = if rows > 0 { rows.to_string() } else { String::new() };
        number(out, rows.unsigned_abs().into(), shown)?;
        let rewrites: Vec<String> = statement.rewrites.iter().map(ToString::to_string).collect();
        cell(out, rewrites.join(", "))?;
        number(out, statement.wal_bytes.unsigned_abs().into(), bytes(statement.wal_bytes))?;
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    Ok(())
}

fn write_workload(workload: &[WorkloadTrace], out: &mut String) -> fmt::Result {
    if workload.is_empty() {
        return Ok(());
    }
    out.push_str("<h3>Workload</h3>\n<table>\n");
    head(
        out,
        &["Where", "Statement", "Median before", "Median during", "Median after", "Longest during", "Refused", "Why"],
    )?;
    for client in workload {
        out.push_str("<tr>");
        cell(out, &client.place)?;
        write!(out, "<td><code>{}</code></td>", Escaped(&client.sql))?;
        for latency in [client.before.median, client.during.median, client.after.median, client.during.longest] {
            number(out, latency.as_micros(), time(latency))?;
        }
        number(out, client.errors as u128, client.errors)?;
        cell(out, client.error.as_deref().unwrap_or_default())?;
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    Ok(())
}

fn write_differences(report: &TraceReport<'_>, out: &mut String) -> fmt::Result {
    if report.differences.is_empty() {
        return Ok(());
    }
    let count = plural(report.differences.len(), "difference");
    writeln!(out, "<h2>The model and the server differ <small>{count}</small></h2>\n<table>")?;
    head(out, &["Where", "What", "Relation", "Predicted", "Observed", "Why the model may not know"])?;
    for difference in &report.differences {
        let (path, range) = report.place(difference);
        out.push_str("<tr>");
        cell(out, format!("{path}:{}", range.start.line))?;
        cell(out, difference.what)?;
        cell(out, &difference.relation)?;
        cell(out, &difference.predicted)?;
        cell(out, &difference.observed)?;
        cell(out, difference.unknown.as_deref().unwrap_or_default())?;
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    Ok(())
}

fn head(out: &mut String, titles: &[&str]) -> fmt::Result {
    out.push_str("<thead><tr>");
    for title in titles {
        write!(out, "<th><button>{title}</button></th>")?;
    }
    writeln!(out, "</tr></thead><tbody>")
}

fn cell(out: &mut String, text: impl Display) -> fmt::Result {
    write!(out, "<td>{}</td>", Escaped(text))
}

/// A cell that sorts by a number.
fn number(out: &mut String, key: u128, text: impl Display) -> fmt::Result {
    write!(out, "<td class=\"number\" data-key=\"{key}\">{}</td>", Escaped(text))
}

/// What a lock stops.
#[derive(Debug, Clone, Copy)]
enum Blocking {
    Reads,
    Writes,
    Schema,
    Nobody,
}

impl Blocking {
    fn of(lock: &LockTrace) -> Self {
        let blocks = blocks(lock);
        if blocks.contains(&"reads") {
            Self::Reads
        } else if blocks.contains(&"writes") {
            Self::Writes
        } else if blocks.contains(&"ddl") {
            Self::Schema
        } else {
            Self::Nobody
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Schema => "schema",
            Self::Nobody => "nobody",
        }
    }

    fn short(self) -> &'static str {
        match self {
            Self::Reads => "reads, writes",
            Self::Writes => "writes",
            Self::Schema => "schema changes",
            Self::Nobody => "",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Reads => "blocks reads and writes",
            Self::Writes => "blocks writes",
            Self::Schema => "blocks schema changes and VACUUM",
            Self::Nobody => "blocks nobody",
        }
    }
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

    #[test]
    fn bars_lie_where_their_time_is() {
        let mut out = String::new();
        let second = Duration::from_secs;
        bar(&mut out, second(1), second(2), second(4), "reads", "a \"b\"").unwrap();
        assert!(out.contains("left:25.000%;width:50.000%") && out.contains("a &quot;b&quot;"), "{out}");
    }
}
