//! The pages of `rules/`: one per rule and an index, made from what the rules say about themselves, and a table of
//! all messages.

use crate::{messages, repository};
use pgvet_linter::meta::{Category, RuleMeta, Status};
use pgvet_linter::rules;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Writes all pages and removes those of rules that are gone.
pub(crate) fn run() -> Result<(), String> {
    write(&repository().join("rules")).map_err(|error| format!("cannot write the pages in rules/: {error}"))
}

fn write(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let pages = pages()?;
    for name in names_on_disk(folder)? {
        if !pages.contains_key(&name) {
            fs::remove_file(folder.join(name))?;
        }
    }
    for (name, text) in pages {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

fn names_on_disk(folder: &Path) -> std::io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

/// Every page by file name.
fn pages() -> std::io::Result<BTreeMap<String, String>> {
    let all = || rules::all().iter().map(|rule| &rule.meta);
    let mut pages: BTreeMap<String, String> = all().map(|meta| (format!("{}.md", meta.name), page(meta))).collect();
    pages.insert("README.md".to_owned(), index(all()));
    pages.insert("messages.md".to_owned(), messages::page()?);
    Ok(pages)
}

/// The comments of the examples that describe a situation: how they begin, how the index shows them, what they mean.
const SITUATIONS: &[(&str, &str, &str)] = &[
    ("-- history:", "-- history:", "a deployed migration begins here, in which pgvet reports nothing"),
    (
        "-- migration:",
        "-- migration:",
        "a migration begins here; `transaction` or `autocommit` after the colon says how it runs",
    ),
    ("-- transaction", "-- transaction", "the migration tool runs each migration in one transaction"),
    (
        "-- autocommit",
        "-- autocommit",
        "the migration tool runs each statement in a transaction of its own, as in all examples without these marks",
    ),
    ("-- pg-version:", "-- pg-version: 15-18", "the configured versions of PostgreSQL"),
    ("-- captured", "-- captured", "`pgvet capture` has recorded the migrations"),
    ("-- sent ", "-- sent 250 times", "a captured migration sent the next statement this many times"),
    (
        "-- set: deployed",
        "-- set: deployed 2.4",
        "the release that is deployed, as `[releases]` in `pgvet.toml` names it",
    ),
    ("-- set: whole-history", "-- set: whole-history", "the first migration begins with an empty database"),
    ("-- set: query", "-- set: query sqlx SELECT ...", "a query of the application, and the library that runs it"),
    (
        "-- set: index",
        "-- set: index public.a scans=5200 days=30",
        "how often production has used an index, from `pgvet.stats.json`",
    ),
    ("-- set: require-reasons", "-- set: require-reasons", "the configuration has `require-reasons = true`"),
    ("-- set: one-session", "-- set: one-session", "the migration tool runs all pending migrations in one session"),
    (
        "-- set: run-lock waits",
        "-- set: run-lock waits",
        "a second run of the migration tool waits in `pg_advisory_lock`",
    ),
];

/// The first comment of an example that describes a situation.
fn first_situation(docs: &str) -> Option<&'static str> {
    let shown = |line: &str| SITUATIONS.iter().find(|(start, ..)| line.starts_with(start));
    docs.lines().find_map(shown).map(|(_, shown, _)| *shown)
}

fn page(meta: &RuleMeta) -> String {
    // Doc comments keep the blank after their slashes.
    let docs: Vec<&str> = meta.docs.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let docs = docs.join("\n");
    let (summary, body) = docs.trim().split_once("\n\n").unwrap_or((docs.trim(), ""));
    let mut page = format!("# {}\n\n{}\n\n{}", meta.name, summary.trim(), table(meta));
    if !body.is_empty() {
        let _ = write!(page, "\n{}\n", body.trim());
    }
    if let Some(comment) = first_situation(&docs) {
        let _ = write!(
            page,
            "\nComments such as `{comment}` in the examples are directives for pgvet: they say, for example, how the \
             migration runs. [The index of the rules](README.md#comments-in-the-examples) explains them.\n"
        );
    }
    if !meta.sources.is_empty() {
        page.push_str("\n## Equivalent rules\n\n");
        for source in meta.sources {
            let _ = writeln!(page, "- {source}");
        }
    }
    let _ = write!(page, "\n<sub>Generated from the doc comment in `{}`.</sub>\n", source_file(meta));
    page
}

fn table(meta: &RuleMeta) -> String {
    format!(
        "| category | severity | preset | fix | status | since |\n|---|---|---|---|---|---|\n| {} | {} | {} | {} | {} | {} |\n",
        meta.category.as_str(),
        meta.severity.as_str(),
        preset(meta),
        if meta.fixable { "yes" } else { "no" },
        status(meta.status),
        meta.since,
    )
}

fn preset(meta: &RuleMeta) -> &'static str {
    match meta {
        RuleMeta { category: Category::Engine, .. } => "always on",
        RuleMeta { recommended: true, .. } => "recommended",
        _ => "strict",
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Preview => "preview",
        Status::Stable => "stable",
        Status::Deprecated => "deprecated",
    }
}

