//! A connection to a server, and answers as plain values.

use crate::Error;
use crate::address::Address;
use pgvet_model::runner::SessionScope;
use std::str::FromStr;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How often a server is asked whether a session has ended, every two milliseconds.
const CLOSING: usize = 1000;

/// One connection. It ends with this value.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) pid: i32,
    address: Address,
    tls: MakeRustlsConnect,
    task: JoinHandle<()>,
}

impl Connection {
    /// `role` tells our connections apart in `pg_stat_activity`.
    pub(crate) async fn open(address: &Address, role: &str) -> Result<Self, Error> {
        let mut config = address.config.clone();
        config.application_name(format!("pgvet:{role}"));
        let (client, connection) =
            config.connect(address.tls.clone()).await.map_err(|error| cannot_connect(&error, address))?;
        let task = tokio::spawn(async move {
            // A caller that waits for an answer learns that the connection is lost.
            let _ = connection.await;
        });
        let mut opened = Self { client, pid: 0, address: address.clone(), tls: address.tls.clone(), task };
        opened.pid = opened.value("SELECT pg_catalog.pg_backend_pid()").await?;
        Ok(opened)
    }

    /// A connection whose statement the server ends when nobody is left to hear of it. That is a setting of its start, so
    /// that RESET ALL of a migration does not undo it.
    pub(crate) async fn open_ending_with_client(address: &Address, role: &str, major: u8) -> Result<Self, Error> {
        if major >= 14 {
            match Self::open(&address.with_setting("client_connection_check_interval=500ms"), role).await {
                // Systems that cannot tell whether a client is there, as for 14 macOS.
                Err(error) if error.is_invalid_value() => {}
                opened => return opened,
            }
        }
        Self::open(address, role).await
    }

    /// This connection for the next migration, if the program that runs it keeps its session.
    pub(crate) async fn kept(self, before: SessionScope, scope: SessionScope) -> Result<Option<Self>, Error> {
        if scope != before || scope == SessionScope::Migration || self.client.is_closed() {
            return Ok(None);
        }
        if scope == SessionScope::RunWithoutSearchPath {
            self.run("RESET search_path").await?;
            self.run("RESET ROLE").await?;
        }
        Ok(Some(self))
    }

    /// The rows of a query, each value as text.
    pub(crate) async fn rows(&self, sql: &str) -> Result<Vec<SimpleQueryRow>, Error> {
        let messages = self.client.simple_query(sql).await.map_err(|error| Error::from_postgres(&error))?;
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    /// The one value of a query.
    pub(crate) async fn value<T: FromStr>(&self, sql: &str) -> Result<T, Error> {
        let rows = self.rows(sql).await?;
        let row = rows.first().ok_or_else(|| Error::new(format!("the server has no answer to {sql}")))?;
        parsed(row, 0).ok_or_else(|| Error::new(format!("the server's answer to {sql} is not understood")))
    }

    pub(crate) async fn run(&self, sql: &str) -> Result<(), Error> {
        self.rows(sql).await.map(drop)
    }

    /// Ends the session, and waits a moment until the server has noticed: a database in use cannot be copied.
    pub(crate) async fn close(self) {
        let (address, pid) = (self.address.clone(), self.pid);
        drop(self);
        let administrator = address.database("postgres");
        let Ok(other) = Box::pin(Self::open(&administrator, "provider")).await else { return };
        let sql = format!("SELECT FROM pg_catalog.pg_stat_activity WHERE pid = {pid}");
        for _ in 0..CLOSING {
            // If it stays, the copy says so.
            if other.rows(&sql).await.is_ok_and(|rows| rows.is_empty()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Asks the server to cancel the statement of this connection. If that fails, the connection reports it.
    pub(crate) async fn cancel(&self) {
        let _ = self.client.cancel_token().cancel_query(self.tls.clone()).await;
    }

    /// Asks the server to end the session, which no handler can catch. If that fails, the limit of the run ends it.
    pub(crate) async fn terminate(&self) {
        let Ok(other) = Box::pin(Self::open(&self.address, "provider")).await else { return };
        let _ = other.run(&format!("SELECT pg_catalog.pg_terminate_backend({})", self.pid)).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn cannot_connect(error: &tokio_postgres::Error, address: &Address) -> Error {
    let said = Error::from_postgres(error);
    let said = if said.is_missing_password() {
        said.help("set PGPASSWORD, or write the password into ~/.pgpass; on a terminal, pgvet asks for it")
    } else if error.as_db_error().is_none() {
        said.help(format!("check that a server accepts connections at {}", address.places()))
    } else {
        said
    };
    Error { message: format!("cannot connect to the server: {}", said.message), ..said }
}

/// A column of a row, unless it is NULL or something else.
pub(crate) fn parsed<T: FromStr>(row: &SimpleQueryRow, column: usize) -> Option<T> {
    row.try_get(column).ok().flatten()?.parse().ok()
}

/// A column of a row as text.
pub(crate) fn text(row: &SimpleQueryRow, column: usize) -> String {
    row.try_get(column).ok().flatten().unwrap_or_default().to_owned()
}
