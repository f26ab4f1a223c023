//! Captured migrations as a folder of files.

use crate::cut::{Capture, Migration};
use crate::saved::Saved;
use crate::source::{Source, Sources};
use crate::text::{Purpose, text};
use crate::tools::Naming;
use pgvet_workspace::captured::{MANIFEST, Manifest};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Bytes of the longest name that is given to a file; file systems take 255.
const LONGEST_NAME: usize = 150;

/// A capture as files.
#[derive(Debug, Default)]
pub struct Files {
    /// Names and texts, the manifest last.
    pub files: Vec<(String, String)>,
    /// Names of migrations whose source is not in the project.
    pub without_source: Vec<String>,
}

/// Writes the files of a capture, after those of an earlier one from whose end it went on. `root` is the folder of the
/// project as the folder of the files sees it.
pub fn files(capture: &Capture, saved: &Saved, sources: &Sources, root: PathBuf) -> Files {
    write(capture, saved, sources, root, Purpose::Check)
}

/// Writes the files of a capture, with all values, so that they can be run again.
pub fn files_to_run(capture: &Capture, saved: &Saved, sources: &Sources, root: PathBuf) -> Files {
    write(capture, saved, sources, root, Purpose::Run)
}

fn write(capture: &Capture, saved: &Saved, sources: &Sources, root: PathBuf, purpose: Purpose) -> Files {
    let before = match purpose {
        Purpose::Check => saved.files(),
        Purpose::Run => saved.files_to_run(),
    };
    let mut found = Files { files: before, ..Files::default() };
    let mut names: Vec<String> = found.files.iter().map(|(name, _)| name.clone()).collect();
    let mut taken: BTreeSet<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    for migration in &capture.migrations {
        let source = match migration.naming {
            Some(_) => sources.find(migration),
            None => sources.unfinished(capture, migration),
        };
        if source.is_none() && migration.is_complete {
            found.without_source.push(migration.name.clone());
        }
        let name = file_name(migration, source.as_ref(), &mut taken);
        found.files.push((name.clone(), text(migration, source.as_ref(), purpose)));
        names.push(name);
    }
    let tool = capture.tool.as_deref().or(saved.tool.as_deref()).unwrap_or("unknown").to_owned();
    found.files.push((MANIFEST.to_owned(), Manifest::new(tool, root, names).to_text()));
    found
}

/// A name for the file, of which nothing but letters, digits and a few signs is taken from the wire.
fn file_name(migration: &Migration, source: Option<&Source>, taken: &mut BTreeSet<String>) -> String {
    let name = match source {
        // A number or revision alone says nothing to a reader, and an extension of a program is misleading.
        Some(source) if migration.naming.is_some_and(Naming::shares_files) => {
            let in_file = migration.name.split_once("::").map_or(&*migration.name, |(_, in_file)| in_file);
            format!("{}.{}", source.stem(), in_file.replace("::", "."))
        }
        Some(source) if migration.naming != Some(Naming::Django) => source.stem().to_owned(),
        _ if migration.name.is_empty() => "unfinished".to_owned(),
        _ => migration.name.clone(),
    };
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    let plain: String = name.chars().map(|one| if is_plain(one) { one } else { '_' }).take(LONGEST_NAME).collect();
    let plain = plain.trim_start_matches(['.', '-']);
    let plain = if plain.is_empty() { "migration" } else { plain };
    let mut unique = format!("{plain}.sql");
    let mut number = 2;
    while !taken.insert(unique.to_ascii_lowercase()) {
        unique = format!("{plain}-{number}.sql");
        number += 1;
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_cannot_lead_anywhere() {
        let mut taken = BTreeSet::new();
        let mut name =
            |name: &str| file_name(&Migration { name: name.to_owned(), ..Migration::default() }, None, &mut taken);
        assert_eq!(name("shop.0002_note"), "shop.0002_note.sql");
        assert_eq!(name("../../etc/passwd"), "_.._etc_passwd.sql");
        assert_eq!(name("SHOP.0002_note"), "SHOP.0002_note-2.sql");
        assert_eq!(name("a\u{1b}[2J\nb"), "a__2J_b.sql");
        assert_eq!(name(""), "unfinished.sql");
        assert_eq!(name("..."), "migration.sql");
    }
}
