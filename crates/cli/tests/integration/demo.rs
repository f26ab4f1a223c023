//! The migrations in `fixtures/demo`, which `make demo` checks: every bad change is found, and the good ones have no
//! findings.

use pgvet_trace::server::testing::binaries;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_demo_shows_what_is_bad_and_nothing_else() {
    let output = Command::new(env!("CARGO_BIN_EXE_pgvet"))
        .args(["check", "fixtures/demo", "--format", "concise"])
        .current_dir(repository())
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout), @r"
    fixtures/demo/0004_index_orders_by_user.sql:4:1: error[index-without-concurrently] building this index blocks all writes to `orders` until the transaction ends
    fixtures/demo/0006_add_coupons.sql:11:57: error[foreign-key-without-not-valid] checking this foreign key reads all of `orders`, and blocks all writes to `orders` until the transaction ends
    fixtures/demo/0008_require_display_name.sql:4:1: warning[unbounded-update-or-delete] this updates every row of `users` in one transaction and keeps all of them locked until it commits
    fixtures/demo/0008_require_display_name.sql:5:45: error[set-not-null-scans-table] SET NOT NULL on `display_name` reads all of `users` under ACCESS EXCLUSIVE, and blocks all reads and writes until the transaction ends
    fixtures/demo/0010_add_public_ids.sql:4:57: error[column-default-rewrites-table] the default calls gen_random_uuid(), which is volatile: this rewrites `products` under ACCESS EXCLUSIVE, and blocks all reads and writes until the transaction ends
    fixtures/demo/0011_widen_columns.sql:8:38: error[type-change-rewrites-table] this type change does not rewrite the rows, but builds `users_email_key` again, and blocks all reads and writes of `users` until the transaction ends
    fixtures/demo/0011_widen_columns.sql:11:45: error[type-change-rewrites-table] this type change rewrites `orders`, including all indexes, under ACCESS EXCLUSIVE, and blocks all reads and writes until the transaction ends
    fixtures/demo/0012_archive_products.sql:2:13: warning[missing-lock-timeout] without lock_timeout this can wait indefinitely for ACCESS EXCLUSIVE on `products`, and every later query queues behind it
    fixtures/demo/0012_archive_products.sql:6:1: error[concurrently-in-transaction] CREATE INDEX CONCURRENTLY cannot run inside a transaction block
    fixtures/demo/0014_add_event_partition.sql:4:42: warning[partition-of-locks-parent] creating this partition reads all of the DEFAULT partition `events_default`, and blocks all reads and writes of `events` until the transaction ends
    fixtures/demo/0015_index_orders_by_date.sql:7:9: error[index-without-concurrently] building this index blocks all writes to `orders` until the transaction ends
    8 errors, 3 warnings in 8 of 15 files; 6 findings hidden by severity (show with --level info); 4 findings hidden by confidence (show with --confidence possible)
    3 findings can be fixed with `pgvet check --unsafe-fixes`; review the result.
    `pgvet rewrite FILE` writes safer migrations for 5 findings in 5 files.
    ");
}

/// The configuration says how the files are run. Without it that is assumed, which changes how sure findings are, but
/// none that the demo shows.
#[test]
fn the_demo_shows_the_same_if_nobody_says_how_its_files_are_run() {
    let findings = |options: &[&str]| -> Vec<String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgvet"));
        command.args(["check", "fixtures/demo", "--format", "concise"]).args(options).current_dir(repository());
        let output = String::from_utf8_lossy(&command.output().expect("the program starts").stdout).into_owned();
        output.lines().filter(|line| line.starts_with("fixtures/demo/")).map(str::to_owned).collect()
    };
    assert_eq!(findings(&["--no-config"]), findings(&[]));
}

/// A line without what differs from run to run: numbers, units of time, the width of columns.
fn shape(line: &str) -> String {
    let word = |word: &str| match word.trim_matches(['(', ')', ',']) {
        "ms" | "s" => "time".to_owned(),
        number if number.parse::<f64>().is_ok() => "N".to_owned(),
        _ => word.to_owned(),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// The page may omit lines of a run, and adds none.
#[test]
fn the_trace_in_the_documentation_is_one_of_the_demo() {
    if binaries(18).is_none() {
        return;
    }
    let page = std::fs::read_to_string(repository().join("docs/trace.md")).expect("there is a page");
    let command = page.lines().find_map(|line| line.strip_prefix("$ pgvet trace ")).expect("it shows a trace");
    let shown = page.split("<!-- trace output: begin -->\n```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let output = Command::new(env!("CARGO_BIN_EXE_pgvet"))
        .arg("trace")
        .args(command.split_whitespace())
        .args(["--pg-version", "18"])
        .current_dir(repository())
        .output()
        .expect("the program starts");
    let run = String::from_utf8_lossy(&output.stdout);
    let mut lines = run.lines().map(shape);
    for line in shown.expect("it shows its output").lines() {
        assert!(lines.any(|found| found == shape(line)), "{line}\nis not in what a run prints, or not there:\n{run}");
    }
}
