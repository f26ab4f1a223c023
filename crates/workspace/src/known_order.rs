//! Whether it is known when a file runs among the others of its database.

use crate::config::absolute;
use crate::layout::{Layout, Sign, Tool};
use crate::plan::Database;
use crate::project::{ProjectFile, Role};
use crate::skipped;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Why it is not known when a file runs among the others of its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownOrder {
    /// Its name has no version, and no list of its tool names it.
    NoVersion,
    /// Migrations in a programming language run among those in SQL.
    OtherLanguages,
    /// The tool that runs it is not the one that runs most files.
    OtherTool,
}

/// Returns why the place of a file is unknown, as far as the file and its folder show. `by_name` is what its name shows.
pub(crate) fn of_file(by_name: Option<UnknownOrder>, path: &Path, layout: &Layout) -> Option<UnknownOrder> {
    let by_name = by_name.filter(|why| *why != UnknownOrder::NoVersion || !is_placed_by_tool(path, layout));
    by_name.or(layout.in_other_languages.then_some(UnknownOrder::OtherLanguages))
}

/// Whether the tool runs the file at a known time even if its name has no version: by a list of its own, or because
/// the file itself shows the tool.
fn is_placed_by_tool(path: &Path, layout: &Layout) -> bool {
    let is_current = |path: &Path| path.file_stem().is_some_and(|stem| stem == "current");
    let has_list = match layout.tool {
        Tool::Sqitch | Tool::Liquibase | Tool::Drizzle | Tool::Yuniql | Tool::Grate | Tool::Dbup | Tool::Captured => {
            true
        }
        // The migration that is still being written runs after all that are committed.
        Tool::GraphileMigrate => is_current(path) || path.parent().is_some_and(is_current),
        _ => false,
    };
    let shows_tool = matches!(layout.sign, Sign::Configuration | Sign::Comment | Sign::FileName);
    layout.tool != Tool::Plain && (has_list || shows_tool)
}

/// Marks the files whose tool is not the one that runs most files of their database: nothing shows which tool runs
/// first. Files that the user named one by one run in the order in which they are named.
pub(crate) fn compare_tools(files: &mut [ProjectFile], databases: &[Database]) {
    let is_named = |database: u32| {
        let database = (database as usize).checked_sub(1).and_then(|at| databases.get(at));
        database.is_some_and(|database| database.root.as_os_str().is_empty())
    };
    let is_compared =
        |file: &ProjectFile| file.role != Role::Baseline && !file.layout.unlisted && !is_named(file.database);
    let mut counts: BTreeMap<u32, BTreeMap<Tool, usize>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_compared(file)) {
        *counts.entry(file.database).or_default().entry(file.layout.tool).or_default() += 1;
    }
    let main: BTreeMap<u32, Tool> =
        counts.iter().filter_map(|(database, counts)| Some((*database, most_frequent(counts)?))).collect();
    for file in files.iter_mut().filter(|file| is_compared(file)) {
        if main.get(&file.database) != Some(&file.layout.tool) {
            file.unknown_order.get_or_insert(UnknownOrder::OtherTool);
        }
    }
}

/// Marks the files that production may not run: those that no tool runs at a known time, and those in folders of tests
/// below the migrations.
pub(crate) fn mark_production(files: &mut [ProjectFile], databases: &[Database]) {
    for file in files.iter_mut().filter(|file| file.role.is_migration()) {
        let database = (file.database as usize).checked_sub(1).and_then(|at| databases.get(at));
        let root = database.filter(|database| !database.root.as_os_str().is_empty());
        let root = root.map(|database| absolute(&database.root));
        let path = absolute(&file.path);
        let folders = root.and_then(|root| path.parent()?.strip_prefix(root).ok().map(Path::to_owned));
        let is_for_tests = folders
            .is_some_and(|folders| folders.iter().any(|folder| skipped::is_named_for_tests(&folder.to_string_lossy())));
        file.in_production = file.unknown_order != Some(UnknownOrder::NoVersion) && !is_for_tests;
    }
}

/// The tool of the most files; `None` if two tools have equally many.
fn most_frequent(counts: &BTreeMap<Tool, usize>) -> Option<Tool> {
    let most = counts.values().max()?;
    let mut tools = counts.iter().filter(|(_, count)| *count == most).map(|(tool, _)| *tool);
    tools.next().filter(|_| tools.next().is_none())
}
