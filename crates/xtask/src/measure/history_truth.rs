//! History truth: `fixtures/history`, the files it is about, and their replay through the model.

use super::fixtures;
use super::outcome::{Difference, Outcome, bare_name, lock_mode, mentions, referenced_names};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::predict::{StatementEffects, effects};
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{ParsedFile, parse_file};
use rayon::prelude::*;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The major that the histories were measured on.
pub const MEASURED_ON: PgVersion = PgVersion(17);

/// The server's result for one statement.
#[derive(Debug, Clone, Deserialize)]
pub struct Measured {
    pub repo: String,
    pub path: String,
    pub run_order: u32,
    pub index: u32,
    pub start: u32,
    pub end: u32,
    /// The parse node, unless the statement has a syntax error.
    pub kind: Option<String>,
    pub sub: Vec<String>,
    pub mode: Mode,
    pub error: Option<String>,
    pub locks: BTreeMap<String, String>,
    #[serde(default)]
    pub index_locks: BTreeMap<String, String>,
    pub rewrites: BTreeSet<String>,
    pub scans: BTreeSet<String>,
    pub indexes_built: BTreeSet<String>,
    #[serde(default)]
    pub built_on: BTreeSet<String>,
}

/// How the file was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One transaction for the file.
    Tx,
    /// The same, with a savepoint for each statement.
    Sp,
    /// The file's own BEGIN and COMMIT.
    Own,
    /// Each statement on its own.
    Auto,
    /// The same, after one transaction for the file had failed.
    AutoFallback,
}

impl Mode {
    pub fn transaction(self) -> TransactionMode {
        match self {
            Self::Tx | Self::Sp => TransactionMode::Transaction,
            Self::Own | Self::Auto | Self::AutoFallback => TransactionMode::Autocommit,
        }
    }
}

impl Measured {
    /// `AlterTableStmt SetNotNull`
    pub fn label(&self) -> String {
        let kind = self.kind.as_deref().unwrap_or("syntax error");
        let sub: Vec<&str> = self.sub.iter().map(String::as_str).collect();
        format!("{kind} {}", sub.join(",")).trim_end().to_owned()
    }

    fn outcome(&self) -> Outcome {
        let locks = self.locks.iter().chain(&self.index_locks);
        let builds = if self.built_on.is_empty() { BTreeSet::new() } else { self.indexes_built.clone() };
        Outcome {
            locks: locks.filter_map(|(name, mode)| Some((name.clone(), lock_mode(mode)?))).collect(),
            indexes: self.index_locks.keys().cloned().collect(),
            rewrites: self.rewrites.clone(),
            scans: self.scans.clone(),
            builds,
            fails: None,
        }
    }
}

/// A file with what the server did in it.
pub struct File {
    pub parsed: ParsedFile,
    pub measured: Vec<Measured>,
}

impl File {
    /// From the first to the last statement that was run, which excludes the other direction.
    pub fn section(&self) -> TextRange {
        let start = self.measured.iter().map(|statement| statement.start).min().unwrap_or_default();
        let end = self.measured.iter().map(|statement| statement.end).max().unwrap_or_default();
        TextRange::new(start, end)
    }

    pub fn migration(&self) -> Migration<'_> {
        let mode = self.measured.first().map_or(Mode::Auto, |statement| statement.mode);
        let transaction = mode.transaction();
        Migration { section: Some(self.section()), transaction, ..Migration::new(&self.parsed) }
    }

    pub fn text_of(&self, statement: &Measured) -> &str {
        let range = TextRange::new(statement.start, statement.end).as_usize();
        self.parsed.source.text.get(range).unwrap_or_default()
    }
}

/// The files that were run in one fresh database, in their order.
pub struct Database {
    pub repo: String,
    pub files: Vec<File>,
}

