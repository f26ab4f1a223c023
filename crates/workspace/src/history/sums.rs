//! Migrations that do not match their hash in `atlas.sum`.

use crate::atlas_sum::{Content, LIST, MISMATCH, Sums, hashes, with_returns, without_returns};
use crate::layout::Tool;
use crate::project::{ProjectFile, Role};
use crate::texts::Texts;
use pgvet_model::incident::{Applied, HashOf, Incident, IncidentKind};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Notes the first migration of each folder of Atlas that does not match its hash. If that migration is not reported,
/// the last one that is gets the note.
pub(crate) fn compare_sums(files: &mut [ProjectFile], texts: &Texts) {
    let is_compared = |file: &ProjectFile| {
        file.role == Role::Reported && file.layout.tool == Tool::Atlas && file.origin.is_none() && !file.is_removed()
    };
    let folder = |file: &ProjectFile| file.path.parent().unwrap_or(Path::new("")).to_owned();
    let folders: BTreeSet<PathBuf> = files.iter().filter(|file| is_compared(file)).map(folder).collect();
    for root in folders {
        let Some(Difference { of, only_line_endings }) = difference(&root, texts) else { continue };
        let is_own = |file: &&mut ProjectFile| is_compared(file) && folder(file) == root;
        let own: Vec<&mut ProjectFile> = files.iter_mut().filter(is_own).collect();
        let named = own.iter().position(|file| file.path.file_name() == of.as_deref().map(OsStr::new));
        let place = named.or(own.len().checked_sub(1));
        let Some(file) = own.into_iter().nth(place.unwrap_or_default()) else { continue };
        let of = match of {
            None => HashOf::All,
            Some(_) if named.is_some() => HashOf::This,
            Some(name) => HashOf::Other(name),
        };
        if of == HashOf::This {
            file.incidents.retain(|incident| !matches!(incident.kind, IncidentKind::Edited { .. }));
        }
        let kind = IncidentKind::HashDiffers { of, only_line_endings };
        let tool = file.layout.tool.title();
        file.incidents.push(Incident { kind, consequence: MISMATCH, tool, applied: Applied::Any });
    }
}

/// The first hash that does not match.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    /// The name of its file; `None` if the first line does not match the others.
    of: Option<String>,
    /// Whether the hashes match with other line endings.
    only_line_endings: bool,
}

/// Compares the hashes in the `atlas.sum` of a folder with the files beside it. `None` if all match, if a file is missing
/// on either side, or if it is unknown which files Atlas hashes.
fn difference(folder: &Path, texts: &Texts) -> Option<Difference> {
    let sums = Sums::parse(std::str::from_utf8(&texts.bytes(&folder.join(LIST))?).ok()?)?;
    let ending = sums.ending()?;
    let mut names = texts.names_in(folder);
    names.retain(|name| name.ends_with(ending));
    let read = |name: String| texts.bytes(&folder.join(&name)).map(|bytes| (name, bytes));
    let files: Vec<Content> = names.into_iter().map(read).collect::<Option<_>>()?;
    let of = sums.first_difference(&hashes(&files))?;
    let matches_with = |change: fn(&[u8]) -> Vec<u8>| {
        let changed: Vec<Content> = files.iter().map(|(name, bytes)| (name.clone(), change(bytes))).collect();
        sums.first_difference(&hashes(&changed)).is_none()
    };
    Some(Difference { of, only_line_endings: matches_with(without_returns) || matches_with(with_returns) })
}
