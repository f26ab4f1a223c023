//! Every file with SQL that a run has found, and what it is.

use crate::detected;
use crate::inert;
use crate::report::relative_path;
use pgvet_workspace::{Project, ProjectFile, Role, Skipped, UnknownOrder};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// The role of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileRole {
    Up,
    Down,
    Repeatable,
    Seed,
    Baseline,
    Other,
    Skipped,
}

impl FileRole {
    fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Repeatable => "repeatable",
            Self::Seed => "seed",
            Self::Baseline => "baseline",
            Self::Other => "other",
            Self::Skipped => "skipped",
        }
    }
}

/// A file with SQL.
#[derive(Debug, Serialize)]
pub(crate) struct SqlFile {
    path: String,
    role: FileRole,
    /// Why it has the role.
    reason: String,
}

/// Returns the files of a project and those that were skipped, by path.
pub(crate) fn of(project: &Project) -> Vec<SqlFile> {
    let skipped = project.skipped.iter().map(skipped);
    let mut files: Vec<SqlFile> = project.files.iter().map(loaded).chain(skipped).collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    // Databases may share a baseline.
    files.dedup_by(|one, other| one.path == other.path);
    files
}

fn skipped(file: &Skipped) -> SqlFile {
    SqlFile { path: file.shown(), role: FileRole::Skipped, reason: file.reason.describe().to_owned() }
}

fn loaded(file: &ProjectFile) -> SqlFile {
    let (role, reason) = role(file);
    SqlFile { path: relative_path(&file.shown().path), role, reason }
}

fn role(file: &ProjectFile) -> (FileRole, String) {
    let layout = &file.layout;
    let said = |role, reason: &str| (role, reason.to_owned());
    if file.role == Role::Baseline {
        return said(FileRole::Baseline, "a dump of the schema from before the migrations");
    }
    if matches!(file.role, Role::Observed { .. }) {
        return said(FileRole::Baseline, "the schema of a live database, named by `against`");
    }
    if layout.unlisted {
        let reason = format!(
            "not run: {} skips it, because of its name, its folder, or the tool's own list",
            detected::name(layout.tool)
        );
        return (FileRole::Other, reason);
    }
    if layout.sections.is_empty() {
        return said(FileRole::Other, "has nothing for PostgreSQL");
    }
    if !file.is_run() {
        return said(FileRole::Down, "a down migration, checked only with --down");
    }
    if layout.runs_again {
        return said(FileRole::Repeatable, "run again, always or whenever it changes");
    }
    match file.unknown_order {
        Some(UnknownOrder::NoVersion) if is_seed(&file.path) => {
            said(FileRole::Seed, "its name says seed; checked, but when it runs is not known")
        }
        Some(UnknownOrder::NoVersion) => {
            said(FileRole::Other, "no version in its name; checked, but when it runs is not known")
        }
        _ => (FileRole::Up, format!("{}, {}", detected::name(layout.tool), detected::sign(layout.sign))),
    }
}

/// Whether the name of the file or of its folder says that it fills tables.
fn is_seed(path: &Path) -> bool {
    let is_seed = |name: Option<&std::ffi::OsStr>| {
        let name = name.unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        name.split(['-', '_', '.']).any(|word| matches!(word, "seed" | "seeds" | "seeders"))
    };
    is_seed(path.file_stem()) || is_seed(path.parent().and_then(Path::file_name))
}

/// Writes a line for each file, and how many there are of each role.
pub(crate) fn write(files: &[SqlFile], out: &mut dyn Write) -> io::Result<()> {
    let width = files.iter().map(|file| file.path.chars().count()).max().unwrap_or(0);
    let mut counts: BTreeMap<FileRole, usize> = BTreeMap::new();
    for file in files {
        *counts.entry(file.role).or_default() += 1;
        writeln!(out, "{:11} {:width$}  {}", file.role.as_str(), inert::line(&file.path), file.reason)?;
    }
    let counts: Vec<String> = counts.iter().map(|(role, count)| format!("{count} {}", role.as_str())).collect();
    if counts.is_empty() {
        return writeln!(out, "No SQL files.");
    }
    writeln!(out, "\n{}; `include` and `exclude` under [migrations] in pgvet.toml change this.", counts.join(", "))
}
