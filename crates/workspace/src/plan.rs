//! Which files a run reads, in which order, and which of them it reports.

mod start_after;

use crate::config::{Config, ConfigError, Configs, Hiding, absolute};
use crate::discovery::{self, files_at};
use crate::git::{self, Change, Changes};
use crate::history::gone::{as_named_below, named_folders, note_on_deleted, stand_ins};
use crate::history::{self, Past};
use crate::identity::{Identities, identity};
use crate::known_order::UnknownOrder;
use crate::layout::{Folders, known_tool};
use crate::named::Named;
use crate::problem::Problem;
use crate::skipped::{self, Skip, SkipReason, Skipped};
use crate::texts::Texts;
use crate::{apart, fizz, framework, order, parallel, read, roots};
use rustc_hash::{FxHashMap, FxHashSet};
use start_after::StartAfter;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::project::{Request, Role};

/// The migrations of one database, in their folder.
#[derive(Debug, Clone)]
pub struct Database {
    /// Empty for files that were named by themselves and belong to no folder of migrations.
    pub root: PathBuf,
    pub config: Arc<Config>,
}

impl Database {
    /// The folder as it is shown.
    pub fn shown(&self) -> String {
        roots::shown(&self.root)
    }
}

/// A file that is to be read.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it is, or would be if it is read from standard input.
    pub(crate) path: PathBuf,
    pub(crate) is_stdin: bool,
    /// Whether it was found in a folder, and not named by itself.
    pub(crate) found: bool,
    pub(crate) role: Role,
    /// See [`pgvet_model::migration::Migration::database`].
    pub(crate) database: u32,
    /// Why its name does not show when it runs among the others; the tool may know.
    pub(crate) unknown_order: Option<UnknownOrder>,
    /// Whether git calls it new.
    pub(crate) is_added: bool,
    /// What git says about it.
    pub(crate) past: Past,
    pub(crate) config: Arc<Config>,
}

impl Source {
    /// A file that is named by itself.
    pub(crate) fn new(path: PathBuf, role: Role, config: Arc<Config>) -> Self {
        let past = Past::default();
        Self {
            path,
            is_stdin: false,
            found: false,
            role,
            database: 0,
            unknown_order: None,
            is_added: false,
            past,
            config,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) sources: Vec<Source>,
    /// In the order of their numbers, which begin with 1.
    pub(crate) databases: Vec<Database>,
    pub(crate) problems: Vec<Problem>,
    /// Other notes for the reader of the report.
    pub(crate) notes: Vec<Problem>,
    /// Files below the asked folders that are not checked.
    pub(crate) skipped: Vec<Skipped>,
    /// The texts of the run, if they are not those of the request: git's index has other ones.
    pub(crate) texts: Option<Texts>,
    /// The files that are reported; `None`: all that are in the run.
    pub(crate) named: Option<Named>,
    /// The folders whose migration tool is known for certain.
    pub(crate) tools: BTreeSet<known_tool::ToolFolder>,
    /// Migrations that the configuration does not want to be reported.
    pub(crate) before_start: usize,
    identities: Identities,
    /// The applied migrations that are gone and reported as findings.
    removed: BTreeSet<PathBuf>,
}

/// A file that the user asked for.
struct Asked {
    path: PathBuf,
    identity: PathBuf,
    is_stdin: bool,
    /// Whether it was named by itself, and not found in a folder.
    single: bool,
    /// Whether the configuration names it as a migration.
    is_included: bool,
    root: Option<PathBuf>,
    config: Arc<Config>,
}

impl Plan {
    pub(crate) fn new(request: &Request, folders: &Folders) -> Result<Self, ConfigError> {
        let configs = Configs::new(request.config.clone());
        let mut plan = Self::default();
        let (mut asked, named) = if request.force_exclude && !request.paths.is_empty() {
            let (asked, named) = plan.asked_among_all(request, &configs, folders)?;
            (asked, Some(named))
        } else {
            (plan.asked(request, &configs, folders)?, None)
        };
        plan.named = named;
        let found = asked.iter().filter(|file| !file.single).map(|file| (file.path.as_path(), &*file.config));
        plan.tools = known_tool::tool_folders(found, folders);
        let changes = request.changes.as_ref().map(|selection| git::changes(selection, &asked_folders(request)));
        let changes = match changes {
            None => None,
            Some(Ok(changes)) => Some(changes),
            Some(Err(problem)) => {
                plan.problems.push(problem);
                return Ok(plan);
            }
        };
        if let Some(changes) = &changes {
            let is_changed = |file: &Skipped| changes.of(&plan.identities.of(&file.path)).is_some();
            plan.skipped.retain(is_changed);
            asked.retain(|file| !changes.is_unknown_to_index(&file.identity));
            asked.extend(only_staged(changes, &asked, request, &configs, folders)?);
            let staged = changes.index();
            plan.texts = (!staged.is_empty()).then(|| request.texts.with_staged(staged.clone()));
        }
        plan.group(request, asked, changes.as_ref(), folders);
        if let Some(changes) = &changes {
            let note = note_on_deleted(changes, &named_folders(&asked_folders(request)), &configs, &plan.removed)?;
            plan.notes.extend(note);
        }
        Ok(plan)
    }

