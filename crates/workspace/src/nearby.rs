//! Small files of code and configuration in the folders around migrations.

use crate::boundary::Boundary;
use crate::drivers;
use crate::read;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Extensions of code that may run migrations.
const CODE: [&str; 21] = [
    "go", "ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "py", "rs", "java", "kt", "scala", "clj", "rb", "php", "cs",
    "sh", "bash", "mk", "ex",
];

/// Extensions of configuration.
const CONFIGURATION: [&str; 14] =
    ["toml", "yml", "yaml", "json", "conf", "properties", "ini", "cfg", "xml", "gradle", "kts", "sbt", "env", "plan"];

/// Folders of code and configuration, in a folder around migrations.
const FOLDERS: [&str; 15] = [
    "",
    "src",
    "src/db",
    "src/main/resources",
    "cmd",
    "config",
    "scripts",
    "script",
    "bin",
    "db",
    "lib",
    "internal",
    "pkg",
    "server",
    "tools",
];

/// Those of them whose code is in folders below.
const PACKAGES: [&str; 7] = ["src", "cmd", "scripts", "lib", "internal", "pkg", "server"];

/// Parts of the names of folders with code that may run migrations.
const OF_DATABASE: [&str; 5] = ["migrat", "db", "database", "postgres", "store"];

/// Most bytes of a file that is read.
const BYTES: u64 = 256 << 10;

/// The names and texts of such files for all folders of a run: each is listed and read once, and the size of the texts is
/// limited, because many folders may have the same code around them.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    texts: Mutex<Texts>,
    folders: Mutex<FxHashMap<PathBuf, Arc<[Found]>>>,
    /// The folders of code around folders: see [`Nearby::code_folders`].
    code_folders: Mutex<FxHashMap<PathBuf, Arc<[PathBuf]>>>,
    /// The versions of packages that lock files and manifests of folders name.
    versions: Mutex<FxHashMap<(PathBuf, &'static str), Option<Version>>>,
}

/// The major and the minor version of a package.
type Version = (u32, u32);

/// A file that is small, no test, and of at least one kind.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    is_code: bool,
    is_configuration: bool,
    is_readme: bool,
    is_of_containers: bool,
    is_manifest: bool,
}

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
        let texts = || self.texts.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Returns the version of a package in a folder, which is looked up once.
    pub(crate) fn version(
        &self,
        folder: &Path,
        package: &'static str,
        look: impl FnOnce() -> Option<Version>,
    ) -> Option<Version> {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        *versions.entry((folder.to_owned(), package)).or_insert_with(look)
    }

    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).spent
    }

    /// Whether something was not read because of the limit.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).spent > SPENT
    }
}

impl Nearby {
    /// Returns the code that lies directly in a folder, without tests, by name.
    pub(crate) fn code(&self, folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        self.files(folder, |found| found.is_code)
    }

    /// Returns the pages that say how to use what lies in a folder, by name.
    pub(crate) fn readme(&self, folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        self.files(folder, |found| found.is_readme)
    }

    /// Returns the code and configuration that lies directly in a folder, without tests, by name.
    pub(crate) fn code_and_configuration(&self, folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        self.files(folder, |found| found.is_code || found.is_configuration)
    }

    /// Returns the manifests and the configuration that lie directly in a folder, by name, with code if that is wanted.
    pub(crate) fn manifests_and_configuration(
        &self,
        folder: &Path,
        with_code: bool,
    ) -> impl Iterator<Item = PathBuf> + use<> {
        let is_wanted: fn(&Found) -> bool = if with_code {
            |found| found.is_code || found.is_configuration || found.is_manifest
        } else {
            |found| found.is_configuration || found.is_manifest
        };
        self.files(folder, is_wanted)
    }

    /// Returns the files directly in a folder that may have commands, by name.
    pub(crate) fn scripts(&self, folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        self.files(folder, |found| found.is_code || found.is_configuration || found.is_of_containers)
    }

    /// Returns the Dockerfiles and Compose files that lie directly in a folder, by name.
    pub(crate) fn of_containers(&self, folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        self.files(folder, |found| found.is_of_containers)
    }

