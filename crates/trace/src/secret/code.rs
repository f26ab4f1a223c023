//! Passwords that the tokens of a statement show: in any kind of string, and in texts that a statement puts together.

use pgvet_syntax::lexer::{Token, TokenKind, tokenize};
use pgvet_syntax::source::TextRange;
use std::ops::Range;

const WORD: &str = "password";

/// Maximum depth of code in dollar quotes that is searched for strings.
const MAX_DEPTH: u32 = 8;

/// Adds the contents of strings after the word, and those that a text with the word at its end is joined with:
/// `'... PASSWORD ' || quote_literal('x')`, `format('... PASSWORD %L', 'x')`, `'pass' || 'word=x'`. What a variable or a
/// function adds to a text is not known here.
pub(super) fn passwords(text: &str, found: &mut Vec<Range<usize>>) {
    // Ranges are numbers of 32 bits.
    if let Ok(end) = u32::try_from(text.len()) {
        search(text, TextRange::new(0, end), 0, found);
    }
}

fn search(text: &str, range: TextRange, depth: u32, found: &mut Vec<Range<usize>>) {
    let tokens = tokenize(text, range);
    let mut parentheses = 0_u32;
    // The number of open parentheses within which every later string may hold a password.
    let mut joined_from: Option<u32> = None;
    let mut is_named = false;
    let mut before = String::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Punctuation(b'(') => parentheses += 1,
            TokenKind::Punctuation(b')') => {
                parentheses = parentheses.saturating_sub(1);
                joined_from = joined_from.filter(|from| parentheses >= *from);
            }
            TokenKind::Punctuation(b';') => joined_from = None,
            _ => {}
        }
        let Some(content) = content(text, *token) else {
            is_named = false;
            if !joins(text, token) {
                before.clear();
            }
            continue;
        };
        let inner = &text[content.clone()];
        // A string may go on after a line break.
        is_named = is_named || follows_word(text, &tokens[..at]);
        let completes = completes_word(&before, inner);
        if is_named || completes || joined_from.is_some() {
            found.push(content.clone());
        } else if token.text(text).starts_with('$') && depth < MAX_DEPTH {
            search(text, TextRange::new(content.start as u32, content.end as u32), depth + 1, found);
        }
        if completes || tokens.get(at + 1).is_some_and(|next| joins(text, next) && asks_for_value(inner)) {
            joined_from = Some(joined_from.map_or(parentheses, |from| from.min(parentheses)));
        }
        before.push_str(inner.get(inner.len().saturating_sub(WORD.len())..).unwrap_or_default());
        let cut = before.len().saturating_sub(WORD.len());
        before = before.get(cut..).unwrap_or_default().to_ascii_lowercase();
    }
}

/// The range between the quotes of a string.
fn content(text: &str, token: Token) -> Option<Range<usize>> {
    let written = token.text(text);
    let start = token.range.start as usize;
    if !matches!(token.kind, TokenKind::String | TokenKind::DollarString | TokenKind::Unterminated) {
        return None;
    }
    let is_open = token.kind == TokenKind::Unterminated;
    let (open, close) = if let Some(rest) = written.strip_prefix('$') {
        let tag = rest.find('$')? + 2;
        (tag, tag)
    } else {
        let quote = written.find('\'').filter(|quote| *quote <= 2)?;
        (quote + 1, 1)
    };
    let end = written.len() - if is_open { 0 } else { close };
    (open < end).then(|| start + open..start + end)
}

/// Whether a token is between the parts of a text: `||`, or the comma of a call.
fn joins(text: &str, token: &Token) -> bool {
    token.is_punctuation(b',') || token.kind == TokenKind::Operator && token.text(text) == "||"
}

/// Whether the last token is the word, or a name that ends with it, or an assignment after one.
fn follows_word(text: &str, before: &[Token]) -> bool {
    let assigns = |token: &Token| {
        matches!(token.kind, TokenKind::Operator | TokenKind::Compound) && ["=", ":=", "=>"].contains(&token.text(text))
    };
    let named = match before {
        [.., named, last] if assigns(last) => named,
        [.., named] => named,
        [] => return false,
    };
    let name = named.text(text).trim_end_matches('"');
    let ends = name.len().checked_sub(WORD.len()).and_then(|at| name.get(at..));
    matches!(named.kind, TokenKind::Word | TokenKind::QuotedIdentifier)
        && ends.is_some_and(|end| end.eq_ignore_ascii_case(WORD))
}

/// Whether the word is in two parts of a text.
fn completes_word(before: &str, inner: &str) -> bool {
    let splits = (1..WORD.len()).map(|at| WORD.split_at(at));
    let starts = |end: &str| inner.get(..end.len()).is_some_and(|start| start.eq_ignore_ascii_case(end));
    splits.into_iter().any(|(start, end)| before.ends_with(start) && starts(end))
}

/// Whether a text ends with the word, or has a place for a value of `format` after it.
fn asks_for_value(inner: &str) -> bool {
    let lower = inner.to_ascii_lowercase();
    let after =
        lower.rfind(WORD).map(|at| lower[at + WORD.len()..].trim_start_matches(['"', '\'', '=', ' ', '\t', '\n']));
    after.is_some_and(|after| after.is_empty() || after.starts_with('%'))
}
