//! Compares what a squashed migration makes with what the history makes that it replaces: schema, privileges, rows.

use crate::connection::Connection;
use crate::contents::{Contents, Table, TableContents, contents, volatile};
use crate::provider::{CloneProvider, Scratch, ScratchOptions};
use crate::replay::{RefusedStatement, Stop};
use crate::replayed::Database;
use crate::roles::Roles;
use crate::runtime::{block_on, unless_interrupted};
use crate::settings::Settings;
use crate::trace::finish;
use crate::{Error, Event};
use pgvet_model::migration::Migration;
use pgvet_schema::{Comparison, Name, compare};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What differs between a history and what replaces it.
#[derive(Debug, Default, Serialize)]
pub struct Squashed {
    /// Why the file that replaces the history does not run; nothing was compared then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedStatement>,
    #[serde(flatten)]
    pub schema: Comparison,
    pub tables: Vec<TableDifference>,
    /// Number of tables whose rows were compared.
    pub tables_compared: usize,
    /// Columns with other values each time that the history runs, such as those with `DEFAULT now()`.
    pub volatile: Vec<String>,
    /// Roles that the history creates and the file needs.
    pub roles: Vec<String>,
    /// Commands that were not run, and why.
    pub not_run: Vec<String>,
}

/// A table with other rows.
#[derive(Debug, Serialize)]
pub struct TableDifference {
    #[serde(flatten)]
    pub table: Name,
    pub rows_of_history: u64,
    pub rows_of_file: u64,
    /// Number of rows that only the history has; absent if there are too many rows to compare them one by one.
    pub only_history: Option<u64>,
    pub only_file: Option<u64>,
    /// The first of these rows, as JSON.
    pub missing: Vec<String>,
    pub added: Vec<String>,
}

/// Maximum number of rows of a table that are compared one by one.
const MOST_ROWS: u64 = 50_000;

/// Maximum number of rows that are listed of each table and side.
const LISTED: usize = 5;