    /// Returns the folders around migrations, in `above`, whose code and configuration may run them.
    pub(crate) fn code_folders(&self, above: &Path) -> Arc<[PathBuf]> {
        let mut known = self.code_folders.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(above.to_owned()).or_insert_with_key(|above| code_folders(above).into()))
    }

    /// Whether a file of code or configuration directly in `above` names a path below it, as a whole, and not only in a
    /// list of what a program excludes.
    pub(crate) fn runs_path(&self, above: &Path, relative: &str) -> bool {
        self.code_and_configuration(above).any(|path| self.is_named_in(&path, relative))
    }

    /// The same for one file.
    pub(crate) fn is_named_in(&self, path: &Path, relative: &str) -> bool {
        self.text(path).is_some_and(|text| paths(&text, relative).any(|at| !is_excluded(&text[..at])))
    }

    fn files(&self, folder: &Path, is_wanted: fn(&Found) -> bool) -> impl Iterator<Item = PathBuf> + use<> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let files = folders.entry(folder.to_owned()).or_insert_with_key(|folder| listed(folder).into());
        let wanted: Vec<PathBuf> =
            files.iter().filter(|found| is_wanted(found)).map(|found| found.path.clone()).collect();
        wanted.into_iter()
    }
}

fn code_folders(above: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|below| above.join(below)).collect();
    for package in PACKAGES {
        let package = above.join(package);
        // A link to a folder may lead out of the checkout.
        if Boundary::around(&package.join("x")).refusal(&package).is_some() {
            continue;
        }
        let entries = fs::read_dir(&package).into_iter().flatten().filter_map(Result::ok);
        let of_database = |name: &str| OF_DATABASE.iter().any(|part| name.contains(part));
        let below = entries.filter(|entry| of_database(&entry.file_name().to_string_lossy().to_ascii_lowercase()));
        let mut below: Vec<PathBuf> = below.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        below.sort();
        folders.extend(below);
    }
    let mut seen = FxHashSet::default();
    folders.retain(|folder| seen.insert(folder.clone()));
    folders
}

fn listed(folder: &Path) -> Vec<Found> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<Found> = entries.filter_map(|entry| Found::of(entry.path())).collect();
    // A link to a folder may lead out of the checkout.
    if files.is_empty() || Boundary::around(&folder.join("x")).refusal(folder).is_some() {
        return Vec::new();
    }
    let is_small = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= BYTES);
    files.retain(|found| is_small(&found.path));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

impl Found {
    fn of(path: PathBuf) -> Option<Self> {
        let stem = stem(&path);
        if [".test", ".tests", ".spec", "_test"].iter().any(|end| stem.ends_with(end)) || stem.starts_with("test_") {
            return None;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_code = has_extension(&path, &CODE) || is_script(&path, stem);
        let is_named = ["Makefile", "Dockerfile", "Procfile", ".env"].iter().any(|known| name.starts_with(known));
        let is_configuration = is_named || has_extension(&path, &CONFIGURATION);
        let is_page = path.extension().is_none() || has_extension(&path, &["md", "markdown", "rst", "txt"]);
        let is_readme = is_page && stem.eq_ignore_ascii_case("README");
        let (name, is_yaml) = (name.to_ascii_lowercase(), has_extension(&path, &["yml", "yaml"]));
        let is_of_containers =
            name.starts_with("dockerfile") || name.ends_with(".dockerfile") || (is_yaml && name.contains("compose"));
        let is_manifest = drivers::is_manifest(&path);
        let is_wanted = is_code || is_configuration || is_readme || is_of_containers || is_manifest;
        is_wanted.then_some(Self { path, is_code, is_configuration, is_readme, is_of_containers, is_manifest })
    }
}

/// Whether a file without an extension has commands: a Makefile, a justfile, or a program in a folder of scripts.
fn is_script(path: &Path, stem: &str) -> bool {
    let is_of_tool = ["makefile", "gnumakefile", "justfile"].iter().any(|name| stem.eq_ignore_ascii_case(name));
    let is_in_folder =
        || path.parent().is_some_and(|folder| ["bin", "script", "scripts"].iter().any(|name| folder.ends_with(name)));
    let is_lower = || stem.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_'));
    is_of_tool || (path.extension().is_none() && is_in_folder() && is_lower())
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|own| extensions.contains(&own))
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Whether a text has a path. One name alone is a path where quotes, slashes or the like are around it.
pub(crate) fn has_path(text: &str, relative: &str) -> bool {
    paths(text, relative).next().is_some()
}

/// The places in a text at which it has a path.
fn paths<'t>(text: &'t str, relative: &'t str) -> impl Iterator<Item = usize> + use<'t> {
    let is_one = !relative.contains('/');
    let is_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | '.');
    let is_whole = move |at: usize| {
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
    };
    text.match_indices(relative).map(|(at, _)| at).filter(move |at| is_whole(*at))
}

