//! `pgvet mcp` with the client of the protocol's official SDK.

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use tokio::process::Command;

const TABLE: &[u8] = b"CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(20) NOT NULL DEFAULT '');\n";
const INDEX: &[u8] = b"SET lock_timeout = '2s';\nCREATE INDEX orders_note ON orders (note);\n";
const CONFIG: &[u8] = b"pg-version = 16\n[rules]\ndrop-column = \"off\"\n";

/// A repository with a history and a configuration, in a folder beside one that is not to be read.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("repository/.git/config", &b"token"[..]),
        ("repository/pgvet.toml", CONFIG),
        ("repository/db/migrations/V1__orders.sql", TABLE),
        ("repository/db/migrations/V2__index.sql", INDEX),
        ("outside/secret.sql", b"SELECT 'a secret';\n"),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

type Client = RunningService<RoleClient, ()>;

fn with_client<F: Future<Output = ()>>(folder: &tempfile::TempDir, more: &[&str], test: impl FnOnce(Client) -> F) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgvet"));
    command.args(["mcp", "--root", "repository"]).args(more).current_dir(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap();
        test(client).await;
    });
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().cloned().unwrap();
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap()
}

/// The result of a call that must succeed.
async fn value(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(false), "{result:?}");
    result.structured_content.unwrap()
}

/// The error of a call that must fail.
async fn refusal(client: &Client, tool: &'static str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:?}");
    serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned()
}

/// The output of `pgvet check` in the repository.
fn checked(folder: &tempfile::TempDir, arguments: &[&str], stdin: &[u8]) -> (Option<i32>, Value) {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_pgvet"))
        .args([&["check", "--no-cache", "--format", "json"], arguments].concat())
        .current_dir(folder.path().join("repository"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), stdin).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn tools_say_what_they_take_and_that_they_only_read() {
    with_client(&repository(), &[], async |client| {
        let info = client.peer_info().unwrap();
        assert!(info.instructions.as_ref().is_some_and(|text| text.contains("check_migration")));
        let tools = client.list_all_tools().await.unwrap();
        let mut names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["check_migration", "explain_effects", "explain_rule", "rewrite_migration", "schema_at"]);
        for tool in &tools {
            let annotations = tool.annotations.as_ref().unwrap();
            assert_eq!(annotations.read_only_hint, Some(true), "{}", tool.name);
            assert!(tool.description.as_ref().is_some_and(|text| text.len() > 40), "{}", tool.name);
        }
        client.cancel().await.unwrap();
    });
}

#[test]
fn the_verdict_is_that_of_check() {
    let folder = repository();
    let drop = "SET lock_timeout = '2s';\nALTER TABLE orders DROP COLUMN note;\n";
    let narrow = "SET lock_timeout = '2s';\nALTER TABLE orders ALTER note TYPE varchar(10);\n";
    with_client(&folder, &[], async |client| {
        let name = "db/migrations/V3__new.sql";
        for (arguments, stdin, given) in [
            (vec!["db/migrations/V2__index.sql"], "", json!({ "path": "db/migrations/V2__index.sql" })),
            (vec!["--stdin-filename", name, "-"], drop, json!({ "path": name, "sql": drop })),
            (vec!["--stdin-filename", name, "-"], narrow, json!({ "path": name, "sql": narrow })),
        ] {
            let (status, expected) = checked(&folder, &arguments, stdin.as_bytes());
            let result = value(&client, "check_migration", given.clone()).await;
            assert_eq!(result["findings"], expected["diagnostics"], "{given}");
            assert_eq!(result["summary"], expected["summary"], "{given}");
            let verdict = if status == Some(0) { "passes" } else { "fails" };
            assert_eq!(result["verdict"], verdict, "{given}");
            assert_eq!(result.get("assumed"), None, "{given}");
        }
        // Only the history shows that the column is longer, and only the configuration that dropping it is fine.
        let result = value(&client, "check_migration", json!({ "path": name, "sql": narrow })).await;
        assert!(result["findings"].to_string().contains("type-change-rewrites-table"), "{result}");
        let result = value(&client, "check_migration", json!({ "path": name, "sql": drop })).await;
        assert_eq!(result["findings"], json!([]));
        let result = value(&client, "check_migration", json!({ "sql": narrow })).await;
        assert!(result["findings"].to_string().contains("type-change-rewrites-table"), "{result}");
        assert!(result["assumed"].as_str().is_some_and(|note| note.contains("path")), "{result}");
        client.cancel().await.unwrap();
    });
}

