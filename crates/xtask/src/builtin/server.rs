//! A private server in a temporary directory, for as long as the value lives.

use super::Row;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running server that listens on a unix socket only.
pub(crate) struct Server {
    bin: PathBuf,
    directory: tempfile::TempDir,
    major: u8,
}

const SEPARATOR: char = '\u{1f}';

impl Server {
    pub(crate) fn start(bin: &Path) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("pg")
            .tempdir_in("/tmp")
            .map_err(|error| format!("cannot make a temporary directory: {error}"))?;
        let mut server = Self { bin: bin.to_owned(), directory, major: 0 };
        let data = server.data();
        if is_root() {
            run(Command::new("chown").arg("nobody").arg(server.directory.path()))?;
        }
        run(server
            .program("initdb")
            .args(["--no-sync", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data))?;
        let options = format!("-c listen_addresses= -c fsync=off -k {}", server.directory.path().display());
        run(server
            .program("pg_ctl")
            .args(["-w", "-o", &options, "-l"])
            .arg(data.join("log"))
            .arg("-D")
            .arg(&data)
            .arg("start"))?;
        let version = server.query("postgres", "SELECT current_setting('server_version_num')::int / 10000")?;
        server.major = version
            .first()
            .and_then(|row| row.first()?.parse().ok())
            .ok_or_else(|| format!("{} does not tell its version", bin.display()))?;
        Ok(server)
    }

    pub(crate) fn major(&self) -> u8 {
        self.major
    }

    /// Runs SQL in a database and returns the rows of its last statement; NULL is the empty text.
    pub(crate) fn query(&self, database: &str, sql: &str) -> Result<Vec<Row>, String> {
        let output = run(Command::new("psql")
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database, "-F"])
            .arg(SEPARATOR.to_string())
            .arg("-h")
            .arg(self.directory.path())
            .args(["-c", sql]))?;
        Ok(output.lines().map(|line| line.split(SEPARATOR).map(str::to_owned).collect()).collect())
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// One of the server's programs; they refuse to run as root.
    fn program(&self, name: &str) -> Command {
        let path = self.bin.join(name);
        if !is_root() {
            return Command::new(path);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "nobody", "--clear-groups"]).arg(path);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Without a server there is nothing to stop, and the directory goes in any case.
        let _ = run(self.program("pg_ctl").args(["-m", "immediate", "-D"]).arg(self.data()).arg("stop"));
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs a program and returns what it printed. Through a file, for a server inherits the output of its starter and
/// would keep a pipe open.
fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut output = || -> std::io::Result<(bool, String)> {
        let mut file = tempfile::tempfile()?;
        command.current_dir("/").stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
        let status = command.status()?;
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        Ok((status.success(), text))
    };
    match output() {
        Ok((true, text)) => Ok(text),
        Ok((false, text)) => Err(format!("{program} failed: {text}")),
        Err(error) => Err(format!("cannot run {program}: {error}")),
    }
}
