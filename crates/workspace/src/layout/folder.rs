//! What the files around a migration say about the tool that runs it.

use super::Tool;
use std::fs;
use std::path::Path;

/// The tool whose files lie beside the migration.
pub(super) fn tool(path: &Path) -> Option<Tool> {
    let parent = path.parent()?;
    if parent.join("meta/_journal.json").exists() {
        Some(Tool::Drizzle)
    } else if parent.join("atlas.sum").exists() {
        Some(Tool::Atlas)
    } else if parent.ends_with("supabase/migrations") {
        Some(Tool::Supabase)
    } else if sqitch_plan(parent).is_some_and(|plan| plan.exists()) {
        Some(Tool::Sqitch)
    } else {
        rust_runner(path)
    }
}

/// sqlx or refinery, if the Cargo.toml of the project names one, and the migration lies in its `migrations` folder.
pub(super) fn rust_runner(path: &Path) -> Option<Tool> {
    let migrations = path.parent().filter(|parent| parent.file_name().is_some_and(|name| name == "migrations"))?;
    // The manifest of the crate, or of its workspace.
    let manifests = migrations.ancestors().skip(1).take(3).map(|folder| folder.join("Cargo.toml"));
    for manifest in manifests.filter_map(|manifest| fs::read_to_string(manifest).ok()) {
        for (name, tool) in [("sqlx", Tool::Sqlx), ("refinery", Tool::Refinery)] {
            if manifest.lines().any(|line| is_dependency(line, name)) {
                return Some(tool);
            }
        }
    }
    None
}

/// `sqlx = "0.8"`, `sqlx.workspace = true`, `[dependencies.sqlx]`.
fn is_dependency(line: &str, name: &str) -> bool {
    let line = line.trim();
    let key = line.split(['=', '.']).next().unwrap_or_default().trim();
    key == name || line.ends_with(&format!(".{name}]"))
}

const SQITCH_FOLDERS: [&str; 3] = ["deploy", "revert", "verify"];

fn sqitch_plan(parent: &Path) -> Option<std::path::PathBuf> {
    let folder = parent.ancestors().find(|folder| SQITCH_FOLDERS.iter().any(|name| folder.ends_with(name)))?;
    Some(folder.with_file_name("sqitch.plan"))
}

/// Is it one of Sqitch's scripts that take a change back or look whether it is there?
pub(super) fn is_sqitch_aside(path: &Path) -> bool {
    let Some(parent) = path.parent().filter(|parent| parent.ends_with("revert") || parent.ends_with("verify")) else {
        return false;
    };
    sqitch_plan(parent).is_some_and(|plan| plan.exists())
}

/// The file stems of a folder in the order that a file of the tool gives: Drizzle's journal, Sqitch's plan.
pub(crate) fn explicit_order(parent: &Path) -> Option<Vec<String>> {
    if let Ok(journal) = fs::read_to_string(parent.join("meta/_journal.json")) {
        return drizzle_order(&journal);
    }
    let plan = sqitch_plan(parent).filter(|_| SQITCH_FOLDERS.iter().any(|name| parent.ends_with(name)))?;
    Some(sqitch_order(&fs::read_to_string(plan).ok()?))
}

fn drizzle_order(journal: &str) -> Option<Vec<String>> {
    let journal: serde_json::Value = serde_json::from_str(journal).ok()?;
    let mut entries: Vec<(u64, String)> = journal["entries"]
        .as_array()?
        .iter()
        .filter_map(|entry| Some((entry["idx"].as_u64()?, entry["tag"].as_str()?.to_owned())))
        .collect();
    entries.sort();
    Some(entries.into_iter().map(|(_, tag)| tag).collect())
}

/// Changes in the order of the plan. An earlier version of a reworked change is kept as `name@tag`, after the tag that
/// followed it. Source: Sqitch, `sqitchchanges` and `sqitch-rework`.
fn sqitch_order(plan: &str) -> Vec<String> {
    let mut changes: Vec<(String, Option<String>)> = Vec::new();
    for line in plan.lines().map(str::trim) {
        let word = line.split_whitespace().next().unwrap_or_default();
        if word.is_empty() || word.starts_with(['%', '#']) {
            continue;
        }
        if let Some(tag) = word.strip_prefix('@') {
            for (_, following) in changes.iter_mut().filter(|(_, following)| following.is_none()) {
                *following = Some(tag.to_owned());
            }
            continue;
        }
        if let Some((earlier, Some(tag))) = changes.iter_mut().rfind(|(name, _)| name == word) {
            *earlier = format!("{earlier}@{tag}");
        }
        changes.push((word.to_owned(), None));
    }
    changes.into_iter().map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_gives_the_order_and_keeps_reworked_changes() {
        let plan = "%syntax-version=1.0.0\n\nusers 2024-01-01T00:00:00Z a <a@b.c> # x\norders [users] 2024\n@v1 2024\n\
                    # note\nusers [users@v1] 2024\n";
        assert_eq!(sqitch_order(plan), ["users@v1", "orders", "users"]);
    }

    #[test]
    fn a_journal_gives_the_order() {
        let journal = r#"{"entries":[{"idx":1,"tag":"0001_a"},{"idx":0,"tag":"0000_z"}]}"#;
        assert_eq!(drizzle_order(journal).unwrap(), ["0000_z", "0001_a"]);
        assert_eq!(drizzle_order("{"), None);
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        assert!(is_dependency("sqlx = { version = \"0.8\" }", "sqlx"));
        assert!(is_dependency("sqlx.workspace = true", "sqlx"));
        assert!(is_dependency("[workspace.dependencies.sqlx]", "sqlx"));
        assert!(!is_dependency("sqlx-cli = \"0.8\"", "sqlx"));
        assert!(!is_dependency("# sqlx", "sqlx"));
    }
}
