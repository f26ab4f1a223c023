//! Where the programs of a PostgreSQL server are.

use crate::Error;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with `initdb` and `postgres`, and the version of that server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    pub folder: PathBuf,
    pub major: u8,
    /// As the server says it: `15.18`.
    pub version: String,
}

/// Patterns of folders into which packages put servers; `*` is the major version.
const INSTALLED: [&str; 8] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
];

/// Majors that are searched for, the newest first.
const MAJORS: std::ops::RangeInclusive<u8> = 10..=18;

impl Binaries {
    /// The programs of that major, or else of the first server found.
    ///
    /// Looks at `PGVET_PG_BIN_<major>`, at `<major>/bin` in the folder `PGVET_POSTGRESQL`, along `PATH`, at what
    /// `pg_config` says, and into the folders of packages.
    pub fn find(major: Option<u8>) -> Result<Self, Error> {
        let found = candidates(major).into_iter().filter_map(|folder| Self::in_folder(&folder).ok());
        found.into_iter().find(|found| major.is_none_or(|major| found.major == major)).ok_or_else(|| missing(major))
    }

    /// The programs in one folder.
    pub fn in_folder(folder: &Path) -> Result<Self, Error> {
        for program in ["initdb", "postgres"] {
            if !folder.join(program).is_file() {
                let message = format!("`{}` has no `{program}`", folder.display());
                return Err(Error::new(message).help("name the folder `bin` of a PostgreSQL server"));
            }
        }
        let postgres = folder.join("postgres");
        let output = Command::new(&postgres).arg("--version").output();
        let output = output.map_err(|error| Error::new(format!("cannot run `{}`: {error}", postgres.display())))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some((version, major)) = version(&text) else {
            return Err(Error::new(format!("`{} --version` says {:?}", postgres.display(), text.trim())));
        };
        // Links are followed, so that another user can be given the path.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Ok(Self { folder, major, version: version.to_owned() })
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Reads `postgres (PostgreSQL) 15.18 (Debian 15.18-1)`: the version and its major.
fn version(text: &str) -> Option<(&str, u8)> {
    let version = text.split_whitespace().nth(2)?;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    Some((version, version[..digits].parse().ok()?))
}

fn candidates(major: Option<u8>) -> Vec<PathBuf> {
    let majors: Vec<u8> = major.map_or_else(|| MAJORS.rev().collect(), |major| vec![major]);
    let mut folders: Vec<PathBuf> =
        majors.iter().filter_map(|major| env::var_os(format!("PGVET_PG_BIN_{major}"))).map(PathBuf::from).collect();
    if let Some(all) = env::var_os("PGVET_POSTGRESQL") {
        folders.extend(majors.iter().map(|major| Path::new(&all).join(major.to_string()).join("bin")));
    }
    if let Some(path) = env::var_os("PATH") {
        folders.extend(env::split_paths(&path));
    }
    folders.extend(pg_config());
    for pattern in INSTALLED {
        let of_major = |major: &u8| PathBuf::from(pattern.replace('*', &major.to_string()));
        folders.extend(majors.iter().map(of_major));
    }
    folders.retain(|folder| folder.join("initdb").is_file());
    folders
}

/// The folder that `pg_config` knows. It may be that of the client alone.
fn pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

fn missing(major: Option<u8>) -> Error {
    let (server, number) = match major {
        Some(major) => (format!("PostgreSQL {major}"), major.to_string()),
        None => ("PostgreSQL".to_owned(), "18".to_owned()),
    };
    Error::new(format!("no server programs of {server} were found (`initdb` and `postgres`)")).help(format!(
        "install them (Debian, Ubuntu: apt-get install postgresql-{number}; Fedora: dnf install postgresql-server; \
         macOS: brew install postgresql@{number}), or name their folder with --pg-bin"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        assert_eq!(version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(("15.18", 15)));
        assert_eq!(version("postgres (PostgreSQL) 19devel"), Some(("19devel", 19)));
        assert_eq!(version("bash 5"), None);
    }

    #[test]
    fn a_folder_without_a_server_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = Binaries::in_folder(folder.path()).unwrap_err();
        assert!(error.message.ends_with("has no `initdb`"), "{error}");
    }

    #[test]
    fn what_is_missing_says_how_to_install_it() {
        let error = Binaries::find(Some(99)).unwrap_err();
        assert!(error.to_string().contains("postgresql-99"), "{error}");
    }
}
