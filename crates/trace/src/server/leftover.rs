//! Cleanup after runs that were killed.

use super::copier;
use super::copy::PREFIX as COPY_PREFIX;
use super::folder::{COPIED, OWNER, PREFIX, SERVER, parent};
use crate::Error;
use rustix::process::{Pid, Signal, test_kill_process};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

/// Timeout for stopping a forgotten server, or its copier.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Leftovers of runs that were killed: those that are removed now, and why the others are not.
#[derive(Debug, Default)]
pub struct Leftovers {
    pub removed: Vec<PathBuf>,
    pub kept: Vec<Error>,
}

/// Stops private servers and copies whose owner has died, and removes their folders.
pub fn remove_leftovers() -> Leftovers {
    remove_leftovers_in(&parent())
}

fn remove_leftovers_in(parent: &Path) -> Leftovers {
    let mut leftovers = Leftovers::default();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for folder in entries.map(|entry| entry.path()).filter(|folder| is_forgotten(folder)) {
        match remove(&folder) {
            Ok(()) => leftovers.removed.push(folder),
            Err(why) => leftovers.kept.push(kept(&folder, &why)),
        }
    }
    leftovers
}

fn kept(folder: &Path, why: &io::Error) -> Error {
    Error::new(format!("cannot remove `{}`, which a killed run left behind: {why}", folder.display()))
        .help("run it as the user who ran the trace, or end what uses the folder and remove it")
}

fn is_forgotten(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(PREFIX) && is_ours(folder) && pid_in(&folder.join(OWNER)).is_some_and(|owner| !is_alive(owner))
}

/// Whether we have made the folder, and nobody else can write to it: anyone can make one with such a name.
fn is_ours(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
    })
}

fn remove(folder: &Path) -> io::Result<()> {
    copier::end(folder, STOP_LIMIT)?;
    copier::end_locker(&folder.join(SERVER), Signal::QUIT, "server", STOP_LIMIT)?;
    // Copied data are elsewhere.
    if let Ok(copied) = fs::read_link(folder.join(COPIED))
        && let Ok(metadata) = fs::symlink_metadata(&copied)
    {
        let cannot = |why: &str| io::Error::other(format!("its data in `{}`: {why}", copied.display()));
        let name = copied.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !metadata.is_dir() || !name.starts_with(COPY_PREFIX) {
            return Err(cannot("they are not a copy of pgvet"));
        }
        remove_all(&copied).map_err(|error| cannot(&error.to_string()))?;
    }
    remove_all(folder)
}

/// Removes a folder. An `initdb` whose parent was killed writes to it for a moment longer.
fn remove_all(folder: &Path) -> io::Result<()> {
    let asked = Instant::now();
    loop {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && asked.elapsed() < STOP_LIMIT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            removed => return removed,
        }
    }
}

/// The number on the first line of a file. What ran as the same user may have put something else there: a number below 1
/// means many processes, and a pipe would be waited for.
pub(super) fn pid_in(file: &Path) -> Option<Pid> {
    let is_file = fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
    let text = is_file.then(|| fs::read_to_string(file).ok())??;
    let number = text.lines().next()?.trim().parse::<i32>().ok()?;
    if number > 0 { Pid::from_raw(number) } else { None }
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
        let data = parent.path().join(format!("{COPY_PREFIX}1"));
        fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, folder.path().join(COPIED)).unwrap();
        remove(folder.path()).unwrap();
        assert!(!data.exists() && !folder.path().exists());
        let folder = folder_of(1);
        std::os::unix::fs::symlink(&data, folder.path().join(COPIED)).unwrap();
        remove(folder.path()).unwrap();
        assert!(!folder.path().exists(), "what is gone already is no obstacle");
    }

    #[test]
    fn what_cannot_be_removed_is_reported_with_the_reason() {
        let parent = tempfile::tempdir().unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let [good, bad] = ["good", "bad"].map(|name| parent.path().join(format!("{PREFIX}{name}")));
        for folder in [&good, &bad] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("owner.pid"), dead.id().to_string()).unwrap();
        }
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, bad.join(COPIED)).unwrap();
        let Leftovers { removed, kept } = remove_leftovers_in(parent.path());
        assert_eq!(removed, [good]);
        let said: Vec<&str> = kept.iter().map(|error| error.message.as_str()).collect();
        assert!(said.len() == 1 && said[0].contains(&bad.display().to_string()), "{said:?}");
        assert!(said[0].contains(&file.display().to_string()), "{said:?}");
    }

    #[test]
    fn nothing_goes_that_a_folder_of_ours_does_not_own() {
        let precious = tempfile::tempdir().unwrap();
        let folder = folder_of(1);
        std::os::unix::fs::symlink(precious.path(), folder.path().join(COPIED)).unwrap();
        assert!(remove(folder.path()).unwrap_err().to_string().contains("not a copy of pgvet"));
        let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let folder = folder_of(1);
        for file in [SERVER, "postmaster.pid", "copier.pid"] {
            fs::write(folder.path().join(file), other.id().to_string()).unwrap();
        }
        remove(folder.path()).unwrap();
        assert!(other.try_wait().unwrap().is_none() && precious.path().exists());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_ours() {
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let folder = folder_of(dead.id());
        assert!(is_forgotten(folder.path()));
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(!is_forgotten(folder.path()));
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        // Only the superuser can give a folder away.
        if std::os::unix::fs::chown(folder.path(), Some(65534), None).is_ok() {
            assert!(!is_forgotten(folder.path()));
        }
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(folder_of(dead.id()).path(), &link).unwrap();
        assert!(!is_forgotten(&link));
    }

    #[test]
    fn what_is_no_number_of_a_process_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("owner.pid");
        for (text, number) in
            [("7\nx", Some(7)), ("-1", None), ("0", None), ("-9", None), ("99999999999", None), ("", None)]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(pid_in(&file).map(|pid| pid.as_raw_nonzero().get()), number, "{text}");
        }
        fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        assert_eq!(pid_in(&file), None);
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
