//! Writing files: whole or not at all, and nothing that has changed since it was read.

use crate::boundary::Boundary;
use crate::problem::Problem;
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

/// Changes files. All of them are examined first, so that what can be refused is refused before the first is written.
pub fn write_changes(changes: &[Change]) -> Result<(), Problem> {
    changes.iter().try_for_each(check)?;
    changes.iter().try_for_each(|change| replace(&change.path, &change.after))
}

fn check(change: &Change) -> Result<(), Problem> {
    let Change { path, before, .. } = change;
    writable(path)?;
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

/// Refuses a path at which a checkout may have put something other than a file of its own: a link, a device, a folder
/// that leads elsewhere.
fn writable(path: &Path) -> Result<(), Problem> {
    let refused = |why: String| Err(Problem::new(path, format!("cannot be written: it {why}"), None));
    let boundary = Boundary::around(path);
    if let Some(why) = boundary.refusal(path) {
        return refused(why);
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() && boundary.is_known() => refused("is a symbolic link".to_owned()),
        Ok(_) if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) => refused("is a folder".to_owned()),
        Ok(metadata) if !metadata.is_file() && boundary.is_known() => refused("is not a regular file".to_owned()),
        _ => Ok(()),
    }
}

/// Opens a file for a report, new or empty. Where a checkout is, nothing is written through a link, and nothing out of it.
///
/// # Errors
/// Why it is not written.
pub fn create_report(path: &Path) -> Result<File, Problem> {
    writable(path)?;
    if has_other_names(path) && Boundary::around(path).is_known() {
        let help = "remove it, or name another file";
        return Err(Problem::new(path, "cannot be written: it is a hard link to a file with other names", Some(help)));
    }
    File::create(path).map_err(|error| Problem::new(path, format!("cannot be written: {error}"), None))
}

/// Whether a report at the path would also change files with other names, which may lie outside of a checkout.
#[cfg(unix)]
fn has_other_names(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 1)
}

#[cfg(not(unix))]
fn has_other_names(_path: &Path) -> bool {
    false
}

/// Gives a file that is there another text, in one step: readers see the old one or the new one.
fn replace(path: &Path, text: &str) -> Result<(), Problem> {
    let failure = |error: io::Error| {
        Problem::new(path, format!("was not changed: {error}"), Some("check the permissions of its folder"))
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = fs::metadata(path).map_err(failure)?.permissions();
    // Its name cannot be guessed, and nothing that is there is opened.
    let mut temporary = tempfile::Builder::new().prefix(".pgvet-").tempfile_in(folder).map_err(failure)?;
    temporary.write_all(text.as_bytes()).map_err(failure)?;
    temporary.as_file().set_permissions(permissions).map_err(failure)?;
    temporary.as_file().sync_all().map_err(failure)?;
    temporary.persist(path).map(drop).map_err(|error| failure(error.error))
}

/// Writes new files, none over one that is there. If one fails, none is left.
pub fn create_files(files: &[(PathBuf, String)]) -> Result<(), Problem> {
    // A link that leads to nothing is there, too.
    if let Some((path, _)) = files.iter().find(|(path, _)| fs::symlink_metadata(path).is_ok()) {
        return Err(Problem::new(
            path,
            "already exists: nothing was written",
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
    let boundary = Boundary::around(path);
    let refused = |path: &Path| match boundary.refusal(path) {
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it {why}"))),
        None => Ok(()),
    };
    // Once before folders are made for it, once for the path that they are part of.
    refused(path)?;
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    refused(path)?;
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
        assert!(create_files(&files).unwrap_err().message.starts_with("already exists"));
        assert!(!at("1.sql").exists());
        create_files(&[(at("new/3.sql"), "c".to_owned())]).unwrap();
        assert_eq!(fs::read_to_string(at("new/3.sql")).unwrap(), "c");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link_or_out_of_the_checkout() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("checkout/.git/hooks")).unwrap();
        fs::create_dir(at("outside")).unwrap();
        for file in ["outside/1.sql", "checkout/1.sql"] {
            fs::write(at(file), "a").unwrap();
        }
        symlink("1.sql", at("checkout/2.sql")).unwrap();
        symlink("../outside/1.sql", at("checkout/3.sql")).unwrap();
        symlink("../outside", at("checkout/folder")).unwrap();
        symlink(".git/hooks/pre-commit", at("checkout/report.json")).unwrap();
        symlink("/dev/full", at("checkout/device")).unwrap();
        for path in [
            "2.sql",
            "3.sql",
            "folder/1.sql",
            "report.json",
            "device",
            ".git/hooks/x",
            "folder/new",
            "folder/new/x",
            "new/../folder/new/x",
        ] {
            let path = at("checkout").join(path);
            assert!(create_report(&path).is_err(), "{}", path.display());
            assert!(write_changes(&[change(&path, "a", "x")]).is_err(), "{}", path.display());
            assert!(create_files(&[(path.clone(), "x".to_owned())]).is_err(), "{}", path.display());
        }
        assert_eq!(fs::read_to_string(at("outside/1.sql")).unwrap(), "a");
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(at("checkout/.git/hooks")).unwrap().count(), 0);
        fs::hard_link(at("outside/1.sql"), at("checkout/hard.json")).unwrap();
        assert!(create_report(&at("checkout/hard.json")).is_err());
        create_report(&at("checkout/new.json")).unwrap();
        write_changes(&[change(&at("checkout/1.sql"), "a", "x")]).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_can_be_guessed_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("1.sql");
        fs::write(&path, "a").unwrap();
        let victim = root.path().join("victim");
        let planted = root.path().join(format!("1.sql.pgvet-{}", std::process::id()));
        std::os::unix::fs::symlink(&victim, planted).unwrap();
        write_changes(&[change(&path, "a", "x")]).unwrap();
        assert!(!victim.exists());
    }
}
