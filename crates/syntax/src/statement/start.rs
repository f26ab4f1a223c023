//! Beginnings of statements. Used only to find the next statement after a broken one.

use crate::lexer::{Token, TokenKind};

/// How sure the first words make it that a statement begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Start {
    /// May also stand inside a statement: SELECT, WITH, VALUES, SET.
    Weak,
    /// Two words that belong together: CREATE TABLE, INSERT INTO.
    Strong,
}

const OBJECTS: &[&str] = &[
    "ACCESS",
    "AGGREGATE",
    "CAST",
    "COLLATION",
    "CONVERSION",
    "DATABASE",
    "DOMAIN",
    "EVENT",
    "EXTENSION",
    "FOREIGN",
    "FUNCTION",
    "GROUP",
    "INDEX",
    "LANGUAGE",
    "LARGE",
    "MATERIALIZED",
    "OPERATOR",
    "POLICY",
    "PROCEDURE",
    "PUBLICATION",
    "ROLE",
    "ROUTINE",
    "RULE",
    "SCHEMA",
    "SEQUENCE",
    "SERVER",
    "STATISTICS",
    "SUBSCRIPTION",
    "TABLE",
    "TABLESPACE",
    "TEXT",
    "TRIGGER",
    "TYPE",
    "USER",
    "VIEW",
];
const CREATED: &[&str] = &[
    "CONSTRAINT",
    "GLOBAL",
    "LOCAL",
    "OR",
    "PROCEDURAL",
    "RECURSIVE",
    "TEMP",
    "TEMPORARY",
    "TRUSTED",
    "UNIQUE",
    "UNLOGGED",
];

/// Returns how a statement begins with the first of `tokens`, if one does. Four tokens are enough to know.
pub(super) fn start(source: &str, tokens: &[Token]) -> Option<Start> {
    let is = |at: usize, keywords: &[&str]| {
        tokens.get(at).is_some_and(|token| keywords.iter().any(|keyword| token.is_keyword(source, keyword)))
    };
    let ends = |at: usize| tokens.get(at).is_none_or(|token| token.is_punctuation(b';'));
    let name = |at: usize| {
        tokens.get(at).is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier))
    };
    let strong = (is(0, &["CREATE"]) && (is(1, OBJECTS) || is(1, CREATED)))
        || (is(0, &["ALTER"])
            && (is(1, OBJECTS) || is(1, &["DEFAULT"]) && is(2, &["PRIVILEGES"]) || is(1, &["SYSTEM"])))
        || (is(0, &["DROP"]) && (is(1, OBJECTS) || is(1, &["OWNED"])))
        || (is(0, &["INSERT", "MERGE"]) && is(1, &["INTO"]))
        || (is(0, &["DELETE"]) && is(1, &["FROM"]))
        || (is(0, &["UPDATE"]) && (1..=4).any(|at| is(at, &["SET"])) && !is(1, &["SET"]))
        || (is(0, &["COMMENT"]) && is(1, &["ON"]))
        || (is(0, &["REFRESH"]) && is(1, &["MATERIALIZED"]))
        || (is(0, &["TRUNCATE"]) && name(1))
        || (is(0, &["LOCK", "REINDEX"]) && is(1, &["TABLE", "INDEX"]))
        || (is(0, &["DO"]) && tokens.get(1).is_some_and(|token| token.kind == TokenKind::DollarString))
        || (is(0, &["DO"]) && is(1, &["LANGUAGE"]))
        || (is(0, &["GRANT", "REVOKE"]) && name(1))
        || (is(0, &["BEGIN", "COMMIT", "ROLLBACK"]) && ends(1))
        || (is(0, &["START"]) && is(1, &["TRANSACTION"]));
    let weak = || {
        is(
            0,
            &[
                "SELECT", "VALUES", "WITH", "SET", "RESET", "UPDATE", "CALL", "COPY", "EXPLAIN", "EXECUTE", "PREPARE",
                "NOTIFY",
            ],
        ) || is(
            0,
            &["VACUUM", "ANALYZE", "CLUSTER", "DISCARD", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SHOW"],
        )
    };
    if strong {
        Some(Start::Strong)
    } else if weak() {
        Some(Start::Weak)
    } else {
        None
    }
}

/// Whether `token` is at the start of a line, where `before` is the token before it.
pub(super) fn at_line_start(source: &str, before: Token, token: Token) -> bool {
    source[before.range.end as usize..token.range.start as usize].contains(['\n', '\r'])
}
