//! git, called so that nothing in a checkout decides what is run, written or reached.
//!
//! A checkout may bring a configuration of its own: an archive with `.git`, a shared folder, or a bare repository that
//! a branch holds as ordinary files.

use super::regular::{RegularFiles, check_beside};
use super::{bounded, index, owner};
use crate::problem::Problem;
use crate::program;
use crate::read::MAX_SQL;
use crate::roots::Repositories;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::NamedTempFile;

/// Settings that run a program, reach another machine, read a file that the configuration names, or raise the memory that
/// git takes.
///
/// Source: git 2.55, `Documentation/config`; what has a name of its own, as a filter, is in [`Git::neutralised`].
const SETTINGS: [&str; 16] = [
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    // Else a part of the index is written beside that of the repository.
    "core.splitIndex=false",
    "core.deltaBaseCacheLimit=96m",
    "core.bigFileThreshold=512m",
    "diff.renameLimit=1000",
    "core.alternateRefsCommand=",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "diff.external=",
    "diff.orderFile=/dev/null",
    "submodule.recurse=false",
    "protocol.allow=never",
];

/// Timeout for one command of git: much more than it needs, and less than forever.
const LIMIT: Duration = Duration::from_secs(120);

/// Timeout for a command that reads no more than the configuration.
const OPENING_LIMIT: Duration = Duration::from_secs(20);

/// Maximum number of bytes of objects that are read together.
const MAX_BLOBS: u64 = 192 << 20;

/// Variables that the user, and never a checkout, has set: the index of a partial commit while a hook runs, and
/// configuration, as for `safe.directory`.
const KEPT: [&str; 7] = [
    "GIT_INDEX_FILE",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
];

/// The repository around a folder.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    /// The folder with `.git`.
    pub(super) top: PathBuf,
    /// A link in the folder of git that leads out of the repository: what git says may quote the file behind it.
    outward: Option<PathBuf>,
    /// Settings for what the configuration has given a name.
    neutralised: Vec<OsString>,
    /// A copy of the index, as git may write the one that it compares files with.
    index: Option<NamedTempFile>,
}

/// A file in the index: `TAG NAME`, where the tag shows the flags of its entry.
struct TrackedFile {
    tag: u8,
    name: OsString,
}

impl AsRef<Path> for TrackedFile {
    fn as_ref(&self) -> &Path {
        Path::new(&self.name)
    }
}

impl Git {
    /// The nearest folder with `.git` decides, as git's own search takes folders without one for bare repositories.
    pub(super) fn around(folder: &Path) -> Result<Self, Problem> {
        let problem = |message: String| Problem::new(folder, message, None);
        let absolute = crate::config::absolute(folder);
        let top = Repositories::default().around(&absolute).map(Path::to_owned);
        let top = top.ok_or_else(|| problem("is in no git repository".to_owned()))?;
        let program = program::find("git", &top).ok_or_else(|| {
            let help = "install git; a `git` below the checked folder is not run";
            Problem::new(folder, "cannot be searched for changes: there is no git on PATH", Some(help))
        })?;
        let unreadable = |message| problem(format!("is in no git repository that can be read: {message}"));
        let mut regular = RegularFiles::of(&top);
        regular.check(&top.join(".git")).map_err(unreadable)?;
        let mut git = Self { program, top, outward: regular.outward.clone(), neutralised: Vec::new(), index: None };
        let answer = git.run_within(OPENING_LIMIT, &["rev-parse", "--is-bare-repository", "--show-toplevel"]);
        if !answer.map_err(unreadable)?.starts_with(b"false\n") {
            return Err(unreadable("it is a bare one".to_owned()));
        }
        // `.git` may be a file that names another folder, which may name a third one.
        let named = |option: &str| {
            let folder = git.run_within(OPENING_LIMIT, &["rev-parse", option]).map_err(unreadable)?;
            Ok(git.top.join(super::name_of(folder.strip_suffix(b"\n").unwrap_or(&folder))))
        };
        let (own, common) = (named("--absolute-git-dir")?, named("--git-common-dir")?);
        for folder in [&own, &common] {
            regular.check(folder).map_err(unreadable)?;
        }
        let named_back = git.named_back(&own).map_err(unreadable)?;
        owner::check(&git.top, &own, &common, named_back.as_deref()).map_err(unreadable)?;
        git.outward = regular.outward;
        git.neutralised = git.named_programs().map_err(unreadable)?;
        git.index = git.copied_index().map_err(unreadable)?;
        let tracked = git.tracked().map_err(unreadable)?;
        check_beside(&git.top, &tracked).map_err(unreadable)?;
        git.compare_hidden_files(&tracked).map_err(unreadable)?;
        Ok(git)
    }

    /// The files in the index, which no other file of the checkout is read for.
    fn tracked(&self) -> Result<Vec<TrackedFile>, String> {
        if self.index.is_none() {
            return Ok(Vec::new());
        }
        let entries = self.run(&["ls-files", "-v", "-z", "--full-name"])?;
        let file = |entry: &[u8]| Some(TrackedFile { tag: *entry.first()?, name: super::name_of(entry.get(2..)?) });
        Ok(entries.split(|byte| *byte == 0).filter_map(file).collect())
    }

