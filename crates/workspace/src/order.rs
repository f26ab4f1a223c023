//! The order in which migration tools run files.

use crate::layout::Order;
use crate::layout::explicit_order::{ExplicitOrder, Orders};
use crate::layout::numbering::Numberings;
use crate::rollback_name;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A number of any length, such that comparing compares numbers.
pub(crate) type Number = (usize, String);

/// The key by which files are sorted, most significant part first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The folder with numbers that compare as numbers.
    place: String,
    /// The folder whose files are run as one sequence.
    sequence: PathBuf,
    class: Class,
    version: Vec<Number>,
    name: String,
    /// An undo migration comes after what it undoes.
    undo: bool,
    path: PathBuf,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Versioned,
    Unversioned,
    /// Flyway runs `R__` files after all others, by description; changelogs of Liquibase beside the main one come then.
    Repeatable,
}

/// Sorts the files below one folder.
pub(crate) fn sort(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    sort_by(&mut files, PathBuf::clone);
    files
}

/// Sorts what belongs to the files below one folder.
pub(crate) fn sort_by<T>(items: &mut [T], path: impl Fn(&T) -> PathBuf) {
    let mut orders = Orders::default();
    let paths: Vec<PathBuf> = items.iter().map(&path).collect();
    let numberings = Numberings::of(&paths);
    let with_versions = folders_of_versions(&paths);
    items.sort_by_cached_key(|item| {
        let path = path(item);
        let explicit = orders.around(path.parent().unwrap_or(Path::new("")));
        let mut key = key(&path, explicit.as_deref(), numberings.order_of(&path));
        if key.class == Class::Unversioned && with_versions.contains(&key.sequence) {
            key.place.push_str(AFTER_ALL_BELOW);
        }
        key
    });
}

/// Makes the place of a folder sort after those of all folders below it.
const AFTER_ALL_BELOW: &str = "/\u{10FFFF}";

/// The folders below which folders that are versions hold migrations: in `3.1/0001_a.sql`, `3.2/0001_b.sql` and
/// `LATEST.sql`, the last has no version, and comes after the others as it would in their folder.
fn folders_of_versions(paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    let is_version = |name: &str, whole: bool| leading_version(name).is_some_and(|(_, rest)| !whole || rest.is_empty());
    let folder_of = |path: &PathBuf| {
        let (sequence, name) = place(path);
        let folder = sequence.file_name()?.to_string_lossy();
        (is_version(&name, false) && is_version(&folder, true)).then(|| sequence.parent().map(Path::to_owned))?
    };
    paths.iter().filter_map(folder_of).collect()
}

/// The folder of the migrations that a tool's own list, kept around `parent`, names.
pub(crate) fn explicit_root(parent: &Path) -> Option<PathBuf> {
    Orders::default().around(parent).map(|order| order.root.clone())
}

/// The folder whose files are run as one sequence with this one.
pub(crate) fn sequence(path: &Path) -> PathBuf {
    key(path, None, LETTERS).sequence
}

/// The version that the name begins with, such that equal ones are equal for a tool that reads numbers.
pub(crate) fn version(path: &Path) -> Option<Vec<Number>> {
    let key = key(path, None, LETTERS);
    (key.class == Class::Versioned).then(|| trim_zeros(key.version))
}

/// What the two halves of a pair of up and down migration have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PairKey {
    sequence: PathBuf,
    version: Vec<Number>,
    name: String,
}

impl PairKey {
    /// Whether both have the same version, whatever their names are.
    pub(crate) fn has_version_of(&self, other: &Self) -> bool {
        !self.version.is_empty() && self.sequence == other.sequence && self.version == other.version
    }
}

/// The key of a migration, which is also that of the migration that takes it back.
pub(crate) fn pair_key(path: &Path, explicit: Option<&ExplicitOrder>) -> PairKey {
    let Key { sequence, version, name, .. } = key(path, explicit, LETTERS);
    PairKey { sequence, version, name }
}

