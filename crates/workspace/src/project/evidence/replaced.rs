//! Histories that another history of the repository has replaced: it drops the table in which their tool records what
//! has run.

use super::is_judged;
use crate::layout::Tool;
use crate::order::FlywayName;
use crate::project::ProjectFile;
use aho_corasick::AhoCorasick;
use pgvet_linter::repository::IdleReason;
use pgvet_model::migration::Direction;
use pgvet_syntax::lexer::{self, Token, TokenKind, tokenize};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The tables, with the tools that keep them. Source: `crates/capture/src/tools.rs`; Play 3.0 documentation, "Evolutions";
/// Flyway 4 documentation, `flyway.table`.
const TABLES: [(&str, &[Tool]); 15] = [
    ("flyway_schema_history", &[Tool::Flyway]),
    ("schema_version", &[Tool::Flyway, Tool::Tern]),
    ("play_evolutions", &[]),
    ("goose_db_version", &[Tool::Goose]),
    ("gorp_migrations", &[Tool::SqlMigrate]),
    ("schema_migrations", &[Tool::Dbmate, Tool::GolangMigrate]),
    ("schema_migration", &[Tool::Pop]),
    ("_sqlx_migrations", &[Tool::Sqlx]),
    ("refinery_schema_history", &[Tool::Refinery]),
    ("__diesel_schema_migrations", &[Tool::Diesel]),
    ("_prisma_migrations", &[Tool::Prisma]),
    ("__drizzle_migrations", &[Tool::Drizzle]),
    ("pgmigrations", &[Tool::NodePgMigrate]),
    ("databasechangelog", &[Tool::Liquibase]),
    ("_yoyo_migration", &[Tool::Yoyo]),
];

/// Tables of tools whose migrations are written in a programming language, and other tables of their own. Source:
/// `crates/capture/src/tools.rs`.
const OTHERS: [&str; 19] = [
    "django_migrations",
    "alembic_version",
    "knex_migrations",
    "knex_migrations_lock",
    "sequelizemeta",
    "SequelizeMeta",
    "typeorm_metadata",
    "bun_migrations",
    "bun_migration_locks",
    "seaql_migrations",
    "mikro_orm_migrations",
    "doctrine_migration_versions",
    "phinxlog",
    "atlas_schema_revisions",
    "ar_internal_metadata",
    "databasechangeloglock",
    "kysely_migration",
    "kysely_migration_lock",
    "yoyo_lock",
];

/// The tables that migration tools create themselves.
pub(super) fn tables_of_tools() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(table, _)| *table).chain(OTHERS)
}

/// Whether the tool that records what has run in a table runs the file.
fn records(table: &str, file: &ProjectFile) -> bool {
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let is_flyway = || {
        // Its prefix can be configured, and some projects write it in lower case.
        let (first, rest) = name.split_at_checked(1).unwrap_or_default();
        FlywayName::parse(&(first.to_ascii_uppercase() + rest)).is_some()
    };
    match (table, file.layout.tool) {
        ("play_evolutions", _) => file.path.components().any(|part| part.as_os_str() == "evolutions"),
        ("flyway_schema_history" | "schema_version", Tool::Plain) => is_flyway(),
        (_, tool) => TABLES.iter().any(|(known, tools)| *known == table && tools.contains(&tool)),
    }
}

/// A migration that drops such a table.
struct Drop {
    table: &'static str,
    /// Index of the file.
    file: usize,
}

/// Marks the reported files of histories that were replaced. Of several histories of a tool, those are meant whose tables
/// the new history uses.
pub(super) fn mark(files: &mut [ProjectFile]) {
    // One history replaces no other, and the search below costs more to prepare than the check of a small file.
    if files.windows(2).all(|pair| pair[0].database == pair[1].database) {
        return;
    }
    let drops = drops(files);
    for Drop { table, file } in drops {
        let (by, database) = (SmolStr::new(&files[file].shown().path), files[file].database);
        let used = used_tables(files, database);
        let mut replaced: BTreeSet<u32> = BTreeSet::new();
        for other in files.iter().filter(|other| other.database != database && records(table, other)) {
            if !replaced.contains(&other.database) && created(&text(other)).any(|table| used.contains(&table)) {
                replaced.insert(other.database);
            }
        }
        for other in files.iter_mut() {
            let is_replaced = replaced.contains(&other.database) && records(table, other) && is_judged(other);
            if is_replaced && other.evidence.idle.is_none() {
                other.evidence.idle = Some(IdleReason::Replaced { table: SmolStr::new_static(table), by: by.clone() });
            }
        }
    }
}

