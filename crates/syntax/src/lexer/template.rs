//! Placeholders that can never be SQL: `{{ ... }}`, `{% ... %}`, `{# ... #}`, `{name}`, `${name}`, `$%NAME%$`, and
//! `$name$` glued to the rest of an identifier.

use super::{Lexer, TokenKind};
use crate::source::TextRange;
use std::collections::HashMap;

/// Longer tags are not recognized, which keeps reading linear.
const MAX_TAG: usize = 2048;
/// How far after a tag its text is read as SQL.
const MAX_READ: usize = 4096;

/// The last position of each `$name$` of a text.
pub(super) type LastTags<'a> = HashMap<&'a str, usize>;

/// The length of the placeholder that `text` begins with.
pub(super) fn length(text: &str) -> Option<usize> {
    match text.as_bytes() {
        [b'{', b'{', ..] => closing(text, "}}"),
        [b'{', b'%', ..] => closing(text, "%}"),
        [b'{', b'#', ..] => closing(text, "#}"),
        [b'$', b'{', ..] => named(&text[1..]).map(|length| length + 1),
        [b'{', ..] => named(text),
        [b'$', b'%', ..] => {
            let name = word_length(&text[2..]);
            (name > 0 && text.as_bytes()[2 + name..].starts_with(b"%$")).then_some(name + 4)
        }
        _ => None,
    }
}

fn closing(text: &str, end: &str) -> Option<usize> {
    text[..char_boundary(text, MAX_TAG)].find(end).map(|at| at + end.len())
}

/// The last boundary of a character up to `at`.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// `{name}`, `{name:-default}`, `{name.part}` on one line.
fn named(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().take(MAX_TAG);
    let end = bytes.position(|byte| matches!(byte, b'}' | b'\n' | b'\r' | b'\'' | b'"' | b';'))?;
    (end > 1 && text.as_bytes()[end] == b'}').then_some(end + 1)
}

/// `$name$_suffix` or `$name$.object`: the tag, unless it opens a dollar quote. It opens one if the tag occurs again
/// further on, and not glued to the rest of an identifier there, too; where it does, it can be both.
pub(super) fn glued(text: &str, start: usize, last: &LastTags<'_>) -> Option<(usize, bool)> {
    let tag = dollar_tag(&text[start..])?;
    let end = start + tag.len();
    if tag.len() < 3 || tag.as_bytes()[1].is_ascii_digit() || !is_glue(text, end) {
        return None;
    }
    if last.get(tag).is_none_or(|last| *last < end) {
        return Some((tag.len(), false));
    }
    let closing = end + text[end..].find(tag)?;
    let is_text = |byte: u8| !matches!(byte, b'\'' | b'"' | b'\\' | b'$');
    (text[end..closing].bytes().all(is_text) && is_glue(text, closing + tag.len())).then_some((tag.len(), true))
}

fn is_glue(text: &str, at: usize) -> bool {
    matches!(text.as_bytes().get(at), Some(b'_' | b'.'))
}

/// The `$name$` that `text` begins with; the name may be empty.
fn dollar_tag(text: &str) -> Option<&str> {
    let name = word_length(text.strip_prefix('$')?);
    (text.as_bytes().get(name + 1) == Some(&b'$')).then(|| &text[..name + 2])
}

pub(super) fn last_tags(text: &str) -> LastTags<'_> {
    text.match_indices('$').filter_map(|(at, _)| Some((dollar_tag(&text[at..])?, at))).collect()
}

fn word_length(text: &str) -> usize {
    text.bytes().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

/// The kind of token that a tag would be in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsSql {
    /// Part of one statement: reading continues after it in the same way.
    Part,
    /// A statement ends inside of it, or psql has a command there.
    Statements,
    /// A quote or a comment that begins inside of it ends after it.
    Beyond,
}

/// Reads the tag at `range` as SQL.
pub(crate) fn as_sql(text: &str, range: TextRange) -> AsSql {
    let tag_end = range.end as usize;
    let end = char_boundary(text, tag_end + MAX_READ);
    let mut lexer = Lexer::new(text, TextRange::new(range.start, end as u32));
    while let Some(token) = lexer.next() {
        if lexer.comments().last().is_some_and(|comment| comment.end > range.end && comment.start < range.end) {
            return AsSql::Beyond;
        }
        if token.range.start >= range.end {
            return AsSql::Part;
        }
        let is_backslash = token.kind == TokenKind::Invalid && token.text(text) == "\\";
        if token.is_punctuation(b';') || is_backslash {
            return AsSql::Statements;
        }
        // Without an end, PostgreSQL refuses all that follows.
        if token.kind == TokenKind::Unterminated && end == text.len() {
            return AsSql::Part;
        }
        if token.range.end > range.end {
            return AsSql::Beyond;
        }
    }
    AsSql::Part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_at_start(text: &str) -> Option<usize> {
        length(text).or_else(|| glued(text, 0, &last_tags(text)).map(|(length, _)| length))
    }

    #[test]
    fn placeholders_and_their_lengths() {
        for (text, placeholder) in [
            ("{{ index .Options \"Namespace\" }}.users", "{{ index .Options \"Namespace\" }}"),
            ("{% if x %}a", "{% if x %}"),
            ("${schema}.t", "${schema}"),
            ("${schema:-public}.t", "${schema:-public}"),
            ("$%AUTO%$,", "$%AUTO%$"),
            ("$db_user_prefix$_auth; x", "$db_user_prefix$"),
            ("$p$_a; $p$_b", "$p$"),
            ("{schema}.t", "{schema}"),
        ] {
            assert_eq!(length_at_start(text), Some(placeholder.len()), "{text}");
        }
    }

    #[test]
    fn dollar_quotes_are_none() {
        for text in ["$$ a $$", "$f$ a $f$", "$re$_%$re$)", "$1", "{}", "{'a'}", "{{ open", "$x$.'$x$a; b; --'"] {
            assert_eq!(length_at_start(text), None, "{text}");
        }
    }

    #[test]
    fn a_tag_is_read_as_sql_too() {
        let read = |text: &str| as_sql(text, TextRange::new(0, length(text).unwrap() as u32));
        for text in ["{{ x }}; y", "{{ index \"a;\" }} z", "{% if x == 'a' %}", "{{/* it's; */}} x"] {
            assert_eq!(read(text), AsSql::Part, "{text}");
        }
        assert_eq!(read("{{ a; b }}"), AsSql::Statements);
        assert_eq!(read("{# it's #} x; 'y'"), AsSql::Beyond);
        assert_eq!(read("{{-- }} y\nx"), AsSql::Beyond);
    }
}
