//! Files that say what git ignores. A walk reads them whole, wherever they lead, so they are examined before.

use crate::boundary::Boundary;
use crate::problem::Problem;
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of such a file.
const LIMIT: u64 = 1 << 20;

/// The file that keeps the walk from reading what a folder ignores: a device, a pipe, or one that is too large.
pub(crate) fn trouble(folder: &Path) -> Option<Problem> {
    let help = "remove it, or make it a regular file";
    let own = folder.join(".gitignore");
    // git itself follows no link there, since 2.32.
    if fs::symlink_metadata(&own).is_ok_and(|metadata| metadata.is_symlink())
        && let Some(why) = Boundary::of_walk(folder).refusal(&own)
    {
        return Some(Problem::new(&own, format!("{why}, so pgvet does not know what git ignores"), Some(help)));
    }
    let file = files(folder).into_iter().find(|file| is_harmful(file))?;
    let message =
        format!("is larger than {} MiB or not a regular file, so pgvet does not know what git ignores", LIMIT >> 20);
    Some(Problem::new(&file, message, Some(help)))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let git = folder.join(".git");
    let mut files = vec![folder.join(".gitignore")];
    // Most folders have none.
    let Ok(kind) = fs::metadata(&git) else { return files };
    files.push(git.clone());
    if kind.is_dir() {
        files.push(git.join("info/exclude"));
    } else if let Some(elsewhere) = git_folder(&git) {
        let common = elsewhere.join("commondir");
        files.extend([common.clone(), elsewhere.join("info/exclude")]);
        if !is_harmful(&common)
            && let Ok(folder) = fs::read_to_string(&common)
        {
            files.push(elsewhere.join(folder.trim()).join("info/exclude"));
        }
    }
    files
}

/// The folder that the `.git` of a worktree or a submodule names.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if !git.is_file() || is_harmful(git) {
        return None;
    }
    Some(fs::read_to_string(git).ok()?.lines().next()?.strip_prefix("gitdir: ")?.into())
}

fn is_harmful(file: &Path) -> bool {
    let is_good = |metadata: &fs::Metadata| metadata.is_dir() || (metadata.is_file() && metadata.len() <= LIMIT);
    fs::metadata(file).is_ok_and(|metadata| !is_good(&metadata))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_device_is_no_list_of_what_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        assert_eq!(trouble(folder.path()), None);
        fs::create_dir_all(at(".git/info")).unwrap();
        fs::write(at(".gitignore"), "build\n").unwrap();
        assert_eq!(trouble(folder.path()), None);
        symlink("/dev/zero", at(".git/info/exclude")).unwrap();
        assert!(trouble(folder.path()).unwrap().path.ends_with("exclude"));
        fs::remove_dir_all(at(".git")).unwrap();
        fs::write(at(".git"), format!("gitdir: {}\n", at("elsewhere").display())).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        symlink("/dev/zero", at("elsewhere/commondir")).unwrap();
        assert!(trouble(folder.path()).unwrap().path.ends_with("commondir"));
        fs::remove_file(at(".git")).unwrap();
        fs::write(at(".gitignore"), "x".repeat(2 << 20)).unwrap();
        assert!(trouble(folder.path()).unwrap().path.ends_with(".gitignore"));
    }

    #[test]
    fn a_link_out_of_the_checkout_is_no_list_of_what_is_ignored() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("checkout/.git")).unwrap();
        fs::create_dir_all(at("checkout/migrations")).unwrap();
        fs::write(at("checkout/ignored"), "build\n").unwrap();
        fs::write(at("outside"), "build\n").unwrap();
        symlink("../ignored", at("checkout/migrations/.gitignore")).unwrap();
        assert_eq!(trouble(&at("checkout/migrations")), None);
        symlink("../outside", at("checkout/.gitignore")).unwrap();
        assert!(trouble(&at("checkout")).unwrap().message.contains("which is outside"));
    }
}
