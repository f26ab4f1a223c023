//! What the files around a migration say about the tool that runs it.

use super::Tool;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What is known about folders, looked up once each.
#[derive(Debug, Default)]
pub(crate) struct Folders(Mutex<BTreeMap<PathBuf, Facts>>);

/// What a folder says about the migrations directly in it.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The tool whose files lie beside them.
    pub(super) tool: Option<Tool>,
    /// sqlx or refinery, if the Rust project around them uses it.
    pub(super) rust_runner: Option<Tool>,
    order: Option<Arc<ExplicitOrder>>,
}

impl Facts {
    /// Does the tool leave the file alone? Sqitch's scripts that take a change back, or look whether it is there, count.
    pub(super) fn is_not_run(&self, path: &Path) -> bool {
        self.order.as_ref().is_some_and(|order| {
            let aside = self.tool == Some(Tool::Sqitch) && !order.root.ends_with("deploy");
            aside || order.place(path).is_none()
        })
    }
}

impl Folders {
    pub(super) fn around(&self, path: &Path) -> Facts {
        let parent = path.parent().unwrap_or(Path::new(""));
        // Whoever panicked while holding the lock left a map of complete entries.
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = folders.get(parent) {
            return facts.clone();
        }
        let order = ExplicitOrder::of(parent).map(Arc::new);
        let facts = Facts { tool: tool(parent), rust_runner: rust_runner(parent), order };
        folders.insert(parent.to_owned(), facts.clone());
        facts
    }
}

fn tool(parent: &Path) -> Option<Tool> {
    if parent.join("meta/_journal.json").exists() {
        Some(Tool::Drizzle)
    } else if parent.join("atlas.sum").exists() {
        Some(Tool::Atlas)
    } else if parent.ends_with("supabase/migrations") {
        Some(Tool::Supabase)
    } else {
        let planned = sqitch_folder(parent).is_some_and(|folder| folder.with_file_name("sqitch.plan").exists());
        planned.then_some(Tool::Sqitch)
    }
}

/// sqlx or refinery, if the Cargo.toml of the project names one, and `migrations` is the folder of that name.
fn rust_runner(migrations: &Path) -> Option<Tool> {
    if !migrations.ends_with("migrations") {
        return None;
    }
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

/// The `deploy`, `revert` or `verify` folder that holds this one, or is it.
fn sqitch_folder(parent: &Path) -> Option<&Path> {
    parent.ancestors().find(|folder| SQITCH_FOLDERS.iter().any(|name| folder.ends_with(name)))
}

/// The migrations of a tool that keeps their order in a file of its own: Drizzle's journal, Sqitch's plan.
#[derive(Debug)]
pub(crate) struct ExplicitOrder {
    /// The folder to which names are relative.
    pub(crate) root: PathBuf,
    /// Paths without `.sql`, in order.
    names: Vec<String>,
}

impl ExplicitOrder {
    /// The order that holds for the files of this folder.
    pub(crate) fn of(parent: &Path) -> Option<Self> {
        if let Ok(journal) = fs::read_to_string(parent.join("meta/_journal.json")) {
            return Some(Self { root: parent.to_owned(), names: drizzle_order(&journal)? });
        }
        let root = sqitch_folder(parent)?;
        let plan = fs::read_to_string(root.with_file_name("sqitch.plan")).ok()?;
        Some(Self { root: root.to_owned(), names: sqitch_order(&plan) })
    }

    /// The place of a file; `None` if the tool does not run it.
    pub(crate) fn place(&self, path: &Path) -> Option<usize> {
        let relative = path.strip_prefix(&self.root).ok()?.with_extension("");
        self.names.iter().position(|name| Path::new(name) == relative)
    }
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
