//! Which files a run reads, in which order, and which of them it reports.

use crate::config::{Config, ConfigError, Configs, absolute};
use crate::discovery::{Problem, files_at};
use crate::git::{self, Change, Changes};
use crate::identity::{Identities, identity};
use crate::known_order::UnknownOrder;
use crate::layout::Folders;
use crate::{order, parallel, read, roots};
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::collections::BTreeSet;
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
    /// Where it is, or would be: standard input stands for it where `is_stdin`.
    pub(crate) path: PathBuf,
    pub(crate) is_stdin: bool,
    /// Was it found in a folder, and not named by itself?
    pub(crate) found: bool,
    pub(crate) role: Role,
    /// See [`pgvet_linter::check::Migration::database`].
    pub(crate) database: u32,
    /// Why its name does not show when it runs among the others; the tool may know.
    pub(crate) unknown_order: Option<UnknownOrder>,
    /// Whether git calls it new.
    pub(crate) is_added: bool,
    pub(crate) config: Arc<Config>,
}

impl Source {
    /// A file that is named by itself.
    fn new(path: PathBuf, role: Role, config: Arc<Config>) -> Self {
        Self { path, is_stdin: false, found: false, role, database: 0, unknown_order: None, is_added: false, config }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) sources: Vec<Source>,
    /// In the order of their numbers, which begin with 1.
    pub(crate) databases: Vec<Database>,
    pub(crate) problems: Vec<Problem>,
    identities: Identities,
}

/// A file that the user asked for.
struct Asked {
    path: PathBuf,
    identity: PathBuf,
    is_stdin: bool,
    /// Was it named by itself, and not found in a folder?
    single: bool,
    root: Option<PathBuf>,
    config: Arc<Config>,
}

impl Plan {
    pub(crate) fn new(request: &Request, folders: &Folders) -> Result<Self, ConfigError> {
        let configs = Configs::new(request.config.clone());
        let mut plan = Self::default();
        let asked = plan.asked(request, &configs, folders)?;
        let changes = request.changes.as_ref().map(|selection| git::changes(selection, &asked_folders(request)));
        let changes = match changes {
            None => None,
            Some(Ok(changes)) => Some(changes),
            Some(Err(problem)) => {
                plan.problems.push(problem);
                return Ok(plan);
            }
        };
        plan.group(request, asked, changes.as_ref());
        Ok(plan)
    }

    /// The files that the paths of the request stand for.
    fn asked(&mut self, request: &Request, configs: &Configs, folders: &Folders) -> Result<Vec<Asked>, ConfigError> {
        let mut asked: Vec<Asked> = Vec::new();
        let mut seen = FxHashSet::default();
        let look = |path: PathBuf| look(&path, request, configs, folders, &self.identities);
        for found in parallel::map(paths(request, configs)?, look) {
            let found = found?;
            self.problems.extend(found.problems);
            asked.extend(found.asked.into_iter().filter(|file| file.is_stdin || seen.insert(file.identity.clone())));
        }
        Ok(asked)
    }

    /// Puts the files of each database together, with their history.
    fn group(&mut self, request: &Request, mut asked: Vec<Asked>, changes: Option<&Changes>) {
        // Files that were named one by one belong to one database, unless they come from several folders.
        let rooted: BTreeSet<&PathBuf> = asked.iter().filter_map(|file| file.root.as_ref()).collect();
        let one_sequence = rooted.len() <= 1
            && asked.iter().all(|file| file.single)
            && (!request.replay_folder() || asked.iter().any(|file| file.root.is_none()));
        if one_sequence {
            asked.iter_mut().for_each(|file| file.root = None);
        }
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
            self.database(request, root, files, changes, &mut start_after);
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
                Source { is_stdin: file.is_stdin, found: !file.single, database, is_added, ..source }
            })
            .collect();
        if let Some(root) = root.as_ref().filter(|_| !is_complete && request.replay_folder()) {
            sources = with_history(sources, root, &self.identities);
        }
        if root.is_some() {
            mark_unversioned(&mut sources);
        }
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
        self.databases.push(Database { root: root.unwrap_or_default(), config });
    }
}

