//! Where commands run migrations: clones of databases, and servers of our own.

use crate::error::Failure;
use crate::trace_args::{CloneArgs, On};
use pgvet_trace::Address;
use pgvet_trace::provider::{
    CloneProvider, DataDir, DataDirOptions, Dblab, DblabOptions, Scratch, ScratchOptions, Template, Url, parse_address,
    with_password,
};

/// The provider of clones. `major` is the version of a server of our own, `durable` whether it writes as production does.
pub(super) fn provider(args: &CloneArgs, major: Option<u8>, durable: bool) -> Result<Box<dyn CloneProvider>, Failure> {
    Ok(match args.on {
        On::Scratch => {
            Box::new(Scratch::new(ScratchOptions { binaries: args.pg_bin.clone(), major, durable, setup: Vec::new() }))
        }
        On::Template => Box::new(Template::new(address(args)?)),
        On::Url if !args.this_is_a_clone => {
            return Err(Failure::new("--on url runs the migrations on the database itself, and blocks and changes it")
                .help("add --this-is-a-clone if this database is a clone"));
        }
        On::Url => Box::new(Url::new(address(args)?)),
        On::Datadir => Box::new(data_directory(args)?),
        On::Dblab => Box::new(dblab(args)?),
    })
}

fn data_directory(args: &CloneArgs) -> Result<DataDir, Failure> {
    let missing = |what: &str, help: &str| Failure::new(format!("--on datadir needs {what}")).help(help);
    Ok(DataDir::new(DataDirOptions {
        folder: args.data.clone().ok_or_else(|| missing("a data directory", "name it: --data DIR"))?,
        database: args.database.clone().ok_or_else(|| missing("a database", "name it: --database NAME"))?,
        user: std::env::var("PGUSER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "postgres".to_owned()),
        binaries: args.pg_bin.clone(),
    })
    .with_password()?)
}

pub(super) fn dblab(args: &CloneArgs) -> Result<Dblab, Failure> {
    let missing = |what: &str, help: &str| Failure::new(format!("--on dblab needs {what}")).help(help);
    let url = args.dblab.clone();
    let token = std::env::var("DBLAB_TOKEN").ok().filter(|token| !token.is_empty());
    Ok(Dblab::new(DblabOptions {
        url: url.ok_or_else(|| missing("an address", "name it: --dblab https://HOST:PORT"))?,
        token: token.ok_or_else(|| missing("a token", "set DBLAB_TOKEN"))?,
        database: args.database.clone().ok_or_else(|| missing("a database", "name it: --database NAME"))?,
        branch: args.dblab_branch.clone(),
        snapshot: None,
    }))
}

pub(super) fn address(args: &CloneArgs) -> Result<Address, Failure> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let text = match &args.database {
        Some(text) => text,
        None if is_set("PGSERVICE") || is_set("PGDATABASE") => "",
        None => {
            return Err(Failure::new("--on template and --on url need a database")
                .help("name it: --database postgres://HOST/DATABASE, or --database service=NAME"));
        }
    };
    Ok(with_password(parse_address(text)?)?)
}
