//! Measures for the page of a job or a comment on a pull request, in GitHub's markdown.

use super::trace::{TraceReport, TracedFile, blocks, strongest_locks};
use super::trace_table::{cancelled, deadlock_lines, extrapolated, held, summary, time};
use super::{excerpt, plural, rule_url};
use pgvet_syntax::ast::LockMode;
use pgvet_trace::{Latency, Relation, StatementTrace};
use pgvet_workspace::markup::{self, cell, code, code_cell};
use std::io::{self, Write};

/// Pages of jobs and comments are limited in length.
const MOST: usize = 100;

pub(crate) fn write(report: &TraceReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let trace = report.trace;
    writeln!(out, "## pgvet trace\n\n{}\n", summary(report))?;
    writeln!(out, "Measured on PostgreSQL {} ({}).", trace.server_version, trace.provider)?;
    for note in &trace.notes {
        writeln!(out, "\n> [!NOTE]\n> {}", markup::prose(note))?;
    }
    if !report.exceeded.is_empty() {
        writeln!(
            out,
            "\n### Held longer than allowed\n\n| Migration | Relation | Lock | Held | Limit |\n|---|---|---|---|---|"
        )?;
    }
    for (at, exceeded) in &report.exceeded {
        let path = report.migrations[*at].path();
        let (blocked, limit) = (exceeded.blocked, exceeded.limit);
        let (relation, mode) = (code_cell(&blocked.relation.to_string()), blocked.mode.sql());
        let (held, most) = (held(blocked.held), time(limit.held));
        writeln!(out, "| {} | {relation} | {mode} | **{held}** | {most} |", code_cell(path))?;
    }
    write_findings(report, out)?;
    for migration in report.migrations.iter().take(MOST) {
        write_migration(report, migration, out)?;
    }
    if let Some(more) = report.migrations.len().checked_sub(MOST).filter(|more| *more > 0) {
        writeln!(out, "\nand {} more.", plural(more, "migration"))?;
    }
    write_differences(report, out)
}

fn write_migration(report: &TraceReport<'_>, traced: &TracedFile<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n### {}\n", code(traced.path()))?;
    writeln!(
        out,
        "| Line | Statement | Time | Strongest lock | Held | Blocks | Work |\n|--:|---|--:|---|--:|---|---|"
    )?;
    for statement in traced.statements() {
        let line = traced.line(statement);
        let (sql, duration) = (code_cell(&excerpt(&statement.sql)), time(statement.duration));
        let grown = report.extrapolation(traced, statement);
        let grown = grown.map(|found| format!("; {} (extrapolated)", extrapolated(&found))).unwrap_or_default();
        let (lock, held, blocked) = strongest(statement);
        writeln!(out, "| {line} | {sql} | {duration}{grown} | {lock} | {held} | {blocked} | {} |", work(statement))?;
    }
    if !traced.trace.workload.is_empty() {
        writeln!(
            out,
            "\n| Workload | Before: median, longest | During | After | Refused: times, longest |\n|---|---|---|---|---|"
        )?;
    }
    for workload in &traced.trace.workload {
        let latency = |latency: Latency| match latency.runs {
            0 => String::new(),
            _ => format!("{}, {}", time(latency.median), time(latency.longest)),
        };
        let phases = [workload.before, workload.during, workload.after].map(latency).join(" | ");
        let (place, sql) = (code_cell(&workload.place), code_cell(&excerpt(&workload.sql)));
        let refused = match workload.refused {
            Latency { runs: 0, .. } => String::new(),
            Latency { runs, longest, .. } => format!("{runs}, {}", time(longest)),
        };
        writeln!(out, "| {place} {sql} | {phases} | {refused} |")?;
    }
    for deadlock in &traced.trace.deadlocks {
        writeln!(out, "\nDeadlock: {}\n", markup::prose(&cancelled(deadlock)))?;
        for line in deadlock_lines(deadlock) {
            writeln!(out, "- {}", code(line.trim_start()))?;
        }
    }
    if let Some((_, failure)) = traced.trace.failure() {
        writeln!(out, "\n> [!CAUTION]\n> {} ({})", markup::prose(&failure.message), failure.sqlstate)?;
    }
    Ok(())
}

fn write_findings(report: &TraceReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let findings = &report.findings.findings;
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Findings\n\n| Where | Rule | Finding | Evidence |\n|---|---|---|---|")?;
    for finding in findings.iter().take(MOST) {
        let found = finding.diagnostic;
        let (path, line, url) = (finding.path, finding.start.line, rule_url(found.rule));
        let (severity, message) = (found.severity.as_str(), cell(&found.message));
        let evidence = super::trace::evidence(found.evidence);
        let place = code_cell(&format!("{path}:{line}"));
        writeln!(out, "| {place} | {severity} [{}]({url}) | {message} | {evidence} |", found.rule)?;
    }
    match findings.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => writeln!(out, "\nand {more} more."),
    }
}

/// The strongest lock that somebody may wait for: its mode and relation, how long, and what it blocks.
fn strongest(statement: &StatementTrace) -> (String, String, String) {
    let locks = strongest_locks(statement);
    let Some(lock) = locks.first().filter(|lock| lock.mode >= LockMode::ShareUpdateExclusive) else {
        return Default::default();
    };
    let blocks = blocks(lock);
    let blocked = if blocks.contains(&"reads") {
        "reads, writes"
    } else if blocks.contains(&"writes") {
        "writes"
    } else {
        ""
    };
    (format!("{} {}", lock.mode.sql(), code_cell(&lock.relation.to_string())), held(lock.held), blocked.to_owned())
}

fn work(statement: &StatementTrace) -> String {
    let name = |relation: &Relation| code_cell(&relation.to_string());
    let names = |relations: &[Relation]| relations.iter().map(name).collect::<Vec<_>>();
    let scans: Vec<String> = statement.scans.iter().map(|scan| name(&scan.relation)).collect();
    let lists =
        [("rewrites", names(&statement.rewrites)), ("scans", scans), ("builds", names(&statement.index_builds))];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    lists.map(|(verb, names)| format!("{verb} {}", names.join(", "))).collect::<Vec<_>>().join("; ")
}

fn write_differences(report: &TraceReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    if report.differences.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n### Differences from the prediction\n\n| Where | What | Predicted | Observed |\n|---|---|---|---|"
    )?;
    for difference in report.differences.iter().take(MOST) {
        let (path, range) = report.place(difference);
        let line = range.start.line;
        let what = cell(&format!("{} {}", difference.what, difference.relation));
        let (predicted, observed) = (cell(&difference.predicted), cell(&difference.observed));
        let place = code_cell(&format!("{path}:{line}"));
        writeln!(out, "| {place} | {} | {predicted} | {observed} |", what.trim_end())?;
    }
    Ok(())
}
