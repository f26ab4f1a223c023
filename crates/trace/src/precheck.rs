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
    /// It does not have the table or column yet, for example `column "slot" does not exist`.
    NotYet(String),
    /// The time limit ended the query.
    TimedOut,
    Failed(String),
}

/// Asks each query in a read-only transaction of its own, for `limit` at most.
///
/// # Errors
/// If there is no connection, or it is lost.
pub fn precheck(database: &Address, queries: &[String], limit: Duration) -> Result<Vec<Answer>, Error> {
    block_on(unless_interrupted(async {
        let connection = Connection::open(database, "precheck").await?;
        let limit = limit.as_millis();
        // A lock that a migration waits for would hold the query up, and the query others behind it.
        let settings = format!("SET statement_timeout = {limit}; SET lock_timeout = '2s'");
        connection.run(&settings).await?;
        let mut answers = Vec::new();
        for query in queries {
            connection.run("BEGIN TRANSACTION READ ONLY").await?;
            let began = Instant::now();
            // The extended protocol takes one statement, whatever the text holds.
            let answer = match connection.client.query_one(query.as_str(), &[]).await {
                Ok(row) => Answer::Counted { rows: row.get(0), took: began.elapsed() },
                Err(error) => failed(&error)?,
            };
            answers.push(answer);
            connection.run("ROLLBACK").await?;
        }
        Ok(answers)
    }))
}

fn failed(error: &tokio_postgres::Error) -> Result<Answer, Error> {
    let Some(said) = error.as_db_error() else { return Err(Error::from_postgres(error)) };
    Ok(match said.code() {
        code if *code == SqlState::UNDEFINED_COLUMN || *code == SqlState::UNDEFINED_TABLE => {
            Answer::NotYet(said.message().to_owned())
        }
        code if *code == SqlState::QUERY_CANCELED => Answer::TimedOut,
        _ => Answer::Failed(said.message().to_owned()),
    })
}
