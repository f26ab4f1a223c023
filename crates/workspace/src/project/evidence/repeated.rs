//! Files that repeat the statements of another one, such as a script that was compiled of several migrations. If both run,
//! PostgreSQL refuses the second.

use super::replaced::text;
use crate::project::ProjectFile;
use rustc_hash::{FxHashMap, FxHasher};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

/// The fewest statements by which a file is recognized in another. One can be the same by chance, or by mistake.
const FEWEST: usize = 2;

/// Marks the files of which one repeats all statements of the other.
pub(super) fn mark(files: &mut [ProjectFile]) {
    let statements: Vec<BTreeSet<u64>> = files.iter().map(statements).collect();
    let mut holders: FxHashMap<(u32, u64), Vec<usize>> = FxHashMap::default();
    for (at, own) in statements.iter().enumerate() {
        for statement in own {
            holders.entry((files[at].database, *statement)).or_default().push(at);
        }
    }
    for (at, own) in statements.iter().enumerate().filter(|(_, own)| own.len() >= FEWEST) {
        let of_each = own.iter().filter_map(|statement| holders.get(&(files[at].database, *statement)));
        let Some(fewest) = of_each.min_by_key(|holders| holders.len()) else { continue };
        let repeats = |other: &&usize| **other != at && own.is_subset(&statements[**other]);
        if let Some(other) = fewest.iter().find(repeats).copied() {
            for (one, repeated) in [(at, other), (other, at)] {
                let path = SmolStr::new(&files[repeated].shown().path);
                files[one].evidence.repeated.get_or_insert(path);
            }
        }
    }
}

/// Numbers of the statements that PostgreSQL would refuse the second time, one for each text without comments.
fn statements(file: &ProjectFile) -> BTreeSet<u64> {
    let is_run = file.role.is_migration() && file.is_run();
    let text = if is_run { text(file) } else { Cow::Borrowed("") };
    let mut numbers = BTreeSet::new();
    let (mut start, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        end += line.len();
        if line.trim_end().ends_with(';') {
            numbers.extend(number(&text[start..end]));
            start = end;
        }
    }
    numbers
}

/// `None` for a statement that can run twice, or that changes rows.
fn number(statement: &str) -> Option<u64> {
    const REFUSED: [&str; 3] = ["CREATE", "ALTER", "DROP"];
    const REPEATABLE: [&str; 3] = ["EXISTS", "REPLACE", "TEMP"];
    let lines = statement.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    let mut words = lines.flat_map(str::split_ascii_whitespace).peekable();
    let is = |word: &str, among: &[&str]| among.iter().any(|one| word.eq_ignore_ascii_case(one));
    let is_refused = words.peek().is_some_and(|first| is(first, &REFUSED));
    if !is_refused || words.clone().take(8).any(|word| is(word, &REPEATABLE)) {
        return None;
    }
    let mut hasher = FxHasher::default();
    words.for_each(|word| word.hash(&mut hasher));
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_and_comments_make_no_other_statement() {
        let one = number("-- a\nALTER TABLE a\n    ADD b int;\n");
        assert!(one.is_some());
        assert_eq!(one, number("ALTER  TABLE a ADD b int;\n"));
        assert_ne!(one, number("ALTER TABLE a ADD c int;\n"));
        for text in ["SET x = 1;", "CREATE OR REPLACE VIEW a AS SELECT 1;", "DROP TABLE IF EXISTS a;", "BEGIN;"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
