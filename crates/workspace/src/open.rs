//! A file that is being edited: the migrations before it are replayed once, and an edit runs only what it can have
//! changed.

use crate::baseline::KnownFinding;
use crate::config::{Config, ConfigError};
use crate::fingerprint::fingerprints;
use crate::layout::{self, Folders};
use crate::problem::Problem;
use crate::project::{Project, ProjectFile, Request, Role, substituted};
use crate::texts::{ParsedFiles, Texts};
use pgvet_linter::check::Outcome;
use pgvet_linter::resume::check_from;
use pgvet_linter::settings::Settings;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::memory::{Memory, Remembered};
use pgvet_model::migration::{Direction, Migration, TransactionMode};
use pgvet_model::runner::Runner;
use pgvet_model::version::VersionRange;
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{ParsedFile, parse_file_again};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// State that open files share: parsed files, and states of histories.
#[derive(Debug, Default)]
pub struct Histories {
    parsed: Arc<ParsedFiles>,
    replayed: Mutex<Vec<Replayed>>,
}

/// Maximum number of histories that are remembered.
const MAX_HISTORIES: usize = 8;
/// The state is kept after every so many migrations.
const CHECKPOINT: usize = 64;

/// A history that was replayed.
#[derive(Debug, Clone)]
struct Replayed {
    versions: VersionRange,
    lint_down: bool,
    migrations: Vec<Past>,
    /// In order, the last one after all of them.
    states: Vec<Checkpoint>,
}

/// A migration of a history. Equal ones do the same in the same place.
#[derive(Debug, Clone)]
struct Past {
    file: Arc<ParsedFile>,
    section: Option<TextRange>,
    direction: Direction,
    transaction: TransactionMode,
    runner: Runner,
    baseline: bool,
    ordered: bool,
    in_production: bool,
    database: u32,
}

/// A file in an editor, with what comes before it.
#[derive(Debug)]
pub struct OpenFile {
    /// The file is the last one.
    project: Project,
    folders: Folders,
    state: Checkpoint,
    memory: Memory,
    settings: Settings,
    /// The fingerprints of the baseline.
    known: BTreeSet<String>,
}

/// The effects of a statement of an open file on the newest configured version.
#[derive(Debug, Clone, Copy)]
pub struct OpenStatement<'a> {
    /// Its place in the text.
    pub range: TextRange,
    pub run: Remembered<'a>,
}

impl Histories {
    /// Texts in editors, and the memory of what was parsed.
    pub fn texts(&self) -> Texts {
        Texts::remembering(Arc::clone(&self.parsed))
    }

    /// The state after the migrations up to `next`.
    fn state(&self, migrations: &[Migration<'_>], past: Vec<Past>, settings: &Settings) -> Checkpoint {
        let known = self.nearest(&past, settings);
        let mut states = known.states;
        let mut state = states.last().cloned().unwrap_or_default();
        while state.next() < past.len() {
            state.advance(migrations, (state.next() + CHECKPOINT).min(past.len()), settings.versions, &());
            states.push(state.clone());
        }
        let mut replayed = self.replayed.lock().unwrap_or_else(PoisonError::into_inner);
        let (versions, lint_down) = (settings.versions, settings.lint_down);
        // What continues a known history takes its place.
        replayed.retain(|other| !other.is_before(&past, settings));
        replayed.push(Replayed { versions, lint_down, migrations: past, states });
        if replayed.len() > MAX_HISTORIES {
            replayed.remove(0);
        }
        state
    }

    /// The part of a known history that is the longest beginning of this one.
    fn nearest(&self, past: &[Past], settings: &Settings) -> Replayed {
        let replayed = self.replayed.lock().unwrap_or_else(PoisonError::into_inner);
        let same_settings = replayed.iter().filter(|known| known.is_for(settings));
        let common =
            |known: &Replayed| known.migrations.iter().zip(past).take_while(|(one, other)| one == other).count();
        let nearest = same_settings.map(|known| (common(known), known)).max_by_key(|(common, _)| *common);
        let mut states = nearest.map_or_else(Vec::new, |(_, known)| known.states.clone());
        let common = nearest.map_or(0, |(common, _)| common);
        states.retain(|state| state.next() <= common);
        Replayed { versions: settings.versions, lint_down: settings.lint_down, migrations: Vec::new(), states }
    }
}

impl Replayed {
    fn is_for(&self, settings: &Settings) -> bool {
        self.versions == settings.versions && self.lint_down == settings.lint_down
    }