/// The migrations that drop the table of a tool that does not run them.
fn drops(files: &[ProjectFile]) -> Vec<Drop> {
    let names = TABLES.map(|(table, _)| table);
    let Ok(finder) = AhoCorasick::builder().ascii_case_insensitive(true).build(names) else { return Vec::new() };
    let mut drops = Vec::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.role.is_migration() && file.is_run()) {
        if finder.is_match(&file.parsed.source.text) {
            let dropped: BTreeSet<SmolStr> = named_after(&text(file), &["DROP"]).collect();
            let tables = names.into_iter().filter(|table| dropped.contains(*table) && !records(table, file));
            drops.extend(tables.map(|table| Drop { table, file: at }));
        }
    }
    drops
}

/// The text of the sections that run forward.
pub(super) fn text(file: &ProjectFile) -> Cow<'_, str> {
    let text = file.parsed.source.text.as_str();
    let forward = file.layout.sections.iter().filter(|section| section.direction == Direction::Up);
    let mut parts = forward.map(|section| section.range.map_or(text, |range| &text[range.as_usize()]));
    let first = parts.next().unwrap_or_default();
    parts.fold(Cow::Borrowed(first), |all, part| all + part)
}

/// The tables that the migrations of a database create or change.
fn used_tables(files: &[ProjectFile], database: u32) -> BTreeSet<SmolStr> {
    let own = files.iter().filter(|file| file.database == database && file.role.is_migration());
    own.flat_map(|file| named_after(&text(file), &["CREATE", "ALTER"]).collect::<Vec<_>>()).collect()
}

/// The tables that a text creates.
pub(super) fn created(text: &str) -> impl Iterator<Item = SmolStr> {
    named_after(text, &["CREATE"])
}

/// The tables that a text drops.
pub(super) fn dropped(text: &str) -> impl Iterator<Item = SmolStr> {
    named_after(text, &["DROP"])
}

/// The names of tables in `VERB TABLE [IF [NOT] EXISTS] [ONLY] name, ...`, without their schemas.
fn named_after(text: &str, verbs: &[&str]) -> impl Iterator<Item = SmolStr> {
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token: &Token| token.is_keyword(text, word));
    let mut names = Vec::new();
    for at in 0..tokens.len() {
        if !(verbs.iter().any(|verb| is(at, verb)) && is(at + 1, "TABLE")) {
            continue;
        }
        let mut next = at + 2;
        while ["IF", "NOT", "EXISTS", "ONLY"].iter().any(|word| is(next, word)) {
            next += 1;
        }
        while let Some((name, after)) = name_at(&tokens, next, text) {
            names.push(name);
            let goes_on = tokens.get(after).is_some_and(|token| token.is_punctuation(b','));
            next = if goes_on && is(at, "DROP") { after + 1 } else { break };
        }
    }
    names.into_iter()
}

/// The last part of a name, and the place of the token after it.
fn name_at(tokens: &[Token], mut at: usize, text: &str) -> Option<(SmolStr, usize)> {
    loop {
        let token = tokens.get(at)?;
        if !matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier) {
            return None;
        }
        if !tokens.get(at + 1).is_some_and(|next| next.is_punctuation(b'.')) {
            return Some((lexer::identifier(token.text(text)), at + 1));
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_under_every_spelling() {
        let names = |text, verbs| named_after(text, verbs).collect::<Vec<_>>();
        assert_eq!(
            names("drop table if exists public.\"schema_version\", B cascade;", &["DROP"]),
            ["schema_version", "b"]
        );
        assert_eq!(names("CREATE TABLE IF NOT EXISTS a (b int, c int);", &["CREATE"]), ["a"]);
        assert_eq!(names("-- DROP TABLE a\nSELECT 'DROP TABLE b';", &["DROP"]), [] as [&str; 0]);
    }
}
