//! Reading the text of a suppression.

use super::MARK;
use crate::source::TextRange;
use smol_str::SmolStr;

/// What a comment says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) scope: Scope,
    pub(super) names: Vec<RuleName>,
    /// What stands between the brackets.
    pub(super) list: TextRange,
}

/// What a suppression is about.
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
pub(super) fn read(text: &str, comment: TextRange) -> Option<Result<Directive, String>> {
    let inner = text.get(comment.as_usize())?;
    let inner = inner.strip_prefix("--").or_else(|| inner.strip_prefix("/*"))?;
    let directive = inner.trim_start().strip_prefix(MARK)?.trim_start();
    let directive = directive.strip_suffix("*/").unwrap_or(directive);
    let file = directive.strip_prefix("ignore-file").map(|rest| (Scope::File, rest));
    let statement = || directive.strip_prefix("ignore").map(|rest| (Scope::Statement, rest));
    let Some((scope, rest)) = file.or_else(statement) else {
        let word = directive.split([' ', '[']).next().unwrap_or_default();
        return Some(Err(format!("`{word}` is not known after `{MARK}`")));
    };
    let list = rest.trim_start().strip_prefix('[').and_then(|list| Some(&list[..list.find(']')?]));
    let Some(list) = list else { return Some(Err("this suppression names no rule in brackets".to_owned())) };
    // Parts of `text` are told by their address in it.
    let offset = |part: &str| (part.as_ptr() as usize - text.as_ptr() as usize) as u32;
    let range = |part: &str| TextRange::new(offset(part), offset(part) + part.len() as u32);
    let names: Vec<RuleName> = list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| RuleName { text: name.into(), range: range(name) })
        .collect();
    if names.is_empty() {
        return Some(Err("this suppression names no rule in brackets".to_owned()));
    }
    Some(Ok(Directive { scope, names, list: range(list) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Option<Result<Directive, String>> {
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
