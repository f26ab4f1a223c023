//! Liquibase's master changelogs: in which order they include SQL files.
//!
//! Source: Liquibase documentation, "include", "includeAll", "sqlFile" and "runInTransaction".

use crate::boundary::Boundary;
use crate::read;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An SQL file that a changelog runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Included {
    pub(super) path: PathBuf,
    /// Whether the changeset that runs it is marked `runInTransaction="false"`.
    pub(super) autocommit: bool,
}

/// An entry of a changelog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    path: String,
    relative: bool,
    autocommit: bool,
    /// For another database, or only for a rollback.
    skipped: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    /// Another changelog, which may be formatted SQL.
    #[default]
    Include,
    /// All changelogs of a folder and of those below it, by path.
    IncludeAll,
    SqlFile,
}

/// Maximum depth of the folders below one that a changelog includes.
const MAX_DEPTH: usize = 8;

/// Maximum number of entries and files that all changelogs of a run may lead to: a line names a folder of any size, and any
/// number of changelogs have that line.
const MAX_STEPS: usize = 250_000;

/// The files that the changelogs of folders run, each looked up once.
#[derive(Debug, Default)]
pub(super) struct Changelogs {
    known: FxHashMap<PathBuf, Arc<Vec<Vec<Included>>>>,
    /// What changelogs name, and the files in folders and below.
    entries: FxHashMap<PathBuf, Arc<Vec<Entry>>>,
    files: FxHashMap<PathBuf, Arc<Vec<PathBuf>>>,
    steps: usize,
}

impl Changelogs {
    /// The files that the changelogs in a folder run, in order, the changelog with most files first. See [`masters`].
    /// None if they lead to too many, because a file that is missing in a list would not be checked.
    pub(super) fn of(&mut self, folder: &Path, any_name: bool) -> Arc<Vec<Vec<Included>>> {
        if let Some(known) = self.known.get(folder) {
            return Arc::clone(known);
        }
        let mut changelogs: Vec<Vec<Included>> = Vec::new();
        for master in masters(folder, any_name) {
            changelogs.push(self.order(&master));
        }
        if self.is_exhausted() {
            changelogs.clear();
        }
        changelogs.sort_by_key(|included| std::cmp::Reverse(included.len()));
        Arc::clone(self.known.entry(folder.to_owned()).or_insert(Arc::new(changelogs)))
    }

    /// Whether changelogs led to more files than are followed.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps > MAX_STEPS
    }

    /// The SQL files of a master changelog in order. What is named again changes nothing of that order, and is not followed
    /// again: changelogs that include each other would take exponential time.
    fn order(&mut self, master: &Path) -> Vec<Included> {
        let boundary = boundary(master);
        let (mut seen, mut files, mut included) = (FxHashSet::default(), FxHashSet::default(), Vec::new());
        let mut open = vec![Step::Changelog(master.to_owned())];
        while let Some(step) = open.pop().filter(|_| !self.is_exhausted()) {
            match step {
                Step::File(file) => {
                    if files.insert(file.clone()) {
                        included.push(file);
                    }
                }
                Step::Changelog(path) => {
                    if seen.insert(path.clone()) {
                        open.extend(self.steps(&path, &boundary).into_iter().rev());
                    }
                }
                Step::Folder(path) => {
                    if seen.insert(path.clone()) {
                        open.extend(self.files_below(&path).iter().rev().cloned().map(include));
                    }
                }
            }
        }
        included
    }

    fn steps(&mut self, changelog: &Path, boundary: &Boundary) -> Vec<Step> {
        let read = |path: &PathBuf| Arc::new(read::text(path).map_or_else(|_| Vec::new(), |text| entries(path, &text)));
        let entries = Arc::clone(self.entries.entry(changelog.to_owned()).or_insert_with_key(read));
        self.steps += entries.len() + 1;
        let step = |entry: &Entry| {
            let path = resolve(changelog, entry).filter(|path| boundary.refusal(path).is_none())?;
            Some(match entry.kind {
                Kind::SqlFile => Step::File(Included { path, autocommit: entry.autocommit }),
                Kind::Include => include(path),
                Kind::IncludeAll => Step::Folder(path),
            })
        };
        let left = (MAX_STEPS + 1).saturating_sub(self.steps - entries.len());
        entries.iter().take(left).filter(|entry| !entry.skipped).filter_map(step).collect()
    }

    /// The files in a folder and in those below it: Liquibase sorts them by their whole paths.
    fn files_below(&mut self, folder: &Path) -> Arc<Vec<PathBuf>> {
        let left = (MAX_STEPS + 1).saturating_sub(self.steps);
        let known = self.files.entry(folder.to_owned()).or_insert_with_key(|folder| {
            let mut files = Vec::new();
            collect_below(folder, 0, left, &mut files);
            files.sort();
            Arc::new(files)
        });
        let files = Arc::clone(known);
        self.steps += files.len() + 1;
        files
    }
}

