//! What git says has changed. It is asked on its command line.

use crate::discovery::{Problem, display};
use crate::identity::identity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

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
pub(crate) struct Changes(BTreeMap<PathBuf, Change>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
}

impl Changes {
    /// What happened to the file; `None`: nothing.
    pub(crate) fn of(&self, identity: &Path) -> Option<Change> {
        self.0.get(identity).copied()
    }
}

pub(crate) fn changes(selection: &ChangeSelection, folder: &Path) -> Result<Changes, Problem> {
    let git = Git { folder };
    let top = git.top()?;
    let mut names = match selection {
        ChangeSelection::Since(revision) => {
            let base = git.merge_base(revision)?;
            git.changed(&[&base])?
        }
        ChangeSelection::Staged => git.changed(&["--cached"])?,
        // Before the first commit there is no HEAD, and everything is new.
        ChangeSelection::Uncommitted if git.run(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() => {
            git.added(&["ls-files", "-z", "--full-name", ":/"])?
        }
        ChangeSelection::Uncommitted => git.changed(&["HEAD"])?,
    };
    if *selection != ChangeSelection::Staged {
        names.extend(git.added(&["ls-files", "-z", "--others", "--exclude-standard", "--full-name", ":/"])?);
    }
    Ok(Changes(names.into_iter().map(|(name, change)| (identity(&top.join(name)), change)).collect()))
}

struct Git<'a> {
    folder: &'a Path,
}

