//! Tools that run the files of some folders, one folder after another: yuniql and grate.
//!
//! Read in the source, because no package registry at hand has them: yuniql 1.3, `MigrationService.cs`,
//! `MigrationService.RunSqlScripts.cs`, `DirectoryService.cs` and `LocalVersion.cs`; grate 2.0, `FoldersConfiguration.cs`,
//! `KnownFolderNames.cs` and `FileSystem.cs`.

use super::{Tool, flyway_project};
use crate::boundary::Boundary;
use crate::config::absolute;
use crate::nearby::Nearby;
use crate::{read, skipped};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a project in the order of its folders.
pub(super) struct Stages {
    pub(super) tool: Tool,
    pub(super) root: PathBuf,
    /// The folder whose files only a command of its own runs, if the question was about one of them.
    pub(super) beside: Option<PathBuf>,
    /// Names below the folder, without `.sql`; of all that a run can run.
    pub(super) files: Vec<PathBuf>,
    /// Those that run again: always, or whenever they change.
    pub(super) again: Vec<PathBuf>,
    /// Those that each run runs again, changed or not.
    pub(super) always: Vec<PathBuf>,
}

/// Maximum number of levels above a file at which the folder of the stages is searched.
const LEVELS: usize = 6;

/// Maximum depth of folders below a stage.
const DEPTH: usize = 8;

/// Where the stages are to which the files of a folder belong.
pub(super) struct Place {
    tool: Tool,
    root: PathBuf,
    /// Whether the files are those of [`ERASE`].
    is_erase: bool,
}

/// Finds the stages to which the files of a folder belong.
pub(super) fn around(parent: &Path) -> Option<Place> {
    let find = |parent: &Path| {
        parent.ancestors().take(LEVELS).find_map(|stage| {
            let root = stage.parent().filter(|root| !root.as_os_str().is_empty())?;
            let name = stage.file_name()?.to_str()?;
            let is_erase = name == ERASE;
            let place = |tool: Tool| Place { tool, root: root.to_owned(), is_erase };
            is_of_yuniql(root, name)
                .then(|| place(Tool::Yuniql))
                .or_else(|| is_of_grate(root, name).then(|| place(Tool::Grate)))
        })
    };
    find(parent).or_else(|| find(&absolute(parent)))
}

/// Folders of yuniql before and after those that are versions.
const BEFORE_VERSIONS: [&str; 2] = ["_init", "_pre"];
const AFTER_VERSIONS: [&str; 2] = ["_draft", "_post"];
/// What `yuniql erase` runs, which empties a database.
const ERASE: &str = "_erase";

impl Place {
    /// The folder to which the names of the files are relative.
    pub(super) fn base(&self) -> PathBuf {
        if self.is_erase { self.root.join(ERASE) } else { self.root.clone() }
    }

    pub(super) fn read(&self) -> Stages {
        match self.tool {
            Tool::Yuniql if self.is_erase => {
                let erase = self.base();
                Stages { files: files(&erase), beside: Some(erase), ..Stages::new(Tool::Yuniql, &self.root) }
            }
            Tool::Yuniql => of_yuniql(&self.root),
            _ => of_grate(&self.root),
        }
    }
}

/// yuniql refuses to run without any of these folders; git does not keep those that are empty.
fn is_of_yuniql(root: &Path, stage: &str) -> bool {
    let reserved = || BEFORE_VERSIONS.into_iter().chain(AFTER_VERSIONS).chain([ERASE]);
    let is_there = |name: &str| root.join(name).is_dir();
    let least = if is_there("v0.00") { 1 } else { 3 };
    (reserved().any(|name| name == stage) || version_of_yuniql(stage).is_some())
        && reserved().filter(|name| is_there(name)).count() >= least
}

fn versions_of_yuniql(root: &Path) -> Vec<(Version, String)> {
    let mut versions: Vec<(Version, String)> =
        folders(root).into_iter().filter_map(|name| Some((version_of_yuniql(&name)?, name))).collect();
    versions.sort();
    versions
}

fn of_yuniql(root: &Path) -> Stages {
    let versions = versions_of_yuniql(root);
    let mut stages = Stages::new(Tool::Yuniql, root);
    let is_again = |name: &str| name != "_init";
    BEFORE_VERSIONS.iter().for_each(|name| stages.add(name, files(&root.join(name)), is_again(name)));
    versions.iter().for_each(|(_, name)| stages.add(name, files_of_version(&root.join(name)), false));
    AFTER_VERSIONS.iter().for_each(|name| stages.add(name, files(&root.join(name)), true));
    stages
}

/// Major, minor and revision, and the rest of the name.
type Version = (Vec<u64>, String);

/// `v0.00`, `v1.01.2` and `v2.01-label`.
fn version_of_yuniql(name: &str) -> Option<Version> {
    let rest = name.strip_prefix('v')?;
    let end = rest.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(rest.len());
    let (numbers, label) = rest.split_at(end);
    let numbers: Option<Vec<u64>> = numbers.trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect();
    Some((numbers?, label.to_owned())).filter(|(numbers, _)| (2..=3).contains(&numbers.len()))
}

