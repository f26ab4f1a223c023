//! `cargo xtask measure plans`: for how long the plans of `pgvet rewrite` block writes, and for how long the
//! migrations that they replace.

use pgvet_linter::rewrite::rewrite;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_trace::provider::Template;
use pgvet_trace::server::{Binaries, Options, Server};
use pgvet_trace::{Address, Error, MigrationTrace, Settings};
use std::fmt::Write as _;
use std::time::Duration;

const HISTORY: &str = include_str!("../../../../fixtures/rewrite/history.sql");
const ROWS: &str = include_str!("../../../../fixtures/rewrite/rows.sql");
const RECIPES: &str = include_str!("../../../../fixtures/rewrite/recipes.sql");

/// Maximum time that writes may wait for a statement of a plan.
pub const LIMIT: Duration = Duration::from_millis(50);

/// The server does nothing else meanwhile.
pub(super) const QUIET: [(&str, &str); 3] =
    [("autovacuum", "off"), ("max_wal_size", "4GB"), ("checkpoint_timeout", "1h")];

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Rows of each table.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    rows: u32,
    /// Majors, separated by commas.
    #[arg(long, value_name = "MAJORS", value_delimiter = ',', default_values_t = [14, 18])]
    pg_version: Vec<u8>,
    /// Number of runs of each recipe, of which the median is taken.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: usize,
    /// Only recipes whose text contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    recipe: String,
}

/// A recipe, and how long its two forms block writes.
#[derive(Debug)]
pub struct Compared {
    pub recipe: &'static str,
    pub original: Longest,
    pub plan: Longest,
}

/// The lock that blocks writes of a table for longest.
#[derive(Debug, Clone, Default)]
pub struct Longest {
    pub held: Duration,
    pub relation: String,
    /// The first statement of the transaction that holds it.
    pub statement: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let mut text = String::new();
    for major in &arguments.pg_version {
        let compared = measure(*major, arguments.rows, arguments.repeat, |text| text.contains(&arguments.recipe))?;
        let is_short = |one: &&Compared| one.plan.held <= LIMIT;
        let short = super::share(compared.iter().filter(is_short).count(), compared.len());
        let limit = LIMIT.as_millis();
        let _ = writeln!(
            text,
            "PostgreSQL {major}, {} rows: {short} plans block writes for at most {limit} ms",
            arguments.rows
        );
        for Compared { recipe, original, plan } in compared {
            let [before, after] = [&original, &plan].map(|longest| longest.held.as_secs_f64() * 1000.0);
            let mark = if plan.held > LIMIT { '!' } else { ' ' };
            let _ = writeln!(text, "{mark} {before:8.1} ms -> {after:6.1} ms  {recipe}");
            if plan.held > LIMIT {
                let _ = writeln!(text, "      {}: {}", plan.relation, plan.statement);
            }
        }
    }
    Ok(text)
}

/// Traces recipes and their plans, each on a copy of a database with so many rows in each table.
///
/// # Errors
/// A server that is missing or breaks, a recipe without a plan, a statement that is refused.
pub fn measure(major: u8, rows: u32, repeat: usize, wanted: impl Fn(&str) -> bool) -> Result<Vec<Compared>, String> {
    let failure = |error: Error| format!("PostgreSQL {major}: {error}");
    let settings = QUIET.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = Options { durable: true, alone: true, settings, ..Options::default() };
    let server = Binaries::find(Some(major)).and_then(|binaries| Server::start_with(&binaries, &options));
    let server = server.map_err(failure)?;
    for (database, sql) in
        [("postgres", "CREATE ROLE reader"), ("postgres", "CREATE DATABASE filled"), ("filled", HISTORY)]
    {
        server.query(database, sql).map_err(failure)?;
    }
    server.query("filled", &format!("SET pgvet.rows = {rows};\n{ROWS}")).map_err(failure)?;
    server.query("filled", "VACUUM ANALYZE").map_err(failure)?;
    server.query("filled", "CHECKPOINT").map_err(failure)?;
    let recipes = RECIPES.lines().filter(|line| !line.starts_with("--") && wanted(line));
    recipes.map(|recipe| compare(&server, recipe, repeat)).collect()
}

fn compare(server: &Server, recipe: &'static str, repeat: usize) -> Result<Compared, String> {
    let parse = |text: &str| parse_file(SourceFile::new("m.sql".to_owned(), text.to_owned()));
    let (history, original) = (parse(HISTORY), parse(recipe));
    let migration = |file, transaction| Migration { transaction, database: 1, ..Migration::new(file) };
    let before = Migration { report: false, ..migration(&history, TransactionMode::Autocommit) };
    let original = migration(&original, TransactionMode::Transaction);
    let settings = super::settings_for(PgVersion(server.major()));
    let plan = rewrite(&[before, original], &settings).map_err(|refusal| format!("{recipe}: {refusal:?}"))?;
    let files: Vec<(ParsedFile, bool)> =
        plan.files.iter().map(|file| (parse(&file.text()), file.transaction)).collect();
    let planned = files.iter().map(|(file, transaction)| {
        migration(file, if *transaction { TransactionMode::Transaction } else { TransactionMode::Autocommit })
    });
    let planned: Vec<Migration<'_>> = planned.collect();
    let traced = |migrations: &[Migration<'_>]| {
        longest(server, migrations, repeat).map_err(|error| format!("PostgreSQL {}: {recipe}: {error}", server.major()))
    };
    Ok(Compared { recipe, original: traced(&[original])?, plan: traced(&planned)? })
}

fn longest(server: &Server, migrations: &[Migration<'_>], repeat: usize) -> Result<Longest, String> {
    let address = Address::try_from(server.config("filled")).map_err(|error| error.to_string())?;
    let settings = Settings { effects_only: true, repeat, ..Settings::default() };
    let trace = pgvet_trace::run(migrations, &mut Template::new(address), &settings, &mut |_| {});
    let trace = trace.map_err(|error| error.to_string())?;
    if let Some((statement, failure)) = trace.migrations.iter().find_map(MigrationTrace::failure) {
        return Err(format!("{}: {}", statement.sql, failure.message));
    }
    let all = trace.migrations.iter().flat_map(blocking);
    Ok(all.max_by_key(|longest| longest.held).unwrap_or_default())
}

/// The locks that blocked writes in a migration.
fn blocking(migration: &MigrationTrace) -> impl Iterator<Item = Longest> {
    migration.transactions.iter().flat_map(|transaction| {
        let is_long = |one: &&pgvet_trace::Blocked| one.mode.conflicts_with(LockMode::RowExclusive);
        transaction.blocked.iter().filter(is_long).map(|one| {
            let first = transaction.statements.first().and_then(|at| migration.statements.get(*at));
            Longest {
                held: one.held.best,
                relation: one.relation.to_string(),
                statement: first.map_or_else(String::new, |first| first.sql.clone()),
            }
        })
    })
}
