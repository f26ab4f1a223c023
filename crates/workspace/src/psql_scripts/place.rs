//! Which files of a folder a word of a script means.

use super::script::{RUNS, included};
use super::words::UNKNOWN;
use super::{Files, GlobOrder};
use crate::config::absolute;
use crate::nearby::Nearby;
use crate::skipped::is_sql;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Maximum number of files that include others in turn.
const DEPTH: usize = 3;

/// Maximum number of folders in which a path is searched for.
const BASES: usize = 6;

/// Maximum number of parts of a path.
const PARTS: usize = 6;

/// The folder of the migrations, and where the script is that may name it.
pub(super) struct Places<'p> {
    /// The folder, as an absolute path.
    pub(super) folder: &'p Path,
    pub(super) script: &'p Path,
    /// The top of the repository.
    pub(super) top: &'p Path,
    pub(super) nearby: &'p Nearby,
}

impl Places<'_> {
    /// The name of the folder.
    pub(super) fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns the files of the folder that a word means. `is_code`: a name alone means the folder, too.
    pub(super) fn files(&self, word: &str, order: GlobOrder, is_code: bool) -> Vec<Files> {
        let Some(path) = known_part(word) else { return Vec::new() };
        if is_code && !path.contains('.') && self.folder.ends_with(&path) {
            return vec![Files::Glob { pattern: "*.sql".to_owned(), order }];
        }
        let is_file = is_sql(&path);
        if is_file && path.contains(['*', '?', '[', UNKNOWN]) {
            return self.glob(&path.replace(UNKNOWN, "*"), order).into_iter().collect();
        }
        if path.contains(UNKNOWN) {
            return Vec::new();
        }
        match self.resolve(&path) {
            Some(found) if found == *self.folder => vec![Files::Glob { pattern: "*.sql".to_owned(), order }],
            Some(found) if is_file => self.with_included(&found, DEPTH, &mut BTreeSet::new()),
            _ => Vec::new(),
        }
    }

    fn glob(&self, path: &str, order: GlobOrder) -> Option<Files> {
        let parts: Vec<&str> = path.split('/').collect();
        let first = parts.iter().position(|part| part.contains(['*', '?', '[']))?;
        let folder = self.resolve(&parts[..first].join("/"))?;
        (folder == *self.folder).then(|| Files::Glob { pattern: parts[first..].join("/"), order })
    }

    /// The file itself, and those that it runs in turn, each once.
    fn with_included(&self, file: &Path, depth: usize, seen: &mut BTreeSet<PathBuf>) -> Vec<Files> {
        if seen.len() >= RUNS || !seen.insert(file.to_owned()) {
            return Vec::new();
        }
        let own = match file.strip_prefix(self.folder) {
            Ok(name) => Files::One(name.to_string_lossy().into_owned()),
            Err(_) => Files::Other(file.to_owned()),
        };
        let text = if depth > 0 { self.nearby.text(file) } else { None };
        let paths = text.filter(|text| text.contains("\\i")).map(|text| included(&text)).unwrap_or_default();
        let inner = Places { script: file, ..*self };
        let of_others = paths.iter().filter_map(|path| inner.resolve(&path.to_string_lossy()));
        let mut found = vec![own];
        of_others.for_each(|other| found.extend(inner.with_included(&other, depth - 1, seen)));
        found
    }

    /// The file or folder of the checkout that a path means: below the folder of the script, or one above it. The first
    /// parts may be those of another machine.
    fn resolve(&self, path: &str) -> Option<PathBuf> {
        let parts: Vec<Component<'_>> = Path::new(path).components().filter(|part| is_inner(*part)).collect();
        let bases = || self.script.ancestors().skip(1).take(BASES).take_while(|base| base.starts_with(self.top));
        if parts.is_empty() {
            return bases().next().map(Path::to_owned);
        }
        let first = parts.len().saturating_sub(PARTS);
        (first..parts.len()).find_map(|from| {
            let inner: PathBuf = parts[from..].iter().collect();
            let found = bases().map(|base| base.join(&inner)).find(|path| path.exists())?;
            Some(absolute(&found))
        })
    }
}

/// Whether a part of a path leads further down. Where a script steps up is found by looking above it.
fn is_inner(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}

/// The part of a path after what only run time tells. A name may have such parts.
fn known_part(word: &str) -> Option<String> {
    let word = word.trim_matches(['"', '\'', '(', ')']);
    let name = word.rfind('/').map_or(0, |at| at + 1);
    let cut = word[..name].rfind(UNKNOWN).map_or(0, |at| word[at..].find('/').map_or(word.len(), |next| at + next + 1));
    let path = &word[cut.min(word.len())..];
    let is_useful = !path.is_empty() && path.len() < 300 && path.chars().any(char::is_alphanumeric);
    is_useful.then(|| path.to_owned())
}
