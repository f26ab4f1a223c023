//! Patterns of paths, as `exclude` and `--exclude` have them.

use super::absolute;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::{Path, PathBuf};

/// Maximum number of patterns in one list.
const MAX_PATTERNS: usize = 1000;

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN: usize = 1024;

/// Patterns of paths relative to a folder.
#[derive(Debug, Clone)]
pub struct Patterns {
    root: PathBuf,
    /// As they were written.
    texts: Vec<String>,
    globs: GlobSet,
}

/// An error in a list of patterns.
#[derive(Debug)]
pub struct WrongPattern {
    /// The index of the pattern; `None` if all of them together are too much.
    pub at: Option<usize>,
    pub message: String,
}

impl Patterns {
    /// Compiles patterns of paths relative to `root`.
    pub fn new<'p>(root: &Path, patterns: impl Iterator<Item = &'p str>) -> Result<Self, WrongPattern> {
        let mut globs = GlobSetBuilder::new();
        let mut texts = Vec::new();
        for (at, pattern) in patterns.enumerate() {
            let wrong = |message| WrongPattern { at: Some(at), message };
            if at == MAX_PATTERNS {
                return Err(wrong(format!("there are more than {MAX_PATTERNS} patterns")));
            }
            if pattern.len() > MAX_PATTERN {
                return Err(wrong(format!("the pattern is longer than {MAX_PATTERN} bytes")));
            }
            texts.push(pattern.to_owned());
            let text = pattern.trim_start_matches("./");
            // `legacy` and `legacy/` mean all that is in the folder.
            let folder = format!("{}/**", text.trim_end_matches('/'));
            for text in [text.trim_end_matches('/'), &folder] {
                let glob = GlobBuilder::new(text).literal_separator(true).build();
                globs.add(glob.map_err(|error| wrong(error.kind().to_string()))?);
            }
        }
        let globs = globs.build().map_err(|error| WrongPattern { at: None, message: error.kind().to_string() })?;
        Ok(Self { root: absolute(root), texts, globs })
    }

    /// The patterns as they were written.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    pub(crate) fn matches(&self, path: &Path) -> bool {
        absolute(path).strip_prefix(&self.root).is_ok_and(|relative| self.globs.is_match(relative))
    }
}
