//! Changes according to git, which is called on its command line.

mod bounded;
mod command;
mod committed;
pub(crate) mod index;
mod owner;
mod regular;
mod revision;

use crate::atlas_sum;
use crate::identity::identity;
use crate::problem::{Problem, display};
use crate::skipped;
use command::Git;
use committed::Committed;
use pgvet_model::incident::Applied;
pub use revision::Revision;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The changes that are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeSelection {
    /// Since the branch left this revision, committed or not.
    Since(String),
    /// The changes of the next commit.
    Staged,
    /// Changes that are not committed, including files that git does not know yet.
    Uncommitted,
}

/// Files that were added, or whose text was changed, by their [`identity`].
#[derive(Debug, Default)]
pub(crate) struct Changes {
    files: BTreeMap<PathBuf, Change>,
    /// Submodules that have got another commit: whatever is in them may have changed.
    submodules: BTreeSet<PathBuf>,
    /// Files with SQL that are no longer where they were.
    deleted: BTreeSet<PathBuf>,
    /// The texts of the base revision for files with SQL that were edited or deleted since, by the identity that they had.
    before: BTreeMap<PathBuf, Vec<u8>>,
    /// The new identities of files with SQL that have another name, by the old ones.
    renamed: BTreeMap<PathBuf, PathBuf>,
    /// Files with SQL of the base branch that were added since this one left it.
    only_in_base: BTreeSet<PathBuf>,
    /// Whether the base revision is that of another branch.
    is_other_branch: bool,
    /// If the base revision is the last commit, what this branch has committed.
    committed: Committed,
    /// For [`ChangeSelection::Staged`], what the index holds of files with SQL, and of the list of Atlas, whose text on disk
    /// is another one; `None` if it does not hold the file.
    index: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
}

impl Changes {
    /// The change of the file; `None`: nothing.
    pub(crate) fn of(&self, identity: &Path) -> Option<Change> {
        let in_submodule = || self.submodules.iter().any(|folder| identity.starts_with(folder));
        self.files.get(identity).copied().or_else(|| in_submodule().then_some(Change::Modified))
    }

    /// Returns the files with SQL that are no longer where they were.
    pub(crate) fn deleted(&self) -> impl Iterator<Item = &Path> {
        self.deleted.iter().map(PathBuf::as_path)
    }

    /// Where a file of the base revision is treated as applied.
    pub(crate) fn applied(&self, identity: &Path) -> Applied {
        if self.is_other_branch { Applied::InBase } else { self.committed.applied(identity) }
    }

    /// The old identity of a file that has another name.
    pub(crate) fn renamed_from(&self, identity: &Path) -> Option<&Path> {
        self.renamed.iter().find(|(_, new)| *new == identity).map(|(old, _)| old.as_path())
    }

    /// The new identity of a file that had this one.
    pub(crate) fn renamed_to(&self, identity: &Path) -> Option<&Path> {
        self.renamed.get(identity).map(PathBuf::as_path)
    }

    /// Whether the base revision and the base branch lack the file, under whatever name.
    pub(crate) fn is_new(&self, identity: &Path) -> bool {
        let is_restored = self.committed.before(identity).is_some();
        self.of(identity) == Some(Change::Added) && self.renamed_from(identity).is_none() && !is_restored
    }

    /// The text that a file had in the base revision, if that was another one. What the base branch has goes before the
    /// last commit.
    pub(crate) fn before(&self, identity: &Path) -> Option<&[u8]> {
        let of = |identity: &Path| self.committed.before(identity).or_else(|| self.before.get(identity));
        of(identity).or_else(|| of(self.renamed_from(identity)?)).map(Vec::as_slice)
    }

    /// Returns the files with SQL that the base revision has, and that have another name or are gone.
    pub(crate) fn gone(&self) -> impl Iterator<Item = &Path> {
        let gone: BTreeSet<&Path> = self.deleted().chain(self.renamed.keys().map(PathBuf::as_path)).collect();
        gone.into_iter()
    }

    /// Returns the files with SQL that only the base branch has.
    pub(crate) fn only_in_base(&self) -> impl Iterator<Item = &Path> {
        self.only_in_base.iter().map(PathBuf::as_path)
    }

    /// Whether the next commit does not hold the file.
    pub(crate) fn is_unknown_to_index(&self, identity: &Path) -> bool {
        self.index.get(identity).is_some_and(Option::is_none)
    }

    /// Returns what the index holds of files whose content on disk is another one.
    pub(crate) fn index(&self) -> &BTreeMap<PathBuf, Option<Vec<u8>>> {
        &self.index
    }

    /// Returns the texts of the index that differ from those on disk.
    pub(crate) fn staged_texts(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.index.iter().filter_map(|(path, bytes)| Some((path.clone(), bytes.clone()?))).collect()
    }
}

