//! Paths as a forge knows them: from the top of the repository, wherever pgvet is started.

use super::relative_path;
use pgvet_workspace::ProjectFile;
use std::cell::RefCell;
use std::collections::HashMap;

/// Paths of files, each searched for once.
#[derive(Debug, Default)]
pub(super) struct RepositoryPaths(RefCell<HashMap<String, String>>);

impl RepositoryPaths {
    /// Returns the path from the top of the repository; from the current folder if there is no repository.
    pub(super) fn of(&self, file: &ProjectFile) -> String {
        let named = file.named();
        if let Some(known) = self.0.borrow().get(named) {
            return known.clone();
        }
        let path = file.repository_path().unwrap_or_else(|| relative_path(named));
        self.0.borrow_mut().insert(named.to_owned(), path.clone());
        path
    }
}
