//! Counts of rows that make statements fail, stored by `pgvet precheck`, by which findings are judged.
//!
//! A count belongs to the text of a migration: after an edit it is ignored, and a note says so.

use crate::problem::Problem;
use crate::project::{Project, ProjectFile, Role};
use crate::read;
use crate::roots::Repositories;
use pgvet_linter::row_counts::RowCount;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The migration that a count is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrecheckedMigration {
    /// See [`ProjectFile::stable_path`].
    migration: String,
    migration_digest: String,
}

impl PrecheckedMigration {
    /// The migration in a file.
    pub fn of(file: &ProjectFile) -> Self {
        Self { migration: file.stable_path(), migration_digest: digest(file) }
    }
}

/// The parts of a report of `pgvet precheck` that are read.
#[derive(Deserialize)]
struct Document {
    schema_version: u32,
    taken_at: Option<String>,
    prechecks: Vec<Stored>,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(flatten)]
    migration: PrecheckedMigration,
    query: Option<String>,
    outcome: Option<StoredOutcome>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum StoredOutcome {
    Counted {
        rows: u64,
    },
    AtLeastOne,
    #[serde(other)]
    NotCounted,
}

const VERSION: u32 = 1;
const HELP: &str = "write it again: `pgvet precheck --database URL --format json`";

impl Document {
    /// Reads a report of `pgvet precheck`.
    ///
    /// # Errors
    /// Why it cannot be read, as the end of the sentence "`path` ...".
    fn read(path: &Path) -> Result<Self, String> {
        let text = read::text(path).map_err(|error| format!("cannot be read: {error}"))?;
        let document: Self = serde_json::from_str(&text)
            .map_err(|error| format!("is not a report of `pgvet precheck --format json`: {error}"))?;
        if document.schema_version != VERSION {
            return Err(format!("has version {}, but this pgvet reads version {VERSION}", document.schema_version));
        }
        if document.taken_at.is_none() {
            return Err("has no counts: it was written without --database".to_owned());
        }
        Ok(document)
    }
}

impl Project {
    /// The reports of `pgvet precheck` by which findings are judged: the one that is named, or else those that are
    /// configured.
    pub fn precheck_files(&self, named: Option<&Path>) -> BTreeSet<PathBuf> {
        match named {
            Some(path) => BTreeSet::from([path.to_owned()]),
            None => self.databases.iter().filter_map(|database| database.config.precheck.clone()).collect(),
        }
    }

    /// Reads what [`Self::precheck_files`] say.
    pub fn add_prechecked(&mut self, named: Option<&Path>) {
        for path in self.precheck_files(named) {
            match Document::read(&path) {
                Ok(document) => self.add_counts(&path, document),
                Err(wrong) => self.problems.push(Problem::new(&path, wrong, Some(HELP))),
            }
        }
    }

    fn add_counts(&mut self, path: &Path, document: Document) {
        let day = document.taken_at.unwrap_or_default().chars().take_while(|one| *one != 'T').collect::<String>();
        let mut repositories = Repositories::default();
        let migrations = self.files.iter_mut().filter(|file| file.role.is_migration());
        let mut files: BTreeMap<String, &mut ProjectFile> =
            migrations.map(|file| (file.stable_path_in(&mut repositories), file)).collect();
        let (mut foreign, mut stale) = (BTreeSet::new(), BTreeSet::new());
        for Stored { migration: PrecheckedMigration { migration, migration_digest }, query, outcome } in
            document.prechecks
        {
            let Some(file) = files.get_mut(&migration) else {
                foreign.insert(migration);
                continue;
            };
            if digest(file) != migration_digest {
                if file.role == Role::Reported {
                    stale.insert(migration);
                }
                continue;
            }
            let (rows, is_least) = match outcome {
                Some(StoredOutcome::Counted { rows }) => (rows, false),
                Some(StoredOutcome::AtLeastOne) => (1, true),
                Some(StoredOutcome::NotCounted) | None => continue,
            };
            if let Some(query) = query {
                let count = RowCount { rows, is_least, day: day.as_str().into() };
                file.row_counts.insert(query, count);
            }
        }
        let mut note = |what: String| {
            let message = format!("has counts for {what}; pgvet ignores these counts");
            self.notes.push(Problem::new(path, message, Some(HELP)));
        };
        if let Some(first) = stale.first() {
            note(match stale.len() - 1 {
                0 => format!("a different version of `{first}`"),
                1 => format!("different versions of `{first}` and 1 other migration"),
                more => format!("different versions of `{first}` and {more} other migrations"),
            });
        }
        if let Some(first) = foreign.first() {
            note(match foreign.len() {
                1 => format!("`{first}`, which is not part of this run"),
                count => format!("{count} migrations outside this run, such as `{first}`"),
            });
        }
    }
}

/// The digest of the text of a migration.
fn digest(file: &ProjectFile) -> String {
    blake3::hash(file.shown().text.as_bytes()).to_hex().to_string()
}
