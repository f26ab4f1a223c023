//! Problems of files that could not be checked, and paths as they are shown.

use std::io;
use std::path::Path;

/// Why something that was asked for could not be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    /// The problem, as the end of the sentence "`path` ...".
    pub message: String,
    /// The next step, where there is one.
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn new(path: &Path, message: impl Into<String>, help: Option<&str>) -> Self {
        Self { path: display(path), message: message.into(), help: help.map(str::to_owned) }
    }

    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound if path.is_symlink() => {
                Self::new(path, "is a symbolic link whose target does not exist", None)
            }
            io::ErrorKind::NotFound => Self::new(
                path,
                "does not exist",
                Some("check the spelling; the path is relative to the current folder"),
            ),
            io::ErrorKind::PermissionDenied => {
                Self::new(path, format!("cannot be read: {error}"), Some("check its permissions"))
            }
            io::ErrorKind::FileTooLarge => {
                let help = "no migration should be that large: split it, or skip it with `exclude` in pgvet.toml";
                Self::new(path, format!("cannot be read: {error}"), Some(help))
            }
            _ => Self::new(path, format!("cannot be read: {error}"), None),
        }
    }
}

/// A path as it is shown: the way the user named it, with slashes, and without `./` before it.
pub(crate) fn display(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = if std::path::MAIN_SEPARATOR == '\\' { text.replace('\\', "/") } else { text.into_owned() };
    match text.strip_prefix("./") {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_as_they_were_named() {
        assert_eq!(display(Path::new("./a/b.sql")), "a/b.sql");
        assert_eq!(display(Path::new("/a/b.sql")), "/a/b.sql");
        assert_eq!(display(Path::new(".")), ".");
    }
}
