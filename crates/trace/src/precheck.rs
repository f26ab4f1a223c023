//! Asks a database how many rows would make statements fail: read-only, one query at a time, each with a time limit.

use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::runtime::{block_on, unless_interrupted};
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

/// What a database says to a query that counts rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Counted {
        rows: i64,
        took: Duration,
    },
    /// The evaluation fails for a row, as the statement does.
    AtLeastOne {
        /// Of the error, whose message may show the value.
        sqlstate: String,
        took: Duration,
    },
    /// It does not have a table, column, type or function yet, for example `column "slot" does not exist`.
    NotYet(String),
    /// The time limit ended the query.
    TimedOut,
    Failed(String),
}

/// What a database has answered.
#[derive(Debug)]
pub struct Answers {
    /// When it was asked, as the server's clock says: `2026-11-26T08:00:00Z`.
    pub taken_at: String,
    /// One for each query.
    pub answers: Vec<Answer>,
}

/// Returns the major version of the server.
///
/// # Errors
/// If there is no connection.
pub fn major_version(database: &Address) -> Result<u32, Error> {
    block_on(unless_interrupted(async {
        let connection = Connection::open(database, "precheck").await?;
        let number: u32 = connection.value("SELECT pg_catalog.current_setting('server_version_num')").await?;
        Ok(number / 10_000)
    }))
}

/// Asks each query in a read-only transaction of its own, for `limit` at most.
///
/// # Errors
/// If there is no connection, or it is lost.
pub fn precheck(database: &Address, queries: &[String], limit: Duration) -> Result<Answers, Error> {
    block_on(unless_interrupted(async {
        let connection = Connection::open(database, "precheck").await?;
        let limit = limit.as_millis();
        // A lock that a migration waits for would hold the query up, and the query others behind it.
        let settings = format!("SET statement_timeout = {limit}; SET lock_timeout = '2s'");
        connection.run(&settings).await?;
        let taken_at = connection.value(NOW).await?;
        let mut answers = Vec::new();
        for query in queries {
            connection.run("BEGIN TRANSACTION READ ONLY").await?;
            let began = Instant::now();
            // The extended protocol takes one statement, whatever the text holds.
            let answer = match connection.client.prepare(query).await {
                Ok(statement) => match connection.client.query_one(&statement, &[]).await {
                    Ok(row) => Answer::Counted { rows: row.get(0), took: began.elapsed() },
                    Err(error) => failed(&error, began.elapsed())?,
                },
                Err(error) => not_prepared(&error)?,
            };
            answers.push(answer);
            connection.run("ROLLBACK").await?;
        }
        Ok(Answers { taken_at, answers })
    }))
}

const NOW: &str = "SELECT pg_catalog.to_char(pg_catalog.now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";

/// Nothing has read a row yet, so the message shows nothing but the query.
fn not_prepared(error: &tokio_postgres::Error) -> Result<Answer, Error> {
    let Some(said) = error.as_db_error() else { return Err(Error::from_postgres(error)) };
    Ok(match said.code() {
        code if NOT_YET.contains(code) => Answer::NotYet(said.message().to_owned()),
        code if *code == SqlState::QUERY_CANCELED => Answer::TimedOut,
        _ => Answer::Failed(said.message().to_owned()),
    })
}

/// The message may show a value of a row, in any place: a condition can read it as a name, or raise it as an error.
fn failed(error: &tokio_postgres::Error, took: Duration) -> Result<Answer, Error> {
    let Some(said) = error.as_db_error() else { return Err(Error::from_postgres(error)) };
    Ok(match said.code() {
        code if *code == SqlState::QUERY_CANCELED => Answer::TimedOut,
        // Class 22 is a data exception, class 23 a constraint of a domain.
        code if code.code().starts_with("22") || code.code().starts_with("23") => {
            Answer::AtLeastOne { sqlstate: code.code().to_owned(), took }
        }
        code => {
            let reason = REASONS.iter().find(|(known, _)| known == code).map(|(_, reason)| *reason);
            let code = code.code();
            Answer::Failed(
                reason.map_or_else(|| format!("SQLSTATE {code}"), |reason| format!("{reason} (SQLSTATE {code})")),
            )
        }
    })
}

/// Errors of the server and of privileges, in words.
///
/// Source: PostgreSQL 18 documentation, Appendix A, "PostgreSQL Error Codes".
const REASONS: [(SqlState, &str); 4] = [
    (SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"),
    (SqlState::INSUFFICIENT_PRIVILEGE, "permission denied"),
    (SqlState::OUT_OF_MEMORY, "out of memory"),
    (SqlState::DISK_FULL, "disk full"),
];

/// What an earlier statement of the deployment may create.
const NOT_YET: [SqlState; 5] = [
    SqlState::UNDEFINED_COLUMN,
    SqlState::UNDEFINED_TABLE,
    SqlState::UNDEFINED_OBJECT,
    SqlState::UNDEFINED_FUNCTION,
    SqlState::INVALID_SCHEMA_NAME,
];
