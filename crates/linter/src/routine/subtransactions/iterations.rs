//! How often a loop runs.

use crate::ast::Ast;
use crate::catalog::Catalog;
use crate::lexer::{TokenKind, tokenize};
use crate::plpgsql::{Exit, Loop, LoopKind, Statement, StatementKind};
use crate::routine::evaluation::rows_of;
use crate::routine::{Bound, Routine};
use crate::source::TextRange;

/// How often a loop runs at most.
pub(super) fn of(routine: &Routine, a_loop: &Loop, catalog: &Catalog) -> Bound {
    // A loop that goes on only after a failure: what failed is rolled back.
    if a_loop.statements.iter().any(leaves) {
        return Bound::AtMost(1);
    }
    if let Some(rounds) = a_loop.constant_iterations() {
        return Bound::AtMost(rounds);
    }
    match &a_loop.kind {
        LoopKind::Query { query, .. } => match routine.sql(query) {
            Some(Ast::Select(query)) => rows_of(query, catalog, &routine.search_path),
            _ => Bound::Unbounded,
        },
        LoopKind::Foreach { array, .. } => elements(&array.text).map_or(Bound::Unbounded, Bound::AtMost),
        _ => Bound::Unbounded,
    }
}

/// Does a statement leave the loop or the function unless it fails?
fn leaves(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Return(_) | StatementKind::Exit(Exit { when: None, .. }) => true,
        StatementKind::Block(block) => block.statements.iter().any(leaves),
        StatementKind::If(conditional) => {
            let all = |statements: &[Statement]| statements.iter().any(leaves);
            conditional.otherwise.as_ref().is_some_and(|otherwise| all(&otherwise.statements))
                && conditional.branches.iter().all(|branch| all(&branch.statements))
        }
        _ => false,
    }
}

/// After how many rounds a loop commits: `IF i % 1000 = 0 THEN COMMIT`. `None`: in each round, or nobody knows.
pub(super) fn commit_interval(statements: &[Statement]) -> Option<u64> {
    statements.iter().find_map(|statement| {
        let StatementKind::If(conditional) = &statement.kind else { return None };
        let commits = |statement: &Statement| matches!(statement.kind, StatementKind::Commit(_));
        let branch = conditional.branches.iter().find(|branch| branch.statements.iter().any(commits))?;
        modulus(&branch.condition.text)
    })
}

/// The number after `%`.
fn modulus(text: &str) -> Option<u64> {
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let pair = tokens.windows(2).find(|pair| pair[0].text(text) == "%")?;
    pair[1].text(text).parse().ok()
}

/// How many elements `ARRAY[...]` has.
fn elements(text: &str) -> Option<u64> {
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let [array, open, inside @ .., close] = tokens.as_slice() else { return None };
    if !array.is_keyword(text, "ARRAY") || !open.is_punctuation(b'[') || !close.is_punctuation(b']') {
        return None;
    }
    let (mut depth, mut commas) = (0usize, 0u64);
    for token in inside {
        match token.kind {
            TokenKind::Punctuation(b'(' | b'[') => depth += 1,
            TokenKind::Punctuation(b')' | b']') => depth = depth.checked_sub(1)?,
            TokenKind::Punctuation(b',') if depth == 0 => commas += 1,
            _ => {}
        }
    }
    Some(if inside.is_empty() { 0 } else { commas + 1 })
}
