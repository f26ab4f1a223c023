//! Small files of code and configuration in the folders around migrations.

use crate::boundary::Boundary;
use crate::read;
use rustc_hash::FxHashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Extensions of code that may run migrations.
const CODE: [&str; 19] = [
    "go", "ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "py", "rs", "java", "kt", "scala", "clj", "rb", "php", "cs",
    "sh", "ex",
];

/// Extensions of configuration.
const CONFIGURATION: [&str; 14] =
    ["toml", "yml", "yaml", "json", "conf", "properties", "ini", "cfg", "xml", "gradle", "kts", "sbt", "env", "plan"];

/// Most bytes of a file that is read.
const BYTES: u64 = 256 << 10;

/// The texts of such files for all folders of a run: each is read once, and their size is limited, because many folders
/// may have the same code around them.
#[derive(Debug, Default)]
pub(crate) struct Nearby(Mutex<Texts>);

#[derive(Debug, Default)]
struct Texts {
    known: FxHashMap<PathBuf, Option<Arc<str>>>,
    kept: u64,
    spent: u64,
}

/// Maximum number of bytes that are kept for other folders.
const KEPT: u64 = 64 << 20;

/// Maximum number of bytes that a run reads in search of evidence.
const SPENT: u64 = 1 << 30;

/// A text that is at hand costs this part of one that has to be read.
const PART_OF_KNOWN: u64 = 8;

impl Nearby {
    /// Returns the text of a file, if it can be read and the limit is not reached.
    pub(crate) fn text(&self, path: &Path) -> Option<Arc<str>> {
        let texts = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut texts = texts();
            if texts.spent > SPENT {
                return None;
            }
            if let Some(known) = texts.known.get(path).cloned() {
                texts.spent += known.as_ref().map_or(0, |text| text.len() as u64 / PART_OF_KNOWN);
                return known;
            }
        }
        // Files are read without the lock.
        let text: Option<Arc<str>> = read::text(path).ok().map(Arc::from);
        let length = text.as_ref().map_or(0, |text| text.len() as u64);
        let mut texts = texts();
        texts.spent += length;
        if texts.kept + length <= KEPT {
            texts.kept += length;
            texts.known.insert(path.to_owned(), text.clone());
        }
        text
    }

    /// Whether something was not read because of the limit.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spent > SPENT
    }
}

/// Returns the code that lies directly in a folder, without tests, by name.
pub(crate) fn code(folder: &Path) -> Vec<PathBuf> {
    files(folder, |path| has_extension(path, &CODE) || stem(path) == "Makefile")
}

/// Returns the pages that say how to use what lies in a folder, by name.
pub(crate) fn readme(folder: &Path) -> Vec<PathBuf> {
    files(folder, |path| {
        let is_readme = stem(path).eq_ignore_ascii_case("README");
        is_readme && (path.extension().is_none() || has_extension(path, &["md", "markdown", "rst", "txt"]))
    })
}

/// Returns the code and configuration that lies directly in a folder, without tests, by name.
pub(crate) fn code_and_configuration(folder: &Path) -> Vec<PathBuf> {
    let is_named = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ["Makefile", "Dockerfile", "Procfile", ".env"].iter().any(|known| name.starts_with(known))
    };
    files(folder, |path| has_extension(path, &CODE) || has_extension(path, &CONFIGURATION) || is_named(path))
}

/// Returns the Dockerfiles and Compose files that lie directly in a folder, by name.
pub(crate) fn of_containers(folder: &Path) -> Vec<PathBuf> {
    files(folder, |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let is_yaml = has_extension(path, &["yml", "yaml"]);
        name.starts_with("dockerfile") || name.ends_with(".dockerfile") || (is_yaml && name.contains("compose"))
    })
}

fn files(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_test = |path: &Path| {
        let stem = stem(path);
        [".test", ".tests", ".spec", "_test"].iter().any(|end| stem.ends_with(end)) || stem.starts_with("test_")
    };
    let is_small = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= BYTES);
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_wanted(path) && !is_test(path)).collect();
    // A link to a folder may lead out of the checkout.
    if files.is_empty() || Boundary::around(&folder.join("x")).refusal(folder).is_some() {
        return Vec::new();
    }
    files.retain(|path| is_small(path));
    files.sort();
    files
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|own| extensions.contains(&own))
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Whether a file of code or configuration directly in `above` names a path below it, as a whole.
pub(crate) fn names_path(above: &Path, relative: &str, nearby: &Nearby) -> bool {
    let names = |path: &PathBuf| nearby.text(path).is_some_and(|text| has_path(&text, relative));
    code_and_configuration(above).iter().any(names)
}

/// Whether a text has a path. One name alone is a path where quotes, slashes or the like are around it.
pub(crate) fn has_path(text: &str, relative: &str) -> bool {
    let is_one = !relative.contains('/');
    let is_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | '.');
    text.match_indices(relative).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + relative.len()..].chars().next();
        let begins = if is_one {
            before.is_some_and(|one| matches!(one, '/' | '"' | '\'' | '=' | ':'))
        } else {
            before.is_none_or(|one| !is_word(one) || one == '.')
        };
        let ends = if is_one {
            after.is_none_or(|one| matches!(one, '/' | '"' | '\'' | '\n'))
        } else {
            after.is_none_or(|one| !is_word(one))
        };
        begins && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn folders_outside_of_the_checkout_are_not_searched() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(root.path().join(".git")).unwrap();
        fs::create_dir_all(root.path().join("src")).unwrap();
        for folder in [&root.path().join("src"), outside.path()] {
            fs::write(folder.join("migrate.ts"), "").unwrap();
        }
        std::os::unix::fs::symlink(outside.path(), root.path().join("lib")).unwrap();
        assert_eq!(code(&root.path().join("src")).len(), 1);
        assert_eq!(code(&root.path().join("lib")), [] as [PathBuf; 0]);
    }

    #[test]
    fn texts_are_read_once_and_up_to_a_size() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.go");
        fs::write(&path, "x".repeat(1 << 20)).unwrap();
        let nearby = Nearby::default();
        assert!(nearby.text(&path).is_some());
        fs::write(&path, "").unwrap();
        let texts = std::iter::from_fn(|| nearby.text(&path)).take(1 << 15).collect::<Vec<_>>();
        assert!(texts.iter().all(|text| text.len() == 1 << 20), "it is kept");
        assert_eq!(texts.len(), ((1 << 10) - 1) * PART_OF_KNOWN as usize + 1);
        assert!(nearby.is_exhausted());
    }

    #[test]
    fn a_path_is_named_as_a_whole() {
        for (text, relative) in [
            ("locations=filesystem:db/old", "db/old"),
            ("dir: \"./db/old/\"", "db/old"),
            ("migrations = \"old\"", "old"),
            ("dir=./old/sql\n", "old"),
        ] {
            assert!(has_path(text, relative), "{text}");
        }
        for (text, relative) in
            [("db/older", "db/old"), ("mydb/old", "db/old"), ("the old files", "old"), ("gold/", "old")]
        {
            assert!(!has_path(text, relative), "{text}");
        }
    }
}
