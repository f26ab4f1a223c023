//! ARCHITECTURE.md against the tree: what it names exists, it names every crate and module, and its invariants hold.

mod cycles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates in the order of their dependencies; those of one row know nothing of each other.
const LAYERS: &[&[&str]] = &[
    &["parser"],
    &["syntax"],
    &["model"],
    &["linter", "schema"],
    &["workspace"],
    &["trace", "lsp", "mcp"],
    &["capture", "reduce"],
    &["cli"],
    // The tasks of the project may use everything.
    &["xtask"],
];

/// The crates that are the engine: no input or output, and a table of their modules in ARCHITECTURE.md.
const ENGINE: [&str; 3] = ["syntax", "model", "linter"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(name: &str) -> PathBuf {
    root().join("crates").join(name).join("src")
}

fn page() -> String {
    read(&root().join("ARCHITECTURE.md"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The texts between backquotes that look like paths of this repository.
fn paths(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|text| ["crates/", "fixtures", "rules"].iter().any(|top| text.starts_with(top))).collect()
}

/// The entries of a folder, in order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder can be listed")
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    entries.sort();
    entries
}

fn crates() -> Vec<String> {
    entries(&root().join("crates"))
        .iter()
        .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) = entries(folder).into_iter().partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.chain(folders.iter().flat_map(|folder| rust_files(folder))).collect()
}

/// The files of a crate that run in the program: no files of tests.
fn program_files(name: &str) -> Vec<PathBuf> {
    let source = sources(name);
    let is_test = |path: &PathBuf| {
        let inside = path.strip_prefix(&source).expect("it stands in the folder");
        inside.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs" | "testing.rs")))
    };
    rust_files(&source).into_iter().filter(|path| !is_test(path)).collect()
}

/// The code of a file without comments, and without the tests at its end.
fn code(path: &Path) -> String {
    let text = read(path);
    let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = program.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The crates of ours that a manifest names for the program itself.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if let Some(rest) = line.strip_prefix("pgvet-").filter(|_| inside) {
            found.insert(rest.split(['.', ' ']).next().unwrap_or_default().to_owned());
        }
    }
    found
}

#[test]
fn what_it_names_exists() {
    let page = page();
    let missing: Vec<&str> = paths(&page).into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
    assert!(paths(&page).len() > 20, "no paths were found in ARCHITECTURE.md");
}

#[test]
fn it_names_every_crate_and_module() {
    let page = page();
    let named = paths(&page);
    let mut expected: Vec<String> = crates().iter().map(|name| format!("crates/{name}")).collect();
    for name in ENGINE {
        for module in declared_modules(name) {
            let file = format!("crates/{name}/src/{module}.rs");
            let is_file = root().join(&file).exists();
            expected.push(if is_file { file } else { format!("crates/{name}/src/{module}") });
        }
    }
    let missing: Vec<&String> = expected.iter().filter(|path| !named.contains(&path.as_str())).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md omits {missing:?}");
    assert!(expected.len() > 40, "no modules were found: {expected:?}");
}

/// The modules that `lib.rs` declares.
fn declared_modules(name: &str) -> Vec<String> {
    let library = read(&sources(name).join("lib.rs"));
    let modules = library.lines().filter_map(|line| {
        let module = line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?;
        Some(module.to_owned())
    });
    modules.collect()
}

#[test]
fn only_from_pg_names_the_nodes_of_the_parser() {
    /// Files that ask PostgreSQL's parser itself: one holds our own reading against it, one changes its tree.
    const EXEMPT: [&str; 2] = ["crates/xtask/src/measure/scripts/record.rs", "crates/reduce/src/tree/mod.rs"];
    let from_pg = sources("syntax").join("ast/from_pg");
    let names_nodes = |path: &PathBuf| {
        let code = code(path);
        ["pgvet_parser", "pg_query::"].iter().any(|word| code.contains(word))
    };
    let names = crates().into_iter().filter(|name| name != "parser");
    let found: Vec<PathBuf> = names.flat_map(|name| program_files(&name)).filter(names_nodes).collect();
    let (inside, outside): (Vec<_>, Vec<_>) = found.into_iter().partition(|path| path.starts_with(&from_pg));
    assert!(inside.len() > 5, "the conversion was not found: {inside:?}");
    let outside: Vec<_> =
        outside.into_iter().filter(|path| !EXEMPT.iter().any(|exempt| path.ends_with(exempt))).collect();
    assert!(outside.is_empty(), "{outside:?}");
}

#[test]
fn the_engine_does_no_input_or_output() {
    const FORBIDDEN: &[&str] =
        &["std::fs", "std::io", "std::env", "std::process", "std::net", "std::thread", "println!", "eprintln!"];
    let files = ENGINE.iter().flat_map(|name| program_files(name));
    let wrong: Vec<String> = files
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
    let layer: BTreeMap<&str, usize> =
        LAYERS.iter().enumerate().flat_map(|(at, names)| names.iter().map(move |name| (*name, at))).collect();
    let mut count = 0;
    for name in crates() {
        let own = *layer.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no place among the layers"));
        for other in dependencies(&name) {
            count += 1;
            let below = layer.get(other.as_str()).is_some_and(|layer| *layer < own);
            assert!(below, "{name} depends on {other}");
            assert!(other != "parser" || ["syntax", "xtask"].contains(&name.as_str()), "{name} depends on the parser");
        }
    }
    assert!(count > 10, "no dependencies were found");
    assert_eq!(dependencies("trace"), ["model", "schema", "syntax", "workspace"].map(str::to_owned).into());
}

/// What rules of several categories ask does not depend on a rule; what only one category asks stands beside its rules.
#[test]
fn shared_helpers_of_the_rules_use_no_category() {
    let rules = sources("linter").join("rules");
    let helpers = ["advice", "conflict", "deployment", "size", "statement"];
    let categories: Vec<String> = entries(&rules)
        .iter()
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .filter(|name| !helpers.contains(&name.as_str()))
        .collect();
    assert!(categories.len() > 5, "{categories:?}");
    for path in helpers.iter().flat_map(|helper| rust_files(&rules.join(helper))) {
        let code = code(&path);
        for category in &categories {
            let path = path.display();
            assert!(
                !code.contains(&format!("rules::{category}::")),
                "{path} uses `rules::{category}`: move what it needs into the helper, or the helper to that category"
            );
        }
    }
}
