//! Runs scripts through the real psql and reads what the server logged.

use super::Recorded;
use pgvet_trace::server::{Binaries, Options, Server};
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The schema that each script finds.
const SCHEMA: &str = "CREATE TABLE t (a text); CREATE TABLE x (a text)";
const DATABASE: &str = "s";
const LOG: &str = "statements";
/// How long the log may lag behind the server.
const LOG_LIMIT: Duration = Duration::from_secs(10);

/// The real psql with a server.
#[derive(Debug)]
pub struct Psql {
    server: Server,
}

impl Psql {
    /// Starts a server that logs every statement.
    ///
    /// # Errors
    /// Where psql or the server is missing.
    pub fn start() -> Result<Self, String> {
        let version = Command::new("psql").arg("--version").stdin(Stdio::null()).output();
        version.map_err(|error| format!("cannot run `psql`: {error}"))?;
        let binaries = Binaries::find(Some(18)).map_err(|error| error.to_string())?;
        let settings = [
            ("log_statement", "all"),
            ("debug_print_parse", "on"),
            ("debug_pretty_print", "off"),
            ("log_destination", "jsonlog"),
            ("logging_collector", "on"),
            ("log_filename", LOG),
            ("log_rotation_age", "0"),
            ("log_rotation_size", "0"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let options = Options { settings, ..Options::default() };
        let server = Server::start_with(&binaries, &options).map_err(|error| error.to_string())?;
        Ok(Self { server })
    }

    /// Runs a script, and returns it with the statements that the server was asked to run.
    ///
    /// # Errors
    /// Where psql cannot run, or the server does not log.
    pub fn run(&self, name: &str, script: &str) -> Result<Recorded, String> {
        let query = |sql: &str| self.server.query("postgres", sql).map_err(|error| error.to_string());
        query(&format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"))?;
        query(&format!("CREATE DATABASE {DATABASE} STRATEGY file_copy"))?;
        query("ALTER ROLE postgres RESET ALL")?;
        self.server.query(DATABASE, SCHEMA).map_err(|error| error.to_string())?;
        let before = self.log()?.len();
        self.psql(script)?;
        // Once this statement is in the log, so is all before it.
        let end = format!("SELECT 'end of {name}'");
        query(&end)?;
        let started = Instant::now();
        let lines = loop {
            let lines = self.log()?.split_off(before);
            if lines.iter().any(|line| line["message"].as_str().is_some_and(|message| message.contains(&end))) {
                break lines;
            }
            if started.elapsed() > LOG_LIMIT {
                return Err("the server does not log".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let ours: Vec<&Value> = lines.iter().filter(|line| line["application_name"] == "psql").collect();
        let sent: Vec<(usize, &str)> = (0..).zip(&ours).filter_map(|(at, line)| Some((at, statement(line)?))).collect();
        let ends = sent.iter().skip(1).map(|(at, _)| *at).chain([ours.len()]);
        let ran = sent.iter().zip(ends).flat_map(|((at, sql), end)| statements(sql, &ours[*at..end])).collect();
        Ok(Recorded { name: name.to_owned(), script: script.to_owned(), ran })
    }

    fn psql(&self, script: &str) -> Result<(), String> {
        let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        file.write_all(script.as_bytes()).map_err(|error| error.to_string())?;
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-U", "postgres", "-d", DATABASE, "-h"]).arg(self.server.socket());
        psql.arg("-f").arg(file.path());
        psql.env("PGAPPNAME", "psql").env("PGCLIENTENCODING", "UTF8").env("PGCONNECT_TIMEOUT", "10");
        psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        psql.status().map_err(|error| format!("cannot run `psql`: {error}"))?;
        Ok(())
    }

    fn log(&self) -> Result<Vec<Value>, String> {
        let path = self.server.data().join("log").join(format!("{LOG}.json"));
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

/// The text that a line of the log says was run. What does not parse is not among them.
fn statement(line: &Value) -> Option<&str> {
    let message = line["message"].as_str()?;
    // What `\copy` and `\encoding` send is psql's own.
    if message.starts_with("statement: COPY  ") || message.starts_with("statement: set client_encoding to '") {
        return None;
    }
    message.strip_prefix("statement: ").or_else(|| Some(message.strip_prefix("execute ")?.split_once(": ")?.1))
}

/// psql can send several statements at once; PostgreSQL's grammar tells them apart. It takes a backslash for a character
/// as any other: where the server, which logs what it has analysed, saw fewer statements and no error, there was one.
fn statements(sql: &str, logged: &[&Value]) -> Vec<String> {
    let ranges = pgvet_parser::parse(sql, |statements| {
        let range = |statement: &&pgvet_parser::tree::RawStmt<'_>| {
            let start = usize::try_from(statement.stmt_location).unwrap_or_default();
            let length = usize::try_from(statement.stmt_len).unwrap_or_default();
            start..if length == 0 { sql.len() } else { start + length }
        };
        statements.iter().map(range).collect::<Vec<_>>()
    });
    let analysed = logged.iter().filter(|line| line["message"] == "parse tree:").count();
    let failed = logged.iter().any(|line| line["error_severity"] == "ERROR");
    match ranges {
        Ok(ranges) if ranges.len() <= analysed || failed => {
            ranges.into_iter().map(|range| sql[range].trim().to_owned()).collect()
        }
        _ => vec![sql.to_owned()],
    }
}
