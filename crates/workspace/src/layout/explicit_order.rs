//! The order of migrations that a tool keeps in a file of its own.

use super::Tool;
use super::captured::Manifest;
use super::drizzle;
use super::folder::is_of_supabase;
use super::liquibase::{Changelogs, Included};
use super::stages::{self, Stages};
use crate::boundary::Boundary;
use crate::config::absolute;
use crate::read;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SQITCH_FOLDERS: [&str; 3] = ["deploy", "revert", "verify"];

/// The `deploy`, `revert` or `verify` folder that holds this one, or is it.
fn sqitch_folder(parent: &Path) -> Option<&Path> {
    parent.ancestors().find(|folder| SQITCH_FOLDERS.iter().any(|name| folder.ends_with(name)))
}

/// The migrations of a tool that keeps their order in a file of its own: Drizzle's journal, Sqitch's plan, a master
/// changelog of Liquibase. Or in folders of certain names: those of yuniql, grate and Drizzle 1.0.
#[derive(Debug)]
pub(crate) struct ExplicitOrder {
    pub(super) tool: Tool,
    /// The folder whose files are run as one sequence.
    pub(crate) root: PathBuf,
    /// The folder to which names are relative: that one, or for scripts of Sqitch that take changes back, or look whether
    /// they are there, their own.
    base: PathBuf,
    /// The place of each path, which is without `.sql`.
    places: BTreeMap<PathBuf, usize>,
    /// From this place on, the files are of lists other than the main one.
    secondary_from: usize,
    /// Paths of files that run outside a transaction.
    autocommit: BTreeSet<PathBuf>,
    /// Paths of files that run again: always, or whenever they change.
    again: BTreeSet<PathBuf>,
    /// Paths of files that each run runs again, changed or not.
    always: BTreeSet<PathBuf>,
    /// The number of the release of each path, where the list has releases.
    releases: BTreeMap<PathBuf, u32>,
}

/// The orders that hold for the files of folders, looked up once each.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    known: FxHashMap<PathBuf, Option<Arc<ExplicitOrder>>>,
    /// By the folder to which their names are relative.
    stages: FxHashMap<PathBuf, Arc<ExplicitOrder>>,
    /// Those of Sqitch, by the folder of the scripts.
    plans: FxHashMap<PathBuf, Option<Arc<ExplicitOrder>>>,
    /// Whether folders hold migrations of Drizzle 1.0, and in which order.
    drizzle: FxHashMap<PathBuf, Option<Arc<ExplicitOrder>>>,
    changelogs: Changelogs,
    /// Those of changelogs, by the folder of the changelogs.
    of_changelogs: FxHashMap<PathBuf, Option<OfChangelogs>>,
}

/// The order of the changelogs of a folder.
#[derive(Debug)]
struct OfChangelogs {
    order: Arc<ExplicitOrder>,
    /// The folders of the files that they include.
    parents: FxHashSet<PathBuf>,
}

impl Orders {
    pub(crate) fn around(&mut self, parent: &Path) -> Option<Arc<ExplicitOrder>> {
        if let Some(known) = self.known.get(parent) {
            return known.clone();
        }
        let order = self.find(parent);
        self.known.entry(parent.to_owned()).or_insert(order).clone()
    }
}

impl Orders {
    fn find(&mut self, parent: &Path) -> Option<Arc<ExplicitOrder>> {
        if let Some(order) = ExplicitOrder::of_list(parent) {
            return Some(Arc::new(order));
        }
        let from_root = absolute(parent);
        if let Some(root) = sqitch_folder(parent).or_else(|| sqitch_folder(&from_root))
            && let Some(order) = self.of_plan(root)
        {
            return Some(order);
        }
        if let Some(place) = stages::around(parent) {
            let known = self.stages.entry(place.base());
            return Some(Arc::clone(known.or_insert_with(|| Arc::new(ExplicitOrder::of_stages(place.read())))));
        }
        if let Some(order) = drizzle::roots(parent).find_map(|root| self.of_drizzle(root)) {
            return Some(order);
        }
        self.of_liquibase(parent)
    }

