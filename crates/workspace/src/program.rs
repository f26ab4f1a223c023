//! Programs of the user, and none of a checkout.

use crate::identity::identity;
use std::env;
use std::path::{Path, PathBuf};

/// The program of that name in an absolute folder of `PATH` that does not lie below `checkout`.
pub(crate) fn find(name: &str, checkout: &Path) -> Option<PathBuf> {
    find_in(&env::var_os("PATH")?, name, checkout)
}

fn find_in(path: &std::ffi::OsStr, name: &str, checkout: &Path) -> Option<PathBuf> {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let checkout = identity(checkout);
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    folders
        .map(|folder| folder.join(&file))
        .find(|program| program.is_file() && !identity(program).starts_with(&checkout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_program_of_the_checkout_is_none() {
        let root = tempfile::tempdir().unwrap();
        let [checkout, own] = ["checkout", "bin"].map(|name| root.path().join(name));
        for folder in [&checkout, &own] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(format!("git{}", env::consts::EXE_SUFFIX)), "").unwrap();
        }
        let path = env::join_paths([Path::new(""), Path::new("."), &checkout, &own]).unwrap();
        let found = find_in(&path, "git", &checkout).unwrap();
        assert!(found.starts_with(&own), "{}", found.display());
        assert_eq!(find_in(checkout.as_os_str(), "git", &checkout), None);
    }
}
