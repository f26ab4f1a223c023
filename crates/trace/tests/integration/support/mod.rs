//! A server with a database of a shop, and migrations that are traced on it.

use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_trace::provider::{CloneProvider, Config};
use pgvet_trace::server::{Options, Server, testing};
use pgvet_trace::{Error, Settings, Trace, run};

fn parsed(text: &str) -> ParsedFile {
    parse_file(SourceFile::new("m.sql".to_owned(), text.to_owned()))
}

pub(crate) fn trace(provider: &mut dyn CloneProvider, sql: &str) -> Result<Trace, Error> {
    let file = parsed(sql);
    let migration = Migration { database: 1, ..Migration::new(&file) };
    run(&[migration], provider, &Settings::default(), &mut |_| {})
}

pub(crate) fn query(server: &Server, database: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    server.query(database, sql).expect("the server answers")
}

/// A server with a database `shop` that has a table with rows.
pub(crate) fn shop(major: u8) -> Option<(Server, Config)> {
    let server = shop_with(major, &[])?;
    query(&server, "shop", "INSERT INTO orders SELECT generate_series(1, 500)");
    let config = server.config("shop");
    Some((server, config))
}

/// The same with other settings and an empty table.
pub(crate) fn shop_with(major: u8, settings: &[(&str, &str)]) -> Option<Server> {
    let binaries = testing::binaries(major)?;
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let server = Server::start_with(&binaries, &Options { settings, ..Options::default() }).expect("it starts");
    query(&server, "postgres", "CREATE DATABASE shop");
    query(&server, "shop", "CREATE TABLE orders (id int PRIMARY KEY)");
    Some(server)
}

pub(crate) fn columns(server: &Server) -> Option<String> {
    let sql = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum > 0";
    query(server, "shop", sql)[0][0].clone()
}
