//! Information from the tokens of a statement that PostgreSQL's parser refuses.

use pgvet_syntax::ast::Ast;
use pgvet_syntax::lexer::{Token, TokenKind, identifier};
use pgvet_syntax::statement::Statement;
use smol_str::SmolStr;

/// Returns the words of a statement that may be names; those of a DO block are in a string.
pub(super) fn names(statement: &Statement, text: &str) -> Vec<SmolStr> {
    if let Some(Ast::Do(_)) = statement.ast() {
        let code = text.get(statement.range.as_usize()).unwrap_or_default();
        let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
        return words.filter(|word| !word.is_empty()).map(identifier).collect();
    }
    statement.tokens.iter().filter(|token| is_name(token)).map(|token| identifier(token.text(text))).collect()
}

/// Returns the schema, if it is given, and the name of the table that a statement begins to create.
pub(super) fn created_table(statement: &Statement, text: &str) -> Option<(Option<SmolStr>, SmolStr)> {
    const BEFORE_TABLE: [&str; 5] = ["GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "UNLOGGED"];
    let mut tokens = statement.tokens.iter().peekable();
    tokens.next_if(|token| token.is_keyword(text, "CREATE"))?;
    while tokens.next_if(|token| BEFORE_TABLE.iter().any(|word| token.is_keyword(text, word))).is_some() {}
    tokens.next_if(|token| token.is_keyword(text, "TABLE"))?;
    if tokens.next_if(|token| token.is_keyword(text, "IF")).is_some() {
        tokens.next_if(|token| token.is_keyword(text, "NOT"))?;
        tokens.next_if(|token| token.is_keyword(text, "EXISTS"))?;
    }
    let first = identifier(tokens.next_if(|token| is_name(token))?.text(text));
    if tokens.next_if(|token| token.is_punctuation(b'.')).is_none() {
        return Some((None, first));
    }
    Some((Some(first), identifier(tokens.next_if(|token| is_name(token))?.text(text))))
}

fn is_name(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier)
}
