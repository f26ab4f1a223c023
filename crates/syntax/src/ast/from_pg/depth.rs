//! How deeply a statement nests, so that no recursion over its tree can overflow the stack.

use crate::lexer::{Token, TokenKind};

/// The deepest tree that is parsed, in nodes as [`nesting`] estimates them: PostgreSQL 18 with its own `max_stack_depth`
/// runs a chain of 2500 operators and refuses one of 5000. An unoptimised build takes up to 15 kB of
/// stack for each of them, so half of [`crate::statement::PARSE_STACK_BYTES`] stays free.
const MAX_NESTING: u32 = 5000;

/// `(SELECT ...)` is a `SubLink`, a `SelectStmt` and a `ResTarget`.
const SUBQUERY: u32 = 3;
/// `CaseExpr` and `CaseWhen`.
const CASE: u32 = 2;
/// OR of AND: the lists themselves are flat.
const CONDITION: u32 = 2;

/// Words that take the expression before them as an operand.
const OPERATORS: &[&str] =
    &["NOT", "IS", "COLLATE", "AT", "LIKE", "ILIKE", "SIMILAR", "IN", "BETWEEN", "ISNULL", "NOTNULL", "EXPLAIN"];
const SET_OPERATIONS: &[&str] = &["UNION", "INTERSECT", "EXCEPT"];
const RESTARTS: &[&str] = &["AND", "OR", "WHEN", "THEN", "ELSE", "SELECT"];

/// The open operators between two parentheses, or CASE and END.
#[derive(Default)]
struct Level {
    /// Nodes of the parenthesis itself.
    base: u32,
    /// Operators since the last comma: each is the left side of the next.
    operators: u32,
    /// Without those of the present run of UNION ALL.
    set_operations: u32,
    /// A run of UNION ALL, whose tree is balanced.
    union_all: u32,
    /// Those of the present SELECT.
    joins: u32,
    condition: u32,
    is_case: bool,
}

impl Level {
    fn depth(&self) -> u32 {
        let union_all = u32::BITS - self.union_all.leading_zeros();
        self.base + self.operators + self.set_operations + union_all + self.joins + self.condition
    }

    fn read(&mut self, text: &str, token: Token, next: Option<&Token>) {
        let is = |keywords: &[&str]| keywords.iter().any(|keyword| token.is_keyword(text, keyword));
        match token.kind {
            TokenKind::Operator => self.operators += 1,
            TokenKind::Compound => self.operators += u32::from(token.text(text) == "::"),
            TokenKind::Punctuation(b',') => self.operators = 0,
            TokenKind::Punctuation(b';') => {
                *self = Self { base: self.base, is_case: self.is_case, ..Self::default() };
            }
            TokenKind::Word if is(OPERATORS) => self.operators += 1,
            TokenKind::Word if is(&["JOIN"]) => self.joins += 1,
            TokenKind::Word if is(SET_OPERATIONS) => {
                (self.joins, self.operators) = (0, 0);
                if is(&["UNION"]) && next.is_some_and(|next| next.is_keyword(text, "ALL")) {
                    self.union_all += 1;
                } else {
                    self.set_operations += 1 + u32::BITS - self.union_all.leading_zeros();
                    self.union_all = 0;
                }
            }
            TokenKind::Word if is(RESTARTS) => {
                self.operators = 0;
                if is(&["AND", "OR"]) {
                    self.condition = CONDITION;
                }
            }
            _ => {}
        }
    }
}

/// Whether the tree of these tokens is, or may be, deeper than [`MAX_NESTING`].
pub(super) fn is_too_deep(text: &str, tokens: &[Token]) -> bool {
    // No token stands for more than a subquery.
    tokens.len() > (MAX_NESTING / SUBQUERY) as usize && nesting(text, tokens) > MAX_NESTING
}

/// An upper estimate of the depth of the syntax tree.
fn nesting(text: &str, tokens: &[Token]) -> u32 {
    let mut level = Level::default();
    let mut outer = Vec::new();
    let mut outer_depth = 0;
    let mut deepest = 0;
    for (at, token) in tokens.iter().enumerate() {
        let is_case = token.is_keyword(text, "CASE");
        if is_case || matches!(token.kind, TokenKind::Punctuation(b'(' | b'[')) {
            let next = tokens.get(at + 1);
            let is_query = next
                .is_some_and(|next| ["SELECT", "WITH", "VALUES"].iter().any(|keyword| next.is_keyword(text, keyword)));
            let base = if is_case {
                CASE
            } else if is_query {
                SUBQUERY
            } else {
                1
            };
            outer_depth += level.depth();
            outer.push(std::mem::replace(&mut level, Level { base, is_case, ..Level::default() }));
        } else if matches!(token.kind, TokenKind::Punctuation(b')' | b']'))
            || level.is_case && token.is_keyword(text, "END")
        {
            if let Some(parent) = outer.pop() {
                level = parent;
                outer_depth -= level.depth();
            }
        } else {
            level.read(text, *token, tokens.get(at + 1));
        }
        deepest = deepest.max(outer_depth + level.depth());
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokenize;
    use crate::source::TextRange;

    fn of(text: &str) -> u32 {
        nesting(text, &tokenize(text, TextRange::new(0, text.len() as u32)))
    }

    #[test]
    fn long_lists_are_flat() {
        assert!(of(&format!("INSERT INTO t VALUES {}", "(1 + 2, f(3)), ".repeat(5000))) < 10);
        assert!(of(&format!("SELECT 1 WHERE {}", "a = 1 OR b = 2 AND ".repeat(5000))) < 10);
    }

    #[test]
    fn chains_are_deep() {
        assert_eq!(of(&format!("SELECT 1 {}", "|| 2".repeat(700))), 700);
        assert_eq!(of(&format!("SELECT 1 {}", "UNION SELECT -2 ".repeat(700))), 701);
        assert!(of(&"(SELECT ".repeat(1700)) > MAX_NESTING);
        assert_eq!(of(&format!("SELECT 1 {}", "JOIN a ON b ".repeat(700))), 700);
    }

    #[test]
    fn chains_of_union_all_are_balanced() {
        assert!(of(&format!("SELECT 1 {}", "UNION ALL SELECT a FROM b JOIN c ON d ".repeat(20_000))) < 20);
        assert!(of(&format!("SELECT 1 {}", "UNION ALL SELECT 2 UNION SELECT 3 ".repeat(700))) >= 1400);
    }
}
