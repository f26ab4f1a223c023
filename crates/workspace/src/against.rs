//! What a live database has, stored by `pgvet drift`, so that the migrations that it has not applied yet are judged by
//! what is really there.
//!
//! Where the database differs from the migrations, statements are written that make the difference, and replayed as a
//! dump is, after the last migration that the database has applied.

use crate::layout::{Folders, Section};
use crate::plan::Source;
use crate::problem::{Problem, display};
use crate::project::{Project, ProjectFile, Role, project_file};
use crate::read;
use crate::roots::Repositories;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::migration::{Direction, Migration, TransactionMode};
use pgvet_model::version::{PgVersion, VersionRange};
use pgvet_schema::{Comparison, Schema, alteration, compare};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The schema of a live database, with the migrations that it has applied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Observed {
    #[serde(flatten)]
    pub applied: Applied,
    pub schema: Schema,
}

/// The migrations that a database has applied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Applied {
    /// The last of them: see [`ProjectFile::stable_path`].
    last_migration: String,
    /// A digest of their names and texts.
    migrations_digest: String,
}

impl Applied {
    /// Those up to the file with this index in [`Project::files`].
    pub fn until(project: &Project, last: usize) -> Self {
        let files = &project.files[..=last];
        let last = &project.files[last];
        Self { last_migration: last.stable_path(), migrations_digest: digest(files, last.database) }
    }
}

/// The parts of a report of `pgvet drift` that are read.
#[derive(Deserialize)]
struct Document {
    schema_version: u32,
    observed: Option<Observed>,
}

/// How often what a statement could not do, or undid, is tried again.
const ROUNDS: usize = 4;
/// Maximum number of differences that a note names.
const NAMED: usize = 5;

const HELP: &str = "write it again: `pgvet drift --database URL --format json`";

impl Observed {
    /// The version of the reports of `pgvet drift` that have it.
    pub const VERSION: u32 = 1;

    /// Reads a report of `pgvet drift`.
    ///
    /// # Errors
    /// Why it cannot be read, as the end of the sentence "`path` ...".
    fn read(path: &Path) -> Result<Self, String> {
        let text = read::text(path).map_err(|error| format!("cannot be read: {error}"))?;
        let document: Document = serde_json::from_str(&text)
            .map_err(|error| format!("is not a report of `pgvet drift --format json`: {error}"))?;
        if document.schema_version != Self::VERSION {
            let (found, read) = (document.schema_version, Self::VERSION);
            return Err(format!("has version {found}, but this pgvet reads version {read}"));
        }
        let observed = document.observed.ok_or("does not have the whole schema: it was written with --in-schema")?;
        let version = observed.schema.pg_version;
        if VersionRange::parse(&version.to_string()).is_err() {
            return Err(format!("is from PostgreSQL {version}, which is not supported"));
        }
        Ok(observed)
    }
}

impl Project {
    /// The reports of `pgvet drift` by which migrations are judged: the one that is named, or else those that are
    /// configured.
    pub fn observed_files(&self, named: Option<&Path>) -> BTreeSet<PathBuf> {
        match named {
            Some(path) => BTreeSet::from([path.to_owned()]),
            None => self.databases.iter().filter_map(|database| database.config.against.clone()).collect(),
        }
    }

    /// Gives databases what [`Self::observed_files`] say. All files must have been parsed.
    pub fn add_observed(&mut self, named: Option<&Path>) {
        for path in self.observed_files(named) {
            match Observed::read(&path) {
                Ok(observed) => self.observe(&path, observed),
                Err(wrong) => self.problems.push(Problem::new(&path, wrong, Some(HELP))),
            }
        }
    }

