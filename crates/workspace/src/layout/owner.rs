//! The tool that runs a file whatever its comments say: a mark of another tool is a comment to it.

use super::folder::Facts;
use super::{Sign, Tool, tool_by_name};
use std::path::Path;

/// Returns the tool that its own list, the folder or the name of a file proves.
pub(super) fn of(path: &Path, around: &Facts) -> Option<(Tool, Sign)> {
    // Flyway's names are ordinary ones in a changelog of Liquibase.
    if let Some(tool) = around.tool_of_list(path) {
        return Some((tool, Sign::Folder));
    }
    // Atlas checks folders that goose, dbmate, Flyway or others run.
    if let Some(tool @ (Tool::Drizzle | Tool::Supabase | Tool::GraphileMigrate)) = around.tool {
        return Some((tool, Sign::Folder));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let tool = tool_by_name(path, &name, around)?;
    // goose, sql-migrate and dbmate run files with such names, too, but never both halves of a pair.
    let is_half = name.ends_with(".up.sql") || name.ends_with(".down.sql");
    (!is_half || has_other_half(path, &name)).then_some((tool, Sign::FileName))
}

fn has_other_half(path: &Path, name: &str) -> bool {
    let other = match name.strip_suffix(".up.sql") {
        Some(stem) => format!("{stem}.down.sql"),
        None => format!("{}.up.sql", name.strip_suffix(".down.sql").unwrap_or_default()),
    };
    path.with_file_name(other).exists()
}

/// Whether the marks of a tool may count although the name of a file is that of another one: Liquibase reads its files
/// under any name, and its changelogs are not always found.
pub(super) fn may_read(tool: Tool, around: &Facts) -> bool {
    tool == Tool::Liquibase && around.root().is_none()
}
