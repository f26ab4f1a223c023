//! ARCHITECTURE.md against the tree: what it names exists, it leaves out no crate and no module, and its invariants hold.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page is there")
}

/// What stands between backquotes and looks like a path of this repository.
fn paths(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|text| ["crates/", "fixtures", "rules"].iter().any(|top| text.starts_with(top))).collect()
}

/// The names in a folder, except those that cargo does not build.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder can be listed")
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    entries.sort();
    entries
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) = entries(folder).into_iter().partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.chain(folders.iter().flat_map(|folder| rust_files(folder))).collect()
}

/// Code that runs in the program: no tests, neither files of their own nor modules at the end of a file.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs" | "testing.rs")))
}

fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file can be read");
    let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = program.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_it_names_exists() {
    let page = page();
    let missing: Vec<&str> = paths(&page).into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
    assert!(paths(&page).len() > 20, "no paths were found in ARCHITECTURE.md");
}

#[test]
fn it_leaves_out_no_crate_and_no_module() {
    let page = page();
    let named = paths(&page);
    let mut expected: Vec<String> = Vec::new();
    for folder in entries(&root().join("crates")) {
        expected.push(format!("crates/{}", folder.file_name().unwrap().to_string_lossy()));
    }
    let library = std::fs::read_to_string(root().join("crates/linter/src/lib.rs")).unwrap();
    for line in library.lines() {
        let module = line.trim_start_matches("pub ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
        let Some(module) = module else { continue };
        let file = format!("crates/linter/src/{module}.rs");
        let is_file = root().join(&file).exists();
        expected.push(if is_file { file } else { format!("crates/linter/src/{module}") });
    }
    let missing: Vec<&String> = expected.iter().filter(|path| !named.contains(&path.as_str())).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md leaves out {missing:?}");
}

#[test]
fn only_from_pg_names_the_nodes_of_pg_query() {
    let source = root().join("crates/linter/src");
    let exempt = source.join("ast/from_pg");
    let elsewhere: Vec<PathBuf> = rust_files(&source)
        .into_iter()
        .filter(|path| !path.starts_with(&exempt) && !is_test(path))
        .filter(|path| code(path).contains("pg_query") || code(path).contains("protobuf::"))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[test]
fn the_linter_does_no_input_or_output() {
    const FORBIDDEN: &[&str] =
        &["std::fs", "std::io", "std::env", "std::process", "std::net", "std::thread", "println!", "eprintln!"];
    let wrong: Vec<String> = rust_files(&root().join("crates/linter/src"))
        .into_iter()
        .filter(|path| !is_test(path))
        .flat_map(|path| {
            let code = code(&path);
            let found = FORBIDDEN.iter().filter(|word| code.contains(**word)).copied().collect::<Vec<_>>();
            found.into_iter().map(move |word| format!("{}: {word}", path.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn dependencies_go_one_way() {
    let manifest = |name: &str| std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
    let order = ["parser", "linter", "workspace", "trace", "lsp", "cli"];
    for (at, name) in order.iter().enumerate() {
        for later in &order[at + 1..] {
            let dependency = format!("pgvet-{later}.workspace");
            assert!(!manifest(name).contains(&dependency), "{name} depends on {later}");
        }
    }
}
