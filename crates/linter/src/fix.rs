//! Changes of text that a finding offers.

use crate::phase::Phase;
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How far a fix can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// Only to be shown.
    DisplayOnly,
    /// The result may mean something else.
    Unsafe,
    /// The result means the same.
    Safe,
}

/// A replacement of one range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub range: TextRange,
    /// Line breaks are `\n`; [`apply`] writes those of the file.
    pub text: String,
}

/// A set of edits of one file that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    pub title: String,
    pub applicability: Applicability,
    pub edits: Vec<Edit>,
}

/// One of the statements that together can take the place of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Without a semicolon at its end.
    pub sql: String,
    /// A decision or precondition for a person, before it runs.
    pub note: Option<String>,
    /// Why what rules say about this statement is meant to be.
    pub accepted: Option<String>,
    /// The phase that begins with it, of a change that takes several releases.
    pub phase: Option<Phase>,
}

impl Step {
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), note: None, accepted: None, phase: None }
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    #[must_use]
    pub fn accepted(mut self, reason: impl Into<String>) -> Self {
        self.accepted = Some(reason.into());
        self
    }
}

/// A text with fixes made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub text: String,
    /// The fixes that were made; the others touch one of them, and may be made in the next round.
    pub made: Vec<usize>,
}

/// Makes those fixes that touch no earlier one. Line breaks are those of the text.
pub fn apply<'f>(text: &str, fixes: impl IntoIterator<Item = &'f Fix>) -> Applied {
    let mut accepted: Vec<&Edit> = Vec::new();
    let mut made = Vec::new();
    for (at, fix) in fixes.into_iter().enumerate() {
        let fits = |edit: &Edit| text.get(edit.range.as_usize()).is_some();
        let free = |edit: &Edit| !accepted.iter().any(|other| touch(edit.range, other.range));
        if !fix.edits.is_empty() && fix.edits.iter().all(|edit| fits(edit) && free(edit)) && is_apart(&fix.edits) {
            accepted.extend(&fix.edits);
            made.push(at);
        }
    }
    accepted.sort_by_key(|edit| edit.range);
    let mut fixed = text.to_owned();
    for edit in accepted.into_iter().rev() {
        fixed.replace_range(edit.range.as_usize(), &with_line_breaks_of(text, &edit.text));
    }
    Applied { text: fixed, made }
}

/// `new` with the line breaks of `text`, parts that were copied from it included.
pub fn with_line_breaks_of<'n>(text: &str, new: &'n str) -> Cow<'n, str> {
    let wanted = if text.find('\n').is_some_and(|at| text[..at].ends_with('\r')) { "\r\n" } else { "\n" };
    if !new.contains('\n') || wanted == "\n" && !new.contains("\r\n") {
        return Cow::Borrowed(new);
    }
    Cow::Owned(new.replace("\r\n", "\n").replace('\n', wanted))
}

/// Whether they share a byte or an end.
fn touch(one: TextRange, other: TextRange) -> bool {
    one.start <= other.end && other.start <= one.end
}

/// Edits of one fix may touch, and must not overlap.
fn is_apart(edits: &[Edit]) -> bool {
    let overlap = |one: TextRange, other: TextRange| one.start < other.end && other.start < one.end;
    edits.iter().enumerate().all(|(at, edit)| !edits[..at].iter().any(|other| overlap(edit.range, other.range)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(edits: &[(u32, u32, &str)]) -> Fix {
        let edit = |(start, end, text): &(u32, u32, &str)| Edit {
            range: TextRange::new(*start, *end),
            text: (*text).to_owned(),
        };
        Fix { title: String::new(), applicability: Applicability::Safe, edits: edits.iter().map(edit).collect() }
    }

    #[test]
    fn of_fixes_that_touch_the_first_is_made() {
        let fixes = [fix(&[(0, 1, "x"), (4, 4, "!")]), fix(&[(1, 2, "y")]), fix(&[(3, 3, "z")]), fix(&[(4, 4, "?")])];
        let applied = apply("abcd", &fixes);
        assert_eq!(applied, Applied { text: "xbczd!".to_owned(), made: vec![0, 2] });
    }

    #[test]
    fn what_is_not_of_this_text_is_not_made() {
        for bad in [fix(&[(3, 9, "x")]), fix(&[(1, 2, "x")]), fix(&[(2, 1, "x")]), fix(&[(0, 3, "x"), (1, 1, "y")])] {
            assert_eq!(apply("aéb", [&bad]).made, [] as [usize; 0], "{bad:?}");
        }
    }

    #[test]
    fn line_breaks_are_those_of_the_text() {
        assert_eq!(apply("a\r\nb", [&fix(&[(4, 4, "\nc")])]).text, "a\r\nb\r\nc");
        assert_eq!(apply("a\r\nb", [&fix(&[(0, 1, "c\r\nd\n")])]).text, "c\r\nd\r\n\r\nb");
        assert_eq!(apply("a\nb\r\n", [&fix(&[(0, 0, "c\n")])]).text, "c\na\nb\r\n");
    }
}
