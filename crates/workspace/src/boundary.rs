//! The boundary of a checkout. Nothing in it may name a file outside of it, nor one of git's own, which hold tokens.

use crate::config::absolute;
use crate::identity::identity;
use crate::roots::Repositories;
use std::path::{Component, Path, PathBuf};

/// The folder that a path and all that it leads to must lie in.
#[derive(Debug, Clone)]
pub struct Boundary {
    /// Without links; `None`: the path is nowhere near the run, so the user has named it.
    root: Option<PathBuf>,
}

impl Boundary {
    /// The folder itself, whatever repository holds it.
    pub fn within(folder: &Path) -> Self {
        Self { root: Some(identity(folder)) }
    }

    /// The repository that holds the path, or else the current folder if that holds it. Links are not followed to find it.
    pub(crate) fn around(path: &Path) -> Self {
        let path = absolute(path);
        let current = || Some(absolute(Path::new("."))).filter(|current| path.starts_with(current));
        let repository = path.parent().and_then(|folder| Repositories::default().around(folder));
        Self { root: repository.map(Path::to_owned).or_else(current).map(|root| identity(&root)) }
    }

    /// The repository that holds a folder, or else the folder itself, wherever pgvet was started.
    pub(crate) fn of_folder(folder: &Path) -> Self {
        let folder = absolute(folder);
        let repository = Repositories::default().around(&folder).map(Path::to_owned);
        Self::within(&repository.unwrap_or(folder))
    }

    /// The same as [`Boundary::around`] for what a walk finds in a folder, which holds all that it may read where nothing else does.
    pub(crate) fn of_walk(folder: &Path) -> Self {
        let Self { root } = Self::around(&folder.join("x"));
        Self { root: root.or_else(|| Some(identity(folder))) }
    }

    /// Whether the path belongs to a checkout.
    pub(crate) fn is_known(&self) -> bool {
        self.root.is_some()
    }

    /// Why nothing may be read or written there, as the end of the sentence "`path` ...".
    pub fn refusal(&self, path: &Path) -> Option<String> {
        let root = self.root.as_ref()?;
        let target = identity(path);
        let Ok(inside) = target.strip_prefix(root) else {
            return Some(format!("resolves to `{}`, which is outside `{}`", target.display(), root.display()));
        };
        let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
        inside
            .components()
            .any(is_git)
            .then(|| format!("resolves to `{}`, a file in the .git folder", target.display()))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_may_stay_inside_of_the_repository_only() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("repository/.git")).unwrap();
        fs::create_dir_all(at("repository/a")).unwrap();
        for file in ["outside.sql", "repository/inside.sql", "repository/.git/config"] {
            fs::write(at(file), "").unwrap();
        }
        for (name, target) in [("in", "../inside.sql"), ("out", "../../outside.sql"), ("git", "../.git/config")] {
            symlink(target, at("repository/a").join(name)).unwrap();
        }
        let refusal = |path: &str| Boundary::around(&at(path)).refusal(&at(path));
        assert_eq!(refusal("repository/a/in"), None);
        assert_eq!(refusal("repository/a/new"), None);
        assert_eq!(refusal("outside.sql"), None, "the user has named it");
        assert!(refusal("repository/a/out").unwrap().contains("which is outside"));
        assert!(refusal("repository/a/../../outside.sql").is_none(), "named from outside");
        assert!(refusal("repository/a/git").unwrap().contains("a file in the .git folder"));
        fs::create_dir_all(at("other/deep")).unwrap();
        symlink("../../other/deep", at("repository/a/deep")).unwrap();
        let in_repository =
            |path: &str| Boundary::around(&at("repository/a/x")).refusal(&at("repository/a").join(path));
        for path in ["deep/../new.json", "new/../deep/new.json", "new/../deep/../new.json"] {
            assert!(in_repository(path).is_some_and(|why| why.contains("which is outside")), "{path}");
        }
    }

    #[test]
    fn a_link_to_another_repository_moves_no_boundary() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for repository in ["checkout/.git", "checkout/vendor/module/.git", "victim/.git"] {
            fs::create_dir_all(at(repository)).unwrap();
        }
        symlink("../victim", at("checkout/reports")).unwrap();
        symlink("vendor/module", at("checkout/module")).unwrap();
        let refusal = |path: &str| Boundary::around(&at(path)).refusal(&at(path));
        assert!(refusal("checkout/reports/new.json").is_some_and(|why| why.contains("which is outside")));
        assert!(refusal("checkout/reports/deep/new.json").is_some_and(|why| why.contains("which is outside")));
        assert_eq!(refusal("checkout/module/new.json"), None);
        assert_eq!(refusal("victim/new.json"), None);
        fs::create_dir_all(at("checkout/.git/modules/.git")).unwrap();
        symlink(".git/modules", at("checkout/modules")).unwrap();
        assert!(refusal("checkout/modules/hooks/x").is_some_and(|why| why.contains("a file in the .git folder")));
        // Above the checkout, too.
        fs::create_dir_all(at(".git")).unwrap();
        symlink("..", at("checkout/above")).unwrap();
        assert!(refusal("checkout/above/new.json").is_some_and(|why| why.contains("which is outside")));
    }

    #[test]
    fn a_folder_may_be_the_boundary_in_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        fs::create_dir_all(folder.path().join("a")).unwrap();
        let boundary = Boundary::within(&folder.path().join("a"));
        assert_eq!(boundary.refusal(&folder.path().join("a/new.sql")), None);
        for path in ["b.sql", "a/../b.sql", "ab/c.sql"] {
            assert!(boundary.refusal(&folder.path().join(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn a_repository_may_be_reached_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("real/.git")).unwrap();
        fs::write(folder.path().join("real/1.sql"), "").unwrap();
        symlink("real", folder.path().join("link")).unwrap();
        let path = folder.path().join("link/1.sql");
        assert_eq!(Boundary::around(&path).refusal(&path), None);
    }
}
