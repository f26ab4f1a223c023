//! `rules/messages.md`: what every rule says in the project's fixtures, in one table, so that wording can be reviewed
//! side by side.

use crate::repository;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// Messages of one rule: the wording without names and numbers, and the first message and help that have it.
type Wordings = BTreeMap<String, Example>;

struct Example {
    message: String,
    help: String,
}

/// Returns the text of the page.
pub(crate) fn page() -> io::Result<String> {
    let mut text = "# Messages\n\n\
        What the rules say in the fixtures of the project. Messages that differ only in names and numbers appear once, \
        with the first line of their help.\n"
        .to_owned();
    for (rule, wordings) in rules(&repository().join("fixtures/rules"))? {
        let _ = write!(text, "\n## [{rule}]({rule}.md)\n\n| message | help |\n|---|---|\n");
        for example in wordings.values() {
            let _ = writeln!(text, "| {} | {} |", cell(&example.message), cell(&example.help));
        }
    }
    Ok(text)
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn rules(folder: &Path) -> io::Result<BTreeMap<String, Wordings>> {
    let mut rules: BTreeMap<String, Wordings> = BTreeMap::new();
    for fixtures in sorted(folder)? {
        for file in sorted(&fixtures)? {
            if file.extension().is_some_and(|extension| extension == "snap") {
                for (rule, example) in findings(&fs::read_to_string(file)?) {
                    rules.entry(rule).or_default().entry(wording(&example.message)).or_insert(example);
                }
            }
        }
    }
    Ok(rules)
}

fn sorted(folder: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The findings of a snapshot, whose lines read ``3:38 `SET NOT NULL`: error[rule] message``, then `  help: ...`.
fn findings(snapshot: &str) -> Vec<(String, Example)> {
    let mut found: Vec<(String, Example)> = Vec::new();
    let mut open = false;
    for line in snapshot.lines() {
        if let Some((rule, message)) = finding(line) {
            found.push((rule.to_owned(), Example { message: message.to_owned(), help: String::new() }));
            open = true;
        } else if let Some(help) = line.strip_prefix("  help: ").filter(|_| open) {
            if let Some((_, example)) = found.last_mut() {
                help.clone_into(&mut example.help);
            }
            open = false;
        }
    }
    found
}

fn finding(line: &str) -> Option<(&str, &str)> {
    if !line.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let (_, rest) = line.split_once("`: ")?;
    let (severity, rest) = rest.split_once('[')?;
    let (rule, message) = rest.split_once("] ")?;
    severity.chars().all(|c| c.is_ascii_lowercase() || c == ' ').then_some((rule, message))
}

/// A message with `...` for quoted names and `N` for numbers.
fn wording(message: &str) -> String {
    let mut text = String::new();
    for (index, part) in message.split('`').enumerate() {
        text.push_str(if index % 2 == 0 { part } else { "`...`" });
    }
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if plain.ends_with('N') => {}
            '0'..='9' => plain.push('N'),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_with_their_help() {
        let snapshot = "---\nsource: x\n---\n3:38 `SET NOT NULL`: error[a-rule] reads all of `t`, 12 rows\n  help: do it\n      \
                        SQL;\n4:1 `x`: warning likely[b-rule] gone\n\nOther rules:\n3: warning likely c\n";
        let found = findings(snapshot);
        let read: Vec<_> =
            found.iter().map(|(rule, example)| (rule.as_str(), &*example.message, &*example.help)).collect();
        assert_eq!(read, [("a-rule", "reads all of `t`, 12 rows", "do it"), ("b-rule", "gone", "")]);
        assert_eq!(wording(&found[0].1.message), "reads all of `...`, N rows");
    }
}
