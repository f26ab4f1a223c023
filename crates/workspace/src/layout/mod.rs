//! The layout of a file for the program that runs it: which parts, in which direction, in which transaction.
//!
//! | Tool | Transaction | Without |
//! |---|---|---|
//! | Flyway | one per file | chosen by itself, `executeInTransaction=false` in `<file>.conf` |
//! | Liquibase | one per changeset | `runInTransaction:false` |
//! | Sqitch | none (psql) | |
//! | goose | one per file | `-- +goose NO TRANSACTION`, then statement by statement |
//! | sql-migrate | one per file | `-- +migrate Up notransaction`, then statement by statement |
//! | dbmate | one per file | `transaction:false`, then one string |
//! | golang-migrate | none, but one string | |
//! | bun, by names of golang-migrate | none, but one string for each part | `.tx.` in the name: one per file |
//! | pop | one per file | `.autocommit.` in the name (ory/x alone), then one string |
//! | sqlx | one per file | `-- no-transaction` at the start, then one string (0.8 and later) |
//! | refinery | one per file | |
//! | Diesel | one per file | `run_in_transaction = false` in `metadata.toml`, then one string |
//! | Hasura | one per file | none |
//! | Prisma | none, but one string | |
//! | Drizzle | one for all files | |
//! | Atlas | one per file | `-- atlas:txmode none` |
//! | Supabase | one pipeline per file | chosen by itself (CLI 2.110 and later) |
//! | node-pg-migrate | one for all files | |
//! | captured | as it was seen | |
//! | graphile-migrate | one per file | `--! no-transaction`, then one string |
//! | Migratus | one per file | `-- :disable-transaction`, then a connection for each part |
//! | yuniql | one for all files | |
//! | grate | none | |
//! | Evolve | one per file | `-- evolve-tx-off` in the first line, then one string |
//! | `DbUp` | none, or as the code says | |
//! | Knex, `TypeORM`, Alembic | one for all files that their migrations send | said in the migration, then one string |
//! | Django | one per migration | `atomic = False` |
//!
//! Several statements in one string are one implicit transaction (PostgreSQL 18 documentation, 54.2.2.1). Orders, sessions
//! and what follows a COMMIT are in `model.rs`.

mod annotations;
mod bun;
pub mod captured;
mod changed_text;
mod crate_version;
mod delimiter;
mod description;
mod diesel;
mod dotnet;
mod drizzle;
pub(crate) mod explicit_order;
mod file_name;
mod flyway;
pub(crate) mod flyway_locations;
mod flyway_project;
mod flyway_schema;
mod folder;
mod framework_code;
mod header;
pub(crate) mod known_tool;
mod liquibase;
mod migratus;
mod model;
pub(crate) mod numbering;
mod owner;
mod package_version;
mod play;
mod project;
pub(crate) mod psql;
mod reaction;
mod restart;
pub(crate) mod runner_code;
mod sequence;
mod splitter;
mod sqlx;
mod stages;
mod statements;
pub(crate) mod stray;
mod supabase;
mod transaction;
mod unknown;
mod version;

use crate::config::Config;
use crate::order::FlywayName;
use crate::rollback_name;
pub(crate) use changed_text::sent_otherwise;
use file_name::tool_by_name;
use folder::Facts;
pub(crate) use folder::Folders;
pub(crate) use model::Order;
use pgvet_model::migration::{Direction, TransactionMode};
use pgvet_model::runner::{KnownTransaction, Refusal, Runner};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::has_comment_for_name;
pub use reaction::Reactions;
use schemars::JsonSchema;
pub use sequence::{Sequence, WrittenFile, newer, sequence};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::path::Path;
use stray::Marks;
pub(crate) use transaction::opt_out;

/// Scripts that fill a new database run together. Releases that a tool knows are counted from 1.
const RELEASE_OF_INIT: u32 = u32::MAX - 1;

/// A program that runs migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// No known tool: each file is assumed to be run by psql.
    Plain,
    Flyway,
    Liquibase,
    Sqitch,
    Goose,
    SqlMigrate,
    Dbmate,
    GolangMigrate,
    Pop,
    Sqlx,
    Refinery,
    Diesel,
    Hasura,
    Prisma,
    Drizzle,
    Atlas,
    Supabase,
    NodePgMigrate,
    GraphileMigrate,
    Postgrator,
    Tern,
    Yoyo,
    PostgresMigrations,
    Mybatis,
    Migratus,
    Yuniql,
    Grate,
    Evolve,
    Dbup,
    /// A program, whose SQL `pgvet capture` has written down.
    Captured,
}

