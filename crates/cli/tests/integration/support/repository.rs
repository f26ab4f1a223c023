//! Repositories of git, in the folder of a test.

use crate::support::Folder;
use std::fs;
use std::process::Command;

/// Runs git in the folder.
pub(crate) fn git(folder: &Folder, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").arg("-C").arg(folder.path()).args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a repository of the folder, whose branch `main` has all files.
pub(crate) fn init(folder: &Folder) {
    git(folder, &["init", "-q", "-b", "main"]);
    commit(folder);
}

/// Commits every change.
pub(crate) fn commit(folder: &Folder) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "x"]);
}

/// Writes a file.
pub(crate) fn write(folder: &Folder, path: &str, text: impl AsRef<[u8]>) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
