//! Programs that must end.

use std::io::{self, Read};
use std::process::{Child, Output};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Maximum number of bytes that a program may print: more than the largest file with SQL, and names of a million files.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum number of bytes that a program may allocate on Linux. Files that it maps without changing them do not count:
/// git maps all of its packs.
pub(super) const MOST_MEMORY: u64 = 2 << 30;

/// Returns what a program prints, whose standard output and error are pipes. Ends it where it takes too long or prints
/// too much: a checkout may have a pipe in place of a file that git reads, and objects of any size.
pub(super) fn output(mut child: Child, limit: Duration) -> io::Result<Output> {
    limit_memory(&child);
    let (reading, ended) = channel::<()>();
    let stdout = reader(child.stdout.take(), reading.clone());
    let stderr = reader(child.stderr.take(), reading);
    // Nothing is sent: the channel closes when both have read to the end.
    if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
        child.kill()?;
        child.wait()?;
        let message = format!(
            "it did not end within {} seconds; a pipe or device may be in place of a file that it reads",
            limit.as_secs()
        );
        return Err(io::Error::new(io::ErrorKind::TimedOut, message));
    }
    let text = |reader: JoinHandle<io::Result<Vec<u8>>>| reader.join().unwrap_or_else(|_| Ok(Vec::new()));
    let (stdout, stderr) = (text(stdout)?, text(stderr)?);
    let status = child.wait()?;
    if stdout.len().max(stderr.len()) as u64 > MOST_BYTES {
        let message = format!("it printed more than {} MiB", MOST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(Output { status, stdout, stderr })
}

/// Limits what the program allocates from now on. What it needs before it reads a repository is little.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    if getrlimit(Resource::Data).maximum.is_some_and(|inherited| inherited <= MOST_MEMORY) {
        return;
    }
    let most = Some(MOST_MEMORY);
    // A program that has ended needs no limit.
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, Rlimit { current: most, maximum: most });
}

/// Other systems have no limit for another process.
#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child) {}

fn reader(stream: Option<impl Read + Send + 'static>, reading: Sender<()>) -> JoinHandle<io::Result<Vec<u8>>> {
    spawn(move || {
        let mut text = Vec::new();
        // A program whose output nobody reads any more ends at its next attempt to print.
        let read = stream.map_or(Ok(0), |stream| stream.take(MOST_BYTES + 1).read_to_end(&mut text));
        drop(reading);
        read.map(|_| text)
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn run(script: &str, limit: Duration) -> io::Result<Output> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        output(command.spawn()?, limit)
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let begun = std::time::Instant::now();
        let error = run("exec sleep 600", Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn both_outputs_are_read_whole() {
        let script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3";
        let output = run(script, Duration::from_secs(60)).unwrap();
        assert_eq!((output.stdout.len(), output.stderr.len(), output.status.code()), (300_000, 300_000, Some(3)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_has_a_limit_of_memory() {
        // The shell starts before it has its limit.
        let output = run("sleep 0.5; grep '^Max data size' /proc/self/limits", Duration::from_secs(60)).unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        let limit: Option<u64> = shown.split_whitespace().nth(3).and_then(|limit| limit.parse().ok());
        assert!(limit.is_some_and(|limit| limit <= MOST_MEMORY), "{shown}");
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended() {
        let error = run("exec cat /dev/zero", Duration::from_secs(600)).unwrap_err();
        assert_eq!(error.to_string(), "it printed more than 256 MiB");
    }
}