impl Tool {
    /// Every tool with its name in configuration.
    const NAMES: [(Self, &str); 30] = [
        (Self::Plain, "plain"),
        (Self::Flyway, "flyway"),
        (Self::Liquibase, "liquibase"),
        (Self::Sqitch, "sqitch"),
        (Self::Goose, "goose"),
        (Self::SqlMigrate, "sql-migrate"),
        (Self::Dbmate, "dbmate"),
        (Self::GolangMigrate, "golang-migrate"),
        (Self::Pop, "pop"),
        (Self::Sqlx, "sqlx"),
        (Self::Refinery, "refinery"),
        (Self::Diesel, "diesel"),
        (Self::Hasura, "hasura"),
        (Self::Prisma, "prisma"),
        (Self::Drizzle, "drizzle"),
        (Self::Atlas, "atlas"),
        (Self::Supabase, "supabase"),
        (Self::NodePgMigrate, "node-pg-migrate"),
        (Self::GraphileMigrate, "graphile-migrate"),
        (Self::Postgrator, "postgrator"),
        (Self::Tern, "tern"),
        (Self::Yoyo, "yoyo"),
        (Self::PostgresMigrations, "postgres-migrations"),
        (Self::Mybatis, "mybatis"),
        (Self::Migratus, "migratus"),
        (Self::Yuniql, "yuniql"),
        (Self::Grate, "grate"),
        (Self::Evolve, "evolve"),
        (Self::Dbup, "dbup"),
        (Self::Captured, "captured"),
    ];

    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(tool, _)| *tool)
    }

    /// Its name in configuration.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(tool, _)| *tool == self).map_or("plain", |(_, name)| name)
    }
}

/// A part of a file that is run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// `None` for the whole file.
    pub range: Option<TextRange>,
    pub direction: Direction,
    pub transaction: TransactionMode,
}

/// The sign by which a tool is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    Configuration,
    /// A comment in the file.
    Comment,
    FileName,
    /// A file or the name of the folder.
    Folder,
    /// A dependency of the Rust project around it.
    CargoToml,
    /// The code of the project that runs the files, which is not a known tool.
    RunnerCode,
    /// No sign.
    None,
}

/// How a file is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub tool: Tool,
    /// The sign by which the tool was recognized.
    pub sign: Sign,
    /// Empty when nothing of the file is for PostgreSQL.
    pub sections: Vec<Section>,
    /// See [`Migration::strings`](pgvet_model::migration::Migration::strings).
    pub strings: Vec<TextRange>,
    /// See [`Migration::first_schemas`](pgvet_model::migration::Migration::first_schemas).
    pub first_schemas: Vec<SmolStr>,
    /// Parts that the tool itself refuses.
    pub refusals: Vec<Refusal>,
    /// Whether the tool skips the file: its own list does not name it, or the tool does not run files of its name.
    pub unlisted: bool,
    /// Whether migrations in a programming language run among those in SQL.
    pub in_other_languages: bool,
    /// The number of the release that it is part of, where the tool's own list has releases.
    pub release: Option<u32>,
    /// Whether comments divide the file that may be those of a tool that does not run it.
    pub has_doubted_marks: bool,
    /// Whether it is known how the file is run.
    pub known_transaction: KnownTransaction,
    /// How code of the project runs the file, where it tells more than the tool.
    pub runner_of_code: Option<Runner>,
    /// Whether the tool runs the file again: always, or whenever it changes.
    pub runs_again: bool,
    /// Whether each run of the tool runs the file again, changed or not.
    pub runs_always: bool,
    /// Whether the tool does not notice that the migration has ended its transaction.
    pub accepts_commit: bool,
}

impl Layout {
    /// The layout of a file that is gone: nothing of it runs.
    pub(crate) fn of_nothing(self) -> Self {
        let transaction = TransactionMode::default();
        Self {
            sections: vec![Section { range: None, direction: Direction::Down, transaction }],
            strings: Vec::new(),
            refusals: Vec::new(),
            unlisted: false,
            release: None,
            has_doubted_marks: false,
            ..self
        }
    }

