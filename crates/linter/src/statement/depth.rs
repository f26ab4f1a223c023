//! How deeply a statement nests, so that no recursion over its tree can overflow the stack.

use crate::lexer::{Token, TokenKind};

/// The deepest tree that is parsed, in levels as [`nesting`] counts them.
pub(super) const MAX_NESTING: u32 = 2000;
/// A set operation or join nests whole queries, whose nodes are large.
const QUERY_LEVEL: u32 = 4;

/// What is open between two parentheses, or CASE and END.
#[derive(Default)]
struct Level {
    /// Operators since the last comma: each is the left side of the next.
    operators: u32,
    /// UNION, JOIN and the like.
    queries: u32,
    is_case: bool,
}

impl Level {
    fn depth(&self) -> u32 {
        1 + self.operators + self.queries
    }
}

/// An upper estimate of the depth of the syntax tree.
pub(super) fn nesting(text: &str, tokens: &[Token]) -> u32 {
    let mut levels = vec![Level::default()];
    let mut outer = 0u32;
    let mut deepest = 0;
    for token in tokens {
        let word = token.kind == TokenKind::Word;
        let is = |keywords: &[&str]| word && keywords.iter().any(|keyword| token.is_keyword(text, keyword));
        let Some(level) = levels.last_mut() else { break };
        if matches!(token.kind, TokenKind::Punctuation(b'(' | b'[')) || is(&["CASE"]) {
            outer += level.depth();
            levels.push(Level { is_case: word, ..Level::default() });
        } else if matches!(token.kind, TokenKind::Punctuation(b')' | b']')) || level.is_case && is(&["END"]) {
            if levels.len() > 1 {
                levels.pop();
                outer -= levels.last().map_or(0, Level::depth);
            }
            // `f(a)::b`, `(a) + b`: what was closed is an operand of what follows.
        } else if matches!(token.kind, TokenKind::Punctuation(b','))
            || is(&["AND", "OR", "WHEN", "THEN", "ELSE", "SELECT"])
        {
            level.operators = 0;
        } else if matches!(token.kind, TokenKind::Punctuation(b';')) {
            (level.operators, level.queries) = (0, 0);
        } else if is(&["UNION", "INTERSECT", "EXCEPT", "JOIN"]) {
            level.queries += QUERY_LEVEL;
        } else if matches!(token.kind, TokenKind::Operator)
            || token.text(text) == "::"
            || is(&[
                "NOT", "IS", "COLLATE", "AT", "LIKE", "ILIKE", "SIMILAR", "IN", "BETWEEN", "ISNULL", "NOTNULL",
                "EXPLAIN", "PREPARE",
            ])
        {
            level.operators += 1;
        }
        deepest = deepest.max(outer + levels.last().map_or(0, Level::depth));
    }
    deepest
}
