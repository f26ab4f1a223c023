//! The files of a run, read, split into statements and in the order in which they are replayed.

use crate::cache::{Cache, Warm};
use crate::config::{Config, ConfigError, ConfigSource, absolute};
use crate::discovery::{Problem, display};
use crate::git::ChangeSelection;
use crate::layout::{self, Folders, Layout, Section};
use crate::order;
use crate::parallel;
use crate::placeholders::{Substitution, substitute};
use crate::plan::{Database, Plan, Source};
use crate::read::EncodingError;
use crate::roots::{self, Repositories};
use crate::texts::Texts;
use pgvet_linter::catalog::Catalog;
use pgvet_linter::check::{self, Direction, Migration, Observe, Outcome, ParsedFile, TransactionMode};
use pgvet_linter::diagnostic::{Diagnostic, Severity};
use pgvet_linter::effect::{Effects, Evidence};
use pgvet_linter::fix::Edit;
use pgvet_linter::predict::{self, StatementEffects};
use pgvet_linter::settings::{Levels, Settings};
use pgvet_linter::source::{LineIndex, SourceFile, TextRange};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to load.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Files and folders whose findings are reported; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// Files and folders that are replayed first.
    pub history: Vec<PathBuf>,
    /// A dump of the schema that was there before all of them.
    pub schema: Option<PathBuf>,
    /// The name that standard input goes by; its layout is detected from it.
    pub stdin_name: Option<String>,
    pub config: ConfigSource,
    /// Replay nothing but what is named.
    pub without_history: bool,
    /// Report only files that git calls changed.
    pub changes: Option<ChangeSelection>,
    /// The last migration that is not reported, of one or several folders; goes before what configuration says.
    pub start_after: Vec<String>,
    /// Texts that are not those on disk.
    pub texts: Texts,
}

impl Request {
    /// Is a file that was named by itself judged after the others of its folder?
    pub(crate) fn replay_folder(&self) -> bool {
        !self.without_history && self.history.is_empty()
    }
}

/// Why a file is part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Baseline,
    History,
    Reported,
}

/// One file of a run.
#[derive(Debug)]
pub struct ProjectFile {
    pub parsed: Arc<ParsedFile>,
    pub layout: Layout,
    pub role: Role,
    pub encoding: Option<EncodingError>,
    /// Which database it belongs to: see [`Migration::database`].
    pub database: u32,
    /// Where it is.
    pub path: PathBuf,
    /// The nearest configuration.
    pub config: Arc<Config>,
    /// What was read, where placeholders were replaced before it was parsed.
    pub(crate) original: Option<Box<Original>>,
}

/// A file before its placeholders were replaced.
#[derive(Debug)]
pub(crate) struct Original {
    /// Without statements.
    file: ParsedFile,
    substitution: Substitution,
}

/// The files of a run in the order in which they are replayed.
#[derive(Debug, Default)]
pub struct Project {
    pub files: Vec<ProjectFile>,
    /// In the order of their numbers, which begin with 1.
    pub databases: Vec<Database>,
    /// What could not be loaded.
    pub problems: Vec<Problem>,
    /// What the cache knows of each group; empty without a cache.
    warm: Vec<Warm>,
}

/// What is replayed on one catalog.
struct Group {
    config: Arc<Config>,
    /// Indexes into [`Project::migrations`].
    migrations: Vec<u32>,
}

impl Group {
    fn own<'m>(&self, migrations: &[Migration<'m>]) -> Vec<Migration<'m>> {
        self.migrations.iter().map(|index| migrations[*index as usize]).collect()
    }

    /// The settings of its run.
    fn settings(
        &self,
        levels: &BTreeMap<u32, Levels>,
        sections: &[(&ProjectFile, Section)],
        settings: &dyn Fn(&Config) -> Settings,
    ) -> Settings {
        let places = self.migrations.iter().enumerate();
        let of_files = places.filter_map(|(place, index)| Some((place as u32, levels.get(index)?.clone())));
        Settings { file_levels: of_files.collect(), opt_outs: opt_outs(self, sections), ..settings(&self.config) }
    }
}

/// How the text of a file becomes statements.
type Parse = dyn Fn(&Texts, &Path, SourceFile) -> Arc<ParsedFile> + Sync;

