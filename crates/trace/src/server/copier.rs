//! The `cp` that copies data, as runs that come later know it: it outlives a run that was killed.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The file with the number of the process, which keeps it open and locked as long as it lives, as its standard input.
/// So the number of a process that has ended is never mistaken for that of another.
const NAME: &str = "copier.pid";

/// How long a lock is waited for.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// For `sh -c`: writes its number into its standard input, and becomes `cp`.
pub(super) const RUN: &str = "echo $$ >&0 && exec cp \"$@\"";

/// The standard input of a copier, for the folder of the server.
pub(super) fn file(folder: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(folder.join(NAME))?;
    lock(&file)?;
    Ok(file)
}

/// Locks a file for the process that is about to be started. A process that this one is starting elsewhere still has
/// the file of an ended one until it runs its own program, so the lock is waited for.
pub(super) fn lock(file: &File) -> io::Result<()> {
    let asked = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if asked.elapsed() < LOCK_LIMIT => std::thread::sleep(Duration::from_millis(1)),
            locked => return Ok(locked?),
        }
    }
}

/// Ends the copier of a folder if it still runs, and waits until it has ended.
pub(super) fn end(folder: &Path, limit: Duration) -> io::Result<()> {
    end_locker(&folder.join(NAME), Signal::KILL, "`cp` that copies its data", limit)
}

/// Ends the process that has locked a file and whose number is in it. The number of a process that has ended is
/// never mistaken for that of another.
pub(super) fn end_locker(path: &Path, signal: Signal, what: &str, limit: Duration) -> io::Result<()> {
    let file = match OpenOptions::new().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let asked = Instant::now();
    while let Err(Errno::WOULDBLOCK) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // It may be about to write its number.
        let pid = super::leftover::pid_in(path);
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
        if asked.elapsed() > limit {
            let pid = pid.map_or_else(String::new, |pid| format!(" (process {})", pid.as_raw_nonzero()));
            return Err(io::Error::other(format!("the {what}{pid} does not end")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_copy_of_the_file_in_a_process_that_starts_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let inherited = file(folder.path()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                drop(inherited);
            });
            file(folder.path()).unwrap();
        });
    }

    #[test]
    fn only_a_copier_that_runs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Duration::from_secs(10);
        end(folder.path(), limit).unwrap();
        let asleep = "echo $$ >&0 && exec sleep 600";
        let mut copier = Command::new("sh").args(["-c", asleep]).stdin(file(folder.path()).unwrap()).spawn().unwrap();
        end(folder.path(), limit).unwrap();
        assert!(copier.wait().unwrap().code().is_none(), "it was killed");
        let mut other = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        std::fs::write(folder.path().join(NAME), other.id().to_string()).unwrap();
        end(folder.path(), limit).unwrap();
        assert!(other.try_wait().unwrap().is_none(), "the number alone says nothing");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
