//! The statements that a server ran against those that pgvet reads.

use super::Recorded;
use pgvet_syntax::lexer::tokenize;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{self, PlaceholderKind, Statement};
use std::fmt;

/// How what pgvet reads differs from what a server ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Same,
    /// It differs, and pgvet reports a place of the script that it cannot be sure of, or an error.
    Reported(Difference),
    /// pgvet reads statements that were not run, and every statement that was.
    Phantom(Difference),
    /// A statement ran that pgvet neither reads nor reports anything about.
    Hidden(Difference),
}

/// Statements without blanks and comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Run, and not read.
    pub hidden: Vec<String>,
    /// Read, and not run.
    pub phantom: Vec<String>,
}

impl Verdict {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Reported(_) => "reported",
            Self::Phantom(_) => "phantom",
            Self::Hidden(_) => "hidden",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => Ok(()),
            Self::Reported(difference) | Self::Phantom(difference) | Self::Hidden(difference) => {
                write!(f, "run and not read: {:?}; read and not run: {:?}", difference.hidden, difference.phantom)
            }
        }
    }
}

/// Compares a recorded script with what pgvet reads.
pub fn compare(case: &Recorded) -> Verdict {
    let statements = statement::parse(&case.script);
    let read: Vec<Shape> =
        statements.iter().filter(|read| read.parsed.is_ok()).map(|read| Shape::of_read(&case.script, read)).collect();
    let ran: Vec<Shape> = case.ran.iter().map(|sql| Shape::of_sql(sql)).collect();
    let Some(difference) = difference(&ran, &read) else { return Verdict::Same };
    let split = statement::split(&case.script);
    let is_refused = statements.iter().any(|statement| statement.parsed.is_err());
    if is_refused || !split.doubts.is_empty() || !split.problems.is_empty() {
        Verdict::Reported(difference)
    } else if difference.hidden.is_empty() {
        Verdict::Phantom(difference)
    } else {
        Verdict::Hidden(difference)
    }
}

/// The tokens of a statement. Values that replace variables of psql can be anything.
#[derive(Debug)]
struct Shape {
    parts: Vec<String>,
}

impl Shape {
    fn of_sql(sql: &str) -> Self {
        Self { parts: vec![tokens(sql)] }
    }

    fn of_read(text: &str, statement: &Statement) -> Self {
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut from = statement.range.start;
        for placeholder in &statement.placeholders {
            if placeholder.range.start < from {
                continue;
            }
            part.push_str(&text[TextRange::new(from, placeholder.range.start).as_usize()]);
            from = placeholder.range.end;
            if placeholder.kind == PlaceholderKind::MetaCommand {
                part.push(' ');
            } else {
                parts.push(tokens(&std::mem::take(&mut part)));
            }
        }
        part.push_str(&text[TextRange::new(from, statement.range.end).as_usize()]);
        parts.push(tokens(&part));
        Self { parts }
    }

    fn matches(&self, read: &Self) -> bool {
        let mut rest = self.parts[0].as_str();
        let (last, parts) = read.parts.split_last().expect("a statement has a text");
        if parts.is_empty() {
            return rest == last;
        }
        for (at, part) in parts.iter().enumerate() {
            let Some(found) = rest.find(part.trim()).filter(|found| at > 0 || *found == 0) else { return false };
            rest = &rest[found + part.trim().len()..];
        }
        rest.ends_with(last.trim())
    }
}

fn tokens(sql: &str) -> String {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    let tokens = tokenize(sql, TextRange::new(0, sql.len() as u32));
    tokens.iter().map(|token| token.text(sql)).collect::<Vec<_>>().join(" ")
}

/// Statements that only one of them has, in order; `None` if both are the same. A statement with a placeholder may be
/// anything, and so may be missing.
fn difference(ran: &[Shape], read: &[Shape]) -> Option<Difference> {
    let common = common(ran, read);
    let only = |shapes: &[Shape], common: &[usize]| -> Vec<String> {
        let others = shapes.iter().enumerate().filter(|(at, shape)| !common.contains(at) && shape.parts.len() == 1);
        others.map(|(_, shape)| shape.parts[0].clone()).collect()
    };
    let (ran_common, read_common): (Vec<usize>, Vec<usize>) = common.into_iter().unzip();
    let difference = Difference { hidden: only(ran, &ran_common), phantom: only(read, &read_common) };
    (difference != Difference { hidden: Vec::new(), phantom: Vec::new() }).then_some(difference)
}

/// The indexes of a common subsequence: the longest one, where a placeholder is worth half of a statement.
fn common(ran: &[Shape], read: &[Shape]) -> Vec<(usize, usize)> {
    let worth = |ran: &Shape, read: &Shape| match (ran.matches(read), read.parts.len()) {
        (false, _) => 0,
        (true, 1) => 2,
        (true, _) => 1,
    };
    let mut worths = vec![vec![0; read.len() + 1]; ran.len() + 1];
    for (at, one) in ran.iter().enumerate().rev() {
        for (other_at, other) in read.iter().enumerate().rev() {
            let apart = worths[at + 1][other_at].max(worths[at][other_at + 1]);
            worths[at][other_at] = apart.max(worths[at + 1][other_at + 1] + worth(one, other));
        }
    }
    let (mut at, mut other_at, mut common) = (0, 0, Vec::new());
    while at < ran.len() && other_at < read.len() {
        let best = worths[at][other_at];
        if best == worths[at + 1][other_at] {
            at += 1;
        } else if best == worths[at][other_at + 1] {
            other_at += 1;
        } else {
            common.push((at, other_at));
            (at, other_at) = (at + 1, other_at + 1);
        }
    }
    common
}
