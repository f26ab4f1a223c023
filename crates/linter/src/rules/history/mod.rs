//! Migrations that databases have applied, and those that come after them.
//!
//! What has happened to a file is known from version control: see [`pgvet_model::incident`].

pub mod applied_migration_edited;
pub mod applied_migration_removed;
pub mod duplicate_migration_version;
pub mod migration_not_listed;
pub mod migration_out_of_order;

use crate::assumption::Assumption;
use crate::report::Finding;
use crate::rule::MigrationContext;
use pgvet_model::incident::{Applied, Consequence, Incident};
use pgvet_syntax::source::TextRange;

/// Returns the first word of a migration, which stands for the file.
fn first_word(context: &MigrationContext<'_>) -> TextRange {
    let first = context.migration.statements().next();
    first.and_then(|statement| Some(statement.tokens.first()?.range)).unwrap_or_default()
}

/// Returns the name of the tool in a message.
fn tool(incident: &Incident) -> &'static str {
    incident.tool.unwrap_or("the migration tool")
}

/// Returns what a tool that refuses to run says, as the end of a sentence.
fn refusal(incident: &Incident, saying: &str) -> String {
    format!("{} refuses to run on databases that have applied it (\"{saying}\")", tool(incident))
}

/// Returns the way to run the tool nevertheless, as the end of a sentence of help.
fn way_around(consequence: Consequence) -> String {
    match consequence {
        Consequence::Refuses { unless: Some(unless), .. } => format!("; or {unless}"),
        _ => String::new(),
    }
}

/// Adds what a finding assumes about what databases have applied.
fn assuming_applied<'r, 'a>(finding: Finding<'r, 'a>, incident: &Incident) -> Finding<'r, 'a> {
    match incident.applied {
        Applied::InBase => finding.assuming(Assumption::BaseIsApplied),
        Applied::Committed => finding.assuming(Assumption::CommitIsApplied),
        Applied::Any => finding,
    }
}
