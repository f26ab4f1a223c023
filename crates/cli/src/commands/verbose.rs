//! `--verbose`: what a run reads, and what it skips.

use crate::inert;
use crate::report::relative_path;
use pgvet_workspace::{Project, Role};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Lists configuration files, the files of the run with their roles, and skipped files with the reason.
pub(super) fn write(project: &Project, out: &mut dyn Write) -> io::Result<()> {
    let configs: BTreeSet<String> = project
        .files
        .iter()
        .flat_map(|file| &file.config.files)
        .map(|file| relative_path(&file.to_string_lossy()))
        .collect();
    for config in configs {
        writeln!(out, "configuration: {}", inert::line(&config))?;
    }
    for file in &project.files {
        let role = match file.role {
            Role::Baseline => "schema",
            Role::Observed { .. } => "database",
            Role::History => "replayed",
            Role::Reported => "checked",
        };
        writeln!(out, "{role}: {}", inert::line(&relative_path(&file.shown().path)))?;
    }
    for skipped in &project.skipped {
        writeln!(out, "skipped: {} ({})", inert::line(&skipped.shown()), skipped.reason.describe())?;
    }
    Ok(())
}
