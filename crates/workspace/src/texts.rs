//! Where the text of a file comes from: the disk, or an editor that has it open.

use crate::identity::identity;
use crate::problem::Problem;
use crate::read::{self, EncodingError};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Texts that stand for files, and what was parsed before.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// The text of standard input; read where it is missing.
    pub stdin: Option<String>,
    /// By the path on disk.
    open: BTreeMap<PathBuf, String>,
    /// The contents in git's index of files that differ from it, by the path on disk; `None` if it lacks the file.
    staged: BTreeMap<PathBuf, Option<Vec<u8>>>,
    parsed: Option<Arc<ParsedFiles>>,
}

/// Files that were parsed, for runs over nearly the same files.
#[derive(Debug, Default)]
pub(crate) struct ParsedFiles(Mutex<BTreeMap<PathBuf, Arc<ParsedFile>>>);

impl Texts {
    /// Remembers what it parses in `parsed`.
    pub(crate) fn remembering(parsed: Arc<ParsedFiles>) -> Self {
        Self { parsed: Some(parsed), ..Self::default() }
    }

    /// Treats `text` as the text of the file at `path`.
    pub fn open(&mut self, path: &Path, text: String) {
        self.open.insert(identity(path), text);
    }

    /// The same texts, and those of git's index.
    pub(crate) fn with_staged(&self, staged: BTreeMap<PathBuf, Option<Vec<u8>>>) -> Self {
        Self { staged, ..self.clone() }
    }

    pub(crate) fn read(&self, path: &Path) -> Result<(SourceFile, Option<EncodingError>), Problem> {
        if !self.open.is_empty()
            && let Some(text) = self.open.get(&identity(path))
        {
            return Ok((SourceFile::new(crate::problem::display(path), text.clone()), None));
        }
        if !self.staged.is_empty()
            && let Some(Some(bytes)) = self.staged.get(&identity(path))
        {
            return read::decode(crate::problem::display(path), bytes.clone());
        }
        read::read(path)
    }

    /// Whether the file was read and holds what no text does.
    pub(crate) fn is_binary(&self, path: &Path) -> bool {
        match self.staged.get(&identity(path)) {
            Some(Some(bytes)) => bytes.contains(&0),
            _ => read::is_binary(path),
        }
    }

    /// The bytes of a file that a migration tool compares.
    pub(crate) fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let identity = if self.open.is_empty() && self.staged.is_empty() { PathBuf::new() } else { identity(path) };
        if let Some(text) = self.open.get(&identity) {
            return Some(text.clone().into_bytes());
        }
        self.staged.get(&identity).map_or_else(|| read::compared(path), Clone::clone)
    }

    /// The names of the files in a folder.
    pub(crate) fn names_in(&self, folder: &Path) -> BTreeSet<String> {
        let path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: BTreeSet<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let folder = identity(path);
        for (path, bytes) in self.staged.iter().filter(|(path, _)| path.parent() == Some(&folder)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match bytes {
                Some(_) => names.insert(name),
                None => names.remove(&name),
            };
        }
        names
    }

    pub(crate) fn read_stdin(&self, name: &str) -> Result<(SourceFile, Option<EncodingError>), Problem> {
        match &self.stdin {
            Some(text) => Ok((SourceFile::new(name.to_owned(), text.clone()), None)),
            None => read::read_stdin(name),
        }
    }

    pub(crate) fn parse(&self, path: &Path, source: SourceFile) -> Arc<ParsedFile> {
        let Some(parsed) = &self.parsed else { return Arc::new(parse_file(source)) };
        let known = || parsed.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |file: &&Arc<ParsedFile>| file.source.text == source.text && file.source.path == source.path;
        if let Some(file) = known().get(path).filter(is_same) {
            return Arc::clone(file);
        }
        let file = Arc::new(parse_file(source));
        known().insert(path.to_owned(), Arc::clone(&file));
        file
    }
}
