//! Identities of findings that outlive edits elsewhere in the file.

use pgvet_linter::diagnostic::Diagnostic;
use std::collections::BTreeMap;

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>. Its algorithm never changes.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Parts end in a byte that no UTF-8 holds, so that moving text from one to the next makes a difference.
fn hash(parts: &[&str]) -> u64 {
    fnv1a(parts.iter().flat_map(|part| part.bytes().chain([0xff])))
}

/// Gives each finding of a run its fingerprint; findings must come in the order of the report.
///
/// It is made of the rule, the path, the relations and the message without its numbers. What is equal in all of them
/// is told apart by its place among its equals. Line numbers play no part.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    seen: BTreeMap<u64, u32>,
}

impl Fingerprints {
    pub(crate) fn next(&mut self, path: &str, diagnostic: &Diagnostic) -> String {
        let relations = diagnostic.relations.join(",");
        let base = hash(&[diagnostic.rule, path, &relations, &without_numbers(&diagnostic.message)]);
        let occurrence = self.seen.entry(base).or_insert(0);
        let fingerprint = hash(&[&format!("{base:016x}"), &occurrence.to_string()]);
        *occurrence += 1;
        format!("{fingerprint:016x}")
    }
}

/// Numbers that stand alone become `#`: byte offsets, row counts and versions come and go.
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
    use pgvet_linter::diagnostic::Severity;
    use pgvet_linter::effect::Evidence;
    use pgvet_linter::source::TextRange;

    fn finding(message: &str, at: u32) -> Diagnostic {
        Diagnostic {
            rule: "a-rule",
            severity: Severity::Error,
            message: message.to_owned(),
            help: None,
            file: 0,
            range: TextRange::at(at),
            statement: TextRange::at(at),
            labels: Vec::new(),
            relations: vec!["public.t".to_owned()],
            pg_versions: Vec::new(),
            fixes: Vec::new(),
            evidence: Evidence::Predicted,
        }
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a("a".bytes()), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar".bytes()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn parts_are_kept_apart() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }

    #[test]
    fn the_place_does_not_matter_but_repetition_does() {
        let mut first = Fingerprints::default();
        let mut second = Fingerprints::default();
        let original = first.next("a.sql", &finding("scans 10 rows of `t1`", 5));
        assert_eq!(original, second.next("a.sql", &finding("scans 11 rows of `t1`", 90)));
        assert_ne!(original, second.next("a.sql", &finding("scans 11 rows of `t1`", 95)));
        assert_ne!(original, first.next("b.sql", &finding("scans 10 rows of `t1`", 5)));
        assert_ne!(original, first.next("a.sql", &finding("scans 10 rows of `t2`", 5)));
    }
}
