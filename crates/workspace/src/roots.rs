//! Which folder holds the migrations of the database that a file belongs to.

use crate::config::{Config, absolute};
use crate::git;
use crate::identity::identity;
use crate::layout::{self, Folders, Tool};
use crate::order;
use crate::problem::display;
use crate::rollback_name;
use crate::skipped;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Folder names under which tools keep the migrations of one database.
const MIGRATION_FOLDERS: [&str; 8] =
    ["migrations", "migration", "migrate", "drizzle", "deploy", "changelog", "updates", "delta"];

/// Those whose name says migrations: a program that runs them may well be called `migrate`, and a folder `deploy` or
/// `updates` holds more than them.
const NAMED_MIGRATIONS: [&str; 2] = ["migrations", "migration"];

/// Those that are named so for nothing else.
const CERTAIN_FOLDERS: [&str; 3] = ["migrations", "migration", "migrate"];

/// Whether the folder is one that is named for migrations, or lies below it.
pub(crate) fn is_below_migrations(folder: &Path) -> bool {
    folder.components().any(|part| is_among(&NAMED_MIGRATIONS, part.as_os_str()))
}

fn is_among(names: &[&str], folder: &OsStr) -> bool {
    names.iter().any(|name| folder.eq_ignore_ascii_case(name))
}

/// The folder of migrations of a file that was found below `given`: what the tool's own list is about, or the outermost
/// one that is named so, or else the folder that was given.
pub(crate) fn below(given: &Path, file: &Path, folders: &Folders, config: &Config) -> PathBuf {
    if let Some(folder) = config.folder_of(file) {
        return folder.to_owned();
    }
    let facts = folders.around(file);
    if let Some(root) = facts.root_beside().or(facts.root().filter(|root| root.starts_with(given))) {
        return root.to_owned();
    }
    let parent = file.strip_prefix(given).ok().and_then(Path::parent).unwrap_or(Path::new(""));
    let folders: Vec<_> = parent.components().collect();
    let outermost = |names| folders.iter().position(|folder| is_among(names, folder.as_os_str()));
    match outermost(&NAMED_MIGRATIONS).or_else(|| outermost(&MIGRATION_FOLDERS)) {
        Some(at) => given.join(folders[..=at].iter().collect::<PathBuf>()),
        None => given.to_owned(),
    }
}

/// The folder of migrations of a file that was named by itself; `None` where nothing says that it is one of several.
/// Its text is asked for only where the folders around it leave that open.
pub(crate) fn of_single<'t>(
    file: &Path,
    text: impl FnOnce() -> Cow<'t, str>,
    folders: &Folders,
    config: &Config,
) -> Option<PathBuf> {
    if let Some(folder) = config.folder_of(file) {
        return Some(folder.to_owned());
    }
    file.parent()?;
    let facts = folders.around(file);
    if let Some(root) = facts.root() {
        return Some(root.to_owned());
    }
    if let Some(named) = facts.named {
        let is_certain = named.file_name().is_some_and(|name| is_among(&CERTAIN_FOLDERS, name));
        if is_certain || order::is_versioned(file) {
            return Some(named);
        }
    }
    if !order::is_versioned(file) {
        return None;
    }
    let tool = layout::detect(file, &text(), folders, config).tool;
    (tool != Tool::Plain || is_one_of_several(file)).then(|| order::sequence(file))
}

/// Whether other files with versions are beside a file: then a check of the folder replays them one after the other.
fn is_one_of_several(file: &Path) -> bool {
    let file = absolute(file);
    let folder = order::sequence(&file);
    if file.parent() != Some(folder.as_path()) {
        return false;
    }
    let entries = folder.read_dir().into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let is_sql = |path: &PathBuf| path.file_name().is_some_and(|name| skipped::is_sql(&name.to_string_lossy()));
    entries.filter(is_sql).any(|other| order::is_versioned(&other) && git::version(&other) != git::version(&file))
}

/// Returns for each file below a folder of migrations the folder of its own database, if there are several: no tool runs
/// two files of the same version from folders beside each other as one sequence. Folders that are named for releases
/// hold parts of one sequence. Flyway looks into every folder of a location, and refuses two files of one version.
pub(crate) fn databases_below(root: &Path, files: &[&Path]) -> Vec<Option<PathBuf>> {
    let branches: Vec<Option<(PathBuf, String)>> = files.iter().map(|file| branch(root, file)).collect();
    let mut folders: FxHashMap<&str, BTreeSet<&Path>> = FxHashMap::default();
    for (folder, version) in branches.iter().flatten() {
        folders.entry(version).or_default().insert(folder);
    }
    let apart: BTreeSet<PathBuf> =
        folders.values().filter(|folders| folders.len() > 1).flatten().map(|folder| folder.to_path_buf()).collect();
    let own = |file: &&Path| apart.iter().find(|folder| file.starts_with(folder)).cloned();
    files.iter().map(own).collect()
}

