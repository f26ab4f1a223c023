//! A network of its own for a server, in which there is nothing: what a migration runs reaches no other machine.

use super::folder::Folder;
use std::path::Path;
use std::process::{Command, Stdio};

/// The programs of util-linux and iproute2, where systems have them.
const UNSHARE: &str = "/usr/bin/unshare";
const SETPRIV: &str = "/usr/bin/setpriv";
const IP: [&str; 2] = ["/usr/sbin/ip", "/sbin/ip"];

/// A user may make a network only as somebody in a namespace of users, which is itself again.
const NAMESPACES: [&str; 4] = ["--user", "--map-current-user", "--net", "--"];

/// The same with the right to set the new network up.
const NAMESPACES_WITH_RIGHTS: [&str; 5] = ["--user", "--map-current-user", "--keep-caps", "--net", "--"];

/// Starts the loopback device, gives the rights to do so away, and becomes the program.
const WITH_LOOPBACK: &str = "ip=$1; setpriv=$2; shift 2; \"$ip\" link set lo up && exec \"$setpriv\" \
                             --inh-caps=-all --ambient-caps=-all --bounding-set=-all -- \"$@\"";

/// The first major whose statistics do not need the loopback device, which is down in a new network.
const WITHOUT_LOOPBACK: u8 = 15;

/// A network that the system lets the user of the server have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// That of everybody.
    Shared,
    /// One without any device that is up.
    Empty,
    /// One with a loopback device of its own; the program is that which has started it.
    Loopback(&'static str),
}

impl Network {
    /// The emptiest that will do for a server. Containers and hardened kernels may let nobody have one.
    pub(super) fn for_server(folder: &Folder, major: u8) -> Self {
        let wanted = if major >= WITHOUT_LOOPBACK {
            Some(Self::Empty)
        } else {
            let ip = IP.into_iter().find(|program| Path::new(program).is_file());
            ip.filter(|_| Path::new(SETPRIV).is_file()).map(Self::Loopback)
        };
        wanted.filter(|_| Path::new(UNSHARE).is_file()).filter(|network| network.works(folder)).unwrap_or(Self::Shared)
    }

    fn works(self, folder: &Folder) -> bool {
        let mut probe = self.command(folder, Path::new("true"));
        let status = probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    pub(super) fn is_own(self) -> bool {
        self != Self::Shared
    }

    /// A program in this network; it keeps the number of its process.
    pub(super) fn command(self, folder: &Folder, program: &Path) -> Command {
        if self == Self::Shared {
            return folder.command(program);
        }
        let mut command = folder.command(Path::new(UNSHARE));
        match self {
            Self::Shared | Self::Empty => command.args(NAMESPACES),
            Self::Loopback(ip) => {
                command.args(NAMESPACES_WITH_RIGHTS).args(["/bin/sh", "-c", WITH_LOOPBACK, "sh", ip, SETPRIV])
            }
        };
        command.arg(program);
        command
    }
}
