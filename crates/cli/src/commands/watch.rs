//! `pgvet check --watch`: another check after each change.

use crate::error::Failure;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use pgvet_workspace::Project;
use pgvet_workspace::config::STATISTICS_NAME;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// An editor or git changes several files at once; a check waits until nothing has changed for this time.
const QUIET: Duration = Duration::from_millis(150);

/// Extensions of migrations, configuration, and lists of migration tools.
const READ: [&str; 6] = ["sql", "toml", "plan", "xml", "yaml", "yml"];
/// Files in JSON that a run reads.
const READ_JSON: [&str; 3] = ["pgvet-baseline.json", STATISTICS_NAME, "_journal.json"];

/// Waits for changes of what a run has read.
pub(super) struct Watch {
    watcher: RecommendedWatcher,
    changes: Receiver<notify::Result<Event>>,
    folders: BTreeSet<PathBuf>,
}

impl Watch {
    pub(super) fn new() -> Result<Self, Failure> {
        let (sender, changes) = channel();
        let watcher = notify::recommended_watcher(sender).map_err(|error| failure(&error))?;
        Ok(Self { watcher, changes, folders: BTreeSet::new() })
    }

    /// Watches the folders of a project, in place of those before.
    pub(super) fn follow(&mut self, project: &Project, asked: &[PathBuf]) -> Result<(), Failure> {
        let folders = folders(project, asked);
        for gone in self.folders.difference(&folders) {
            // A folder that was deleted is not watched any more.
            let _ = self.watcher.unwatch(gone);
        }
        for new in folders.difference(&self.folders) {
            self.watcher.watch(new, RecursiveMode::NonRecursive).map_err(|error| failure(&error))?;
        }
        self.folders = folders;
        Ok(())
    }

    /// Returns after a file that a run may read has changed.
    pub(super) fn wait(&self) -> Result<(), Failure> {
        loop {
            let change = self.changes.recv().map_err(|_| Failure::new("changes of files are no longer reported"))?;
            if change.is_ok_and(|event| matters(&event)) {
                break;
            }
        }
        loop {
            match self.changes.recv_timeout(QUIET) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new("changes of files are no longer reported"));
                }
            }
        }
    }
}

fn failure(error: &notify::Error) -> Failure {
    Failure::new(format!("cannot watch files: {error}"))
}

/// Whether a run could say something else after it: a read changes nothing, and neither do files of other kinds.
fn matters(event: &Event) -> bool {
    let is_read = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let extension = path.extension().and_then(|extension| extension.to_str());
        // A folder has none. Reports are JSON, too.
        READ_JSON.contains(&&*name) || extension.is_none_or(|extension| READ.contains(&extension))
    };
    !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(is_read)
}

/// The folders with files of the run, and those around them, in which new ones appear.
fn folders(project: &Project, asked: &[PathBuf]) -> BTreeSet<PathBuf> {
    let of_file = |path: &Path| path.parent().map(Path::to_path_buf);
    let mut folders = BTreeSet::new();
    for file in &project.files {
        let own = of_file(&file.path);
        // A migration may be a folder, beside which the next one will be.
        folders.extend(own.as_deref().and_then(of_file));
        folders.extend(own);
        folders.extend(file.config.files.iter().filter_map(|config| of_file(config)));
    }
    folders.extend(asked.iter().filter(|path| path.is_dir()).cloned());
    let named = |folder: PathBuf| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    folders.into_iter().map(named).filter(|folder| folder.is_dir()).collect()
}
