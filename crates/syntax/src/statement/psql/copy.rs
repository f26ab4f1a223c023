//! The data of COPY that are in the script itself.

use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::TextRange;

/// Whether this statement makes psql read data from the lines after it: `COPY t (a) FROM stdin`, but neither
/// `COPY (...) TO stdout` nor a file or program.
///
/// Source: PostgreSQL 18, `src/backend/parser/gram.y`, `CopyStmt`; `FROM stdout` means the client as well.
pub(in crate::statement) fn copies_from_stdin(text: &str, tokens: &[Token]) -> bool {
    let Some((first, rest)) = tokens.split_first() else { return false };
    let source = || source_of_copy(text, rest);
    first.is_keyword(text, "COPY")
        && source().is_some_and(|token| token.is_keyword(text, "STDIN") || token.is_keyword(text, "STDOUT"))
}

/// Whether this `\copy` makes psql read data from the lines after it; `pstdin` is no part of the script.
///
/// Source: PostgreSQL 18, `src/bin/psql/copy.c`, `parse_slash_copy`.
pub(in crate::statement) fn command_copies_from_stdin(text: &str, arguments: TextRange) -> bool {
    let tokens: Vec<Token> = Lexer::new(text, arguments).collect();
    source_of_copy(text, &tokens).is_some_and(|token| token.is_keyword(text, "STDIN"))
}

/// Returns the token after FROM in `[BINARY] table [(columns)] FROM source`.
fn source_of_copy(text: &str, tokens: &[Token]) -> Option<Token> {
    let is_name = |token: &Token| {
        let is_word = token.kind == TokenKind::Word && !token.is_keyword(text, "FROM");
        is_word || matches!(token.kind, TokenKind::QuotedIdentifier | TokenKind::Placeholder)
    };
    let mut tokens = tokens.iter();
    let first = tokens.next()?;
    let table = if first.is_keyword(text, "BINARY") { tokens.next()? } else { first };
    if !is_name(table) {
        return None;
    }
    let mut depth = 0u32;
    for token in tokens.by_ref() {
        match token.kind {
            TokenKind::Punctuation(b'(') => depth += 1,
            TokenKind::Punctuation(b')') => depth = depth.saturating_sub(1),
            _ if depth == 0 && token.is_keyword(text, "TO") => return None,
            _ if depth == 0 && token.is_keyword(text, "FROM") => break,
            _ => {}
        }
    }
    tokens.next().copied()
}

/// The lines of data that follow `after`, with the line `\.`, and whether that line was there. `None` when no data
/// follows at all.
pub(in crate::statement) fn copy_data(text: &str, after: usize) -> Option<(TextRange, bool)> {
    let start = after + text[after..].find('\n')? + 1;
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r']) == "\\." {
            return Some((TextRange::new(start as u32, (at + 2) as u32), true));
        }
        at += line.len();
    }
    (!text[start..].trim().is_empty()).then(|| (TextRange::new(start as u32, text.len() as u32), false))
}
