//! What each migration tool does when applied migrations were changed, as a table, and with files that its list lacks.
//!
//! Seen in November 2026 on PostgreSQL 18: goose 3.29.0, golang-migrate 4.20.1, sql-migrate 1.8.1, dbmate 2.36.0,
//! node-pg-migrate 9.0.0, graphile-migrate 1.4.1, Postgrator 8.0.0, drizzle-orm 0.45.4 and 1.0.0-rc.5, postgres-migrations 5.3.0, tern 2.3.4, yoyo 9.0.0,
//! Flyway 13.12.0, Supabase CLI 3.1.0, Prisma 6.19.3 and the library of Atlas 0.32.1; what they did is in
//! `fixtures/tools`, as `changes.txt`. Read in source: sqlx `sqlx-core/src/migrate/migrator.rs`,
//! refinery `refinery_core/src/traits/mod.rs`, Diesel `diesel_migrations/src/migration_harness.rs`. What none of these says
//! is [`Consequence::Unknown`].

use super::{Folders, Layout, Tool};
use crate::atlas_sum;
use pgvet_model::incident::Consequence::{self, Ignores, Refuses, Runs, Skips, Unknown};
use std::path::Path;

/// What a tool does on a database that has applied the migrations of the base revision.
#[derive(Debug, Clone, Copy)]
pub struct Reactions {
    /// After an edit of an applied migration, if only of a comment.
    pub edited: Consequence,
    /// After an applied migration has got another name and kept its version.
    pub retitled: Consequence,
    /// After an applied migration has got another version.
    pub renumbered: Consequence,
    /// After an applied migration was deleted.
    pub removed: Consequence,
    /// After the newest applied migration was deleted.
    pub newest_removed: Consequence,
    /// With a new migration that sorts before an applied one.
    pub late: Consequence,
    /// With a new migration that has the version of an applied one.
    pub same_as_applied: Consequence,
    /// With two new migrations of one version.
    pub same_version: Consequence,
}

/// Nothing is known.
const UNKNOWN: Reactions = Reactions {
    edited: Unknown,
    retitled: Unknown,
    renumbered: Unknown,
    removed: Unknown,
    newest_removed: Unknown,
    late: Unknown,
    same_as_applied: Unknown,
    same_version: Unknown,
};

/// A tool that looks at versions alone, and runs each that is not recorded.
const BY_VERSION: Reactions = Reactions {
    edited: Ignores,
    retitled: Ignores,
    renumbered: Runs,
    removed: Ignores,
    newest_removed: Ignores,
    late: Runs,
    same_as_applied: Skips,
    same_version: Unknown,
};

/// A tool that identifies migrations by their whole names, and takes no offence at equal versions.
const BY_NAME: Reactions = Reactions { same_as_applied: Ignores, same_version: Ignores, ..BY_VERSION };

/// Nothing is to be said about the files themselves, which are written again whenever their sources change.
const BY_NAME_IGNORED: Reactions = Reactions { renumbered: Ignores, late: Ignores, ..BY_NAME };

const fn refuses(saying: &'static str) -> Consequence {
    Refuses { saying, unless: None }
}

const fn refuses_unless(saying: &'static str, unless: &'static str) -> Consequence {
    Refuses { saying, unless: Some(unless) }
}

/// A tool that refuses to run after a migration is gone under its name or version.
const fn missing(refusal: Consequence, rest: &Reactions) -> Reactions {
    Reactions { renumbered: refusal, removed: refusal, newest_removed: refusal, ..*rest }
}

/// A tool that refuses to run while two migrations have one version.
const fn unique(refusal: Consequence, rest: &Reactions) -> Reactions {
    Reactions { same_as_applied: refusal, same_version: refusal, ..*rest }
}

const RECORDED: Consequence = refuses("duplicate key value violates unique constraint");

impl Layout {
    /// Returns the list of the tool that does not name the file although the tool uses it, and what follows.
    pub(crate) fn missing_from(
        &self,
        path: &Path,
        text: &str,
        folders: &Folders,
    ) -> Option<(&'static str, Consequence)> {
        let facts = folders.around(path);
        match self.tool {
            Tool::Drizzle if facts.is_unlisted(path) && has_journal(facts.root()) => {
                Some(("meta/_journal.json", Skips))
            }
            Tool::Sqitch if facts.is_unlisted(path) => Some(("sqitch.plan", Skips)),
            Tool::Atlas if path.with_file_name(atlas_sum::LIST).is_file() && facts.list_with(path).is_none() => {
                (!atlas_sum::opts_out(text.as_bytes())).then_some((atlas_sum::LIST, atlas_sum::MISMATCH))
            }
            _ => None,
        }
    }

