//! The files of a run, read, split into statements and in the order in which they are replayed.

mod copies;
mod evidence;
mod notes;

use self::copies::Copies;
use crate::cache::Warm;
use crate::config::{Config, ConfigError, ConfigSource, Hiding, Patterns, absolute};
use crate::git::ChangeSelection;
use crate::history::{self, Past};
use crate::known_order::{self, UnknownOrder};
use crate::layout::captured::Origin;
use crate::layout::{self, Folders, Layout, Section, Sign, Tool};
use crate::placeholders::{Substitution, TooLarge, substitute};
use crate::plan::{Database, Plan, Source, nothing_found};
use crate::problem::{Problem, display};
use crate::purpose::{self, Purpose};
use crate::queries::Queries;
use crate::read::{EncodingError, MAX_SQL};
use crate::roots::{self, Repositories};
use crate::skipped::{SkipReason, Skipped};
use crate::texts::Texts;
use crate::{fizz, order, parallel};
use pgvet_linter::repository::RepositoryEvidence;
use pgvet_linter::row_counts::RowCounts;
use pgvet_linter::settings::Settings;
use pgvet_model::application::Application;
use pgvet_model::incident::Incident;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::predict::{self, StatementEffects};
use pgvet_model::runner::Runner;
use pgvet_syntax::source::{Position, SourceFile, TextRange};
use pgvet_syntax::statement::{ParsedFile, parse_file_again};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files and configuration to load.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Files and folders whose findings are reported; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// Files and folders that are replayed first.
    pub history: Vec<PathBuf>,
    /// A dump of the schema that was there before all of them.
    pub schema: Option<PathBuf>,
    /// The name that standard input has; its layout is detected from it.
    pub stdin_name: Option<String>,
    pub config: ConfigSource,
    /// Replay nothing but what is named.
    pub without_history: bool,
    /// Report only files that git calls changed.
    pub changes: Option<ChangeSelection>,
    /// The last migration that is not reported, of one or several folders; takes precedence over the configuration.
    pub start_after: Vec<String>,
    /// Texts that are not those on disk.
    pub texts: Texts,
    /// Whether standard input may be empty.
    pub allow_empty: bool,
    /// Files that are not migrations, besides those that the configuration excludes.
    pub exclude: Option<Patterns>,
    /// Whether files that are named are only reported if a request without paths would report them, too.
    pub force_exclude: bool,
    /// Whether [`Project::skipped`] lists what git ignores and what is in hidden folders, too.
    pub every_file: bool,
}

impl Request {
    /// Whether a file that was named by itself is judged after the others of its folder.
    pub(crate) fn replay_folder(&self) -> bool {
        !self.without_history && self.history.is_empty()
    }
}

/// Why a file is part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Baseline,
    /// Where a live database differs from the migrations before it. `everything`: nothing that it has is missing.
    Observed {
        everything: bool,
    },
    History,
    Reported,
}

impl Role {
    /// Whether a migration tool runs it.
    pub fn is_migration(self) -> bool {
        matches!(self, Self::History | Self::Reported)
    }
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
    /// Why it is not known when it runs among the others of its database; `None` if it is known.
    pub unknown_order: Option<UnknownOrder>,
    /// See [`Migration::in_production`].
    pub in_production: bool,
    /// Where it is.
    pub path: PathBuf,
    /// The nearest configuration.
    pub config: Arc<Config>,
    /// What git says about it, and what has happened to it since databases have applied migrations.
    pub(crate) past: Past,
    pub(crate) incidents: Vec<Incident>,
    /// Where a captured migration comes from.
    pub origin: Option<Origin>,
    /// What the repository shows about how it runs.
    pub evidence: RepositoryEvidence,
    /// What a database has answered to `pgvet precheck` about it.
    pub(crate) row_counts: RowCounts,
    /// The original text, if placeholders were replaced before it was parsed.
    pub(crate) original: Option<Box<Original>>,
}

/// A file before its placeholders were replaced.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) file: SourceFile,
    pub(crate) substitution: Substitution,
}

/// The files of a run in the order in which they are replayed.
#[derive(Debug, Default)]
pub struct Project {
    pub files: Vec<ProjectFile>,
    /// In the order of their numbers, which begin with 1.
    pub databases: Vec<Database>,
    /// Files and folders that could not be loaded.
    pub problems: Vec<Problem>,
    /// Notes for the reader of the report although nothing went wrong: files for another database that were found,
    /// and migrations that were deleted.
    pub notes: Vec<Problem>,
    /// Files with SQL that were found and are not checked.
    pub skipped: Vec<Skipped>,
    pub hiding: Hiding,
    /// What deployed code is known to run.
    pub application: Arc<Application>,
    /// Whether files were only read, to be parsed during the check.
    pub(crate) unread: bool,
    /// The cached results of each group; empty without a cache.
    pub(crate) warm: Vec<Warm>,
    /// What is around the files whose text was replaced.
    folders: Folders,
}

