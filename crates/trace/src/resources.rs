//! Limits of the machine's resources for a run. The run is ended from outside, so that no migration can catch it.

use crate::Error;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bounds of a run.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// How long it may take.
    pub time: Option<Duration>,
    /// When the time began; `None`: when [`Self::hold`] begins.
    pub since: Option<Instant>,
    /// The folder of a private server. Its file system must keep [`LEAST_FREE`] bytes free, and so must the memory of the
    /// machine.
    pub disk: Option<PathBuf>,
    /// Bytes of memory that this process may use, however much a server says; 0 is [`MOST_MEMORY`].
    pub memory: u64,
}

/// Bytes of disk and of memory that a private server leaves free.
const LEAST_FREE: u64 = 256 << 20;

/// Bytes of memory that this process may use by default.
const MOST_MEMORY: u64 = 4 << 30;

/// Maximum number of statements that one run measures: the trace of each is in memory.
const MOST_STATEMENTS: usize = 100_000;

/// How often the disk and the memory are examined.
const INTERVAL: Duration = Duration::from_millis(200);

impl Limits {
    /// The outcome of work, or an error once it takes too much.
    pub(crate) async fn hold<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            biased;
            result = work => result,
            error = self.exceeded() => Err(error),
        }
    }

    async fn exceeded(&self) -> Error {
        let time = async {
            match self.time {
                Some(limit) => {
                    let gone = self.since.map_or(Duration::ZERO, |since| since.elapsed());
                    tokio::time::sleep(limit.saturating_sub(gone)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {
                let limit = self.time.unwrap_or_default();
                Error::new(format!("the run was ended after {limit:?}, its time limit"))
                    .help("allow more with --time-limit")
            }
            error = self.full() => error,
        }
    }

    /// Waits until too little is left.
    async fn full(&self) -> Error {
        loop {
            if let Some(error) = self.look() {
                return error;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn look(&self) -> Option<Error> {
        let most = if self.memory == 0 { MOST_MEMORY } else { self.memory };
        if let Some(used) = own_memory().filter(|used| *used > most) {
            let message = format!("the run was ended because pgvet itself used {} MiB of memory", used >> 20);
            return Some(Error::new(message).help("run fewer or smaller migrations at once"));
        }
        let folder = self.disk.as_ref()?;
        let free = rustix::fs::statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail * disk.f_frsize);
        if free < LEAST_FREE {
            let message = format!("the run was ended because only {} MiB are left for its server", free >> 20);
            return Some(Error::new(message).help("make room, or name another file system with TMPDIR"));
        }
        let free = free_memory().filter(|free| *free < LEAST_FREE)?;
        let message = format!("the run was ended because only {} MiB of memory are left for its server", free >> 20);
        Some(Error::new(message).help("use a machine with more memory, or run less at once"))
    }
}

/// Refuses to measure more statements than memory can hold.
pub(crate) fn check_count(statements: usize) -> Result<(), Error> {
    if statements <= MOST_STATEMENTS {
        return Ok(());
    }
    let message = format!("the migrations have more than {MOST_STATEMENTS} statements, too many for one trace");
    Err(Error::new(message).help("trace some of them, with the others as --history"))
}

/// Bytes of memory that this process uses; `None` where the system does not say.
fn own_memory() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// Bytes of memory that the machine can still give.
fn free_memory() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// A field of a file of the kernel that counts kB.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted() {
        assert!(check_count(MOST_STATEMENTS).is_ok());
        assert!(check_count(MOST_STATEMENTS + 1).unwrap_err().message.contains("too many for one trace"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_run_that_takes_too_much_memory_is_ended() {
        assert!(free_memory().unwrap() > 0);
        let run = |memory| {
            let limits = Limits { memory, ..Limits::default() };
            let work = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(())
            };
            crate::runtime::block_on(async { limits.hold(work).await })
        };
        let error = run(1).unwrap_err();
        assert!(error.message.contains("pgvet itself used"), "{}", error.message);
        assert!(run(0).is_ok());
    }
}
