//! Captured migrations: SQL that a program has sent, written down by `pgvet capture`.
//!
//! A folder has a manifest with the order, and one file for each migration. The comments at the start of a file say where
//! it comes from and how it ran; those before its statements name their lines in the source.

use super::Tool;
use crate::boundary::Boundary;
use crate::config::absolute;
use crate::problem::{Problem, display};
use crate::read;
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the manifest.
pub const MANIFEST: &str = "pgvet-capture.json";

/// The version of the format.
const VERSION: u32 = 1;

/// The captured migrations of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    version: u32,
    /// The migration tool.
    pub tool: String,
    /// The folder of the project, from the folder of the manifest: sources are relative to it.
    pub root: PathBuf,
    /// Names of files in the order in which the migrations ran.
    pub files: Vec<String>,
}

impl Manifest {
    pub fn new(tool: String, root: PathBuf, files: Vec<String>) -> Self {
        Self { version: VERSION, tool, root, files }
    }

    /// Reads the manifest of a folder, if it has one.
    pub fn of(folder: &Path) -> Option<Self> {
        Self::parse(&read::text(&folder.join(MANIFEST)).ok()?)
    }

    /// Reads the text of a manifest of this version.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|manifest: &Self| manifest.version == VERSION)
    }

    /// The text of the file, one name in each line, so that git merges it line by line.
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("strings and numbers can be written");
        text + "\n"
    }

    /// Why a file of the folder is no captured migration.
    fn foreign(is_listed: bool, text: &str) -> Option<String> {
        if !is_listed {
            return Some(format!("is not listed in `{MANIFEST}`, which is in the same folder"));
        }
        let is_ours = text.starts_with(TITLE);
        (!is_ours).then(|| format!("is listed in `{MANIFEST}`, but pgvet capture did not write it"))
    }

    /// The names without their extension, as orders have them.
    pub(super) fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.strip_suffix(".sql").unwrap_or(file).to_owned()).collect()
    }
}

/// A path from the root of the project, and the digest of the file.
pub type Source = (String, String);

/// The comments at the start of a captured migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The name of the migration in the table of its tool.
    pub name: String,
    /// The file in the project, and the digest that it had; `None`: it is not part of the project.
    pub source: Option<Source>,
    pub transaction: Wrapping,
}

/// How a captured migration was wrapped in transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wrapping {
    /// The file has BEGIN and COMMIT where there were any.
    #[default]
    AsWritten,
    /// One transaction around all of it.
    One,
    /// One transaction around all of it and other migrations.
    Shared,
}

impl Wrapping {
    const NAMES: [(Self, &str); 3] = [(Self::AsWritten, "as written"), (Self::One, "one"), (Self::Shared, "shared")];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(one, _)| *one == self).map_or("as written", |(_, name)| name)
    }

    fn parse(text: &str) -> Self {
        Self::NAMES.iter().find(|(_, name)| *name == text).map_or(Self::AsWritten, |(one, _)| *one)
    }
}

const TITLE: &str =
    "-- SQL that a migration sent, written by pgvet capture. Do not edit it: capture the migration again.";

impl Header {
    /// The comments as text.
    pub fn to_text(&self) -> String {
        let source = self.source.as_ref().map(|(source, digest)| {
            let source = one_line(source);
            format!("-- source: {source}\n-- digest: {digest}\n")
        });
        let (name, source) = (one_line(&self.name), source.unwrap_or_default());
        format!("{TITLE}\n-- name: {name}\n{source}-- transaction: {}\n\n", self.transaction.name())
    }

    /// Reads the comments at the start of a file.
    pub fn of(text: &str) -> Self {
        let mut header = Self::default();
        let (mut source, mut digest) = (None, String::new());
        for comment in text.lines().map_while(|line| line.strip_prefix("-- ")) {
            match comment.split_once(": ") {
                Some(("name", name)) => name.clone_into(&mut header.name),
                Some(("source", path)) => source = Some(path.to_owned()),
                Some(("digest", value)) => value.clone_into(&mut digest),
                Some(("transaction", value)) => header.transaction = Wrapping::parse(value),
                _ => {}
            }
        }
        header.source = source.map(|source| (source, digest));
        header
    }
}

/// A text without characters that would end a comment.
fn one_line(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

/// The digest of a source: line ends do not matter, because git may change them.
pub fn digest(source: &str) -> String {
    blake3::hash(source.replace("\r\n", "\n").as_bytes()).to_hex().to_string()
}

/// The comment before a statement that says where the source sends it from.
pub fn place_comment(source: &str, line: Option<usize>) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("-- at {}{line}\n", one_line(source))
}

