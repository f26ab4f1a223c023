//! The behaviour of each migration tool, as a table: in which order it runs which files, in which session, and what
//! follows a COMMIT. The transaction around a file is in `transaction.rs`, because files can choose it.
//!
//! Each line was seen in November 2026 in the log of a server on which the tool ran sample projects, where nothing
//! else is said: goose 3.29.0, sql-migrate 1.8.1, dbmate 2.36.0, golang-migrate 4.20.1, soda of pop 6.4.1, sqlx-cli
//! 0.9.0, refinery 0.10.0, diesel 2.3.14, drizzle-orm 0.45.4, node-pg-migrate 9.0.0, postgrator 8.0.0,
//! graphile-migrate 1.4.1, Supabase CLI 2.109.0 to 3.1.0, tern 2.3.4, yoyo 9.0.0, postgres-migrations 5.3.0, `MyBatis`
//! Migrations 3.4.0, Flyway 7.15.0 to 13.12.0, Liquibase 4.29.2, Sqitch 1.3.1. Of Prisma 6.19.3 and the library of
//! Atlas 0.32.1 the order was seen: no package registry has the native engine and the command line, and none at hand has
//! Migratus, Rambler, yuniql, grate, Evolve or `DbUp`.

use super::Tool;
use super::migratus::SEPARATOR;
use super::restart::{FORCE, RESOLVE, UNKNOWN};
use crate::order::{FlywayName, PostgratorName};
use pgvet_model::runner::{AfterCommit, KnownTransaction, Retry, Runner, SessionScope};
use std::path::Path;

/// By what a tool orders its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The number that the name begins with. `letter`: whether a `v` may be before it.
    Number { letter: bool },
    /// The text of the whole name.
    Name,
    /// The text of the version that the name begins with: `10` comes before `2`.
    VersionText,
    /// A list of its own.
    List,
}

/// How a tool treats the files of a folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    pub(crate) order: Order,
    /// Whether it runs a file of this name; it skips the others.
    pub(crate) runs: fn(&str) -> bool,
    pub(crate) runner: Runner,
}

/// A runner that continues in one session; `after_commit` in what it sends as a whole.
const fn run(after_commit: AfterCommit) -> Runner {
    Runner {
        after_commit,
        session: SessionScope::Run,
        one_transaction: false,
        keeps_apart: false,
        misses_its_transaction: false,
        every_run: false,
        session_per_string: false,
        separator: None,
        sends_statements: false,
        retry: Retry::Again,
        restart: UNKNOWN,
        is_known: true,
        known_transaction: KnownTransaction::Known,
    }
}

/// A session for each file, as psql has it.
const APART: Runner = Runner { session: SessionScope::Migration, ..SPLIT };
/// One session, each statement on its own.
const SPLIT: Runner = Runner { sends_statements: true, ..run(AfterCommit::Alone) };
/// One session, the file as one string, or through a driver that begins another transaction.
const STRING: Runner = run(AfterCommit::Together);

/// A framework whose migrations send SQL files: see `framework_code.rs`.
pub(super) const fn of_framework(one_transaction: bool) -> Runner {
    Runner { one_transaction, ..STRING }
}

/// Code of the project that sends files as strings: see `unknown.rs`. Of its connections nothing is known.
pub(super) const fn of_code() -> Runner {
    Runner { session: SessionScope::Migration, is_known: false, ..STRING }
}

/// `DbUp`, which splits a file itself: see `dotnet.rs`.
pub(super) const fn of_dbup(one_transaction: bool) -> Runner {
    Runner { one_transaction, ..SPLIT }
}

/// grate with `--transaction`.
pub(super) const fn of_grate_in_transaction() -> Runner {
    Runner { one_transaction: true, ..SPLIT }
}

/// A failed migration without a transaction is recorded. Source: Flyway documentation, "Repair".
const REPAIR: Retry = Retry::After("run `flyway repair`");

