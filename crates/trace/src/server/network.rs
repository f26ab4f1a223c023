//! What a server has to itself: a network in which there is nothing, so that what a migration runs reaches no other
//! machine, and its own processes, so that nothing that a migration starts outlives the server.

use super::folder::{Folder, UNSHARE};
use rustix::process::Pid;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Further programs of util-linux and iproute2, where systems have them.
const SETPRIV: &str = "/usr/bin/setpriv";
const IP: [&str; 2] = ["/usr/sbin/ip", "/sbin/ip"];

/// A user may make a network only as somebody in a namespace of users, which is itself again.
const NAMESPACES: [&str; 3] = ["--user", "--map-current-user", "--net"];

/// The right to set the new network up.
const WITH_RIGHTS: &str = "--keep-caps";

/// Processes of its own. The system ends all of them when the first one ends, which is the server.
///
/// Source: Linux manual, `pid_namespaces(7)`.
const PROCESSES: [&str; 3] = ["--pid", "--fork", "--kill-child"];

/// How long the first of the processes is searched for.
const FIRST_LIMIT: Duration = Duration::from_secs(5);

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

/// What a server has to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Isolation {
    network: Network,
    has_own_processes: bool,
}

impl Isolation {
    /// A server like any other program.
    pub(super) const NONE: Self = Self { network: Network::Shared, has_own_processes: false };

    /// As much as the system lets a server have. Containers and hardened kernels may give it nothing.
    pub(super) fn for_server(folder: &Folder, major: u8) -> Self {
        let network = if major >= WITHOUT_LOOPBACK {
            Some(Network::Empty)
        } else {
            let ip = IP.into_iter().find(|program| Path::new(program).is_file());
            ip.filter(|_| Path::new(SETPRIV).is_file()).map(Network::Loopback)
        };
        let Some(network) = network.filter(|_| Path::new(UNSHARE).is_file()) else { return Self::NONE };
        let all = [true, false].map(|has_own_processes| Self { network, has_own_processes });
        all.into_iter().find(|isolation| isolation.works(folder)).unwrap_or(Self::NONE)
    }

    fn works(self, folder: &Folder) -> bool {
        let mut probe = self.command(folder, Path::new("true"));
        let status = probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    pub(super) fn has_own_network(self) -> bool {
        self.network != Network::Shared
    }

    pub(super) fn has_own_processes(self) -> bool {
        self.has_own_processes
    }

    /// A program that is isolated so.
    pub(super) fn command(self, folder: &Folder, program: &Path) -> Command {
        if self.network == Network::Shared {
            return folder.command(program);
        }
        let mut command = folder.command(Path::new(UNSHARE));
        command.args(NAMESPACES);
        if self.has_own_processes {
            command.args(PROCESSES);
        }
        match self.network {
            Network::Shared | Network::Empty => command.arg("--"),
            Network::Loopback(ip) => {
                command.args([WITH_RIGHTS, "--", "/bin/sh", "-c", WITH_LOOPBACK, "sh", ip, SETPRIV])
            }
        };
        command.arg(program);
        command
    }

    /// The process of the program: the one that was started, or the first of its own processes.
    pub(super) fn process_of(self, started: &mut Child) -> Pid {
        let asked = Instant::now();
        while self.has_own_processes && asked.elapsed() < FIRST_LIMIT && matches!(started.try_wait(), Ok(None)) {
            if let Some(first) = child_of(started.id()) {
                return first;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // To end this process ends the others, too.
        Pid::from_child(started)
    }
}

/// A process that another one has started.
///
/// Source: Linux manual, `proc_pid_stat(5)`: the name, which may have any characters, is in parentheses.
fn child_of(parent: u32) -> Option<Pid> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).find_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = status.rsplit_once(')')?;
        let its_parent = fields.split_whitespace().nth(1)?.parse::<u32>().ok()?;
        Pid::from_raw(pid).filter(|_| its_parent == parent)
    })
}