/// The text of a captured migration.
///
/// # Errors
/// Why it cannot be read: it is not a regular file, for example.
pub fn text(path: &Path) -> Result<String, String> {
    read::text(path).map_err(|error| format!("cannot be read: {error}"))
}

/// How a captured migration is wrapped in transactions when its file is run.
pub fn transaction(text: &str) -> TransactionMode {
    match Header::of(text).transaction {
        Wrapping::AsWritten => TransactionMode::Autocommit,
        Wrapping::One | Wrapping::Shared => TransactionMode::Transaction,
    }
}

/// The beginning of a comment with a statement about the tool's own tables.
const OWN: &str = "-- tool: ";

/// The comments at the end of a file with the statements, each on one line, that leave the tool's own tables as they are
/// after the migration.
pub fn own_comments(statements: &[String]) -> String {
    let comment = |sql: &String| format!("{OWN}{}\n", one_line(sql));
    let comments: String = statements.iter().map(comment).collect();
    if comments.is_empty() { comments } else { format!("\n{comments}") }
}

/// Reads what [`own_comments`] wrote, and the text before it.
pub fn split_own_statements(text: &str) -> (&str, Vec<&str>) {
    let own = text.lines().rev().map_while(|line| line.strip_prefix(OWN));
    let mut own: Vec<&str> = own.collect();
    own.reverse();
    let length: usize = own.iter().map(|sql| OWN.len() + sql.len() + 1).sum();
    let before = text.get(..text.len().saturating_sub(length)).unwrap_or(text);
    // Nothing but this block follows an empty line.
    if before.ends_with("\n\n") { (before, own) } else { (text, Vec::new()) }
}

/// The folder of the project as the manifest of a folder names it.
pub fn root_from(folder: &Path, project: &Path) -> PathBuf {
    let (folder, project) = (absolute(folder), absolute(project));
    let shared = folder.components().zip(project.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(shared).map(|_| Path::new(".."));
    let down = project.components().skip(shared).map(|part| Path::new(part.as_os_str()).to_owned());
    let relative: PathBuf = up.map(Path::to_owned).chain(down).collect();
    if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative }
}

/// Removes what an earlier capture has written to a folder. Nothing else may be in it.
///
/// # Errors
/// The folder holds other files, or something cannot be removed.
pub fn clear(folder: &Path) -> Result<(), Problem> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Problem::io(folder, &error)),
    };
    let known: Vec<String> = Manifest::of(folder).map(|manifest| manifest.files).unwrap_or_default();
    let mut removed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Problem::io(folder, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !(name == MANIFEST || known.contains(&name)) {
            let help = "name a new folder, or a folder that contains only captured migrations";
            return Err(Problem::new(folder, format!("contains `{name}`, which no capture has written"), Some(help)));
        }
        removed.push(entry.path());
    }
    if let Some(why) = Boundary::around(&folder.join(MANIFEST)).refusal(&folder.join(MANIFEST)) {
        return Err(Problem::new(folder, why, None));
    }
    removed.iter().try_for_each(|path| std::fs::remove_file(path).map_err(|error| Problem::io(path, &error)))
}

/// The manifests of folders and the digests of sources, each read once.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    manifests: Mutex<FxHashMap<PathBuf, Option<Arc<Listed>>>>,
    digests: Mutex<FxHashMap<PathBuf, Digest>>,
}

/// A manifest, without the order of its files.
#[derive(Debug)]
struct Listed {
    root: PathBuf,
    files: FxHashSet<String>,
}

/// The digest of a source, or why it cannot be read; `None`: it does not exist.
type Digest = Result<String, Option<String>>;

impl Captures {
    fn manifest(&self, folder: &Path) -> Option<Arc<Listed>> {
        let mut manifests = self.manifests.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = |Manifest { root, files, .. }| Arc::new(Listed { root, files: files.into_iter().collect() });
        manifests.entry(folder.to_owned()).or_insert_with(|| Manifest::of(folder).map(listed)).clone()
    }

    fn digest(&self, source: &Path) -> Digest {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
            let why = |error: io::Error| (!missing(&error)).then(|| error.to_string());
            read::text(source).map(|text| digest(&text)).map_err(why)
        };
        digests.entry(source.to_owned()).or_insert_with(read).clone()
    }
}

