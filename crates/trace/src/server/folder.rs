//! The folder of a private server, and the user who owns it.

use crate::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Folders of private servers begin with this.
pub(super) const PREFIX: &str = "pgvet-server-";

/// A unix socket's path has at most 103 bytes on every system; the folder's own name and that of the socket take 40.
const LONGEST_PARENT: usize = 60;

/// A folder in which one server keeps its data, its log and its socket.
#[derive(Debug)]
pub(super) struct Folder {
    folder: TempDir,
    /// The user who runs the server: PostgreSQL refuses to be run by root.
    user: Option<User>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct User {
    uid: u32,
    gid: u32,
}

impl Folder {
    pub(super) fn create() -> Result<Self, Error> {
        let parent = parent();
        let cannot =
            |error: std::io::Error| Error::new(format!("cannot make a folder in `{}`: {error}", parent.display()));
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(cannot)?;
        let owner = fs::metadata(folder.path()).map_err(cannot)?.uid();
        let user = if owner == 0 { Some(unprivileged()?) } else { None };
        if let Some(User { uid, gid }) = user {
            std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid)).map_err(cannot)?;
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).map_err(cannot)?;
        fs::write(folder.path().join("owner.pid"), std::process::id().to_string()).map_err(cannot)?;
        Ok(Self { folder, user })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives files to the user of the server.
    pub(super) fn own(&self, path: &Path) -> Result<(), Error> {
        let Some(User { uid, gid }) = self.user else { return Ok(()) };
        let status = Command::new("chown").arg("-R").arg(format!("{uid}:{gid}")).arg(path).status();
        if status.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        Err(Error::new(format!("cannot give `{}` to the user of the server", path.display())))
    }

    /// A command that runs as the user of the server.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env("LC_ALL", "C").env("TZ", "UTC");
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Who runs the server is told where a program cannot be reached.
    pub(super) fn runs_as_other_user(&self) -> bool {
        self.user.is_some()
    }
}

/// Where folders of servers are made: `TMPDIR` may be too long for a socket.
pub(super) fn parent() -> PathBuf {
    let temporary = std::env::temp_dir();
    if temporary.as_os_str().len() <= LONGEST_PARENT { temporary } else { PathBuf::from("/tmp") }
}

/// Whom root runs a server as: `postgres` where it exists, else `nobody`.
fn unprivileged() -> Result<User, Error> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    ["postgres", "nobody"].iter().find_map(|name| user_named(&accounts, name)).ok_or_else(|| {
        Error::new("PostgreSQL refuses to be run by root, and neither `postgres` nor `nobody` is a user here")
            .help("run pgvet as another user")
    })
}

fn user_named(accounts: &str, name: &str) -> Option<User> {
    let account = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = account.split(':').skip(2);
    Some(User { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_from_the_accounts() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/:/usr/sbin/nologin\n";
        assert_eq!(user_named(accounts, "nobody"), Some(User { uid: 65534, gid: 65533 }));
        assert_eq!(user_named(accounts, "postgres"), None);
    }

    #[test]
    fn the_folder_is_private_and_goes_away() {
        let folder = Folder::create().unwrap();
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }
}
