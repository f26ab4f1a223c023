//! Sends one command and takes the time.

use crate::connection::Connection;
use crate::locks::Span;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio_postgres::{Error, SimpleQueryMessage};

/// How long a statement that was cancelled may take to end before its session is ended.
const GRACE: Duration = Duration::from_secs(2);

/// A command that was sent and answered.
pub(crate) struct Sent {
    pub(crate) span: Span,
    /// The answer of the server, which is empty for a COPY.
    pub(crate) result: Result<Vec<SimpleQueryMessage>, Error>,
    /// It was cancelled because it took too long.
    pub(crate) timed_out: bool,
}

/// Runs one command, with the data of a COPY, and cancels it when it takes longer than it may.
pub(crate) async fn send(connection: &Connection, sql: &str, data: Option<&str>, limit: Option<Duration>) -> Sent {
    let started = Instant::now();
    let mut running = pin!(run(connection, sql, data));
    let mut timed_out = false;
    let result = match limit {
        None => running.await,
        Some(limit) => {
            if let Ok(result) = tokio::time::timeout(limit, running.as_mut()).await {
                result
            } else {
                timed_out = true;
                connection.cancel().await;
                // A handler may catch that it was cancelled, and go on.
                if let Ok(result) = tokio::time::timeout(GRACE, running.as_mut()).await {
                    result
                } else {
                    connection.terminate().await;
                    running.await
                }
            }
        }
    };
    Sent { span: Span { sent: started, done: Instant::now() }, result, timed_out }
}

async fn run(connection: &Connection, sql: &str, data: Option<&str>) -> Result<Vec<SimpleQueryMessage>, Error> {
    let Some(data) = data else { return connection.client.simple_query(sql).await };
    copy(connection, sql, data).await.map(|()| Vec::new())
}

/// `COPY ... FROM stdin`. The line `\.` is psql's and not part of the data.
async fn copy(connection: &Connection, sql: &str, data: &str) -> Result<(), Error> {
    use bytes::Bytes;
    use futures_util::SinkExt;
    let end = data.find("\\.").filter(|at| *at == 0 || data[..*at].ends_with('\n')).unwrap_or(data.len());
    let end = data.find("\n\\.").map_or(end, |at| at + 1);
    let mut sink = pin!(connection.client.copy_in::<_, Bytes>(sql).await?);
    sink.send(Bytes::copy_from_slice(data[..end].trim_start_matches(['\r', '\n']).as_bytes())).await?;
    sink.finish().await.map(drop)
}
