//! Runs of the program, bounded in time, in number and in what they read and write.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// Maximum length of the SQL of a call, in bytes.
pub(crate) const MAX_SQL: usize = 1 << 20;

/// Maximum length of what a run prints, in bytes.
const MAX_OUTPUT: u64 = 32 << 20;

/// Maximum length of the messages of a run, in bytes; more is cut.
const MAX_MESSAGES: u64 = 8 << 10;

/// Number of runs at the same time.
const MAX_RUNS: usize = 2;

/// Runs of the program in one folder.
#[derive(Debug)]
pub(crate) struct Calls {
    program: PathBuf,
    root: PathBuf,
    time_limit: Duration,
    running: Semaphore,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Calls {
    pub(crate) fn new(program: PathBuf, root: PathBuf, time_limit: Duration) -> Self {
        Self { program, root, time_limit, running: Semaphore::new(MAX_RUNS) }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs the program, and says why if there is no result. A run that nobody waits for any longer is killed.
    pub(crate) async fn run(&self, arguments: Vec<OsString>, stdin: Option<&str>) -> Result<Ended, String> {
        let _running = self.running.acquire().await.map_err(|error| error.to_string())?;
        let stdin_is = if stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        let child = Command::new(&self.program)
            .args(arguments)
            .current_dir(&self.root)
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("FORCE_COLOR")
            .stdin(stdin_is)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let child = child.map_err(|error| format!("pgvet cannot be run: {error}"))?;
        let ended = tokio::time::timeout(self.time_limit, finish(child, stdin)).await;
        ended.unwrap_or_else(|_| {
            let seconds = self.time_limit.as_secs();
            Err(format!("this took longer than {seconds} s; `pgvet mcp --time-limit` allows more"))
        })
    }
}

async fn finish(mut child: Child, stdin: Option<&str>) -> Result<Ended, String> {
    let (input, output, messages) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let (Some(mut input), Some(text)) = (input, stdin) {
            // A run that ends before it has read everything closes the pipe.
            let _ = input.write_all(text.as_bytes()).await;
        }
    };
    let ((), stdout, stderr) = tokio::join!(feed, read(output, MAX_OUTPUT), read(messages, MAX_MESSAGES));
    let (stdout, stderr) = (stdout?, stderr?);
    if stdout.is_cut {
        return Err(format!("the result is longer than {} MiB: ask about fewer files", MAX_OUTPUT >> 20));
    }
    let status = child.wait().await.map_err(|error| format!("pgvet cannot be waited for: {error}"))?;
    Ok(Ended { status: status.code(), stdout: stdout.text, stderr: stderr.text })
}

/// The bytes read from a pipe.
#[derive(Debug, Default)]
struct Read {
    text: String,
    is_cut: bool,
}

/// Reads to the end, and keeps at most so many bytes: the program must not wait for a reader.
async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> Result<Read, String> {
    let Some(mut from) = from else { return Ok(Read::default()) };
    let failure = |error: std::io::Error| format!("pgvet cannot be read: {error}");
    let mut bytes = Vec::new();
    (&mut from).take(most).read_to_end(&mut bytes).await.map_err(failure)?;
    let rest = tokio::io::copy(&mut from, &mut tokio::io::sink()).await.map_err(failure)?;
    Ok(Read { text: String::from_utf8_lossy(&bytes).into_owned(), is_cut: rest > 0 })
}