/// The folder directly below the root that holds the file, or the location of Flyway, and the version of the file; `None`
/// if it has none, or is part of a sequence anyway.
fn branch(root: &Path, file: &Path) -> Option<(PathBuf, String)> {
    if !order::is_versioned(file) {
        return None;
    }
    let sequence = order::sequence(file);
    if let Some(flyway) = order::FlywayName::parse(&file.file_name()?.to_string_lossy()) {
        let is_below = sequence != root && sequence.starts_with(root);
        return (flyway.kind == 'V' && is_below).then(|| (sequence, git::version(file)));
    }
    let name = sequence.strip_prefix(root).ok()?.components().next()?.as_os_str().to_str()?;
    let is_release = name.contains(|one: char| one.is_ascii_digit()) && !name.to_ascii_lowercase().starts_with("db");
    // The folder is the migration where the file is called the same in each.
    let migration = if file.parent() == Some(sequence.as_path()) { file } else { file.parent()? };
    let is_down = rollback_name::is_rollback_migration(file);
    (!is_release && !is_down).then(|| (root.join(name), git::version(migration)))
}

/// The folders that are those of repositories, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct Repositories(FxHashMap<PathBuf, bool>);

impl Repositories {
    /// The folder of the repository that holds a path. Without links, this depends on no current folder.
    pub(crate) fn around<'p>(&mut self, path: &'p Path) -> Option<&'p Path> {
        path.ancestors().find(|folder| match self.0.get(*folder) {
            Some(known) => *known,
            None => *self.0.entry(folder.to_path_buf()).or_insert_with(|| is_repository(folder)),
        })
    }
}

/// Whether the folder is that of a repository, and not a link with which a checkout shows another repository as its own:
/// such a link would move the boundary of the checkout.
fn is_repository(folder: &Path) -> bool {
    if !folder.join(".git").exists() {
        return false;
    }
    let target = identity(folder);
    if target == folder {
        return true;
    }
    // A submodule may be called `.git`, so that a folder of git's own looks like a repository.
    if target.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
        return false;
    }
    let current = absolute(Path::new("."));
    let holds_more = |above: &&Path| above.join(".git").exists() || *above == current;
    folder.ancestors().skip(1).filter(holds_more).all(|above| target.starts_with(identity(above)))
}

impl Repositories {
    /// The folder above which nothing belongs to the project: that of the repository, or the current folder if it holds
    /// the path, as in a checkout without git's own files.
    pub(crate) fn top(&mut self, path: &Path) -> Option<PathBuf> {
        let current = || Some(absolute(Path::new("."))).filter(|current| path.starts_with(current));
        self.around(path).map(Path::to_owned).or_else(current)
    }
}

/// The outermost folder in or above `parent` that is named like one of migrations, within the repository. Where there
/// is no repository it is the innermost one: names of folders further out are chance.
pub(crate) fn named_folder(parent: &Path, repositories: &mut Repositories) -> Option<PathBuf> {
    let parent_from_root = absolute(parent);
    let repository = repositories.around(&parent_from_root);
    let found = |names: &[&str]| {
        let mut around = parent_from_root
            .ancestors()
            .take_while(|folder| Some(*folder) != repository)
            .filter(|folder| folder.file_name().is_some_and(|name| is_among(names, name)));
        if repository.is_some() { around.last() } else { around.next() }
    };
    let folder = found(&NAMED_MIGRATIONS).or_else(|| found(&MIGRATION_FOLDERS))?;
    Some(as_named(folder, &parent_from_root, parent))
}

/// The folder in the words of the user: relative where its file was.
fn as_named(folder: &Path, parent_from_root: &Path, parent: &Path) -> PathBuf {
    let levels = parent_from_root.components().count() - folder.components().count();
    let above = parent.ancestors().nth(levels).filter(|above| absolute(above) == folder);
    match above {
        Some(above) if above.as_os_str().is_empty() => PathBuf::from("."),
        Some(above) => above.to_owned(),
        None => folder.to_owned(),
    }
}

