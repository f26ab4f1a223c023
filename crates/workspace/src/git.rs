//! What git says has changed. It is asked on its command line.

mod command;

use crate::discovery::{Problem, display};
use crate::identity::identity;
use command::Git;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Which changes count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeSelection {
    /// Since the branch left this revision, committed or not.
    Since(String),
    /// What the next commit holds.
    Staged,
    /// What is not committed, files that git does not know yet included.
    Uncommitted,
}

/// Files that were added, or whose text was changed, by their [`identity`].
#[derive(Debug, Default)]
pub(crate) struct Changes {
    files: BTreeMap<PathBuf, Change>,
    /// Submodules that have got another commit: whatever is in them may have changed.
    submodules: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
}

impl Changes {
    /// What happened to the file; `None`: nothing.
    pub(crate) fn of(&self, identity: &Path) -> Option<Change> {
        let in_submodule = || self.submodules.iter().any(|folder| identity.starts_with(folder));
        self.files.get(identity).copied().or_else(|| in_submodule().then_some(Change::Modified))
    }
}

/// What has changed in the repositories around these folders.
pub(crate) fn changes(selection: &ChangeSelection, folders: &BTreeSet<PathBuf>) -> Result<Changes, Problem> {
    let mut repositories: Vec<Repository> = Vec::new();
    for folder in folders {
        let repository = Repository { git: Git::around(folder)?, folder };
        if repositories.iter().all(|known| known.git.top != repository.git.top) {
            repositories.push(repository);
        }
    }
    let mut changes = Changes::default();
    for repository in repositories {
        repository.look(selection, &mut changes)?;
    }
    Ok(changes)
}

struct Repository<'a> {
    git: Git,
    folder: &'a Path,
}

impl Repository<'_> {
    fn look(&self, selection: &ChangeSelection, changes: &mut Changes) -> Result<(), Problem> {
        match selection {
            ChangeSelection::Since(revision) => {
                let base = self.merge_base(revision)?;
                self.changed(&[&base], changes)?;
            }
            ChangeSelection::Staged => self.changed(&["--cached"], changes)?,
            // Before the first commit there is no HEAD, and everything is new.
            ChangeSelection::Uncommitted if self.git.run(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() => {
                self.added(&["ls-files", "-z", "--full-name"], changes)?;
            }
            ChangeSelection::Uncommitted => self.changed(&["HEAD"], changes)?,
        }
        if *selection != ChangeSelection::Staged {
            self.added(&["ls-files", "-z", "--others", "--exclude-standard", "--full-name"], changes)?;
        }
        Ok(())
    }

    fn problem(&self, message: impl Into<String>, help: Option<&str>) -> Problem {
        Problem::new(self.folder, message, help)
    }

    /// Fields of output that ends each in NUL.
    fn fields(&self, arguments: &[&str]) -> Result<Vec<OsString>, Problem> {
        let output =
            self.git.run(arguments).map_err(|message| self.problem(format!("git refused: {message}"), None))?;
        Ok(output.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(name_of).collect())
    }

    fn added(&self, arguments: &[&str], changes: &mut Changes) -> Result<(), Problem> {
        for name in self.fields(arguments)? {
            changes.files.insert(identity(&self.git.top.join(name)), Change::Added);
        }
        Ok(())
    }

    /// Files that were added or modified; a file that only got another name in its folder has not changed.
    fn changed(&self, what: &[&str], changes: &mut Changes) -> Result<(), Problem> {
        // Of a submodule only its commit counts: to ask for more would run git with the configuration in it.
        let mut arguments = vec!["diff", "--raw", "-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];
        arguments.extend(["--find-renames", "--diff-filter=ACMRT"]);
        arguments.extend(what);
        arguments.push("--");
        for Named { name, change, is_submodule } in added_or_modified(&self.fields(&arguments)?) {
            let path = identity(&self.git.top.join(name));
            if is_submodule {
                changes.submodules.insert(path);
            } else {
                changes.files.insert(path, change);
            }
        }
        Ok(())
    }

    /// The commit where HEAD left the revision.
    fn merge_base(&self, revision: &str) -> Result<String, Problem> {
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
            return Ok(base);
        }
        let help = if self.is_shallow() {
            "this is a shallow clone: fetch the history first (`git fetch --unshallow`; `fetch-depth: 0` for \
             actions/checkout; `GIT_DEPTH: 0` in GitLab)"
        } else {
            "compare with a branch that this one comes from"
        };
        Err(self.problem(format!("has no commit in common with `{revision}`"), Some(help)))
    }

    fn is_shallow(&self) -> bool {
        self.git.line(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true")
    }
}

/// A name as git prints it.
#[cfg(unix)]
fn name_of(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).to_owned()
}

#[cfg(not(unix))]
fn name_of(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// A change of a name relative to the top of the repository.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    name: OsString,
    change: Change,
    is_submodule: bool,
}

/// What git calls the mode of a submodule.
const SUBMODULE: &str = "160000";

/// The new names in the fields of `git diff --raw -z`: `:100644 100644 ID ID M`, and a name, or two names for a rename.
fn added_or_modified(fields: &[OsString]) -> Vec<Named> {
    let mut names = Vec::new();
    let mut fields = fields.iter();
    while let Some(entry) = fields.next() {
        let entry = entry.to_string_lossy();
        let mut parts = entry.split(' ');
        let (mode, status) = (parts.nth(1).unwrap_or_default(), parts.next_back().unwrap_or_default());
        let old = if status.starts_with(['R', 'C']) { fields.next() } else { None };
        let Some(name) = fields.next() else { break };
        let is_in_folder_of = |old: &OsString| Path::new(old).parent() == Path::new(name).parent();
        let is_moved = status.starts_with('R') && !old.is_some_and(is_in_folder_of);
        if status == "R100" && !is_moved {
            continue;
        }
        let change = if is_moved || status.starts_with(['A', 'C']) { Change::Added } else { Change::Modified };
        names.push(Named { name: name.clone(), change, is_submodule: mode == SUBMODULE });
    }
    names
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
