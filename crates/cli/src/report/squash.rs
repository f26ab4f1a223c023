//! What differs between a migration history and a file that replaces it, for `pgvet squash --check`.

use super::diff::{lines, write_not_compared};
use super::plural;
use crate::inert::line;
use pgvet_trace::squash::{Squashed, TableDifference};
use serde::Serialize;
use std::io::{self, Write};

/// A comparison, with what was compared.
#[derive(Debug, Serialize)]
pub(crate) struct SquashReport<'a> {
    schema_version: u32,
    file: &'a str,
    /// Number of migrations of the history.
    migrations: usize,
    equal: bool,
    #[serde(flatten)]
    seen: &'a Squashed,
}

impl<'a> SquashReport<'a> {
    pub(crate) fn new(file: &'a str, migrations: usize, seen: &'a Squashed) -> Self {
        let equal = seen.refused.is_none() && seen.schema.changes.is_empty() && seen.tables.is_empty();
        Self { schema_version: 1, file, migrations, equal, seen }
    }

    pub(crate) fn is_equal(&self) -> bool {
        self.equal
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    pub(crate) fn write(&self, out: &mut dyn Write, with_all: bool) -> io::Result<()> {
        let Squashed { refused, schema, tables, .. } = self.seen;
        let history = plural(self.migrations, "migration");
        if let Some(refused) = refused {
            writeln!(out, "error: {}: {}", line(&refused.place()), line(&refused.message))?;
            refused.hint.iter().try_for_each(|hint| writeln!(out, "  hint: {}", line(hint)))?;
            writeln!(out, "{} does not run on an empty database, so nothing was compared", line(self.file))?;
            return self.write_notes(out);
        }
        writeln!(out, "--- {history}\n+++ {}", line(self.file))?;
        for change in &schema.changes {
            lines(change).iter().try_for_each(|text| writeln!(out, "{}", line(text)))?;
        }
        tables.iter().try_for_each(|table| write_table(table, out))?;
        let compared = plural(self.seen.tables_compared, "table");
        if self.equal {
            writeln!(
                out,
                "{} matches the result of {history}: no difference in schema, privileges or rows of {compared}",
                line(self.file)
            )?;
        } else {
            let objects = plural(schema.changes.len(), "object");
            writeln!(out, "\n{objects} and the rows of {} of {compared} differ", tables.len())?;
        }
        self.write_notes(out)?;
        write_not_compared(&schema.not_compared, out, with_all)
    }

    fn write_notes(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.seen.roles.is_empty() {
            let roles = self.seen.roles.join(", ");
            writeln!(out, "note: roles created first, because the file needs them: {}", line(&roles))?;
        }
        if !self.seen.volatile.is_empty() {
            let columns = self.seen.volatile.join(", ");
            writeln!(out, "note: values that differ in each run were not compared: {}", line(&columns))?;
        }
        self.seen.not_run.iter().try_for_each(|text| writeln!(out, "note: {}", line(text)))
    }
}

fn write_table(difference: &TableDifference, out: &mut dyn Write) -> io::Result<()> {
    let TableDifference { table, rows_of_history, rows_of_file, .. } = difference;
    let table = table.to_string();
    writeln!(out, "~ rows of {}: {rows_of_history} -> {rows_of_file}", line(&table))?;
    let sides = [('-', difference.only_history, &difference.missing), ('+', difference.only_file, &difference.added)];
    for (mark, count, listed) in sides {
        listed.iter().try_for_each(|row| writeln!(out, "    {mark} {}", line(row)))?;
        let more = count.unwrap_or(0).saturating_sub(listed.len() as u64);
        if more > 0 {
            writeln!(out, "    {mark} and {more} more")?;
        }
    }
    if difference.only_history.is_none() {
        writeln!(out, "    too many rows to compare them one by one")?;
    }
    Ok(())
}