/// The changelogs in a folder that may include others. Where `any_name`, what begins as one is one under every name.
fn masters(folder: &Path, any_name: bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_changelog = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let Some((stem, extension)) = name.rsplit_once('.') else { return false };
        if !matches!(extension, "xml" | "yaml" | "yml" | "json") {
            return false;
        }
        is_master(stem) || (any_name && begins_as_changelog(path))
    };
    let mut masters: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_changelog).collect();
    masters.sort();
    masters
}

fn is_master(stem: &str) -> bool {
    stem.contains("changelog") || matches!(stem, "master" | "liquibase" | "root")
}

/// Whether the element, or the key, of changelogs is among the first bytes of the file, which may begin with a licence.
fn begins_as_changelog(path: &Path) -> bool {
    let mut start = Vec::new();
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut read = || fs::File::open(path).and_then(|file| file.take(8192).read_to_end(&mut start));
    is_file && read().is_ok() && start.windows(CHANGELOG.len()).any(|bytes| bytes == CHANGELOG)
}

const CHANGELOG: &[u8] = b"databaseChangeLog";

/// What a changelog names, in the order in which Liquibase runs it.
enum Step {
    Changelog(PathBuf),
    Folder(PathBuf),
    File(Included),
}

/// What a changelog may name: files of its repository. Outside of one, its folder and the one above.
fn boundary(master: &Path) -> Boundary {
    let boundary = Boundary::around(master);
    let folder = master.parent().unwrap_or(master);
    if boundary.is_known() { boundary } else { Boundary::within(folder.parent().unwrap_or(folder)) }
}

fn include(path: PathBuf) -> Step {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql")) {
        Step::File(Included { path, autocommit: false })
    } else {
        Step::Changelog(path)
    }
}

/// Adds the files of a folder and of those below it, up to a number of files and folders.
fn collect_below(folder: &Path, depth: usize, limit: usize, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
        if files.len() >= limit {
            return;
        }
        if !path.is_dir() {
            files.push(path);
        } else if depth < MAX_DEPTH && !path.is_symlink() {
            collect_below(&path, depth + 1, limit, files);
        }
    }
}

/// A path is relative to the changelog, or to a folder of the search path: one of those above the changelog.
fn resolve(changelog: &Path, entry: &Entry) -> Option<PathBuf> {
    let path = entry.path.trim_start_matches("classpath:").trim_start_matches('/');
    let mut folders = changelog.ancestors().skip(1);
    let found = |folder: &Path| Some(crate::config::absolute(&folder.join(path))).filter(|path| path.exists());
    if entry.relative { folders.next().and_then(found) } else { folders.find_map(found) }
}

fn entries(changelog: &Path, text: &str) -> Vec<Entry> {
    match changelog.extension().and_then(|extension| extension.to_str()) {
        Some("xml") => xml(text),
        Some("json") => serde_json::from_str(text).map(|value| json(&value)).unwrap_or_default(),
        // Anchors that multiply, and nesting, have limits.
        _ => serde_saphyr::from_str(text).map(|value| json(&value)).unwrap_or_default(),
    }
}

fn kind(name: &str) -> Option<Kind> {
    match name {
        "include" => Some(Kind::Include),
        "includeAll" => Some(Kind::IncludeAll),
        "sqlFile" => Some(Kind::SqlFile),
        _ => None,
    }
}

fn is_for_postgresql(dbms: &str) -> bool {
    super::annotations::is_postgresql(dbms)
}

fn xml(text: &str) -> Vec<Entry> {
    // A document type could name files and would be expanded: roxmltree refuses it unless asked.
    let Ok(document) = roxmltree::Document::parse(text) else { return Vec::new() };
    document.descendants().filter_map(xml_entry).collect()
}

