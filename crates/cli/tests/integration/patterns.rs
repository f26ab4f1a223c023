//! The four patterns that the README shows: code that harms in every call, and that no statement of DDL gives away.

use std::path::Path;
use std::process::Command;

#[test]
fn each_pattern_is_found_once() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_pgvet"))
        .args(["check", "fixtures/patterns", "--format", "concise"])
        .current_dir(repository)
        .output()
        .expect("the program starts");
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}