    /// The files that the paths of the request stand for.
    fn asked(&mut self, request: &Request, configs: &Configs, folders: &Folders) -> Result<Vec<Asked>, ConfigError> {
        let mut asked: Vec<Asked> = Vec::new();
        let mut seen = FxHashSet::default();
        let look = |path: PathBuf| look(&path, request, configs, folders, &self.identities);
        for found in parallel::map(paths(request, configs)?, look) {
            let mut found = found?;
            if request.paths.is_empty() {
                found.problems.iter_mut().for_each(say_who_named);
            }
            self.problems.extend(found.problems);
            self.skipped.extend(found.skipped);
            asked.extend(found.asked.into_iter().filter(|file| file.is_stdin || seen.insert(file.identity.clone())));
        }
        Ok(asked)
    }

    /// All files that a request without paths stands for, and which of them this one names.
    fn asked_among_all(
        &mut self,
        request: &Request,
        configs: &Configs,
        folders: &Folders,
    ) -> Result<(Vec<Asked>, Named), ConfigError> {
        let all = Request { paths: Vec::new(), ..request.clone() };
        let asked = self.asked(&all, configs, folders)?;
        if asked.is_empty() {
            // That there is nothing to check is no problem of a hook.
            self.problems.clear();
        }
        let named = Named::new(&request.paths, &mut self.problems);
        Ok((asked, named))
    }

    /// What configuration hides of the run.
    pub(crate) fn hiding(&self, request: &Request) -> Hiding {
        let configs = || self.databases.iter().map(|database| &*database.config);
        let only_paths = request.paths.is_empty() && configs().any(|config| !config.migrations.paths.is_empty());
        Hiding { before_start: self.before_start, only_paths, ..Hiding::count(configs()) }
    }

    /// Puts the files of each database together, with their history.
    fn group(&mut self, request: &Request, mut asked: Vec<Asked>, changes: Option<&Changes>, folders: &Folders) {
        // Files that were named one by one belong to one database, unless they come from several folders.
        let rooted: BTreeSet<&PathBuf> = asked.iter().filter_map(|file| file.root.as_ref()).collect();
        let one_sequence = rooted.len() <= 1
            && asked.iter().all(|file| file.single)
            && (!request.replay_folder() || asked.iter().any(|file| file.root.is_none()));
        if one_sequence {
            asked.iter_mut().for_each(|file| file.root = None);
        }
        set_apart(&mut asked, folders);
        let mut groups: Vec<(Option<PathBuf>, Vec<Asked>)> = Vec::new();
        for file in asked {
            match groups.iter_mut().find(|(root, _)| *root == file.root) {
                Some((_, files)) => files.push(file),
                None => groups.push((file.root.clone(), vec![file])),
            }
        }
        let reported: FxHashSet<PathBuf> =
            groups.iter().flat_map(|(_, files)| files).map(|file| file.identity.clone()).collect();
        let shared = groups.first().map(|(_, files)| files[0].config.clone()).unwrap_or_default();
        self.shared_history(request, &reported, &shared);
        let mut start_after = StartAfter::default();
        for (root, files) in groups {
            self.database(request, root, files, changes, folders, &mut start_after);
        }
        if request.start_after.is_empty() {
            self.before_start = start_after.hidden();
        }
        self.problems.extend(start_after.problems(request));
    }

