//! Runs projects with a tool against a server of its own, and reads the log.

use super::declaration::Declaration;
use super::log;
use super::observation::{End, Observation};
use super::project::{Address, Case, objects};
use pgvet_trace::server::Server;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The database that others are copies of.
const TEMPLATE: &str = "template1";

/// A server whose log can be read.
pub(super) struct Observed {
    server: Server,
    port: u16,
    databases: usize,
}

/// The observation of a run.
pub(super) struct Run {
    pub(super) observation: Observation,
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
    pub(super) fn run(&mut self, tool: &Declaration, installed: &Path, case: &Case) -> Result<Run, String> {
        self.databases += 1;
        let address = Address { port: self.port, database: format!("case_{}", self.databases) };
        let text = |error: pgvet_trace::Error| error.to_string();
        self.server.query("postgres", &format!("CREATE DATABASE {}", address.database)).map_err(text)?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let root = folder.path().join("project");
        case.write(tool, &address, &root)?;
        let objects = objects(&case.files(tool, &address)?);
        let log = self.server.socket().join("log");
        let before = fs::metadata(&log).map_or(0, |log| log.len()) as usize;
        let mut said = String::new();
        let mut end = End::Success;
        for command in &tool.run.commands {
            let output = folder.path().join("output");
            end = execute(tool, installed, &address, command, &root, &output)?;
            said += &fs::read_to_string(&output).unwrap_or_default();
            if end != End::Success {
                break;
            }
        }
        let text_of_log = fs::read(&log).map_err(|error| error.to_string())?;
        let seen = log::read(&String::from_utf8_lossy(&text_of_log[before..]), &address.database, &objects);
        let names: Vec<String> = objects.keys().map(|name| format!("'{name}'")).collect();
        let left = self.server.query(
            &address.database,
            &format!(
                "SELECT CASE WHEN relkind = 'i' THEN 'index ' ELSE 'table ' END || nspname || '.' || relname
               || CASE WHEN NOT coalesce(indisvalid, true) THEN ' invalid' ELSE '' END
             FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_index ON indexrelid = pg_class.oid
             WHERE relname IN ({}) ORDER BY 1",
                names.join(", ")
            ),
        );
        let left = left.map_err(text)?.into_iter().flatten().flatten().collect();
        self.server.query("postgres", &format!("DROP DATABASE {} WITH (FORCE)", address.database)).map_err(text)?;
        let observation = Observation { steps: seen.steps, error: seen.error, end, left };
        Ok(Run { observation, told: format!("{}\n--- it printed\n{said}", seen.lines.join("\n")) })
    }
}

/// Runs one program of a tool; it and all that it has started end with its time.
fn execute(
    tool: &Declaration,
    installed: &Path,
    address: &Address,
    words: &[String],
    root: &Path,
    output: &Path,
) -> Result<End, String> {
    let fill = |text: &String| address.fill(&text.replace("{install}", &installed.to_string_lossy()));
    let words: Vec<String> = words.iter().map(fill).collect();
    let (program, arguments) = words.split_first().ok_or("a command is empty")?;
    let file = File::create(output).map_err(|error| error.to_string())?;
    let errors = file.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).stdin(Stdio::null()).stdout(file).stderr(errors);
    command.envs(tool.run.environment.iter().map(|(name, value)| (name, fill(value))));
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(if status.success() { End::Success } else { End::Failure });
        }
        if started.elapsed() > Duration::from_secs(tool.run.seconds) {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(End::Never);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
