//! What runs that were killed have left behind.

use super::folder::{PREFIX, parent};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So long may a forgotten server take to end.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Stops private servers whose owner has died and removes their folders; returns those folders.
pub fn remove_leftovers() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent()) else { return Vec::new() };
    let folders = entries.flatten().map(|entry| entry.path());
    let forgotten = folders.filter(|folder| is_forgotten(folder));
    forgotten.filter(|folder| remove(folder).is_ok()).collect()
}

fn is_forgotten(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(PREFIX) && pid_in(&folder.join("owner.pid")).is_some_and(|owner| !is_alive(owner))
}

fn remove(folder: &Path) -> std::io::Result<()> {
    if let Some(server) = pid_in(&folder.join("data/postmaster.pid")) {
        let _ = kill_process(server, Signal::QUIT);
        let asked = Instant::now();
        while is_alive(server) && asked.elapsed() < STOP_LIMIT {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // Copied data are elsewhere.
    if let Ok(copied) = fs::read_link(folder.join("data"))
        && copied.exists()
    {
        fs::remove_dir_all(copied)?;
    }
    fs::remove_dir_all(folder)
}

/// The number on the first line of a file.
fn pid_in(file: &Path) -> Option<Pid> {
    let text = fs::read_to_string(file).ok()?;
    Pid::from_raw(text.lines().next()?.trim().parse().ok()?)
}

/// A process of another user is alive, too.
fn is_alive(pid: Pid) -> bool {
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(owner: u32) -> tempfile::TempDir {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap();
        fs::write(folder.path().join("owner.pid"), owner.to_string()).unwrap();
        folder
    }

    #[test]
    fn copied_data_go_with_the_folder_that_links_to_them() {
        let folder = folder_of(1);
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("data");
        fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, folder.path().join("data")).unwrap();
        remove(folder.path()).unwrap();
        assert!(!data.exists() && !folder.path().exists());
        let folder = folder_of(1);
        std::os::unix::fs::symlink(&data, folder.path().join("data")).unwrap();
        remove(folder.path()).unwrap();
        assert!(!folder.path().exists(), "what is gone already is no obstacle");
    }

    #[test]
    fn only_folders_without_a_living_owner_are_forgotten() {
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        assert!(is_forgotten(folder_of(dead.id()).path()));
        assert!(!is_forgotten(folder_of(std::process::id()).path()));
        assert!(!is_forgotten(tempfile::tempdir().unwrap().path()));
    }
}
