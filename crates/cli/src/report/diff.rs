//! The difference between two schemas, for `pgvet diff`.

use super::plural;
use crate::inert;
use pgvet_schema::{Action, Change, Comparison, NotCompared, Property};
use pgvet_workspace::markup;
use serde::Serialize;
use std::io::{self, Write};

/// How many properties that are not compared are listed; the rest is counted.
const LISTED: usize = 20;

/// How many changes a section for a comment shows; the rest is counted.
const SHOWN: usize = 100;
/// How many characters of a definition or value such a section shows.
const SHOWN_CHARACTERS: usize = 200;

/// Two sides and their comparison.
#[derive(Debug, Serialize)]
pub(crate) struct DiffReport<'a> {
    schema_version: u32,
    before: &'a str,
    after: &'a str,
    added: usize,
    removed: usize,
    changed: usize,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl<'a> DiffReport<'a> {
    pub(crate) fn new(before: &'a str, after: &'a str, comparison: &'a Comparison) -> Self {
        let count = |action| comparison.changes.iter().filter(|change| change.action == action).count();
        let (added, removed, changed) = (count(Action::Added), count(Action::Removed), count(Action::Changed));
        Self { schema_version: 1, before, after, added, removed, changed, comparison }
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    fn counts(&self) -> String {
        let Self { added, removed, changed, .. } = self;
        format!("{} added, {removed} removed, {changed} changed", plural(*added, "object"))
    }

    pub(crate) fn write(&self, out: &mut dyn Write, with_all: bool) -> io::Result<()> {
        writeln!(out, "--- {}\n+++ {}", inert::line(self.before), inert::line(self.after))?;
        for change in &self.comparison.changes {
            lines(change).iter().try_for_each(|line| writeln!(out, "{}", inert::line(line)))?;
        }
        if self.comparison.changes.is_empty() {
            writeln!(out, "No differences found in the compared properties.")?;
        } else {
            writeln!(out, "\n{}", self.counts())?;
        }
        write_not_compared(&self.comparison.not_compared, out, with_all)
    }

    /// A section for a comment or a job page.
    pub(crate) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### Schema changes\n")?;
        if self.comparison.changes.is_empty() {
            writeln!(out, "The schema does not change.")?;
        }
        let changes = &self.comparison.changes;
        for change in changes.iter().take(SHOWN) {
            writeln!(out, "- {}", sentence(change))?;
        }
        if changes.len() > SHOWN {
            writeln!(out, "\n{} more changes: `pgvet diff` lists them.", changes.len() - SHOWN)?;
        }
        let not_compared = self.comparison.not_compared.len();
        if not_compared > 0 {
            writeln!(out, "\n{} not compared: `pgvet diff --verbose` lists them.", properties(not_compared))?;
        }
        Ok(())
    }
}

fn properties(count: usize) -> String {
    if count == 1 { "1 property".to_owned() } else { format!("{count} properties") }
}

/// What could not be compared, counted.
pub(crate) fn write_not_compared(all: &[NotCompared], out: &mut dyn Write, with_all: bool) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNot compared: {}", properties(all.len()))?;
    let listed = if with_all { all.len() } else { LISTED };
    for one in all.iter().take(listed) {
        writeln!(out, "  {}", inert::line(&one.text()))?;
    }
    if all.len() > listed {
        writeln!(out, "  and {} more (--verbose lists them)", all.len() - listed)?;
    }
    Ok(())
}

/// A line for the object, and one for each property.
pub(super) fn lines(change: &Change) -> Vec<String> {
    let mark = match change.action {
        Action::Added => '+',
        Action::Removed => '-',
        Action::Changed => '~',
    };
    let mut lines =
        vec![format!("{mark} {} {} {}", change.kind.noun(), change.name(), change.definition).trim_end().to_owned()];
    let line = |property: &Property| format!("    {}: {} -> {}", property.name, property.before(), property.after());
    lines.extend(change.properties.iter().map(line));
    lines
}

/// The beginning of a text as code, with the number of characters that are omitted.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        None => markup::code(text),
        Some((end, _)) => format!("{} and {} more characters", markup::code(&text[..end]), text[end..].chars().count()),
    }
}

fn sentence(change: &Change) -> String {
    let name = markup::code(&change.name());
    let kind = change.kind.noun();
    let definition =
        if change.definition.is_empty() { String::new() } else { format!(": {}", shortened(&change.definition)) };
    match change.action {
        Action::Added => format!("adds {kind} {name}{definition}"),
        Action::Removed => format!("drops {kind} {name}"),
        Action::Changed => {
            let value = |value: &Option<String>, words: &str| match value {
                Some(value) => shortened(value),
                None => words.to_owned(),
            };
            let one = |property: &Property| {
                let before = value(&property.before, property.before());
                format!("{} from {before} to {}", property.name, value(&property.after, property.after()))
            };
            let properties: Vec<String> = change.properties.iter().map(one).collect();
            format!("changes {kind} {name}: {}", properties.join("; "))
        }
    }
}