    /// Whether changelogs led to more files than are followed, so that no order of them is known.
    pub(crate) fn lack_changelogs(&self) -> bool {
        self.changelogs.is_exhausted()
    }

    /// The outermost folder around this one with master changelogs that include a file of it. What one includes may be a
    /// changelog that includes others, so the outermost one knows most.
    fn of_liquibase(&mut self, parent: &Path) -> Option<Arc<ExplicitOrder>> {
        let parent = absolute(parent);
        let is_hint = |folder: &Path| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            name == "db" || name.contains("changelog") || name.contains("liquibase")
        };
        let has_hint = |folder: &Path| folder.ancestors().take(LIQUIBASE_LEVELS).any(is_hint);
        let boundary = Boundary::around(&parent.join("x"));
        let around = parent.ancestors().take(LIQUIBASE_LEVELS);
        let around: Vec<&Path> = around.take_while(|folder| boundary.refusal(folder).is_none()).collect();
        around.into_iter().rev().find_map(|folder| {
            let changelogs = &mut self.changelogs;
            let find = |folder: &PathBuf| OfChangelogs::new(folder, &changelogs.of(folder, has_hint(folder)));
            let known = self.of_changelogs.entry(folder.to_owned()).or_insert_with_key(find).as_ref()?;
            known.parents.contains(&parent).then(|| Arc::clone(&known.order))
        })
    }

    fn of_plan(&mut self, root: &Path) -> Option<Arc<ExplicitOrder>> {
        if let Some(known) = self.plans.get(root) {
            return known.clone();
        }
        let order = ExplicitOrder::of_plan(root).map(Arc::new);
        self.plans.entry(root.to_owned()).or_insert(order).clone()
    }

    /// The order of folders that are migrations of Drizzle. A journal beside them names what runs.
    fn of_drizzle(&mut self, root: PathBuf) -> Option<Arc<ExplicitOrder>> {
        let find = |root: &PathBuf| {
            let names = drizzle::migrations(root)?;
            let journal = ExplicitOrder::of_list(root).filter(|order| order.tool == Tool::Drizzle);
            Some(Arc::new(journal.unwrap_or_else(|| ExplicitOrder::new(Tool::Drizzle, root, names))))
        };
        self.drizzle.entry(root).or_insert_with_key(find).clone()
    }
}

impl OfChangelogs {
    /// The order of the changelogs of one folder, if they include anything. Which of them are run one after the other is
    /// said elsewhere: what is for tests alone has fewer files, and comes after them.
    fn new(folder: &Path, changelogs: &[Vec<Included>]) -> Option<Self> {
        let included = || changelogs.iter().flatten();
        included().next()?;
        let holds_all = |folder: &&Path| included().all(|file| file.path.starts_with(folder));
        let root = folder.ancestors().find(holds_all)?;
        let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).with_extension("");
        let secondary_from = changelogs.first()?.len();
        let mut order = ExplicitOrder { secondary_from, ..ExplicitOrder::new(Tool::Liquibase, root, Vec::new()) };
        for (place, file) in included().enumerate() {
            order.places.entry(relative(&file.path)).or_insert(place);
            if file.autocommit {
                order.autocommit.insert(relative(&file.path));
            }
        }
        let parents = included().filter_map(|file| file.path.parent().map(Path::to_owned)).collect();
        Some(Self { order: Arc::new(order), parents })
    }
}

impl ExplicitOrder {
    fn of_list(parent: &Path) -> Option<Self> {
        if let Some(manifest) = Manifest::of(parent) {
            return Some(Self::new(Tool::Captured, parent, manifest.names()));
        }
        if let Ok(journal) = read::text(&parent.join("meta/_journal.json"))
            && !is_of_supabase(&absolute(parent))
        {
            return Some(Self::new(Tool::Drizzle, parent, drizzle_order(&journal)?));
        }
        None
    }

