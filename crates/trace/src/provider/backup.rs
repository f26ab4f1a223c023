//! Backup mode of a running server: its files may be copied while it is on, and what changed meanwhile is in the
//! write-ahead log.
//!
//! Source: PostgreSQL 18 documentation, 25.3.4, "Making a Base Backup Using the Low Level API".

use super::connection_string::variable;
use super::password;
use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::server::CopiedData;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// A server that runs on a data directory.
#[derive(Debug)]
pub(super) struct RunningServer {
    host: String,
    port: u16,
}

impl RunningServer {
    /// The server of a data directory, as far as `postmaster.pid` tells: `None` where it was stopped, and in a snapshot,
    /// whose file still names the original.
    ///
    /// Source: PostgreSQL 18, `src/include/utils/pidfile.h`.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("postmaster.pid")).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        if !is_same(Path::new(lines.get(1)?), folder) {
            return None;
        }
        let line = |number: usize| lines.get(number).copied().filter(|line| !line.is_empty());
        let host = line(4).or_else(|| line(5).map(|listened| if listened == "*" { "localhost" } else { listened }));
        let port = line(3).and_then(|port| port.parse().ok()).unwrap_or(5432);
        Some(Self { host: host.unwrap_or("localhost").to_owned(), port })
    }

    /// How to connect to it, and to no other: the environment and files tell nothing but the password.
    pub(super) fn address(&self, user: &str, database: &str) -> Result<Address, Error> {
        let mut config = Config::new();
        config.host(&self.host).port(self.port).user(user).dbname(database).ssl_mode(SslMode::Prefer);
        let (given, file) = (variable("PGPASSWORD"), variable("PGPASSFILE"));
        if let Some(password) = password::known(given.as_deref(), file.as_deref(), &config)? {
            config.password(password);
        }
        Address::try_from(config)
    }

    /// Copies its data directory.
    pub(super) async fn copy(&self, folder: &Path, major: u8, address: &Address) -> Result<CopiedData, Error> {
        let refused = |error: Error| no_backup(folder, &error);
        let connection = Connection::open(address, "backup").await.map_err(refused)?;
        let runs_on: String =
            connection.value("SELECT pg_catalog.current_setting('data_directory')").await.map_err(refused)?;
        if !is_same(Path::new(&runs_on), folder) {
            let (host, port, shown) = (&self.host, self.port, folder.display());
            return Err(Error::new(format!(
                "the server at {host}, port {port}, runs on `{runs_on}`, not on `{shown}`"
            ))
            .help("name the folder on the machine where its server runs, or a snapshot of the folder"));
        }
        keep_log(&connection).await?;
        let (start, stop) = if major >= 15 {
            ("pg_backup_start('pgvet', true)", "pg_backup_stop(false)")
        } else {
            ("pg_start_backup('pgvet', true, false)", "pg_stop_backup(false, false)")
        };
        connection.run(&format!("SELECT pg_catalog.{start}")).await.map_err(refused)?;
        // The backup and the slot end with the connection, whatever happens.
        let copy = CopiedData::of_running(folder).await?;
        let label: String =
            connection.value(&format!("SELECT labelfile FROM pg_catalog.{stop}")).await.map_err(refused)?;
        copy.complete(folder, &label).await?;
        Ok(copy)
    }
}

/// The server of a data directory refuses what a backup of it needs.
pub(super) fn no_backup(folder: &Path, error: &Error) -> Error {
    let (shown, said) = (folder.display(), &error.message);
    Error::new(format!(
        "the server of `{shown}` is running, or was not stopped properly, and pgvet cannot take a backup from it: {said}"
    ))
    .help("set PGUSER (and PGPASSWORD) to a superuser of the server, stop the server, or name a snapshot of the folder")
}

/// From now on the server keeps its write-ahead log, which it would otherwise use again while its files are copied.
async fn keep_log(connection: &Connection) -> Result<(), Error> {
    let name = format!("pgvet_{}", std::process::id());
    let sql = format!("SELECT pg_catalog.pg_create_physical_replication_slot('{name}', true, true)");
    connection.run(&sql).await.map_err(|error| {
        Error::new(format!("the server cannot keep its write-ahead log for the copy: {}", error.message)).help(
            "pgvet needs a replication slot while it copies: raise max_replication_slots or drop an unused slot, and set \
             wal_level to replica or logical. Or stop the server, or name a snapshot of the folder",
        )
    })
}

/// Whether both are the same folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    real(one) == real(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_not_taken_for_its_original() {
        let parent = tempfile::tempdir().unwrap();
        let folders = ["original", "snapshot"].map(|name| parent.path().join(name));
        let pid = format!("4711\n{}\n1700000000\n5433\n/var/run/postgresql\n\n", folders[0].display());
        for folder in &folders {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("postmaster.pid"), &pid).unwrap();
        }
        let server = RunningServer::of(&folders[0]).unwrap();
        assert_eq!((server.host.as_str(), server.port), ("/var/run/postgresql", 5433));
        assert!(RunningServer::of(&folders[1]).is_none());
    }
}
