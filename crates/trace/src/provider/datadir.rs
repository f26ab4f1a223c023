//! A copy of a data directory, started as a server of its own. Where the file system can, the copy shares its blocks
//! with the original.

use super::backup::{RunningServer, no_backup};
use super::control_file::higher_settings;
use super::prompt::with_password_or;
use super::{Answer, CloneProvider, ServerInfo, ThinClone};
use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::server::{Binaries, CopiedData, Options, Server};
use std::fs;
use std::path::{Path, PathBuf};

/// The data directory to copy, and how to connect to its server.
#[derive(Debug, Clone)]
pub struct DataDirOptions {
    /// The data directory of a server, which may run, or a snapshot of one.
    pub folder: PathBuf,
    pub database: String,
    /// A superuser of that server.
    pub user: String,
    /// The folder of the server's programs; else those of its major are searched for.
    pub binaries: Option<PathBuf>,
}

/// Settings that stop the copy from loading, writing or replicating as the original does. Its configuration is not
/// copied, so that these come on top of PostgreSQL's defaults.
const SETTINGS: [(&str, &str); 5] = [
    ("autovacuum", "off"),
    ("archive_mode", "off"),
    ("max_wal_senders", "0"),
    // Its subscriptions would take what the original has not received yet.
    ("max_logical_replication_workers", "0"),
    ("checkpoint_timeout", "1h"),
];

/// Subscriptions of the copy name the publisher of the original, and its slot there, which DROP SUBSCRIPTION would drop.
const CUT_OFF: &str = "UPDATE pg_catalog.pg_subscription \
     SET subenabled = false, subslotname = NULL, subconninfo = 'host=/nonexistent'";

/// Copies of a data directory.
#[derive(Debug)]
pub struct DataDir {
    options: DataDirOptions,
    /// How to ask the running server for a backup, where that was found out before.
    running: Option<Address>,
    server: Option<Server>,
    thin: bool,
}

impl DataDir {
    pub fn new(options: DataDirOptions) -> Self {
        Self { options, running: None, server: None, thin: false }
    }

    /// Asks for the password of a running server, where it wants one. Not for async code.
    pub fn with_password(mut self) -> Result<Self, Error> {
        let DataDirOptions { folder, user, database, .. } = &self.options;
        if let Some(running) = RunningServer::of(folder) {
            let address = running.address(user, database)?;
            self.running = Some(with_password_or(address, &|error| no_backup(folder, &error))?);
        }
        Ok(self)
    }

    async fn start(&mut self) -> Result<&Server, Error> {
        let folder = &self.options.folder;
        let major = major(folder)?;
        refuse_what_cannot_be_copied(folder)?;
        let binaries = match &self.options.binaries {
            Some(folder) => Binaries::in_folder(folder)?,
            None => Binaries::find(Some(major))?,
        };
        if binaries.major != major {
            let data = folder.display();
            return Err(Error::new(format!("`{data}` is of PostgreSQL {major}, not {}", binaries.version)));
        }
        let copy = self.copy(major).await?;
        self.thin = copy.thin;
        let mut settings = higher_settings(copy.data());
        settings.extend(SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let options = Options { durable: true, settings, alone: true, ..Options::default() };
        let server = Server::start_on(&binaries, copy, &self.options.user, &options)?;
        Connection::open(&server.address("template1")?, "provider").await?.run(CUT_OFF).await?;
        Ok(self.server.insert(server))
    }

    async fn copy(&self, major: u8) -> Result<CopiedData, Error> {
        let DataDirOptions { folder, user, database, .. } = &self.options;
        let Some(running) = RunningServer::of(folder) else { return CopiedData::new(folder).await };
        let address = match &self.running {
            Some(address) => address.clone(),
            None => running.address(user, database)?,
        };
        running.copy(folder, major, &address).await
    }
}

/// The major that a data directory belongs to.
fn major(folder: &Path) -> Result<u8, Error> {
    let text = fs::read_to_string(folder.join("PG_VERSION")).map_err(|error| {
        Error::new(format!("`{}` is not a data directory of PostgreSQL: {error}", folder.display()))
            .help("name the folder that has the file PG_VERSION, and run pgvet as a user who may read it")
    })?;
    text.trim().parse().map_err(|_| Error::new(format!("`{}` is of PostgreSQL {}", folder.display(), text.trim())))
}

/// Refuses links to other folders, which would be shared with the original.
fn refuse_what_cannot_be_copied(folder: &Path) -> Result<(), Error> {
    let shown = folder.display();
    let mut tablespaces = fs::read_dir(folder.join("pg_tblspc")).into_iter().flatten();
    if tablespaces.next().is_some() {
        return Err(Error::new(format!("`{shown}` has tablespaces in other folders, which would not be copied")));
    }
    if fs::symlink_metadata(folder.join("pg_wal")).is_ok_and(|log| log.is_symlink()) {
        return Err(Error::new(format!(
            "`{shown}` has its write-ahead log in another folder, which would not be copied"
        )));
    }
    Ok(())
}

impl CloneProvider for DataDir {
    fn name(&self) -> &'static str {
        "datadir"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        Box::pin(async {
            let database = self.options.database.clone();
            let address = self.start().await?.address(&database)?;
            let mut info = ServerInfo::ask(&Connection::open(&address, "provider").await?).await?;
            if !self.thin {
                info.notes.push("the file system cannot share blocks, so pgvet made a full copy".to_owned());
            }
            info.notes
                .push("the copy runs with PostgreSQL's default settings, not with those of the original".to_owned());
            (info.has_schema, info.reaches_others) = (true, false);
            Ok(info)
        })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(async {
            let database = self.options.database.clone();
            let server = match self.server.take() {
                Some(server) => self.server.insert(server),
                None => self.start().await?,
            };
            Ok(ThinClone { database: server.address(&database)?, observer: server.address("template1")? })
        })
    }

    fn trouble(&mut self) -> Option<String> {
        self.server.as_mut().and_then(Server::end)
    }

    fn discard(&mut self, _: ThinClone) -> Answer<'_, ()> {
        self.destroy()
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        self.server = None;
        Box::pin(async { Ok(()) })
    }
}
