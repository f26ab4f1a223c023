//! Runs of `pgvet trace` that go on while a test looks.

use crate::support::Folder;
use pgvet_trace::server::testing::binaries;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// A folder with these files; `None` where the major that these tests run on is not installed.
pub(crate) fn folder(files: &[(&str, &str)]) -> Option<Folder> {
    binaries(18)?;
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    Some(Folder::new(&files))
}

/// A folder for temporary files that the user who runs the server can reach.
pub(crate) fn private_folder() -> tempfile::TempDir {
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(temporary.path(), everybody).unwrap();
    temporary
}

/// A run that goes on, in a process group of its own; with these variables in its environment.
pub(crate) fn start(
    folder: &Folder,
    temporary: &tempfile::TempDir,
    args: &[&str],
    env: &[(&str, &str)],
) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgvet"));
    command.args(args).current_dir(folder.path()).env("TMPDIR", temporary.path()).envs(env.iter().copied());
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