    fn of_plan(root: &Path) -> Option<Self> {
        let plan = read::text(&root.with_file_name("sqitch.plan")).ok()?;
        let deploy = root.with_file_name("deploy");
        let order = Self::new(Tool::Sqitch, root, sqitch_order(&plan, &kept_scripts(&deploy)));
        Some(Self { root: deploy, releases: sqitch_releases(&plan), ..order })
    }

    fn of_stages(stages: Stages) -> Self {
        let Stages { tool, root, beside, files, again, always } = stages;
        let places = files.into_iter().enumerate().map(|(place, file)| (file, place)).collect();
        let order = Self::new(tool, &root, Vec::new());
        Self {
            base: beside.unwrap_or(root),
            places,
            again: again.into_iter().collect(),
            always: always.into_iter().collect(),
            ..order
        }
    }

    fn new(tool: Tool, root: &Path, names: Vec<String>) -> Self {
        let places = names.into_iter().enumerate().map(|(place, name)| (PathBuf::from(name), place)).collect();
        Self {
            tool,
            root: root.to_owned(),
            base: root.to_owned(),
            places,
            secondary_from: usize::MAX,
            autocommit: BTreeSet::new(),
            again: BTreeSet::new(),
            always: BTreeSet::new(),
            releases: BTreeMap::new(),
        }
    }

    fn relative(&self, path: &Path) -> Option<PathBuf> {
        let relative = path.strip_prefix(&self.base).map(Path::to_owned);
        let relative = relative.or_else(|_| absolute(path).strip_prefix(&self.base).map(Path::to_owned));
        Some(relative.ok()?.with_extension(""))
    }

    /// Whether the files here are run after those of the sequence, if at all.
    pub(crate) fn is_outside_sequence(&self) -> bool {
        self.base != self.root
    }

    /// The place of a file; `None` if the tool does not run it.
    pub(crate) fn place(&self, path: &Path) -> Option<usize> {
        self.places.get(&self.relative(path)?).copied()
    }

    /// Whether a file with this place is one of the main list, whose last one is the newest migration.
    pub(crate) fn is_main(&self, place: usize) -> bool {
        place < self.secondary_from
    }

    pub(super) fn is_autocommit(&self, path: &Path) -> bool {
        self.relative(path).is_some_and(|path| self.autocommit.contains(&path))
    }

    pub(super) fn runs_again(&self, path: &Path) -> bool {
        self.relative(path).is_some_and(|path| self.again.contains(&path))
    }

    pub(super) fn runs_always(&self, path: &Path) -> bool {
        self.relative(path).is_some_and(|path| self.always.contains(&path))
    }

    pub(super) fn release(&self, path: &Path) -> Option<u32> {
        self.releases.get(&self.relative(path)?).copied()
    }
}

/// Maximum number of levels above a file at which its master changelog is searched.
const LIQUIBASE_LEVELS: usize = 5;

/// The entries as they stand, whatever their `idx` is. Source: drizzle-orm 0.45.4, `src/migrator.ts`, `readMigrationFiles`.
fn drizzle_order(journal: &str) -> Option<Vec<String>> {
    let journal: serde_json::Value = serde_json::from_str(journal).ok()?;
    let tag = |entry: &serde_json::Value| Some(entry["tag"].as_str()?.to_owned());
    Some(journal["entries"].as_array()?.iter().filter_map(tag).collect())
}

/// The tags for which scripts of reworked changes are kept as `change@tag.sql`, by change.
type KeptScripts = FxHashMap<String, Vec<String>>;

fn kept_scripts(deploy: &Path) -> KeptScripts {
    let mut kept = KeptScripts::default();
    for file in stages::files(deploy) {
        if let Some((change, tag)) = file.to_str().and_then(|file| file.rsplit_once('@')) {
            kept.entry(change.to_owned()).or_default().push(format!("@{tag}"));
        }
    }
    kept
}

