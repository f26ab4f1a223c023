//! The hooks with real pre-commit, which `.ci/install-pre-commit` installs.

use std::path::Path;
use std::process::Command;

#[test]
fn hooks_stop_the_commits_that_they_should() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there");
    let python = root.join("target/pre-commit/bin/python");
    assert!(python.exists(), "run .ci/install-pre-commit");
    let output = Command::new(python)
        .arg(root.join("crates/cli/tests/pre_commit/test_hooks.py"))
        .env("PGVET", env!("CARGO_BIN_EXE_pgvet"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