/// Whether Flyway treats the file as an undo migration: `U1__x.sql`.
pub(crate) fn is_flyway_undo(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    FlywayName::parse(&name).is_some_and(|name| name.kind == 'U')
}

/// Whether the name begins with a version.
pub(crate) fn is_versioned(path: &Path) -> bool {
    key(path, None, LETTERS).class != Class::Unversioned
}

/// The place of the newest of migrations in order. Where some of them have versions, those that come after them without
/// one are none, or run again whenever they change. `None` where folders follow each other whose names have no numbers:
/// a new migration may be in each of them.
pub(crate) fn newest(paths: &[&Path]) -> Option<usize> {
    let mut keys: Vec<(usize, Key)> = keys(paths).into_iter().enumerate().collect();
    if keys.iter().any(|(_, key)| key.class == Class::Versioned) {
        keys.retain(|(_, key)| key.class == Class::Versioned);
    }
    let (place, last) = keys.last()?;
    let is_numbered = |folder: &Path| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.bytes().any(|byte| byte.is_ascii_digit())
    };
    let may_be_elsewhere = |key: &Key| key.sequence != last.sequence && !is_numbered(&key.sequence);
    (!keys.iter().any(|(_, key)| may_be_elsewhere(key))).then_some(*place)
}

/// In how many folders the migrations have an order of their own.
pub(crate) fn sequences(paths: &[&Path]) -> usize {
    keys(paths).iter().map(|key| &key.sequence).collect::<BTreeSet<_>>().len()
}

fn keys(paths: &[&Path]) -> Vec<Key> {
    let mut orders = Orders::default();
    let mut key = |path: &Path| key(path, orders.around(path.parent().unwrap_or(Path::new(""))).as_deref(), LETTERS);
    paths.iter().map(|path| key(path)).collect()
}

/// Whether `wanted` means this file: its name, the end of its path, its folder, or its version.
pub(crate) fn is_called(path: &Path, wanted: &str) -> bool {
    let wanted = wanted.trim_start_matches("./");
    if path.ends_with(wanted) || (FOLDER_MIGRATIONS.iter().any(|name| path.ends_with(Path::new(wanted).join(name)))) {
        return true;
    }
    let version = leading_version(wanted).filter(|(_, rest)| rest.is_empty()).map(|(version, _)| trim_zeros(version));
    version.is_some_and(|version| trim_zeros(key(path, None, LETTERS).version) == version)
}

/// The order of files of which nothing else is known.
const LETTERS: Order = Order::Number { letter: true };

fn key(path: &Path, explicit: Option<&ExplicitOrder>, order: Order) -> Key {
    let parent = path.parent().unwrap_or(Path::new(""));
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let plain = |sequence: &Path, class, version, name: &str| Key {
        place: padded(&sequence.to_string_lossy()),
        sequence: sequence.to_owned(),
        class,
        version,
        undo: false,
        name: name.to_owned(),
        path: path.to_owned(),
    };
    if let Some(order) = explicit {
        return match order.place(path) {
            Some(place) => {
                let class = if order.is_main(place) { Class::Versioned } else { Class::Repeatable };
                let key = plain(&order.root, class, vec![number(&place.to_string())], "");
                Key { undo: order.is_outside_sequence(), ..key }
            }
            None => plain(&order.root, Class::Unversioned, Vec::new(), &file_name),
        };
    }
    if let Some(flyway) = FlywayName::parse(&file_name) {
        let class = if flyway.kind == 'R' { Class::Repeatable } else { Class::Versioned };
        let mut key = plain(&flyway_location(parent), class, flyway.version(), flyway.description);
        key.undo = flyway.kind == 'U';
        return key;
    }
    if let Some(committed) = graphile_committed(parent, &file_name) {
        return plain(&committed, Class::Unversioned, Vec::new(), &file_name);
    }
    let (sequence, name) = place(path);
    let up = rollback_name::up_folder(path);
    let sequence = up.as_deref().unwrap_or(sequence);
    let name = rollback_name::without_direction(path, &name);
    let mut key = match (leading_version(name), order) {
        (None, _) => plain(sequence, Class::Unversioned, Vec::new(), name),
        (Some(_), Order::Number { letter: false }) if name.starts_with(['v', 'V']) => {
            plain(sequence, Class::Unversioned, Vec::new(), name)
        }
        (Some((version, rest)), Order::Number { .. } | Order::List) => plain(sequence, Class::Versioned, version, rest),
        (Some(_), Order::Name) => plain(sequence, Class::Versioned, Vec::new(), &file_name),
        (Some(_), Order::VersionText) => plain(sequence, Class::Versioned, Vec::new(), &version_text(name)),
    };
    key.undo = rollback_name::is_rollback_migration(path);
    key
}

