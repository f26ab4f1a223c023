//! Runs projects with a tool against a server of its own, and reads the log.

use super::changes::{Change, is_refusal, says};
use super::log;
use super::observation::{End, Observation};
use super::project::{Address, Case, Installed, objects};
use pgvet_trace::server::Server;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The database that others are copies of.
const TEMPLATE: &str = "template1";

/// Maximum time that sessions of a tool are given to end after it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server whose log can be read.
pub(super) struct Observed {
    server: Server,
    port: u16,
    databases: usize,
}

/// The observation of a run.
pub(super) struct Run {
    pub(super) observation: Observation,
    printed: String,
    /// The log, and what the tool printed.
    pub(super) told: String,
}

impl Observed {
    pub(super) fn start(major: u8) -> Result<Self, String> {
        let text = |error: pgvet_trace::Error| error.to_string();
        let (server, port) = log::start(major)?;
        server.query(TEMPLATE, log::TRIGGER).map_err(text)?;
        Ok(Self { server, port, databases: 0 })
    }

    pub(super) fn major(&self) -> u8 {
        self.server.major()
    }

    /// Runs a case in a database of its own.
    pub(super) fn run(&mut self, of: Installed<'_>, programs: &Path, case: &Case) -> Result<Run, String> {
        let address = self.create_database()?;
        let project = Project { of, programs, address: &address, folder: temporary()? };
        let run = self.observe(&project, case)?;
        self.drop_database(&address)?;
        Ok(run)
    }

    /// Runs a project before and after a change, and returns what the second run did.
    pub(super) fn run_change(&mut self, of: Installed<'_>, programs: &Path, change: &Change) -> Result<Run, String> {
        let address = self.create_database()?;
        let project = Project { of, programs, address: &address, folder: temporary()? };
        let first = self.observe(&project, &change.before)?;
        if first.observation.end != End::Success {
            return Err(format!("{}: the first run failed: {}", change.name, first.told));
        }
        fs::remove_dir_all(project.root()).map_err(|error| error.to_string())?;
        let mut run = self.observe(&project, &change.after)?;
        if run.observation.end != End::Success {
            // What the server refused shows its error. What a tool prints about it has paths and times of this machine.
            let printed = is_refusal(&run.observation).then(|| says(of.tool, &change.name, &run.printed));
            run.observation.says = printed.flatten();
        }
        self.drop_database(&address)?;
        Ok(run)
    }

    fn create_database(&mut self) -> Result<Address, String> {
        self.databases += 1;
        let address = Address { port: self.port, database: format!("case_{}", self.databases) };
        self.query("postgres", &format!("CREATE DATABASE {}", address.database))?;
        Ok(address)
    }

    fn drop_database(&self, address: &Address) -> Result<(), String> {
        self.query("postgres", &format!("DROP DATABASE {} WITH (FORCE)", address.database)).map(drop)
    }

    /// Waits until the statements of a tool that was killed have ended: a statement goes on without its client.
    fn wait_for_sessions(&self, address: &Address) -> Result<(), String> {
        let sql = format!("SELECT 1 FROM pg_stat_activity WHERE datname = '{}'", address.database);
        let started = Instant::now();
        while started.elapsed() < PATIENCE && !self.query("postgres", &sql)?.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn query(&self, database: &str, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        self.server.query(database, sql).map_err(|error| error.to_string())
    }

    /// Writes the project, runs the tool, and reads what it did.
    fn observe(&self, project: &Project<'_>, case: &Case) -> Result<Run, String> {
        let Project { of, address, .. } = project;
        case.write(of, address, &project.root())?;
        let objects = objects(&case.files(of, address)?);
        let log = self.server.log();
        let before = fs::metadata(&log).map_or(0, |log| log.len()) as usize;
        let (end, printed) = project.execute()?;
        self.wait_for_sessions(address)?;
        let text_of_log = fs::read(&log).map_err(|error| error.to_string())?;
        let seen = log::read(&String::from_utf8_lossy(&text_of_log[before..]), &address.database, &objects);
        let names: Vec<String> = objects.keys().map(|name| format!("'{name}'")).collect();
        let left = self.query(
            &address.database,
            &format!(
                "SELECT CASE WHEN relkind = 'i' THEN 'index ' ELSE 'table ' END || nspname || '.' || relname
               || CASE WHEN NOT coalesce(indisvalid, true) THEN ' invalid' ELSE '' END
             FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_index ON indexrelid = pg_class.oid
             WHERE relname IN ({}) ORDER BY 1",
                names.join(", ")
            ),
        );
        let left = left?.into_iter().flatten().flatten().collect();
        let observation = Observation { steps: seen.steps, error: seen.error, end, says: None, left };
        let told = format!("{}\n--- it printed\n{printed}", seen.lines.join("\n"));
        Ok(Run { observation, printed, told })
    }
}

fn temporary() -> Result<TempDir, String> {
    tempfile::tempdir().map_err(|error| error.to_string())
}

/// A project that a tool runs.
struct Project<'a> {
    of: Installed<'a>,
    programs: &'a Path,
    address: &'a Address,
    folder: TempDir,
}

impl Project<'_> {
    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Runs the programs of the tool: how the last one ended, and what they printed.
    fn execute(&self) -> Result<(End, String), String> {
        let mut printed = String::new();
        let mut end = End::Success;
        for command in &self.of.tool.run.commands {
            let output = self.folder.path().join("output");
            end = self.execute_one(command, &output)?;
            printed += &fs::read_to_string(&output).unwrap_or_default();
            if end != End::Success {
                break;
            }
        }
        Ok((end, printed))
    }

    /// Runs one program of a tool; it and all that it has started end with its time.
    fn execute_one(&self, words: &[String], output: &Path) -> Result<End, String> {
        let run = &self.of.tool.run;
        let fill = |text: &String| self.address.fill(&text.replace("{install}", &self.programs.to_string_lossy()));
        let words: Vec<String> = words.iter().map(fill).collect();
        let (program, arguments) = words.split_first().ok_or("a command is empty")?;
        let file = File::create(output).map_err(|error| error.to_string())?;
        let errors = file.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null()).stdout(file).stderr(errors);
        command.envs(run.environment.iter().map(|(name, value)| (name, fill(value))));
        let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let started = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return Ok(if status.success() { End::Success } else { End::Failure });
            }
            if started.elapsed() > Duration::from_secs(run.seconds) {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(End::Never);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
