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

/// Where servers look for programs.
const PROGRAMS: &str = "/usr/local/bin:/usr/bin:/bin";

/// The program of util-linux, where systems have it.
pub(super) const UNSHARE: &str = "/usr/bin/unshare";

/// Variables that a server may need to start.
const LIBRARIES: [&str; 2] = ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// A unix socket's path has at most 103 bytes on every system; the folder's own names and that of the socket take 42.
const LONGEST_PARENT: usize = 60;

/// The part of the folder that belongs to the user of the server.
pub(super) const INNER: &str = "s";

/// The file that says whose server it is.
pub(super) const OWNER: &str = "owner.pid";

/// The file that a server keeps open and locked.
pub(super) const SERVER: &str = "server.pid";

/// The link to copied data.
pub(super) const COPIED: &str = "copied";

/// A folder in which one server keeps its data, its log and its socket. What is believed of it later, when the run was
/// killed, lies outside of what the server can write.
#[derive(Debug)]
pub(super) struct Folder {
    outer: TempDir,
    inner: PathBuf,
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
        let inner = folder.path().join(INNER);
        fs::create_dir(&inner).map_err(cannot)?;
        let owner = fs::metadata(&inner).map_err(cannot)?.uid();
        let user = if owner == 0 { Some(unprivileged()?) } else { None };
        if let Some(User { uid, gid }) = user {
            std::os::unix::fs::chown(&inner, Some(uid), Some(gid)).map_err(cannot)?;
            // Another user has to pass through it.
            fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).map_err(cannot)?;
        }
        fs::set_permissions(&inner, Permissions::from_mode(0o700)).map_err(cannot)?;
        fs::write(folder.path().join(OWNER), std::process::id().to_string()).map_err(cannot)?;
        Ok(Self { outer: folder, inner, user })
    }

    /// The folder that belongs to the server.
    pub(super) fn path(&self) -> &Path {
        &self.inner
    }

    /// The folder around it, in which only pgvet can write.
    pub(super) fn outer(&self) -> &Path {
        self.outer.path()
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

    /// A command that runs as the user of the server, and knows nothing of our environment: SQL can read its own.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = self.bare_command(program);
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// A command that runs as us, so that no other user can change what it writes. PostgreSQL refuses to be run by root, who
    /// is the user of the server in a namespace of users of its own; where there are none, the command fails.
    pub(super) fn own_command(&self, program: &Path) -> Command {
        let Some(User { uid, gid }) = self.user else { return self.bare_command(program) };
        let mut command = self.bare_command(Path::new(UNSHARE));
        command.arg(format!("--map-user={uid}")).arg(format!("--map-group={gid}")).arg("--").arg(program);
        command
    }

    fn bare_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| LIBRARIES.iter().any(|known| name == known)));
        command.env("PATH", PROGRAMS).env("LC_ALL", "C").env("TZ", "UTC").env("HOME", self.path());
        // Ctrl-C is for us; we end it.
        command.process_group(0);
        command
    }

    /// Whether the server runs as another user. An error says so if that user cannot reach a program.
    pub(super) fn runs_as_other_user(&self) -> bool {
        self.user.is_some()
    }
}

/// Where folders of servers are made: `TMPDIR` may be too long for a socket.
pub(super) fn parent() -> PathBuf {
    let temporary = std::env::temp_dir();
    if temporary.as_os_str().len() <= LONGEST_PARENT { temporary } else { PathBuf::from("/tmp") }
}

/// Whom root runs a server as: `nobody`, or else `postgres`, who may own real databases on this machine: what a migration
/// starts could change their files, and log in through their sockets.
fn unprivileged() -> Result<User, Error> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    ["nobody", "postgres"].iter().find_map(|name| user_named(&accounts, name)).ok_or_else(|| {
        Error::new("PostgreSQL refuses to be run by root, and neither `nobody` nor `postgres` is a user here")
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
        assert_eq!(fs::metadata(folder.outer()).unwrap().mode() & 0o022, 0);
        assert_eq!(fs::metadata(folder.outer()).unwrap().uid(), rustix::process::geteuid().as_raw());
        drop(folder);
        assert!(!path.exists());
    }
}