    fn shared_history(&mut self, request: &Request, reported: &FxHashSet<PathBuf>, config: &Arc<Config>) {
        let source = |path, role| Source::new(path, role, config.clone());
        self.sources.extend(request.schema.iter().map(|path| source(path.clone(), Role::Baseline)));
        let mut seen: FxHashSet<PathBuf> = FxHashSet::default();
        for path in &request.history {
            // A folder that holds reported files too is history only up to the first of them.
            let files = files_at(path, &self.identities, &mut self.problems);
            let identities = &self.identities;
            let before = files.into_iter().take_while(|file| !reported.contains(&identities.of(file)));
            let new = before.filter(|file| seen.insert(identities.of(file)));
            self.sources.extend(new.map(|file| source(file, Role::History)));
        }
    }

    fn database(
        &mut self,
        request: &Request,
        root: Option<PathBuf>,
        files: Vec<Asked>,
        changes: Option<&Changes>,
        folders: &Folders,
        start_after: &mut StartAfter,
    ) {
        let config = files[0].config.clone();
        let database = self.databases.len() as u32 + 1;
        let is_complete = !files.iter().any(|file| file.single);
        let mut sources: Vec<Source> = files
            .into_iter()
            .map(|file| {
                let change = changes.map(|changes| changes.of(&file.identity));
                let role = if change == Some(None) { Role::History } else { Role::Reported };
                let is_added = change == Some(Some(Change::Added));
                let source = Source::new(file.path, role, file.config);
                let found = !file.single && !file.is_included;
                Source { is_stdin: file.is_stdin, found, database, is_added, ..source }
            })
            .collect();
        if let Some(root) = root.as_ref().filter(|_| !is_complete && request.replay_folder()) {
            sources = with_history(sources, root, request, folders, &self.identities);
        }
        if root.is_some() {
            add_fizz(&mut sources, &self.identities);
            mark_unversioned(&mut sources);
        }
        let removed = match changes {
            Some(changes) => {
                history::mark(&mut sources, changes, &self.identities);
                let gone = stand_ins(&sources, changes, &named_folders(&asked_folders(request)), &self.identities);
                let (removed, paths): (Vec<Source>, Vec<Vec<PathBuf>>) = gone.into_iter().unzip();
                self.removed.extend(paths.into_iter().flatten());
                removed
            }
            None => Vec::new(),
        };
        let asked = request.start_after.as_slice();
        let wanted = if asked.is_empty() { &config.migrations.start_after } else { asked };
        start_after.apply(wanted, &mut sources, is_complete);
        // What runs after the last reported file has no part in it.
        let end = sources.iter().rposition(|source| source.role == Role::Reported).map_or(0, |at| at + 1);
        sources.truncate(end);
        if let Some(schema) = config.migrations.schema.as_ref().filter(|_| request.schema.is_none() && end > 0) {
            let baseline = Source::new(schema.clone(), Role::Baseline, config.clone());
            self.sources.push(Source { database, ..baseline });
        }
        self.sources.extend(sources);
        self.sources.extend(removed);
        self.databases.push(Database { root: root.unwrap_or_default(), config });
    }
}

/// Gives the files of folders that hold databases of their own roots of their own, unless configuration or a list of the
/// tool says where one database is.
fn set_apart(asked: &mut [Asked], folders: &Folders) {
    let is_open = |file: &&Asked| {
        !file.single && file.config.folder_of(&file.path).is_none() && folders.around(&file.path).root().is_none()
    };
    let roots: BTreeSet<PathBuf> = asked.iter().filter(is_open).filter_map(|file| file.root.clone()).collect();
    for root in roots {
        let is_inside = |file: &&Asked| is_open(file) && file.root.as_ref() == Some(&root);
        let paths: Vec<PathBuf> = asked.iter().filter(is_inside).map(|file| file.path.clone()).collect();
        let config = asked.iter().find(is_inside).map(|file| Arc::clone(&file.config)).unwrap_or_default();
        let own = apart::databases(&root, &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>(), folders, &config);
        let mut own: FxHashMap<PathBuf, PathBuf> =
            paths.into_iter().zip(own).filter_map(|(path, own)| Some((path, own?))).collect();
        for file in asked.iter_mut() {
            if let Some(own) = own.remove(&file.path) {
                file.root = Some(own);
            }
        }
    }
}

/// Adds the migrations in fizz beside those in SQL, as history: they make tables that the others change.
fn add_fizz(sources: &mut Vec<Source>, identities: &Identities) {
    let folders: BTreeSet<&Path> = sources.iter().filter_map(|source| source.path.parent()).collect();
    let paths: Vec<PathBuf> = folders.into_iter().flat_map(fizz::migrations_in).collect();
    let Some(first) = sources.first().filter(|_| !paths.is_empty()) else { return };
    let (database, config) = (first.database, Arc::clone(&first.config));
    let source = |path| Source { database, ..Source::new(path, Role::History, Arc::clone(&config)) };
    let added: Vec<Source> = paths.into_iter().map(source).collect();
    sources.extend(added);
    order::sort_by(sources, |source| identities.of(&source.path));
}

/// Marks the files without a version in their names, unless there is only one file.
fn mark_unversioned(sources: &mut [Source]) {
    if sources.len() > 1 {
        let unversioned = sources.iter_mut().filter(|source| !order::is_versioned(&source.path));
        unversioned.for_each(|source| source.unknown_order = Some(UnknownOrder::NoVersion));
    }
}

/// The reported files among all of their folder, in the order of the tool.
fn with_history(
    reported: Vec<Source>,
    root: &Path,
    request: &Request,
    folders: &Folders,
    identities: &Identities,
) -> Vec<Source> {
    let (database, config) = (reported[0].database, reported[0].config.clone());
    let known: FxHashSet<PathBuf> = reported.iter().map(|source| identities.of(&source.path)).collect();
    let mut all = reported;
    // What is wrong with the folder itself is not what was asked for.
    let found = discovery::search(root, identities, &mut Vec::new());
    let databases = if config.folder_of(root).is_some() || folders.around(&root.join("x")).root().is_some() {
        vec![None; found.len()]
    } else {
        let paths: Vec<&Path> = found.iter().map(|found| found.path.as_path()).collect();
        apart::databases(root, &paths, folders, &config)
    };
    let own = found.iter().zip(&databases).find(|(found, _)| known.contains(&identities.of(&found.path)));
    let own = own.and_then(|(_, database)| database.clone());
    for (found, _) in found.into_iter().zip(databases).filter(|(_, database)| *database == own) {
        let verdict = verdict(&found.path, found.skip.as_ref(), request, &config, folders);
        if let Ok(is_included) = verdict
            && !known.contains(&identities.of(&found.path))
        {
            let source = Source::new(found.path, Role::History, config.clone());
            all.push(Source { found: !is_included, database, ..source });
        }
    }
    order::sort_by(&mut all, |source| identities.of(&source.path));
    all
}

/// Returns whether the configuration includes a file of a folder that is a migration, or why it is none. What the tool's
/// own list names is a migration, however its folders are called.
fn verdict(
    path: &Path,
    skip: Option<&Skip>,
    request: &Request,
    config: &Config,
    folders: &Folders,
) -> Result<bool, SkipReason> {
    if config.is_excluded(path) || request.exclude.as_ref().is_some_and(|patterns| patterns.matches(path)) {
        return Err(SkipReason::Excluded);
    }
    if config.is_included(path) {
        return Ok(true);
    }
    match skip {
        Some(skip) if !is_listed(path, skip, folders) => Err(skip.reason),
        _ => Ok(false),
    }
}

/// Whether a list of the migration tool names a file that is skipped because of a name below the folder of the list.
fn is_listed(path: &Path, skip: &Skip, folders: &Folders) -> bool {
    let is_below = |root: &Path| {
        let root = absolute(root);
        skip.folder.as_ref().is_none_or(|folder| absolute(folder).parent().is_some_and(|at| at.starts_with(&root)))
    };
    folders.around(path).list_with(path).is_some_and(|root| is_below(&root))
}

/// The paths that a request without paths means.
fn paths(request: &Request, configs: &Configs) -> Result<Vec<PathBuf>, ConfigError> {
    if !request.paths.is_empty() {
        return Ok(request.paths.clone());
    }
    let current = absolute(Path::new(""));
    let configured = &configs.of(&current)?.migrations.paths;
    if configured.is_empty() {
        return Ok(vec![PathBuf::from(".")]);
    }
    let relative = |path: &PathBuf| path.strip_prefix(&current).map_or_else(|_| path.clone(), Path::to_owned);
    Ok(configured
        .iter()
        .map(relative)
        .map(|path| if path.as_os_str().is_empty() { ".".into() } else { path })
        .collect())
}

/// Says that the configuration names a path that does not exist: the request names none.
fn say_who_named(problem: &mut Problem) {
    if !Path::new(&problem.path).exists() {
        let help = "`[migrations] paths` in pgvet.toml names it; the path is relative to that file";
        problem.help = Some(help.to_owned());
    }
}

/// Help for a migration that is a program.
const SQL_OF_PROGRAM: &str = "check the SQL that it sends: `pgvet capture -- COMMAND`";

/// The files of one path of the request.
#[derive(Default)]
struct Found {
    asked: Vec<Asked>,
    skipped: Vec<Skipped>,
    problems: Vec<Problem>,
}

fn look(
    path: &Path,
    request: &Request,
    configs: &Configs,
    folders: &Folders,
    identities: &Identities,
) -> Result<Found, ConfigError> {
    if path == Path::new("-") {
        return Ok(Found { asked: vec![stdin(request, configs, folders)?], ..Found::default() });
    }
    let mut found = Found::default();
    if let Some(language) = skipped::language(path).filter(|_| path.is_file()) {
        let help = framework::around(path.parent().unwrap_or(path))
            .filter(|found| found.framework.has_programs())
            .map_or_else(|| SQL_OF_PROGRAM.to_owned(), |found| found.help());
        found.problems.push(Problem::new(path, format!("is a program in {language}, not SQL"), Some(&help)));
        return Ok(found);
    }
    let files = discovery::search(path, identities, &mut found.problems);
    let is_folder = files.first().is_none_or(|first| first.path != path);
    let unseen = if is_folder && found.problems.is_empty() {
        unseen(path, &files, request, &*configs.of(path)?, identities)
    } else {
        Vec::new()
    };
    for (file, skip) in files.into_iter().map(|file| (file.path, file.skip)).chain(unseen) {
        let config = configs.of(file.parent().unwrap_or(Path::new("")))?;
        // The baseline is not a migration that follows itself.
        if is_folder && config.migrations.schema.as_ref().is_some_and(|schema| identity(schema) == identities.of(&file))
        {
            continue;
        }
        let verdict = verdict(&file, skip.as_ref(), request, &config, folders);
        let verdict = verdict.and_then(|is_included| {
            if is_folder && is_outside(&config, path, &file) { Err(SkipReason::OutsidePaths) } else { Ok(is_included) }
        });
        let is_included = match verdict {
            Ok(is_included) => is_included,
            Err(reason) => {
                found.skipped.push(Skipped { path: file, reason });
                continue;
            }
        };
        let root = if is_folder {
            Some(roots::below(path, &file, folders, &config))
        } else {
            let text = || read::whole(&file).map_or(Cow::Borrowed(""), Cow::Owned);
            roots::of_single(&file, text, folders, &config)
        };
        let identity = identities.of(&file);
        found.asked.push(Asked {
            path: file,
            identity,
            is_stdin: false,
            single: !is_folder,
            is_included,
            root,
            config,
        });
    }
    order::sort_by(&mut found.asked, |asked| asked.path.clone());
    if is_folder && found.asked.is_empty() && found.problems.is_empty() {
        found.problems.push(nothing_found(path, &found.skipped));
    }
    Ok(found)
}

/// The files that git ignores, as far as anybody asks for them, and those in hidden folders that it tracks.
fn unseen(
    path: &Path,
    seen: &[discovery::Found],
    request: &Request,
    config: &Config,
    identities: &Identities,
) -> Vec<(PathBuf, Option<Skip>)> {
    let seen_paths: FxHashSet<&Path> = seen.iter().map(|found| found.path.as_path()).collect();
    let mut hidden = discovery::tracked_hidden(path);
    hidden.retain(|file| !seen_paths.contains(file.as_path()));
    let unseen: Vec<(PathBuf, SkipReason)> = if request.every_file || config.has_includes() {
        let unseen = discovery::unseen(path, seen, identities).into_iter();
        unseen.filter(|(file, _)| request.every_file || config.is_included(file) || hidden.contains(file)).collect()
    } else {
        hidden.into_iter().map(|file| (file, SkipReason::Hidden)).collect()
    };
    let skip = |reason| Some(Skip { reason, folder: None, is_fallback: false });
    unseen.into_iter().map(|(file, reason)| (file, skip(reason))).collect()
}

/// A folder without files to check: says what was skipped, and what prints the SQL of a framework.
pub(crate) fn nothing_found(folder: &Path, skipped: &[Skipped]) -> Problem {
    let message = match skipped.len() {
        0 => "has no SQL files to check".to_owned(),
        count => format!("has no SQL files to check ({count} skipped: {})", skipped_by_reason(skipped)),
    };
    let help = match framework::around(folder) {
        Some(found) => found.help(),
        None if skipped.is_empty() => "name a folder or file with `.sql` migrations".to_owned(),
        None => "name a file to check it, or use `include` under [migrations] in pgvet.toml; \
                 `pgvet config --files` lists every file"
            .to_owned(),
    };
    Problem::new(folder, message, Some(&help))
}

/// Returns how many files are skipped for which reason: "2 for tests, 1 for another database system".
pub fn skipped_by_reason(skipped: &[Skipped]) -> String {
    let mut counts: BTreeMap<SkipReason, usize> = BTreeMap::new();
    skipped.iter().for_each(|file| *counts.entry(file.reason).or_default() += 1);
    let reasons: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {}", reason.describe())).collect();
    reasons.join(", ")
}

/// Whether the file is outside of the configured folders of migrations, although some of them are below `given`.
fn is_outside(config: &Config, given: &Path, file: &Path) -> bool {
    let given = absolute(given);
    config.folder_of(file).is_none() && config.migrations.paths.iter().any(|folder| folder.starts_with(&given))
}

fn stdin(request: &Request, configs: &Configs, folders: &Folders) -> Result<Asked, ConfigError> {
    let path = PathBuf::from(request.stdin_name.as_deref().unwrap_or("<stdin>"));
    let config = configs.of(path.parent().unwrap_or(Path::new("")))?;
    let text = || Cow::Borrowed(request.texts.stdin.as_deref().unwrap_or_default());
    let root = request.stdin_name.as_ref().and_then(|_| roots::of_single(&path, text, folders, &config));
    Ok(Asked { identity: identity(&path), path, is_stdin: true, single: true, is_included: false, root, config })
}

/// Folders in the repositories that are asked for changes.
fn asked_folders(request: &Request) -> BTreeSet<PathBuf> {
    let folder = |path: &PathBuf| {
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
    };
    let folders: BTreeSet<PathBuf> = request.paths.iter().map(folder).collect();
    if folders.is_empty() { BTreeSet::from([PathBuf::from(".")]) } else { folders }
}

/// Files that only the next commit holds: they are not on disk, so no walk finds them.
fn only_staged(
    changes: &Changes,
    known: &[Asked],
    request: &Request,
    configs: &Configs,
    folders: &Folders,
) -> Result<Vec<Asked>, ConfigError> {
    let named = named_folders(&asked_folders(request));
    let mut found = Vec::new();
    let is_new = |path: &PathBuf| !path.exists() && changes.of(path).is_some();
    let is_sql = |path: &PathBuf| skipped::is_sql(&path.to_string_lossy());
    for identity in changes.staged_texts().into_keys().filter(|path| is_sql(path) && is_new(path)) {
        let Some((path, folder)) = as_named_below(&identity, &named) else { continue };
        let config = configs.of(path.parent().unwrap_or(Path::new("")))?;
        let skip = skipped::Names::default().skip(&folder, &path);
        let is_known = known.iter().any(|file| file.identity == identity);
        if let Ok(is_included) = verdict(&path, skip.as_ref(), request, &config, folders)
            && !is_known
        {
            let root = Some(roots::below(&folder, &path, folders, &config));
            found.push(Asked { path, identity, is_stdin: false, single: false, is_included, root, config });
        }
    }
    Ok(found)
}