    /// How the tool continues after a COMMIT, and with the next file.
    pub(crate) fn runner(&self) -> Runner {
        let runner = self.runner_of_code.unwrap_or(self.tool.model().runner);
        let misses_its_transaction = runner.misses_its_transaction && !self.accepts_commit;
        let (known_transaction, every_run) = (self.known_transaction, self.runs_always);
        let is_outside = self.sections.iter().any(|section| section.transaction == TransactionMode::Autocommit);
        let session_per_string = self.tool == Tool::Migratus && is_outside;
        Runner { known_transaction, misses_its_transaction, every_run, session_per_string, ..runner }
    }
}

/// Finds out how the file at `path` is run. Looks at its text, its name, and then its folder.
/// Configuration takes precedence over all of them.
pub(crate) fn detect(path: &Path, text: &str, folders: &Folders, config: &Config) -> Layout {
    let around = folders.around(path);
    if around.tool_of_list(path) == Some(Tool::Captured) && !around.is_unlisted(path) {
        // The configuration is about the tool that ran the sources.
        return whole(path, text, &around, Some((Tool::Captured, Sign::Folder)), |_| false);
    }
    let configured = config.migrations.tool;
    let owner = configured.map(|tool| (tool, Sign::Configuration)).or_else(|| owner::of(path, &around));
    let is_read = |tool: Tool| owner.is_none_or(|(owner, _)| owner == tool || owner::may_read(tool, &around));
    let kind = annotations::kind(text);
    let sections = kind.and_then(|_| annotations::sections(text)).filter(|layout| is_read(layout.tool));
    let marks = match (&sections, configured) {
        (Some(layout), None) => stray::marks(layout, path, text, folders),
        _ => Marks::Trusted,
    };
    let sections = sections.filter(|_| marks != Marks::Ignored);
    let mut layout = sections.unwrap_or_else(|| whole(path, text, &around, owner, is_read));
    if layout.sign == Sign::None
        && !layout.unlisted
        && let Some(divided) = annotations::sections_of_unknown_tool(text)
    {
        layout = divided;
    }
    layout.has_doubted_marks = marks == Marks::Doubted;
    if kind == Some("play") && play::is_in_transaction(path, &around.nearby) {
        layout.sections.iter_mut().for_each(|section| section.transaction = TransactionMode::Transaction);
    }
    let is_doubtful = layout.sign == Sign::Comment && configured.is_none() && !layout.refusals.is_empty();
    if is_doubtful && !folder::proves(layout.tool, path, &around.nearby) {
        layout.refusals.iter_mut().for_each(|refusal| refusal.unproven = Some(layout.tool.as_str()));
    }
    if !layout.unlisted && is_skipped(layout.tool, layout.sign, path, &around) {
        layout.unlisted = true;
        layout.sections.iter_mut().for_each(|section| section.direction = Direction::Down);
    }
    layout.accepts_commit = diesel::accepts_commit(&layout, path, text, &around.nearby);
    if layout.tool == Tool::Dbup && layout.sign == Sign::Folder {
        dotnet::ask_for_transaction(&mut layout, &around);
    }
    if layout.tool == Tool::Grate && stages::grate_has_transaction(path, &around.nearby) {
        layout.runner_of_code = Some(model::of_grate_in_transaction());
        layout.sections.iter_mut().for_each(|section| section.transaction = TransactionMode::Transaction);
    }
    layout.in_other_languages = around.in_other_languages;
    layout.first_schemas.extend(around.flyway_schema.clone().filter(|_| layout.tool == Tool::Flyway));
    layout.release = around.release(path).or_else(|| folders.fills_new_database(path).then_some(RELEASE_OF_INIT));
    if layout.tool == Tool::Plain && layout.sign == Sign::None && config.migrations.transaction.is_none() {
        unknown::guess_transaction(&mut layout, path, text, folders);
    } else if sqlx::has_doubtful_transaction(&layout, text) {
        layout.known_transaction = KnownTransaction::Recognized;
    } else if has_comment_for_name(text) {
        layout.known_transaction = KnownTransaction::Replaced;
    }
    if config.migrations.transaction.is_none() && psql::contradicts(&layout, path, folders) {
        layout.known_transaction = KnownTransaction::Recognized;
    }
    if let Some(transaction) = config.migrations.transaction {
        let usual = transaction::usual(layout.tool);
        let sections = layout.sections.iter_mut().filter(|section| section.transaction == usual);
        sections.for_each(|section| section.transaction = transaction);
    }
    layout
}