impl Git<'_> {
    fn problem(&self, message: impl Into<String>, help: Option<&str>) -> Problem {
        Problem::new(self.folder, message, help)
    }

    /// The output of a git command, or its message.
    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("git").arg("-C").arg(self.folder).args(arguments).output();
        let output = output.map_err(|error| format!("git cannot be run: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        Err(message.trim().trim_start_matches("fatal: ").to_owned())
    }

    fn top(&self) -> Result<PathBuf, Problem> {
        let top = self
            .run(&["rev-parse", "--show-toplevel"])
            .map_err(|message| self.problem(format!("is in no git repository that can be read: {message}"), None))?;
        Ok(PathBuf::from(top.trim_end_matches(['\n', '\r'])))
    }

    /// Names relative to the top of the repository, from output that ends each in NUL.
    fn names(&self, arguments: &[&str]) -> Result<Vec<String>, Problem> {
        let output = self.run(arguments).map_err(|message| self.problem(format!("git refused: {message}"), None))?;
        Ok(output.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    fn added(&self, arguments: &[&str]) -> Result<Vec<(String, Change)>, Problem> {
        Ok(self.names(arguments)?.into_iter().map(|name| (name, Change::Added)).collect())
    }

    /// Files that were added or modified; a file that was only renamed has not changed.
    fn changed(&self, what: &[&str]) -> Result<Vec<(String, Change)>, Problem> {
        let mut arguments = vec!["diff", "--name-status", "-z", "--find-renames", "--diff-filter=ACMRT"];
        arguments.extend(what);
        arguments.push("--");
        Ok(added_or_modified(&self.names(&arguments)?))
    }

    /// The commit where HEAD left the revision.
    fn merge_base(&self, revision: &str) -> Result<String, Problem> {
        let commit = format!("{revision}^{{commit}}");
        if revision.starts_with('-') || self.run(&["rev-parse", "--verify", "--quiet", &commit]).is_err() {
            let help = if self.is_shallow() {
                "this is a shallow clone: fetch the revision first (`git fetch --unshallow`; `fetch-depth: 0` for \
                 actions/checkout; `GIT_DEPTH: 0` in GitLab)"
            } else {
                "name a branch, tag or commit that `git log` knows, such as origin/main"
            };
            return Err(self.problem(format!("has no revision `{revision}` in its repository"), Some(help)));
        }
        if let Ok(base) = self.run(&["merge-base", revision, "HEAD"]) {
            return Ok(base.trim().to_owned());
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
        self.run(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer.trim() == "true")
    }
}

/// The new names in the fields of `git diff --name-status -z`: a status and a name, or two names for a rename.
fn added_or_modified(fields: &[String]) -> Vec<(String, Change)> {
    let mut names = Vec::new();
    let mut fields = fields.iter();
    while let Some(status) = fields.next() {
        if status.starts_with(['R', 'C']) {
            fields.next();
        }
        let Some(name) = fields.next() else { break };
        if status != "R100" {
            let change = if status.starts_with(['A', 'C']) { Change::Added } else { Change::Modified };
            names.push((name.clone(), change));
        }
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
mod tests {
    use super::*;
    use std::fs;

    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Self {
            let repository = Self(tempfile::tempdir().unwrap());
            repository.git(&["init", "-q", "-b", "main"]);
            repository
        }

        fn git(&self, arguments: &[&str]) {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"];
            let output =
                Command::new("git").arg("-C").arg(self.0.path()).args(identity).args(arguments).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn commit(&self) {
            self.git(&["add", "-A"]);
            self.git(&["commit", "-q", "-m", "x"]);
        }

        fn changed(&self, selection: &ChangeSelection) -> Vec<String> {
            let changes = changes(selection, self.0.path()).unwrap();
            let root = identity(self.0.path());
            changes.0.keys().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
        }
    }

    #[test]
    fn each_selection_sees_its_changes() {
        let repository = Repository::new();
        repository.write("1.sql", "SELECT 1; -- the first\n");
        assert_eq!(repository.changed(&ChangeSelection::Uncommitted), ["1.sql"]);
        repository.commit();
        repository.git(&["checkout", "-q", "-b", "work"]);
        repository.write("2 é.sql", "SELECT 2;\n");
        repository.git(&["mv", "1.sql", "0.sql"]);
        repository.commit();
        repository.write("3.sql", "SELECT 3;\n");
        repository.git(&["add", "3.sql"]);
        repository.write("4.sql", "SELECT 4;\n");
        assert_eq!(repository.changed(&ChangeSelection::Staged), ["3.sql"]);
        assert_eq!(repository.changed(&ChangeSelection::Uncommitted), ["3.sql", "4.sql"]);
        let since = ChangeSelection::Since("main".to_owned());
        assert_eq!(repository.changed(&since), ["2 é.sql", "3.sql", "4.sql"]);
    }

    #[test]
    fn what_others_did_on_the_base_does_not_count() {
        let repository = Repository::new();
        repository.write("1.sql", "SELECT 1;");
        repository.commit();
        repository.git(&["checkout", "-q", "-b", "work"]);
        repository.write("3.sql", "SELECT 3;");
        repository.commit();
        repository.git(&["checkout", "-q", "main"]);
        repository.write("1.sql", "SELECT 10;");
        repository.commit();
        repository.git(&["checkout", "-q", "work"]);
        assert_eq!(repository.changed(&ChangeSelection::Since("main".to_owned())), ["3.sql"]);
    }

    #[test]
    fn an_unknown_revision_and_a_shallow_clone_are_told() {
        let repository = Repository::new();
        repository.write("1.sql", "SELECT 1;");
        repository.commit();
        repository.write("1.sql", "SELECT 2;");
        repository.commit();
        let error =
            |folder: &Path, revision: &str| changes(&ChangeSelection::Since(revision.to_owned()), folder).unwrap_err();
        let unknown = error(repository.0.path(), "nothing");
        assert!(unknown.message.contains("has no revision `nothing`"), "{unknown:?}");
        let clone = tempfile::tempdir().unwrap();
        let url = format!("file://{}", repository.0.path().display());
        let target = clone.path().join("c").display().to_string();
        repository.git(&["clone", "-q", "--depth", "1", &url, &target]);
        let shallow = error(&clone.path().join("c"), "HEAD~1");
        assert!(shallow.help.unwrap().contains("shallow clone"));
        let outside = changes(&ChangeSelection::Staged, clone.path()).unwrap_err();
        assert!(outside.message.contains("is in no git repository"), "{outside:?}");
    }

    #[test]
    fn renames_have_two_names() {
        let fields = ["A", "a", "R100", "b", "c", "R090", "d", "e", "M", "f"].map(str::to_owned);
        let names: Vec<String> = added_or_modified(&fields).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "e", "f"]);
    }
}
