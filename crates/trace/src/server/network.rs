//! A network of its own for a server, in which there is nothing: what a migration runs reaches no other machine.

use super::folder::Folder;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program of util-linux, where systems have it.
const UNSHARE: &str = "/usr/bin/unshare";

/// A user may make a network only as somebody in a namespace of users, which is itself again.
const NAMESPACES: [&str; 4] = ["--user", "--map-current-user", "--net", "--"];

/// The first major whose statistics do not need the loopback device, which is down in a new network.
const WITHOUT_LOOPBACK: u8 = 15;

/// Whether the system lets the user of the server have a network of its own. Containers and hardened kernels may not.
pub(super) fn can_be_alone(folder: &Folder, major: u8) -> bool {
    if major < WITHOUT_LOOPBACK || !Path::new(UNSHARE).is_file() {
        return false;
    }
    let mut probe = alone(folder, Path::new("true"));
    let status = probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A command in a network of its own; it keeps the number of its process.
pub(super) fn alone(folder: &Folder, program: &Path) -> Command {
    let mut command = folder.command(Path::new(UNSHARE));
    command.args(NAMESPACES).arg(program);
    command
}
