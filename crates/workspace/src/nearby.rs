//! Small files of code and configuration in the folders around migrations.

use crate::boundary::Boundary;
use crate::read;
use std::fs;
use std::path::{Path, PathBuf};

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
    // A link to a folder may lead out of the checkout.
    let is_inside = folder.is_dir() && Boundary::around(&folder.join("x")).refusal(folder).is_none();
    let entries = is_inside.then(|| fs::read_dir(folder)).into_iter().flatten().flatten().filter_map(Result::ok);
    let is_test = |path: &Path| {
        let stem = stem(path);
        [".test", ".tests", ".spec", "_test"].iter().any(|end| stem.ends_with(end)) || stem.starts_with("test_")
    };
    let is_small = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= BYTES);
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_wanted(path) && !is_test(path) && is_small(path)).collect();
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
pub(crate) fn names_path(above: &Path, relative: &str) -> bool {
    let names = |path: &PathBuf| read::text(path).is_ok_and(|text| has_path(&text, relative));
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
