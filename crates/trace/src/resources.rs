//! Limits of the machine's resources for a run. The run is ended from outside, so that no migration can catch it.

use crate::Error;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

/// Bounds of a run.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// How long it may take.
    pub time: Option<Duration>,
    /// A folder whose file system must keep [`LEAST_FREE`] bytes free.
    pub disk: Option<PathBuf>,
}

/// Bytes that a private server leaves free.
const LEAST_FREE: u64 = 256 << 20;

/// How often the disk is examined.
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
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {
                let limit = self.time.unwrap_or_default();
                Error::new(format!("the trace was ended after {limit:?}, its time limit"))
                    .help("allow more with --time-limit")
            }
            free = self.full() => Error::new(format!(
                "the trace was ended because only {} MiB are left for its server", free >> 20
            ))
            .help("make room, or name another file system with TMPDIR"),
        }
    }

    /// The bytes that are left, once they are too few.
    async fn full(&self) -> u64 {
        let Some(folder) = &self.disk else { return std::future::pending().await };
        loop {
            let free = rustix::fs::statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail * disk.f_frsize);
            if free < LEAST_FREE {
                return free;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
