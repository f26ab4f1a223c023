//! Where a trace runs. One provider, one file.

mod backup;
mod connection_string;
mod control_file;
mod datadir;
mod dblab;
mod lasting;
mod parameters;
mod password;
mod prompt;
mod scratch;
mod service;
mod template;
mod url;

pub use connection_string::parse_address;
pub use datadir::{DataDir, DataDirOptions};
pub use dblab::{Dblab, DblabOptions};
pub use lasting::Lasting;
pub use prompt::with_password;
pub use scratch::{Scratch, ScratchOptions};
pub use template::Template;
pub use url::Url;

use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use pgvet_schema::Schema;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
pub use tokio_postgres::Config;
use tokio_postgres::SimpleQueryRow;

/// The return type of an asynchronous method of a trait object.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// The current user, if its rights reach beyond one database, whatever code uses them: including those of a role that
/// it can become with SET ROLE. CREATEDB does not count: code cannot create or drop a database, and a statement that
/// does is refused.
///
/// Source: PostgreSQL 18 documentation, 21.3 "Role Membership", 21.5 "Predefined Roles".
const BEYOND_ONE_DATABASE: &str = "SELECT current_user WHERE EXISTS (\
    SELECT FROM pg_catalog.pg_roles r WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER') AND (\
        r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolname IN (\
            'pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files', 'pg_signal_backend', \
            'pg_signal_autovacuum_worker', 'pg_create_subscription'))) \
    OR EXISTS (SELECT FROM pg_catalog.pg_auth_members m \
        WHERE m.admin_option AND pg_catalog.pg_has_role(m.member, 'MEMBER'))";

/// The current user, if a role has granted it to change settings of the server, which exists since PostgreSQL 15.
const CHANGES_PARAMETERS: &str = "SELECT current_user WHERE EXISTS (\
    SELECT FROM pg_catalog.pg_parameter_acl p WHERE pg_catalog.has_parameter_privilege(p.parname, 'ALTER SYSTEM'))";

/// The current user, if it can drop or change other databases, which statements of a program can do.
const OWNS_DATABASES: &str = "SELECT current_user WHERE EXISTS (\
    SELECT FROM pg_catalog.pg_roles r WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER') AND (\
        r.rolcreatedb OR EXISTS (SELECT FROM pg_catalog.pg_database d \
            WHERE d.datname <> pg_catalog.current_database() AND d.datdba = r.oid)))";

/// Makes databases that a migration may damage, and takes them away again.
pub trait CloneProvider {
    fn name(&self) -> &'static str;

    /// Finds what it needs, and says how the next clone will be reached if that is known before the server runs.
    ///
    /// # Errors
    /// What it needs is missing.
    fn announced(&mut self) -> Result<Option<AnnouncedClone>, Error> {
        Ok(None)
    }

    /// Reaches the server, or starts it.
    fn prepare(&mut self) -> Answer<'_, ServerInfo>;

    /// A fresh clone.
    fn create(&mut self) -> Answer<'_, ThinClone>;

    /// Why everything went wrong at once, for example because the server has ended.
    fn trouble(&mut self) -> Option<String> {
        None
    }

    /// Removes one clone, to make room.
    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()>;

    /// Removes every clone that was created, also after errors and interruptions.
    fn destroy(&mut self) -> Answer<'_, ()>;
}

/// A clone of a server that nobody else uses, before it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedClone {
    pub user: String,
    pub database: String,
}

/// The server on which a provider works.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    pub major: u8,
    pub version: String,
    /// Limits of the figures on clones of this provider, for the report.
    pub notes: Vec<String>,
    /// The database is there already, so no history is replayed.
    pub has_schema: bool,
    /// It can connect to other servers: for subscriptions, through `postgres_fdw` or `dblink`.
    pub reaches_others: bool,
    /// Others use it: what migrations do beyond their database stays after the trace.
    pub is_shared: bool,
    /// Effects that migrations can have beyond their database, announced before the first of them runs.
    pub announcements: Vec<String>,
    /// The user, if others use the server and it can drop or change other databases of it.
    pub owner_of_databases: Option<String>,
}

impl ServerInfo {
    /// A server that nobody else uses, that reaches others, and that lacks the schema.
    pub fn new(major: u8, version: String) -> Self {
        Self {
            major,
            version,
            notes: Vec::new(),
            has_schema: false,
            reaches_others: true,
            is_shared: false,
            announcements: Vec::new(),
            owner_of_databases: None,
        }
    }