/// The names of SQL files in a text.
pub(crate) fn sql_names(text: &str) -> impl Iterator<Item = &str> {
    let is_edge = |one: char| !(one.is_alphanumeric() || matches!(one, '_' | '-' | '.'));
    text.match_indices(".sql").filter_map(move |(at, extension)| {
        let end = at + extension.len();
        // Each name is searched for once: what goes on is not its end.
        if text[end..].starts_with(|one| !is_edge(one)) {
            return None;
        }
        let start =
            text[..at].rfind(is_edge).map_or(0, |edge| edge + text[edge..].chars().next().map_or(0, char::len_utf8));
        (start < at).then(|| &text[start..end])
    })
}

/// Most bytes before a path in which the list that holds it begins.
const LIST: usize = 2 << 10;

/// Whether a text ends within a list of what a program excludes: `exclude: ["a", "`, `ignores: ["a", "`.
fn is_excluded(before: &str) -> bool {
    let start = (before.len().saturating_sub(LIST)..=before.len()).find(|at| before.is_char_boundary(*at));
    let text = &before[start.unwrap_or(before.len())..];
    let mut closed = 0_usize;
    let list = text.rfind(|one: char| match one {
        ']' => {
            closed += 1;
            false
        }
        '[' if closed > 0 => {
            closed -= 1;
            false
        }
        other => other == '[',
    });
    let key = list.map(|at| text[..at].trim_end_matches([' ', ':', '=', '"', '\'', '(']).to_ascii_lowercase());
    let word = key.as_deref().and_then(|key| key.rsplit(|one: char| !one.is_alphanumeric() && one != '_').next());
    word.is_some_and(|word| word.contains("exclu") || word.contains("ignor"))
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
        let nearby = Nearby::default();
        assert_eq!(nearby.code(&root.path().join("src")).count(), 1);
        assert_eq!(nearby.code(&root.path().join("lib")).count(), 0);
    }

    #[test]
    fn a_folder_is_listed_once() {
        let root = tempfile::tempdir().unwrap();
        for name in ["b.go", "a.ts", "a.test.ts", "c.yml", "compose.yml", "README.md", "notes.md"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let nearby = Nearby::default();
        let names = |files: &mut dyn Iterator<Item = PathBuf>| -> Vec<String> {
            files.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(&mut nearby.code(root.path())), ["a.ts", "b.go"]);
        fs::remove_dir_all(root.path()).unwrap();
        assert_eq!(names(&mut nearby.readme(root.path())), ["README.md"]);
        assert_eq!(names(&mut nearby.of_containers(root.path())), ["compose.yml"]);
        let both = ["a.ts", "b.go", "c.yml", "compose.yml"];
        assert_eq!(names(&mut nearby.code_and_configuration(root.path())), both);
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

    #[test]
    fn lists_of_what_is_excluded_are_recognized() {
        for before in [
            "{ \"exclude\": [\"node_modules\", \"",
            "ignores: [\n  'dist',\n  '",
            "coverage: { exclude: ['a', [1], '",
            "ignorePatterns = [\"",
        ] {
            assert!(is_excluded(before), "{before}");
        }
        for before in ["{ \"paths\": [\"", "exclude: [\"a\"], include: [\"", "exclude = \"a\"\ndir = \"", ""] {
            assert!(!is_excluded(before), "{before}");
        }
    }
}