/// Marks the files without a version in their names, unless there is only one file.
fn mark_unversioned(sources: &mut [Source]) {
    if sources.len() > 1 {
        let unversioned = sources.iter_mut().filter(|source| !order::is_versioned(&source.path));
        unversioned.for_each(|source| source.unknown_order = Some(UnknownOrder::NoVersion));
    }
}

/// The reported files among all of their folder, in the order of the tool.
fn with_history(reported: Vec<Source>, root: &Path, identities: &Identities) -> Vec<Source> {
    let (database, config) = (reported[0].database, reported[0].config.clone());
    let known: FxHashSet<PathBuf> = reported.iter().map(|source| identities.of(&source.path)).collect();
    let mut all = reported;
    // What is wrong with the folder itself is not what was asked for.
    for file in files_at(root, identities, &mut Vec::new()) {
        if !known.contains(&identities.of(&file)) && !config.is_excluded(&file) {
            let config = config.clone();
            all.push(Source { found: true, database, ..Source::new(file, Role::History, config) });
        }
    }
    order::sort_by(&mut all, |source| identities.of(&source.path));
    all
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

/// What one path of the request stands for.
#[derive(Default)]
struct Found {
    asked: Vec<Asked>,
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
    let files = files_at(path, identities, &mut found.problems);
    let is_folder = files.first().is_some_and(|first| first != path);
    for file in files {
        let config = configs.of(file.parent().unwrap_or(Path::new("")))?;
        if config.is_excluded(&file) || (is_folder && is_outside(&config, path, &file)) {
            continue;
        }
        let root = if is_folder {
            Some(roots::below(path, &file, folders, &config))
        } else {
            let text = || read::whole(&file).map_or(Cow::Borrowed(""), Cow::Owned);
            roots::of_single(&file, text, folders, &config)
        };
        let identity = identities.of(&file);
        found.asked.push(Asked { path: file, identity, is_stdin: false, single: !is_folder, root, config });
    }
    Ok(found)
}

/// Is the file outside of the configured folders of migrations, although some of them are below `given`?
fn is_outside(config: &Config, given: &Path, file: &Path) -> bool {
    let given = absolute(given);
    config.folder_of(file).is_none() && config.migrations.paths.iter().any(|folder| folder.starts_with(&given))
}

fn stdin(request: &Request, configs: &Configs, folders: &Folders) -> Result<Asked, ConfigError> {
    let path = PathBuf::from(request.stdin_name.as_deref().unwrap_or("<stdin>"));
    let config = configs.of(path.parent().unwrap_or(Path::new("")))?;
    let text = || Cow::Borrowed(request.texts.stdin.as_deref().unwrap_or_default());
    let root = request.stdin_name.as_ref().and_then(|_| roots::of_single(&path, text, folders, &config));
    Ok(Asked { identity: identity(&path), path, is_stdin: true, single: true, root, config })
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

/// Looks for the migrations after which findings count.
#[derive(Default)]
struct StartAfter {
    found: BTreeSet<String>,
    /// Names that were looked for in vain in some folder.
    missed: BTreeSet<String>,
}

impl StartAfter {
    /// Turns everything up to the last of the wanted migrations into history.
    fn apply(&mut self, wanted: &[String], sources: &mut [Source], is_complete: bool) {
        for name in wanted {
            match sources.iter().rposition(|source| order::is_called(&source.path, name)) {
                Some(at) => {
                    self.found.insert(name.clone());
                    sources[..=at].iter_mut().for_each(|source| source.role = Role::History);
                }
                None if is_complete => drop(self.missed.insert(name.clone())),
                None => {}
            }
        }
    }

    /// Where several folders were read, each name is that of a migration in one of them.
    fn problems(self, request: &Request) -> impl Iterator<Item = Problem> {
        let origin = if request.start_after.is_empty() { "start-after in pgvet.toml" } else { "--start-after" };
        let help = "write the file name, the path or the version of a migration, as in `0041_add_users.sql` or `0041`";
        let missed: Vec<String> = self.missed.difference(&self.found).cloned().collect();
        let message = format!("({origin}) is none of the migrations");
        missed.into_iter().map(move |name| Problem::new(Path::new(&name), message.clone(), Some(help)))
    }
}
