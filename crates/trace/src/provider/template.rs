//! A copy of a database on its own server: `CREATE DATABASE ... TEMPLATE`.

use super::{Answer, CloneProvider, ServerInfo, ThinClone, drop_clone, release};
use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::runtime::{block_on, unless_interrupted};

/// Databases of ours begin with this.
const PREFIX: &str = "pgvet_clone_";

/// Copies of one database.
#[derive(Debug)]
pub struct Template {
    source: Address,
    major: u8,
    created: Vec<String>,
}

impl Template {
    /// `source` names the server and the database to copy.
    pub fn new(source: Address) -> Self {
        Self { source, major: 0, created: Vec::new() }
    }

    /// The same server, through a database that nobody copies.
    fn administrator(&self) -> Address {
        let name = if self.source.database_name() == "postgres" { "template1" } else { "postgres" };
        self.source.database(name)
    }

    /// Drops what runs that were killed have left: databases of ours that nobody uses. Returns their names.
    async fn remove_leftovers(&self) -> Result<Vec<String>, Error> {
        let administrator = Connection::open(&self.administrator(), "provider").await?;
        let sql = format!(
            "SELECT d.datname FROM pg_catalog.pg_database d WHERE d.datname ~ '^{PREFIX}[0-9]+_[0-9]+$' \
             AND d.datdba = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.datid = d.oid)"
        );
        let mut removed = Vec::new();
        for row in administrator.rows(&sql).await? {
            let name = crate::connection::text(&row, 0);
            release(&administrator, &self.source.database(&name)).await?;
            // Not with force: a run that has just made it may be about to use it.
            administrator.run(&format!("DROP DATABASE IF EXISTS {name}")).await?;
            removed.push(name);
        }
        Ok(removed)
    }

    /// The same, for code that is not asynchronous.
    pub fn remove_leftovers_now(&self) -> Result<Vec<String>, Error> {
        block_on(unless_interrupted(self.remove_leftovers()))
    }

    async fn copy(&mut self) -> Result<ThinClone, Error> {
        let administrator = Connection::open(&self.administrator(), "provider").await?;
        let source = self.source.database_name().to_owned();
        let name = format!("{PREFIX}{}_{}", std::process::id(), self.created.len() + 1);
        if self.major >= 18 {
            // Where the file system can, files are shared until they change; where not, PostgreSQL copies them.
            administrator.run("SET file_copy_method = clone").await?;
        }
        let strategy = if self.major >= 15 { " STRATEGY file_copy" } else { "" };
        let quoted = source.replace('"', "\"\"");
        let sql = format!("CREATE DATABASE {name} TEMPLATE \"{quoted}\"{strategy}");
        self.created.push(name.clone());
        administrator.run(&sql).await.map_err(|error| cannot_copy(&source, &error))?;
        Ok(ThinClone { database: self.source.database(&name), observer: self.administrator() })
    }
}

fn cannot_copy(source: &str, error: &Error) -> Error {
    let said = Error::new(format!("cannot copy the database `{source}`: {}", error.message));
    if error.message.contains("(SQLSTATE 55006)") {
        return said.help("a template must not be in use: end its sessions, or restore a copy that nobody connects to");
    }
    if error.message.contains("(SQLSTATE 42501)") {
        return said.help("the user needs CREATEDB, and must own the database or be a superuser");
    }
    said
}

impl CloneProvider for Template {
    fn name(&self) -> &'static str {
        "template"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        Box::pin(async {
            let administrator = Connection::open(&self.administrator(), "provider").await?;
            let mut info = ServerInfo::ask(&administrator).await?;
            self.major = info.major;
            info.announce_rights(&administrator).await?;
            let shared = "other sessions use this server: transaction IDs and write-ahead log include theirs";
            info.notes.push(shared.to_owned());
            let copied = if self.major >= 18 {
                "the copy shares its files with the original only if the file system can clone them"
            } else {
                "pgvet made a full copy, because PostgreSQL can clone files only from version 18 on"
            };
            info.notes.push(copied.to_owned());
            (info.has_schema, info.is_shared) = (true, true);
            Ok(info)
        })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(self.copy())
    }

    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()> {
        let name = clone.database.database_name().to_owned();
        Box::pin(async move {
            let administrator = Connection::open(&self.administrator(), "provider").await?;
            drop_clone(&administrator, &clone.database).await?;
            self.created.retain(|created| *created != name);
            Ok(())
        })
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        Box::pin(async {
            if self.created.is_empty() {
                return Ok(());
            }
            let administrator = Connection::open(&self.administrator(), "provider").await?;
            for name in std::mem::take(&mut self.created) {
                drop_clone(&administrator, &self.source.database(&name)).await?;
            }
            Ok(())
        })
    }
}