/// The folder whose files are run as one sequence, and the name that has the version: Diesel, Prisma and others take the
/// folder for the migration.
pub(crate) fn place(path: &Path) -> (&Path, String) {
    let parent = path.parent().unwrap_or(Path::new(""));
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match (FOLDER_MIGRATIONS.contains(&file_name.as_str()), parent.file_name()) {
        (true, Some(folder)) => (parent.parent().unwrap_or(parent), folder.to_string_lossy().into_owned()),
        _ => (parent, file_name),
    }
}

/// The version as text and then the rest of the name. Diesel leaves the dashes out of a version, see [`dated_version`].
fn version_text(name: &str) -> String {
    let (version, rest) = name.split_once('_').unwrap_or((name, ""));
    // The mark sorts before every character of a version.
    format!("{}\u{1}{rest}", version.replace('-', ""))
}

/// Whether the order of names, or of versions as texts, may differ from that of their numbers.
pub(crate) fn depends_on_tool(names: &[String]) -> bool {
    let digits = |name: &String| name.bytes().take_while(u8::is_ascii_digit).count();
    let mut lengths = names.iter().map(digits).filter(|length| *length > 0);
    let first = lengths.next();
    let is_dated = |name: &String| dated_version(name).is_some();
    let is_flyway = |name: &String| FlywayName::parse(name).is_some();
    let is_lettered =
        |name: &String| !is_flyway(name) && name.starts_with(['v', 'V']) && leading_version(name).is_some();
    names.iter().any(is_lettered) || (lengths.any(|length| Some(length) != first) && !names.iter().all(is_dated))
}

/// The text with numbers so long that comparing texts compares numbers: `v9` comes before `v10`.
fn padded(text: &str) -> String {
    let mut padded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|first: char| first.is_ascii_digit()) {
        let length = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        padded.push_str(&rest[..start]);
        padded.extend(std::iter::repeat_n('0', LONGEST_NUMBER.saturating_sub(length)));
        padded.push_str(&rest[start..start + length]);
        rest = &rest[start + length..];
    }
    padded + rest
}

/// Numbers in names of folders, such as 20240131120000, are not longer.
const LONGEST_NUMBER: usize = 20;

/// Names of files whose folder is the migration.
const FOLDER_MIGRATIONS: [&str; 3] = ["up.sql", "down.sql", "migration.sql"];

/// `1`, `0001`, `20240131120000`, `1.10.2` or `2024-01-31-120000` at the start of a name, perhaps after a `v`.
fn leading_version(name: &str) -> Option<(Vec<Number>, &str)> {
    if let Some(dated) = dated_version(name) {
        return Some(dated);
    }
    let digits = name.strip_prefix(['v', 'V']).unwrap_or(name);
    let mut parts = Vec::new();
    let mut rest = digits;
    loop {
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            break;
        }
        parts.push(number(&rest[..length]));
        rest = &rest[length..];
        match rest.strip_prefix('.') {
            Some(next) if next.starts_with(|first: char| first.is_ascii_digit()) => rest = next,
            _ => break,
        }
    }
    (!parts.is_empty()).then_some((parts, rest))
}

