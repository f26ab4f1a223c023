//! Down migrations, as far as names of files and folders tell them.

use crate::order::PostgratorName;
use crate::skipped::is_sql;
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};

/// Words that names of down migrations end or begin with.
const WORDS: [&str; 5] = ["down", "downgrade", "rollback", "undo", "revert"];

/// Names of folders with down migrations.
const FOLDERS: [&str; 9] =
    ["down", "downs", "downgrade", "downgrades", "rollback", "rollbacks", "undo", "revert", "reverts"];

/// Names of folders with the up migrations beside them.
const UP_FOLDERS: [&str; 9] = ["up", "ups", "upgrade", "upgrades", "do", "deploy", "apply", "forward", "migrate"];

/// Returns whether the name of a file, or of the folder that holds it, says that the file undoes a migration:
/// `down.sql`, `x.down.sql`, `1.undo.x.sql`, and `1_x_rollback.sql` or `rollback/1_x.sql` if there is what they
/// undo.
pub(crate) fn is_rollback_migration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "down.sql"
        || PostgratorName::parse(&name).is_some_and(|name| name.undo)
        || has_last_part(&name)
        || counterpart(path, &name).is_some()
        || up_folder(path).is_some()
}

/// Whether the up migration of `1_x.down.sql`, `1_x_down.sql` or `down_1_x.sql` is beside it.
pub(crate) fn has_up_migration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let of_part = stem(&name).filter(|_| has_last_part(&name)).and_then(|stem| stem.rsplit_once('.'));
    let up = of_part.map(|(version, _)| path.with_file_name(format!("{version}.up.sql")));
    up.is_some_and(|up| up.is_file()) || counterpart(path, &name).is_some()
}

/// Whether the last part of a name is a word for down migrations: `1_x.down.sql`.
fn has_last_part(name: &str) -> bool {
    let Some(stem) = stem(name) else { return false };
    stem.rsplit_once('.').is_some_and(|(before, last)| !before.is_empty() && is_word(last))
}

fn stem(name: &str) -> Option<&str> {
    is_sql(name).then(|| &name[..name.len() - ".sql".len()])
}

fn is_word(text: &str) -> bool {
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns the up migration of `1_x_down.sql` or `down_1_x.sql`, if it is beside it: either name alone may be that of any
/// migration.
fn counterpart(path: &Path, name: &str) -> Option<PathBuf> {
    let stem = stem(name)?;
    let end = stem.rfind(['_', '-']).filter(|at| is_word(&stem[at + 1..]));
    let start = stem.find(['_', '-']).filter(|at| is_word(&stem[..*at]));
    let after = end.map(|at| {
        let (base, separator) = (&stem[..at], &stem[at..=at]);
        vec![format!("{base}{separator}up"), format!("{base}{separator}upgrade"), format!("{base}.up"), base.to_owned()]
    });
    let before = start.map(|at| {
        let (base, separator) = (&stem[at + 1..], &stem[at..=at]);
        vec![format!("up{separator}{base}"), base.to_owned()]
    });
    let names = after.into_iter().chain(before).flatten();
    names.map(|name| path.with_file_name(format!("{name}.sql"))).find(|other| other.is_file())
}

/// Whether a name with a version says that the file undoes a migration, whose name need not be the same:
/// `003_rollback_orders.sql`, `003_rollback.sql`.
pub(crate) fn has_word(name: &str) -> bool {
    let Some((_, rest)) = stem(name).and_then(version_and_rest) else { return false };
    let first = rest.split(['_', '-']).next().unwrap_or_default();
    let last = rest.rsplit(['_', '-']).next().unwrap_or_default();
    is_word(rest) || [first, last].iter().any(|word| is_word(word) && !word.eq_ignore_ascii_case("down"))
}

/// The versions of the migrations of a folder that scripts beside them may undo; none without such a script.
pub(crate) fn undone_versions(names: &[String]) -> FxHashSet<String> {
    if !names.iter().any(|name| has_word(name)) {
        return FxHashSet::default();
    }
    let migrations = names.iter().filter(|name| !has_word(name));
    migrations.filter_map(|name| version(name)).map(str::to_owned).collect()
}

/// Whether a script undoes the migration of the same version.
pub(crate) fn undoes(name: &str, versions: &FxHashSet<String>) -> bool {
    has_word(name) && version(name).is_some_and(|version| versions.contains(version))
}

fn version(name: &str) -> Option<&str> {
    stem(name).and_then(version_and_rest).map(|(version, _)| version)
}

/// The digits at the beginning of a name, and what follows the separator after them.
fn version_and_rest(stem: &str) -> Option<(&str, &str)> {
    let end = stem.find(|one: char| !one.is_ascii_digit()).filter(|end| *end > 0)?;
    let rest = stem[end..].strip_prefix(['_', '-'])?;
    Some((&stem[..end], rest))
}

/// Returns the folder with the up migrations, if a folder around the file is one of down migrations: a folder beside it
/// with a name for them, or the folder around it if that holds SQL files.
pub(crate) fn up_folder(path: &Path) -> Option<PathBuf> {
    let is_down = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        FOLDERS.iter().any(|word| name.eq_ignore_ascii_case(word))
    };
    let down = path.ancestors().skip(1).take(2).find(is_down)?;
    let up = UP_FOLDERS.iter().map(|name| down.with_file_name(name)).find(|folder| folder.is_dir());
    up.or_else(|| down.parent().map(non_empty).filter(|folder| holds_sql(folder)))
}

