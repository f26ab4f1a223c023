//! The GitHub Action, without GitHub.

use std::path::Path;
use std::process::Command;

#[test]
fn the_action_does_the_right_thing_for_every_event() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let servers = root.join("target/postgresql");
    let output = Command::new("python3")
        .args(["-m", "unittest", "-q", "test_action"])
        .current_dir(root.join("action/tests"))
        .env("PGVET", env!("CARGO_BIN_EXE_pgvet"))
        .env("PGVET_POSTGRESQL", servers)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