/// The files that are new or have changed since this branch left a revision, committed or not.
#[derive(Debug)]
pub struct ChangedFiles(Changes);

impl ChangedFiles {
    /// Asks the repository around a folder.
    ///
    /// # Errors
    /// There is no repository, or it has no such revision.
    pub fn since(revision: &str, folder: &Path) -> Result<Self, Problem> {
        let selection = ChangeSelection::Since(revision.to_owned());
        changes(&selection, &BTreeSet::from([folder.to_owned()])).map(Self)
    }

    /// Whether a file is one of them.
    pub fn contains(&self, file: &Path) -> bool {
        self.0.of(&identity(file)).is_some()
    }
}

/// The changes in the repositories around these folders.
pub(crate) fn changes(selection: &ChangeSelection, folders: &BTreeSet<PathBuf>) -> Result<Changes, Problem> {
    let mut repositories: Vec<Repository> = Vec::new();
    for folder in folders {
        let repository = Repository { git: Git::around(folder)?, folder: folder.clone() };
        if repositories.iter().all(|known| known.git.top != repository.git.top) {
            repositories.push(repository);
        }
    }
    let mut changes = Changes::default();
    let mut seen: BTreeSet<PathBuf> = repositories.iter().map(|repository| repository.git.top.clone()).collect();
    while let Some(repository) = repositories.pop() {
        let is_named = folders.contains(&repository.folder);
        // Since when a submodule differs is in the repository around it.
        let selection = if is_named { selection } else { &ChangeSelection::Uncommitted };
        repository.look(selection, &mut changes)?;
        if *selection != ChangeSelection::Staged {
            let submodules = repository.submodules()?.into_iter().filter(|folder| seen.insert(folder.clone()));
            for folder in submodules.collect::<Vec<_>>() {
                repositories.push(Repository { git: Git::around(&folder)?, folder });
            }
        }
    }
    Ok(changes)
}

struct Repository {
    git: Git,
    folder: PathBuf,
}

impl Repository {
    fn look(&self, selection: &ChangeSelection, changes: &mut Changes) -> Result<(), Problem> {
        match selection {
            ChangeSelection::Since(revision) => {
                let Base { tip, base } = self.base(revision)?;
                changes.is_other_branch = true;
                self.changed(&[&base], changes)?;
                if tip != base {
                    self.added_to_base(&base, &tip, changes)?;
                }
            }
            ChangeSelection::Staged => {
                self.changed(&["--cached"], changes)?;
                self.unstaged(changes)?;
                if !self.has_no_commit() {
                    self.committed(changes)?;
                }
            }
            // Before the first commit there is no HEAD, and everything is new.
            ChangeSelection::Uncommitted if self.has_no_commit() => {
                self.added(&["ls-files", "-z", "--full-name"], changes)?;
            }
            ChangeSelection::Uncommitted => {
                self.changed(&["HEAD"], changes)?;
                self.committed(changes)?;
            }
        }
        if *selection != ChangeSelection::Staged {
            self.added(&["ls-files", "-z", "--others", "--exclude-standard", "--full-name"], changes)?;
        }
        Ok(())
    }