/// Reads the truth.
///
/// # Errors
/// Says what is missing or broken.
pub fn measured() -> Result<Vec<Measured>, String> {
    let path = fixtures("history").join("truth-17.jsonl.gz");
    let output = Command::new("gzip").arg("-dc").arg(&path).output().map_err(|error| format!("gzip: {error}"))?;
    if !output.status.success() {
        return Err(format!("{}: {}", path.display(), String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8(output.stdout).map_err(|error| format!("{}: {error}", path.display()))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("truth-17: {error}"))).collect()
}

/// Statements by the place of their file in the run, and its path.
type MeasuredFiles = BTreeMap<(u32, String), Vec<Measured>>;

/// Selection of the measured histories.
#[derive(clap::Args)]
pub(super) struct Histories {
    /// The folder with the checkouts that `fixtures/history/README.md` lists.
    #[arg(long, value_name = "DIR")]
    pub(super) checkouts: PathBuf,
    /// Only this repository (the last part of its name).
    #[arg(long, value_name = "NAME")]
    repo: Option<String>,
}

impl Histories {
    /// Reads their files, database by database. With `blank_failed`, statements that the server did not complete are
    /// replaced by blanks.
    pub(super) fn databases(&self, blank_failed: bool) -> Result<Vec<Database>, String> {
        databases(&self.checkouts, self.repo.as_deref(), blank_failed)
    }
}

fn databases(checkouts: &Path, repo: Option<&str>, blank_failed: bool) -> Result<Vec<Database>, String> {
    let mut files: BTreeMap<(String, u32), MeasuredFiles> = BTreeMap::new();
    for statement in measured()? {
        if repo.is_none_or(|wanted| wanted == short_name(&statement.repo)) {
            let database = (statement.repo.clone(), period(&statement.repo, &statement.path));
            let file = (statement.run_order, statement.path.clone());
            files.entry(database).or_default().entry(file).or_default().push(statement);
        }
    }
    if files.is_empty() {
        return Err("no such repository; `--repo` takes the last part of its name".to_owned());
    }
    let read_all = |((repo, _), files): ((String, u32), MeasuredFiles)| {
        let root = checkouts.join(short_name(&repo));
        let read = |((_, path), measured)| read_file(&root, path, measured, blank_failed);
        let files = files.into_iter().collect::<Vec<_>>().into_par_iter().map(read).collect::<Result<_, String>>()?;
        Ok(Database { repo, files })
    };
    files.into_iter().map(read_all).collect()
}

fn read_file(root: &Path, path: String, measured: Vec<Measured>, blank_failed: bool) -> Result<File, String> {
    let full = root.join(&path);
    let bytes = std::fs::read(&full).map_err(|error| format!("{}: {error}", full.display()))?;
    let mut text = String::from_utf8(bytes).map_err(|error| format!("{}: {error}", full.display()))?;
    for statement in measured.iter().filter(|statement| blank_failed && statement.error.is_some()) {
        let range = TextRange::new(statement.start, statement.end).as_usize();
        if text.get(range.clone()).is_some() {
            text.replace_range(range.clone(), &" ".repeat(range.len()));
        }
    }
    Ok(File { parsed: parse_file(SourceFile::new(path, text)), measured })
}

/// The last part of `owner/name`.
pub fn short_name(repo: &str) -> &str {
    repo.rsplit('/').next().unwrap_or(repo)
}

/// The database of a repository in which a file was run, see `fixtures/history/README.md`.
fn period(repo: &str, path: &str) -> u32 {
    match short_name(repo) {
        "musicbrainz-server" => {
            let month = path.rsplit('/').next().and_then(|name| name.get(..6)).unwrap_or_default();
            ["201206", "201301", "201308", "201603"].iter().filter(|start| month >= **start).count() as u32
        }
        "synapse" => match path.split_once("/delta/").and_then(|(_, rest)| rest.split('/').next()?.parse::<u32>().ok())
        {
            Some(..=54) => 0,
            Some(..=72) => 1,
            _ => 2,
        },
        // The prover has a database of its own.
        "zksync-era" => u32::from(path.starts_with("prover/")),
        _ => 0,
    }
}

/// The model's verdict on one measured statement.
pub enum Verdict {
    Agrees,
    Differs(Vec<Difference>),
    /// The model returned no statement with this range.
    Missing,
}

/// One measured statement that ran without error, and the judgement.
pub struct Judged<'a> {
    pub file: &'a File,
    pub measured: &'a Measured,
    pub verdict: Verdict,
    /// Why the model says that it may be wrong.
    pub unknown: Vec<String>,
}

/// Replays a database through the model and compares each statement that ran without error.
pub fn replay(database: &Database) -> Vec<Judged<'_>> {
    let migrations: Vec<Migration<'_>> = database.files.iter().map(File::migration).collect();
    let predicted = effects(&migrations, MEASURED_ON, &Functions::default());
    let names = Names::of(database);
    let mut judged = Vec::new();
    for (file, statements) in database.files.iter().zip(&predicted) {
        let by_start: BTreeMap<u32, &StatementEffects> =
            statements.iter().map(|statement| (statement.statement.start, statement)).collect();
        for measured in file.measured.iter().filter(|statement| statement.error.is_none()) {
            let predicted = by_start.get(&measured.start).filter(|found| found.statement.end == measured.end);
            let (verdict, unknown) = match predicted {
                None => (Verdict::Missing, Vec::new()),
                Some(found) => (
                    names.judge(file, measured, found),
                    found.effects.unknown_reasons().into_iter().map(ToString::to_string).collect(),
                ),
            };
            judged.push(Judged { file, measured, verdict, unknown });
        }
    }
    judged
}

