//! Deadlocks between the migration and the clients of a workload, as PostgreSQL reports them.

use crate::Error;
use crate::connection::{Connection, parsed, text};
use crate::observation::{Deadlock, DeadlockSession, DeadlockStatement};
use crate::provider::ThinClone;
use crate::secret::masked;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tokio_postgres::error::SqlState;

/// What each session has run in its transaction, and the deadlocks so far.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    sessions: RefCell<BTreeMap<i32, DeadlockSession>>,
    deadlocks: RefCell<Vec<Deadlock>>,
}

/// Maximum number of deadlocks that are kept; a workload may deadlock repeatedly.
const KEPT: usize = 5;

impl Activity {
    /// A session begins a transaction.
    pub(crate) fn begin(&self, pid: i32, name: &str) {
        let session = DeadlockSession { pid, name: name.to_owned(), statements: Vec::new() };
        self.sessions.borrow_mut().insert(pid, session);
    }

    /// A session is about to run a statement. `place` is `file:line`, where that is known.
    pub(crate) fn run(&self, pid: i32, place: Option<&str>, sql: &str) {
        if let Some(session) = self.sessions.borrow_mut().get_mut(&pid) {
            session.statements.push(DeadlockStatement { place: place.map(str::to_owned), sql: masked(sql) });
        }
    }

    /// Notes the error of a session if it is a deadlock: both sessions are still at the statement that waits.
    pub(crate) fn note(&self, pid: i32, error: &tokio_postgres::Error) {
        let Some(said) = error.as_db_error().filter(|said| *said.code() == SqlState::T_R_DEADLOCK_DETECTED) else {
            return;
        };
        let detail = said.detail().unwrap_or_default();
        let sessions = self.sessions.borrow();
        let waiting = processes(detail).into_iter().filter_map(|pid| sessions.get(&pid).cloned());
        let mut deadlocks = self.deadlocks.borrow_mut();
        if deadlocks.len() < KEPT {
            deadlocks.push(Deadlock { report: detail.to_owned(), cancelled: pid, sessions: waiting.collect() });
        }
    }

    /// The deadlocks so far, with the names of the relations.
    pub(crate) async fn take(&self, clone: &ThinClone) -> Result<Vec<Deadlock>, Error> {
        let mut deadlocks = self.deadlocks.take();
        if deadlocks.is_empty() {
            return Ok(deadlocks);
        }
        let connection = Connection::open(&clone.database, "observer").await?;
        let rows = connection.rows("SELECT oid, oid::pg_catalog.regclass FROM pg_catalog.pg_class").await?;
        let names: BTreeMap<u32, String> =
            rows.iter().filter_map(|row| Some((parsed(row, 0)?, text(row, 1)))).collect();
        for deadlock in &mut deadlocks {
            deadlock.report = named(&deadlock.report, &names);
        }
        Ok(deadlocks)
    }
}

/// The processes that wait, in the order of the report.
///
/// Source: PostgreSQL 18, `src/backend/storage/lmgr/deadlock.c`, `DeadLockReport`: a line "Process %d waits for %s on
/// %s; blocked by process %d." for each.
fn processes(report: &str) -> Vec<i32> {
    let waits = |line: &str| line.strip_prefix("Process ")?.split_once(" waits for ")?.0.parse().ok();
    report.lines().filter_map(waits).collect()
}

/// The report with the name of each relation after its number.
fn named(report: &str, names: &BTreeMap<u32, String>) -> String {
    const WORD: &str = "relation ";
    let mut shown = String::with_capacity(report.len());
    let mut rest = report;
    while let Some(at) = rest.find(WORD) {
        let (before, number) = rest.split_at(at + WORD.len());
        let end = number.find(|character: char| !character.is_ascii_digit()).unwrap_or(number.len());
        shown.push_str(before);
        shown.push_str(&number[..end]);
        if let Some(name) = number[..end].parse().ok().and_then(|oid: u32| names.get(&oid)) {
            shown.extend([" (", name, ")"]);
        }
        rest = &number[end..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_of_a_report_are_read() {
        let report = "Process 71 waits for AccessExclusiveLock on relation 16390 of database 16384; blocked by process 72.\n\
                      Process 72 waits for RowShareLock on relation 16385 of database 16384; blocked by process 71.";
        assert_eq!(processes(report), [71, 72]);
        assert_eq!(processes("other words"), [0; 0]);
        let names = BTreeMap::from([(16390, "orders".to_owned())]);
        let shown = named(report, &names);
        assert!(
            shown.contains("relation 16390 (orders) of database") && shown.contains("relation 16385 of"),
            "{shown}"
        );
    }
}
