//! Baselines that are divided into files: each file, or each folder, holds the objects of one kind, or one script includes
//! the others. One run creates all of them in an empty database, so no file meets rows that another one has not put in.

use super::is_judged;
use super::replaced::{created, text};
use crate::order;
use crate::project::ProjectFile;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The word for parts that hold tables. A `schema` would have the other kinds as well, so what follows it is a change.
const TABLES: &str = "tables";

/// Words for kinds of objects. The plural says that a file has all of them: `add_index` is about one.
const KINDS: [&str; 13] = [
    TABLES,
    "constraints",
    "fks",
    "foreign",
    "indexes",
    "indices",
    "extensions",
    "enums",
    "matviews",
    "functions",
    "procedures",
    "triggers",
    "rls",
];

/// Words for kinds that are also names of tables.
const AMBIGUOUS: [&str; 8] = ["schema", "schemas", "types", "domains", "sequences", "views", "policies", "grants"];

/// Words that may stand beside them.
const BESIDE: [&str; 7] = ["create", "init", "initial", "base", "keys", "materialized", "and"];

/// The position of a part, and the kind that it has, by its name or that of its folder.
type Parts = Vec<(usize, String)>;

/// Gives the files of divided baselines the tables that the other files create.
pub(super) fn mark(files: &mut [ProjectFile]) {
    for parts in divided(files).into_values() {
        let kinds: BTreeSet<&str> = parts.iter().flat_map(|(_, kind)| words(kind)).collect();
        if kinds.contains(TABLES) && KINDS.iter().filter(|kind| kinds.contains(*kind)).count() > 1 {
            share_tables(files, &parts.iter().map(|(at, _)| *at).collect::<Vec<_>>());
        }
    }
    for parts in included(files) {
        share_tables(files, &parts);
    }
}

/// Notes which tables files create that run together. A part that git calls new runs after those that it does not.
fn share_tables(files: &mut [ProjectFile], parts: &[usize]) {
    for is_new in [false, true] {
        let run_together: Vec<usize> = parts.iter().copied().filter(|at| files[*at].past.is_new == is_new).collect();
        let tables: BTreeSet<SmolStr> =
            run_together.iter().flat_map(|at| created(&text(&files[*at])).collect::<Vec<_>>()).collect();
        let tables = Arc::new(tables);
        for at in run_together {
            let file = &mut files[at];
            if is_judged(file) && file.past.before.is_none() {
                file.evidence.built_with = Some(Arc::clone(&tables));
            }
        }
    }
}

/// The scripts without versions that one script includes, together with it: psql runs all of them at once.
fn included(files: &[ProjectFile]) -> Vec<Vec<usize>> {
    let is_script = |file: &ProjectFile| file.role.is_migration() && file.is_run() && !order::is_versioned(&file.path);
    let scripts = || files.iter().enumerate().filter(|(_, file)| is_script(file));
    let parts = |(at, file): (usize, &ProjectFile)| {
        let named: Vec<PathBuf> = file.parsed.source.text.lines().filter_map(included_path).collect();
        if named.len() < 2 {
            return None;
        }
        let is_named = |other: &ProjectFile| named.iter().any(|path| other.path.ends_with(path));
        let others = scripts().filter(|(other, file)| *other != at && is_named(file)).map(|(other, _)| other);
        let parts: Vec<usize> = others.chain([at]).collect();
        (parts.len() > 2).then_some(parts)
    };
    scripts().filter_map(parts).collect()
}

/// The path in `\i tables/users.sql`, without the folders that lead up.
fn included_path(line: &str) -> Option<PathBuf> {
    const INCLUDE: [&str; 4] = ["\\i", "\\ir", "\\include", "\\include_relative"];
    let mut words = line.split_ascii_whitespace();
    words.next().filter(|command| INCLUDE.contains(command))?;
    let path = words.next()?.trim_matches(['\'', '"']);
    let parts = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    Some(parts.collect::<PathBuf>()).filter(|path| path.file_name().is_some())
}

/// The baselines, by folder.
fn divided(files: &[ProjectFile]) -> BTreeMap<PathBuf, Parts> {
    let mut found: BTreeMap<PathBuf, Parts> = BTreeMap::new();
    // A migration that comes after another name is a later one, whatever its own name.
    let mut ended: BTreeSet<PathBuf> = BTreeSet::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.role.is_migration() && file.is_run()) {
        if let Some((folder, kind)) = of_folder(&file.path) {
            found.entry(folder).or_default().push((at, kind));
            continue;
        }
        let place = file.path.parent().unwrap_or(Path::new("")).to_owned();
        match kind_of_file(&file.path).filter(|_| !ended.contains(&place)) {
            Some(kind) => found.entry(place).or_default().push((at, kind)),
            None if order::is_versioned(&file.path) => {
                ended.insert(place);
            }
            None => {}
        }
    }
    found
}

/// The folder around the folder of a kind that holds a file, and that kind: `schema/tables/users.sql`.
fn of_folder(path: &Path) -> Option<(PathBuf, String)> {
    let folder = path.ancestors().skip(1).find_map(|folder| {
        let kind = kind(folder.file_name()?.to_str()?)?;
        // `schema/` holds the folders of kinds.
        (!kind.starts_with("schema")).then_some((folder, kind))
    });
    folder.map(|(folder, kind)| (folder.parent().unwrap_or(Path::new("")).to_owned(), kind))
}

fn kind_of_file(path: &Path) -> Option<String> {
    kind(path.file_stem()?.to_str()?.trim_end_matches(".up"))
}

/// The kind of objects that a name names, without its version: `003_foreign_keys`, `V2__indexes`.
fn kind(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let after_version = name.trim_start_matches('v').trim_start_matches(|one: char| !one.is_ascii_alphabetic());
    let name =
        if name.starts_with('v') && after_version.len() + 1 == name.len() { name.as_str() } else { after_version };
    let is_kind = |word: &str| KINDS.contains(&word) || AMBIGUOUS.contains(&word);
    let all = || words(name);
    (all().any(is_kind) && all().all(|word| is_kind(word) || BESIDE.contains(&word))).then(|| name.to_owned())
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(['_', '-', '.', ' ']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_are_no_other_names() {
        for (name, expected) in [
            ("tables", Some("tables")),
            ("001_create_tables", Some("create_tables")),
            ("V2__indexes", Some("indexes")),
            ("03-foreign_keys", Some("foreign_keys")),
            ("views", Some("views")),
            ("init_schemas", Some("init_schemas")),
            ("004_add_indexes", None),
            ("005_index", None),
            ("006_order_views", None),
            ("init", None),
            ("007", None),
        ] {
            assert_eq!(kind(name).as_deref(), expected, "{name}");
        }
    }
}
