//! Writing files: whole or not at all, and nothing that has changed since it was read.

use crate::discovery::Problem;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is to get another text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: PathBuf,
    /// The text that was read.
    pub before: String,
    pub after: String,
}

/// Changes files. All of them are looked at first, so that what can be refused is refused before the first is written.
pub fn write_changes(changes: &[Change]) -> Result<(), Problem> {
    changes.iter().try_for_each(check)?;
    changes.iter().try_for_each(|change| replace(&change.path, &change.after))
}

fn check(change: &Change) -> Result<(), Problem> {
    let Change { path, before, .. } = change;
    let metadata = fs::metadata(path).map_err(|error| Problem::io(path, &error))?;
    if metadata.permissions().readonly() {
        let help = "make it writable, or see the changes with `--diff`";
        return Err(Problem::new(path, "cannot be changed: it is read-only", Some(help)));
    }
    let now = fs::read(path).map_err(|error| Problem::io(path, &error))?;
    if now != before.as_bytes() {
        let help = "run the command again";
        return Err(Problem::new(
            path,
            "was not changed: another program has changed it since it was read",
            Some(help),
        ));
    }
    Ok(())
}

/// Gives a file that is there another text, in one step: readers see the old one or the new one.
fn replace(path: &Path, text: &str) -> Result<(), Problem> {
    let failure = |error: io::Error| {
        Problem::new(path, format!("was not changed: {error}"), Some("check the permissions of its folder"))
    };
    // A link stays one.
    let path = fs::canonicalize(path).map_err(failure)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".pgvet-{}", std::process::id()));
    let aside = path.with_file_name(name);
    let moved = write_aside(&path, &aside, text).and_then(|()| fs::rename(&aside, &path));
    moved.map_err(|error| {
        // What could not be written may not be there at all.
        let _ = fs::remove_file(&aside);
        failure(error)
    })
}

fn write_aside(path: &Path, aside: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(aside)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(fs::metadata(path)?.permissions())?;
    file.sync_all()
}

/// Writes new files, none over one that is there. If one fails, none is left.
pub fn create_files(files: &[(PathBuf, String)]) -> Result<(), Problem> {
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(Problem::new(
            path,
            "is there already: nothing was written",
            Some("remove it, or name another folder"),
        ));
    }
    for (at, (path, text)) in files.iter().enumerate() {
        if let Err(error) = create(path, text) {
            for (path, _) in &files[..=at] {
                // The one that failed may not be there.
                let _ = fs::remove_file(path);
            }
            return Err(Problem::new(path, format!("cannot be written: {error}; nothing was written"), None));
        }
    }
    Ok(())
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &Path, before: &str, after: &str) -> Change {
        Change { path: path.to_owned(), before: before.to_owned(), after: after.to_owned() }
    }

    #[test]
    fn a_file_that_changed_since_keeps_the_others_as_they_are() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (root.path().join("1.sql"), root.path().join("2.sql"));
        fs::write(&one, "a").unwrap();
        fs::write(&two, "b").unwrap();
        let problem = write_changes(&[change(&one, "a", "x"), change(&two, "was", "y")]).unwrap_err();
        assert!(problem.message.contains("another program has changed it"), "{}", problem.message);
        assert_eq!(fs::read_to_string(&one).unwrap(), "a");
        write_changes(&[change(&one, "a", "x"), change(&two, "b", "y")]).unwrap();
        assert_eq!((fs::read_to_string(&one).unwrap(), fs::read_to_string(&two).unwrap()), ("x".into(), "y".into()));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_read_only_file_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("1.sql");
        fs::write(&path, "a").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let problem = write_changes(&[change(&path, "a", "x")]).unwrap_err();
        assert_eq!(problem.message, "cannot be changed: it is read-only");
        assert_eq!(fs::read_to_string(&path).unwrap(), "a");
    }

    #[test]
    fn new_files_never_replace_old_ones() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("2.sql"), "old").unwrap();
        let files = [(at("1.sql"), "a".to_owned()), (at("2.sql"), "b".to_owned())];
        assert!(create_files(&files).unwrap_err().message.starts_with("is there already"));
        assert!(!at("1.sql").exists());
        create_files(&[(at("new/3.sql"), "c".to_owned())]).unwrap();
        assert_eq!(fs::read_to_string(at("new/3.sql")).unwrap(), "c");
    }
}
