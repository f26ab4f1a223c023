//! The workspace of the fuzz targets, which no build of the program reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use toml::{Table, Value};

fn read(path: &str) -> Table {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap().parse().unwrap()
}

fn names(dependencies: Option<&Value>) -> impl Iterator<Item = &String> {
    dependencies.and_then(Value::as_table).into_iter().flat_map(Table::keys)
}

/// `.ci/deny` and `.ci/fuzz` refuse a lock file that is out of date.
#[test]
fn the_lock_file_has_the_dependencies_of_each_crate() {
    let lock = read("fuzz/Cargo.lock");
    let mut compared = 0;
    for package in lock["package"].as_array().unwrap() {
        let own = package["name"].as_str().unwrap().strip_prefix("pgvet-").filter(|own| *own != "fuzz");
        let Some(own) = own else { continue };
        // Of two versions of a crate, each has its version after the name.
        let name = |entry: &Value| entry.as_str().unwrap().split(' ').next().unwrap().to_owned();
        let locked: BTreeSet<String> = package["dependencies"].as_array().unwrap().iter().map(name).collect();
        let manifest = read(&format!("crates/{own}/Cargo.toml"));
        let mut needed: BTreeSet<String> = names(manifest.get("dependencies")).cloned().collect();
        for target in manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values) {
            needed.extend(names(target.get("dependencies")).cloned());
        }
        assert_eq!(needed, locked, "pgvet-{own}: run `cargo metadata --manifest-path fuzz/Cargo.toml`");
        compared += 1;
    }
    assert!(compared >= 4, "{compared}");
}