/// A file that is one section.
fn whole(
    path: &Path,
    text: &str,
    around: &Facts,
    owner: Option<(Tool, Sign)>,
    is_read: impl Fn(Tool) -> bool,
) -> Layout {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let signed = |sign| move |tool: Tool| (tool, sign);
    let (tool, sign) = owner
        .or_else(|| header::tool(text).filter(|tool| is_read(*tool)).map(signed(Sign::Comment)))
        .or_else(|| tool_by_name(path, &name, around).map(signed(Sign::FileName)))
        .or(around.tool.map(signed(Sign::Folder)))
        .or(around.rust_runner.map(signed(Sign::CargoToml)))
        .unwrap_or((Tool::Plain, Sign::None));
    let (tool, sign, unlisted) = match around.tool_by_names {
        Some(known) if tool == Tool::Plain && known.skips(path) && !flyway::is_callback(&name) => {
            (known, Sign::Folder, true)
        }
        _ => (tool, sign, around.is_unlisted(path)),
    };
    // Its names are those of golang-migrate.
    let bun = if tool == Tool::GolangMigrate { bun::sent(path, text) } else { None };
    let transaction = match transaction::mode(tool, path, text, &around.nearby) {
        _ if around.is_autocommit(path) => TransactionMode::Autocommit,
        transaction => bun.as_ref().map_or(transaction, |(transaction, _)| *transaction),
    };
    let direction = if unlisted { Direction::Down } else { direction(tool, path, &name, around) };
    let is_repeatable =
        matches!(tool, Tool::Flyway | Tool::Evolve) && FlywayName::parse(&name).is_some_and(|name| name.kind == 'R');
    let runs_again = is_repeatable || around.runs_again(path);
    Layout {
        tool,
        sign,
        sections: vec![Section { range: None, direction, transaction }],
        strings: match tool {
            Tool::Supabase => supabase::sent_by_version(path, text, &around.nearby).1,
            Tool::Migratus => migratus::parts(text),
            Tool::Drizzle => drizzle::sent(text),
            _ => bun.map(|(_, parts)| parts).unwrap_or_default(),
        },
        first_schemas: Vec::new(),
        refusals: match tool {
            Tool::Flyway => flyway::refusals(path, text, transaction::flyway_opt_out(path), &around.nearby),
            Tool::Migratus => migratus::refusals(text),
            _ => Vec::new(),
        },
        unlisted,
        in_other_languages: false,
        release: None,
        has_doubted_marks: false,
        known_transaction: KnownTransaction::Known,
        runner_of_code: None,
        runs_again,
        runs_always: around.runs_always(path),
        accepts_commit: false,
    }
}

/// Whether the tool skips a file of this name. A file on its own may say nothing else, so its folder or the file itself
/// must show the tool.
fn is_skipped(tool: Tool, sign: Sign, path: &Path, around: &Facts) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A text that has marks may be on its way to a name.
    let is_sure = match sign {
        Sign::None => false,
        Sign::Comment => around.has_numbers,
        Sign::Configuration | Sign::FileName | Sign::Folder | Sign::CargoToml | Sign::RunnerCode => true,
    };
    let is_file = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql"));
    // soda warns of a dialect that it does not know; the pop of ory/x runs the file without a transaction.
    let soda =
        tool == Tool::Pop && around.go_runner == Some(Tool::Pop) && name.split('.').any(|part| part == "autocommit");
    is_file && (soda || (is_sure && tool.skips(path)))
}

/// Down: rollback migrations by name ([`rollback_name::is_rollback_migration`]), Flyway's `U1__x.sql` and `B1__x.sql`, and files that the
/// tool's own list of migrations does not hold.
fn direction(tool: Tool, path: &Path, name: &str, around: &Facts) -> Direction {
    // Databases that have run the versions up to a baseline skip it. refinery runs what begins with U forward.
    let flyway = FlywayName::parse(name).filter(|_| tool != Tool::Refinery);
    let flyway_skips = flyway
        .is_some_and(|flyway| flyway.kind == 'U' || (flyway.kind == 'B' && around.has_flyway_version_up_to(&flyway)));
    // Atlas lists the checksums of both files of a version, and would run both: then something else runs them.
    let is_rollback = || {
        rollback_name::is_rollback_migration(path)
            && (around.list_with(path).is_none() || rollback_name::has_up_migration(path))
    };
    // Programs of the project alone can know such scripts: a tool with versions takes them for migrations.
    let is_script = || tool == Tool::Plain && around.is_rollback_of_a_migration(name);
    if flyway_skips || around.is_not_run(path) || is_rollback() || is_script() {
        Direction::Down
    } else {
        Direction::Up
    }
}

#[cfg(test)]
mod tests;
