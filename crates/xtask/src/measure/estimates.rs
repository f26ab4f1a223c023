//! `cargo xtask measure estimates`: how far estimated lock times are from measured ones, once the server was calibrated
//! with another table.

use super::plans::QUIET;
use pgvet_linter::settings::Settings;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::throughput::{Size, Throughput, Work};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::provider::Url;
use pgvet_trace::server::{Binaries, Options, Server};
use pgvet_trace::{Address, Error, MigrationTrace, Trace};
use std::fmt::Write as _;
use std::time::Duration;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Rows of the tables whose lock times are estimated.
    #[arg(long, value_name = "ROWS", value_delimiter = ',', default_values_t = [1_000_000, 2_000_000, 5_000_000])]
    rows: Vec<u32>,
    /// Rows of the table that calibrates.
    #[arg(long, value_name = "ROWS", default_value_t = 1_000_000)]
    calibrate: u32,
    /// The major.
    #[arg(long, value_name = "MAJOR", default_value_t = 18)]
    pg_version: u8,
}

/// Estimates may be so many times too high or too low.
const FACTOR: f64 = 2.0;

/// A table with generated rows, and a statement for each sort of work.
struct Shape {
    /// `:rows` is how many rows it gets.
    rows: &'static str,
    statements: [(Work, &'static str); 4],
}

/// Narrow rows, one index.
const ORDERS: Shape = Shape {
    rows: "CREATE TABLE customers (id int PRIMARY KEY);
        INSERT INTO customers SELECT g FROM generate_series(0, 99999) g;
        CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, state text, total int, made timestamptz);
        INSERT INTO orders SELECT g, g * 7919 % 100000, 'state ' || g % 5, g % 1000, now()
            FROM generate_series(1::bigint, :rows) g;",
    statements: [
        (Work::Scan, "ALTER TABLE orders ALTER state SET NOT NULL;"),
        (Work::Rewrite, "ALTER TABLE orders ALTER total TYPE bigint;"),
        (Work::IndexBuild, "CREATE INDEX ON orders (customer_id);"),
        (Work::ForeignKey, "ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers;"),
    ],
};

/// The table of [`EVENTS`], and the one that it refers to.
const TABLE: &str = "events";
const REFERENCED: &str = "accounts";

/// Wide rows with more columns, two indexes, and a larger table to refer to.
const EVENTS: Shape = Shape {
    rows: "CREATE TABLE accounts (id bigint PRIMARY KEY, name text);
        INSERT INTO accounts SELECT g, 'account ' || g FROM generate_series(0, :rows / 5 - 1) g;
        CREATE TABLE events (id bigint PRIMARY KEY, at timestamptz NOT NULL, account_id bigint, kind int, source text,
            payload text, score numeric(10, 2));
        INSERT INTO events SELECT g, '2026-01-01'::timestamptz + g * 7919 % :rows * interval '1 second',
            g * 104729 % (:rows / 5), g % 50, 'source ' || g % 1000, repeat('payload ', 20), g % 10000 / 100.0
            FROM generate_series(1::bigint, :rows) g;
        CREATE INDEX ON events (at);",
    statements: [
        (Work::Scan, "ALTER TABLE events ALTER payload SET NOT NULL;"),
        (Work::Rewrite, "ALTER TABLE events ALTER kind TYPE bigint;"),
        (Work::IndexBuild, "CREATE INDEX ON events (account_id);"),
        (Work::ForeignKey, "ALTER TABLE events ADD FOREIGN KEY (account_id) REFERENCES accounts;"),
    ],
};

/// A statement, with the time that was estimated for it and the one for which its lock was held.
struct Compared {
    rows: u32,
    statement: &'static str,
    estimated: Duration,
    traced: Duration,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.estimated.as_secs_f64() / self.traced.as_secs_f64()
    }

