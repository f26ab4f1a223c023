//! A private server as a child process.

use super::cluster::{self, SUPERUSER, cannot_run};
use super::folder::{Folder, SERVER};
use super::network::Isolation;
use super::{Binaries, CopiedData};
use crate::Error;
use crate::address::Address;
use pgvet_workspace::Cache;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// A running server that listens on a unix socket only. It stops, and its folder goes away, with this value.
#[derive(Debug)]
pub struct Server {
    /// What was started: the server, or the program that isolates it and ends with it.
    process: Child,
    /// The server itself.
    postmaster: Pid,
    /// Data that are elsewhere. They precede the folder, which tells where they are.
    _copied: Option<TempDir>,
    folder: Folder,
    binaries: Binaries,
    user: String,
    port: u16,
    isolation: Isolation,
}

/// How a server is set up.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Wait for the disk, as production does: for measuring times. Without, a power failure may damage the data.
    pub durable: bool,
    /// Else 5432, which is the name of the socket; for servers that also listen elsewhere.
    pub port: Option<u16>,
    /// It connects to no other server: neither for subscriptions nor through `postgres_fdw` and `dblink`.
    pub alone: bool,
    /// Settings for the command line of the server: `("autovacuum", "off")`.
    pub settings: Vec<(String, String)>,
}

const PORT: u16 = 5432;

/// Defaults of libpq that it refuses before it connects. A connection string has to set both to get around them.
///
/// Source: PostgreSQL 13 to 18, `src/interfaces/libpq/fe-connect.c`, calls of `sslVerifyProtocolVersion`.
const REFUSED_BY_LIBPQ: [(&str, &str); 2] = [
    ("PGSSLMINPROTOCOLVERSION", "a server of pgvet connects nowhere"),
    ("PGSSLMAXPROTOCOLVERSION", "a server of pgvet connects nowhere"),
];

/// Files with passwords and services, which libpq would look for.
const NO_PASSWORDS: [(&str, &str); 3] =
    [("PGPASSFILE", "/dev/null"), ("PGSERVICEFILE", "/dev/null"), ("PGSYSCONFDIR", "/dev/null")];

/// Timeout for starting a server.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Timeout for stopping a server, after which it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A server that ends closes its connections first.
const LAST_MOMENTS: Duration = Duration::from_millis(300);

impl Server {
    /// Starts a server for tests: nothing waits for the disk.
    pub fn start(binaries: &Binaries) -> Result<Self, Error> {
        Self::start_with(binaries, &Options::default())
    }

    pub fn start_with(binaries: &Binaries, options: &Options) -> Result<Self, Error> {
        let folder = Folder::create()?;
        let kept_in = Cache::of_user().map(|cache| cache.folder_of("servers"));
        cluster::create(binaries, &folder, &data(&folder), kept_in.as_deref())?;
        Self::launch(binaries, folder, None, SUPERUSER, options)
    }

    /// Starts a server on copied data, whose superuser is `user`.
    pub(crate) fn start_on(
        binaries: &Binaries,
        copied: CopiedData,
        user: &str,
        options: &Options,
    ) -> Result<Self, Error> {
        copied.prepare()?;
        let CopiedData { data, folder, .. } = copied;
        let mut options = options.clone();
        for (setting, file) in
            [("config_file", "postgresql.conf"), ("hba_file", "pg_hba.conf"), ("ident_file", "pg_ident.conf")]
        {
            options.settings.push((setting.to_owned(), folder.path().join(file).display().to_string()));
        }
        Self::launch(binaries, folder, Some(data), user, &options)
    }