/// How a folder is shown.
pub(crate) fn shown(root: &Path) -> String {
    let current = absolute(Path::new(""));
    match root.strip_prefix(&current) {
        Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Ok(relative) => display(relative),
        Err(_) => display(root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn single(path: &Path) -> Option<PathBuf> {
        of_single(path, || "SELECT 1;".into(), &Folders::default(), &Config::default())
    }

    #[test]
    fn a_folder_that_is_named_so_is_the_root() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in ["db/migrations/2024/1.sql", "updates/1.sql", "updates/seed.sql", "queries/1.sql"] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "SELECT 1;").unwrap();
        }
        assert_eq!(single(&at("db/migrations/2024/1.sql")), Some(at("db/migrations")));
        assert_eq!(single(&at("updates/1.sql")), Some(at("updates")));
        assert_eq!(single(&at("updates/seed.sql")), None);
        assert_eq!(single(&at("queries/1.sql")), None);
        fs::write(at("queries/about.sql"), "SELECT 1;").unwrap();
        fs::write(at("queries/1.down.sql"), "SELECT 1;").unwrap();
        assert_eq!(single(&at("queries/1.sql")), None, "nothing comes before or after it");
        fs::write(at("queries/2.sql"), "SELECT 1;").unwrap();
        assert_eq!(single(&at("queries/2.sql")), Some(at("queries")));
        assert_eq!(single(&at("queries/about.sql")), None);
        fs::remove_file(at("queries/2.sql")).unwrap();
        assert_eq!(single(&at("queries/V1__a.sql")), Some(at("queries")));
        assert_eq!(single(&at("queries/1_a/up.sql")), Some(at("queries")));
    }

    #[test]
    fn a_folder_named_for_migrations_goes_before_one_around_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for (path, text) in [
            (".git/HEAD", ""),
            ("tools/migrate/migrations/1_a.sql", "SELECT 1;"),
            ("tools/migrate/views.sql", "SELECT 1;"),
            ("schema/sqitch.plan", "migrations/a 2024\n"),
            ("schema/deploy/migrations/a.sql", "SELECT 1;"),
        ] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        }
        for (path, expected) in [
            ("tools/migrate/migrations/1_a.sql", "tools/migrate/migrations"),
            ("tools/migrate/views.sql", "tools/migrate"),
            ("schema/deploy/migrations/a.sql", "schema/deploy"),
        ] {
            assert_eq!(below(root.path(), &at(path), &Folders::default(), &Config::default()), at(expected), "{path}");
            assert_eq!(single(&at(path)), Some(at(expected)), "{path}");
        }
    }

    #[test]
    fn folders_with_the_same_versions_are_databases_of_their_own() {
        let below = |files: &[&str]| {
            let files: Vec<&Path> = files.iter().map(Path::new).collect();
            let own = databases_below(Path::new("m"), &files).into_iter();
            own.map(|folder| folder.map(|folder| display(&folder))).collect::<Vec<_>>()
        };
        let (a, b) = (Some("m/db1".to_owned()), Some("m/db2".to_owned()));
        assert_eq!(below(&["m/db1/1_x.sql", "m/db1/views.sql", "m/db2/1_y.sql"]), [a.clone(), a, b]);
        let (auth, shop) = (Some("m/auth".to_owned()), Some("m/shop".to_owned()));
        assert_eq!(below(&["m/auth/1_a/up.sql", "m/shop/x/1_b/up.sql", "m/3_c.sql"]), [auth, shop, None]);
        let (auth, shop) = (Some("m/sql/auth".to_owned()), Some("m/sql/shop".to_owned()));
        assert_eq!(
            below(&["m/sql/auth/V1__a.sql", "m/sql/auth/V2__b.sql", "m/sql/shop/V1__c.sql"]),
            [auth.clone(), auth, shop]
        );
        for one in [
            ["m/auth/1_x.sql", "m/shop/2_y.sql"],
            ["m/v1/1_x.sql", "m/v2/1_y.sql"],
            ["m/release-1/1_x.sql", "m/release-2/1_y.sql"],
            ["m/auth/V1__x.sql", "m/shop/V2__y.sql"],
            ["m/db/migration/auth/V1__x.sql", "m/db/migration/shop/V1__y.sql"],
            ["m/1_x.up.sql", "m/down/1_x.down.sql"],
        ] {
            assert_eq!(below(&one), [None, None], "{one:?}");
        }
    }

    #[test]
    fn the_repository_bounds_the_search() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("deploy/app/.git")).unwrap();
        fs::create_dir_all(at("deploy/app/migrations/auth/migrations")).unwrap();
        assert_eq!(single(&at("deploy/app/migrations/auth/migrations/1.sql")), Some(at("deploy/app/migrations")));
        assert_eq!(single(&at("deploy/app/1.sql")), None);
    }
}
