//! A server that logs every statement, as the place of a capture.

use crate::measure::tools::log;
use pgvet_capture::Place;
use pgvet_trace::provider::{Answer, CloneProvider, ServerInfo, ThinClone};
use pgvet_trace::server::Server;
use pgvet_trace::{Address, Error};
use std::fs;

/// A server whose log can be read, with one database at a time.
pub(super) struct Logged {
    server: Server,
    port: u16,
    databases: usize,
}

impl Logged {
    pub(super) fn start(major: u8) -> Result<Self, String> {
        let (server, port) = log::start(major)?;
        Ok(Self { server, port, databases: 0 })
    }

    fn database(&self) -> String {
        format!("sample_{}", self.databases)
    }

    /// A new database, and how to reach it without a proxy.
    pub(super) fn fresh(&mut self) -> Result<Place, String> {
        self.databases += 1;
        let created = self.server.query("postgres", &format!("CREATE DATABASE {}", self.database()));
        created.map_err(|error| error.to_string())?;
        Ok(Place {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            user: "postgres".to_owned(),
            password: "pgvet".to_owned(),
            database: self.database(),
        })
    }

    pub(super) fn drop(&mut self) -> Result<(), String> {
        let dropped = self.server.query("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.database()));
        dropped.map(drop).map_err(|error| error.to_string())
    }

    fn log(&self) -> std::path::PathBuf {
        self.server.log()
    }

    pub(super) fn log_length(&self) -> usize {
        fs::metadata(self.log()).map_or(0, |log| log.len()) as usize
    }

    /// The statements that sessions of samples have sent since then.
    pub(super) fn statements_since(&self, before: usize) -> Result<Vec<String>, String> {
        let text = fs::read(self.log()).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&text[before..]).into_owned();
        let statement = |record: &str| {
            let mut fields = record.splitn(4, log::FIELD);
            let (_, database, _, text) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            let sql = text.strip_prefix("LOG:  statement: ").map(str::to_owned);
            let executed = || Some(text.strip_prefix("LOG:  execute ")?.split_once(": ")?.1.to_owned());
            let sql = sql.or_else(executed).filter(|_| database.starts_with("sample_"))?;
            // The server indents further lines by a tab.
            Some(sql.trim().replace("\n\t", "\n"))
        };
        Ok(text.split(log::RECORD).filter_map(statement).collect())
    }
}

impl CloneProvider for Logged {
    fn name(&self) -> &'static str {
        "logged"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        let (major, version) = (self.server.major(), self.server.version().to_owned());
        Box::pin(async move { Ok(ServerInfo::new(major, version)) })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        // Its own connection is made on another thread, because this one is in a runtime.
        let created = std::thread::scope(|scope| {
            let place = scope.spawn(|| self.fresh()).join();
            place.unwrap_or_else(|_| Err("the database was not created".to_owned()))
        });
        let address = created.map_err(Error::new).and_then(|place| {
            let database = Address::try_from(self.server.config(&place.database))?;
            Ok(ThinClone { observer: database.clone(), database })
        });
        Box::pin(async move { address })
    }

    fn discard(&mut self, _: ThinClone) -> Answer<'_, ()> {
        let dropped = std::thread::scope(|scope| {
            let dropped = scope.spawn(|| self.drop()).join();
            dropped.unwrap_or_else(|_| Err("the database was not dropped".to_owned()))
        });
        Box::pin(async move { dropped.map_err(Error::new) })
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
