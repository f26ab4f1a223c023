//! New data directories. The first of each build of PostgreSQL is kept and copied from then on, which takes a tenth of
//! the time of `initdb`.

use super::Binaries;
use super::folder::Folder;
use crate::Error;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The superuser of a private server.
pub(crate) const SUPERUSER: &str = "postgres";

/// Kept directories begin with this, followed by the major.
const PREFIX: &str = "cluster-";

/// Directories that are being written begin with this.
const UNFINISHED: &str = ".cluster-";

/// Makes a data directory for the user of a server.
///
/// A server of root runs as `nobody`, and so do other servers, whose migrations could change a directory before it is
/// kept. So only directories of the user who runs pgvet are kept.
pub(super) fn create(binaries: &Binaries, folder: &Folder, data: &Path, kept_in: Option<&Path>) -> Result<(), Error> {
    let kept = kept_in.filter(|_| !folder.runs_as_other_user()).and_then(|kept_in| Kept::of(binaries, kept_in));
    if let Some(kept) = &kept
        && kept.copy_to(data).is_ok()
    {
        return Ok(());
    }
    // The rest of a copy that failed.
    let _ = fs::remove_dir_all(data);
    initialize(binaries, folder, data)?;
    if let Some(kept) = kept {
        // What goes wrong costs the next run time and nothing else.
        let _ = kept.keep(data);
    }
    Ok(())
}

fn initialize(binaries: &Binaries, folder: &Folder, data: &Path) -> Result<(), Error> {
    let mut initdb = folder.command(&binaries.program("initdb"));
    initdb.args(["--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", SUPERUSER, "-D"]);
    initdb.arg(data).stdin(Stdio::null());
    let output = initdb.output().map_err(|error| cannot_run(&initdb, folder, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(Error::new(format!("`initdb` failed: {}", String::from_utf8_lossy(&said).trim())))
}

/// The error of a program of PostgreSQL that does not start.
pub(super) fn cannot_run(command: &Command, folder: &Folder, error: &io::Error) -> Error {
    let program = command.get_program().to_string_lossy();
    let error = Error::new(format!("cannot run `{program}`: {error}"));
    if !folder.runs_as_other_user() {
        return error;
    }
    error.help("a server is not run as root but as `nobody` or `postgres`, who must be able to read that folder")
}

/// Where the data directory of a build of PostgreSQL is kept.
struct Kept {
    folder: PathBuf,
    /// What the directories of all builds of this major begin with.
    prefix: String,
    name: String,
}

impl Kept {
    /// Programs that were installed again make other directories.
    fn of(binaries: &Binaries, folder: &Path) -> Option<Self> {
        let metadata = fs::metadata(binaries.program("postgres")).ok()?;
        let prefix = format!("{PREFIX}{}-", binaries.major);
        let name = format!("{prefix}{}-{:x}-{:x}", binaries.version, metadata.ino(), metadata.mtime());
        // The version comes from outside.
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
        is_plain.then(|| Self { folder: folder.to_owned(), prefix, name })
    }

    fn copy_to(&self, data: &Path) -> io::Result<()> {
        let kept = self.folder.join(&self.name);
        let metadata = fs::symlink_metadata(&kept)?;
        let is_ours = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
        if !is_ours || metadata.mode() & 0o077 != 0 {
            return Err(io::Error::other("it may come from somebody else"));
        }
        copy(&kept, data)
    }

    /// Keeps a directory, in place of those of other builds of this major.
    fn keep(&self, data: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder)?;
        let whole = unfinished.path().join("data");
        copy(data, &whole)?;
        let others = fs::read_dir(&self.folder)?.flatten().filter(|entry| {
            let name = entry.file_name();
            name != self.name.as_str() && name.to_string_lossy().starts_with(&self.prefix)
        });
        others.for_each(|entry| drop(fs::remove_dir_all(entry.path())));
        // Another run may have been faster.
        fs::rename(whole, self.folder.join(&self.name))
    }
}

/// Copies a data directory, which has nothing but folders and files before a server has run on it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, from, to) = (entry.file_type()?, entry.path(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&from, &to)?;
        } else if kind.is_file() {
            fs::copy(from, to)?;
        } else {
            return Err(io::Error::other("it is neither a file nor a folder"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Programs that count how often they make a data directory.
    fn programs(folder: &Path) -> Binaries {
        let initdb =
            "#!/bin/sh\nfor data; do :; done\nmkdir -m 700 \"$data\" \"$data/base\"\necho 18 > \"$data/base/1\"\n";
        let count = format!("echo >> {}\n", folder.join("count").display());
        for (name, text) in [("initdb", format!("{initdb}{count}")), ("postgres", String::new())] {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(folder.join("count"), "").unwrap();
        // The user of a server of root writes there, too.
        fs::set_permissions(folder.join("count"), fs::Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        Binaries { folder: folder.to_owned(), major: 18, version: "18.1".to_owned() }
    }

    #[test]
    fn a_directory_is_made_once_unless_others_could_change_it() {
        let (programs_folder, kept_in) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let binaries = programs(programs_folder.path());
        let mut is_other_user = false;
        for _ in 0..2 {
            let folder = Folder::create().unwrap();
            let data = folder.path().join("data");
            create(&binaries, &folder, &data, Some(kept_in.path())).unwrap();
            assert_eq!(fs::read_to_string(data.join("base/1")).unwrap(), "18\n");
            is_other_user = folder.runs_as_other_user();
        }
        let made = fs::read_to_string(programs_folder.path().join("count")).unwrap().lines().count();
        let kept = fs::read_dir(kept_in.path()).unwrap().count();
        assert_eq!((made, kept), if is_other_user { (2, 0) } else { (1, 1) });
    }

    #[test]
    fn a_kept_directory_is_one_of_this_build_and_this_user() {
        let (programs_folder, kept_in) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let binaries = programs(programs_folder.path());
        let data = kept_in.path().join("original");
        copy(programs_folder.path(), &data).unwrap();
        let old = Kept::of(&Binaries { version: "18.0".to_owned(), ..binaries.clone() }, kept_in.path()).unwrap();
        let new = Kept::of(&binaries, kept_in.path()).unwrap();
        old.keep(&data).unwrap();
        new.keep(&data).unwrap();
        assert!(old.copy_to(&kept_in.path().join("a")).is_err(), "the newer build replaces it");
        new.copy_to(&kept_in.path().join("b")).unwrap();
        assert!(kept_in.path().join("b/initdb").exists());
        fs::set_permissions(kept_in.path().join(&new.name), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(new.copy_to(&kept_in.path().join("c")).is_err(), "anybody could have changed it");
        assert!(Kept::of(&Binaries { version: "../x".to_owned(), ..binaries }, kept_in.path()).is_none());
    }
}