impl Tool {
    pub(crate) const fn model(self) -> Model {
        use Order::{List, Name, Number, VersionText};
        const NUMBER: Order = Number { letter: false };
        let (order, runs, runner): (Order, fn(&str) -> bool, Runner) = match self {
            Self::Plain => (Number { letter: true }, any, Runner { is_known: false, sends_statements: false, ..APART }),
            Self::Sqitch => (List, any, APART),
            // It reads the statements itself, and refuses a file that holds both sorts. `search_path` is restored.
            Self::Flyway => {
                let session = SessionScope::RunWithoutSearchPath;
                (NUMBER, flyway, Runner { session, keeps_apart: true, retry: REPAIR, sends_statements: true, ..STRING })
            }
            // `search_path` is restored before each changeset.
            Self::Liquibase => {
                let session = SessionScope::RunWithoutSearchPath;
                (List, any, Runner { session, sends_statements: true, ..STRING })
            }
            Self::Goose => (NUMBER, number_and_name, SPLIT),
            Self::SqlMigrate => (NUMBER, any, Runner { misses_its_transaction: true, ..SPLIT }),
            Self::Dbmate => (Name, number, Runner { misses_its_transaction: true, ..STRING }),
            Self::GolangMigrate => (NUMBER, golang, Runner { retry: Retry::After(FORCE), ..STRING }),
            Self::Pop => (VersionText, number_and_name, STRING),
            Self::Sqlx => (NUMBER, number_and_name, STRING),
            Self::Refinery => (NUMBER, refinery, STRING),
            // Each of its migrations is a folder.
            Self::Diesel => (VersionText, none, Runner { misses_its_transaction: true, ..STRING }),
            // The server sends the file as one string in a transaction, through a pool. Source: hasura/graphql-engine,
            // `server/src-lib/Hasura/Backends/Postgres/DDL/RunSQL.hs`, `cli/migrate/source/parse.go`.
            Self::Hasura => (NUMBER, any, Runner { session: SessionScope::Migration, ..STRING }),
            // Its session was not seen. Each of its migrations is a folder.
            Self::Prisma => {
                (VersionText, none, Runner { session: SessionScope::Migration, retry: Retry::After(RESOLVE), ..STRING })
            }
            Self::Drizzle => (List, any, Runner { one_transaction: true, ..STRING }),
            Self::Atlas => (Name, any, Runner { retry: Retry::Continues, ..SPLIT }),
            // RESET ALL before each file.
            Self::Supabase => {
                let session = SessionScope::Migration;
                (VersionText, number_and_name, Runner { session, sends_statements: true, ..STRING })
            }
            Self::NodePgMigrate => (NUMBER, any, Runner { one_transaction: true, ..STRING }),
            Self::GraphileMigrate => (NUMBER, any, STRING),
            Self::Postgrator => (NUMBER, postgrator, STRING),
            // RESET ALL after each file.
            Self::Tern => (NUMBER, number_and_name, Runner { session: SessionScope::Migration, ..STRING }),
            Self::Yoyo => (Name, any, APART),
            Self::PostgresMigrations => (NUMBER, number, STRING),
            Self::Mybatis => (NUMBER, number_and_name, Runner { sends_statements: true, ..STRING }),
            // JDBC begins another transaction after a COMMIT. Seen from source, see `migratus.rs`.
            Self::Migratus => (NUMBER, migratus, Runner { separator: Some(SEPARATOR), ..STRING }),
            // Read in their sources, see `stages.rs` and `dotnet.rs`.
            Self::Yuniql => (List, any, Runner { one_transaction: true, ..STRING }),
            Self::Grate => (List, any, SPLIT),
            Self::Evolve => (NUMBER, evolve, STRING),
            Self::Dbup => (Name, any, SPLIT),
            // Settings of the session are in each file.
            Self::Captured => (List, any, APART),
        };
        Model { order, runs, runner: Runner { restart: self.restart(), ..runner } }
    }

    /// Whether the tool reads the files of one folder only, and never those of folders below it. A folder that it reads is
    /// a history of its own. dbmate reads several folders as one history; Flyway, Liquibase, pop and refinery look below.
    ///
    /// Source: goose, `migrate.go`, `collectFilesystemSources`; golang-migrate, `source/iofs/iofs.go`; sql-migrate,
    /// `migrate.go`, `findMigrations`; tern, `migrate/migrate.go`, `FindMigrations`, which takes templates from folders
    /// below; sqlx, `sqlx-core/src/migrate/source.rs`; Diesel,
    /// `diesel_migrations`, `file_based_migrations.rs`; Prisma documentation, "Migration histories"; node-pg-migrate, `src/migration.ts`; postgres-migrations,
    /// `src/files-loader.ts`.
    pub(crate) fn reads_one_folder(self) -> bool {
        matches!(
            self,
            Self::Goose
                | Self::GolangMigrate
                | Self::SqlMigrate
                | Self::Tern
                | Self::Sqlx
                | Self::Diesel
                | Self::Prisma
                | Self::NodePgMigrate
                | Self::PostgresMigrations
                | Self::Supabase
                | Self::Mybatis
        )
    }

    /// Whether the file is skipped because of its name. A file whose folder is the migration is not.
    pub(crate) fn skips(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !matches!(&*name, "up.sql" | "down.sql" | "migration.sql") && !(self.model().runs)(&name)
    }
}

