//! `cargo xtask ecosystem`: what a change of pgvet does to the findings in public migrations.

use crate::repository;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::measure::history_truth::short_name;

/// More differences of a repository than these are counted only.
const SHOWN: usize = 100;

/// Prints, as markdown, which findings are gone and which are new, repository by repository and rule by rule.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The program before the change.
    #[arg(long, value_name = "PATH")]
    base: PathBuf,
    /// The program after it.
    #[arg(long, value_name = "PATH")]
    branch: PathBuf,
    /// A folder with checkouts of the repositories that fixtures/history/README.md pins, each under the last part of its
    /// name. Those that are not there are fetched.
    #[arg(long, value_name = "DIR")]
    checkouts: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), String> {
    let mut all = Vec::new();
    for (name, commit) in pinned()? {
        let folder = arguments.checkouts.join(short_name(&name));
        if !folder.exists() {
            check_out(&name, &commit, &folder)?;
        }
        let sides = [&arguments.base, &arguments.branch].map(|program| findings(program, &folder));
        let [base, branch] = sides;
        all.push((name, Differences::between(&base?, &branch?)));
    }
    print(&report(&all));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the report is what the task is for")]
fn print(report: &str) {
    println!("{report}");
}

/// The repositories and commits of the table in fixtures/history/README.md.
fn pinned() -> Result<Vec<(String, String)>, String> {
    let path = repository().join("fixtures/history/README.md");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (name, commit) = (cells.next()?, cells.next()?);
        let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_commit && name.contains('/')).then(|| (name.to_owned(), commit.to_owned()))
    };
    Ok(text.lines().filter_map(row).collect())
}

fn check_out(name: &str, commit: &str, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let url = format!("https://github.com/{name}");
    for arguments in [
        &["init", "-q"][..],
        &["remote", "add", "origin", &url],
        &["fetch", "-q", "--depth=1", "--filter=blob:limit=2m", "origin", commit],
        &["checkout", "-q", "FETCH_HEAD"],
    ] {
        let status = Command::new("git").args(arguments).current_dir(folder).status();
        let status = status.map_err(|error| format!("git: {error}"))?;
        if !status.success() {
            return Err(format!("`git {}` in {} ended with {status}", arguments.join(" "), folder.display()));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Checked {
    diagnostics: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    rule: String,
    path: String,
    range: Range,
    message: String,
}

#[derive(Deserialize)]
struct Range {
    start: Start,
}

#[derive(Deserialize)]
struct Start {
    line: u32,
}

/// The identity of a finding: path, line, rule and message.
type Key = (String, u32, String, String);

/// How often each finding is made.
fn findings(program: &Path, folder: &Path) -> Result<BTreeMap<Key, usize>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{} in {}: {why}", program.display(), folder.display());
    let program = std::path::absolute(program).map_err(|error| failed(&error))?;
    let mut check = Command::new(program);
    check.args(["check", "--no-config", "--no-cache", "--format", "json", "."]).current_dir(folder);
    let output = check.output().map_err(|error| failed(&error))?;
    let checked: Checked = serde_json::from_slice(&output.stdout)
        .map_err(|error| failed(&format!("{error}\n{}", String::from_utf8_lossy(&output.stderr))))?;
    let mut counts = BTreeMap::new();
    for found in checked.diagnostics {
        *counts.entry((found.path, found.range.start.line, found.rule, found.message)).or_default() += 1;
    }
    Ok(counts)
}

/// Differences between two runs over a repository, with their counts.
#[derive(Default)]
struct Differences {
    gone: Vec<(Key, usize)>,
    new: Vec<(Key, usize)>,
}

impl Differences {
    fn between(base: &BTreeMap<Key, usize>, branch: &BTreeMap<Key, usize>) -> Self {
        let more = |one: &BTreeMap<Key, usize>, other: &BTreeMap<Key, usize>| {
            let surplus = |(key, count): (&Key, &usize)| {
                let surplus = count.saturating_sub(other.get(key).copied().unwrap_or_default());
                (surplus > 0).then(|| (key.clone(), surplus))
            };
            one.iter().filter_map(surplus).collect()
        };
        Self { gone: more(base, branch), new: more(branch, base) }
    }

    /// For each rule how many findings are gone, and how many are new.
    fn by_rule(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut rules: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for ((_, _, rule, _), count) in &self.gone {
            rules.entry(rule).or_default().0 += count;
        }
        for ((_, _, rule, _), count) in &self.new {
            rules.entry(rule).or_default().1 += count;
        }
        rules
    }
}

fn report(all: &[(String, Differences)]) -> String {
    let mut text = "## Findings in public migrations\n\n".to_owned();
    let mut rules: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (rule, (gone, new)) in all.iter().flat_map(|(_, differences)| differences.by_rule()) {
        let sum = rules.entry(rule).or_default();
        *sum = (sum.0 + gone, sum.1 + new);
    }
    if rules.is_empty() {
        let _ = write!(text, "None differs in {} repositories.", all.len());
        return text;
    }
    text.push_str("| rule | gone | new |\n|---|---:|---:|\n");
    for (rule, (gone, new)) in rules {
        let _ = writeln!(text, "| {rule} | {gone} | {new} |");
    }
    for (name, differences) in all {
        let marked = differences.new.iter().map(|one| ('+', one)).chain(differences.gone.iter().map(|one| ('-', one)));
        let marked: Vec<_> = marked.collect();
        if marked.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {name}\n\n```diff");
        for (mark, ((path, line, rule, message), count)) in marked.iter().take(SHOWN) {
            let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
            let _ = writeln!(text, "{mark} {path}:{line} [{rule}] {message}{times}");
        }
        text.push_str("```\n");
        if marked.len() > SHOWN {
            let _ = writeln!(text, "\nand {} more", marked.len() - SHOWN);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: u32, rule: &str, count: usize) -> (Key, usize) {
        (("1.sql".to_owned(), line, rule.to_owned(), "it hurts".to_owned()), count)
    }

    #[test]
    fn all_pinned_repositories_are_read() {
        let pinned = pinned().unwrap();
        assert_eq!(pinned.len(), 10);
        assert!(pinned.iter().any(|(name, _)| name == "LemmyNet/lemmy"), "{pinned:?}");
    }

    #[test]
    fn a_report_has_what_is_gone_and_what_is_new() {
        let base = BTreeMap::from([found(1, "drop-table", 1), found(2, "drop-table", 2)]);
        let branch = BTreeMap::from([found(2, "drop-table", 1), found(3, "drop-column", 1)]);
        let same = Differences::between(&base, &base);
        let all = [("a/same".to_owned(), same), ("a/b".to_owned(), Differences::between(&base, &branch))];
        assert_eq!(report(&all[..1]), "## Findings in public migrations\n\nNone differs in 1 repositories.");
        let expected = "## Findings in public migrations\n\n\
            | rule | gone | new |\n|---|---:|---:|\n| drop-column | 0 | 1 |\n| drop-table | 2 | 0 |\n\n\
            ### a/b\n\n```diff\n+ 1.sql:3 [drop-column] it hurts\n- 1.sql:1 [drop-table] it hurts\n- 1.sql:2 [drop-table] it hurts\n```\n";
        assert_eq!(report(&all), expected);
    }
}
