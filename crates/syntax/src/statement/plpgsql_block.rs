//! Files that are one bare PL/pgSQL block, `begin ... end`, which the program that runs them wraps in DO.

use crate::lexer::{Lexer, Token, TokenKind};

/// Words after BEGIN that make it the start of a transaction.
const TRANSACTION_WORDS: &[&str] = &["WORK", "TRANSACTION", "ISOLATION", "READ", "NOT", "DEFERRABLE"];

/// The tokens of the block that begins with `first`, and `lexer` after them; `None` when there is no block here.
/// `lexer` is after `first`. At most `ahead` tokens may be read in vain, which keeps reading linear.
pub(super) fn read<'a>(
    source: &str,
    first: Token,
    lexer: Lexer<'a>,
    ahead: &mut usize,
) -> Option<(Vec<Token>, Lexer<'a>)> {
    let mut tokens = vec![first];
    let found = read_block(source, lexer, &mut tokens, *ahead);
    if found.is_none() {
        *ahead = ahead.saturating_sub(tokens.len());
    }
    found.map(|lexer| (tokens, lexer))
}

/// Adds the tokens of a block, of which the first is there, and returns the lexer after them.
fn read_block<'a>(source: &str, mut lexer: Lexer<'a>, tokens: &mut Vec<Token>, most: usize) -> Option<Lexer<'a>> {
    let first = tokens[0];
    if first.is_keyword(source, "DECLARE") {
        read_declarations(source, &mut lexer, tokens)?;
    }
    let mut token = lexer.next()?;
    let of_transaction = TRANSACTION_WORDS.iter().any(|word| token.is_keyword(source, word));
    if of_transaction || !matches!(token.kind, TokenKind::Word | TokenKind::Placeholder | TokenKind::QuotedIdentifier) {
        return None;
    }
    let mut nesting = Nesting { open: 1, closing: false };
    while !nesting.closes(source, token) {
        tokens.push(token);
        match lexer.next() {
            Some(next) => token = next,
            None if nesting.closes_at_end() => return Some(lexer),
            None => return None,
        }
        if tokens.len() > most {
            return None;
        }
    }
    if token.kind == TokenKind::Word {
        tokens.push(token);
        match lexer.next() {
            Some(next) => token = next,
            None => return Some(lexer),
        }
    }
    lexer.seek(token.range.start as usize);
    token.is_punctuation(b';').then_some(lexer)
}

/// Up to BEGIN. `DECLARE name CURSOR FOR ...;` is a statement of its own.
fn read_declarations(source: &str, lexer: &mut Lexer<'_>, tokens: &mut Vec<Token>) -> Option<()> {
    let mut declarations = 0;
    loop {
        let token = lexer.next()?;
        if declarations == 0 && (token.is_keyword(source, "CURSOR") || token.is_keyword(source, "BEGIN")) {
            return None;
        }
        declarations += u32::from(token.is_punctuation(b';'));
        tokens.push(token);
        if token.is_keyword(source, "BEGIN") {
            return Some(());
        }
    }
}

struct Nesting {
    open: u32,
    /// Whether the last token was END, so that this one names the block that it ends.
    closing: bool,
}

impl Nesting {
    /// Reads one token; true when the token before it was the END of the block.
    fn closes(&mut self, source: &str, token: Token) -> bool {
        let is = |keyword: &str| token.is_keyword(source, keyword);
        if std::mem::take(&mut self.closing) {
            if is("IF") || is("LOOP") {
                return false;
            }
            self.open -= 1;
            if self.open == 0 {
                return true;
            }
            if is("CASE") {
                return false;
            }
        }
        if is("BEGIN") || is("CASE") {
            self.open += 1;
        }
        self.closing = is("END");
        false
    }

    /// Whether the last token of the text was the END of the block.
    fn closes_at_end(&self) -> bool {
        self.closing && self.open == 1
    }
}
