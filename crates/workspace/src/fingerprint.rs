//! Identities of findings that outlive edits elsewhere in the file.

use crate::parallel;
use crate::project::ProjectFile;
use crate::roots::Repositories;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_syntax::lexer::{Lexer, Token, TokenKind};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;

/// FNV-1a, 64 bits, of nothing: <http://www.isthe.com/chongo/tech/comp/fnv/>. Its algorithm never changes.
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of more bytes after those that have this hash.
fn fnv1a(hash: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Parts end in a byte that no UTF-8 holds, so that moving text from one to the next makes a difference.
fn hash(before: u64, parts: &[&str]) -> u64 {
    fnv1a(before, parts.iter().flat_map(|part| part.bytes().chain([0xff])))
}

/// The fingerprint of each finding of a run; findings must come in the order of the report.
///
/// It is made of the rule, the path, the words of the statement, and the message without its numbers. Findings that are
/// equal in all of them are distinguished by their position among their equals. Lines, blanks and comments play no
/// part.
pub fn fingerprints(findings: &[(&ProjectFile, &Diagnostic)]) -> Vec<String> {
    let mut repositories = Repositories::default();
    let of_files = findings.chunk_by(|(file, _), (next, _)| std::ptr::eq(*file, *next));
    let of_files = of_files.map(|found| (found[0].0.stable_path_in(&mut repositories), found)).collect();
    let contents = parallel::map(of_files, |(path, found)| contents(&path, found)).concat();
    let mut seen = FxHashMap::default();
    contents.into_iter().map(|content| tell_apart(content, &mut seen)).collect()
}

/// The content of the findings of one file, as numbers.
fn contents(path: &str, findings: &[(&ProjectFile, &Diagnostic)]) -> Vec<u64> {
    // A long statement may have thousands of findings of one rule.
    let mut last = None;
    let mut before_message = FxHashMap::default();
    let content = |(file, diagnostic): &(&ProjectFile, &Diagnostic)| {
        let statement = diagnostic.statement;
        if last.replace(statement) != Some(statement) {
            before_message.clear();
        }
        let before_words = || hash(EMPTY, &[diagnostic.rule, path]);
        let of_rule = || hash_words(before_words(), &file.shown().text, statement);
        let before = *before_message.entry(diagnostic.rule).or_insert_with(of_rule);
        hash(before, &[&without_numbers(&diagnostic.message)])
    };
    findings.iter().map(content).collect()
}

fn tell_apart(content: u64, seen: &mut FxHashMap<u64, u32>) -> String {
    let occurrence = seen.entry(content).or_insert(0);
    let fingerprint = hash(EMPTY, &[&format!("{content:016x}"), &occurrence.to_string()]);
    *occurrence += 1;
    format!("{fingerprint:016x}")
}

/// The tokens of a statement as one part, a blank after each, and in lower case unless quoted. What is not split into
/// statements can be long, so the part is nowhere as a whole.
fn hash_words(before: u64, text: &str, statement: TextRange) -> u64 {
    let hash_token = |hash: u64, token: Token| {
        let word = token.text(text);
        let hash = match token.kind {
            TokenKind::Word => {
                let lower = word.chars().flat_map(char::to_lowercase);
                lower.fold(hash, |hash, character| fnv1a(hash, character.encode_utf8(&mut [0; 4]).bytes()))
            }
            _ => fnv1a(hash, word.bytes()),
        };
        fnv1a(hash, *b" ")
    };
    fnv1a(Lexer::new(text, statement).fold(before, hash_token), [0xff])
}

/// Numbers that are words of their own become `#`: byte offsets, row counts and versions come and go.
fn without_numbers(message: &str) -> String {
    let is_number = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit()) && !word.bytes().any(is_letter);
    let words = message.split_whitespace().map(|word| if is_number(&word) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(EMPTY, "a".bytes()), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(fnv1a(EMPTY, "foo".bytes()), "bar".bytes()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn parts_are_kept_apart() {
        assert_ne!(hash(EMPTY, &["ab", "c"]), hash(EMPTY, &["a", "bc"]));
    }

    #[test]
    fn layout_does_not_matter_but_repetition_does() {
        let words = |text: &str| hash_words(EMPTY, text, TextRange::new(0, text.len() as u32));
        assert_eq!(words("DROP \"A\""), hash(EMPTY, &["drop \"A\" "]));
        assert_eq!(words("DROP  TABLE\n-- why\n\"A\""), words("drop table \"A\""));
        assert_ne!(words("drop table \"A\""), words("drop table \"a\""));
        let mut seen = FxHashMap::default();
        let first = tell_apart(1, &mut seen);
        assert_ne!(first, tell_apart(1, &mut seen));
        assert_eq!(first, tell_apart(1, &mut FxHashMap::default()));
    }

    #[test]
    fn numbers_of_a_message_do_not_matter() {
        assert_eq!(without_numbers("scans 10 rows of `t1`"), without_numbers("scans 11 rows of `t1`"));
        assert_ne!(without_numbers("scans 10 rows of `t1`"), without_numbers("scans 10 rows of `t2`"));
    }
}