/// How the text of a file becomes statements.
type Parse = dyn Fn(&Texts, &Path, SourceFile) -> Arc<ParsedFile> + Sync;

impl Project {
    /// Reads and parses everything that the request names. Calls `progress` with the number of files done and of all.
    pub fn load(request: &Request, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Self, ConfigError> {
        Self::load_with(request, &Folders::default(), &Texts::parse, progress)
    }

    pub(crate) fn load_with(
        request: &Request,
        folders: &Folders,
        parse: &Parse,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, ConfigError> {
        let plan = Plan::new(request, folders)?;
        let hiding = plan.hiding(request);
        let Plan { sources, databases, mut problems, mut notes, mut skipped, texts, named, tools, .. } = plan;
        let texts = texts.as_ref().unwrap_or(&request.texts);
        let all = sources.len();
        let done = AtomicUsize::new(0);
        let load = |source: Source| {
            let found = source.found;
            let file = load_file(source, folders, texts, request.allow_empty, parse);
            let file = file.map(|file| {
                let purpose = (found && file.origin.is_none()).then(|| Purpose::of(&file));
                (file, purpose)
            });
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
            file
        };
        let (mut files, mut unloaded) = (Vec::with_capacity(all), Vec::new());
        for file in parallel::map(sources, load) {
            match file {
                Ok(file) => files.push(file),
                Err(file) => unloaded.push(file),
            }
        }
        let (mut files, foreign) = purpose::exclude(files, folders);
        let has_migrations = files.iter().any(|file| !purpose::is_script(file));
        for Unloaded { problem, stray } in unloaded {
            match stray.filter(|_| has_migrations) {
                Some(path) => {
                    notes.extend(named.is_none().then(|| notes::stray(&path)));
                    skipped.push(Skipped { path, reason: SkipReason::NoText });
                }
                None => problems.push(problem),
            }
        }
        problems.extend(files.iter().filter_map(|file| file.origin.as_ref()?.stale.clone()));
        known_order::compare_tools(&mut files, &databases);
        known_order::mark_production(&mut files, &databases);
        let locations = history::compare_versions(&mut files, folders.nearby());
        history::compare_sums(&mut files, texts);
        evidence::gather(&mut files, &request.paths, &tools, locations, folders);
        // Of a hook's files each is reported by itself.
        let copies = match named {
            Some(_) => Copies::default(),
            None => copies::exclude(&mut files, &databases, &request.paths),
        };
        notes.extend(copies.notes);
        skipped.extend(copies.skipped);
        notes.extend(named.is_none().then(|| notes::framework(&files, request)).flatten());
        // A hook gets notes about the files that it names only.
        notes.extend(foreign.note.filter(|_| named.is_none()));
        notes.extend(layout::stray::note(&files));
        notes.extend(evidence::notes(&files));
        notes.extend(evidence::limit_note(&files, folders));
        notes.extend(evidence::changelog_note(&files, folders));
        notes.extend(notes::foreign(&files));
        let is_checked = |file: &ProjectFile| file.role != Role::Baseline;
        let is_empty = !foreign.skipped.is_empty() && !files.iter().any(is_checked);
        skipped.extend(foreign.skipped);
        evidence::whole::mark(&mut files, &databases, request, &skipped, folders);
        if is_empty && request.changes.is_none() && !request.force_exclude && problems.is_empty() {
            let folder = request.paths.first().map_or(Path::new("."), PathBuf::as_path);
            problems.push(nothing_found(folder, &skipped));
        }
        if let Some(named) = named {
            named.narrow(&mut files, &mut skipped);
        }
        skipped.sort_by(|one, other| one.path.cmp(&other.path));
        let reported = files.iter().filter(|file| file.role == Role::Reported).map(|file| file.path.as_path());
        let queries = Queries::gather(reported, &skipped, texts);
        notes.extend(queries.notes);
        let application = Arc::new(queries.application);
        let (unread, warm, folders) = (false, Vec::new(), Folders::default());
        Ok(Self { files, databases, problems, notes, skipped, hiding, application, unread, warm, folders })
    }

    /// The input of the linter: each section of each file.
    pub fn migrations(&self) -> Vec<Migration<'_>> {
        self.files.iter().flat_map(ProjectFile::migrations).collect()
    }

    /// The effects of the statements of reported files: see [`predict::effects`].
    pub fn effects(&self, settings: &Settings) -> Vec<Vec<StatementEffects>> {
        let mut effects = predict::effects(&self.migrations(), settings.versions.to, &settings.functions);
        for (file, effects) in self.files_of_migrations().into_iter().zip(&mut effects) {
            effects.iter_mut().for_each(|effects| effects.statement = file.on_disk(effects.statement));
        }
        effects
    }

    /// The configuration of a database.
    pub fn config_of(&self, database: u32) -> Arc<Config> {
        let database = (database as usize).checked_sub(1).and_then(|at| self.databases.get(at));
        database.or(self.databases.first()).map(|database| database.config.clone()).unwrap_or_default()
    }

    /// Puts another text in place of that of the file with this index in [`Project::files`]; nothing is written.
    pub fn replace_text(&mut self, file: usize, text: String) {
        let Some(file) = self.files.get_mut(file) else { return };
        let source = Source {
            path: file.path.clone(),
            is_stdin: false,
            found: false,
            role: file.role,
            database: file.database,
            unknown_order: file.unknown_order,
            is_added: file.layout.release == Some(RELEASE_OF_ADDED),
            past: file.past.clone(),
            config: Arc::clone(&file.config),
        };
        let path = file.shown().path.clone();
        let previous = Arc::try_unwrap(std::mem::take(&mut file.parsed)).unwrap_or_default();
        let parse = |_: &Path, text| Arc::new(parse_file_again(text, previous).0);
        let (incidents, evidence) = (std::mem::take(&mut file.incidents), std::mem::take(&mut file.evidence));
        let in_production = file.in_production;
        let replaced =
            substituted(SourceFile::new(path, text), &file.config, &self.folders).unwrap_or_else(|text| (text, None));
        *file = project_file(replaced, file.encoding, source, &self.folders, parse);
        (file.incidents, file.evidence, file.in_production) = (incidents, evidence, in_production);
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

    /// The files with up migrations of a database.
    fn migrations_of(&self, database: u32) -> impl Iterator<Item = &ProjectFile> {
        let belongs = move |file: &&ProjectFile| file.database == database && file.role.is_migration();
        self.files.iter().filter(belongs).filter(|file| file.is_run())
    }

    /// How many files are reported on.
    pub fn reported_files(&self) -> usize {
        self.files.iter().filter(|file| file.role == Role::Reported && !file.layout.unlisted).count()
    }

    /// How many files were asked for and do not run, because the tool's own list does not name them.
    pub fn unlisted_files(&self) -> usize {
        self.files.iter().filter(|file| file.role == Role::Reported && file.layout.unlisted).count()
    }

    /// How many files were asked for and are only parsed, because their names are those of rollback migrations, although
    /// there is nothing that they roll back.
    pub fn rollback_files(&self) -> usize {
        let reported = self.files.iter().filter(|file| file.role == Role::Reported && !file.layout.unlisted);
        let mut lone = layout::stray::LoneRollbacks::default();
        reported.filter(|file| !file.is_removed() && lone.contain(file)).count()
    }

    /// How many migrations are replayed and not reported on.
    pub fn history_files(&self) -> usize {
        self.files.iter().filter(|file| file.role == Role::History).count()
    }

    /// The file of each of [`Project::migrations`].
    pub fn files_of_migrations(&self) -> Vec<&ProjectFile> {
        self.files.iter().flat_map(|file| file.layout.sections.iter().map(move |_| file)).collect()
    }
}

impl ProjectFile {
    /// Whether the tool runs a part of it as an up migration.
    pub fn is_run(&self) -> bool {
        self.layout.sections.iter().any(|section| section.direction == Direction::Up)
    }

    /// How the program that runs it goes on.
    fn runner(&self) -> Runner {
        let runner = self.layout.runner();
        let is_shared = self.origin.as_ref().is_some_and(|origin| origin.is_shared);
        Runner { one_transaction: runner.one_transaction || is_shared, ..runner }
    }

    /// Whether it only stands for a migration whose file is gone.
    pub fn is_removed(&self) -> bool {
        self.past.removed.is_some()
    }

    /// Whether nothing shows which program runs the file and others with versions, and configuration does not say in
    /// which transaction.
    pub fn has_unknown_runner(&self) -> bool {
        let is_recognized = self.layout.tool != Tool::Plain || self.layout.sign != Sign::None;
        !is_recognized && self.config.migrations.transaction.is_none() && order::is_versioned(&self.path)
    }

    /// The file as it is on disk: findings are about this text.
    pub fn shown(&self) -> &SourceFile {
        self.original.as_ref().map_or(&self.parsed.source, |original| &original.file)
    }

    /// The path to name to a person: of a captured migration, that of its source, or the name of a temporary file.
    pub fn named(&self) -> &str {
        let origin = self.origin.as_ref();
        let named = origin.and_then(|origin| origin.source.as_deref().or(origin.temporary_name.as_deref()));
        named.unwrap_or(&self.shown().path)
    }

    /// Where a range begins and ends in the file of [`Self::named`].
    pub fn positions(&self, range: TextRange) -> (Position, Position) {
        match self.origin.as_ref().filter(|origin| origin.source.is_some()) {
            Some(origin) => {
                let start = Position { line: origin.line(range) as u32, column: 1, offset: 0 };
                (start, start)
            }
            None => (self.shown().position(range.start), self.shown().position(range.end)),
        }
    }

    /// The file that a person changes: of a captured migration, its source.
    fn own_path(&self) -> PathBuf {
        let source = self.origin.as_ref().and_then(|origin| origin.source.as_ref());
        absolute(source.map_or(self.path.as_path(), Path::new))
    }

    /// Whether placeholders were replaced by the values of the configuration.
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

    /// Whether a user means this file by a name: its own, the end of its path, its folder, or its version.
    pub fn is_called(&self, name: &str) -> bool {
        order::is_called(&self.path, name)
    }

    /// Its path from the top of its repository; `None` if it is in none.
    pub fn repository_path(&self) -> Option<String> {
        let path = self.own_path();
        let mut repositories = Repositories::default();
        let root = repositories.around(path.parent()?)?;
        path.strip_prefix(root).ok().map(display)
    }

    pub(crate) fn stable_path_in(&self, repositories: &mut Repositories) -> String {
        let path = self.own_path();
        let repository = || repositories.around(path.parent()?);
        let root = self.config.root().filter(|root| path.starts_with(root)).or_else(repository);
        match root.and_then(|root| path.strip_prefix(root).ok()) {
            Some(relative) => display(relative),
            None => roots::shown(&path),
        }
    }

    pub(crate) fn sections(&self) -> impl Iterator<Item = Section> {
        self.layout.sections.iter().copied()
    }

    pub(crate) fn migrations(&self) -> impl Iterator<Item = Migration<'_>> {
        let is_script = !self.role.is_migration();
        let first_up = self.layout.sections.iter().position(|section| section.direction == Direction::Up);
        let first = first_up.unwrap_or_default();
        self.layout.sections.iter().enumerate().map(move |(at, section)| Migration {
            file: &self.parsed.source,
            parsed: &self.parsed.statements,
            section: section.range,
            direction: section.direction,
            transaction: section.transaction,
            strings: &self.layout.strings,
            // psql runs a dump.
            runner: if is_script { Runner::default() } else { self.runner() },
            first_schemas: if is_script { &[] } else { &self.layout.first_schemas },
            refusals: if Some(at) == first_up { &self.layout.refusals } else { &[] },
            incidents: if at == first { &self.incidents } else { &[] },
            report: self.role == Role::Reported,
            baseline: matches!(self.role, Role::Baseline | Role::Observed { everything: true }),
            ordered: self.unknown_order.is_none(),
            in_production: self.in_production,
            release: self.layout.release,
            captured: self.origin.is_some(),
            database: self.database,
        })
    }
}

fn replaced(text: SourceFile, source: &Source, folders: &Folders) -> Result<Replaced, Problem> {
    substituted(text, &source.config, folders).map_err(|_| {
        let message = format!("is larger than {} MiB with the values of its placeholders", MAX_SQL >> 20);
        Problem::new(&source.path, message, Some("give them shorter values in the configuration"))
    })
}

/// The SQL that pop sends for a file in fizz. Where that is not known, [`Layout::in_other_languages`] says so.
fn of_fizz(file: SourceFile) -> Replaced {
    let sql = fizz::to_sql(&file.text).unwrap_or_default();
    let substitution = Substitution::of_all(sql.len(), file.text.len());
    (SourceFile::new(file.path.clone(), sql), Some(Box::new(Original { file, substitution })))
}

/// A file that could not be read.
struct Unloaded {
    problem: Problem,
    /// Its path, if it is no text, was only found in a folder, and neither its name nor a tool makes it a migration.
    stray: Option<PathBuf>,
}

impl From<Problem> for Unloaded {
    fn from(problem: Problem) -> Self {
        Self { problem, stray: None }
    }
}

fn is_stray(source: &Source, folders: &Folders, texts: &Texts) -> bool {
    let is_listed = || {
        let layout = layout::detect(&source.path, "", folders, &source.config);
        layout.tool != Tool::Plain && !layout.unlisted
    };
    source.found && texts.is_binary(&source.path) && !order::is_versioned(&source.path) && !is_listed()
}

fn load_file(
    source: Source,
    folders: &Folders,
    texts: &Texts,
    allow_empty: bool,
    parse: &Parse,
) -> Result<ProjectFile, Unloaded> {
    let path = &source.path;
    if source.is_stdin {
        let (text, encoding) = texts.read_stdin(&path.to_string_lossy())?;
        if texts.stdin.is_none() && !allow_empty && text.text.trim().is_empty() {
            let help = "the command that writes it may have failed; use --allow-empty if it may print nothing";
            return Err(Problem::new(path, "is empty, so nothing was checked", Some(help)).into());
        }
        let replaced = replaced(text, &source, folders)?;
        return Ok(project_file(replaced, encoding, source, folders, |path, text| parse(texts, path, text)));
    }
    if source.past.removed.is_some() {
        let text = SourceFile::new(display(path), String::new());
        return Ok(project_file((text, None), None, source, folders, |path, text| parse(texts, path, text)));
    }
    let (text, encoding) = texts
        .read(path)
        .map_err(|problem| Unloaded { problem, stray: is_stray(&source, folders, texts).then(|| path.clone()) })?;
    let replaced = if fizz::is_fizz(path) { of_fizz(text) } else { replaced(text, &source, folders)? };
    Ok(project_file(replaced, encoding, source, folders, |path, text| parse(texts, path, text)))
}

/// Files that git calls new are released together. Releases that a tool knows are counted from 1.
const RELEASE_OF_ADDED: u32 = 0;

/// The text with the values of placeholders, and the file as it was if there are any.
type Replaced = (SourceFile, Option<Box<Original>>);

/// A text that was read, with its placeholders replaced before it is parsed.
pub(crate) fn project_file(
    replaced: Replaced,
    encoding: Option<EncodingError>,
    source: Source,
    folders: &Folders,
    parse: impl FnOnce(&Path, SourceFile) -> Arc<ParsedFile>,
) -> ProjectFile {
    let Source { path, role, database, unknown_order, is_added, past, config, .. } = source;
    let (text, original) = replaced;
    // The layout of a deleted file is that of the text that it had.
    let shown = past.before.as_deref().filter(|_| past.removed.is_some()).unwrap_or(&text.text);
    let mut layout = layout::detect(&path, shown, folders, &config);
    let origin = Origin::of(&path, shown, layout.tool, folders.captures());
    let is_foreign = origin.as_ref().is_some_and(Origin::is_foreign);
    let role = if role == Role::Reported && is_foreign { Role::History } else { role };
    let on_disk = original.as_ref().map_or(&text, |original| &original.file);
    let is_judged = role == Role::Reported && encoding.is_none();
    let incidents =
        if is_judged { history::incidents(&past, &path, &on_disk.text, &layout, folders, &config) } else { Vec::new() };
    if past.removed.is_some() {
        layout = layout.of_nothing();
    }
    if is_added && role == Role::Reported {
        layout.release = Some(RELEASE_OF_ADDED);
    }
    let unknown_order = known_order::of_file(unknown_order, &path, &layout);
    let parsed = parse(&path, text);
    ProjectFile {
        parsed,
        layout,
        role,
        encoding,
        database,
        unknown_order,
        in_production: true,
        path,
        config,
        past,
        incidents,
        origin,
        evidence: RepositoryEvidence::default(),
        row_counts: RowCounts::default(),
        original,
    }
}

/// Replaces the placeholders of a file.
///
/// # Errors
/// The file as it is, which would be larger than any file may be.
pub(crate) fn substituted(text: SourceFile, config: &Config, folders: &Folders) -> Result<Replaced, SourceFile> {
    let otherwise = layout::sent_otherwise(Path::new(&text.path), &text.text, folders, config);
    match substitute(&text.text, otherwise, &config.placeholders, MAX_SQL as usize) {
        Ok(None) => Ok((text, None)),
        Ok(Some((replaced, substitution))) => {
            let replaced = SourceFile::new(text.path.clone(), replaced);
            Ok((replaced, Some(Box::new(Original { file: text, substitution }))))
        }
        Err(TooLarge) => Err(text),
    }
}

#[cfg(test)]
mod tests;
