//! Files that repeat the statements of another one, such as a script that was compiled of several migrations, or a schema
//! that was pasted between them. If both run, PostgreSQL refuses the second.

use super::replaced::{created, dropped, text};
use crate::project::ProjectFile;
use pgvet_linter::repository::Repeated;
use rustc_hash::{FxHashMap, FxHasher};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
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
                if runs_after(files, one, repeated) {
                    let removes = removes(&text(&files[repeated]));
                    let path = SmolStr::new(&files[repeated].shown().path);
                    files[one].evidence.repeated.get_or_insert(Repeated { path, removes });
                }
            }
        }
    }
}

/// Marks schemas among migrations: files that create tables which several other files create one after the other. All
/// later files of the same database are marked, because what others change may be in the schema already.
pub(super) fn mark_schemas(files: &mut [ProjectFile]) {
    let tables: Vec<BTreeSet<SmolStr>> = files.iter().map(tables).collect();
    for (database, schema) in schemas(files, &tables) {
        let path = SmolStr::new(&files[schema].shown().path);
        let mut first = None;
        for at in 0..files.len() {
            let is_migration = files[at].role.is_migration() && files[at].is_run();
            if at == schema || files[at].database != database || !is_migration {
                continue;
            }
            if runs_after(files, at, schema) {
                let repeated = Repeated { path: path.clone(), removes: true };
                files[at].evidence.repeated.get_or_insert(repeated);
            }
            let is_repeated = runs_after(files, schema, at) && !tables[at].is_disjoint(&tables[schema]);
            first = first.or_else(|| is_repeated.then(|| SmolStr::new(&files[at].shown().path)));
        }
        let repeated = first.map(|path| Repeated { path, removes: true });
        files[schema].evidence.repeated = files[schema].evidence.repeated.take().or(repeated);
    }
}

/// Whether a file may run after another one. What PostgreSQL refuses in the one that runs first, it refuses anyway.
fn runs_after(files: &[ProjectFile], one: usize, other: usize) -> bool {
    one > other || files[one].unknown_order.is_some() || files[other].unknown_order.is_some()
}

/// Whether any statement of a text takes something away that later statements may need.
fn removes(text: &str) -> bool {
    let mut words = text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    words.any(|word| ["DROP", "RENAME"].iter().any(|taken| word.eq_ignore_ascii_case(taken)))
}

/// The first schema of each database: a file that creates all tables of several others, and more than one.
fn schemas(files: &[ProjectFile], tables: &[BTreeSet<SmolStr>]) -> BTreeMap<u32, usize> {
    let mut creators: FxHashMap<(u32, &SmolStr), Vec<usize>> = FxHashMap::default();
    for (at, own) in tables.iter().enumerate() {
        own.iter().for_each(|table| creators.entry((files[at].database, table)).or_default().push(at));
    }
    let mut parts = vec![0_usize; files.len()];
    for (at, own) in tables.iter().enumerate() {
        // Few files create the rarest of the tables.
        let of_each = own.iter().filter_map(|table| creators.get(&(files[at].database, table)));
        let Some(fewest) = of_each.min_by_key(|creators| creators.len()) else { continue };
        let whole = fewest.iter().filter(|other| **other != at && own.is_subset(&tables[**other]));
        whole.for_each(|other| parts[*other] += 1);
    }
    let is_schema = |at: &usize| parts[*at] >= FEWEST && tables[*at].len() >= FEWEST;
    let mut schemas = BTreeMap::new();
    for at in (0..files.len()).filter(is_schema) {
        schemas.entry(files[at].database).or_insert(at);
    }
    schemas
}

/// The tables that a migration creates, and does not drop.
fn tables(file: &ProjectFile) -> BTreeSet<SmolStr> {
    if !(file.role.is_migration() && file.is_run()) {
        return BTreeSet::new();
    }
    let text = text(file);
    let lines = || text.lines().map(str::trim_start);
    let begins = |line: &str, verb: &str| line.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb));
    let created = lines().filter(|line| begins(line, "CREATE TABLE")).flat_map(created);
    let mut tables: BTreeSet<SmolStr> = created.collect();
    for line in lines().filter(|line| begins(line, "DROP TABLE")) {
        dropped(line).for_each(|table| {
            tables.remove(&table);
        });
    }
    tables
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