    fn has_no_commit(&self) -> bool {
        self.git.run(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err()
    }

    fn problem(&self, message: impl Into<String>, help: Option<&str>) -> Problem {
        Problem::new(&self.folder, message, help)
    }

    /// Fields of output that ends each in NUL.
    fn fields(&self, arguments: &[&str]) -> Result<Vec<OsString>, Problem> {
        let output =
            self.git.run(arguments).map_err(|message| self.problem(format!("git refused: {message}"), None))?;
        Ok(output.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(name_of).collect())
    }

    fn added(&self, arguments: &[&str], changes: &mut Changes) -> Result<(), Problem> {
        for name in self.fields(arguments)? {
            let path = identity(&self.git.top.join(name));
            // The index alone lacks it.
            if !changes.deleted.contains(&path) {
                changes.files.insert(path, Change::Added);
            }
        }
        Ok(())
    }

    /// The contents in the index of files with SQL that differ from those on disk. Files that it does not hold are not
    /// part of the next commit.
    fn unstaged(&self, changes: &mut Changes) -> Result<(), Problem> {
        let is_list = |name: &OsString| Path::new(name).file_name() == Some(OsStr::new(atlas_sum::LIST));
        let is_compared = |name: &OsString| skipped::is_sql(&name.to_string_lossy()) || is_list(name);
        let differing = ["diff", "--raw", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-abbrev"];
        let differing = self.fields(&[&differing[..], &["--ignore-submodules"]].concat())?;
        // A file that is only intended to be added has no content in the index.
        let (intended, held): (Vec<Named>, Vec<Named>) = changed_names(&differing)
            .into_iter()
            .filter(|named| is_compared(&named.name))
            .partition(|named| named.change == Some(Change::Added));
        let ids: Vec<&str> = held.iter().filter_map(|named| named.before.as_deref()).collect();
        let texts = self.git.blobs(&ids);
        let texts = texts.map_err(|message| self.problem(format!("git refused: {message}"), None))?;
        for (named, text) in held.iter().zip(texts) {
            let path = self.git.top.join(&named.name);
            let text = text.ok_or_else(|| {
                let why = "cannot be read from the index: it has conflicts, or the staged files are too large";
                Problem::new(
                    &path,
                    why,
                    Some("stage or stash the changes, so that the files on disk and in the index are equal"),
                )
            })?;
            changes.index.insert(identity(&path), Some(text));
        }
        let others = ["ls-files", "-z", "--others", "--exclude-standard", "--full-name"];
        let others = self.fields(&others)?.into_iter().filter(is_compared);
        for name in intended.into_iter().map(|named| named.name).chain(others) {
            changes.index.insert(identity(&self.git.top.join(name)), None);
        }
        Ok(())
    }

    /// The folders of submodules that are checked out.
    fn submodules(&self) -> Result<Vec<PathBuf>, Problem> {
        if !self.git.top.join(".gitmodules").is_file() {
            return Ok(Vec::new());
        }
        let entries = self.fields(&["ls-files", "--stage", "-z", "--full-name"])?;
        let names = entries.iter().filter_map(|entry| {
            let entry = bytes_of(entry);
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            entry.starts_with(SUBMODULE.as_bytes()).then(|| name_of(&entry[tab + 1..]))
        });
        let folders = names.map(|name| self.git.top.join(name));
        Ok(folders.filter(|folder| folder.join(".git").exists()).collect())
    }

    /// Files that were added, modified or deleted; a file that only got another description has not changed.
    fn changed(&self, what: &[&str], changes: &mut Changes) -> Result<(), Problem> {
        // Of a submodule only its commit counts: to ask for more would run git with the configuration in it.
        let mut arguments = vec!["diff", "--raw", "-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];
        arguments.extend(["--no-abbrev", "--find-renames", "--diff-filter=ACDMRT"]);
        arguments.extend(what);
        arguments.push("--");
        let is_sql = |name: &OsString| skipped::is_sql(&name.to_string_lossy());
        let mut edited = Vec::new();
        for Named { name, old, before, change, keeps_text, is_submodule } in changed_names(&self.fields(&arguments)?) {
            let is_file = !is_submodule && is_sql(&name);
            if let Some(old) = old.filter(|old| is_file && is_sql(old)) {
                let new = identity(&self.git.top.join(&name));
                changes.renamed.insert(identity(&self.git.top.join(&old)), new);
                edited.extend(before.map(|before| (old, before)));
            } else if is_file && change != Some(Change::Added) {
                edited.extend(before.map(|before| (name.clone(), before)));
            }
            let is_sql = is_sql(&name);
            let path = identity(&self.git.top.join(name));
            match change {
                _ if keeps_text => {}
                _ if is_submodule => drop(changes.submodules.insert(path)),
                Some(change) => drop(changes.files.insert(path, change)),
                None if is_sql => drop(changes.deleted.insert(path)),
                None => {}
            }
        }
        self.keep_before(edited, changes)
    }

    /// Files that the base branch has got since this one left it.
    fn added_to_base(&self, base: &str, tip: &str, changes: &mut Changes) -> Result<(), Problem> {
        let added = ["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", "--diff-filter=A"];
        let names = self.fields(&[&added[..], &["--ignore-submodules", base, tip, "--"]].concat())?;
        let files = names.into_iter().filter(|name| skipped::is_sql(&name.to_string_lossy()));
        let files = files.map(|name| self.git.top.join(name)).filter(|path| !path.exists());
        changes.only_in_base.extend(files.map(|path| identity(&path)));
        Ok(())
    }

    /// The texts of objects, for files by their names.
    fn keep_before(&self, objects: Vec<(OsString, String)>, changes: &mut Changes) -> Result<(), Problem> {
        changes.before.extend(self.texts_of(objects)?);
        Ok(())
    }

    /// The texts of objects, by the identities of files with these names.
    fn texts_of(&self, objects: Vec<(OsString, String)>) -> Result<Vec<(PathBuf, Vec<u8>)>, Problem> {
        let ids: Vec<&str> = objects.iter().map(|(_, id)| id.as_str()).collect();
        let texts = self.git.blobs(&ids);
        let texts = texts.map_err(|message| self.problem(format!("git refused: {message}"), None))?;
        let files = objects.iter().zip(texts);
        Ok(files.map(|((name, _), text)| (identity(&self.git.top.join(name)), text.unwrap_or_default())).collect())
    }

    /// The revision, and the commit where HEAD left it.
    fn base(&self, revision: &str) -> Result<Base, Problem> {
        let commit = format!("{revision}^{{commit}}");
        let known = if revision.starts_with('-') {
            Err(String::new())
        } else {
            self.git.line(&["rev-parse", "--verify", "--quiet", &commit])
        };
        let Ok(commit) = known else {
            let help = if self.is_shallow() {
                "this is a shallow clone: fetch the revision first (`git fetch --unshallow`; `fetch-depth: 0` for \
                 actions/checkout; `GIT_DEPTH: 0` in GitLab)"
            } else {
                "name a branch, tag or commit that `git log` knows, such as origin/main"
            };
            return Err(self.problem(format!("has no revision `{revision}` in its repository"), Some(help)));
        };
        if let Ok(base) = self.git.line(&["merge-base", &commit, "HEAD"]) {
            return Ok(Base { tip: commit, base });
        }
        let help = if self.is_shallow() {
            "this is a shallow clone: fetch the history first (`git fetch --unshallow`; `fetch-depth: 0` for \
             actions/checkout; `GIT_DEPTH: 0` in GitLab)"
        } else {
            "compare with a branch from which this branch was created"
        };
        Err(self.problem(format!("has no commit in common with `{revision}`"), Some(help)))
    }

    fn is_shallow(&self) -> bool {
        self.git.line(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true")
    }
}

/// A branch that this one comes from.
struct Base {
    tip: String,
    /// The last commit that both have.
    base: String,
}

/// A name as git prints it.
#[cfg(unix)]
fn name_of(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).to_owned()
}

#[cfg(unix)]
fn bytes_of(name: &OsStr) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    name.as_bytes()
}

#[cfg(not(unix))]
fn bytes_of(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}

#[cfg(not(unix))]
fn name_of(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// A change of a name relative to the root of the repository.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    name: OsString,
    /// The name that it had, if that was another one.
    old: Option<OsString>,
    /// The object with the text that it had.
    before: Option<String>,
    /// `None` if it is no longer there.
    change: Option<Change>,
    /// Whether nothing but a description in its name has changed.
    keeps_text: bool,
    is_submodule: bool,
}

/// Git's mode of a submodule.
const SUBMODULE: &str = "160000";

/// The names in the fields of `git diff --raw -z`: `:100644 100644 ID ID M`, and a name, or two names for a rename. A file
/// that was moved to another folder, or to another version, is new, and its old name is deleted.
fn changed_names(fields: &[OsString]) -> Vec<Named> {
    let mut names = Vec::new();
    let mut fields = fields.iter();
    while let Some(entry) = fields.next() {
        let entry = entry.to_string_lossy();
        let mut parts = entry.trim_start_matches(':').split(' ');
        let (old_mode, mode) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let before = parts.next().unwrap_or_default();
        let status = parts.next_back().unwrap_or_default();
        let copied = if status.starts_with(['R', 'C']) { fields.next() } else { None };
        let Some(name) = fields.next() else { break };
        let old = copied.filter(|_| status.starts_with('R'));
        let stays = old.is_some_and(|old| {
            let (old, new) = (Path::new(old), Path::new(name));
            old.parent() == new.parent() && version(old) == version(new)
        });
        let change = match status.as_bytes().first() {
            Some(b'D') => None,
            Some(b'R') if stays => Some(Change::Modified),
            Some(b'A' | b'C' | b'R') => Some(Change::Added),
            _ => Some(Change::Modified),
        };
        let (before, keeps_text) = (Some(before.to_owned()), stays && status == "R100");
        if let Some(old) = old.filter(|_| !stays) {
            let gone =
                Named { name: old.clone(), old: None, before: None, change: None, keeps_text, is_submodule: false };
            names.push(gone);
        }
        let is_submodule = mode == SUBMODULE || (change.is_none() && old_mode == SUBMODULE);
        names.push(Named { name: name.clone(), old: old.cloned(), change, before, keeps_text, is_submodule });
    }
    names
}

/// The part of a name before its description, which tools order migrations by: `V1_2` of `V1_2__users.sql`.
pub(crate) fn version(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some((version, _)) = name.split_once("__") {
        return version.to_owned();
    }
    let digits = name.trim_start_matches(['v', 'V']);
    let end =
        digits.find(|one: char| !(one.is_ascii_digit() || matches!(one, '.' | '-' | '_'))).unwrap_or(digits.len());
    digits[..end].trim_end_matches(['.', '-', '_']).to_owned()
}

impl std::fmt::Display for ChangeSelection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Since(revision) => write!(f, "changed since {}", display(Path::new(revision))),
            Self::Staged => f.write_str("staged"),
            Self::Uncommitted => f.write_str("not committed"),
        }
    }
}

#[cfg(test)]
mod tests;
