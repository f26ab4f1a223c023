//! The language server with real clients, which `.ci/install-lsp-clients` installs.

use pgvet_trace::server::testing::not_tested;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

fn clients() -> PathBuf {
    root().join("crates/lsp/tests/clients")
}

fn run(mut command: Command) {
    let output = command.env("PGVET", env!("CARGO_BIN_EXE_pgvet")).output().expect("the client is installed");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn pytest_lsp_gets_an_answer_to_every_request() {
    let python = root().join("target/lsp-clients/bin/python");
    assert!(python.exists(), "run .ci/install-lsp-clients");
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(clients().join("test_requests.py"));
    run(command);
}

#[test]
fn neovim_shows_findings_and_applies_a_fix() {
    if Command::new("nvim").arg("--version").output().is_err() {
        return not_tested("with Neovim: it is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let migrations = folder.path().join("migrations");
    std::fs::create_dir(&migrations).unwrap();
    std::fs::write(migrations.join("1.sql"), "CREATE TABLE orders (id int PRIMARY KEY, note text);\n").unwrap();
    let edited = migrations.join("2.sql");
    std::fs::write(&edited, "SET lock_timeout = '2s';\nCREATE INDEX i ON orders (note);\n").unwrap();
    let mut command = Command::new("nvim");
    command
        .args(["--clean", "--headless", "-n", "-c"])
        .arg(format!("luafile {}", clients().join("neovim.lua").display()));
    command.current_dir(folder.path()).env("MIGRATION", edited);
    command.env("XDG_STATE_HOME", folder.path()).env("XDG_CACHE_HOME", folder.path());
    run(command);
}