    /// Asks a server who it is.
    pub(crate) async fn ask(connection: &Connection) -> Result<Self, Error> {
        let number: u32 = connection.value("SELECT pg_catalog.current_setting('server_version_num')").await?;
        let version: String = connection.value("SELECT pg_catalog.current_setting('server_version')").await?;
        let version = version.split(' ').next().unwrap_or_default().to_owned();
        let major = u8::try_from(number / 10_000).unwrap_or(u8::MAX);
        if major < 13 {
            return Err(Error::new(format!("the server is PostgreSQL {version}, and pgvet trace needs 13 or newer")));
        }
        Ok(Self::new(major, version))
    }

    /// Announces that migrations run on a shared server, as a user who can do more than change one database.
    async fn announce_rights(&mut self, connection: &Connection) -> Result<(), Error> {
        let mut user = connection.rows(BEYOND_ONE_DATABASE).await?;
        if user.is_empty() && self.major >= 15 {
            user = connection.rows(CHANGES_PARAMETERS).await?;
        }
        if let Some(user) = user.first() {
            let user = crate::connection::text(user, 0);
            self.announcements.push(format!(
                "`{user}` can change more than one database: changes of roles, settings, tablespaces and files remain on \
                 this server after the run, and programs that a migration starts run there"
            ));
        }
        let owner = connection.rows(OWNS_DATABASES).await?;
        self.owner_of_databases = owner.first().map(|user| crate::connection::text(user, 0));
        Ok(())
    }
}

/// Drops a clone, and ends whatever sessions it has.
async fn drop_clone(administrator: &Connection, clone: &Address) -> Result<(), Error> {
    release(administrator, clone).await?;
    administrator.run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", clone.database_name())).await
}

/// Removes what keeps the database of a clone from being dropped.
async fn release(administrator: &Connection, clone: &Address) -> Result<(), Error> {
    // They hold locks.
    roll_back_prepared(administrator, clone).await?;
    drop_subscriptions(administrator, clone).await
}

/// Drops the subscriptions of a clone, which keep its database from being dropped, without a word to their publisher.
async fn drop_subscriptions(administrator: &Connection, clone: &Address) -> Result<(), Error> {
    let name = clone.database_name();
    let sql = format!(
        "SELECT pg_catalog.quote_ident(s.subname) FROM pg_catalog.pg_subscription s \
         JOIN pg_catalog.pg_database d ON d.oid = s.subdbid WHERE d.datname = '{name}'"
    );
    let subscriptions = administrator.rows(&sql).await?;
    if !subscriptions.is_empty() {
        let inside = Connection::open(clone, "provider").await?;
        for row in &subscriptions {
            let name = crate::connection::text(row, 0);
            let without_slot =
                format!("ALTER SUBSCRIPTION {name} DISABLE; ALTER SUBSCRIPTION {name} SET (slot_name = NONE)");
            inside.run(&format!("{without_slot}; DROP SUBSCRIPTION {name}")).await?;
        }
    }
    Ok(())
}

/// Rolls back the prepared transactions of a clone, which keep its database from being dropped.
async fn roll_back_prepared(administrator: &Connection, clone: &Address) -> Result<(), Error> {
    let name = clone.database_name();
    let sql = format!(
        "SELECT pg_catalog.quote_literal(p.gid) FROM pg_catalog.pg_prepared_xacts p WHERE p.database = '{name}'"
    );
    let prepared = administrator.rows(&sql).await?;
    if !prepared.is_empty() {
        let inside = Connection::open(clone, "provider").await?;
        for row in &prepared {
            inside.run(&format!("ROLLBACK PREPARED {}", crate::connection::text(row, 0))).await?;
        }
        inside.close().await;
    }
    Ok(())
}

/// A database to run migrations on.
#[derive(Debug, Clone)]
pub struct ThinClone {
    /// How the migration connects.
    pub database: Address,
    /// How the observer connects: to another database of the same server.
    pub observer: Address,
}

impl ThinClone {
    /// Reads the schema of the database from its catalogs.
    pub async fn schema(&self) -> Result<Schema, Error> {
        crate::schema::schema_of(&self.database, Duration::from_secs(60)).await
    }

    /// Runs SQL in the database and returns the rows of all its statements, each value as text.
    pub async fn query(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        let connection = Connection::open(&self.database, "question").await?;
        let values = |row: &SimpleQueryRow| (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
        Ok(connection.rows(sql).await?.iter().map(values).collect())
    }
}
