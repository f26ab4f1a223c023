//! `cargo xtask builtin`: reads the system catalogs of real servers and writes `crates/model/src/builtin/data`.
//!
//! Needs `psql` on the PATH, and for every major version a directory with its `initdb`, `pg_ctl` and `postgres`.

mod extensions;
mod merge;
mod oids;
mod server;
mod sql;
mod write;

use oids::OidMap;
use server::Server;
use std::path::{Path, PathBuf};

/// The arguments of `cargo xtask builtin`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directories with the programs of one server each, for example `/usr/lib/postgresql/15/bin`, one per major version.
    #[arg(long = "pg-bin", value_name = "DIR", num_args = 1.., required = true)]
    servers: Vec<PathBuf>,
    /// The directory of a server with the contrib modules; without it the table of extensions stays as it is.
    #[arg(long, value_name = "DIR")]
    contrib: Option<PathBuf>,
}

/// One row of a query, one text per column.
type Row = Vec<String>;

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/src/builtin/data");
    let mut servers = arguments.servers.iter().map(|bin| Server::start(bin)).collect::<Result<Vec<_>, _>>()?;
    servers.sort_by_key(Server::major);
    let oids = OidMap::read(&servers)?;
    for table in &write::TABLES {
        let rows = merge::read(&servers, &oids, table)?;
        write::table(&directory, table, &rows)?;
    }
    if let Some(bin) = &arguments.contrib {
        extensions::generate(&Server::start(bin)?, &directory)?;
    }
    Ok(())
}