    /// Takes the flags from the copied index that make git say that a file has not changed without looking at it. What a
    /// sparse checkout excludes keeps them.
    ///
    /// Source: git 2.47, `Documentation/git-update-index`, "Skip-worktree bit" and `--assume-unchanged`.
    fn compare_hidden_files(&self, tracked: &[TrackedFile]) -> Result<(), String> {
        let is_hidden = |file: &&TrackedFile| {
            let is_sparse = file.tag.eq_ignore_ascii_case(&b'S');
            let is_checked_out = || fs::symlink_metadata(self.top.join(&file.name)).is_ok();
            if is_sparse { is_checked_out() } else { file.tag.is_ascii_lowercase() }
        };
        let flagged = tracked.iter().filter(is_hidden).map(|file| super::bytes_of(&file.name));
        let names = flagged.flat_map(|name| [name, &[0]]).collect::<Vec<_>>().concat();
        if names.is_empty() {
            return Ok(());
        }
        // One command takes one of the two flags.
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            self.run_with_input(&["update-index", flag, "-z", "--stdin"], &names)?;
        }
        Ok(())
    }

    /// `None`: there is no index before the first file is added.
    fn copied_index(&self) -> Result<Option<NamedTempFile>, String> {
        let path = |name| Ok::<_, String>(self.top.join(self.line(&["rev-parse", "--git-path", name])?));
        let index = path("index")?;
        let Ok(metadata) = fs::metadata(&index) else { return Ok(None) };
        if !metadata.is_file() {
            return Err("its index is not a regular file".to_owned());
        }
        let shared = path("sharedindex")?;
        let checked = index::check(&index, shared.parent().unwrap_or(&self.top));
        checked.map_err(|why| format!("its index {why}"))?;
        let copy = NamedTempFile::new().and_then(|copy| {
            // Only the user can read the copy, even if others can read the index.
            io::copy(&mut fs::File::open(&index)?, &mut copy.as_file())?;
            // An entry as new as its index is compared by content. In a newer copy, a file that changed within the
            // second and kept its size would be treated as unchanged. Source: git 2.47,
            // `Documentation/technical/racy-git`.
            metadata.modified().and_then(|time| copy.as_file().set_modified(time))?;
            Ok(copy)
        });
        copy.map(Some).map_err(|error| format!("its index cannot be copied: {error}"))
    }

    /// The folder that a folder of git outside of the repository says it belongs to: `core.worktree`.
    fn named_back(&self, own: &Path) -> Result<Option<PathBuf>, String> {
        let file = own.join("config");
        if !file.is_file() {
            return Ok(None);
        }
        let before = ["config", "--no-includes", "--file"].map(OsStr::new);
        let after = ["--default", "", "--get", "core.worktree"].map(OsStr::new);
        let value = self.run_within(OPENING_LIMIT, &[&before[..], &[file.as_os_str()], &after].concat())?;
        let value = value.strip_suffix(b"\n").unwrap_or(&value);
        Ok((!value.is_empty()).then(|| own.join(super::name_of(value))))
    }

    /// Filters, drivers and hooks run programs under names that only the configuration knows.
    fn named_programs(&self) -> Result<Vec<OsString>, String> {
        let keys = self.run(&["config", "--list", "--name-only", "-z"])?;
        let mut settings = Vec::new();
        for key in keys.split(|byte| *byte == 0) {
            let shown = String::from_utf8_lossy(key);
            let Some(setting) = neutral(&shown) else { continue };
            // A command line may lack other bytes than those of UTF-8, and git takes what follows its first `=` for the
            // value.
            if matches!(shown, Cow::Owned(_)) || shown.contains('=') {
                return Err(format!("its configuration has `{shown}`, which cannot be turned off"));
            }
            settings.push(OsString::from(setting));
        }
        Ok(settings)
    }

    /// The output of a git command, or its message.
    pub(super) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, String> {
        self.run_within(LIMIT, arguments)
    }

    fn run_within(&self, limit: Duration, arguments: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, String> {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let output = child.and_then(|child| bounded::output(child, limit));
        self.checked(output.map_err(|error| format!("git cannot be run: {error}"))?)
    }

    /// The texts of objects; `None` for those that are not in the repository, as a partial clone lacks some, and for those
    /// that are too large, alone or with those before them.
    pub(super) fn blobs(&self, ids: &[&str]) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut texts = vec![None; ids.len()];
        if ids.is_empty() {
            return Ok(texts);
        }
        let unreadable = || "`git cat-file` has printed something other than objects".to_owned();
        let sizes = self.run_with_input(&["cat-file", "--batch-check=%(objectsize)"], &lines(ids))?;
        let sizes = String::from_utf8_lossy(&sizes);
        // `ID missing` is no size.
        let sizes: Vec<Option<u64>> = sizes.lines().map(|line| line.parse().ok()).collect();
        if sizes.len() != ids.len() {
            return Err(unreadable());
        }
        let mut left = MAX_BLOBS;
        let is_read = |at: &usize| {
            let rest = sizes[*at].filter(|size| *size <= MAX_SQL).and_then(|size| left.checked_sub(size));
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let read: Vec<usize> = (0..ids.len()).filter(is_read).collect();
        let wanted: Vec<&str> = read.iter().map(|at| ids[*at]).collect();
        let output = self.run_with_input(&["cat-file", "--batch"], &lines(&wanted))?;
        let objects = objects(&output, read.len()).ok_or_else(unreadable)?;
        read.into_iter().zip(objects).for_each(|(at, text)| texts[at] = Some(text));
        Ok(texts)
    }

    /// The output of a git command that reads its standard input.
    fn run_with_input(&self, arguments: &[&str], text: &[u8]) -> Result<Vec<u8>, String> {
        let cannot_run = |error: io::Error| format!("git cannot be run: {error}");
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(cannot_run)?;
        let input = child.stdin.take();
        // git writes while it reads, and waits when nobody takes what it writes.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // If git stopped reading, its exit status says why.
                input?.write_all(text).ok()
            });
            bounded::output(child, LIMIT)
        });
        self.checked(output.map_err(cannot_run)?)
    }

    /// What a git command has printed, or its message. What precedes the last word may quote a file.
    fn checked(&self, output: Output) -> Result<Vec<u8>, String> {
        if output.status.success() {
            return Ok(output.stdout);
        }
        if let Some(link) = &self.outward {
            let link = link.display();
            return Err(format!("its message is not shown, because it may quote the file to which `{link}` leads"));
        }
        let message = String::from_utf8_lossy(&output.stderr);
        if message.to_ascii_lowercase().contains("out of memory") {
            return Err(format!("git needs more than {} GiB of memory", bounded::MOST_MEMORY >> 30));
        }
        let fatal = message.find("fatal: ").map(|at| &message[at + "fatal: ".len()..]);
        Err(fatal.unwrap_or(&message).trim().to_owned())
    }

    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null()).current_dir(&self.top);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_dropped(name)) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "");
        if let Some(above) = self.top.parent() {
            command.env("GIT_CEILING_DIRECTORIES", above);
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index.path());
        }
        command.env("GIT_WORK_TREE", &self.top).args(["--no-pager", "--literal-pathspecs"]);
        for setting in SETTINGS.iter().map(OsStr::new).chain(self.neutralised.iter().map(OsString::as_os_str)) {
            command.arg("-c").arg(setting);
        }
        command.args(arguments);
        command
    }

    /// The same, on one line.
    pub(super) fn line(&self, arguments: &[impl AsRef<OsStr>]) -> Result<String, String> {
        self.run(arguments).map(|output| String::from_utf8_lossy(&output).trim().to_owned())
    }
}

