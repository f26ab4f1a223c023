//! What this branch has committed since it left its base branch, for changes that are compared with its last commit.

use super::{Change, Changes, Named, Repository, changed_names};
use crate::identity::identity;
use crate::problem::Problem;
use crate::skipped;
use pgvet_model::incident::Applied;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The branches whose migrations are treated as applied: the first one that exists is the base branch.
const BASES: [&str; 5] = [
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
];

/// Commits of branches since they left their base branches.
#[derive(Debug, Default)]
pub(super) struct Committed {
    /// The top of each repository, and whether it has a base branch.
    repositories: BTreeMap<PathBuf, bool>,
    /// Files with SQL that the base branch lacks.
    own: BTreeSet<PathBuf>,
    /// The texts of the base branch for files with SQL that commits have changed or deleted.
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Committed {
    /// Which databases have applied a file of the last commit.
    pub(super) fn applied(&self, identity: &Path) -> Applied {
        let around = self.repositories.iter().filter(|(top, _)| identity.starts_with(top));
        let nearest = around.max_by_key(|(top, _)| top.as_os_str().len());
        let has_base = nearest.is_some_and(|(_, has_base)| *has_base);
        if has_base && !self.own.contains(identity) { Applied::InBase } else { Applied::Committed }
    }

    /// The text of the base branch for a file that commits have changed or deleted.
    pub(super) fn before(&self, identity: &Path) -> Option<&Vec<u8>> {
        self.before.get(identity)
    }
}

impl Repository {
    /// Notes what the branch has committed.
    pub(super) fn committed(&self, changes: &mut Changes) -> Result<(), Problem> {
        let base = BASES.iter().find_map(|name| {
            let commit = self.git.line(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).ok()?;
            self.git.line(&["merge-base", &commit, "HEAD"]).ok()
        });
        changes.committed.repositories.insert(identity(&self.git.top), base.is_some());
        let Some(base) = base else { return Ok(()) };
        let compared = ["diff", "--raw", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-abbrev"];
        let fields = self.fields(&[&compared[..], &["--ignore-submodules", &base, "HEAD", "--"]].concat())?;
        let is_sql = |named: &Named| skipped::is_sql(&named.name.to_string_lossy());
        let (own, changed): (Vec<Named>, Vec<Named>) =
            changed_names(&fields).into_iter().filter(is_sql).partition(|named| named.change == Some(Change::Added));
        let path = |name: &OsString| identity(&self.git.top.join(name));
        changes.committed.own.extend(own.iter().map(|named| path(&named.name)));
        let objects = changed.into_iter().filter_map(|named| Some((named.name, named.before?)));
        changes.committed.before.extend(self.texts_of(objects.collect())?);
        Ok(())
    }
}