/// Diesel leaves the dashes out of a version, so that `2024-01-31-120000` comes between `20240131110000` and
/// `20240131130000`. Newer ones have four digits more. A date alone is its first moment. Source: `diesel_migrations`,
/// `file_based_migrations.rs`: `version_from_string`.
fn dated_version(name: &str) -> Option<(Vec<Number>, &str)> {
    let mut rest = name;
    let mut take = |length: usize, separator: &str| -> Option<String> {
        let from = rest.strip_prefix(separator)?;
        let end = from.bytes().take_while(u8::is_ascii_digit).count();
        (end == length).then(|| {
            rest = &from[end..];
            from[..end].to_owned()
        })
    };
    let year = take(4, "").filter(|year| year.starts_with("19") || year.starts_with("20"))?;
    let (month, day) = (take(2, "-")?, take(2, "-")?);
    let time = take(6, "-").or_else(|| take(4, "-"));
    let digits = format!("{year}{month}{day}{:0<6}", time.as_deref().unwrap_or_default());
    // They make another version even if they are zeros, and 1.0 would be version 1.
    let more = if time.is_some() { take(4, "-").map(|more| format!("1{more}")) } else { None };
    let version = std::iter::once(digits).chain(more).map(|digits| number(&digits)).collect();
    Some((version, rest))
}

fn number(digits: &str) -> Number {
    let digits = digits.trim_start_matches('0');
    (digits.len(), digits.to_owned())
}

/// Version 1.0 is version 1.
fn trim_zeros(mut version: Vec<Number>) -> Vec<Number> {
    while version.len() > 1 && version.last().is_some_and(|last| last.0 == 0) {
        version.pop();
    }
    version
}

/// graphile-migrate runs `current.sql`, or the files of `current`, after those that are committed.
fn graphile_committed(parent: &Path, file_name: &str) -> Option<PathBuf> {
    let committed = match file_name {
        "current.sql" => parent.join("committed"),
        _ if parent.ends_with("current") => parent.with_file_name("committed"),
        _ => return None,
    };
    committed.is_dir().then_some(committed)
}

/// Flyway looks for migrations in all folders below its location, usually `db/migration`.
fn flyway_location(parent: &Path) -> PathBuf {
    let is_location =
        |folder: &&Path| folder.file_name().is_some_and(|name| name == "migration" || name == "migrations");
    parent.ancestors().find(is_location).unwrap_or(parent).to_owned()
}

/// A file name by Flyway's convention: `V1_2__Add_users.sql`.
pub(crate) struct FlywayName<'a> {
    /// `V`, `U`, `B` or `R`.
    pub(crate) kind: char,
    /// Empty for `R`.
    version: &'a str,
    description: &'a str,
}

impl<'a> FlywayName<'a> {
    pub(crate) fn version(&self) -> Vec<Number> {
        trim_zeros(self.version.split(['.', '_']).map(number).collect())
    }

    pub(crate) fn parse(file_name: &'a str) -> Option<Self> {
        let stem = file_name.strip_suffix(".sql")?;
        let kind = stem.chars().next().filter(|kind| matches!(kind, 'V' | 'U' | 'B' | 'R'))?;
        let (version, description) = stem[1..].split_once("__")?;
        let well_formed = match kind {
            'R' => version.is_empty(),
            _ => {
                version.starts_with(|first: char| first.is_ascii_digit())
                    && version.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_'))
            }
        };
        well_formed.then_some(Self { kind, version, description })
    }
}

/// A file name by Postgrator's convention: `0012.do.add-users.sql`.
pub(crate) struct PostgratorName<'a> {
    pub(crate) version: &'a str,
    pub(crate) undo: bool,
    /// May be empty.
    pub(crate) description: &'a str,
}