    fn is_before(&self, past: &[Past], settings: &Settings) -> bool {
        self.is_for(settings)
            && self.migrations.len() <= past.len()
            && self.migrations.iter().zip(past).all(|(one, other)| one == other)
    }
}

impl PartialEq for Past {
    fn eq(&self, other: &Self) -> bool {
        let place = |past: &Self| (past.runner, past.baseline, past.ordered, past.in_production, past.database);
        let rest = |past: &Self| (past.section, past.direction, past.transaction, place(past));
        Arc::ptr_eq(&self.file, &other.file) && rest(self) == rest(other)
    }
}

impl OpenFile {
    /// Reads the migrations before `path`, whose text is `text`, and replays them. `texts` are those of other files.
    /// A text without a path is a migration alone.
    pub fn load(
        path: Option<&Path>,
        text: String,
        mut texts: Texts,
        histories: &Histories,
        settings: &dyn Fn(&Config) -> Settings,
    ) -> Result<Self, ConfigError> {
        texts.stdin = Some(text);
        let request = Request {
            paths: vec![PathBuf::from("-")],
            stdin_name: path.map(|path| path.to_string_lossy().into_owned()),
            texts,
            ..Request::default()
        };
        let folders = Folders::default();
        let mut project = Project::load_with(&request, &folders, &Texts::parse, &|_, _| ())?;
        let known = known(&mut project);
        let settings = settings(&project.config_of(1));
        let before = project.files.iter().filter(|file| file.role != Role::Reported);
        let past: Vec<Past> = before.flat_map(past).collect();
        let state = histories.state(&project.migrations(), past, &settings);
        Ok(Self { project, folders, state, memory: Memory::default(), settings, known })
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    /// `None` if nothing is to be reported about it: `start-after` is a later migration.
    pub fn file(&self) -> Option<&ProjectFile> {
        self.project.files.last().filter(|file| file.role == Role::Reported)
    }

    /// Whether the configuration excludes the file.
    pub fn is_excluded(&self) -> bool {
        self.file().is_some_and(|file| file.config.is_excluded(&file.path))
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The text has changed.
    pub fn edit(&mut self, text: String) {
        let reported = |file: &&mut ProjectFile| file.role == Role::Reported;
        let Some(file) = self.project.files.last_mut().filter(reported) else { return };
        let path = file.shown().path.clone();
        let (source, original) =
            substituted(SourceFile::new(path, text), &file.config, &self.folders).unwrap_or_else(|text| (text, None));
        file.layout = layout::detect(&file.path, &source.text, &self.folders, &file.config);
        file.original = original;
        let previous = Arc::try_unwrap(std::mem::take(&mut file.parsed)).unwrap_or_default();
        let (parsed, first_change) = parse_file_again(source, previous);
        file.parsed = Arc::new(parsed);
        if let Some(first_change) = first_change {
            let forgotten = self.memory.forget(|statement| statement.start >= first_change);
            // The user who types need not wait for it.
            rayon::spawn(|| drop(forgotten));
        }
    }

    /// The findings about the file. [`pgvet_linter::diagnostic::Diagnostic::file`] is an index into
    /// [`Project::migrations`].
    pub fn check(&mut self) -> Outcome {
        let migrations = self.project.migrations();
        self.settings = self.project.only_settings(&self.settings);
        let mut outcome = check_from(&self.state, &migrations, &self.settings, &mut self.memory);
        self.project.finish(&mut outcome, &|_| self.settings.clone());
        if let Some(file) = self.file().filter(|_| !self.known.is_empty()) {
            let found: Vec<_> = outcome.found.iter().map(|found| (file, found)).collect();
            let mut fingerprints = fingerprints(&found).into_iter();
            outcome.found.retain(|_| fingerprints.next().is_none_or(|fingerprint| !self.known.contains(&fingerprint)));
        }
        outcome
    }

    /// The effects of its statements in the last check, in order.
    pub fn statements(&self) -> impl Iterator<Item = OpenStatement<'_>> {
        let file = self.file();
        let statements = self.memory.statements();
        statements.filter_map(move |run| Some(OpenStatement { range: file?.on_disk(run.statement), run }))
    }
}

/// The fingerprints of the baseline, if there is one.
fn known(project: &mut Project) -> BTreeSet<String> {
    let config = project.config_of(1);
    let path = config.baseline_path();
    if config.baseline.is_none() && !path.is_file() {
        return BTreeSet::new();
    }
    match KnownFinding::read_all(&path) {
        Ok(known) => known.into_iter().map(|known| known.fingerprint).collect(),
        Err(wrong) => {
            project.problems.push(Problem::new(&path, wrong, Some("write it again with `pgvet baseline`")));
            BTreeSet::new()
        }
    }
}

fn past(file: &ProjectFile) -> impl Iterator<Item = Past> {
    file.migrations().map(|migration| Past {
        file: Arc::clone(&file.parsed),
        section: migration.section,
        direction: migration.direction,
        transaction: migration.transaction,
        runner: migration.runner,
        baseline: migration.baseline,
        ordered: migration.ordered,
        in_production: migration.in_production,
        database: migration.database,
    })
}

#[cfg(test)]
mod tests;
