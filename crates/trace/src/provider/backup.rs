//! Backup mode of a running server: its files may be copied while it is on, and what changed meanwhile is in the
//! write-ahead log.
//!
//! Source: PostgreSQL 18 documentation, 25.3.4, "Making a Base Backup Using the Low Level API".

use super::connection_string::parse_address;
use super::prompt::with_password;
use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::server::CopiedData;
use std::fs;
use std::path::{Path, PathBuf};

/// A server that runs on a data directory.
pub(super) struct RunningServer {
    socket: String,
    port: String,
}

impl RunningServer {
    /// The server of a data directory, as far as `postmaster.pid` tells: `None` where it was stopped, and in a snapshot,
    /// whose file still names the original.
    ///
    /// Source: PostgreSQL 18, `src/include/utils/pidfile.h`.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("postmaster.pid")).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let named = PathBuf::from(lines.get(1)?);
        if named.canonicalize().ok() != folder.canonicalize().ok() {
            return None;
        }
        let line = |number: usize| lines.get(number).copied().filter(|line| !line.is_empty());
        let host = line(4).or_else(|| line(5).map(|listened| if listened == "*" { "localhost" } else { listened }));
        Some(Self { socket: host.unwrap_or("localhost").to_owned(), port: line(3).unwrap_or("5432").to_owned() })
    }

    fn address(&self, user: &str, database: &str) -> Result<Address, Error> {
        let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
        let (host, user, database) = (quoted(&self.socket), quoted(user), quoted(database));
        with_password(parse_address(&format!("host={host} port={} user={user} dbname={database}", self.port))?)
    }

    /// Copies its data directory.
    pub(super) async fn copy(&self, folder: &Path, major: u8, user: &str, database: &str) -> Result<CopiedData, Error> {
        let refused = |error: Error| {
            let shown = folder.display();
            Error::new(format!(
                "the server of `{shown}` is running, or was not stopped properly, and cannot be asked for a backup: {}",
                error.message
            ))
            .help("set PGUSER (and PGPASSWORD) to a superuser of it, stop it, or name a snapshot of the folder")
        };
        let connection = Connection::open(&self.address(user, database)?, "backup").await.map_err(refused)?;
        let (start, stop) = if major >= 15 {
            ("pg_backup_start('pgvet', true)", "pg_backup_stop(false)")
        } else {
            ("pg_start_backup('pgvet', true, false)", "pg_stop_backup(false, false)")
        };
        connection.run(&format!("SELECT pg_catalog.{start}")).await.map_err(refused)?;
        // The backup ends with the connection, whatever happens.
        let copy = CopiedData::of_running(folder)?;
        let label: String =
            connection.value(&format!("SELECT labelfile FROM pg_catalog.{stop}")).await.map_err(refused)?;
        copy.complete(folder, &label)?;
        Ok(copy)
    }
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
        assert_eq!((server.socket.as_str(), server.port.as_str()), ("/var/run/postgresql", "5433"));
        assert!(RunningServer::of(&folders[1]).is_none());
    }
}