    fn observe(&mut self, path: &Path, observed: Observed) {
        let Observed { applied: Applied { last_migration: last, migrations_digest }, schema } = &observed;
        let mut repositories = Repositories::default();
        let mut is_last =
            |file: &ProjectFile| file.role.is_migration() && file.stable_path_in(&mut repositories) == *last;
        let Some(at) = self.files.iter().rposition(&mut is_last) else {
            let wrong = format!("is from a database whose last migration is `{last}`, which is not part of this run");
            let help = "check the whole folder, or name the file that was written for this database";
            return self.problems.push(Problem::new(path, wrong, Some(help)));
        };
        let mut note = |message: String, help| self.notes.push(Problem::new(path, message, help));
        let database = self.files[at].database;
        let is_later = |file: &ProjectFile| file.role == Role::Reported && file.database == database;
        if !self.files[at + 1..].iter().any(is_later) {
            let wrong = "has no effect: this run checks no migration after";
            note(format!("{wrong} `{last}`, the last one applied to that database"), None);
        }
        if digest(&self.files[..=at], database) != *migrations_digest {
            note(format!("is outdated: `{last}` or an earlier migration has changed since it was written"), Some(HELP));
        }
        let Reconciled { text, applied, left } = self.reconcile(at, schema);
        self.notes.extend(applied_note(path, last, applied, &left));
        let role = Role::Observed { everything: schema.gaps.is_empty() };
        let source = Source { database, ..Source::new(path.to_owned(), role, Arc::default()) };
        let text = SourceFile::new(display(path), text);
        let mut file =
            project_file((text, None), None, source, &Folders::default(), |_, text| Arc::new(parse_file(text)));
        file.layout = file.layout.of_nothing();
        file.layout.sections =
            vec![Section { range: None, direction: Direction::Up, transaction: TransactionMode::Autocommit }];
        file.unknown_order = None;
        file.config = Arc::clone(&self.files[at].config);
        self.files.insert(at + 1, file);
        self.warm.clear();
    }

    /// The statements that give the catalog after the file at `last` what a database has.
    fn reconcile(&self, last: usize, observed: &Schema) -> Reconciled {
        let database = self.files[last].database;
        let all = std::iter::zip(self.migrations(), self.file_indexes());
        let own = all.filter(|(migration, file)| *file <= last && [0, database].contains(&migration.database));
        let own: Vec<Migration<'_>> = own.map(|(migration, _)| migration).collect();
        let version = PgVersion(observed.pg_version);
        let versions = VersionRange { from: version, to: version };
        let mut state = Checkpoint::default();
        state.advance(&own, own.len(), versions, &());
        let after = |text: &str| {
            let file = parse_file(SourceFile::new(String::new(), text.to_owned()));
            let script = Migration { database, baseline: true, report: false, ..Migration::new(&file) };
            let all: Vec<Migration<'_>> = own.iter().copied().chain([script]).collect();
            let mut state = state.clone();
            state.advance(&all, all.len(), versions, &());
            pgvet_schema::read(state.catalog(), version)
        };
        let mut model = pgvet_schema::read(state.catalog(), version);
        let mut left = compare(&model, observed);
        let (mut text, found) = (String::new(), left.changes.len());
        for round in 0..ROUNDS {
            let longer = text.clone() + &alteration(&model, observed);
            let next = if longer.len() == text.len() { break } else { after(&longer) };
            let still = compare(&next, observed);
            if round > 0 && still.changes.len() >= left.changes.len() {
                break;
            }
            (text, model, left) = (longer, next, still);
        }
        Reconciled { text, applied: found.saturating_sub(left.changes.len()), left }
    }
}

/// The differences between migrations and a database, as statements.
struct Reconciled {
    text: String,
    /// How many differences they remove.
    applied: usize,
    /// What they leave.
    left: Comparison,
}

/// The digest of the migrations that a database has applied.
fn digest(files: &[ProjectFile], database: u32) -> String {
    let mut hasher = blake3::Hasher::new();
    let belongs = |file: &&ProjectFile| file.database == database || file.database == 0;
    let migrations = files.iter().filter(belongs).filter(|file| file.role.is_migration());
    for file in migrations.filter(|file| file.is_run()) {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        for text in [name.as_ref(), &file.shown().text] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

/// How many differences a run takes into account, and which not.
fn applied_note(path: &Path, last: &str, applied: usize, left: &Comparison) -> Option<Problem> {
    let (changes, skipped) = (&left.changes, left.not_compared.len());
    if applied == 0 && changes.is_empty() && skipped == 0 {
        return None;
    }
    let help = "`pgvet drift` lists all differences";
    let count = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    if applied == 0 && changes.is_empty() {
        let unknown = count(skipped, "property was", "properties were");
        let message = format!("was not compared completely with the migrations up to `{last}`: {unknown} not compared");
        return Some(Problem::new(path, message, Some(help)));
    }
    let taken = count(applied, "difference", "differences");
    let mut message =
        format!("shows a database that differs from the migrations up to `{last}`; pgvet applies {taken}");
    if !changes.is_empty() {
        let names: Vec<String> =
            changes.iter().take(NAMED).map(|change| format!("{} {}", change.kind.noun(), change.name())).collect();
        let more = changes.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        message = format!("{message} and ignores {} ({}{more})", changes.len(), names.join(", "));
    }
    if skipped > 0 {
        message = format!("{message}; {} not compared", count(skipped, "property was", "properties were"));
    }
    Some(Problem::new(path, message, Some(help)))
}
