//! What tools do after the files of applied migrations were changed: a run, a change, and another run.

use super::compare::Difference;
use super::declaration::{Declaration, folder};
use super::observation::{End, Observation, Recorded};
use super::project::{Case, folders};
use pgvet_model::incident::Consequence;
use pgvet_workspace::Reactions;
use std::path::Path;

/// A project before and after a change.
#[derive(Debug)]
pub struct Change {
    pub name: String,
    pub(super) before: Case,
    pub(super) after: Case,
}

/// The changes of `fixtures/tools/changes`, by name.
///
/// # Errors
/// Says what could not be read.
pub fn changes() -> Result<Vec<Change>, String> {
    let all = folders(&folder().join("changes"))?;
    let part = |name: &str, folder: std::path::PathBuf| Case::shared(name, folder);
    let change = |(name, folder): (String, std::path::PathBuf)| Change {
        before: part(&name, folder.join("before")),
        after: part(&name, folder.join("after")),
        name,
    };
    Ok(all.into_iter().map(change).collect())
}

/// What the tool does about a change, as `reaction.rs` says.
fn expected(change: &str, reactions: &Reactions) -> Option<Consequence> {
    Some(match change {
        "edited-statement" | "edited-comment" | "edited-space" => reactions.edited,
        "retitled" => reactions.retitled,
        "renumbered" => reactions.renumbered,
        "removed" => reactions.removed,
        "newest-removed" => reactions.newest_removed,
        "late" => reactions.late,
        "same-as-applied" => reactions.same_as_applied,
        "same-version" => reactions.same_version,
        _ => return None,
    })
}

/// Whether the tool refused to run. Its own table refuses a second row of one version.
pub(super) fn is_refusal(seen: &Observation) -> bool {
    seen.end != End::Success && seen.error.as_deref().is_none_or(|error| error == "23505")
}

/// What the tool did, in the words of [`expected_in_words`].
fn seen_in_words(seen: &Observation) -> String {
    let subjects = seen.steps.iter().filter(|step| step.object.contains("t_subject")).count();
    match (is_refusal(seen), &seen.says) {
        (true, Some(says)) => format!("refuses: {says}"),
        (true, None) => "refuses".to_owned(),
        // A migration that runs again meets the table that it has created.
        (false, _) if seen.error.is_some() => "runs".to_owned(),
        (false, _) if subjects == 2 => "runs both".to_owned(),
        (false, _) if subjects == 1 => "runs one".to_owned(),
        (false, _) => "passes over".to_owned(),
    }
}

/// What the model says of a change, in the same words; `None` if it says nothing.
fn expected_in_words(change: &str, consequence: Consequence) -> Option<String> {
    let is_new = matches!(change, "late" | "same-as-applied");
    let is_pair = change == "same-version";
    Some(match consequence {
        Consequence::Refuses { saying, .. } => format!("refuses: {saying}"),
        Consequence::Runs if is_new => "runs one".to_owned(),
        Consequence::Runs => "runs".to_owned(),
        Consequence::Ignores if is_pair => "runs both".to_owned(),
        Consequence::Ignores if is_new => "runs one".to_owned(),
        Consequence::Skips if is_pair => "runs one".to_owned(),
        Consequence::Ignores | Consequence::Skips => "passes over".to_owned(),
        Consequence::Unknown => return None,
    })
}

/// What the model says of the tool, whose migrations have such paths.
fn reactions(tool: &Declaration) -> Option<Reactions> {
    tool.tool.map(|known| known.reactions_to(Path::new(&tool.project.file)))
}

/// Compares a recorded change with the model.
pub fn difference(tool: &Declaration, recorded: &Recorded) -> Option<Difference> {
    let reactions = reactions(tool)?;
    let consequence = expected(&recorded.case, &reactions)?;
    let predicted = expected_in_words(&recorded.case, consequence).unwrap_or_else(|| "not known".to_owned());
    let recorded = seen_in_words(&recorded.seen);
    (recorded != predicted).then_some(Difference { part: "reaction", recorded, predicted })
}

/// What a tool has printed, as the message that the model knows of it, or else its first words.
pub(super) fn says(tool: &Declaration, change: &str, printed: &str) -> Option<String> {
    let known = reactions(tool).and_then(|reactions| expected(change, &reactions));
    if let Some(Consequence::Refuses { saying, .. }) = known
        && contains(printed, saying)
    {
        return Some(saying.to_owned());
    }
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then(|| words.chars().take(300).collect())
}

/// Whether a text has a message whose `…` stand for anything.
fn contains(printed: &str, message: &str) -> bool {
    let mut rest = printed;
    message.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}