/// The path in the repository, whichever folder the compiler was run in.
fn source_file(meta: &RuleMeta) -> String {
    let file = meta.name.replace('-', "_");
    format!("crates/linter/src/rules/{}/{file}.rs", meta.category.as_str())
}

fn index<'a>(all: impl Iterator<Item = &'a RuleMeta>) -> String {
    let mut text = "# Rules\n\n\
        `recommended` rules run by default, `strict` ones with `--strict`. \
        `pgvet explain <rule>` shows a page in the terminal.\n"
        .to_owned();
    let mut category = None;
    for meta in all {
        if category != Some(meta.category) {
            category = Some(meta.category);
            let _ =
                write!(text, "\n## {}\n\n| rule | severity | preset | |\n|---|---|---|---|\n", meta.category.as_str());
        }
        let (name, severity) = (meta.name, meta.severity.as_str());
        let summary = meta.summary().replace('|', "\\|");
        let _ = writeln!(text, "| [{name}]({name}.md) | {severity} | {} | {summary} |", preset(meta));
    }
    text.push_str(
        "\n## Comments in the examples\n\n\
         Comments in the examples of the pages are directives for pgvet. They say, for example, how the migration runs, \
         and which statements belong to earlier migrations. They have no effect in your own migrations, with one \
         exception: `pgvet capture` writes `-- sent` comments, which pgvet reads.\n\n\
         | comment | meaning |\n|---|---|\n",
    );
    for (_, shown, meaning) in SITUATIONS {
        let _ = writeln!(text, "| `{shown}` | {meaning} |");
    }
    text.push_str(
        "\nComments that begin with `pgvet:` work in your own migrations: \
         [`-- pgvet: ignore[rule] reason`](unknown-suppression.md) suppresses findings, and \
         [`-- pgvet: phase contract after 2.4`](../docs/phases.md) states the phase of a migration.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE=1 cargo test` writes the pages instead of comparing them.
    #[test]
    fn the_pages_say_what_the_rules_say() {
        if std::env::var_os("UPDATE").is_some() {
            run().unwrap();
        }
        let folder = repository().join("rules");
        let mut on_disk = names_on_disk(&folder).unwrap_or_default();
        on_disk.sort();
        let pages = pages().unwrap();
        assert_eq!(on_disk, pages.keys().cloned().collect::<Vec<_>>(), "run `cargo xtask docs`");
        for (name, text) in pages {
            let found = fs::read_to_string(folder.join(&name)).unwrap();
            assert!(found == text, "rules/{name} is stale: run `cargo xtask docs`");
        }
    }

    #[test]
    fn the_index_explains_the_comments_of_the_examples() {
        let describes = |line: &&str| {
            let words = line.strip_prefix("-- ").unwrap_or_default();
            ["set:", "history:", "migration:", "transaction", "autocommit", "captured", "sent", "pg-version:", "mode:"]
                .iter()
                .any(|word| words.starts_with(word))
        };
        let lines = rules::all().iter().flat_map(|rule| rule.meta.docs.lines()).map(str::trim_start);
        let (explained, others): (Vec<&str>, Vec<&str>) =
            lines.filter(describes).partition(|line| first_situation(line).is_some());
        assert_eq!(others, Vec::<&str>::new());
        assert!(SITUATIONS.iter().all(|(start, ..)| explained.iter().any(|line| line.starts_with(start))));
    }

    #[test]
    fn a_page_has_a_title_a_table_and_the_body() {
        let meta = RuleMeta {
            docs: " One sentence\n in two lines.\n\n ## Why it matters\n\n Because.\n",
            sources: &["other/rule"],
            ..rules::all()[0].meta
        };
        let page = page(&meta);
        assert!(page.starts_with(&format!("# {}\n\nOne sentence\nin two lines.\n\n| category |", meta.name)), "{page}");
        assert!(page.contains("\n## Why it matters\n\nBecause.\n\n## Equivalent rules\n\n- other/rule\n"), "{page}");
    }
}
