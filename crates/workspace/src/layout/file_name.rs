//! The tool that the name of a file tells.

use super::dotnet::Library;
use super::folder::{self, Facts};
use super::{Tool, model};
use crate::fizz;
use crate::order::{FlywayName, PostgratorName};
use std::ffi::OsStr;
use std::path::Path;

/// Returns the tool that runs files of this name. A special name comes before a general one.
pub(super) fn tool_by_name(path: &Path, name: &str, around: &Facts) -> Option<Tool> {
    if FlywayName::parse(name).is_some() {
        let other = around.rust_runner.or(around.dotnet.map(Library::tool));
        return Some(other.filter(|tool| matches!(tool, Tool::Refinery | Tool::Evolve)).unwrap_or(Tool::Flyway));
    }
    if PostgratorName::parse(name).is_some() {
        return Some(Tool::Postgrator);
    }
    if fizz::is_fizz(path) {
        return Some(Tool::Pop);
    }
    match name {
        "up.sql" | "down.sql" if around.has_down_files => return Some(Tool::Diesel),
        "up.sql" => return None,
        "migration.sql" if path.with_file_name("snapshot.json").exists() => return Some(Tool::Drizzle),
        "migration.sql" if is_of_prisma(path) => return Some(Tool::Prisma),
        _ => {}
    }
    let stem = name.strip_suffix(".up.sql").or_else(|| name.strip_suffix(".down.sql"))?;
    if around.tool == Some(Tool::Migratus) {
        return Some(Tool::Migratus);
    }
    if around.has_dialects || folder::has_dialect(name) {
        return Some(Tool::Pop);
    }
    let runner = around.rust_runner.filter(|tool| *tool == Tool::Sqlx).or(around.go_runner);
    // golang-migrate skips `001-a.up.sql`, which ragtime runs.
    let is_hyphenated = model::behind_number(stem).is_some_and(|rest| rest.starts_with('-'));
    runner.or_else(|| (!is_hyphenated && !around.has_other_go_runner).then_some(Tool::GolangMigrate))
}

/// Whether a `migration.sql` is where Prisma keeps one: in a folder with a version, or beside `migration_lock.toml`.
fn is_of_prisma(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    let begins_with_digit = |name: &OsStr| name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
    folder.file_name().is_some_and(begins_with_digit) || folder.with_file_name("migration_lock.toml").is_file()
}