impl<'a> PostgratorName<'a> {
    pub(crate) fn parse(file_name: &'a str) -> Option<Self> {
        let (version, rest) = file_name.strip_suffix(".sql")?.split_once('.')?;
        let (action, description) = rest.split_once('.').unwrap_or((rest, ""));
        let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
        let undo = action == "undo";
        (is_version && (undo || action == "do")).then_some(Self { version, undo, description })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&str]) -> Vec<String> {
        let files = names.iter().map(PathBuf::from).collect();
        sort(files).into_iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert_eq!(sorted(&["10_c.sql", "2_b.sql", "1_a.sql"]), ["1_a.sql", "2_b.sql", "10_c.sql"]);
        assert_eq!(sorted(&["v1.10.sql", "v1.9.sql", "seed.sql"]), ["v1.9.sql", "v1.10.sql", "seed.sql"]);
        assert_eq!(
            sorted(&["20240201000000_b.sql", "20231201000000_a.sql"]),
            ["20231201000000_a.sql", "20240201000000_b.sql"]
        );
    }

    #[test]
    fn a_rollback_migration_follows_its_migration() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let names = ["1_a_up.sql", "1_a_down.sql", "2_take_site_down.sql", "3_b.sql", "3_b.rollback.sql"];
        for name in names {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(sort(names.iter().rev().map(|name| at(name)).collect()), names.map(at));
        let back = names.map(|name| rollback_name::is_rollback_migration(&at(name)));
        assert_eq!(back, [false, true, false, false, true]);
    }

    #[test]
    fn dates_are_compared_with_and_without_dashes() {
        assert_eq!(
            sorted(&[
                "m/2017-03-01-110000_b/up.sql",
                "m/20170308120000_c/up.sql",
                "m/2026-07-27-143313-0001_f/up.sql",
                "m/2026-07-27-143313-0000_g/up.sql",
                "m/20170201000000_a/up.sql",
                "m/2017-04-01_e/up.sql",
                "m/00000000000000_setup/up.sql",
            ]),
            [
                "m/00000000000000_setup/up.sql",
                "m/20170201000000_a/up.sql",
                "m/2017-03-01-110000_b/up.sql",
                "m/20170308120000_c/up.sql",
                "m/2017-04-01_e/up.sql",
                "m/2026-07-27-143313-0000_g/up.sql",
                "m/2026-07-27-143313-0001_f/up.sql",
            ]
        );
        assert_ne!(
            version(Path::new("m/2026-07-27-143313-0000_g/up.sql")),
            version(Path::new("m/20260727143313_h/up.sql"))
        );
        assert!(is_called(Path::new("m/2024-01-31-120000_x/up.sql"), "2024-01-31-120000"));
        assert!(!is_called(Path::new("m/2024-01-31-120000_x/up.sql"), "2024"));
    }

    #[test]
    fn flyway_compares_parts_and_runs_repeatable_files_last() {
        assert_eq!(
            sorted(&["m/R__view.sql", "m/V1.10__c.sql", "m/V1.9__b.sql", "m/U1.9__b.sql", "m/V1_0__a.sql"]),
            ["m/V1_0__a.sql", "m/V1.9__b.sql", "m/U1.9__b.sql", "m/V1.10__c.sql", "m/R__view.sql"]
        );
    }

    #[test]
    fn flyway_orders_across_folders_of_one_location() {
        assert_eq!(
            sorted(&["db/migration/2/V2__b.sql", "db/migration/1/V3__c.sql", "db/migration/V1__a.sql"]),
            ["db/migration/V1__a.sql", "db/migration/2/V2__b.sql", "db/migration/1/V3__c.sql"]
        );
    }

    #[test]
    fn the_folder_of_a_migration_gives_its_place() {
        assert_eq!(
            sorted(&["m/10_b/migration.sql", "m/9_a/migration.sql"]),
            ["m/9_a/migration.sql", "m/10_b/migration.sql"]
        );
    }

    #[test]
    fn a_plan_gives_the_order_across_folders() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("sqitch.plan"), "b/x 2024\na 2024\n").unwrap();
        let deploy = root.path().join("deploy");
        let files = vec![deploy.join("a.sql"), deploy.join("b/x.sql")];
        assert_eq!(sort(files), [deploy.join("b/x.sql"), deploy.join("a.sql")]);
        let files = ["deploy/a.sql", "revert/a.sql", "verify/b/x.sql", "deploy/b/x.sql", "revert/b/x.sql"];
        let files = files.into_iter().map(|path| root.path().join(path)).collect();
        let expected = ["deploy/b/x.sql", "revert/b/x.sql", "verify/b/x.sql", "deploy/a.sql", "revert/a.sql"];
        assert_eq!(sort(files), expected.map(|path| root.path().join(path)));
    }

    #[test]
    fn a_migration_is_known_by_name_path_folder_or_version() {
        let path = Path::new("/a/db/migrations/0041_x/up.sql");
        for wanted in ["0041_x", "migrations/0041_x/up.sql", "./db/migrations/0041_x", "41", "0041"] {
            assert!(is_called(path, wanted), "{wanted}");
        }
        for wanted in ["0041_y", "004", "1_x", "migrations"] {
            assert!(!is_called(path, wanted), "{wanted}");
        }
        assert!(is_called(Path::new("m/V1_2__a.sql"), "V1_2__a.sql"));
        assert!(is_called(Path::new("m/V1.2__a.sql"), "1.2"));
    }

    #[test]
    fn the_newest_migration_is_the_last_one_with_a_version() {
        for (names, expected) in [
            (&["m/V1__a.sql", "m/V2__b.sql", "m/R__view.sql"][..], Some("m/V2__b.sql")),
            (&["m/1_a/up.sql", "m/seed.sql"], Some("m/1_a/up.sql")),
            (&["m/a.sql", "m/b.sql"], Some("m/b.sql")),
            (&["m/9/1_a.sql", "m/10/1_a.sql"], Some("m/10/1_a.sql")),
            (&["m/auth/1_a.sql", "m/billing/1_a.sql"], None),
            (&["m/before.sql", "m/committed/1_a.sql"], Some("m/committed/1_a.sql")),
            (&[], None),
        ] {
            let paths: Vec<&Path> = names.iter().map(Path::new).collect();
            assert_eq!(newest(&paths).map(|at| names[at]), expected);
        }
        assert_eq!(sequences(&[Path::new("m/b/1_a.sql"), Path::new("m/a/1_a/up.sql"), Path::new("m/a/2.sql")]), 2);
    }

    #[test]
    fn down_migrations_come_after_up_migrations() {
        assert_eq!(
            sorted(&["m/1_a.down.sql", "m/1_a.up.sql", "m/2_b.down.sql", "m/2_b.up.sql"]),
            ["m/1_a.up.sql", "m/1_a.down.sql", "m/2_b.up.sql", "m/2_b.down.sql"]
        );
        assert_eq!(sorted(&["m/1/down.sql", "m/1/up.sql"]), ["m/1/up.sql", "m/1/down.sql"]);
        assert_eq!(
            sorted(&["m/10.do.sql", "m/9.undo.b.sql", "m/9.do.c.sql"]),
            ["m/9.do.c.sql", "m/9.undo.b.sql", "m/10.do.sql"]
        );
    }

    #[test]
    fn a_file_without_version_follows_the_versions_beside_it() {
        assert_eq!(
            sorted(&["m/LATEST.sql", "m/3.10/1_a.sql", "m/3.9/1_a.sql"]),
            ["m/3.9/1_a.sql", "m/3.10/1_a.sql", "m/LATEST.sql"]
        );
        assert_eq!(sorted(&["m/init.sql", "m/tables/1_a.sql"]), ["m/init.sql", "m/tables/1_a.sql"]);
        assert_eq!(sorted(&["m/init.sql", "m/2/seed.sql"]), ["m/init.sql", "m/2/seed.sql"]);
    }

    #[test]
    fn each_folder_is_a_sequence_of_its_own() {
        assert_eq!(sorted(&["b/1.sql", "a/2.sql", "a/1.sql"]), ["a/1.sql", "a/2.sql", "b/1.sql"]);
        assert_eq!(sorted(&["v10/1.sql", "v9/2.sql", "v9/1.sql"]), ["v9/1.sql", "v9/2.sql", "v10/1.sql"]);
    }
}