    /// Returns what the tool does if its own list still names a file that is gone.
    pub(crate) fn lists_gone(&self, path: &Path, folders: &Folders) -> Option<Consequence> {
        let is_listed = || folders.around(path).list_with(path).is_some();
        (self.tool == Tool::Atlas && is_listed()).then_some(atlas_sum::MISMATCH)
    }
}

fn has_journal(root: Option<&Path>) -> bool {
    root.is_some_and(|root| root.join("meta/_journal.json").is_file())
}

/// Drizzle 1.0 reads folders and not a journal, and runs each whose name is not recorded.
const FOLDERS_OF_DRIZZLE: Reactions = Reactions { retitled: Runs, ..BY_NAME };

impl Tool {
    /// Returns what the tool does after changes of a migration with this path.
    pub fn reactions_to(self, path: &Path) -> Reactions {
        if self.reads_folders(path) { FOLDERS_OF_DRIZZLE } else { self.reactions() }
    }

    /// Whether Drizzle 1.0 runs the file.
    fn reads_folders(self, path: &Path) -> bool {
        self == Self::Drizzle && path.file_name().is_some_and(|name| name == "migration.sql")
    }

    /// Returns what the tool does after changes.
    pub const fn reactions(self) -> Reactions {
        match self {
            Self::Plain | Self::Liquibase | Self::Mybatis | Self::Hasura | Self::Dbup => UNKNOWN,
            // What happens to sources is not seen in what they sent.
            Self::Captured => BY_NAME_IGNORED,
            Self::Goose => unique(
                refuses("panic: goose: duplicate version … detected"),
                &Reactions {
                    late: refuses_unless("found 1 missing migrations", "run it once with `-allow-missing`"),
                    ..BY_VERSION
                },
            ),
            Self::GolangMigrate => unique(
                refuses("duplicate migration file"),
                &Reactions { late: Skips, newest_removed: refuses("no migration found for version …"), ..BY_VERSION },
            ),
            Self::Dbmate => Reactions { same_version: RECORDED, ..BY_VERSION },
            // What is not recorded yet when the second one comes was recorded by the first.
            Self::Pop => Reactions { same_version: Skips, ..BY_VERSION },
            // A map holds one migration for each version.
            Self::Diesel => Reactions { same_version: Skips, ..BY_VERSION },
            Self::SqlMigrate => {
                let refusal = refuses("unknown migration in database");
                missing(refusal, &Reactions { retitled: refusal, ..BY_NAME })
            }
            Self::NodePgMigrate => {
                let refusal = refuses_unless(
                    "Not run migration … is preceding already run migration …",
                    "run it once with `--no-check-order`",
                );
                missing(refusal, &Reactions { retitled: refusal, late: refusal, ..BY_NAME })
            }
            Self::Postgrator => unique(
                refuses("Two migrations found with version … and action do"),
                &Reactions { edited: refuses("MD5 checksum failed for migration […]"), late: Skips, ..BY_VERSION },
            ),
            Self::Sqlx => {
                let edited = refuses("migration … was previously applied but has been modified");
                let gone = refuses_unless(
                    "migration … was previously applied but is missing in the resolved migrations",
                    "run it once with `--ignore-missing`",
                );
                missing(gone, &Reactions { edited, same_as_applied: edited, same_version: RECORDED, ..BY_VERSION })
            }
            Self::Refinery => {
                let edited = refuses_unless(
                    "applied migration … is different than filesystem one …",
                    "call `set_abort_divergent(false)`",
                );
                let gone =
                    refuses_unless("migration … is missing from the filesystem", "call `set_abort_missing(false)`");
                let rest = Reactions { edited, retitled: edited, late: gone, ..UNKNOWN };
                let repeated = refuses("migration … is repeated, migration versions must be unique");
                Reactions { same_as_applied: edited, same_version: repeated, ..missing(gone, &rest) }
            }
            Self::Flyway => {
                let edited = refuses_unless(
                    "Migration checksum mismatch for migration version …",
                    "accept the edited file on each database with `flyway repair`",
                );
                let gone = refuses_unless(
                    "Detected applied migration not resolved locally: …",
                    "mark it as deleted on each database with `flyway repair`",
                );
                let late = refuses_unless(
                    "Detected resolved migration not applied to database: …",
                    "run it once with `-outOfOrder=true`",
                );
                let retitled = refuses("Migration description mismatch for migration version …");
                let rest = Reactions { edited, retitled, late, ..UNKNOWN };
                unique(refuses("Found more than one migration with version …"), &missing(gone, &rest))
            }
            // What is new in a version that has run is skipped.
            Self::Yuniql => Reactions { edited: Ignores, ..UNKNOWN },
            Self::Grate => {
                Reactions { edited: refuses("Script has changed since the last time it was run"), ..UNKNOWN }
            }
            Self::Evolve => {
                let edited = refuses_unless(
                    "Validate failed: invalid checksum for migration: …",
                    "accept the edited file on each database with `evolve repair`",
                );
                let late = refuses_unless(
                    "Validation failed: Out of order pending migration found: …",
                    "run it once with the option `OutOfOrder`",
                );
                let same_version = refuses("Found multiple sql migration files with the same version: …");
                unique(same_version, &Reactions { edited, late, removed: Ignores, newest_removed: Ignores, ..UNKNOWN })
            }
            // Only versions are recorded, and no hash.
            Self::Migratus => unique(refuses("Multiple migrations with id …"), &BY_VERSION),
            Self::Prisma => Reactions { retitled: Runs, ..BY_NAME },
            // Late is what its journal gives no later time.
            // A migration is its whole name.
            Self::Yoyo => Reactions { retitled: Runs, ..BY_NAME },
            // Versions are consecutive.
            Self::Tern => {
                let gap = refuses("Missing migration …");
                let rest = Reactions { edited: Ignores, retitled: Ignores, renumbered: gap, removed: gap, ..UNKNOWN };
                unique(refuses("Duplicate migration …"), &rest)
            }
            // Versions are consecutive, and the hash is that of name and text.
            Self::PostgresMigrations => {
                let edited = refuses("Hashes don't match for migrations");
                let gap = refuses("Found a non-consecutive migration ID on file");
                unique(gap, &Reactions { edited, retitled: edited, renumbered: gap, removed: gap, ..UNKNOWN })
            }
            Self::Drizzle => Reactions { late: Skips, same_as_applied: Ignores, same_version: Ignores, ..BY_VERSION },
            Self::Atlas => Reactions {
                late: refuses_unless(
                    "migration file … was added out of order",
                    "run it once with `--exec-order non-linear`",
                ),
                ..BY_VERSION
            },
            Self::Supabase => {
                let gone = refuses_unless(
                    "Remote migration versions not found in local migrations directory",
                    "mark it as reverted with `supabase migration repair --status reverted`",
                );
                let late = refuses_unless(
                    "Found local migration files to be inserted before the last migration on remote database",
                    "run it once with `--include-all`",
                );
                missing(gone, &Reactions { late, same_as_applied: RECORDED, same_version: RECORDED, ..BY_VERSION })
            }
            // It runs the numbers above the last one that is recorded, and looks at the hashes of those alone: a new
            // database refuses what was edited. Each file names the hash of the previous one.
            Self::GraphileMigrate => {
                let apart = refuses("Previous migration with hash … doesn't match");
                let gap = refuses("expected … previous …");
                unique(apart, &Reactions { renumbered: gap, removed: gap, late: apart, ..BY_VERSION })
            }
            Self::Sqitch => Reactions { edited: Ignores, ..UNKNOWN },
        }
    }