/// Files in folders below a version come before those in it.
fn files_of_version(version: &Path) -> Vec<PathBuf> {
    let (mut below, direct): (Vec<PathBuf>, Vec<PathBuf>) =
        files(version).into_iter().partition(|file| file.components().count() > 1);
    below.sort_by(|one, other| compare(one.parent(), other.parent()).then_with(|| compare(Some(one), Some(other))));
    let listed = |direct: Vec<PathBuf>| match read::text(&version.join("_sequence.ini")) {
        Ok(list) => {
            let files: FxHashMap<PathBuf, PathBuf> =
                direct.into_iter().map(|file| (file.with_extension("sql"), file)).collect();
            list.lines().map(str::trim).filter_map(|name| files.get(Path::new(name)).cloned()).collect()
        }
        Err(_) => direct,
    };
    below.into_iter().chain(listed(direct)).collect()
}

/// Folders of grate in its order, and whether their files run again when they change, or always.
const GRATE: [(&str, bool); 14] = [
    ("beforeMigration", true),
    ("alterDatabase", true),
    ("runAfterCreateDatabase", true),
    ("runBeforeUp", true),
    ("up", false),
    ("runFirstAfterUp", true),
    ("functions", true),
    ("views", true),
    ("sprocs", true),
    ("triggers", true),
    ("indexes", true),
    ("runAfterOtherAnyTimeScripts", true),
    ("permissions", true),
    ("afterMigration", true),
];

/// Those whose files grate runs in each run. Source: grate, `FoldersConfiguration.cs`, `MigrationType.EveryTime`.
const GRATE_ALWAYS: [&str; 3] = ["beforeMigration", "permissions", "afterMigration"];

/// Whether a command around the migrations starts grate with `--transaction`: then one transaction holds a run. Source:
/// grate documentation, "Configuration options".
pub(super) fn grate_has_transaction(path: &Path, nearby: &Nearby) -> bool {
    let starts = |line: &str| {
        let words: Vec<&str> =
            line.split(|one: char| one.is_whitespace() || matches!(one, '"' | '\'' | ',' | '[' | ']')).collect();
        let is_option = |word: &&str| matches!(*word, "-t" | "--transaction" | "--transaction=true");
        words.contains(&"grate") && words.iter().any(is_option)
    };
    flyway_project::texts(path, nearby).any(|text| text.replace("\\\n", " ").lines().any(starts))
}

/// Names that no other layout of SQL files has.
fn is_grates_own(name: &str) -> bool {
    name == "sprocs" || name.starts_with("run") || name.ends_with("Migration") || name == "alterDatabase"
}

/// The folder `up`, and one of the others that nobody else has.
fn is_of_grate(root: &Path, stage: &str) -> bool {
    let is_there = |name: &str| root.join(name).is_dir();
    let is_stage = GRATE.iter().any(|(name, _)| *name == stage);
    is_stage && is_there("up") && GRATE.iter().any(|(name, _)| is_grates_own(name) && is_there(name))
}

fn of_grate(root: &Path) -> Stages {
    let mut stages = Stages::new(Tool::Grate, root);
    for (name, again) in GRATE {
        stages.add(name, files(&root.join(name)), again);
    }
    stages
}

impl Stages {
    fn new(tool: Tool, root: &Path) -> Self {
        Self { tool, root: root.to_owned(), beside: None, files: Vec::new(), again: Vec::new(), always: Vec::new() }
    }

    fn add(&mut self, stage: &str, files: Vec<PathBuf>, again: bool) {
        for file in files.into_iter().map(|file| Path::new(stage).join(file)) {
            let is_marked = self.tool == Tool::Grate && is_everytime(&file);
            if again || is_marked {
                self.again.push(file.clone());
            }
            if is_marked || (again && (self.tool == Tool::Yuniql || GRATE_ALWAYS.contains(&stage))) {
                self.always.push(file.clone());
            }
            self.files.push(file);
        }
    }
}

/// Whether the name of a file asks grate to run it every time. Source: grate, `DbMigrator.cs`, `IsEverytimeScript`.
fn is_everytime(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.starts_with("everytime.") || name.contains(".everytime.") || name.ends_with(".everytime")
}

/// The SQL files of a stage and of the folders below, relative to it and without `.sql`, as .NET sorts their names.
pub(super) fn files(stage: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // A link may lead out of the checkout.
    if Boundary::around(stage).refusal(stage).is_none() {
        collect(stage, DEPTH, &mut found);
    }
    let relative = |path: PathBuf| path.strip_prefix(stage).map(|path| path.with_extension("")).ok();
    let mut found: Vec<PathBuf> = found.into_iter().filter_map(relative).collect();
    found.sort_by(|one, other| compare(Some(one), Some(other)));
    found
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            collect(&entry.path(), depth - 1, found);
        } else if skipped::is_sql(&entry.file_name().to_string_lossy()) {
            found.push(entry.path());
        }
    }
}

