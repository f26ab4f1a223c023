//! The program, run in a folder of its own.

pub(crate) mod capturing;
pub(crate) mod repository;
pub(crate) mod runs;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A folder with files of its own, in which the program is run.
pub(crate) struct Folder(tempfile::TempDir);

/// The output of a run, with its exit status before it.
pub(crate) type Transcript = String;

impl Folder {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Self(root)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn output(&self, args: &[&str], stdin: &[u8], env: &[(&str, &str)]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pgvet"))
            .args(args)
            .current_dir(self.path())
            .env_remove("NO_COLOR")
            .env("PGVET_CACHE_DIR", self.path().join(".pgvet-cache"))
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that ends before it reads its input closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        child.wait_with_output().unwrap()
    }

    /// The JSON that a run prints.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.output(&[args, &["--format", "json"]].concat(), b"", &[]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {}", transcript(&output)))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Transcript {
        transcript(&self.output(args, b"", &[]))
    }
}

pub(crate) fn transcript(output: &Output) -> Transcript {
    let mut text = format!("exit {}\n", output.status.code().unwrap());
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            write!(text, "--- {name}\n{}", String::from_utf8_lossy(bytes)).unwrap();
        }
    }
    text
}