impl Project {
    /// Reads and parses everything that the request names. Calls `progress` with the number of files done and of all.
    pub fn load(request: &Request, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Self, ConfigError> {
        Self::load_with(request, &Folders::default(), &Texts::parse, progress)
    }

    /// [`Project::load`] for [`Project::check`] only: files that lead to what the cache knows are not parsed. `settings`
    /// makes the settings of a run of a configuration.
    pub fn load_warm(
        request: &Request,
        cache: &Cache,
        settings: &(dyn Fn(&Config) -> Settings + Sync),
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, ConfigError> {
        let unread = |_: &Texts, _: &Path, text| Arc::new(ParsedFile::unread(text));
        let mut project = Self::load_with(request, &Folders::default(), &unread, progress)?;
        let migrations = project.migrations();
        let (levels, sections) = (project.file_levels(), project.sections());
        let groups = project.groups(&migrations);
        let warm =
            |group: &Group| Warm::new(cache, &group.own(&migrations), &group.settings(&levels, &sections, settings));
        let warm: Vec<Warm> = groups.iter().map(warm).collect();
        let needed = groups.iter().zip(&warm).flat_map(|(group, warm)| &group.migrations[warm.first_needed()..]);
        let needed: BTreeSet<u32> = needed.copied().collect();
        project.parse(&needed);
        project.warm = warm;
        Ok(project)
    }

    /// Parses the files of some migrations.
    fn parse(&mut self, migrations: &BTreeSet<u32>) {
        let mut next = 0;
        let is_needed = |file: &&mut ProjectFile| {
            let first = next;
            next += file.layout.sections.len() as u32;
            migrations.range(first..next).next().is_some()
        };
        let needed: Vec<&mut ProjectFile> = self.files.iter_mut().filter(is_needed).collect();
        let parse = |file: &mut ProjectFile| {
            let source = std::mem::take(&mut Arc::make_mut(&mut file.parsed).source);
            file.parsed = Arc::new(check::parse_file(source));
        };
        parallel::map(needed, parse);
    }

    pub(crate) fn load_with(
        request: &Request,
        folders: &Folders,
        parse: &Parse,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, ConfigError> {
        let Plan { sources, databases, mut problems, .. } = Plan::new(request, folders)?;
        let all = sources.len();
        let done = AtomicUsize::new(0);
        let load = |source: Source| {
            let file = load_file(source, folders, &request.texts, parse);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
            file
        };
        let mut files = Vec::with_capacity(all);
        for file in parallel::map(sources, load) {
            match file {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            }
        }
        Ok(Self { files, databases, problems, warm: Vec::new() })
    }

    /// What the engine is given: each section of each file.
    pub fn migrations(&self) -> Vec<Migration<'_>> {
        self.files.iter().flat_map(ProjectFile::migrations).collect()
    }

    /// All findings, in the order of files. [`Diagnostic::file`] is an index into [`Project::migrations`]. `settings`
    /// makes the settings of a run of a configuration.
    ///
    /// Databases have nothing to do with each other, so they are checked side by side. Calls `progress` with the number
    /// of migrations done and of all.
    pub fn check(
        &self,
        settings: &(dyn Fn(&Config) -> Settings + Sync),
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Outcome {
        self.check_observed(settings, &check::unobserved, progress)
    }

    /// The same, and where `observe` tells what a statement was seen to do, that is judged; see [`Observe`].
    pub fn check_observed(
        &self,
        settings: &(dyn Fn(&Config) -> Settings + Sync),
        observe: &Observe<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Outcome {
        let migrations = self.migrations();
        let done = AtomicUsize::new(0);
        let one_done = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, migrations.len());
        let (levels, sections) = (self.file_levels(), self.sections());
        let check_group = |at: usize, group: &Group| {
            let (own, settings) = (group.own(&migrations), group.settings(&levels, &sections, settings));
            let observe = |index: u32, statement: TextRange, predicted: &Effects, after: &Catalog| {
                observe(group.migrations[index as usize], statement, predicted, after)
            };
            let mut outcome = match self.warm.get(at) {
                Some(warm) => warm.check(&own, &settings, &one_done),
                None => check::run_observed(&own, &settings, &observe, &one_done),
            };
            let suppressed = outcome.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
            for diagnostic in outcome.found.iter_mut().chain(suppressed) {
                diagnostic.file = group.migrations[diagnostic.file as usize];
                diagnostic.labels.iter_mut().for_each(|label| label.file = group.migrations[label.file as usize]);
            }
            outcome
        };
        let size = |group: &&Group| {
            let texts = group.migrations.iter().map(|index| &migrations[*index as usize].file.source.text);
            texts.map(|text| text.len() as u64).sum()
        };
        let groups = self.groups(&migrations);
        let mut all = Outcome::default();
        for outcome in parallel::map_largest_first(groups.iter().collect(), size, check_group) {
            all.found.extend(outcome.found);
            all.suppressed.extend(outcome.suppressed);
        }
        self.finish(&mut all, settings);
        all
    }

    /// Moves findings to where they are in the files, adds those about the files themselves, and sorts.
    pub(crate) fn finish(&self, outcome: &mut Outcome, settings: &dyn Fn(&Config) -> Settings) {
        let files = self.files_of_migrations();
        let suppressed = outcome.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
        for diagnostic in outcome.found.iter_mut().chain(suppressed) {
            put_on_disk(diagnostic, &files);
        }
        outcome.found.extend(self.encoding_diagnostics(settings));
        let place = |diagnostic: &Diagnostic| (diagnostic.file, diagnostic.range.start, diagnostic.range.end);
        outcome.found.sort_by_key(place);
        outcome.suppressed.sort_by_key(|suppressed| place(&suppressed.diagnostic));
    }

    /// What the statements of reported files do: see [`predict::effects`].
    pub fn effects(&self, settings: &Settings) -> Vec<Vec<StatementEffects>> {
        let mut effects = predict::effects(&self.migrations(), settings);
        for (file, effects) in self.files_of_migrations().into_iter().zip(&mut effects) {
            effects.iter_mut().for_each(|effects| effects.statement = file.on_disk(effects.statement));
        }
        effects
    }

    /// The migrations of each database, after the history that all of them share.
    fn groups(&self, migrations: &[Migration<'_>]) -> Vec<Group> {
        let databases: BTreeSet<u32> = migrations.iter().map(|migration| migration.database).collect();
        let only_shared = databases.iter().all(|database| *database == 0);
        let belongs = |database: u32| {
            let all = migrations.iter().enumerate();
            let own = all.filter(move |(_, migration)| migration.database == 0 || migration.database == database);
            own.map(|(index, _)| index as u32).collect()
        };
        let databases = databases.into_iter().filter(|database| *database != 0 || only_shared);
        databases.map(|database| Group { config: self.config_of(database), migrations: belongs(database) }).collect()
    }

    /// The settings of the run of a project that has one database.
    pub(crate) fn only_settings(&self, settings: &Settings) -> Settings {
        let migrations = (0..self.migrations().len() as u32).collect();
        let group = Group { config: self.config_of(1), migrations };
        group.settings(&self.file_levels(), &self.sections(), &|_| settings.clone())
    }

    /// The configuration of a database.
    pub fn config_of(&self, database: u32) -> Arc<Config> {
        let database = (database as usize).checked_sub(1).and_then(|at| self.databases.get(at));
        database.or(self.databases.first()).map(|database| database.config.clone()).unwrap_or_default()
    }

    /// The file and section of each migration.
    fn sections(&self) -> Vec<(&ProjectFile, Section)> {
        let sections = |file| ProjectFile::sections(file).map(move |section| (file, section));
        self.files.iter().flat_map(sections).collect()
    }

    /// The levels of rules in files for which configuration has overrides, by the index of the migration.
    fn file_levels(&self) -> BTreeMap<u32, Levels> {
        let mut levels = BTreeMap::new();
        let mut index = 0;
        for file in &self.files {
            let own = if file.role == Role::Reported { file.config.levels_of(&file.path) } else { None };
            for _ in &file.layout.sections {
                if let Some(own) = &own {
                    levels.insert(index, own.clone());
                }
                index += 1;
            }
        }
        levels
    }

    /// Puts another text in place of that of the file with this index in [`Project::files`]; nothing is written.
    pub fn replace_text(&mut self, file: usize, text: String) {
        let Some(file) = self.files.get_mut(file) else { return };
        let source = Source {
            path: file.path.clone(),
            is_stdin: false,
            role: file.role,
            database: file.database,
            config: Arc::clone(&file.config),
        };
        let path = file.shown().source.path.clone();
        let parse = |_: &Path, text| Arc::new(check::parse_file(text));
        *file = project_file(SourceFile { path, text }, file.encoding, source, &Folders::default(), parse);
        self.warm.clear();
    }

    /// The index in [`Project::files`] of the file of each of [`Project::migrations`].
    pub fn file_indexes(&self) -> Vec<usize> {
        let sections = |(index, file): (usize, &ProjectFile)| std::iter::repeat_n(index, file.layout.sections.len());
        self.files.iter().enumerate().flat_map(sections).collect()
    }

    /// The newest migration of a database, after which all that come are new, where one folder has the newest ones.
    pub fn newest_migration(&self, database: u32) -> Option<&ProjectFile> {
        let files: Vec<&ProjectFile> = self.migrations_of(database).collect();
        let paths: Vec<&Path> = files.iter().map(|file| file.path.as_path()).collect();
        order::newest(&paths).map(|at| files[at])
    }

    /// In how many folders the migrations of a database have an order of their own: one folder is run after the other.
    pub fn sequences(&self, database: u32) -> usize {
        order::sequences(&self.migrations_of(database).map(|file| file.path.as_path()).collect::<Vec<_>>())
    }

    /// What is run for a database on the way forward.
    fn migrations_of(&self, database: u32) -> impl Iterator<Item = &ProjectFile> {
        let belongs = move |file: &&ProjectFile| file.database == database && file.role != Role::Baseline;
        self.files.iter().filter(belongs).filter(|file| file.is_run())
    }

    /// How many files are reported on.
    pub fn reported_files(&self) -> usize {
        self.files.iter().filter(|file| file.role == Role::Reported).count()
    }

    /// How many migrations are replayed and not reported on.
    pub fn history_files(&self) -> usize {
        self.files.iter().filter(|file| file.role == Role::History).count()
    }

    /// The file of each of [`Project::migrations`].
    pub fn files_of_migrations(&self) -> Vec<&ProjectFile> {
        self.files.iter().flat_map(|file| file.layout.sections.iter().map(move |_| file)).collect()
    }

    /// Findings about the files themselves. [`Diagnostic::file`] is an index into [`Project::migrations`].
    fn encoding_diagnostics(&self, settings: &dyn Fn(&Config) -> Settings) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        let mut index = 0;
        for file in &self.files {
            let sections = file.layout.sections.len();
            if let Some(error) = file.encoding.filter(|_| file.role == Role::Reported && sections > 0) {
                diagnostics.push(encoding_diagnostic(index, error, &settings(&self.config_of(file.database))));
            }
            index += sections as u32;
        }
        diagnostics
    }
}

impl ProjectFile {
    /// Does the tool run something of it on the way forward?
    pub fn is_run(&self) -> bool {
        self.layout.sections.iter().any(|section| section.direction == Direction::Up)
    }

    /// The file as it is on disk: findings are about this text.
    pub fn shown(&self) -> &ParsedFile {
        self.original.as_ref().map_or(&self.parsed, |original| &original.file)
    }

    /// Were placeholders replaced by the values of the configuration?
    pub fn has_values(&self) -> bool {
        self.original.is_some()
    }

    /// The range on disk of a range of what was parsed.
    pub fn on_disk(&self, range: TextRange) -> TextRange {
        self.original.as_ref().map_or(range, |original| original.substitution.original(range))
    }

    /// Its path from the folder of its configuration, or else of its repository: the same wherever it is checked.
    pub fn stable_path(&self) -> String {
        self.stable_path_in(&mut Repositories::default())
    }

    pub(crate) fn stable_path_in(&self, repositories: &mut Repositories) -> String {
        let path = absolute(&self.path);
        let repository = || repositories.around(path.parent()?);
        let root = self.config.root().filter(|root| path.starts_with(root)).or_else(repository);
        match root.and_then(|root| path.strip_prefix(root).ok()) {
            Some(relative) => display(relative),
            None => roots::shown(&path),
        }
    }

    fn sections(&self) -> impl Iterator<Item = Section> {
        self.layout.sections.iter().copied()
    }

    pub(crate) fn migrations(&self) -> impl Iterator<Item = Migration<'_>> {
        self.layout.sections.iter().map(|section| Migration {
            file: &self.parsed,
            section: section.range,
            direction: section.direction,
            transaction: section.transaction,
            report: self.role == Role::Reported,
            baseline: self.role == Role::Baseline,
            database: self.database,
        })
    }
}

/// What takes each migration of a group out of the transaction of its tool.
fn opt_outs(group: &Group, sections: &[(&ProjectFile, Section)]) -> FxHashMap<u32, Edit> {
    let mut opt_outs = FxHashMap::default();
    for (place, index) in group.migrations.iter().enumerate() {
        let (file, section) = &sections[*index as usize];
        if file.role == Role::Reported && section.transaction == TransactionMode::Transaction {
            let text = &file.parsed.source.text;
            let opt_out = layout::opt_out(file.layout.tool, text, section.range);
            opt_outs.extend(opt_out.map(|edit| (place as u32, edit)));
        }
    }
    opt_outs
}

fn load_file(source: Source, folders: &Folders, texts: &Texts, parse: &Parse) -> Result<ProjectFile, Problem> {
    let path = &source.path;
    if source.is_stdin {
        let (text, encoding) = texts.read_stdin(&path.to_string_lossy())?;
        return Ok(project_file(text, encoding, source, folders, |_, text| Arc::new(check::parse_file(text))));
    }
    let (text, encoding) = texts.read(path)?;
    Ok(project_file(text, encoding, source, folders, |path, text| parse(texts, path, text)))
}

/// A text that was read, with its placeholders replaced before it is parsed.
fn project_file(
    text: SourceFile,
    encoding: Option<EncodingError>,
    source: Source,
    folders: &Folders,
    parse: impl FnOnce(&Path, SourceFile) -> Arc<ParsedFile>,
) -> ProjectFile {
    let Source { path, role, database, config, .. } = source;
    let (text, original) = substituted(text, &config);
    let layout = layout::detect(&path, &text.text, folders, &config);
    let parsed = parse(&path, text);
    ProjectFile { parsed, layout, role, encoding, database, path, config, original }
}

/// The text with the values of placeholders, and the file as it was where there are any.
pub(crate) fn substituted(text: SourceFile, config: &Config) -> (SourceFile, Option<Box<Original>>) {
    match substitute(&text.text, &config.placeholders) {
        None => (text, None),
        Some((replaced, substitution)) => {
            let lines = LineIndex::new(&text.text);
            let replaced = SourceFile { path: text.path.clone(), text: replaced };
            let file = ParsedFile { source: text, lines, statements: Vec::new() };
            (replaced, Some(Box::new(Original { file, substitution })))
        }
    }
}

/// Moves the places of a finding to where they are in the files.
fn put_on_disk(diagnostic: &mut Diagnostic, files: &[&ProjectFile]) {
    let file = files[diagnostic.file as usize];
    diagnostic.range = file.on_disk(diagnostic.range);
    diagnostic.statement = file.on_disk(diagnostic.statement);
    // A change of a value would have to be made in the configuration.
    let holds_value = |range| file.original.as_ref().is_some_and(|original| original.substitution.holds_value(range));
    // Nor may a fix write a value where the file has the placeholder.
    let writes_value = |text: &str| {
        file.original.is_some()
            && file.config.placeholders.values().any(|value| value.len() > 1 && text.contains(value))
    };
    let keeps = |edit: &Edit| !holds_value(edit.range) && !writes_value(&edit.text);
    diagnostic.fixes.retain(|fix| fix.edits.iter().all(keeps));
    if diagnostic.steps.iter().any(|step| writes_value(&step.sql)) {
        diagnostic.steps.clear();
    }
    for edit in diagnostic.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
        edit.range = file.on_disk(edit.range);
    }
    for label in &mut diagnostic.labels {
        label.range = files[label.file as usize].on_disk(label.range);
    }
}

fn encoding_diagnostic(file: u32, error: EncodingError, settings: &Settings) -> Diagnostic {
    let at = error.range.start;
    let help = "save the file as UTF-8; the bytes were read as `?`, and the rest was checked";
    Diagnostic {
        rule: "unsupported-encoding",
        severity: Severity::Error,
        message: format!("byte {at} is not UTF-8, the encoding in which migrations are read"),
        help: Some(help.to_owned()),
        file,
        range: error.range,
        statement: error.range,
        labels: Vec::new(),
        relations: Vec::new(),
        pg_versions: settings.versions.iter().collect(),
        fixes: Vec::new(),
        steps: Vec::new(),
        obstacle: None,
        evidence: Evidence::Predicted,
    }
}

#[cfg(test)]
mod tests;