/// Whether a folder with down migrations is beside this one.
pub(crate) fn is_beside_down_folder(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_up = UP_FOLDERS.iter().any(|word| name.eq_ignore_ascii_case(word));
    is_up && FOLDERS.iter().any(|word| folder.with_file_name(word).is_dir())
}

fn non_empty(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

fn holds_sql(folder: &Path) -> bool {
    let entries = folder.read_dir().into_iter().flatten().filter_map(Result::ok);
    entries.into_iter().any(|entry| is_sql(&entry.file_name().to_string_lossy()))
}

/// Returns the name without what says that it is one half of a pair.
pub(crate) fn without_direction<'n>(path: &Path, name: &'n str) -> &'n str {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut base = stem(name).unwrap_or(name);
    if PostgratorName::parse(name).is_some() {
        return base;
    }
    if let Some((before, last)) = base.rsplit_once('.')
        && (is_word(last) || last.eq_ignore_ascii_case("up"))
    {
        base = before;
    }
    let is_up = |last: &str| last.eq_ignore_ascii_case("up") || last.eq_ignore_ascii_case("upgrade");
    match base.rsplit_once(['_', '-']) {
        Some((before, last)) if is_word(last) && counterpart(path, &file_name).is_some() => before,
        Some((before, last)) if is_up(last) && has_down(path, before) => before,
        _ => base,
    }
}

/// Whether the down migration of `1_x_up.sql` is beside it.
fn has_down(path: &Path, base: &str) -> bool {
    ["_", "-"]
        .iter()
        .any(|separator| WORDS.iter().any(|word| path.with_file_name(format!("{base}{separator}{word}.sql")).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn scripts_beside_a_migration_of_the_same_version_take_it_back() {
        let names = ["1_x.sql", "1_rollback_all.sql", "2_revert_x.sql", "3_y.sql", "3_down.sql", "3_slow_down.sql"];
        let versions = undone_versions(&names.map(str::to_owned));
        for (file, expected) in [
            ("1_rollback_all.sql", true),
            ("1_x.sql", false),
            ("2_revert_x.sql", false),
            ("3_down.sql", true),
            ("3_slow_down.sql", false),
        ] {
            assert_eq!(undoes(file, &versions), expected, "{file}");
        }
    }

    #[test]
    fn names_and_folders_tell_down_migrations_beside_what_they_take_back() {
        let root = tempfile::tempdir().unwrap();
        let at = |file: &str| root.path().join(file);
        for file in [
            "a/1_x.sql",
            "a/1_x_rollback.sql",
            "a/2_y-up.sql",
            "a/2_y-down.sql",
            "a/undo_1_x.sql",
            "a/3_z_revert.sql",
            "a/4_slow_down.sql",
            "a/rollback/1_x.sql",
            "b/up/1_x.sql",
            "b/Downgrade/2024/1_x.sql",
            "c/undo/1_x.sql",
            "c/x.txt",
        ] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "").unwrap();
        }
        let down = [
            "a/1_x_rollback.sql",
            "a/2_y-down.sql",
            "a/undo_1_x.sql",
            "a/rollback/1_x.sql",
            "b/Downgrade/2024/1_x.sql",
            "a/9.undo.sql",
            "a/9_x.Revert.sql",
        ];
        for file in down {
            assert!(is_rollback_migration(&at(file)), "{file}");
        }
        for file in
            ["a/1_x.sql", "a/2_y-up.sql", "a/3_z_revert.sql", "a/4_slow_down.sql", "b/up/1_x.sql", "c/undo/1_x.sql"]
        {
            assert!(!is_rollback_migration(&at(file)), "{file}");
        }
        assert_eq!(up_folder(&at("a/rollback/1_x.sql")), Some(at("a")));
        assert_eq!(up_folder(&at("b/Downgrade/2024/1_x.sql")), Some(at("b/up")));
        assert_eq!(without_direction(&at("a/2_y-up.sql"), "2_y-up.sql"), "2_y");
        assert_eq!(without_direction(&at("a/1_x_rollback.sql"), "1_x_rollback.sql"), "1_x");
        assert_eq!(without_direction(&at("a/4_slow_down.sql"), "4_slow_down.sql"), "4_slow_down");
    }
}