/// The setting that takes its program from a filter, a driver or a hook; `None` for a key that names none.
///
/// Source: git 2.55, `Documentation/config`; hooks have been part of the configuration since 2.54.
fn neutral(key: &str) -> Option<String> {
    let (section, _) = key.split_once('.')?;
    let (name, variable) = key.rsplit_once('.')?;
    match (section, variable) {
        ("filter", "clean" | "smudge" | "process") | ("diff", "command" | "textconv") => Some(format!("{key}=")),
        ("filter", "required") => Some(format!("{key}=false")),
        ("hook", "command" | "event") => Some(format!("{name}.enabled=false")),
        _ => None,
    }
}

/// One name a line.
fn lines(names: &[&str]) -> Vec<u8> {
    names.iter().flat_map(|name| [name, "\n"]).collect::<String>().into_bytes()
}

/// The texts in the output of `git cat-file --batch`: `ID blob SIZE`, the text and a line break, or `ID missing`.
fn objects(mut output: &[u8], count: usize) -> Option<Vec<Vec<u8>>> {
    let mut texts = Vec::with_capacity(count);
    for _ in 0..count {
        let end = output.iter().position(|byte| *byte == b'\n')?;
        let (head, rest) = (std::str::from_utf8(&output[..end]).ok()?, &output[end + 1..]);
        let size =
            if head.ends_with(" missing") { None } else { Some(head.rsplit(' ').next()?.parse::<usize>().ok()?) };
        texts.push(rest.get(..size.unwrap_or_default())?.to_vec());
        output = size.map_or(Some(rest), |size| rest.get(size + 1..))?;
    }
    Some(texts)
}

fn is_dropped(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_kept = |kept: &str| name == kept || (kept.ends_with('_') && name.starts_with(kept));
    name.starts_with("GIT_") && !KEPT.iter().any(|kept| is_kept(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_under_names_of_a_configuration_are_switched_off() {
        let neutral = |key| neutral(key).unwrap_or_default();
        for (key, setting) in [
            ("filter.a.b.clean", "filter.a.b.clean="),
            ("filter.x.required", "filter.x.required=false"),
            ("diff.x.textconv", "diff.x.textconv="),
            ("hook.a.b.command", "hook.a.b.enabled=false"),
            ("hook.x.event", "hook.x.enabled=false"),
            ("hook.x.enabled", ""),
            ("user.name", ""),
        ] {
            assert_eq!(neutral(key), setting, "{key}");
        }
    }
}