/// Changes in the order of the plan. An earlier version of a reworked change is kept as `name@tag`, where the tag is one
/// that is between the two in the plan: the last of them with such a script. Source: Sqitch, `sqitchchanges`,
/// `App::Sqitch::Plan::_parse` and `App::Sqitch::Plan::Change::path_segments`.
fn sqitch_order(plan: &str, kept: &KeptScripts) -> Vec<String> {
    let mut changes: Vec<String> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    // Each with the number of changes before it.
    let mut tags: FxHashMap<&str, usize> = FxHashMap::default();
    let mut last_tag = None;
    for line in plan.lines().map(str::trim) {
        let word = line.split_whitespace().next().unwrap_or_default();
        if word.is_empty() || word.starts_with(['%', '#']) {
            continue;
        }
        if word.starts_with('@') {
            tags.insert(word, changes.len());
            last_tag = Some(word);
            continue;
        }
        if let Some(earlier) = places.insert(word, changes.len()) {
            let place = |tag: &&str| tags.get(tag).copied().filter(|before| *before > earlier);
            let scripts = kept.get(word).into_iter().flatten().map(String::as_str);
            let script = scripts.filter_map(|tag| Some((place(&tag)?, tag))).max().map(|(_, tag)| tag);
            if let Some(tag) = script.or_else(|| last_tag.filter(|tag| place(tag).is_some())) {
                changes[earlier] = format!("{word}{tag}");
            }
        }
        changes.push(word.to_owned());
    }
    changes
}

