//! A copy of a data directory, started as a server of its own. Where the file system can, the copy shares its blocks
//! with the original.

use super::backup::RunningServer;
use super::{Answer, CloneProvider, ServerInfo, ThinClone};
use crate::Error;
use crate::connection::Connection;
use crate::server::{Binaries, CopiedData, Options, Server};
use std::fs;
use std::path::{Path, PathBuf};

/// What to copy, and how to enter it.
#[derive(Debug, Clone)]
pub struct DataDirOptions {
    /// The data directory of a server, which may run, or a snapshot of one.
    pub folder: PathBuf,
    pub database: String,
    /// A superuser of that server.
    pub user: String,
    /// The folder of the server's programs; else those of its major are looked for.
    pub binaries: Option<PathBuf>,
}

/// Copies of a data directory.
#[derive(Debug)]
pub struct DataDir {
    options: DataDirOptions,
    server: Option<Server>,
    thin: bool,
}

impl DataDir {
    pub fn new(options: DataDirOptions) -> Self {
        Self { options, server: None, thin: false }
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
        let copy = match RunningServer::of(folder) {
            Some(running) => running.copy(folder, major, &self.options.user, &self.options.database).await?,
            None => CopiedData::new(folder)?,
        };
        self.thin = copy.thin;
        // What the original loads, archives or replicates is no business of the copy.
        let settings = [
            ("autovacuum", "off"),
            ("shared_preload_libraries", ""),
            ("archive_mode", "off"),
            ("max_wal_senders", "0"),
            ("checkpoint_timeout", "1h"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let server = Server::start_on(
            &binaries,
            copy,
            &self.options.user,
            &Options { durable: true, settings, ..Options::default() },
        )?;
        Ok(self.server.insert(server))
    }
}

/// The major that a data directory belongs to.
fn major(folder: &Path) -> Result<u8, Error> {
    let text = fs::read_to_string(folder.join("PG_VERSION")).map_err(|error| {
        Error::new(format!("`{}` is no data directory of PostgreSQL: {error}", folder.display()))
            .help("name the folder that has the file PG_VERSION, and run pgvet as a user who may read it")
    })?;
    text.trim().parse().map_err(|_| Error::new(format!("`{}` is of PostgreSQL {}", folder.display(), text.trim())))
}

/// What is in other folders would be shared with the original.
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
                info.notes.push("the file system cannot share blocks, so the copy is a full one".to_owned());
            }
            info.has_schema = true;
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
