//! A copy of a data directory, beside the original, for only there can both share blocks.

use super::folder::Folder;
use crate::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Copies begin with this.
const PREFIX: &str = ".pgvet-data-";

/// A copied data directory. It goes away with this value.
#[derive(Debug)]
pub struct CopiedData {
    folder: TempDir,
    /// It shares its blocks with the original until they change.
    pub thin: bool,
}

impl CopiedData {
    /// A copy of files that nobody changes.
    pub fn new(original: &Path) -> Result<Self, Error> {
        Self::copied(original, copy)
    }

    /// A copy of the files of a server in backup mode, which [`CopiedData::complete`] makes whole.
    pub(crate) fn of_running(original: &Path) -> Result<Self, Error> {
        Self::copied(original, copy_of_changing)
    }

    fn copied(original: &Path, copy: fn(&Path, &Path, &str) -> Result<(), String>) -> Result<Self, Error> {
        let cannot = |what: &str| Error::new(format!("cannot copy `{}`: {what}", original.display()));
        let beside = original.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned()));
        let beside = beside.ok_or_else(|| cannot("it has no parent folder"))?;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(beside);
        let folder = folder.map_err(|error| cannot(&error.to_string()))?;
        let thin = copy(original, folder.path(), "--reflink=always").is_ok();
        if !thin {
            copy(original, folder.path(), "--reflink=auto")
                .or_else(|_| copy(original, folder.path(), "-c"))
                .map_err(|said| cannot(&said))?;
        }
        // What belongs to the running original, or would make the copy a standby.
        for name in ["postmaster.pid", "postmaster.opts", "standby.signal", "recovery.signal"] {
            let _ = fs::remove_file(folder.path().join(name));
        }
        Ok(Self { folder, thin })
    }

    /// Adds what the end of the backup says, and the write-ahead log up to there.
    pub(crate) fn complete(&self, original: &Path, label: &str) -> Result<(), Error> {
        let cannot = |what: &str| Error::new(format!("cannot copy `{}`: {what}", original.display()));
        let log = self.folder.path().join("pg_wal");
        let copied = copy_of_changing(&original.join("pg_wal"), &log, "--reflink=auto");
        copied.or_else(|_| copy_of_changing(&original.join("pg_wal"), &log, "-c")).map_err(|said| cannot(&said))?;
        // Slots of the original would keep log for subscribers that the copy does not have.
        for slot in fs::read_dir(self.folder.path().join("pg_replslot")).into_iter().flatten().flatten() {
            let _ = fs::remove_dir_all(slot.path());
        }
        fs::write(self.folder.path().join("backup_label"), label).map_err(|error| cannot(&error.to_string()))
    }

    /// Makes the copy the data of a server: owned by its user, and linked so that it is found from its folder.
    pub(super) fn give_to(&self, server: &Folder) -> Result<(), Error> {
        let cannot = |error: std::io::Error| Error::new(format!("cannot prepare the copied data: {error}"));
        server.own(self.folder.path())?;
        std::os::unix::fs::symlink(self.folder.path(), server.path().join("data")).map_err(cannot)?;
        // The original's own files may be elsewhere, name other folders, and ask for passwords.
        fs::write(server.path().join("postgresql.conf"), "").map_err(cannot)?;
        fs::write(server.path().join("pg_hba.conf"), "local all all trust\n").map_err(cannot)?;
        fs::write(server.path().join("pg_ident.conf"), "").map_err(cannot)?;
        ["postgresql.conf", "pg_hba.conf", "pg_ident.conf"]
            .iter()
            .try_for_each(|name| server.own(&server.path().join(name)))
    }
}

/// The same for files of which some may go away meanwhile.
fn copy_of_changing(from: &Path, to: &Path, how: &str) -> Result<(), String> {
    let is_gone = |said: &String| said.lines().all(|line| line.ends_with("No such file or directory"));
    copy(from, to, how).or_else(|said| if is_gone(&said) { Ok(()) } else { Err(said) })
}

/// `cp`, which knows how to share blocks.
fn copy(from: &Path, to: &Path, how: &str) -> Result<(), String> {
    let mut command = Command::new("cp");
    command.env("LC_ALL", "C").arg("-R").arg("-p").arg(how).arg(from.join(".")).arg(to);
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}
