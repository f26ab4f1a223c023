//! Reading the text of a suppression.

use crate::comment::{self, MARK};
use crate::phase;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// A directive in a comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) scope: Scope,
    pub(super) names: Vec<RuleName>,
    /// The text between the brackets.
    pub(super) list: TextRange,
    /// The text after them.
    pub(super) reason: SmolStr,
    pub(super) origin: Origin,
}

/// Whose comment it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Pgvet,
    /// Another linter's; its rules are ours where [`crate::meta::RuleMeta::sources`] says so. Without names it means all.
    Other(&'static str),
}

/// The scope of a suppression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Statement,
    File,
}

/// A name as written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RuleName {
    pub(super) text: SmolStr,
    pub(super) range: TextRange,
}

/// Reads a comment; `None` where it is no suppression, and what is wrong where it seems to be one.
pub(super) fn read(text: &str, comment: TextRange) -> Option<Result<Directive, Mistake>> {
    let inner = comment::inner(text, comment)?;
    match comment::directive(text, comment) {
        Some(directive) => match phase::read(directive) {
            Some(marker) => marker.err().map(|message| Err(Mistake { message, help: ANY_DIRECTIVE })),
            None => Some(own(text, directive)),
        },
        None => other(text, inner, comment).map(Ok),
    }
}

/// What is wrong with a comment that seems to be a directive, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub message: String,
    pub help: &'static str,
}

const ANY_DIRECTIVE: &str = "write `pgvet: ignore[rule] reason`, `pgvet: ignore-file[rule] reason`, or `pgvet: phase \
                             contract after RELEASE`";

fn own(text: &str, directive: &str) -> Result<Directive, Mistake> {
    let file = directive.strip_prefix("ignore-file").map(|rest| (Scope::File, rest));
    let statement = || directive.strip_prefix("ignore").map(|rest| (Scope::Statement, rest));
    let Some((scope, rest)) = file.or_else(statement) else {
        let word = directive.split([' ', '[']).next().unwrap_or_default();
        return Err(Mistake { message: format!("unknown word `{word}` after `{MARK}`"), help: ANY_DIRECTIVE });
    };
    let list = rest.trim_start().strip_prefix('[').and_then(|list| list.split_once(']'));
    let Some((list, reason)) = list else { return Err(no_rule()) };
    let names: Vec<RuleName> = names(text, list, ',');
    if names.is_empty() {
        return Err(no_rule());
    }
    let reason = reason.trim_start_matches([':', '-', ' ', '\t']).trim().into();
    Ok(Directive { scope, names, list: range(text, list), reason, origin: Origin::Pgvet })
}

fn no_rule() -> Mistake {
    Mistake {
        message: "this suppression names no rule in brackets".to_owned(),
        help: "write `pgvet: ignore[rule] reason`, or `pgvet: ignore-file[rule] reason` for the whole file",
    }
}

/// The comments of other linters:
///
/// - squawk, `crates/squawk_linter/src/ignore.rs`: `squawk-ignore a, b`, and `squawk-ignore-file`, perhaps with names;
/// - eugene, `src/comments.rs`: `eugene: ignore E1, E2` or `eugene: ignore`;
/// - Atlas, <https://atlasgo.io/lint/analyzers>: `atlas:nolint`, perhaps with codes; before a blank line at the top of
///   the file it is about all of it.
fn other(text: &str, inner: &str, comment: TextRange) -> Option<Directive> {
    let directive = |scope, origin, list: &str, separator| {
        let names = names(text, list, separator);
        Some(Directive {
            scope,
            names,
            list: range(text, list),
            reason: SmolStr::default(),
            origin: Origin::Other(origin),
        })
    };
    if let Some(rest) = inner.strip_prefix("squawk-ignore-file") {
        return is_list(rest).then(|| directive(Scope::File, "squawk", rest, ','))?;
    }
    if let Some(rest) = inner.strip_prefix("squawk-ignore") {
        // Without names squawk ignores nothing.
        let named = is_list(rest) && !rest.trim().is_empty();
        return named.then(|| directive(Scope::Statement, "squawk", rest, ','))?;
    }
    if let Some(rest) = inner.strip_prefix("eugene:") {
        let rest = rest.trim_start().strip_prefix("ignore")?;
        return is_list(rest).then(|| directive(Scope::Statement, "eugene", rest, ','))?;
    }
    let rest = inner.strip_prefix("atlas:nolint").filter(|rest| is_list(rest))?;
    let scope = if is_header(text, comment) { Scope::File } else { Scope::Statement };
    directive(scope, "atlas", rest, ' ')
}

