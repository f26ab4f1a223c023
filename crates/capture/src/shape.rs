//! The shape of a statement: its words without its values.

use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::source::TextRange;

const VALUE: &str = "?";

/// Returns a text that is equal for statements that differ in values alone, also in how many of them a list has.
pub(crate) fn shape(sql: &str) -> String {
    let whole = TextRange::new(0, u32::try_from(sql.len()).unwrap_or(u32::MAX));
    let mut words: Vec<String> = Vec::new();
    for token in tokenize(sql, whole) {
        let text = token.text(sql);
        let is_value = match token.kind {
            TokenKind::String
            | TokenKind::BitString
            | TokenKind::DollarString
            | TokenKind::Number
            | TokenKind::Parameter => true,
            TokenKind::Word => ["null", "true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)),
            _ => false,
        };
        words.push(match token.kind {
            _ if is_value => VALUE.to_owned(),
            TokenKind::Word => text.to_ascii_lowercase(),
            _ => text.to_owned(),
        });
        shorten(&mut words);
    }
    words.join(" ")
}

/// `?, ?` becomes `?`, and `(?), (?)` becomes `(?)`.
fn shorten(words: &mut Vec<String>) {
    for pattern in [&[VALUE, ",", VALUE][..], &["(", VALUE, ")", ",", "(", VALUE, ")"]] {
        if words.len() >= pattern.len() && words[words.len() - pattern.len()..].iter().eq(pattern.iter()) {
            words.truncate(words.len() - pattern.len() + (pattern.len() - 1) / 2);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_their_number_do_not_matter() {
        let one = shape("INSERT INTO t (a, b) VALUES (1, 'x')");
        assert_eq!(one, shape("insert into t (a, b) values (2, 'y'), (NULL, 'z'), (4, $1)"));
        assert_eq!(shape("UPDATE t SET a = 1 WHERE id IN (1, 2)"), shape("UPDATE t SET a = 2 WHERE id IN (7)"));
    }

    #[test]
    fn names_matter() {
        assert_ne!(shape("UPDATE t SET a = 1"), shape("UPDATE t SET b = 1"));
        assert_ne!(shape("SELECT a FROM \"T\""), shape("SELECT a FROM t"));
        assert_ne!(shape("SELECT a, b FROM t"), shape("SELECT a FROM t"));
    }
}
