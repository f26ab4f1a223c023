//! Every rule against its own documentation and its fixtures.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its files fails")]

mod code;
mod examples;
mod findings;
mod fix_made;
mod fixes;
mod fixtures;
mod help;
mod scenario;
mod variants;

use pgvet_linter::meta::{Category, RuleMeta};
use pgvet_linter::rules;
use pgvet_syntax::statement::PARSE_STACK_BYTES;
use std::path::{Path, PathBuf};

/// A file that is not text, and a defect of the program: no SQL can show them.
const NOT_ABOUT_SQL: &[&str] = &["internal-error", "unsupported-encoding"];

/// The rules whose examples and fixtures are SQL; with the environment variable `RULE` only the one of that name. Those
/// about history need a repository: `crates/cli/tests/integration/history.rs`.
fn tested_rules() -> impl Iterator<Item = &'static RuleMeta> {
    let only = std::env::var("RULE").ok();
    let all = rules::all().iter().map(|rule| &rule.meta);
    all.filter(move |meta| {
        !NOT_ABOUT_SQL.contains(&meta.name)
            && meta.category != Category::History
            && only.as_ref().is_none_or(|only| meta.name == only.as_str())
    })
}

fn fixture_folder(rule: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rules").join(rule)
}

/// Runs on a thread with the stack that parsing needs.
fn with_large_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(test).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Fails with all problems at once.
#[track_caller]
fn expect_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn the_file_of_a_rule_is_its_category_and_name() {
    let problems: Vec<String> = rules::all()
        .iter()
        .map(|rule| &rule.meta)
        .filter(|meta| {
            let file = format!("rules/{}/{}.rs", meta.category.as_str(), meta.name.replace('-', "_"));
            !meta.file.ends_with(&file)
        })
        .map(|meta| format!("{}: declared in {}", meta.name, meta.file))
        .collect();
    expect_none(&problems);
}

#[test]
fn rules_are_in_the_order_of_categories_and_names() {
    let names: Vec<(Category, &str)> = rules::all().iter().map(|rule| (rule.meta.category, rule.meta.name)).collect();
    assert!(names.is_sorted_by(|left, right| left < right), "{names:?}");
}

#[test]
fn documentation_has_the_required_sections() {
    let mut problems = Vec::new();
    let about_history = rules::all().iter().map(|rule| &rule.meta).filter(|meta| meta.category == Category::History);
    for meta in tested_rules().chain(about_history) {
        let mut sections = vec!["## Why it matters", "## Example", "Use instead:", "## When it is not reported"];
        sections.extend(meta.fixable.then_some("## Fix safety"));
        let missing = sections.iter().filter(|section| !meta.docs.lines().any(|line| line.trim() == **section));
        problems.extend(missing.map(|section| format!("{}: the doc comment lacks `{section}`", meta.name)));
    }
    expect_none(&problems);
}

#[test]
fn examples_of_the_documentation_are_true() {
    with_large_stack(examples::check);
}

#[test]
fn fixtures_are_reported_where_they_are_marked() {
    with_large_stack(fixtures::check_marks);
}

#[test]
fn fixtures_read_as_in_their_snapshots() {
    with_large_stack(fixtures::check_snapshots);
}

#[test]
fn fixes_parse_and_silence_their_rule() {
    with_large_stack(fixes::check);
}

#[test]
fn statements_in_help_run_and_silence_their_rule() {
    with_large_stack(help::check);
}

#[test]
fn findings_in_code_are_those_of_the_file() {
    with_large_stack(code::check_findings);
}

#[test]
fn what_does_not_matter_changes_no_finding() {
    with_large_stack(variants::check_findings);
}