/// Runs the history and the file that replaces it, each on a server of its own, because they may create the same roles.
///
/// # Errors
/// The history does not run, no server could be started, or a limit is exceeded.
pub fn run(
    history: &[Migration<'_>],
    file: &[Migration<'_>],
    options: &ScratchOptions,
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Squashed, Error> {
    let scratch = || Scratch::new(options.clone());
    let mut scratches = [scratch(), scratch(), scratch()];
    block_on(async {
        let work = unless_interrupted(Box::pin(check(history, file, &mut scratches, settings, tell)));
        let mut result = settings.limits.hold(work).await;
        for scratch in &mut scratches {
            result = finish(scratch, result).await;
        }
        result
    })
}

async fn check(
    history: &[Migration<'_>],
    file: &[Migration<'_>],
    [first, second, third]: &mut [Scratch; 3],
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Squashed, Error> {
    let mut seen = Squashed::default();
    let expected = Database::new(first, settings, &[]).await?;
    let without = Roles::of(&expected.clone.observer).await?;
    for text in &expected.server.announcements {
        tell(Event::Announcement { text });
    }
    seen.not_run = expected.run(history, settings, tell).await?;
    let made = Roles::of(&expected.clone.observer).await?.besides(&without);
    let mut observed = Database::new(second, settings, &[]).await?;
    let mut ran = observed.run(file, settings, tell).await;
    if matches!(ran, Err(Stop::Refused(_))) && !made.is_empty() {
        // A dump has no roles.
        second.discard(observed.clone).await?;
        observed = Database::new(second, settings, &made).await?;
        ran = observed.run(file, settings, tell).await;
        seen.roles.clone_from(&made);
    }
    match ran {
        Ok(not_run) => seen.not_run.extend(not_run),
        Err(Stop::Refused(refused)) => return Ok(Squashed { refused: Some(refused), ..seen }),
        Err(Stop::Broken(error)) => return Err(error),
    }
    seen.schema = compare(&expected.clone.schema().await?, &observed.clone.schema().await?);
    let (before, after) = (contents_of(&expected).await?, contents_of(&observed).await?);
    seen.tables_compared = before.keys().filter(|table| after.contains_key(table)).count();
    let differs = |(table, before): &(&Name, &TableContents)| after.get(table).is_some_and(|after| after != *before);
    if before.iter().any(|pair| differs(&pair)) {
        let again = Database::new(third, settings, &[]).await?;
        again.run(history, settings, tell).await?;
        let volatile = volatile(&before, &contents_of(&again).await?);
        seen.volatile = volatile.iter().map(|(table, column)| format!("{table}.{column}")).collect();
        seen.tables = differences(&expected, &observed, (&before, &after), &volatile).await?;
    }
    Ok(seen)
}

async fn contents_of(database: &Database) -> Result<Contents, Error> {
    contents(&Connection::open(&database.clone.database, "rows").await?).await
}

async fn differences(
    expected: &Database,
    observed: &Database,
    (before, after): (&Contents, &Contents),
    volatile: &BTreeSet<(Name, String)>,
) -> Result<Vec<TableDifference>, Error> {
    let there = Connection::open(&expected.clone.database, "rows").await?;
    let here = Connection::open(&observed.clone.database, "rows").await?;
    let mut found = Vec::new();
    for table in Table::all(&there).await? {
        let Some((was, is)) = before.get(&table.name).zip(after.get(&table.name)) else { continue };
        // A column that one side lacks is a difference of the schema.
        let is_compared = |column: &String| {
            let is_volatile = volatile.contains(&(table.name.clone(), column.clone()));
            !is_volatile && was.columns.contains_key(column) && is.columns.contains_key(column)
        };
        let all: BTreeSet<&String> = was.columns.keys().chain(is.columns.keys()).collect();
        let (compared, without): (Vec<&String>, Vec<&String>) = all.into_iter().partition(|column| is_compared(column));
        if was.rows == is.rows && compared.iter().all(|column| was.columns.get(*column) == is.columns.get(*column)) {
            continue;
        }
        let mut difference = TableDifference {
            table: table.name.clone(),
            rows_of_history: was.rows,
            rows_of_file: is.rows,
            only_history: None,
            only_file: None,
            missing: Vec::new(),
            added: Vec::new(),
        };
        if was.rows.max(is.rows) <= MOST_ROWS {
            let without: Vec<String> = without.into_iter().cloned().collect();
            let (was, is) = (table.rows(&there, &without).await?, table.rows(&here, &without).await?);
            (difference.only_history, difference.missing) = lacking(&was, &is);
            (difference.only_file, difference.added) = lacking(&is, &was);
        }
        found.push(difference);
    }
    Ok(found)
}

/// How many rows the other side lacks, and the first of them.
fn lacking(rows: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>) -> (Option<u64>, Vec<String>) {
    let more = |(row, count): (&String, &u64)| {
        let more = count.saturating_sub(other.get(row).copied().unwrap_or(0));
        (more > 0).then(|| (row.clone(), more))
    };
    let lacking: Vec<(String, u64)> = rows.iter().filter_map(more).collect();
    let count = lacking.iter().map(|(_, count)| count).sum();
    (Some(count), lacking.into_iter().map(|(row, _)| row).take(LISTED).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_and_the_first_are_listed() {
        let rows = |numbers: &[u64]| numbers.iter().map(|number| (format!("{number:02}"), 1)).collect();
        let (all, none): (BTreeMap<String, u64>, BTreeMap<String, u64>) = (rows(&[1, 2, 3, 4, 5, 6, 7]), rows(&[2]));
        let (count, listed) = lacking(&all, &none);
        assert_eq!((count, listed.join(" ").as_str()), (Some(6), "01 03 04 05 06"));
        let twice = BTreeMap::from([("01".to_owned(), 2)]);
        assert_eq!(lacking(&twice, &all), (Some(1), vec!["01".to_owned()]), "the same row once more");
    }
}