fn is_list(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t'])
}

/// Whether the comment is before everything but comments, with a blank line after it.
fn is_header(text: &str, comment: TextRange) -> bool {
    let before = text.get(..comment.start as usize).unwrap_or_default().trim_start_matches('\u{feff}');
    let only_comments = before.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with("--"));
    let after = text.get(comment.end as usize..).unwrap_or_default();
    let mut lines = after.lines().skip(1);
    only_comments && lines.next().is_some_and(|line| line.trim().is_empty())
}

/// The names in a part of `text`.
fn names(text: &str, list: &str, separator: char) -> Vec<RuleName> {
    let names = list.split(separator).map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| RuleName { text: name.into(), range: range(text, name) }).collect()
}

/// Returns where a part of `text` is, found by its address.
fn range(text: &str, part: &str) -> TextRange {
    let start = (part.as_ptr() as usize - text.as_ptr() as usize) as u32;
    TextRange::new(start, start + part.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Option<Result<Directive, Mistake>> {
        read(text, TextRange::new(0, text.len() as u32))
    }

    #[test]
    fn names_have_their_ranges() {
        let text = "/* pgvet: ignore-file[ a-b,c ] because */";
        let directive = read_all(text).unwrap().unwrap();
        assert_eq!(directive.scope, Scope::File);
        let names: Vec<(&str, &str)> =
            directive.names.iter().map(|name| (name.text.as_str(), &text[name.range.as_usize()])).collect();
        assert_eq!(names, [("a-b", "a-b"), ("c", "c")]);
        assert_eq!(&text[directive.list.as_usize()], " a-b,c ");
    }

    #[test]
    fn the_reason_is_the_text_after_the_brackets() {
        for (text, reason) in [
            ("-- pgvet: ignore[a]: few rows", "few rows"),
            ("-- pgvet: ignore[a] - few rows", "few rows"),
            ("/* pgvet: ignore[a] few rows */", "few rows"),
            ("-- pgvet: ignore[a]", ""),
            ("/* pgvet: ignore[a] */", ""),
        ] {
            assert_eq!(read_all(text).unwrap().unwrap().reason, reason, "{text}");
        }
    }

    #[test]
    fn other_linters_are_understood() {
        for (text, origin, scope, names) in [
            ("-- squawk-ignore a-b, c", "squawk", Scope::Statement, vec!["a-b", "c"]),
            ("/* squawk-ignore a */", "squawk", Scope::Statement, vec!["a"]),
            ("-- squawk-ignore-file", "squawk", Scope::File, vec![]),
            ("-- squawk-ignore-file a", "squawk", Scope::File, vec!["a"]),
            ("-- eugene: ignore E1, E2", "eugene", Scope::Statement, vec!["E1", "E2"]),
            ("-- eugene: ignore", "eugene", Scope::Statement, vec![]),
            ("-- atlas:nolint PG101 destructive", "atlas", Scope::Statement, vec!["PG101", "destructive"]),
            ("-- atlas:nolint", "atlas", Scope::Statement, vec![]),
        ] {
            let directive = read_all(text).unwrap().unwrap();
            let found: Vec<&str> = directive.names.iter().map(|name| name.text.as_str()).collect();
            assert_eq!((directive.origin, directive.scope, found), (Origin::Other(origin), scope, names), "{text}");
        }
        for text in ["-- squawk-ignore", "-- squawk-ignores a", "-- eugene: help", "-- atlas:nolinted"] {
            assert_eq!(read_all(text), None, "{text}");
        }
        let text = "-- x\n-- atlas:nolint\n\nSELECT 1;";
        assert_eq!(read(text, TextRange::new(5, 20)).unwrap().unwrap().scope, Scope::File);
    }

    #[test]
    fn other_comments_are_left_alone_and_broken_ones_are_not() {
        for text in ["-- see pgvet: ignore[a]", "-- ignore[a]", "--", "/**/"] {
            assert_eq!(read_all(text), None, "{text}");
        }
        for text in ["-- pgvet: ignore", "-- pgvet: ignore[]", "-- pgvet: ignore[a", "-- pgvet: disable[a]", "--pgvet:"]
        {
            assert!(matches!(read_all(text), Some(Err(_))), "{text}");
        }
    }
}