/// Where a captured migration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file of the project as it is shown; `None` if it is not part of the project.
    pub source: Option<String>,
    /// The name of the captured file, if its folder is only a temporary one.
    pub(crate) temporary_name: Option<String>,
    /// Whether it shared its transaction with other migrations.
    pub(crate) is_shared: bool,
    /// Whether it ran to its end.
    pub(crate) is_complete: bool,
    /// Why the file does not say what the source does now.
    pub(crate) stale: Option<Problem>,
    /// Offsets of comments that name lines, with the lines.
    lines: Vec<(u32, Option<usize>)>,
}

impl Origin {
    /// The origin of a file that the manifest of its folder names.
    pub(crate) fn of(path: &Path, text: &str, tool: Tool, captures: &Captures) -> Option<Self> {
        if tool != Tool::Captured {
            return None;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let manifest = captures.manifest(folder)?;
        let header = Header::of(text);
        // The manifest of a capture that is kept has a relative path.
        let temporary_name = path.file_name().filter(|_| manifest.root.is_absolute());
        let mut origin = Self {
            source: None,
            temporary_name: temporary_name.map(|name| name.to_string_lossy().into_owned()),
            is_shared: header.transaction == Wrapping::Shared,
            is_complete: !header.name.is_empty(),
            stale: None,
            lines: Vec::new(),
        };
        // A list that somebody adds to a folder must not take its migrations away from the tool that runs them.
        let name = path.file_name().unwrap_or_default();
        let is_listed = name.to_str().is_some_and(|name| manifest.files.contains(name));
        if let Some(why) = Manifest::foreign(is_listed, text) {
            let help =
                "remove the file or the list, or capture the migrations again: `pgvet capture --save DIR -- COMMAND`";
            origin.stale = Some(Problem::new(path, why, Some(help)));
            origin.is_complete = false;
        } else if let Some((source, digest)) = header.source {
            let shown = shown(&manifest.root, folder, &source);
            origin.stale = stale(path, &shown, &digest, captures);
            origin.lines = lines(text, &source);
            origin.source = Some(display(&shown));
        }
        Some(origin)
    }

    /// Whether it is a migration of a package, which is not the project's to change.
    pub(crate) fn is_foreign(&self) -> bool {
        self.source.is_none() && self.is_complete
    }

    /// The line of the source that sends the statement at a range; 1 if it was not found.
    pub fn line(&self, range: TextRange) -> usize {
        let before = self.lines.partition_point(|(offset, _)| *offset <= range.start);
        self.lines[..before].last().and_then(|(_, line)| *line).unwrap_or(1)
    }
}

/// Why a captured migration does not say what its source does now.
pub fn staleness(path: &Path, text: &str) -> Option<Problem> {
    Origin::of(path, text, Tool::Captured, &Captures::default())?.stale
}

/// The path of a source as a user in the current folder would name it.
fn shown(root: &Path, folder: &Path, source: &str) -> PathBuf {
    let path = absolute(&folder.join(root).join(source));
    let current = absolute(Path::new("."));
    path.strip_prefix(&current).map(Path::to_owned).unwrap_or(path)
}

/// Why the capture does not say what the source does now.
fn stale(path: &Path, source: &Path, digest: &str, captures: &Captures) -> Option<Problem> {
    let help = "capture the migrations again: `pgvet capture --save DIR -- COMMAND`";
    let problem = |why: String| Some(Problem::new(path, why, Some(help)));
    let name = display(source);
    if let Some(why) = Boundary::around(path).refusal(source) {
        return problem(format!("names `{name}` as its source, which {why}"));
    }
    match captures.digest(source) {
        Ok(now) if now == digest => None,
        Ok(_) => problem(format!("was captured from `{name}`, which has changed since it was captured")),
        Err(None) => problem(format!("was captured from `{name}`, which no longer exists")),
        Err(Some(error)) => problem(format!("was captured from `{name}`, which cannot be read: {error}")),
    }
}

fn lines(text: &str, source: &str) -> Vec<(u32, Option<usize>)> {
    let mark = place_comment(source, None);
    let mark = mark.trim_end();
    let mut offset = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.trim_end().strip_prefix(mark) {
            found.push((offset, rest.strip_prefix(':').and_then(|number| number.parse().ok())));
        }
        offset += line.len() as u32;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn header(source: Option<(&str, &str)>) -> Header {
        let source = source.map(|(source, digest)| (source.to_owned(), digest.to_owned()));
        Header { name: "shop.0002_note".to_owned(), source, transaction: Wrapping::One }
    }

    #[test]
    fn headers_are_read_as_they_are_written() {
        for header in [header(None), header(Some(("shop/migrations/0002_note.py", "ab12")))] {
            assert_eq!(Header::of(&header.to_text()), header);
        }
        let hostile = Header { name: "a\n; DROP TABLE t; --\u{1b}[2J".to_owned(), ..Header::default() };
        let text = hostile.to_text();
        assert!(
            text.lines().all(|line| line.is_empty() || line.starts_with("-- ")) && !text.contains('\u{1b}'),
            "{text}"
        );
    }

    #[test]
    fn statements_about_the_table_of_the_tool_stand_at_the_end() {
        let text = "-- name: 1\n\nSELECT '\n-- tool: no';\n".to_owned();
        let own = ["INSERT INTO t VALUES ('1')".to_owned(), "DELETE FROM locks".to_owned()];
        let whole = text.clone() + &own_comments(&own);
        let (before, found) = split_own_statements(&whole);
        assert_eq!((before.trim_end(), found), (text.trim_end(), own.iter().map(String::as_str).collect()));
        assert_eq!(split_own_statements(&text), (text.as_str(), Vec::new()));
        assert_eq!(text.clone() + &own_comments(&[]), text);
        let refused = "SELECT 1;\n-- tool: DROP TABLE t\n";
        assert_eq!(split_own_statements(refused), (refused, Vec::new()));
    }

    #[test]
    fn a_folder_with_other_files_is_not_cleared() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        clear(&at("new")).unwrap();
        let manifest = Manifest::new("knex".to_owned(), "..".into(), vec!["1.sql".to_owned()]);
        fs::write(at(MANIFEST), manifest.to_text()).unwrap();
        fs::write(at("1.sql"), "").unwrap();
        fs::write(at("own.sql"), "").unwrap();
        assert!(clear(root.path()).unwrap_err().message.contains("`own.sql`"));
        assert!(at("1.sql").exists());
        fs::remove_file(at("own.sql")).unwrap();
        clear(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        assert_eq!(root_from(Path::new("/a/b/c"), Path::new("/a/d")), Path::new("../../d"));
        assert_eq!(root_from(Path::new("/a/b/"), Path::new("/a/b")), Path::new("."));
    }

    #[test]
    fn the_source_is_found_and_compared() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("db/captured")).unwrap();
        fs::create_dir_all(at(".git")).unwrap();
        fs::write(at("1.py"), "one\n").unwrap();
        let manifest = Manifest::new("django".to_owned(), "../..".into(), vec!["a.1.sql".to_owned()]);
        fs::write(at("db/captured").join(MANIFEST), manifest.to_text()).unwrap();
        let captured = |source: &str, digest: &str| {
            let statement =
                place_comment(source, Some(7)) + "SELECT 1;\n" + &place_comment(source, None) + "SELECT 2;\n";
            let text = header(Some((source, digest))).to_text() + &statement;
            let origin = Origin::of(&at("db/captured/a.1.sql"), &text, Tool::Captured, &Captures::default()).unwrap();
            let line = |sql: &str| origin.line(TextRange::at(text.find(sql).unwrap() as u32));
            assert_eq!((line("SELECT 1"), line("SELECT 2")), (7, 1));
            origin.stale.map(|problem| problem.message)
        };
        assert_eq!(captured("1.py", &digest("one\r\n")), None);
        assert!(captured("1.py", &digest("two")).unwrap().ends_with("has changed since it was captured"));
        assert!(captured("2.py", "").unwrap().ends_with("which no longer exists"));
        assert!(captured("../../../etc/passwd", "").unwrap().contains("which is outside"));
    }

    #[test]
    fn a_manifest_and_a_source_are_read_once() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in [".git", "db"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("1.py"), "one\n").unwrap();
        let manifest = Manifest::new("Django".to_owned(), PathBuf::from(".."), vec!["a.sql".to_owned()]);
        fs::write(at("db").join(MANIFEST), manifest.to_text()).unwrap();
        let (captures, text) = (Captures::default(), header(Some(("1.py", &digest("one\n")))).to_text());
        let stale = |name: &str| {
            let origin = Origin::of(&at("db").join(name), &text, Tool::Captured, &captures).unwrap();
            origin.stale.map(|problem| problem.message)
        };
        assert_eq!(stale("a.sql"), None);
        fs::remove_file(at("db").join(MANIFEST)).unwrap();
        fs::remove_file(at("1.py")).unwrap();
        assert_eq!(stale("a.sql"), None);
        assert!(stale("b.sql").unwrap().contains("is not listed in"));
    }
}