#[test]
fn effects_rewrites_rules_and_the_schema_are_returned() {
    with_client(&repository(), &[], async |client| {
        let path = json!({ "path": "db/migrations/V2__index.sql" });
        let effects = value(&client, "explain_effects", path.clone()).await;
        let statement = &effects["files"][0]["statements"][1]["effects"];
        assert_eq!(statement["locks"][0]["mode"], "Share", "{effects}");
        let rewrite = value(&client, "rewrite_migration", path).await;
        assert!(rewrite["files"][0]["text"].as_str().unwrap().contains("CREATE INDEX CONCURRENTLY"), "{rewrite}");
        for name in ["index-without-concurrently", "squawk/require-concurrent-index-creation"] {
            let rule = value(&client, "explain_rule", json!({ "name": name })).await;
            assert_eq!(rule["rules"][0]["name"], "index-without-concurrently", "{name}");
            assert!(rule["rules"][0]["page"].as_str().unwrap().contains("CONCURRENTLY"), "{name}");
        }
        let names = |schema: &Value, key: &str| {
            let relation = &schema["databases"][0]["relations"][0];
            let named = relation[key].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
            named.collect::<Vec<_>>()
        };
        let now = value(&client, "schema_at", json!({})).await;
        assert_eq!(names(&now, "columns"), ["id", "note"]);
        assert_eq!(names(&now, "indexes"), ["orders_note"]);
        let before = value(&client, "schema_at", json!({ "migration": "1", "tables": ["orders"] })).await;
        assert_eq!(names(&before, "constraints"), ["orders_pkey"]);
        assert!(names(&before, "indexes").is_empty(), "the index of a constraint stands with the constraint");
        assert_eq!(before["databases"][0]["as_of"], "db/migrations/V1__orders.sql");
        client.cancel().await.unwrap();
    });
}

#[cfg(unix)]
#[test]
fn nothing_outside_of_the_root_is_read_and_nothing_is_written() {
    let folder = repository();
    let at = |path: &str| folder.path().join(path);
    std::os::unix::fs::symlink("../../../outside/secret.sql", at("repository/db/migrations/V9__link.sql")).unwrap();
    let listing = || {
        let mut all = walk(folder.path());
        all.sort();
        all
    };
    let before = listing();
    let outside = at("outside/secret.sql").display().to_string();
    with_client(&folder, &[], async |client| {
        for path in ["../outside/secret.sql", &outside, "db/migrations/V9__link.sql", ".git/config", "/etc/passwd"] {
            for tool in ["check_migration", "explain_effects", "rewrite_migration"] {
                let said = refusal(&client, tool, json!({ "path": path })).await;
                assert!(said.contains("resolves to"), "{tool} {path}: {said}");
                assert!(!said.contains("a secret"), "{tool} {path}: {said}");
            }
        }
        let said = refusal(&client, "check_migration", json!({})).await;
        assert!(said.contains("give `path`"), "{said}");
        let said = refusal(&client, "schema_at", json!({ "migration": "no-such" })).await;
        assert!(said.contains("no migration matches"), "{said}");
        // Without effects it would look like a migration that does nothing.
        let said = refusal(&client, "explain_effects", json!({ "path": "db/migrations/no-such.sql" })).await;
        assert!(said.contains("does not exist"), "{said}");
        let said = refusal(&client, "explain_rule", json!({ "name": "--help" })).await;
        assert!(said.contains("there is no rule"), "{said}");
        client.cancel().await.unwrap();
    });
    assert_eq!(listing(), before);
}

#[cfg(unix)]
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() && !path.is_symlink() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn results_are_bounded_and_inert() {
    let hostile = "DROP TABLE \"a\u{1b}[31m\u{202e}b\";\n";
    let many = "ALTER TABLE orders ALTER note TYPE varchar(5);\n".repeat(80);
    let slow = "CREATE TABLE t (id int);\n".repeat(100);
    let folder = repository();
    with_client(&folder, &[], async |client| {
        let path = "db/migrations/V3__new.sql";
        let result = value(&client, "check_migration", json!({ "path": path, "sql": hostile })).await;
        assert!(
            !result.to_string().contains(['\u{1b}', '\u{202e}']) && result.to_string().contains("u{202e}"),
            "{result}"
        );
        let result = value(&client, "explain_effects", json!({ "path": path, "sql": many })).await;
        assert_eq!(result["files"][0]["statements"].as_array().map(Vec::len), Some(50));
        assert_eq!(result["more_statements"], 30);
        let said = refusal(&client, "check_migration", json!({ "path": path, "sql": "x".repeat((1 << 20) + 1) })).await;
        assert!(said.contains("1 MiB"), "{said}");
        client.cancel().await.unwrap();
    });
    // A program that reads the history for longer than it may.
    let history = "CREATE TABLE a (id int);\nALTER TABLE a ADD COLUMN b int;\nDROP TABLE a;\n".repeat(80_000);
    fs::write(folder.path().join("repository/db/migrations/V0__large.sql"), history).unwrap();
    with_client(&folder, &["--time-limit", "1s"], async |client| {
        let said =
            refusal(&client, "check_migration", json!({ "path": "db/migrations/V3__new.sql", "sql": slow })).await;
        assert!(said.contains("longer than 1 s;"), "{said}");
        client.cancel().await.unwrap();
    });
}
