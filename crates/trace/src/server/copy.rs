//! A copy of a data directory, beside the original, for only there can both share blocks.

use super::copier;
use super::folder::{COPIED, Folder};
use crate::Error;
use std::fs;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// Copies begin with this.
pub(super) const PREFIX: &str = ".pgvet-data-";

/// Files that belong to the original and its surroundings: who runs it, whom it follows, and settings that name other
/// folders and servers.
const OF_ORIGINAL: [&str; 5] =
    ["postmaster.pid", "postmaster.opts", "standby.signal", "recovery.signal", "postgresql.auto.conf"];
/// The folder of slots, which would keep log for subscribers that the copy does not have.
const SLOTS: &str = "pg_replslot";

/// A copied data directory, and the folder of the server that is to run on it. Both go away with this value.
#[derive(Debug)]
pub(crate) struct CopiedData {
    pub(super) data: TempDir,
    /// It links to the data before there are any, so that also an unfinished copy of a killed run is found.
    pub(super) folder: Folder,
    /// It shares its blocks with the original until they change.
    pub(crate) thin: bool,
}

/// Whether files may disappear while they are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    Still,
    Changing,
}

impl CopiedData {
    /// A copy of files that nobody changes.
    pub(crate) async fn new(original: &Path) -> Result<Self, Error> {
        Self::copied(original, Files::Still).await
    }

    /// A copy of the files of a server in backup mode, which [`CopiedData::complete`] makes whole.
    pub(crate) async fn of_running(original: &Path) -> Result<Self, Error> {
        Self::copied(original, Files::Changing).await
    }

    async fn copied(original: &Path, files: Files) -> Result<Self, Error> {
        let cannot = |what: &str| cannot_copy(original, what);
        let beside = original.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned()));
        let beside = beside.ok_or_else(|| cannot("it has no parent folder"))?;
        let folder = Folder::create()?;
        let data = tempfile::Builder::new().prefix(PREFIX).tempdir_in(beside);
        let data = data.map_err(|error| cannot(&error.to_string()))?;
        for link in [folder.outer().join(COPIED), folder.path().join("data")] {
            std::os::unix::fs::symlink(data.path(), link).map_err(|error| cannot(&error.to_string()))?;
        }
        let mut copied = Self { data, folder, thin: false };
        copied.thin = copied.copy(original, "", "--reflink=always", files).await.is_ok();
        if !copied.thin {
            copied.copy_as_can_be(original, "", files).await.map_err(|said| cannot(&said))?;
        }
        for name in OF_ORIGINAL {
            let _ = fs::remove_file(copied.data.path().join(name));
        }
        for slot in fs::read_dir(copied.data.path().join(SLOTS)).into_iter().flatten().flatten() {
            let _ = fs::remove_dir_all(slot.path());
        }
        Ok(copied)
    }

    /// The data themselves.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Adds what the end of the backup says, and the write-ahead log up to there.
    pub(crate) async fn complete(&self, original: &Path, label: &str) -> Result<(), Error> {
        let cannot = |what: &str| cannot_copy(original, what);
        self.copy_as_can_be(original, "pg_wal", Files::Changing).await.map_err(|said| cannot(&said))?;
        fs::write(self.data.path().join("backup_label"), label).map_err(|error| cannot(&error.to_string()))
    }

    /// Copies a part of the original, sharing blocks where it can: with the option of GNU, else with that of macOS.
    async fn copy_as_can_be(&self, original: &Path, part: &str, files: Files) -> Result<(), String> {
        let Err(said) = self.copy(original, part, "--reflink=auto", files).await else { return Ok(()) };
        self.copy(original, part, "-c", files).await.map_err(|_| said)
    }

    /// `cp`, which knows how to share blocks.
    async fn copy(&self, original: &Path, part: &str, how: &str, files: Files) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("cannot run `cp`: {error}");
        let mut command = Command::new("sh");
        command.env("LC_ALL", "C").args(["-c", copier::RUN, "cp", "-R", "-p", how]);
        command.arg(original.join(part).join(".")).arg(self.data.path().join(part));
        command.stdin(copier::file(self.folder.outer()).map_err(cannot)?).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().map_err(cannot)?);
        let mut said = Vec::new();
        if let Some(mut errors) = running.0.stderr.take() {
            errors.read_to_end(&mut said).await.map_err(cannot)?;
        }
        let status = running.0.wait().await.map_err(cannot)?;
        outcome(status, String::from_utf8_lossy(&said).trim(), files)
    }

    /// Makes the copy the data of its server: owned by its user, with configuration of its own, because the original's
    /// may be elsewhere, name other folders, and ask for passwords.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        let cannot = |error: std::io::Error| Error::new(format!("cannot prepare the copied data: {error}"));
        self.folder.own(self.data.path())?;
        for (name, text) in [("postgresql.conf", ""), ("pg_hba.conf", "local all all trust\n"), ("pg_ident.conf", "")] {
            let file = self.folder.path().join(name);
            fs::write(&file, text).map_err(cannot)?;
            self.folder.own(&file)?;
        }
        Ok(())
    }
}

fn cannot_copy(original: &Path, what: &str) -> Error {
    Error::new(format!("cannot copy `{}`: {what}", original.display()))
}

/// A `cp` that runs. It writes nothing any more when this value is gone.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.start_kill();
        while let Ok(None) = self.0.try_wait() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn outcome(status: ExitStatus, said: &str, files: Files) -> Result<(), String> {
    // A `cp` that was killed has not seen all files, whatever it said of some.
    let ended_by_itself = status.code() == Some(1) && !said.is_empty();
    let only_gone = || said.lines().all(|line| line.ends_with("No such file or directory"));
    if status.success() || (files == Files::Changing && ended_by_itself && only_gone()) {
        Ok(())
    } else if said.is_empty() {
        Err(format!("`cp` ended with {status}"))
    } else {
        Err(said.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn only_a_copy_that_ended_by_itself_is_complete() {
        const GONE: &str = "cp: cannot stat 'base/5/t3_17': No such file or directory";
        let (failed, killed) = (ExitStatus::from_raw(1 << 8), ExitStatus::from_raw(9));
        assert_eq!(outcome(ExitStatus::from_raw(0), "", Files::Still), Ok(()));
        assert_eq!(outcome(failed, GONE, Files::Changing), Ok(()));
        assert_eq!(outcome(failed, GONE, Files::Still), Err(GONE.to_owned()));
        let full = format!("{GONE}\ncp: error writing 'x': No space left on device");
        assert_eq!(outcome(failed, &full, Files::Changing), Err(full.clone()));
        assert_eq!(outcome(killed, "", Files::Changing), Err("`cp` ended with signal: 9 (SIGKILL)".to_owned()));
        assert!(outcome(killed, GONE, Files::Changing).is_err());
    }

    #[test]
    fn an_unfinished_copy_is_found_and_goes_away() {
        let parent = tempfile::tempdir().unwrap();
        let original = parent.path().join("original");
        fs::create_dir(&original).unwrap();
        fs::write(original.join("PG_VERSION"), "18").unwrap();
        let copied = crate::runtime::runtime().unwrap().block_on(CopiedData::new(&original)).unwrap();
        let link = fs::read_link(copied.folder.path().join("data")).unwrap();
        assert_eq!(link, copied.data.path());
        assert!(link.join("PG_VERSION").exists());
        let folder = copied.folder.outer().to_owned();
        drop(copied);
        assert!(!link.exists() && !folder.exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
