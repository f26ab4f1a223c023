//! When which lock was held: one row for each relation that others can see, and one for the statements below.

use super::{Escaped, statement_id};
use crate::report::trace::{TracedFile, blocks, matters};
use crate::report::trace_table::{held, time};
use pgvet_trace::{LockTrace, StatementTrace};
use std::fmt::{self, Write};
use std::time::Duration;

pub(super) fn write(at: usize, traced: &TracedFile<'_>, out: &mut String) -> fmt::Result {
    let statements = &traced.trace.statements;
    let ends = statements.iter().flat_map(|statement| {
        let locks = statement.locks.iter().map(|lock| lock.acquired + lock.held.best);
        locks.chain([statement.started + statement.duration])
    });
    let whole = ends.max().unwrap_or_default();
    let rows = rows(statements);
    if rows.is_empty() || whole.is_zero() {
        return Ok(());
    }
    out.push_str("<div class=\"timeline\">\n");
    for (relation, locks) in &rows {
        write!(out, "<div class=\"name\">{}</div><div class=\"track\">", Escaped(relation))?;
        for (statement, lock) in locks {
            let title = format!("{} on {relation}: held {}", lock.mode.sql(), held(lock.held));
            let id = statement_id(at, traced, statement);
            bar(out, lock.acquired, lock.held.best, whole, Blocking::of(lock).class(), &title, &id)?;
        }
        out.push_str("</div>\n");
    }
    out.push_str("<div class=\"name\">statements</div><div class=\"track\">");
    for statement in statements {
        let line = traced.line(statement);
        let title = format!("line {line}, {}: {}", time(statement.duration), statement.sql);
        let id = statement_id(at, traced, statement);
        bar(out, statement.started, statement.duration, whole, "statement", &title, &id)?;
    }
    let (half, end) = (time(whole / 2), time(whole));
    writeln!(out, "</div>\n<div class=\"scale\"><span>0</span><span>{half}</span><span>{end}</span></div>\n</div>")
}

/// A lock, and the statement that took it.
type Taken<'a> = (&'a StatementTrace, &'a LockTrace);

/// The locks that somebody may wait for, by relation, in the order in which the relations are locked.
fn rows(statements: &[StatementTrace]) -> Vec<(String, Vec<Taken<'_>>)> {
    let mut rows: Vec<(String, Vec<Taken<'_>>)> = Vec::new();
    for statement in statements {
        let all: Vec<&LockTrace> = statement.locks.iter().collect();
        for lock in statement.locks.iter().filter(|lock| lock.exposed && matters(lock, &all)) {
            let name = lock.relation.to_string();
            match rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, locks)) => locks.push((statement, lock)),
                None => rows.push((name, vec![(statement, lock)])),
            }
        }
    }
    rows
}

fn bar(
    out: &mut String,
    from: Duration,
    length: Duration,
    whole: Duration,
    class: &str,
    title: &str,
    id: &str,
) -> fmt::Result {
    let percent = |part: Duration| part.as_secs_f64() / whole.as_secs_f64() * 100.0;
    write!(
        out,
        "<a class=\"bar {class}\" href=\"#{}\" style=\"left:{:.3}%;width:{:.3}%\" title=\"{}\"></a>",
        Escaped(id),
        percent(from),
        percent(length),
        Escaped(title)
    )
}

/// The legend of the colours of bars.
pub(super) fn legend() -> String {
    let kinds = [Blocking::Reads, Blocking::Writes, Blocking::Schema, Blocking::Nobody];
    let key = |kind: Blocking| format!("<span><i class=\"key {}\"></i>{}</span> ", kind.class(), kind.text());
    format!("<p class=\"legend\">{}</p>\n", kinds.map(key).concat())
}

/// The work that a lock blocks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Blocking {
    Reads,
    Writes,
    Schema,
    Nobody,
}

impl Blocking {
    pub(super) fn of(lock: &LockTrace) -> Self {
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

    pub(super) fn short(self) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_where_their_time_is() {
        let mut out = String::new();
        let second = Duration::from_secs;
        bar(&mut out, second(1), second(2), second(4), "reads", "a \"b\"", "m0-1").unwrap();
        assert!(out.contains("left:25.000%;width:50.000%") && out.contains("a &quot;b&quot;"), "{out}");
    }
}