    fn is_near(&self) -> bool {
        (1.0 / FACTOR..=FACTOR).contains(&self.ratio())
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let failure = |error: Error| format!("PostgreSQL {}: {error}", arguments.pg_version);
    let settings = QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = Options { durable: true, alone: true, settings, ..Options::default() };
    let binaries = Binaries::find(Some(arguments.pg_version)).map_err(failure)?;
    let server = Server::start_with(&binaries, &options).map_err(failure)?;
    let mut throughput = Throughput::default();
    with_database(&server, &ORDERS, arguments.calibrate, |database| {
        throughput.replace(&trace(&ORDERS, database)?.1);
        Ok(())
    })?;
    let mut compared = Vec::new();
    for rows in &arguments.rows {
        with_database(&server, &EVENTS, *rows, |database| {
            compared.extend(compare(*rows, database, throughput)?);
            Ok(())
        })?;
    }
    let text = shown(arguments, throughput, &compared);
    if compared.iter().all(Compared::is_near) { Ok(text) } else { Err(text) }
}

fn shown(arguments: &Arguments, throughput: Throughput, compared: &[Compared]) -> String {
    let near = super::share(compared.iter().filter(|one| one.is_near()).count(), compared.len());
    let mut text = format!(
        "PostgreSQL {}, calibrated with {} rows: {near} estimates are within a factor of {FACTOR}\n{throughput}\n",
        arguments.pg_version, arguments.calibrate
    );
    let _ = writeln!(text, "{:>10}  {:>9}  {:>9}  {:>5}", "rows", "estimated", "traced", "ratio");
    for one in compared {
        let [estimated, traced] = [one.estimated, one.traced].map(|time| time.as_secs_f64());
        let (rows, ratio, statement) = (one.rows, one.ratio(), one.statement);
        let _ = writeln!(text, "{rows:>10}  {estimated:>7.2} s  {traced:>7.2} s  {ratio:>5.2}  {statement}");
    }
    text
}

/// Does something with a database that has the table, and removes it.
fn with_database(
    server: &Server,
    shape: &Shape,
    rows: u32,
    work: impl FnOnce(&Address) -> Result<(), String>,
) -> Result<(), String> {
    let query = |database: &str, sql: &str| server.query(database, sql).map_err(|error| error.to_string());
    query("postgres", "CREATE DATABASE filled")?;
    query("filled", &shape.rows.replace(":rows", &rows.to_string()))?;
    query("filled", "VACUUM ANALYZE")?;
    query("filled", "CHECKPOINT")?;
    work(&Address::try_from(server.config("filled")).map_err(|error| error.to_string())?)?;
    query("postgres", "DROP DATABASE filled").map(drop)
}

type Measures = Vec<(Work, Size, Duration)>;

/// Runs the statements of the shape, each in a transaction of its own; returns what they show of the server's speed.
fn trace(shape: &Shape, database: &Address) -> Result<(Trace, Measures), String> {
    let text = shape.statements.map(|(_, statement)| statement).join("\n");
    let file = parse_file(SourceFile::new("m.sql".to_owned(), text));
    let migrations = [Migration { transaction: TransactionMode::Autocommit, database: 1, ..Migration::new(&file) }];
    let mut provider = Url::new(database.clone());
    let trace = pgvet_trace::run(&migrations, &mut provider, &pgvet_trace::Settings::default(), &mut |_| {});
    let trace = trace.map_err(|error| error.to_string())?;
    if let Some((statement, failure)) = trace.migrations.iter().find_map(MigrationTrace::failure) {
        return Err(format!("{}: {}", statement.sql, failure.message));
    }
    let measures = pgvet_trace::calibrate(&trace, &migrations);
    Ok((trace, measures))
}

fn compare(rows: u32, database: &Address, throughput: Throughput) -> Result<Vec<Compared>, String> {
    let mut settings = Settings::default();
    settings.add_statistics(
        &pgvet_trace::snapshot(database, std::time::Duration::ZERO).map_err(|error| error.to_string())?,
    );
    let [table, referenced] = [TABLE, REFERENCED].map(|name| settings.table("public", name));
    let size = Size::of(&table, referenced.rows).ok_or("the snapshot does not know the table")?;
    let (trace, _) = trace(&EVENTS, database)?;
    let transactions = trace.migrations.iter().flat_map(|migration| &migration.transactions);
    let compared = EVENTS.statements.iter().zip(transactions).map(|((work, statement), transaction)| {
        let blocked = transaction.blocked.iter().filter(|one| one.relation.name == TABLE);
        let traced = blocked.map(|one| one.held.best).max().unwrap_or_default();
        Compared { rows, statement, estimated: throughput.time(*work, size), traced }
    });
    Ok(compared.collect())
}
