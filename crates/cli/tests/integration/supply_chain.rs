//! The packages and actions that documentation and templates have users install.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Text that users read and copy.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir()
            && !name.starts_with('.')
            && !["target", "node_modules", "fixtures", "crates"].contains(&&*name)
        {
            texts(&path, found);
        } else if ["md", "yml", "js", "mjs"].iter().any(|kind| path.extension().is_some_and(|own| own == *kind)) {
            found.push(path);
        }
    }
}

/// In a folder that is not trusted, the extension runs no program that the folder names.
#[test]
fn the_extension_limits_what_an_untrusted_folder_may_set() {
    let text = fs::read_to_string(root().join("editors/vscode/package.json")).unwrap();
    let package: serde_json::Value = serde_json::from_str(&text).unwrap();
    let untrusted = &package["capabilities"]["untrustedWorkspaces"];
    let restricted = untrusted["restrictedConfigurations"].as_array().unwrap();
    assert_eq!(untrusted["supported"], "limited");
    let settings = package["contributes"]["configuration"]["properties"].as_object().unwrap();
    for name in settings
        .keys()
        .filter(|name| ["path", "arguments", "command"].iter().any(|part| name.to_lowercase().contains(part)))
    {
        assert!(restricted.iter().any(|known| known == name), "{name}");
    }
    assert!(restricted.len() >= 2, "{restricted:?}");
    let commands = package["contributes"]["commands"].as_array().unwrap();
    let trace = commands.iter().find(|command| command["command"] == "pgvet.trace").unwrap();
    assert_eq!(trace["enablement"], "isWorkspaceTrusted");
}

/// Names of files belong to a checkout, and each shell has quotes of its own. `editors/vscode/test` has more about it.
#[test]
fn the_extension_starts_no_shell() {
    let source = ["extension.ts", "program.ts"].map(|file| root().join("editors/vscode/src").join(file));
    let text = source.map(|path| fs::read_to_string(path).unwrap()).concat();
    assert!(text.contains("new vscode.ProcessExecution(") && text.contains("traceRefusal("));
    for word in ["sendText", "ShellExecution", "createTerminal", "shell: true", "exec("] {
        assert!(!text.contains(word), "{word}");
    }
}

/// Until a release is recorded, the name on `PyPI` and npm may be that of anybody.
#[test]
fn names_that_are_not_published_are_not_installed() {
    let hashes = fs::read_to_string(root().join("action/hashes.txt")).unwrap();
    if hashes.lines().any(|line| !line.starts_with('#') && line.contains(" sha256:")) {
        return;
    }
    let mut found = Vec::new();
    texts(&root(), &mut found);
    assert!(found.len() > 10, "{found:?}");
    // The last steps of a release come after it.
    for path in found.into_iter().filter(|path| !path.ends_with("RELEASING.md")) {
        let text = fs::read_to_string(&path).unwrap();
        let commands = [
            "pip install pgvet",
            "pipx install pgvet",
            "pipx run pgvet",
            "uvx pgvet",
            "npx pgvet",
            "npm install pgvet",
            "npm install --save-dev pgvet",
            "cargo install pgvet",
            "[pgvet==",
        ];
        for command in commands {
            assert!(!text.contains(command), "{}: `{command}`", path.display());
        }
    }
}

/// Tracing runs code of the author of a pull request.
#[test]
fn documentation_gives_pull_requests_no_secrets() {
    let mut found = Vec::new();
    texts(&root(), &mut found);
    let mut workflows = 0;
    for path in found {
        let text = fs::read_to_string(&path).unwrap();
        // Prose may say what must not be done.
        for block in text.split("```yaml").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()) {
            workflows += 1;
            for unsafe_part in ["pull_request_target", "secrets."] {
                assert!(!block.contains(unsafe_part), "{}: `{unsafe_part}`", path.display());
            }
        }
    }
    assert!(workflows > 2, "{workflows}");
    let text = fs::read_to_string(root().join("docs/ci.md")).unwrap();
    let traced = text.split("### Pull requests from people you do not trust").nth(1).unwrap();
    assert!(traced.contains("--network none") && traced.contains("contents: read"), "{traced}");
}

#[test]
fn archives_have_the_notices_of_what_they_link() {
    let notices = fs::read_to_string(root().join("THIRD-PARTY.txt")).unwrap();
    for part in ["libpg_query, in the package", "PostgreSQL Global Development Group", "xxHash", "imbl "] {
        assert!(notices.contains(part), "{part}");
    }
    for (file, place) in [
        (".github/workflows/release.yml", "THIRD-PARTY.txt CHANGELOG.md \"$name\""),
        ("pyproject.toml", "license-files = [\"LICENSE-MIT\", \"LICENSE-APACHE\", \"THIRD-PARTY.txt\"]"),
        ("npm/build.mjs", "\"THIRD-PARTY.txt\""),
        ("Dockerfile", "THIRD-PARTY.txt /usr/share/doc/pgvet/"),
    ] {
        assert!(fs::read_to_string(root().join(file)).unwrap().contains(place), "{file}");
    }
}

#[test]
fn every_attack_that_was_fixed_has_its_tests() {
    let document = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let (_, table) = document.split_once("## What attacks have found").unwrap();
    let mut sources = Vec::new();
    for folder in ["crates", "action/tests"] {
        sources_below(&root().join(folder), &mut sources);
    }
    let is_test = |name: &str| {
        let [rust, python] = [format!("fn {name}("), format!("def {name}(")];
        sources.iter().any(|text| {
            let before = text.find(&rust).map(|at| text[..at].lines().rev().take(3));
            text.contains(&python) || before.is_some_and(|mut lines| lines.any(|line| line.trim() == "#[test]"))
        })
    };
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| tests |"));
    let mut count = 0;
    for row in rows {
        let tests: Vec<&str> = row.trim_end_matches(" |").rsplit(" | ").next().unwrap().split(", ").collect();
        for test in tests {
            let name = test.trim_matches('`');
            assert!(is_test(name), "`{name}` is no test: {row}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

fn sources_below(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            found.extend(std::fs::read_to_string(&path));
        }
    }
}
