//! What each migration tool records about a migration and when, how it keeps two of its runs apart, and what a person
//! does after a run that was killed.
//!
//! Read in the source of the tools, November 2026: golang-migrate `migrate.go` and `database/postgres/postgres.go`; sqlx
//! `sqlx-postgres/src/migrate.rs`; tern `migrate/migrate.go`; node-pg-migrate `src/runner.ts`; postgres-migrations
//! `src/with-lock.ts`; Flyway `DbMigrate.java` and `PostgreSQLAdvisoryLockTemplate.java`; Atlas `sql/postgres/driver.go`
//! (`acquire`) and `sql/migrate/migrate.go` (`Executor.Execute`); dbmate `pkg/dbmate/db.go`; sql-migrate `migrate.go`
//! (`applyMigrations`); refinery `refinery_core/src/traits/sync.rs`; Diesel `diesel_migrations/src/migration_harness.rs`;
//! Drizzle `drizzle-orm/src/pg-core/dialect.ts`; Postgrator `postgrator.js`; pop `migrator.go` (`UpTo`); Sqitch
//! `lib/App/Sqitch/Engine/pg.pm` (`wait_lock`); yoyo `yoyo/backends/base.py` (`apply_one`, `lock`); `MyBatis` Migrations
//! `UpOperation.java`; Migratus `migratus/database.clj` (`mark-reserved`); Supabase CLI `pkg/migration/file.go`; Prisma `schema-engine`, PostgreSQL flavour (`acquire_lock`).
//! As documented: Prisma "Resolving migration issues in production", Liquibase `release-locks` and `DATABASECHANGELOGLOCK`.

use super::Tool;
use pgvet_model::runner::{Recording, Restart, RunLock};

/// What golang-migrate needs after a migration that did not end: its version is marked as dirty before it runs. Source:
/// golang-migrate, FAQ, "What does 'dirty database' mean?".
pub(super) const FORCE: &str = "run `migrate force` with the version of the previous migration";
/// What Prisma needs: a row without an end is written before the migration runs. Source: Prisma documentation, "Resolving
/// migration issues in production".
pub(super) const RESOLVE: &str = "run `prisma migrate resolve --rolled-back` with the name of the migration";

/// A tool that records a migration in its transaction, and has no lock.
const IN_TRANSACTION: Restart =
    Restart { recording: Recording::InTransaction, lock: RunLock::None, after_kill: None, mark_applied: None };
/// A tool that records a migration when it is complete, and has no lock.
const AFTERWARDS: Restart = Restart { recording: Recording::Afterwards, ..IN_TRANSACTION };
/// Nothing is known.
pub(super) const UNKNOWN: Restart = Restart { recording: Recording::Unknown, lock: RunLock::Unknown, ..IN_TRANSACTION };
/// The second run waits in `pg_advisory_lock`, in the session that runs the migrations.
const WAITS: RunLock = RunLock::Waits { by_its_session: true };

impl Tool {
    pub(crate) const fn restart(self) -> Restart {
        match self {
            Self::Plain | Self::Captured | Self::Hasura | Self::Yuniql | Self::Grate | Self::Evolve | Self::Dbup => {
                UNKNOWN
            }
            Self::Flyway => Restart { lock: RunLock::Polls, ..IN_TRANSACTION },
            // The changeset is committed, then recorded. The lock is a row, which stays after a killed run.
            Self::Liquibase => Restart {
                lock: RunLock::Polls,
                after_kill: Some("run `liquibase release-locks`"),
                mark_applied: Some("run `liquibase mark-next-changeset-ran`"),
                ..AFTERWARDS
            },
            // The scripts run in sessions of psql, and another session holds the lock.
            Self::Sqitch => Restart {
                lock: RunLock::Waits { by_its_session: false },
                mark_applied: Some("run `sqitch deploy --log-only --to {name}`"),
                ..AFTERWARDS
            },
            // No unique key on the version.
            Self::Goose => Restart {
                mark_applied: Some("INSERT INTO goose_db_version (version_id, is_applied) VALUES ({version}, true);"),
                ..IN_TRANSACTION
            },
            Self::SqlMigrate => Restart {
                lock: RunLock::UniqueRecord,
                mark_applied: Some("INSERT INTO gorp_migrations (id, applied_at) VALUES ('{file}', now());"),
                ..IN_TRANSACTION
            },
            Self::Dbmate => Restart {
                lock: RunLock::UniqueRecord,
                mark_applied: Some("INSERT INTO schema_migrations (version) VALUES ('{version}');"),
                ..IN_TRANSACTION
            },
            Self::GolangMigrate => Restart {
                lock: WAITS,
                after_kill: Some(FORCE),
                mark_applied: Some("run `migrate force {version}`"),
                ..AFTERWARDS
            },
            Self::Pop => Restart {
                lock: RunLock::UniqueRecord,
                mark_applied: Some("INSERT INTO schema_migration (version) VALUES ('{version}');"),
                ..IN_TRANSACTION
            },
            Self::Sqlx => Restart { lock: WAITS, ..IN_TRANSACTION },
            // The migration and its record are a transaction each.
            Self::Refinery => AFTERWARDS,
            Self::Diesel => Restart {
                lock: RunLock::UniqueRecord,
                mark_applied: Some("INSERT INTO __diesel_schema_migrations (version) VALUES ('{version}');"),
                ..IN_TRANSACTION
            },
            Self::Prisma => Restart {
                lock: WAITS,
                after_kill: Some(RESOLVE),
                mark_applied: Some("run `prisma migrate resolve --applied {name}`"),
                ..AFTERWARDS
            },
            // The journal has no unique key.
            Self::Drizzle => IN_TRANSACTION,
            // In which transaction the command line writes the revision was not seen.
            Self::Atlas => Restart {
                recording: Recording::Unknown,
                lock: WAITS,
                mark_applied: Some("run `atlas migrate set {version}`"),
                ..IN_TRANSACTION
            },
            // The record is the last statement of the pipeline.
            Self::Supabase => Restart {
                lock: RunLock::Unknown,
                mark_applied: Some("run `supabase migration repair --status applied {version}`"),
                ..IN_TRANSACTION
            },
            Self::NodePgMigrate => Restart {
                lock: RunLock::Refuses,
                mark_applied: Some("run `node-pg-migrate up 1 --fake`"),
                ..IN_TRANSACTION
            },
            Self::GraphileMigrate => Restart { lock: RunLock::Unknown, ..IN_TRANSACTION },
            Self::Postgrator | Self::Mybatis => AFTERWARDS,
            // A reserved row, which the second run waits for.
            Self::Migratus => Restart { lock: RunLock::UniqueRecord, ..IN_TRANSACTION },
            Self::Tern => Restart { lock: WAITS, ..IN_TRANSACTION },
            // The lock is a row, which stays after a killed run.
            Self::Yoyo => Restart {
                lock: RunLock::Polls,
                after_kill: Some("run `yoyo break-lock`"),
                mark_applied: Some("run `yoyo mark --revision {name}`"),
                ..AFTERWARDS
            },
            Self::PostgresMigrations => Restart { lock: RunLock::Polls, ..IN_TRANSACTION },
        }
    }
}
