//! The transaction that a tool opens around a file with one section.

use super::Tool;
use super::header::{
    POSTGRES_MIGRATIONS_OUTSIDE, SQLX_NO_TRANSACTION, TERN_OUTSIDE, atlas_directives, graphile_first_line,
    is_outside_for_tern, is_outside_for_yoyo,
};
use super::{captured, dotnet, drizzle, flyway, migratus, sqlx, supabase};
use crate::nearby::Nearby;
use crate::{order, read};
use pgvet_linter::fix::Edit;
use pgvet_model::migration::TransactionMode::{self, Autocommit, SingleString, Transaction};
use pgvet_syntax::source::TextRange;
use std::path::Path;

/// The transaction of a file that says nothing about it.
pub(super) fn usual(tool: Tool) -> TransactionMode {
    mode(tool, Path::new(""), "", &Nearby::default())
}

pub(super) fn mode(tool: Tool, path: &Path, text: &str, nearby: &Nearby) -> TransactionMode {
    let unless = |without: bool, otherwise| if without { otherwise } else { Transaction };
    match tool {
        // CREATE EXTENSION and ALTER EXTENSION UPDATE: `src/backend/commands/extension.c`, `execute_extension_script`.
        Tool::Plain if is_of_extension(path) => Transaction,
        // A tool that nobody has recognized: LOCK TABLE says that it opens a transaction.
        Tool::Plain if order::is_versioned(path) && locks_tables(text) => Transaction,
        // psql -f.
        Tool::Plain | Tool::Sqitch => Autocommit,
        // grate, `GrateConfiguration.cs`: `--transaction` asks for one. `DbUp` documentation, "Transactions"; see `dotnet.rs`.
        Tool::Grate | Tool::Dbup => Autocommit,
        // yuniql, `Configuration.cs`: one for the session.
        Tool::Yuniql => Transaction,
        Tool::Evolve => unless(dotnet::is_outside_for_evolve(text), SingleString),
        Tool::Migratus => migratus::transaction(text),
        // Prisma, `schema-engine`: `raw_cmd`; golang-migrate, `database/postgres`: one Exec without arguments.
        // Postgrator, `lib/PostgreSQLClient.js`: one query without arguments.
        Tool::Prisma | Tool::GolangMigrate | Tool::Postgrator => SingleString,
        Tool::Refinery | Tool::NodePgMigrate | Tool::Hasura => Transaction,
        Tool::Drizzle => unless(!drizzle::sent(text).is_empty(), Autocommit),
        Tool::Captured => captured::transaction(text),
        Tool::Goose | Tool::SqlMigrate | Tool::Dbmate | Tool::Liquibase | Tool::Mybatis => Transaction,
        Tool::Tern => unless(is_outside_for_tern(text), Autocommit),
        Tool::Yoyo => unless(is_outside_for_yoyo(text), Autocommit),
        // postgres-migrations, `src/run-migration.ts`.
        Tool::PostgresMigrations => unless(text.contains(POSTGRES_MIGRATIONS_OUTSIDE), SingleString),
        // Flyway, `PostgreSQLParser.detectCanExecuteInTransaction`.
        Tool::Flyway => unless(flyway::has_alone(text) || flyway_opt_out(path), Autocommit),
        Tool::Supabase => supabase::sent_by_version(path, text, nearby).0,
        // ory/x `popx`, `.autocommit.`.
        Tool::Pop => unless(name_has_part(path, "autocommit"), SingleString),
        // sqlx-postgres, `migrate.rs`: the text is executed as one string.
        Tool::Sqlx => {
            unless(text.starts_with(SQLX_NO_TRANSACTION) && !sqlx::ignores_comment(path, nearby), SingleString)
        }
        // diesel_migrations, `file_based_migrations.rs`: `batch_execute`.
        Tool::Diesel => {
            unless(setting_is_false(&path.with_file_name("metadata.toml"), "run_in_transaction"), SingleString)
        }
        Tool::Atlas => unless(atlas_directives(text).any(|comment| comment == "atlas:txmode none"), Autocommit),
        // graphile-migrate, `src/actions.ts`: one query.
        Tool::GraphileMigrate if is_graphile_action(path) => SingleString,
        Tool::GraphileMigrate => unless(graphile_first_line(text) == Some("! no-transaction"), SingleString),
    }
}

