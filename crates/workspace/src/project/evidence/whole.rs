//! Whether the files of a run begin with the first migration of their database, and which other files of the project
//! create tables.

use super::creators;
use super::is_judged;
use super::replaced::{created, tables_of_tools};
use crate::layout::Folders;
use crate::order::{self, Number};
use crate::plan::Database;
use crate::project::{ProjectFile, Request, Role};
use crate::skipped::Skipped;
use pgvet_linter::repository::{SchemaScript, WholeHistory};
use pgvet_syntax::lexer::{TokenKind, identifier, tokenize};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of skipped files that are searched for tables.
const SKIPPED: usize = 300;

/// Maximum number of bytes in them.
const BYTES: usize = 4 << 20;

/// Digits of a version that is a time and not a count.
const DIGITS_OF_TIME: usize = 8;

/// Marks the files of whole histories.
pub(crate) fn mark(
    files: &mut [ProjectFile],
    databases: &[Database],
    request: &Request,
    skipped: &[Skipped],
    folders: &Folders,
) {
    mark_schemas(files, folders);
    if request.without_history || request.schema.is_some() {
        return;
    }
    let whole = whole(files, databases);
    if whole.is_empty() {
        return;
    }
    let Some(outside) = of_skipped(skipped, folders) else { return };
    let of_file = |file: &ProjectFile| created(&file.parsed.source.text).collect::<Vec<_>>();
    let of_files: Vec<Vec<SmolStr>> = files.iter().map(of_file).collect();
    let mut by_database: BTreeMap<u32, WholeHistory> = BTreeMap::new();
    for database in whole {
        let mut tables = outside.clone();
        let others = files.iter().zip(&of_files);
        for (file, own) in others.filter(|(file, _)| file.database != database || file.layout.unlisted) {
            for table in own {
                tables.entry(table.clone()).or_insert_with(|| SmolStr::new(&file.parsed.source.path));
            }
        }
        let first = files.iter().find(|file| file.database == database && file.role.is_migration());
        let creator = first.and_then(|first| creators::find(&order::sequence(&first.path), folders.nearby()));
        let of_tools = tables_of_tools().map(SmolStr::new_static).collect();
        by_database.insert(database, WholeHistory { elsewhere: Arc::new(tables), of_tools, creator });
    }
    for file in files.iter_mut().filter(|file| is_judged(file)) {
        file.evidence.history = by_database.get(&file.database).cloned();
    }
}

/// The databases whose first migration is known.
fn whole(files: &[ProjectFile], databases: &[Database]) -> BTreeSet<u32> {
    let is_folder = |database: u32| {
        let database = (database as usize).checked_sub(1).and_then(|at| databases.get(at));
        database.is_some_and(|database| !database.root.as_os_str().is_empty())
    };
    let mut first: BTreeMap<u32, bool> = BTreeMap::new();
    for file in files.iter().filter(|file| file.role.is_migration() && file.is_run()) {
        first.entry(file.database).or_insert_with(|| file.unknown_order.is_none() && is_first(&file.path));
    }
    let has_schema = |database: u32| files.iter().any(|file| file.database == database && !file.role.is_migration());
    first
        .into_iter()
        .filter(|(at, is_first)| *is_first && is_folder(*at) && !has_schema(*at))
        .map(|(at, _)| at)
        .collect()
}

/// Whether the number of a file is that of a first migration: 0, 1, or a time. Files of a list need no number.
fn is_first(path: &Path) -> bool {
    let is_count = |(length, digits): &Number| *length < DIGITS_OF_TIME && !matches!(digits.as_str(), "" | "1");
    order::version(path).is_none_or(|version| !version.first().is_some_and(is_count))
}

/// The tables that skipped files create, with the first of these files; `None` if not all of these were read.
fn of_skipped(skipped: &[Skipped], folders: &Folders) -> Option<BTreeMap<SmolStr, SmolStr>> {
    let mut tables = BTreeMap::new();
    let mut bytes = 0;
    if skipped.len() > SKIPPED {
        return None;
    }
    for skipped in skipped {
        let text = folders.nearby().text(&skipped.path)?;
        bytes += text.len();
        if bytes > BYTES {
            return None;
        }
        for table in created(&text) {
            tables.entry(table).or_insert_with(|| SmolStr::new(skipped.shown()));
        }
    }
    Some(tables)
}

/// Notes the file with tables that code of the project runs beside the migrations.
fn mark_schemas(files: &mut [ProjectFile], folders: &Folders) {
    let paths: BTreeSet<PathBuf> = files
        .iter()
        .filter(|file| file.role != Role::Baseline)
        .map(|file| crate::config::absolute(&file.path))
        .collect();
    let mut known: BTreeMap<PathBuf, Option<Arc<SchemaScript>>> = BTreeMap::new();
    for file in files.iter_mut().filter(|file| is_judged(file)) {
        let sequence = order::sequence(&file.path);
        let schema = known.entry(sequence).or_insert_with_key(|sequence| schema(sequence, &paths, folders));
        file.evidence.schema.clone_from(schema);
    }
}

/// The first file that scripts or code run beside the migrations of a folder, and that creates tables.
fn schema(sequence: &Path, migrations: &BTreeSet<PathBuf>, folders: &Folders) -> Option<Arc<SchemaScript>> {
    let scripts = folders.psql_scripts(sequence);
    scripts.others().filter(|(path, _)| !migrations.contains(*path)).find_map(|(path, place)| {
        let text = folders.nearby().text(path)?;
        created(&text).next()?;
        let tokens = tokenize(&text, TextRange::new(0, text.len() as u32));
        let names = tokens.iter().filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier));
        let names = names.map(|token| identifier(token.text(&text))).collect();
        let path = SmolStr::new(crate::roots::shown(path));
        Some(Arc::new(SchemaScript { path, place: place.clone(), names }))
    })
}