    fn launch(
        binaries: &Binaries,
        folder: Folder,
        copied: Option<TempDir>,
        user: &str,
        options: &Options,
    ) -> Result<Self, Error> {
        hide_environment();
        let isolation = if options.alone { Isolation::for_server(&folder, binaries.major) } else { Isolation::NONE };
        let (process, postmaster) = spawn(binaries, &folder, options, isolation)?;
        let port = options.port.unwrap_or(PORT);
        let mut server = Self {
            process,
            postmaster,
            _copied: copied,
            folder,
            binaries: binaries.clone(),
            user: user.to_owned(),
            port,
            isolation,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Whether nothing that it runs reaches another machine.
    pub(crate) fn has_own_network(&self) -> bool {
        self.isolation.has_own_network()
    }

    /// Whether nothing that it runs can look into processes of ours: it is another user's, or in a namespace of users of its
    /// own.
    ///
    /// Source: Linux 6.12, `security/commoncap.c`, `cap_ptrace_access_check`.
    pub(crate) fn is_apart(&self) -> bool {
        self.folder.runs_as_other_user() || self.isolation.has_own_network()
    }

    /// Whether all that it runs ends with it.
    pub(crate) fn has_own_processes(&self) -> bool {
        self.isolation.has_own_processes()
    }

    pub fn major(&self) -> u8 {
        self.binaries.major
    }

    /// As the server says it: `15.18`.
    pub fn version(&self) -> &str {
        &self.binaries.version
    }

    /// The folder of the socket: the `host` of a connection. The port is 5432.
    pub fn socket(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> std::path::PathBuf {
        data(&self.folder)
    }

    /// What the server writes to its standard output and standard error.
    pub fn log(&self) -> std::path::PathBuf {
        log(&self.folder)
    }

    /// How to connect to a database as the superuser.
    pub fn config(&self, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(self.socket()).port(self.port).user(&self.user).dbname(database);
        config
    }

    /// The same, as providers hand it out.
    pub(crate) fn address(&self, database: &str) -> Result<Address, Error> {
        Address::try_from(self.config(database))
    }

    /// Runs SQL in a database and returns the rows of all its statements, each value as text. Not for async code.
    pub fn query(&self, database: &str, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        let messages = crate::runtime::runtime()?.block_on(async {
            let (client, connection) = self.config(database).connect(NoTls).await?;
            let connection = tokio::spawn(connection);
            let messages = client.simple_query(sql).await;
            drop(client);
            // What the connection has to say, the query has said.
            let _ = connection.await;
            messages
        });
        let messages = messages.map_err(|error| Error::from_postgres(&error))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()),
            _ => None,
        });
        Ok(rows.collect())
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        while !is_ready(&self.folder) {
            let ended = self.process.try_wait().ok().flatten();
            if ended.is_some() || started.elapsed() > START_LIMIT {
                let what = if ended.is_some() { "ended while it started" } else { "does not become ready" };
                return Err(Error::new(format!("the server {what}: {}", last_lines(&self.folder))));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// If it has ended by itself, or is about to: the last lines of its log.
    pub fn end(&mut self) -> Option<String> {
        let asked = Instant::now();
        loop {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(format!("the server ended ({status}); its log says: {}", last_lines(&self.folder)));
            }
            if asked.elapsed() > LAST_MOMENTS {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGQUIT ends every backend at once; the data are thrown away in any case.
        let _ = kill_process(self.postmaster, Signal::QUIT);
        let asked = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) {
            if asked.elapsed() > STOP_LIMIT {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Hides the environment and the memory of this process from others of the same user, as those that SQL starts.
///
/// Source: Linux manual, `PR_SET_DUMPABLE(2const)`.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses leaves us as we are; what is announced does not depend on it.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

fn data(folder: &Folder) -> std::path::PathBuf {
    folder.path().join("data")
}

/// The log, where the user of the server cannot replace it: SQL may run programs as that user.
fn log(folder: &Folder) -> std::path::PathBuf {
    folder.outer().join("log")
}

fn spawn(binaries: &Binaries, folder: &Folder, options: &Options, isolation: Isolation) -> Result<(Child, Pid), Error> {
    let log = File::options().write(true).create_new(true).mode(0o600).open(log(folder));
    let log = log.map_err(|error| Error::new(format!("cannot write a log: {error}")))?;
    let errors = log.try_clone().map_err(|error| Error::new(format!("cannot write a log: {error}")))?;
    let program = binaries.program("postgres");
    let mut postgres = isolation.command(folder, &program);
    postgres.arg("-D").arg(data(folder)).arg("-k").arg(folder.path()).args(["-c", "listen_addresses="]);
    postgres.arg("-p").arg(options.port.unwrap_or(PORT).to_string());
    if !options.durable {
        postgres.args(["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"]);
    }
    for (name, value) in &options.settings {
        postgres.arg("-c").arg(format!("{name}={value}"));
    }
    if options.alone {
        postgres.envs(REFUSED_BY_LIBPQ).envs(NO_PASSWORDS);
    }
    let (mine, locked) = lock(folder).map_err(|error| Error::new(format!("cannot lock a file: {error}")))?;
    postgres.stdin(locked).stdout(log).stderr(errors);
    let mut process = postgres.spawn().map_err(|error| cannot_run(&postgres, folder, &error))?;
    let postmaster = isolation.process_of(&mut process);
    write_pid(mine, postmaster).map_err(|error| Error::new(format!("cannot write a number: {error}")))?;
    Ok((process, postmaster))
}

/// A file to write to, and the same one to read, locked, for a server and all that it starts.
fn lock(folder: &Folder) -> std::io::Result<(File, File)> {
    let path = folder.outer().join(SERVER);
    let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    let locked = File::open(&path)?;
    flock(&locked, FlockOperation::NonBlockingLockExclusive)?;
    Ok((file, locked))
}

fn write_pid(mut file: File, pid: Pid) -> std::io::Result<()> {
    file.write_all(pid.as_raw_nonzero().to_string().as_bytes())
}

/// The last line of `postmaster.pid` says `ready` once connections are accepted.
///
/// Source: PostgreSQL 18, `src/include/utils/pidfile.h`.
fn is_ready(folder: &Folder) -> bool {
    let status = fs::read_to_string(data(folder).join("postmaster.pid")).unwrap_or_default();
    status.lines().nth(7).is_some_and(|status| status.trim_end() == "ready")
}

/// Maximum number of bytes of the log that are read, from its end.
const MOST_OF_LOG: u64 = 64 << 10;

fn last_lines(folder: &Folder) -> String {
    let text = end_of(&log(folder)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("; ")
}

fn end_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(MOST_OF_LOG);
    file.seek(SeekFrom::Start(start))?;
    let mut text = Vec::new();
    file.take(MOST_OF_LOG).read_to_end(&mut text)?;
    Ok(text)
}