    /// Returns whether the order of files shows which of them run, and not a list of the tool.
    pub(crate) fn runs_by_order(self, path: &Path) -> bool {
        self.reads_folders(path)
            || !matches!(
                self,
                Self::Liquibase | Self::Sqitch | Self::Drizzle | Self::Yuniql | Self::Grate | Self::Captured
            )
    }

    /// Returns its name in a sentence; `None` if no tool is known.
    pub(crate) const fn title(self) -> Option<&'static str> {
        Some(match self {
            Self::Plain | Self::Captured => return None,
            Self::Flyway => "Flyway",
            Self::Liquibase => "Liquibase",
            Self::Sqitch => "Sqitch",
            Self::Goose => "goose",
            Self::SqlMigrate => "sql-migrate",
            Self::Dbmate => "dbmate",
            Self::GolangMigrate => "golang-migrate",
            Self::Pop => "pop",
            Self::Sqlx => "sqlx",
            Self::Refinery => "refinery",
            Self::Diesel => "Diesel",
            Self::Hasura => "Hasura",
            Self::Prisma => "Prisma",
            Self::Drizzle => "Drizzle",
            Self::Atlas => "Atlas",
            Self::Supabase => "Supabase",
            Self::NodePgMigrate => "node-pg-migrate",
            Self::GraphileMigrate => "graphile-migrate",
            Self::Postgrator => "Postgrator",
            Self::Tern => "tern",
            Self::Yoyo => "yoyo",
            Self::PostgresMigrations => "postgres-migrations",
            Self::Mybatis => "MyBatis Migrations",
            Self::Migratus => "Migratus",
            Self::Yuniql => "yuniql",
            Self::Grate => "grate",
            Self::Evolve => "Evolve",
            Self::Dbup => "DbUp",
        })
    }
}