/// Whether a text has LOCK TABLE, and no BEGIN before it.
fn locks_tables(text: &str) -> bool {
    let first_word = |line: &str| line.split_ascii_whitespace().next().map(str::to_ascii_lowercase);
    let is_either = |word: &String| matches!(word.as_str(), "lock" | "begin" | "begin;" | "start");
    text.lines().filter_map(first_word).find(is_either).is_some_and(|word| word == "lock")
}

/// `name--1.0.sql`, and `name--1.0--1.1.sql`, which leads from one version to the next.
fn is_of_extension(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut parts = name.strip_suffix(".sql").unwrap_or_default().split("--");
    let is_name = parts.next().is_some_and(|name| !name.is_empty() && !name.contains(char::is_whitespace));
    let is_version = |part: &str| part.starts_with(|first: char| first.is_ascii_alphanumeric());
    let versions = parts.clone().count();
    is_name
        && (1..=2).contains(&versions)
        && parts.clone().any(|part| part.contains(|one: char| one.is_ascii_digit()))
        && parts.all(is_version)
}

/// The comment that takes a migration out of the tool's transaction, for tools that know one in the file.
pub(crate) fn opt_out(tool: Tool, text: &str, section: Option<TextRange>) -> Option<Edit> {
    let at_start = |comment: &str| {
        let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() as u32 } else { 0 };
        Some(Edit { range: TextRange::at(start), text: comment.to_owned() })
    };
    // The section begins on the line after its marker, which may say the opposite already.
    let at_marker = |key: &str, value: &str| {
        let before = text.get(..section?.start as usize)?.trim_end();
        let marker = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
        let opposite = marker.find(&format!("{key}true")).filter(|_| !value.is_empty());
        let start = opposite.map_or(before.len(), |at| before.len() - marker.len() + at + key.len());
        let end = opposite.map_or(start, |_| start + "true".len());
        let words = if opposite.is_some() { value.to_owned() } else { format!(" {key}{value}") };
        Some(Edit { range: TextRange::new(start as u32, end as u32), text: words })
    };
    match tool {
        Tool::Goose => at_start("-- +goose NO TRANSACTION\n"),
        Tool::Sqlx => at_start("-- no-transaction\n"),
        Tool::Atlas => at_start("-- atlas:txmode none\n\n"),
        Tool::Tern => at_start(&format!("{TERN_OUTSIDE}\n")),
        Tool::Yoyo => at_start("-- transactional: false\n"),
        Tool::PostgresMigrations => at_start(&format!("{POSTGRES_MIGRATIONS_OUTSIDE}\n")),
        Tool::Evolve => at_start("-- evolve-tx-off\n"),
        Tool::Migratus => at_start(&format!("{}\n", migratus::OUTSIDE)),
        Tool::SqlMigrate => at_marker("notransaction", ""),
        Tool::Dbmate => at_marker("transaction:", "false"),
        Tool::Liquibase => at_marker("runInTransaction:", "false"),
        _ => None,
    }
}

/// graphile-migrate runs files beside its folders before or after migrations: `afterReset.sql`.
fn is_graphile_action(path: &Path) -> bool {
    let is_migration = path.file_name().is_none_or(|name| name == "current.sql");
    !is_migration && path.with_file_name("committed").is_dir()
}

fn name_has_part(path: &Path, part: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().split('.').any(|actual| actual == part))
}