/// Known names of a database.
struct Names {
    schemas: BTreeSet<String>,
    /// Where the runner's `search_path` put what is not qualified.
    default_schema: String,
    referenced: BTreeSet<String>,
}

impl Names {
    fn of(database: &Database) -> Self {
        let mut schemas: BTreeMap<String, usize> = BTreeMap::new();
        let mut referenced = BTreeSet::new();
        for file in &database.files {
            referenced.append(&mut referenced_names(&file.parsed.source.text));
            for name in file.measured.iter().flat_map(|statement| statement.locks.keys()) {
                let schema = name.split('.').next().unwrap_or_default();
                *schemas.entry(schema.to_owned()).or_default() += 1;
            }
        }
        let most_used = schemas.iter().max_by_key(|(_, uses)| **uses).map(|(schema, _)| schema.clone());
        let default_schema = most_used.unwrap_or_else(|| "public".to_owned());
        Self { schemas: schemas.into_keys().collect(), default_schema, referenced }
    }

    fn judge(&self, file: &File, measured: &Measured, predicted: &StatementEffects) -> Verdict {
        let text = file.text_of(measured);
        let other_side = |name: &str| self.referenced.contains(bare_name(name)) && !mentions(text, name);
        let mut server = measured.outcome();
        let mut model = Outcome::predicted(&predicted.effects).renamed(|name| self.on_server(name));
        server.keep_forced_scans(other_side);
        model.keep_forced_scans(other_side);
        let differences = server.differences(&model, |_| false);
        if differences.is_empty() { Verdict::Agrees } else { Verdict::Differs(differences) }
    }

    /// The model does not know the `search_path` that a runner sets, nor what a template inserts.
    fn on_server(&self, name: &str) -> String {
        match name.rsplit_once('.') {
            Some((schema, bare)) if !self.schemas.contains(schema) => format!("{}.{bare}", self.default_schema),
            _ => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_statements_are_read_and_every_file_has_one_mode() {
        let measured = measured().unwrap();
        assert_eq!(measured.len(), 16_815);
        let mut modes: BTreeMap<(&str, &str), Mode> = BTreeMap::new();
        for statement in &measured {
            let mode = modes.entry((&statement.repo, &statement.path)).or_insert(statement.mode);
            assert_eq!(*mode, statement.mode, "{}", statement.path);
        }
    }

    #[test]
    fn files_are_run_in_the_database_of_their_period() {
        let musicbrainz = |file: &str| period("metabrainz/musicbrainz-server", &format!("admin/sql/updates/{file}"));
        assert_eq!(musicbrainz("20120220-merge-duplicate-credits.sql"), 0);
        assert_eq!(musicbrainz("20120723-remove-invalid-cover-art-cache.sql"), 1);
        assert_eq!(musicbrainz("20130117-cover-image-types.sql"), 2);
        assert_eq!(musicbrainz("20150429-tag-upvote.sql"), 3);
        assert_eq!(musicbrainz("20160310-mbs-4501-alternative-tracklists.sql"), 4);
        let synapse = |path: &str| period("element-hq/synapse", &format!("synapse/storage/schema/{path}"));
        assert_eq!(synapse("main/delta/54/x.sql"), 0);
        assert_eq!(synapse("state/delta/72/x.sql"), 1);
        assert_eq!(synapse("main/full_schemas/72/full.sql.postgres"), 2);
        assert_eq!(synapse("common/schema_version.sql"), 2);
        assert_eq!(synapse("main/delta/73/x.sql"), 2);
    }

    #[test]
    fn a_period_never_goes_back() {
        let mut last: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        let mut statements = measured().unwrap();
        statements.sort_by_key(|statement| statement.run_order);
        for statement in statements {
            let period = period(&statement.repo, &statement.path);
            let before = last.insert(statement.repo.clone(), (statement.run_order, period));
            assert!(before.is_none_or(|(_, before)| before <= period), "{}", statement.path);
        }
    }
}
