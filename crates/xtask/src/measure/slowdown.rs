//! `cargo xtask measure slowdown`: by how much the observer slows down the statements that it watches.

use super::median::median;
use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::provider::Template;
use pgvet_trace::server::{Binaries, Options, Server};
use pgvet_trace::{Address, Settings};
use std::fmt::Write as _;
use std::time::Duration;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The server's major.
    #[arg(long, value_name = "MAJOR", default_value_t = 18)]
    pg_version: u8,
    /// Rows of the table: enough for statements of a second and more.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    rows: u32,
    /// How often each statement is run, traced and not traced in turn.
    #[arg(long, value_name = "COUNT", default_value_t = 9)]
    rounds: u32,
}

/// Statements that process all rows of the table.
const STATEMENTS: [&str; 3] = [
    "UPDATE orders SET total = total + 1",
    "CREATE INDEX ON orders (note)",
    "ALTER TABLE orders ALTER COLUMN total TYPE bigint",
];

/// Nothing else is to happen on the server meanwhile.
const QUIET: [(&str, &str); 3] = [("autovacuum", "off"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "1h")];

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let settings = QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let binaries = Binaries::find(Some(arguments.pg_version)).map_err(|error| error.to_string())?;
    let server = Server::start_with(&binaries, &Options { settings, ..Options::default() });
    let server = server.map_err(|error| error.to_string())?;
    query(&server, "postgres", "CREATE DATABASE shop")?;
    let rows = arguments.rows;
    let table = format!(
        "CREATE TABLE orders AS SELECT g AS id, g % 1000 AS total, md5(g::text) AS note FROM generate_series(1, {rows}) g"
    );
    query(&server, "shop", &table)?;
    query(&server, "shop", "VACUUM ANALYZE orders")?;
    let mut text = format!("PostgreSQL {}, {rows} rows, medians of {} runs\n", server.version(), arguments.rounds);
    for sql in STATEMENTS {
        let (mut plain, mut traced) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds.max(1) {
            plain.push(untraced(&server, sql)?);
            traced.push(trace(&server, sql)?);
        }
        let median = |times: Vec<Duration>| median(times.iter().map(|time| time.as_secs_f64() * 1e3).collect());
        let (plain, traced) = (median(plain), median(traced));
        let percent = (traced / plain - 1.0) * 100.0;
        let _ = writeln!(text, "{percent:+5.1} %  {plain:.0} ms alone, {traced:.0} ms traced  {sql}");
    }
    Ok(text)
}

fn query(server: &Server, database: &str, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    server.query(database, sql).map_err(|error| format!("{error}: {sql}"))
}

/// The time of a transaction as the server's clock tells it, on a fresh copy of the database.
fn untraced(server: &Server, sql: &str) -> Result<Duration, String> {
    let strategy = if server.major() >= 15 { "STRATEGY file_copy" } else { "" };
    query(server, "postgres", &format!("CREATE DATABASE plain TEMPLATE shop {strategy}"))?;
    let now = "SELECT extract(epoch FROM clock_timestamp())";
    let rows = query(server, "plain", &format!("{now}; BEGIN; {sql}; COMMIT; {now}"))?;
    query(server, "postgres", "DROP DATABASE plain")?;
    let seconds: Option<Vec<f64>> = rows.iter().map(|row| row.first()?.as_ref()?.parse().ok()).collect();
    match seconds.as_deref() {
        Some([began, ended]) => Ok(Duration::from_secs_f64((ended - began).max(0.0))),
        _ => Err(format!("the clock of the server says {rows:?}")),
    }
}

/// The time of the same transaction that a trace tells, on a fresh copy too.
fn trace(server: &Server, sql: &str) -> Result<Duration, String> {
    let file = parse_file(SourceFile::new("m.sql".to_owned(), sql.to_owned()));
    let migration = Migration { database: 1, ..Migration::new(&file) };
    let address = Address::try_from(server.config("shop")).map_err(|error| error.to_string())?;
    let trace = pgvet_trace::run(&[migration], &mut Template::new(address), &Settings::default(), &mut |_| {});
    let trace = trace.map_err(|error| error.to_string())?;
    Ok(trace.migrations.iter().map(|migration| migration.duration).sum())
}
