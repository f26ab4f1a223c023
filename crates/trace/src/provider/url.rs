//! A database that the user says is a clone.

use super::{Answer, CloneProvider, ServerInfo, ThinClone};
use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use std::time::{Duration, Instant};

/// How long sessions of others may take to end.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(50);

/// One database, which is used as it is and not taken away.
#[derive(Debug)]
pub struct Url {
    database: Address,
    used: bool,
}

impl Url {
    pub fn new(database: Address) -> Self {
        Self { database, used: false }
    }

    /// Another database of the same server, or the same one where there is none that lets us in.
    async fn observer(&self) -> Address {
        let own = self.database.database_name();
        for name in ["postgres", "template1"].into_iter().filter(|name| *name != own) {
            let address = self.database.database(name);
            if Connection::open(&address, "observer").await.is_ok() {
                return address;
            }
        }
        self.database.clone()
    }
}

/// Refuses what looks like production: a standby, or a database that others use.
async fn check(connection: &Connection) -> Result<(), Error> {
    let refuse = |message: String| Error::new(message).help("trace on a clone that nobody else uses");
    if connection.value::<String>("SELECT pg_catalog.pg_is_in_recovery()").await? == "t" {
        return Err(refuse("the database is a standby, on which no migration can run".to_owned()));
    }
    let others = other_sessions(connection).await?;
    if others > 0 {
        let sessions =
            if others == 1 { "another session uses".to_owned() } else { format!("{others} other sessions use") };
        return Err(refuse(format!("{sessions} the database, which a migration would block and change")));
    }
    Ok(())
}

/// How many others use the database. A session that was closed is listed until its process has ended, which gets a
/// moment. What sort of session others have is NULL for a role that may not read it; a process of the server itself has
/// no user then.
async fn other_sessions(connection: &Connection) -> Result<u32, Error> {
    let sql = "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = pg_catalog.current_database() \
               AND pid <> pg_catalog.pg_backend_pid() AND usesysid IS NOT NULL \
               AND coalesce(backend_type, 'client backend') IN ('client backend', 'walsender')";
    let asked = Instant::now();
    loop {
        let others: u32 = connection.value(sql).await?;
        if others == 0 || asked.elapsed() >= PATIENCE {
            return Ok(others);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

impl CloneProvider for Url {
    fn name(&self) -> &'static str {
        "url"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        Box::pin(async {
            let connection = Connection::open(&self.database, "provider").await?;
            check(&connection).await?;
            let mut info = ServerInfo::ask(&connection).await?;
            info.notes
                .push("transaction IDs and write-ahead log include those of other activity on the server".to_owned());
            (info.has_schema, info.is_shared) = (true, true);
            info.announce_rights(&connection).await?;
            Ok(info)
        })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(async {
            if self.used {
                return Err(Error::new("this run has already used the database, and pgvet cannot reset it")
                    .help("trace the migrations of one database at a time"));
            }
            self.used = true;
            Ok(ThinClone { database: self.database.clone(), observer: self.observer().await })
        })
    }

    fn discard(&mut self, _: ThinClone) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
