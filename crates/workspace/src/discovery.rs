//! From the paths on the command line to the SQL files behind them.

use crate::boundary::Boundary;
use crate::config::absolute;
use crate::identity::Identities;
use crate::ignored;
use crate::order;
use crate::skipped;
use ignore::WalkBuilder;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Why something that was asked for could not be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    /// What is wrong, as the end of the sentence "`path` ...".
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
                Self::new(path, "is a symbolic link to something that does not exist", None)
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
                let help = "no migration should be that large: split it, or leave it out with `exclude` in pgvet.toml";
                Self::new(path, format!("cannot be read: {error}"), Some(help))
            }
            _ => Self::new(path, format!("cannot be read: {error}"), None),
        }
    }
}

/// The SQL files that `path` stands for: itself, or all below it in the order of its migration tool.
pub(crate) fn files_at(path: &Path, identities: &Identities, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    if let Some(why) = Boundary::around(path).refusal(path) {
        problems.push(Problem::new(path, why, Some("name what it leads to, to check that")));
        return Vec::new();
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return vec![path.to_owned()],
        Err(error) => {
            problems.push(Problem::io(path, &error));
            return Vec::new();
        }
    }
    let known = problems.len();
    // Whoever names a folder of samples, or one that git ignores, wants it checked.
    let asides = path.file_name().and_then(|name| name.to_str()).is_some_and(skipped::is_named_aside);
    let mut files = walk(path, Walk { as_git: true, asides }, identities, problems);
    for walk_again in [Walk { as_git: true, asides: true }, Walk { as_git: false, asides: true }] {
        if files.is_empty() {
            let mut found = Vec::new();
            files = walk(path, walk_again, identities, &mut found);
            found.retain(|problem| !problems.contains(problem));
            problems.append(&mut found);
        }
    }
    if files.is_empty() && problems.len() == known {
        problems.push(Problem::new(path, "holds no SQL files", Some("name a folder or file with `.sql` migrations")));
    }
    order::sort(files)
}

/// What a walk takes with it.
#[derive(Debug, Clone, Copy)]
struct Walk {
    /// Only what git does not ignore.
    as_git: bool,
    /// Samples, tests and data of developers as well: see [`skipped`].
    asides: bool,
}

/// What stands in hidden folders is left out, and what git ignores: a build copies migrations. Links to folders are not
/// followed: they may lead back here.
fn walk(root: &Path, walk: Walk, identities: &Identities, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let Walk { as_git, asides } = walk;
    let above = absolute(root);
    let trouble = if as_git { above.ancestors().find_map(ignored::trouble) } else { None };
    let as_git = as_git && trouble.is_none();
    problems.extend(trouble);
    let unread: Arc<Mutex<Vec<Problem>>> = Arc::default();
    let seen = Arc::clone(&unread);
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).hidden(true);
    walk.filter_entry(move |entry| {
        let is_folder = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
        if skipped::is_skipped_folder(entry, asides) {
            return false;
        }
        let trouble = if as_git && is_folder { ignored::trouble(entry.path()) } else { None };
        let is_read = trouble.is_none();
        seen.lock().unwrap_or_else(PoisonError::into_inner).extend(trouble);
        is_read
    });
    walk.git_ignore(as_git).git_exclude(as_git).git_global(as_git).parents(as_git);
    let boundary = Boundary::of_walk(root);
    let mut files = Vec::new();
    for entry in walk.build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.extend(problem(root, error));
                continue;
            }
        };
        let is_link = entry.path_is_symlink();
        let is_folder =
            if is_link { entry.path().is_dir() } else { entry.file_type().is_some_and(|kind| kind.is_dir()) };
        let is_skipped = |path: &Path| !asides && skipped::is_aside_file(path);
        if !is_folder && skipped::is_sql(&entry.file_name().to_string_lossy()) && !is_skipped(entry.path()) {
            if !is_link {
                identities.know(entry.path());
            } else if let Some(why) = boundary.refusal(entry.path()) {
                problems.push(Problem::new(entry.path(), why, Some("only files of the checkout are read")));
                continue;
            }
            files.push(entry.into_path());
        }
    }
    problems.append(&mut unread.lock().unwrap_or_else(PoisonError::into_inner));
    skipped::leave_out_variants(&mut files);
    files
}

