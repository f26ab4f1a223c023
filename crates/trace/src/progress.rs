//! How far a statement has come, where PostgreSQL tells: `pg_stat_progress_*`.

use crate::Error;
use crate::connection::{Connection, parsed, text};
use std::fmt;
use std::time::Duration;
use tokio_postgres::SimpleQueryRow;

/// Interval between two progress reports.
pub(crate) const INTERVAL: Duration = Duration::from_millis(250);

/// The current phase of a command, and how much of it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// `building index: scanning table`.
    pub phase: String,
    pub done: u64,
    /// `None` where PostgreSQL does not know.
    pub total: Option<u64>,
    /// `rows` or `blocks`.
    pub unit: String,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.phase, self.done)?;
        match self.total {
            Some(total) => write!(f, " of {total} {}", self.unit),
            None => write!(f, " {}", self.unit),
        }
    }
}

/// Returns the progress of a backend, from any database; `None` for commands that do not report it.
pub(crate) async fn of_backend(observer: &Connection, pid: i32, major: u8) -> Result<Option<Progress>, Error> {
    let rows = observer.rows(&sql(pid, major)).await?;
    Ok(rows.first().and_then(progress))
}

/// CREATE INDEX counts blocks while it reads the table and rows while it fills the index.
fn sql(pid: i32, major: u8) -> String {
    let copy = "UNION ALL SELECT lower(command), tuples_processed, NULL, 'rows' FROM pg_catalog.pg_stat_progress_copy";
    let copy = if major >= 14 { format!("{copy} WHERE pid = {pid}") } else { String::new() };
    format!(
        "SELECT phase, CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END, \
         CASE WHEN tuples_total > 0 THEN tuples_total ELSE blocks_total END, \
         CASE WHEN tuples_total > 0 THEN 'rows' ELSE 'blocks' END \
         FROM pg_catalog.pg_stat_progress_create_index WHERE pid = {pid} \
         UNION ALL SELECT command || ': ' || phase, heap_blks_scanned, heap_blks_total, 'blocks' \
         FROM pg_catalog.pg_stat_progress_cluster WHERE pid = {pid} \
         UNION ALL SELECT phase, heap_blks_scanned, heap_blks_total, 'blocks' \
         FROM pg_catalog.pg_stat_progress_vacuum WHERE pid = {pid} \
         UNION ALL SELECT phase, sample_blks_scanned, sample_blks_total, 'blocks' \
         FROM pg_catalog.pg_stat_progress_analyze WHERE pid = {pid} {copy}"
    )
}

fn progress(row: &SimpleQueryRow) -> Option<Progress> {
    let total = parsed(row, 2).filter(|total| *total > 0);
    Some(Progress { phase: text(row, 0), done: parsed(row, 1)?, total, unit: text(row, 3) })
}
