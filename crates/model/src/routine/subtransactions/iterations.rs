//! How often a loop runs.

use crate::catalog::Catalog;
use crate::routine::evaluation::rows_of;
use crate::routine::{Bound, Routine};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::lexer::{TokenKind, identifier, tokenize};
use pgvet_syntax::plpgsql::{Exit, Loop, LoopKind, Statement, StatementKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// How often a loop runs at most.
pub(super) fn of(routine: &Routine, a_loop: &Loop, catalog: &Catalog) -> Bound {
    // A loop that continues only after a failure: what failed is rolled back.
    let flags = flags(a_loop);
    if a_loop.statements.iter().any(|statement| leaves(statement, &flags)) {
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

/// Whether a statement leaves the loop or the function unless it fails, or sets one of the flags that end the loop.
fn leaves(statement: &Statement, flags: &[SmolStr]) -> bool {
    match &statement.kind {
        StatementKind::Return(_) | StatementKind::Exit(Exit { when: None, .. }) => true,
        StatementKind::Assign(assign) => {
            let is_flag = matches!(assign.target.names.as_slice(), [name] if flags.contains(name));
            is_flag && assign.value.text.trim().eq_ignore_ascii_case("true")
        }
        StatementKind::Block(block) => block.statements.iter().any(|statement| leaves(statement, flags)),
        StatementKind::If(conditional) => {
            let all = |statements: &[Statement]| statements.iter().any(|statement| leaves(statement, flags));
            conditional.otherwise.as_ref().is_some_and(|otherwise| all(&otherwise.statements))
                && conditional.branches.iter().all(|branch| all(&branch.statements))
        }
        _ => false,
    }
}

/// The variables that end a loop when they are true: `WHILE NOT done AND tries < 5`, `EXIT WHEN done`.
fn flags(a_loop: &Loop) -> Vec<SmolStr> {
    let words = |text: &str| -> Vec<SmolStr> {
        let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
        tokens.into_iter().map(|token| identifier(token.text(text))).collect()
    };
    let exits = a_loop.statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Exit(Exit { when: Some(when), .. }) => Some(words(&when.text)),
        _ => None,
    });
    let mut flags: Vec<SmolStr> = exits.filter(|words| words.len() == 1).flatten().collect();
    if let LoopKind::While(condition) = &a_loop.kind {
        let words = words(&condition.text);
        flags.extend(words.windows(2).filter(|pair| pair[0] == "not").map(|pair| pair[1].clone()));
    }
    flags
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
