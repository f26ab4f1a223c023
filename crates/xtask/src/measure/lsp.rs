//! `cargo xtask measure lsp`: from a keystroke to its diagnostics, as a client sees it.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The release build to measure.
    #[arg(long, value_name = "PATH", default_value = "target/release/pgvet")]
    pgvet: PathBuf,
    /// Migrations before the one that is edited.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    history: usize,
    /// Lines of the one that is edited.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    lines: usize,
    /// Keystrokes in each way of telling them.
    #[arg(long, value_name = "N", default_value_t = 400)]
    keystrokes: usize,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let migrations = folder.path().join("migrations");
    fs::create_dir(&migrations).map_err(|error| error.to_string())?;
    for number in 0..arguments.history {
        let path = migrations.join(format!("{number:05}.sql"));
        fs::write(&path, past(number)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let path = migrations.join("99999.sql");
    let text = edited(arguments.lines, arguments.history);
    let mut report = format!("{} lines after {} migrations, milliseconds\n", text.lines().count(), arguments.history);
    for (name, is_whole) in [("incremental", false), ("full text", true)] {
        let mut client = Client::start(&arguments.pgvet)?;
        let begin = Instant::now();
        let findings = client.open(&path, &text)?;
        let opened = milliseconds(begin);
        let mut times = keystrokes(&mut client, &text, arguments.keystrokes, is_whole)?;
        client.end()?;
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1))).copied();
        let [median, p95, most] = [50, 95, 100].map(|share| at(share).unwrap_or(f64::NAN));
        let _ = writeln!(
            report,
            "{name:12} median {median:.1}  p95 {p95:.1}  max {most:.1}  ({} keystrokes, {findings} findings, opened in {opened:.0})",
            times.len()
        );
    }
    Ok(report)
}

/// A migration that is history: a table, changes of an older one, and now and then a function.
fn past(number: usize) -> String {
    let older = number / 2;
    let mut text = format!(
        "CREATE TABLE table_{number} (\n    id bigint PRIMARY KEY,\n    name varchar(40) NOT NULL,\n    created_at timestamptz DEFAULT now()\n);\n\
         CREATE INDEX table_{number}_name_idx ON table_{number} (name);\n\
         ALTER TABLE table_{older} ADD COLUMN extra_{number} integer;\n"
    );
    if number.is_multiple_of(10) {
        let _ = write!(
            text,
            "CREATE FUNCTION touch_{number}() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n    \
             INSERT INTO table_{older} (id, name) VALUES (new.id, 'x');\n    RETURN new;\nEND $$;\n\
             CREATE TRIGGER touch AFTER INSERT ON table_{number} FOR EACH ROW EXECUTE FUNCTION touch_{number}();\n"
        );
    }
    text
}

/// The migration that is edited: of every three statements two have a finding.
fn edited(lines: usize, history: usize) -> String {
    let mut text = String::from("SET lock_timeout = '2s';\n\n");
    let mut number = 0;
    while text.lines().count() < lines {
        for _ in 0..20 {
            let table = number * 7 % history.max(1);
            let _ = write!(
                text,
                "-- change {number}\nALTER TABLE table_{table}\n    ADD COLUMN note_{number} text,\n    ADD COLUMN flag_{number} boolean DEFAULT false;\n\n\
                 CREATE INDEX table_{table}_note_{number}_idx\n    ON table_{table} (note_{number});\n\n\
                 CREATE INDEX table_{table}_flag_{number}_idx\n    ON table_{table} (flag_{number});\n\n"
            );
            number += 1;
        }
    }
    text.lines().take(lines).fold(String::new(), |text, line| text + line + "\n")
}

/// Types and deletes words at places all over the text. The time of each keystroke.
fn keystrokes(client: &mut Client, text: &str, count: usize, is_whole: bool) -> Result<Vec<f64>, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut times = Vec::with_capacity(count);
    let mut version = 1;
    for word in 0_usize.. {
        // The places jump around, so that all parts of the file are edited.
        let line = word * 7919 % lines.len();
        let column = lines[line].len() / 2;
        for key in 0..12 {
            if times.len() >= count {
                return Ok(times);
            }
            version += 1;
            // Six letters are typed, and deleted again.
            let (at, typed) = if key < 6 { (column + key, "x") } else { (column + 11 - key, "") };
            let removed = usize::from(typed.is_empty());
            lines[line].replace_range(at..at + removed, typed);
            let change = if is_whole {
                json!({"text": lines.join("\n") + "\n"})
            } else {
                let place = |column: usize| json!({"line": line, "character": column});
                json!({"range": {"start": place(at), "end": place(at + removed)}, "text": typed})
            };
            let begin = Instant::now();
            client.change(version, &change)?;
            client.diagnostics(version)?;
            times.push(milliseconds(begin));
        }
    }
    Ok(times)
}

fn milliseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1000.0
}

/// A client that looks at no more of an answer than it must.
struct Client {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    uri: String,
}

impl Client {
    fn start(pgvet: &Path) -> Result<Self, String> {
        let wrong = |error: std::io::Error| format!("{}: {error}", pgvet.display());
        let mut command = Command::new(pgvet);
        let mut program = command.arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(wrong)?;
        let (Some(input), Some(output)) = (program.stdin.take(), program.stdout.take()) else {
            return Err("the server has no input and output".to_owned());
        };
        let mut client = Self { program, input, output: BufReader::new(output), uri: String::new() };
        let publish = json!({"relatedInformation": true, "codeDescriptionSupport": true});
        let capabilities = json!({"textDocument": {"publishDiagnostics": publish}});
        client.send(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": capabilities}}),
        )?;
        client.receive()?;
        client.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}))?;
        Ok(client)
    }

    /// Opens a document, and returns the number of its findings.
    fn open(&mut self, path: &Path, text: &str) -> Result<usize, String> {
        self.uri = format!("file://{}", path.display());
        let document = json!({"uri": self.uri, "languageId": "sql", "version": 1, "text": text});
        self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}))?;
        let message: Value = serde_json::from_slice(&self.diagnostics(1)?).map_err(|error| error.to_string())?;
        Ok(message["params"]["diagnostics"].as_array().map_or(0, Vec::len))
    }

    fn change(&mut self, version: i32, change: &Value) -> Result<(), String> {
        let document = json!({"uri": self.uri, "version": version});
        let params = json!({"textDocument": document, "contentChanges": [change]});
        self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}))
    }

    /// The message with the diagnostics of a version.
    fn diagnostics(&mut self, version: i32) -> Result<Vec<u8>, String> {
        let mark = format!("\"version\":{version}}}}}");
        loop {
            let message = self.receive()?;
            if message.ends_with(mark.as_bytes()) {
                return Ok(message);
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let text = message.to_string();
        let written = write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len());
        written.and_then(|()| self.input.flush()).map_err(|error| format!("the server does not listen: {error}"))
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        let wrong = |error: std::io::Error| format!("the server says nothing: {error}");
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).map_err(wrong)? == 0 {
                return Err("the server has ended".to_owned());
            }
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().unwrap_or_default(),
                Some(_) => {}
                None => break,
            }
        }
        let mut message = vec![0; length];
        self.output.read_exact(&mut message).map_err(wrong)?;
        Ok(message)
    }

    fn end(mut self) -> Result<(), String> {
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))?;
        self.send(&json!({"jsonrpc": "2.0", "method": "exit"}))?;
        let status = self.program.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }
}