fn folders(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Compares names as .NET does: signs before digits, digits before letters of either case.
fn compare(one: Option<&Path>, other: Option<&Path>) -> Ordering {
    let key = |path: Option<&Path>| -> Vec<(u8, char)> {
        let text = path.map(|path| path.to_string_lossy().to_lowercase()).unwrap_or_default();
        let class = |one: char| u8::from(one.is_alphanumeric()) + u8::from(one.is_alphabetic());
        text.chars().map(|one| (class(one), one)).collect()
    };
    key(one).cmp(&key(other)).then_with(|| one.cmp(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_stage_that_leads_out_of_the_checkout_is_not_searched() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [".git", "_pre"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for folder in [&root.path().join("_pre"), outside.path()] {
            fs::write(folder.join("a.sql"), "").unwrap();
        }
        std::os::unix::fs::symlink(outside.path(), root.path().join("_init")).unwrap();
        assert_eq!(of_yuniql(root.path()).files, [PathBuf::from("_pre/a")]);
    }

    #[test]
    fn a_list_of_files_takes_linear_time() {
        let root = tempfile::tempdir().unwrap();
        let version = root.path().join("v0.01");
        fs::create_dir_all(&version).unwrap();
        (0..500).for_each(|at| fs::write(version.join(format!("{at}.sql")), "").unwrap());
        fs::write(version.join("_sequence.ini"), "7.sql\n".to_owned() + &"none.sql\n".repeat(300_000)).unwrap();
        let begun = std::time::Instant::now();
        assert_eq!(files_of_version(&version), [PathBuf::from("7")]);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    fn project(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    fn order(files: &[&str], stage: &str) -> Option<(Tool, Vec<String>)> {
        let root = project(files);
        let stages = around(&root.path().join(stage))?.read();
        Some((stages.tool, stages.files.iter().map(|file| file.display().to_string()).collect()))
    }

    #[test]
    fn yuniql_runs_versions_between_its_own_folders() {
        let files = [
            "_erase/drop.sql",
            "_init/a.sql",
            "_pre/a.sql",
            "_post/README.md",
            "_draft/x.sql",
            "v0.00/setup.sql",
            "v1.10/b.sql",
            "v1.9/c.sql",
            "v1.9/tables/d.sql",
            "v1.9/Tables2/e.sql",
            "v2.00/_sequence.ini",
            "other/z.sql",
        ];
        let expected =
            ["_init/a", "_pre/a", "v0.00/setup", "v1.9/tables/d", "v1.9/Tables2/e", "v1.9/c", "v1.10/b", "_draft/x"];
        let (tool, found) = order(&files, "v1.9/tables").unwrap();
        assert_eq!((tool, found), (Tool::Yuniql, expected.map(str::to_owned).to_vec()));
        assert_eq!(order(&files, "other"), None);
        assert_eq!(order(&files[7..], "v1.9"), None, "nothing but versions");
        let root = project(&files);
        assert_eq!(around(&root.path().join("_erase")).unwrap().read().beside, Some(root.path().join("_erase")));
    }

    #[test]
    fn a_list_of_yuniql_beats_names() {
        let files = ["_init/a.sql", "_pre/a.sql", "_post/a.sql", "v1.0/a.sql", "v1.0/b.sql", "v1.0/c.sql"];
        let root = project(&files);
        fs::write(root.path().join("v1.0/_sequence.ini"), "c.sql\n\na.sql\n").unwrap();
        let stages = around(&root.path().join("v1.0")).unwrap().read();
        let versions: Vec<&Path> =
            stages.files.iter().map(PathBuf::as_path).filter(|file| file.starts_with("v1.0")).collect();
        assert_eq!(versions, [Path::new("v1.0/c"), Path::new("v1.0/a")]);
    }

    #[test]
    fn grate_runs_its_folders_in_its_order() {
        let files = [
            "views/v.sql",
            "up/0010_b.sql",
            "up/0001_a.sql",
            "sprocs/0001_p.sql",
            "runBeforeUp/x.sql",
            "up/2.everytime.sql",
        ];
        let (tool, found) = order(&files, "views").unwrap();
        let expected = ["runBeforeUp/x", "up/0001_a", "up/0010_b", "up/2.everytime", "views/v", "sprocs/0001_p"];
        assert_eq!((tool, found), (Tool::Grate, expected.map(str::to_owned).to_vec()));
        assert_eq!(order(&["up/1.sql", "views/v.sql"], "up"), None, "others have such folders, too");
        let root = project(&files);
        let again = around(&root.path().join("up")).unwrap().read().again;
        let stages = around(&root.path().join("up")).unwrap().read();
        assert_eq!(stages.always, [PathBuf::from("up/2.everytime")]);
        assert!(again.contains(&PathBuf::from("up/2.everytime")) && !again.contains(&PathBuf::from("up/0001_a")));
    }

    #[test]
    fn names_are_compared_as_dotnet_does() {
        let mut names = ["b", "A", "00010_b", "0001_a", "a_1", "a1", "a-1"].map(PathBuf::from).to_vec();
        names.sort_by(|one, other| compare(Some(one), Some(other)));
        let names: Vec<String> = names.iter().map(|name| name.display().to_string()).collect();
        assert_eq!(names, ["0001_a", "00010_b", "A", "a-1", "a_1", "a1", "b"]);
    }
}