fn xml_entry(node: roxmltree::Node<'_, '_>) -> Option<Entry> {
    let kind = kind(node.tag_name().name())?;
    let foreign = |node: roxmltree::Node<'_, '_>| node.attribute("dbms").is_some_and(|dbms| !is_for_postgresql(dbms));
    let within = |name: &str| node.ancestors().skip(1).find(|node| node.tag_name().name() == name);
    let changeset = within("changeSet");
    Some(Entry {
        kind,
        path: node.attribute("file").or(node.attribute("path")).unwrap_or_default().to_owned(),
        relative: node.attribute("relativeToChangelogFile") == Some("true"),
        autocommit: changeset.is_some_and(|node| node.attribute("runInTransaction") == Some("false")),
        skipped: within("rollback").is_some() || foreign(node) || changeset.is_some_and(foreign),
    })
}

fn json(value: &Value) -> Vec<Entry> {
    let log = value["databaseChangeLog"].as_array().into_iter().flatten();
    log.flat_map(json_item).collect()
}

fn json_item(item: &Value) -> Vec<Entry> {
    let entry = |name: &str, value: &Value, changeset: &Value| {
        let text = |key: &str| value[key].as_str();
        let is = |value: &Value, expected: bool| {
            value.as_bool() == Some(expected) || value.as_str() == Some(if expected { "true" } else { "false" })
        };
        let foreign = |value: &Value| value["dbms"].as_str().is_some_and(|dbms| !is_for_postgresql(dbms));
        Some(Entry {
            kind: kind(name)?,
            path: text("file").or(text("path"))?.to_owned(),
            relative: is(&value["relativeToChangelogFile"], true),
            autocommit: is(&changeset["runInTransaction"], false),
            skipped: foreign(value) || foreign(changeset),
        })
    };
    let Some(item) = item.as_object() else { return Vec::new() };
    let mut entries: Vec<Entry> = item.iter().filter_map(|(name, value)| entry(name, value, &Value::Null)).collect();
    if let Some(changeset) = item.get("changeSet") {
        let changes = changeset["changes"].as_array().into_iter().flatten().filter_map(Value::as_object);
        entries.extend(changes.flatten().filter_map(|(name, value)| entry(name, value, changeset)));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Kind, path: &str) -> Entry {
        Entry { kind, path: path.to_owned(), ..Entry::default() }
    }

    #[test]
    fn the_three_formats_say_the_same() {
        let xml_text = r#"<databaseChangeLog>
            <!-- <include file="old.sql"/> -->
            <include file="a.xml" relativeToChangelogFile="true"/>
            <includeAll path='sql/'/>
            <changeSet id="1" author="a" runInTransaction="false">
              <sqlFile path="b.sql"/>
              <rollback><sqlFile path="undo.sql"/></rollback>
            </changeSet>
            <changeSet id="2" author="a" dbms="mysql"><sqlFile path="c.sql"/></changeSet>
            <changeSet id="3" author="a"><sqlFile dbms="postgresql" path="d.sql"/></changeSet>
        </databaseChangeLog>"#;
        let yaml_text = "databaseChangeLog:\n  - include:\n      file: a.xml\n      relativeToChangelogFile: true\n  \
            - includeAll:\n      path: sql/\n  - changeSet:\n      id: 1\n      runInTransaction: false\n      changes:\n        \
            - sqlFile:\n            path: \"b.sql\" # big\n      rollback:\n        - sqlFile:\n            path: undo.sql\n  \
            - changeSet:\n      id: 2\n      dbms: mysql\n      changes:\n        - sqlFile:\n            path: c.sql\n  \
            - changeSet:\n      id: 3\n      changes:\n        - sqlFile:\n            dbms: postgresql\n            path: d.sql\n";
        let json_text = r#"{"databaseChangeLog": [
            {"include": {"file": "a.xml", "relativeToChangelogFile": true}}, {"includeAll": {"path": "sql/"}},
            {"changeSet": {"id": 1, "runInTransaction": false, "changes": [{"sqlFile": {"path": "b.sql"}}]}},
            {"changeSet": {"id": 2, "dbms": "mysql", "changes": [{"sqlFile": {"path": "c.sql"}}]}},
            {"changeSet": {"id": 3, "changes": [{"sqlFile": {"path": "d.sql", "dbms": "postgresql"}}]}}]}"#;
        let expected = [
            Entry { relative: true, ..entry(Kind::Include, "a.xml") },
            entry(Kind::IncludeAll, "sql/"),
            Entry { autocommit: true, ..entry(Kind::SqlFile, "b.sql") },
            entry(Kind::SqlFile, "d.sql"),
        ];
        for (name, text) in [("m.xml", xml_text), ("m.yaml", yaml_text), ("m.json", json_text)] {
            let run: Vec<Entry> = entries(Path::new(name), text).into_iter().filter(|entry| !entry.skipped).collect();
            assert_eq!(run, expected, "{name}");
        }
    }

    #[test]
    fn masters_are_known_by_their_names_or_by_how_they_begin() {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("db.changelog-master.xml", ""),
            ("changelog.yaml", ""),
            ("master.yml", ""),
            ("liquibase-changelog.json", ""),
            ("shop.xml", "<?xml version=\"1.0\"?>\n<!-- A licence. -->\n<databaseChangeLog>\n</databaseChangeLog>\n"),
            ("pom.xml", "<project/>"),
            ("application.yaml", "spring: {}"),
            ("changelog.md", "databaseChangeLog"),
            ("package.json", "{}"),
        ] {
            fs::write(root.path().join(name), text).unwrap();
        }
        let names = |any_name| {
            let masters = masters(root.path(), any_name);
            masters.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let by_name = ["changelog.yaml", "db.changelog-master.xml", "liquibase-changelog.json", "master.yml"];
        assert_eq!(names(false), by_name);
        assert_eq!(names(true), [&by_name[..], &["shop.xml"]].concat());
    }

    #[test]
    fn a_changelog_is_followed_once_and_inside_of_the_repository() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["outside", "a/.git", "a/db/all"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["outside/0.sql", "outside/1.sql", "a/db/1.sql", "a/db/2.sql", "a/db/all/3.sql"] {
            fs::write(at(file), "SELECT 1;").unwrap();
        }
        let include = |kind: &str, path: &str| format!("<{kind} relativeToChangelogFile=\"true\" {path}/>");
        let outer =
            include("includeAll", "path=\"../../outside\"") + &include("include", "file=\"../../outside/0.sql\"");
        let again = include("include", "file=\"changelog.xml\"").repeat(50);
        let all = include("includeAll", "path=\"all\"").repeat(50);
        let next = include("include", "file=\"next.xml\"").repeat(50);
        let files = include("include", "file=\"2.sql\"") + &include("sqlFile", "path=\"1.sql\"");
        let text = |body: String| format!("<databaseChangeLog>{body}</databaseChangeLog>");
        fs::write(at("a/db/changelog.xml"), text(format!("{outer}{again}{next}{files}"))).unwrap();
        fs::write(at("a/db/next.xml"), text(format!("{again}{next}{all}{files}"))).unwrap();
        let found: Vec<_> =
            Changelogs::default().order(&at("a/db/changelog.xml")).into_iter().map(|file| file.path).collect();
        assert_eq!(found, ["a/db/all/3.sql", "a/db/2.sql", "a/db/1.sql"].map(at));
    }

    #[test]
    fn folders_of_changelogs_are_read_once_and_up_to_a_number() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at(".git")).unwrap();
        fs::create_dir_all(at("db/m")).unwrap();
        let all = "<databaseChangeLog><includeAll path=\"m\" relativeToChangelogFile=\"true\"/></databaseChangeLog>";
        for master in ["changelog.xml", "master.xml"] {
            fs::write(at("db").join(master), all).unwrap();
        }
        (0..1000).for_each(|file| fs::write(at(&format!("db/m/{file}.sql")), "").unwrap());
        let mut changelogs = Changelogs::default();
        let found = changelogs.of(&at("db"), false);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000]);
        assert_eq!((changelogs.files.len(), changelogs.entries.len()), (1, 2));
        assert!(!changelogs.is_exhausted());
        let mut changelogs = Changelogs { steps: MAX_STEPS - 1500, ..Changelogs::default() };
        assert!(changelogs.of(&at("db"), false).is_empty(), "a part of a list would hide the rest");
        assert!(changelogs.is_exhausted());
    }

    #[test]
    fn broken_changelogs_end_somewhere() {
        for text in ["<", "<include", "<include file=", "<include file=\"", "<!--", "<a>\u{0}</"] {
            assert_eq!(xml(text), [], "{text}");
        }
        let bomb =
            "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n".to_owned() + &"c: [*b, *b]\n".repeat(1000);
        for text in ["- include:\n- :\n  file\n", "databaseChangeLog: [", &bomb, &"[".repeat(100_000)] {
            assert_eq!(entries(Path::new("m.yaml"), text), []);
        }
    }
}