pub(super) fn flyway_opt_out(path: &Path) -> bool {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".conf");
    setting_is_false(&path.with_file_name(name), "executeInTransaction")
}

/// Whether the file holds the line `name = false`.
fn setting_is_false(path: &Path, name: &str) -> bool {
    let Ok(text) = read::text(path) else { return false };
    let is_false = |line: &str| line.split_once('=').is_some_and(|(key, value)| key.trim() == name && is_no(value));
    text.lines().any(is_false)
}

fn is_no(value: &str) -> bool {
    value.split('#').next().unwrap_or_default().trim() == "false"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(tool: Tool, path: &Path, text: &str) -> TransactionMode {
        super::mode(tool, path, text, &Nearby::default())
    }

    #[test]
    fn statements_that_refuse_a_transaction_are_recognized() {
        for sql in [
            "create index concurrently i on t (a)",
            "SELECT 1; DROP INDEX CONCURRENTLY i;",
            "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)",
            "VACUUM (ANALYZE) t",
            "REINDEX VERBOSE SCHEMA app",
            "ALTER SYSTEM SET x = 1",
        ] {
            assert_eq!(mode(Tool::Flyway, Path::new("V1__a.sql"), sql), Autocommit, "{sql}");
        }
        for sql in [
            "CREATE INDEX i ON t (a)",
            "SELECT 'VACUUM'",
            "/* ; VACUUM */ SELECT 1",
            "REINDEX TABLE t",
            // Flyway runs them in its transaction, where PostgreSQL refuses them.
            "REINDEX INDEX CONCURRENTLY i",
            "ALTER TABLE p DETACH PARTITION q CONCURRENTLY",
        ] {
            assert_eq!(mode(Tool::Flyway, Path::new("V1__a.sql"), sql), Transaction, "{sql}");
        }
    }

    #[test]
    fn directives_count_where_the_tool_looks_for_them() {
        for (tool, text, expected) in [
            (Tool::Atlas, "-- atlas:txmode none\n\nSELECT 1;", Autocommit),
            (Tool::Atlas, "-- hello\n-- atlas:txmode none\n\nSELECT 1;", Autocommit),
            (Tool::Atlas, "-- atlas:txmode none\nSELECT 1;", Transaction),
            (Tool::Atlas, "-- hello\n\n-- atlas:txmode none\n\nSELECT 1;", Transaction),
            (Tool::GraphileMigrate, "--! Previous: -\n--! Hash: sha1:x\n\n--! no-transaction\nSELECT 1", SingleString),
            (Tool::GraphileMigrate, "--! no-transaction\nSELECT 1", SingleString),
            (
                Tool::GraphileMigrate,
                "--! Previous: -\n--! Hash: x\n\n-- why\n--! no-transaction\nSELECT 1",
                Transaction,
            ),
        ] {
            assert_eq!(mode(tool, Path::new("m/1.sql"), text), expected, "{text}");
        }
    }

    #[test]
    fn the_comment_against_the_transaction_is_said_once() {
        for (tool, marker, expected) in [
            (Tool::Dbmate, "-- migrate:up", "-- migrate:up transaction:false"),
            (Tool::Dbmate, "-- migrate:up transaction:true", "-- migrate:up transaction:false"),
            (Tool::Liquibase, "--changeset a:1 runInTransaction:true", "--changeset a:1 runInTransaction:false"),
            (Tool::SqlMigrate, "-- +migrate Up", "-- +migrate Up notransaction"),
        ] {
            let text = format!("-- first\n{marker}\nSELECT 1;\n");
            let start = (text.len() - "SELECT 1;\n".len()) as u32;
            let edit = opt_out(tool, &text, Some(TextRange::new(start, text.len() as u32))).unwrap();
            let mut changed = text.clone();
            changed.replace_range(edit.range.as_usize(), &edit.text);
            assert_eq!(changed, format!("-- first\n{expected}\nSELECT 1;\n"));
        }
    }
}