/// What could not be read; a line of `.gitignore` that cannot be read ignores nothing.
fn problem(root: &Path, error: ignore::Error) -> Option<Problem> {
    let path = match &error {
        ignore::Error::WithPath { path, .. } => path.clone(),
        ignore::Error::WithDepth { err, .. } => match &**err {
            ignore::Error::WithPath { path, .. } => path.clone(),
            _ => root.to_owned(),
        },
        _ => root.to_owned(),
    };
    error.into_io_error().map(|error| Problem::io(&path, &error))
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
    fn what_git_ignores_is_skipped_unless_it_is_named() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in [".git", "db", "build/db"] {
            fs::create_dir_all(at(folder)).unwrap();
            fs::write(at(folder).join("1.sql"), "").unwrap();
        }
        fs::write(at("db/scratch.sql"), "").unwrap();
        fs::write(at(".gitignore"), "build/**\nscratch.*\n").unwrap();
        let mut problems = Vec::new();
        let mut files = |path: &str| files_at(&at(path), &Identities::default(), &mut problems);
        assert_eq!(files(""), [at("db/1.sql")]);
        assert_eq!(files("db"), [at("db/1.sql")]);
        assert_eq!(files("build"), [at("build/db/1.sql")]);
        assert_eq!(files("db/scratch.sql"), [at("db/scratch.sql")]);
        assert_eq!(problems, []);
    }

    #[test]
    fn a_folder_without_sql_and_a_missing_path_are_problems() {
        let root = tempfile::tempdir().unwrap();
        let mut problems = Vec::new();
        assert!(files_at(root.path(), &Identities::default(), &mut problems).is_empty());
        assert!(files_at(&root.path().join("no"), &Identities::default(), &mut problems).is_empty());
        let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages, ["holds no SQL files", "does not exist"]);
    }

    #[test]
    fn paths_are_shown_as_they_were_named() {
        assert_eq!(display(Path::new("./a/b.sql")), "a/b.sql");
        assert_eq!(display(Path::new("/a/b.sql")), "/a/b.sql");
        assert_eq!(display(Path::new(".")), ".");
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_checkout_and_special_files_are_problems() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for (file, text) in [("outside/1.sql", ""), ("a/.git/config", "token"), ("a/db/1.sql", ""), ("a/.env", "x")] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), text).unwrap();
        }
        for (name, target) in [
            ("2_out.sql", "../../outside/1.sql"),
            ("3_git.sql", "../.git/config"),
            ("4_env.sql", "../.env"),
            ("5_zero.sql", "/dev/zero"),
            ("6_in.sql", "1.sql"),
        ] {
            symlink(target, at("a/db").join(name)).unwrap();
        }
        symlink("../outside", at("a/folder")).unwrap();
        let read = |path: &str| {
            let mut problems = Vec::new();
            let files = files_at(&at(path), &Identities::default(), &mut problems);
            let read =
                files.iter().filter_map(|file| crate::read::read(file).map_err(|problem| problems.push(problem)).ok());
            (read.count(), problems.len())
        };
        assert_eq!(read("a/db"), (2, 4));
        assert_eq!(read("a/folder"), (0, 1));
        assert_eq!(read("a/folder/1.sql"), (0, 1));
        for file in ["2_out.sql", "3_git.sql", "4_env.sql", "5_zero.sql"] {
            assert_eq!(read(&format!("a/db/{file}")), (0, 1), "{file}");
        }
        symlink("/dev/zero", at("a/db/.gitignore")).unwrap();
        assert_eq!(read("a/db"), (2, 5));
        assert_eq!(read("a"), (2, 5), "what git ignores is unknown, so all of it is read");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_among_the_files_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join("1.sql");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let problem = crate::read::read(&pipe).unwrap_err();
        assert_eq!(problem.message, "cannot be read: it is not a regular file");
    }
}
