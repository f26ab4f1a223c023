//! Finds the statements after a missing semicolon.

use super::start::{Start, at_line_start, start};
use crate::lexer::{Token, TokenKind};

/// Maximum number of statements into which a piece is split; the rest is part of the last one.
pub(super) const MAX_CUTS: usize = 64;
/// PostgreSQL may take the first word of the next statement for an alias, so that its error comes a token or two late.
const LATE: usize = 3;

/// The token at which the next statement probably begins, when PostgreSQL refused `tokens` at offset `error`.
pub(super) fn cut(text: &str, tokens: &[Token], error: u32) -> Option<usize> {
    let wrong = tokens.partition_point(|token| token.range.end <= error);
    let begins = |at: usize| {
        let line = at > 0 && tokens[at].kind == TokenKind::Word && at_line_start(text, tokens[at - 1], tokens[at]);
        if line { start(text, &tokens[at..tokens.len().min(at + 5)]) } else { None }
    };
    let near = (wrong.saturating_sub(LATE)..=wrong).rev().filter(|at| *at < tokens.len());
    near.clone()
        .find(|at| begins(*at) == Some(Start::Strong))
        .or_else(|| near.clone().find(|at| begins(*at).is_some()))
        .or_else(|| {
            let mut depth = 0u32;
            (1..tokens.len()).find(|at| {
                match tokens[at - 1].kind {
                    TokenKind::Punctuation(b'(') => depth += 1,
                    TokenKind::Punctuation(b')') => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && *at > wrong && begins(*at) == Some(Start::Strong)
            })
        })
}
