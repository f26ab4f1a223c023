//! Words that an older grammar accepts as a name where PostgreSQL 18 does not.

use super::{TokenKind, tokenize};
use crate::source::TextRange;

/// The word, and the major from which on it is more than an unreserved keyword. Source: `pg_get_keywords()` of 14 to 18.
const NEWER: [(&str, u8); 13] = [
    ("json", 17),
    ("json_array", 16),
    ("json_arrayagg", 16),
    ("json_exists", 17),
    ("json_object", 16),
    ("json_objectagg", 16),
    ("json_query", 17),
    ("json_scalar", 17),
    ("json_serialize", 17),
    ("json_table", 17),
    ("json_value", 17),
    ("merge_action", 17),
    ("system_user", 16),
];

/// The major from which on PostgreSQL refuses a statement whose words are names before. `is_accepted` parses a text as
/// PostgreSQL 18 does. `None` if the words do not explain the refusal.
pub fn refused_from(statement: &str, is_accepted: impl Fn(&str) -> bool) -> Option<u8> {
    // What is not split into statements can be long, and tokens take memory.
    if !statement.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| major_of(word).is_some()) {
        return None;
    }
    let mut majors: Vec<u8> = words(statement).map(|(_, major)| major).collect();
    majors.sort_unstable();
    majors.dedup();
    let accepts = |major: u8| is_accepted(&as_names(statement, major));
    // The grammar before the oldest change accepts the statement, or the words have nothing to do with it.
    let before = majors.first()? - 1;
    accepts(before).then(|| majors.into_iter().find(|major| !accepts(*major)))?
}

/// The text with the words that are keywords only after this major as quoted names.
fn as_names(statement: &str, major: u8) -> String {
    let mut text = String::with_capacity(statement.len() + 16);
    let mut copied = 0;
    for (range, _) in words(statement).filter(|(_, since)| *since > major) {
        text.push_str(&statement[copied..range.start as usize]);
        text.extend(["\"", &statement[range.as_usize()].to_ascii_lowercase(), "\""]);
        copied = range.end as usize;
    }
    text + &statement[copied..]
}

fn words(statement: &str) -> impl Iterator<Item = (TextRange, u8)> {
    let tokens = tokenize(statement, TextRange::new(0, statement.len() as u32));
    let words = tokens.into_iter().filter(|token| token.kind == TokenKind::Word);
    words.filter_map(move |token| Some((token.range, major_of(token.text(statement))?)))
}

fn major_of(word: &str) -> Option<u8> {
    NEWER.iter().find(|(newer, _)| newer.eq_ignore_ascii_case(word)).map(|(_, major)| *major)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::from_pg::parse_sql;

    #[test]
    fn a_refusal_begins_with_the_major_that_made_a_word_a_keyword() {
        for (statement, expected) in [
            ("CREATE FUNCTION f() RETURNS TABLE (json json) LANGUAGE sql AS 'SELECT NULL'", Some(17)),
            ("CREATE TABLE t (System_User text)", Some(16)),
            ("CREATE FUNCTION json(system_user text) RETURNS text LANGUAGE sql AS 'SELECT 1'", Some(16)),
            ("CREATE TABLE t (json json,)", None),
            ("CREATE TABLE t (a json b)", None),
        ] {
            assert!(parse_sql(statement).is_err(), "{statement}");
            assert_eq!(refused_from(statement, |text| parse_sql(text).is_ok()), expected, "{statement}");
        }
    }
}
