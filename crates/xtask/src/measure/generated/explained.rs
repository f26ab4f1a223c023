//! Differences that no look at the statements can foresee, each with its reason.

use pgvet_trace::{ModelDifference, StatementTrace};

/// Why this difference is no defect of the model.
pub(super) fn explanation(difference: &ModelDifference, seen: &StatementTrace) -> Option<&'static str> {
    let sql = seen.sql.as_str();
    let given_back = difference.what == "lock" && difference.observed == "none";
    if given_back && (sql.contains(" SET STORAGE ") || sql.contains(" SET COMPRESSION ")) {
        return Some("SET STORAGE and SET COMPRESSION give the locks of indexes back before they end");
    }
    // DefineIndex, in src/backend/commands/indexcmds.c, closes each index that is no counterpart with its lock.
    let makes_index = sql.starts_with("CREATE ") && sql.contains("INDEX ");
    let makes_key = sql.starts_with("ALTER TABLE ") && (sql.contains("UNIQUE ") || sql.contains("PRIMARY KEY "));
    if given_back && (makes_index || makes_key) {
        return Some("a new index of a partitioned table gives the locks of indexes back that it only compares");
    }
    if seen.failure.as_ref().is_some_and(|failure| failure.sqlstate == "XX000") {
        return Some("an internal error of the server, which is a defect of its own");
    }
    let refused = seen.failure.as_ref().map(|failure| failure.sqlstate.as_str());
    if difference.predicted == "succeeds" && refused == Some("55006") {
        return Some("whether deferred triggers have something to do depends on the rows that were written");
    }
    None
}