/// The number of the release that each change is part of: a tag ends a release. Of a change that was reworked only the
/// last one is known. Empty without tags. Source: Sqitch, `sqitchtutorial`, "Tag".
fn sqitch_releases(plan: &str) -> BTreeMap<PathBuf, u32> {
    let mut releases = BTreeMap::new();
    let mut release = 1;
    for word in plan.lines().filter_map(|line| line.split_whitespace().next()) {
        match word.as_bytes()[0] {
            b'@' => release += 1,
            b'%' | b'#' => {}
            _ => drop(releases.insert(PathBuf::from(word), release)),
        }
    }
    if release == 1 { BTreeMap::new() } else { releases }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tags_of_a_plan_end_releases() {
        let changes = "%project=shop\n\nusers 2024-01-02T03:04:05Z a <a@b.c> # x\norders [users] 2024\n";
        assert_eq!(sqitch_releases(changes), BTreeMap::new());
        let releases = sqitch_releases(&format!("{changes}@v1 2024-03-04T05:06:07Z c\npayments 2024\n"));
        let expected = [("users", 1), ("orders", 1), ("payments", 2)];
        assert_eq!(releases, expected.map(|(name, release)| (PathBuf::from(name), release)).into());
    }

    fn scripts(names: &[&str]) -> KeptScripts {
        let root = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| fs::write(root.path().join(format!("{name}.sql")), "").unwrap());
        kept_scripts(root.path())
    }

    #[test]
    fn a_plan_gives_the_order_and_keeps_reworked_changes() {
        let plan = "%syntax-version=1.0.0\n\nusers 2024-01-01T00:00:00Z a <a@b.c> # x\norders [users] 2024\n@v1 2024\n\
                    # note\nusers [users@v1] 2024\n";
        assert_eq!(sqitch_order(plan, &scripts(&["users@v1"])), ["users@v1", "orders", "users"]);
    }

    #[test]
    fn a_reworked_change_is_kept_under_the_last_tag_before_it() {
        let plan =
            "users 2024\n@v1 2024\norders 2024\n@v2 2024\nusers [users@v2] 2024\n@v3 2024\nusers [users@v3] 2024\n";
        let order = |names| sqitch_order(plan, &scripts(names));
        assert_eq!(order(&["users@v1", "users@v2", "users@v3"]), ["users@v2", "orders", "users@v3", "users"]);
        // A tag that is added to the plan later leaves the names of scripts alone.
        assert_eq!(order(&["users@v1", "users@v3"]), ["users@v1", "orders", "users@v3", "users"]);
        assert_eq!(order(&[]), ["users@v2", "orders", "users@v3", "users"]);
    }

    #[test]
    fn a_plan_takes_linear_time_and_is_read_once() {
        let each = |from: usize, text: fn(usize) -> String| (from..from + 60_000).map(text).collect::<String>();
        let changes = each(0, |at| format!("c{at} 2024\n"));
        let plan = format!("{changes}{}{changes}", each(0, |at| format!("@v{at} 2024\n")));
        let begun = std::time::Instant::now();
        let order = sqitch_order(&plan, &KeptScripts::default());
        assert_eq!((order.len(), order[0].as_str()), (120_000, "c0@v59999"));
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());

        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("deploy")).unwrap();
        fs::write(root.path().join("sqitch.plan"), "a 2024\n").unwrap();
        let mut orders = Orders::default();
        let mut order = |folder: &str| orders.around(&root.path().join(folder)).unwrap();
        assert!(Arc::ptr_eq(&order("deploy/a"), &order("deploy/b")));
    }

    #[test]
    fn the_outermost_changelog_gives_the_order() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join("changelog").join(path);
        let including = |files: &[&str]| {
            let include = |file: &&str| format!("<include file=\"{file}\" relativeToChangelogFile=\"true\"/>\n");
            format!("<databaseChangeLog>\n{}</databaseChangeLog>\n", files.iter().map(include).collect::<String>())
        };
        for (path, text) in [
            ("shop.xml", including(&["v9/changelog.xml", "v10/changelog.xml"])),
            ("demo.xml", including(&["demo/a.sql"])),
            ("v9/changelog.xml", including(&["z.sql", "a.sql"])),
            ("v10/changelog.xml", including(&["a.sql"])),
            ("v9/z.sql", String::new()),
            ("v9/a.sql", String::new()),
            ("v10/a.sql", String::new()),
            ("demo/a.sql", String::new()),
        ] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        }
        let files = ["demo/a.sql", "v10/a.sql", "v9/a.sql", "v9/z.sql"].map(at).to_vec();
        let files = crate::order::sort(files);
        assert_eq!(files, ["v9/z.sql", "v9/a.sql", "v10/a.sql", "demo/a.sql"].map(at));
        let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        assert_eq!(crate::order::newest(&paths).map(|place| paths[place]), Some(at("v10/a.sql").as_path()));
    }

    #[test]
    fn folders_of_one_project_share_its_stages() {
        let root = tempfile::tempdir().unwrap();
        for file in ["_erase/a.sql", "_init/a.sql", "_pre/b/c.sql", "v0.00/a.sql"] {
            fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
            fs::write(root.path().join(file), "").unwrap();
        }
        let mut orders = Orders::default();
        let mut order = |stage: &str| orders.around(&root.path().join(stage)).unwrap();
        let (one, other, erase) = (order("_init"), order("_pre/b"), order("_erase"));
        assert!(Arc::ptr_eq(&one, &other), "all of it is read once");
        assert_eq!((one.is_outside_sequence(), erase.is_outside_sequence()), (false, true));
    }

    #[test]
    fn folders_of_drizzle_give_the_order_unless_there_is_a_journal() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), text).unwrap();
        };
        write("2_b/migration.sql", "");
        write("2_b/snapshot.json", "{}");
        write("1_a/migration.sql", "");
        write("1_a/other.sql", "");
        write("0_loose.sql", "");
        let places = || {
            let mut orders = Orders::default();
            ["1_a/migration.sql", "2_b/migration.sql", "1_a/other.sql", "0_loose.sql"].map(|path| {
                let path = root.path().join(path);
                let order = orders.around(path.parent().unwrap()).unwrap();
                assert_eq!((order.tool, order.root.as_path()), (Tool::Drizzle, root.path()));
                order.place(&path)
            })
        };
        assert_eq!(places(), [Some(0), Some(1), None, None]);
        write("meta/_journal.json", r#"{"entries":[{"idx":0,"tag":"0_loose"}]}"#);
        assert_eq!(places(), [None, None, None, Some(0)]);
    }

    #[test]
    fn a_journal_gives_the_order() {
        let journal = r#"{"entries":[{"idx":1,"tag":"0001_a"},{"idx":0,"tag":"0000_z"}]}"#;
        assert_eq!(drizzle_order(journal).unwrap(), ["0001_a", "0000_z"]);
        assert_eq!(drizzle_order("{"), None);
    }
}