fn any(_: &str) -> bool {
    true
}

/// Prisma and Diesel read folders alone. Source: Prisma, `schema-engine`, `migrations_directory.rs`, `list_migrations`;
/// Diesel, `diesel_migrations`, `file_based_migrations.rs`, `migrations_directories`.
fn none(_: &str) -> bool {
    false
}

/// The rest of the name after the digits with which it begins, if it does.
pub(super) fn behind_number(name: &str) -> Option<&str> {
    let rest = name.trim_start_matches(|first: char| first.is_ascii_digit());
    (rest.len() < name.len()).then_some(rest)
}

/// `1_a.sql` and `1.sql`. Source: dbmate, `pkg/dbmate/db.go`, `migrationFileRegexp`;
/// postgres-migrations, `src/file-name-parser.ts`.
fn number(name: &str) -> bool {
    behind_number(name).is_some() && name.strip_suffix(".sql").is_some()
}

/// `1_a.sql`. Source: goose, `NumericComponent`; sqlx, `sqlx-core/src/migrate/source.rs`; Supabase CLI,
/// `pkg/migration/file.go`, `migrateFilePattern`; pop, `match.go`; tern, `migrate/migrate.go`; `MyBatis` Migrations, `Change`.
fn number_and_name(name: &str) -> bool {
    behind_number(name).is_some_and(|rest| rest.starts_with('_')) && name.strip_suffix(".sql").is_some()
}

/// `1_a.up.sql`. Source: golang-migrate, `source/parse.go`.
fn golang(name: &str) -> bool {
    number_and_name(name) && (name.ends_with(".up.sql") || name.ends_with(".down.sql"))
}

/// Source: Flyway documentation, "Versioned migrations"; the prefixes are upper case.
fn flyway(name: &str) -> bool {
    FlywayName::parse(name).is_some()
}

/// `V1__a.sql` and `U1__a.sql`, which runs forward as well. Source: refinery, `refinery-core/src/util.rs`.
fn refinery(name: &str) -> bool {
    FlywayName::parse(name).is_some_and(|name| matches!(name.kind, 'V' | 'U'))
}

/// As Flyway, but without undo and baselines, and the prefixes may be lower case. Source: Evolve,
/// `FileMigrationLoader.cs`.
fn evolve(name: &str) -> bool {
    let mut name = name.to_owned();
    name.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
    FlywayName::parse(&name).is_some_and(|name| matches!(name.kind, 'V' | 'R'))
}

/// `1-a.up.sql`. Source: Migratus, `migratus/migrations.clj`, `migration-file-pattern`.
fn migratus(name: &str) -> bool {
    let stem = name.strip_suffix(".up.sql").or_else(|| name.strip_suffix(".down.sql"));
    let rest = stem.and_then(behind_number).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('.'))
}

fn postgrator(name: &str) -> bool {
    PostgratorName::parse(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_skip_files_of_other_names() {
        for (tool, runs, skips) in [
            (Tool::Goose, "00001_a.sql", "a.sql"),
            (Tool::Dbmate, "20240101_a.sql", "v7_h.sql"),
            (Tool::GolangMigrate, "1_a.up.sql", "x.up.sql"),
            (Tool::GolangMigrate, "1_a.down.sql", "5_up.UP.sql"),
            (Tool::Sqlx, "1_a.sql", "noversion.sql"),
            (Tool::Sqlx, "1_a.up.sql", "5_up.SQL"),
            (Tool::Supabase, "20240101_a.sql", "5-dash.sql"),
            (Tool::Supabase, "1_a.sql", "x_y.sql"),
            (Tool::Flyway, "V6__x.sql", "v6__x.sql"),
            (Tool::Flyway, "R__x.sql", "x.sql"),
            (Tool::Refinery, "U4__u.sql", "R__x.sql"),
            (Tool::Postgrator, "5.do.up.sql", "5.DO.up.sql"),
            (Tool::Prisma, "1_a/migration.sql", "1_a.sql"),
            (Tool::Diesel, "1_a/up.sql", "1_a.sql"),
            (Tool::Evolve, "v1__a.sql", "U1__a.sql"),
            (Tool::Migratus, "1-a.up.sql", "1_a.up.sql"),
            (Tool::Migratus, "1-a.down.sql", "1-a.sql"),
        ] {
            let is_skipped = |name: &str| tool.skips(&Path::new("m").join(name));
            assert_eq!((is_skipped(runs), is_skipped(skips)), (false, true), "{}", tool.as_str());
        }
        assert!(!Tool::Diesel.skips(Path::new("m/1_a/up.sql")));
    }
}
