//! A server of our own, empty until the history has been replayed.

use super::{AnnouncedClone, Answer, CloneProvider, ServerInfo, ThinClone, drop_clone};
use crate::Error;
use crate::connection::Connection;
use crate::server::{Binaries, Options, SUPERUSER, Server};
use std::path::PathBuf;

/// A private server in a temporary folder.
#[derive(Debug, Default)]
pub struct Scratch {
    options: ScratchOptions,
    /// The programs of the server, once they were searched for.
    binaries: Option<Binaries>,
    server: Option<Server>,
    created: u32,
}

/// How a scratch server is made.
#[derive(Debug, Clone, Default)]
pub struct ScratchOptions {
    /// The folder of the server's programs; else they are searched for.
    pub binaries: Option<PathBuf>,
    /// The major version; else the newest that is installed.
    pub major: Option<u8>,
    /// Wait for the disk, as production does: for times that mean something.
    pub durable: bool,
    /// SQL that is run once on the new server, for roles and tablespaces; one text is one query.
    pub setup: Vec<String>,
}

/// Nobody else may use XIDs or write to the log while the migration is measured.
const QUIET: [(&str, &str); 4] = [
    ("autovacuum", "off"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "1h"),
    // A subscription that a migration makes must not take what belongs to another subscriber.
    ("max_logical_replication_workers", "0"),
];

/// Note about figures of a run without rows.
const EMPTY: &str =
    "the tables have only the rows that the migrations insert, so times say little; --rows generates more rows";

/// Announcement on a system that does not isolate the network of a server.
const SHARED_NETWORK: &str = "this server is not cut off from the network: programs that a migration starts, and \
                              connections that it makes with its own options, can reach other machines";

const SHARED_PROCESSES: &str =
    "this server has no process namespace of its own: programs that a migration starts can outlive the trace";

const SHARED_USER: &str = "this server runs as you: programs that a migration starts can read the environment of your other \
                           processes";

impl Scratch {
    pub fn new(options: ScratchOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// With a server that runs already. It can be started on another thread.
    ///
    /// # Errors
    /// If there are no programs of a server, or it does not start.
    pub fn running_server(options: ScratchOptions) -> Result<Self, Error> {
        let mut scratch = Self::new(options);
        scratch.running()?;
        Ok(scratch)
    }

    /// Finds the programs of the server.
    fn binaries(&mut self) -> Result<Binaries, Error> {
        if let Some(binaries) = &self.binaries {
            return Ok(binaries.clone());
        }
        let binaries = match &self.options.binaries {
            Some(folder) => Binaries::in_folder(folder)?,
            None => Binaries::find(self.options.major)?,
        };
        if let Some(wanted) = self.options.major.filter(|wanted| *wanted != binaries.major) {
            let folder = binaries.folder.display();
            return Err(Error::new(format!("`{folder}` has PostgreSQL {}, not {wanted}", binaries.version)));
        }
        Ok(self.binaries.insert(binaries).clone())
    }

    fn start(&mut self) -> Result<Server, Error> {
        let binaries = self.binaries()?;
        let settings = QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let durable = self.options.durable;
        Server::start_with(&binaries, &Options { durable, settings, alone: true, ..Options::default() })
    }

    /// Copies a clone that nobody is connected to.
    pub(crate) async fn copy(&mut self, clone: &ThinClone) -> Result<ThinClone, Error> {
        self.create_database(&format!("TEMPLATE {}", clone.database.database_name())).await
    }

    async fn create_database(&mut self, options: &str) -> Result<ThinClone, Error> {
        let name = self.next_name();
        self.created += 1;
        let server = self.running()?;
        let administrator = Connection::open(&server.address("postgres")?, "provider").await?;
        administrator.run(&format!("CREATE DATABASE {name} {options}")).await?;
        Ok(ThinClone { database: server.address(&name)?, observer: server.address("postgres")? })
    }

    /// The name of the next database.
    fn next_name(&self) -> String {
        format!("pgvet_{}", self.created + 1)
    }

    fn running(&mut self) -> Result<&Server, Error> {
        let server = match self.server.take() {
            Some(server) => server,
            None => self.start()?,
        };
        Ok(self.server.insert(server))
    }
}

impl CloneProvider for Scratch {
    fn name(&self) -> &'static str {
        "scratch"
    }

    fn announced(&mut self) -> Result<Option<AnnouncedClone>, Error> {
        self.binaries()?;
        Ok(Some(AnnouncedClone { user: SUPERUSER.to_owned(), database: self.next_name() }))
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        Box::pin(async {
            let (setup, durable) = (self.options.setup.clone(), self.options.durable);
            let server = self.running()?;
            let administrator = Connection::open(&server.address("postgres")?, "provider").await?;
            for sql in setup {
                administrator.run(&sql).await?;
            }
            let notes = if durable { Vec::new() } else { vec![EMPTY.to_owned()] };
            let version = server.version().to_owned();
            let announcements = [
                (server.has_own_network(), SHARED_NETWORK),
                (server.has_own_processes(), SHARED_PROCESSES),
                (server.is_apart(), SHARED_USER),
            ];
            let announcements = announcements.into_iter().filter(|(is_isolated, _)| !is_isolated);
            let announcements = announcements.map(|(_, text)| text.to_owned()).collect();
            let info = ServerInfo::new(server.major(), version);
            Ok(ServerInfo { notes, reaches_others: false, announcements, ..info })
        })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(self.create_database(""))
    }

    fn trouble(&mut self) -> Option<String> {
        self.server.as_mut().and_then(Server::end)
    }

    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()> {
        Box::pin(
            async move { drop_clone(&Connection::open(&clone.observer, "provider").await?, &clone.database).await },
        )
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        // The databases go with the server.
        self.server = None;
        Box::pin(async { Ok(()) })
    }
}
