//! New data directories. The first of each build of PostgreSQL is kept and copied from then on, which takes a fraction of
//! the time of `initdb`.

use super::Binaries;
use super::folder::Folder;
use crate::Error;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The superuser of a private server.
pub(crate) const SUPERUSER: &str = "postgres";

/// Kept directories begin with this, followed by the major.
const PREFIX: &str = "cluster-";

/// Directories that are being written begin with this.
const UNFINISHED: &str = ".cluster-";

/// Age at which a directory that is being written belongs to a run that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Makes a data directory for the user of a server.
pub(super) fn create(binaries: &Binaries, folder: &Folder, data: &Path, kept_in: Option<&Path>) -> Result<(), Error> {
    let kept = kept_in.and_then(|kept_in| Kept::of(binaries, kept_in));
    if kept.is_some_and(|kept| kept.give(binaries, folder, data).is_ok()) {
        return Ok(());
    }
    initialize(folder.command(&binaries.program("initdb")), folder, data)
}

fn initialize(mut initdb: Command, folder: &Folder, data: &Path) -> Result<(), Error> {
    initdb.args(["--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", SUPERUSER, "-D"]);
    initdb.arg(data).stdin(Stdio::null());
    let output = initdb.output().map_err(|error| cannot_run(&initdb, folder, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(Error::new(format!("`initdb` failed: {}", String::from_utf8_lossy(&said).trim())))
}

/// What the group and everybody else may do with a file.
const RIGHTS_OF_OTHERS: u32 = 0o077;

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

    /// Gives a copy to the user of a server, after `initdb` if nothing is kept yet. The copy is made beside the folder of
    /// that user, who could lead us elsewhere in there.
    fn give(&self, binaries: &Binaries, folder: &Folder, data: &Path) -> Result<(), Error> {
        let cannot = |error: io::Error| Error::new(format!("cannot copy a data directory: {error}"));
        let copied = folder.outer().join("new-data");
        if !self.is_there() {
            self.make(binaries, folder)?;
        }
        self.copy_to(&copied).map_err(cannot)?;
        folder.own(&copied)?;
        fs::rename(copied, data).map_err(cannot)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Whether there is a directory that nobody else can have changed.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(self.path()).is_ok_and(|metadata| {
            let is_ours = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
            is_ours && metadata.mode() & RIGHTS_OF_OTHERS == 0
        })
    }

    fn copy_to(&self, data: &Path) -> io::Result<()> {
        if !self.is_there() {
            return Err(io::Error::other("it may come from somebody else"));
        }
        copy(&self.path(), data)
    }

    /// Runs `initdb` as ourselves, and keeps its directory in place of those of other builds of this major.
    fn make(&self, binaries: &Binaries, folder: &Folder) -> Result<(), Error> {
        let cannot = |error: io::Error| Error::new(format!("cannot keep a data directory: {error}"));
        fs::create_dir_all(&self.folder).map_err(cannot)?;
        let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder).map_err(cannot)?;
        let data = unfinished.path().join("data");
        initialize(folder.own_command(&binaries.program("initdb")), folder, &data)?;
        self.keep(&data).map_err(cannot)
    }

    fn keep(&self, data: &Path) -> io::Result<()> {
        let others = fs::read_dir(&self.folder)?.flatten().filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name != self.name && name.starts_with(&self.prefix) || name.starts_with(UNFINISHED) && is_abandoned(entry)
        });
        others.for_each(|entry| drop(fs::remove_dir_all(entry.path())));
        // Another run may have been faster.
        if fs::rename(data, self.path()).is_ok() || self.is_there() {
            return Ok(());
        }
        // What others could have changed is made again.
        fs::remove_dir_all(self.path())?;
        fs::rename(data, self.path())
    }
}

fn is_abandoned(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > ABANDONED))
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
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

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
    fn a_directory_is_made_once_where_nobody_else_can_change_it() {
        let (programs_folder, kept_in) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let binaries = programs(programs_folder.path());
        let mut owners = BTreeSet::new();
        for _ in 0..2 {
            let folder = Folder::create().unwrap();
            let data = folder.path().join("data");
            create(&binaries, &folder, &data, Some(kept_in.path())).unwrap();
            assert_eq!(fs::read_to_string(data.join("base/1")).unwrap(), "18\n");
            owners.extend([&data, &data.join("base/1")].map(|path| fs::metadata(path).unwrap().uid()));
            assert_eq!(owners, BTreeSet::from([fs::metadata(folder.path()).unwrap().uid()]));
        }
        let made = fs::read_to_string(programs_folder.path().join("count")).unwrap().lines().count();
        let kept = Kept::of(&binaries, kept_in.path()).unwrap();
        let can_be_kept = Folder::create().unwrap().own_command(Path::new("true")).status();
        if can_be_kept.is_ok_and(|status| status.success()) {
            assert!(made == 1 && kept.is_there());
        } else {
            assert!(made == 2 && fs::read_dir(kept_in.path()).unwrap().count() == 0);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_kept_is_made_all_the_same() {
        let programs_folder = tempfile::tempdir().unwrap();
        let binaries = programs(programs_folder.path());
        let file = tempfile::NamedTempFile::new().unwrap();
        let folder = Folder::create().unwrap();
        create(&binaries, &folder, &folder.path().join("data"), Some(file.path())).unwrap();
        assert!(folder.path().join("data/base/1").exists());
    }

    #[test]
    fn a_kept_directory_is_one_of_this_build_and_this_user() {
        let (programs_folder, kept_in) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let binaries = programs(programs_folder.path());
        let data = kept_in.path().join("original");
        copy(programs_folder.path(), &data).unwrap();
        let old = Kept::of(&Binaries { version: "18.0".to_owned(), ..binaries.clone() }, kept_in.path()).unwrap();
        let new = Kept::of(&binaries, kept_in.path()).unwrap();
        let abandoned = kept_in.path().join(format!("{UNFINISHED}1"));
        fs::create_dir(&abandoned).unwrap();
        old.keep(&data).unwrap();
        assert!(abandoned.exists(), "it may be in use");
        let old_time = SystemTime::now() - 2 * ABANDONED;
        fs::File::open(&abandoned).unwrap().set_modified(old_time).unwrap();
        copy(programs_folder.path(), &data).unwrap();
        new.keep(&data).unwrap();
        assert!(!abandoned.exists());
        assert!(old.copy_to(&kept_in.path().join("a")).is_err(), "the newer build replaces it");
        new.copy_to(&kept_in.path().join("b")).unwrap();
        assert!(kept_in.path().join("b/initdb").exists());
        fs::set_permissions(kept_in.path().join(&new.name), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(new.copy_to(&kept_in.path().join("c")).is_err(), "anybody could have changed it");
        copy(programs_folder.path(), &data).unwrap();
        new.keep(&data).unwrap();
        assert!(new.is_there());
        assert!(Kept::of(&Binaries { version: "../x".to_owned(), ..binaries }, kept_in.path()).is_none());
    }
}
