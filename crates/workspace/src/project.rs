//! The files of a run, read, split into statements and in the order in which they are replayed.

use crate::STACK_SIZE;
use crate::discovery::{Problem, files_at};
use crate::layout::{self, Folders, Layout};
use crate::read::{self, EncodingError};
use pgvet_linter::check::{self, Migration, ParsedFile};
use pgvet_linter::diagnostic::{Diagnostic, Severity};
use pgvet_linter::effect::Evidence;
use pgvet_linter::settings::Settings;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
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
    pub parsed: ParsedFile,
    pub layout: Layout,
    pub role: Role,
    pub encoding: Option<EncodingError>,
    /// Which database it belongs to: see [`Migration::database`].
    pub database: u32,
}

/// The files of a run in the order in which they are replayed.
#[derive(Debug, Default)]
pub struct Project {
    pub files: Vec<ProjectFile>,
    /// What could not be loaded.
    pub problems: Vec<Problem>,
}

/// A file that is to be read.
struct Source {
    /// `None` for standard input.
    path: Option<PathBuf>,
    role: Role,
    database: u32,
}

/// Below so many files, threads cost more than they save.
const PARALLEL_FROM: usize = 8;

impl Project {
    /// Reads and parses everything that the request names. Calls `progress` with the number of files done and of all.
    pub fn load(request: &Request, progress: &(dyn Fn(usize, usize) + Sync)) -> Self {
        let mut problems = Vec::new();
        let sources = sources(request, &mut problems);
        let stdin_name = request.stdin_name.as_deref().unwrap_or("<stdin>");
        let folders = Folders::default();
        let done = AtomicUsize::new(0);
        let load = |source: &Source| {
            let file = load_file(source, stdin_name, &folders);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, sources.len());
            file
        };
        let loaded: Vec<_> = if sources.len() >= PARALLEL_FROM {
            in_parallel(|| sources.par_iter().map(load).collect())
        } else {
            sources.iter().map(load).collect()
        };
        let mut files = Vec::with_capacity(loaded.len());
        for file in loaded {
            match file {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            }
        }
        Self { files, problems }
    }

    /// What the engine is given: each section of each file.
    pub fn migrations(&self) -> Vec<Migration<'_>> {
        self.files.iter().flat_map(ProjectFile::migrations).collect()
    }

    /// All findings, in the order of files. [`Diagnostic::file`] is an index into [`Project::migrations`].
    ///
    /// Databases have nothing to do with each other, so they are checked side by side.
    pub fn check(&self, settings: &Settings) -> Vec<Diagnostic> {
        let migrations = self.migrations();
        let databases: BTreeSet<u32> = migrations.iter().map(|migration| migration.database).collect();
        let groups: Vec<Vec<u32>> = databases
            .into_iter()
            .filter(|database| *database != 0 || migrations.iter().all(|migration| migration.database == 0))
            .map(|database| {
                let belongs = |migration: &Migration<'_>| migration.database == 0 || migration.database == database;
                let all = migrations.iter().enumerate();
                all.filter(|(_, migration)| belongs(migration)).map(|(index, _)| index as u32).collect()
            })
            .collect();
        let check_group = |group: &Vec<u32>| {
            let own: Vec<Migration<'_>> = group.iter().map(|index| migrations[*index as usize]).collect();
            let mut found = check::check(&own, settings);
            for diagnostic in &mut found {
                diagnostic.file = group[diagnostic.file as usize];
                diagnostic.labels.iter_mut().for_each(|label| label.file = group[label.file as usize]);
            }
            found
        };
        let mut found: Vec<Diagnostic> = match groups.as_slice() {
            [] => Vec::new(),
            [only] => check_group(only),
            many => in_parallel(|| many.par_iter().map(check_group).collect::<Vec<_>>()).concat(),
        };
        found.extend(self.encoding_diagnostics(settings));
        found.sort_by_key(|diagnostic| (diagnostic.file, diagnostic.range.start, diagnostic.range.end));
        found
    }

    /// How many files are reported on.
    pub fn reported_files(&self) -> usize {
        self.files.iter().filter(|file| file.role == Role::Reported).count()
    }

    /// Findings about the files themselves. [`Diagnostic::file`] is an index into [`Project::migrations`].
    fn encoding_diagnostics(&self, settings: &Settings) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        let mut index = 0;
        for file in &self.files {
            let sections = file.layout.sections.len();
            if let Some(error) = file.encoding.filter(|_| file.role == Role::Reported && sections > 0) {
                diagnostics.push(encoding_diagnostic(index, error, settings));
            }
            index += sections as u32;
        }
        diagnostics
    }
}

impl ProjectFile {
    fn migrations(&self) -> impl Iterator<Item = Migration<'_>> {
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

/// Runs work of rayon on threads whose stack is deep enough for the parser.
fn in_parallel<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().stack_size(STACK_SIZE).build() {
        Ok(pool) => pool.install(work),
        // Without threads of our own the present one has to do, as it does for few files.
        Err(_) => work(),
    }
}

/// The same for every spelling of a path.
fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn sources(request: &Request, problems: &mut Vec<Problem>) -> Vec<Source> {
    let mut reported = Vec::new();
    let mut seen = BTreeSet::new();
    let mut databases = Databases::default();
    for path in &request.paths {
        if path == Path::new("-") {
            reported.push(Source { path: None, role: Role::Reported, database: databases.of(Path::new("")) });
            continue;
        }
        let files = files_at(path, problems).into_iter().filter(|file| seen.insert(identity(file)));
        reported.extend(files.map(|file| {
            let database = databases.of(&migrations_root(path, &file));
            Source { path: Some(file), role: Role::Reported, database }
        }));
    }
    databases.merge_single(request, &mut reported);
    let schema = request.schema.iter();
    let mut all: Vec<Source> =
        schema.map(|path| Source { path: Some(path.clone()), role: Role::Baseline, database: 0 }).collect();
    all.extend(history(request, &reported, problems));
    all.extend(reported);
    all
}

/// Numbers the folders of migrations, from 1.
#[derive(Default)]
struct Databases {
    roots: Vec<PathBuf>,
}

impl Databases {
    fn of(&mut self, root: &Path) -> u32 {
        let at = self.roots.iter().position(|known| known == root).unwrap_or_else(|| {
            self.roots.push(root.to_owned());
            self.roots.len() - 1
        });
        at as u32 + 1
    }

    /// Files that are named one by one belong to one database, unless they come from several folders of migrations.
    fn merge_single(&self, request: &Request, reported: &mut [Source]) {
        let folders = request.paths.iter().any(|path| path.is_dir());
        let rooted = self.roots.iter().filter(|root| !root.as_os_str().is_empty()).count();
        if !folders && rooted <= 1 {
            reported.iter_mut().for_each(|source| source.database = 1);
        }
    }
}

/// Folder names under which tools keep the migrations of one database.
const MIGRATION_FOLDERS: [&str; 8] =
    ["migrations", "migration", "migrate", "drizzle", "deploy", "changelog", "updates", "delta"];

/// The folder that holds the migrations of one database: the outermost one below `given` that is named so. A folder
/// that was given is taken whole where there is none; files that were given one by one belong together.
fn migrations_root(given: &Path, file: &Path) -> PathBuf {
    let below = if given == file { file } else { file.strip_prefix(given).unwrap_or(file) };
    let folders = below.parent().map(|parent| parent.components().collect::<Vec<_>>()).unwrap_or_default();
    let is_root = |name: &std::ffi::OsStr| MIGRATION_FOLDERS.iter().any(|known| name.eq_ignore_ascii_case(known));
    match folders.iter().position(|folder| is_root(folder.as_os_str())) {
        Some(at) if given == file => folders[..=at].iter().collect(),
        Some(at) => given.join(folders[..=at].iter().collect::<PathBuf>()),
        None if given == file => PathBuf::new(),
        None => given.to_owned(),
    }
}

/// The files of the history. A folder that holds reported files too is history only up to the first of them.
fn history(request: &Request, reported: &[Source], problems: &mut Vec<Problem>) -> Vec<Source> {
    if request.history.is_empty() {
        return Vec::new();
    }
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let reported: BTreeSet<PathBuf> =
        reported.iter().filter_map(|source| source.path.as_deref()).map(identity).collect();
    let mut files = Vec::new();
    for path in &request.history {
        let before = files_at(path, problems).into_iter().take_while(|file| !reported.contains(&identity(file)));
        let new = before.filter(|file| seen.insert(identity(file)));
        files.extend(new.map(|file| Source { path: Some(file), role: Role::History, database: 0 }));
    }
    files
}

fn load_file(source: &Source, stdin_name: &str, folders: &Folders) -> Result<ProjectFile, Problem> {
    let (path, (text, encoding)) = match &source.path {
        Some(path) => (path.as_path(), read::read(path)?),
        None => (Path::new(stdin_name), read::read_stdin(stdin_name)?),
    };
    let layout = layout::detect(path, &text.text, folders);
    let parsed = check::parse_file(text);
    Ok(ProjectFile { parsed, layout, role: source.role, encoding, database: source.database })
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
        evidence: Evidence::Predicted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_linter::check::Direction;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(root.path().join(name), bytes).unwrap();
        }
        root
    }

    fn load(request: &Request) -> Project {
        Project::load(request, &|_, _| {})
    }

    fn names(project: &Project) -> Vec<(String, Role)> {
        let name = |file: &ProjectFile| file.parsed.source.path.rsplit('/').next().unwrap().to_owned();
        project.files.iter().map(|file| (name(file), file.role)).collect()
    }

    #[test]
    fn named_files_keep_their_order_and_count_once() {
        let root = folder(&[("1.sql", b""), ("2.sql", b"")]);
        let at = |name: &str| root.path().join(name);
        let project = load(&Request { paths: vec![at("2.sql"), at("1.sql"), at("2.sql")], ..Request::default() });
        assert_eq!(names(&project), [("2.sql".to_owned(), Role::Reported), ("1.sql".to_owned(), Role::Reported)]);
    }

    #[test]
    fn folders_of_migrations_are_databases_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a/migrations/1.sql", "a/migrations/2/up.sql", "b/migrations/1.sql"] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "SELECT 1;").unwrap();
        }
        let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
        assert_eq!(project.files.iter().map(|file| file.database).collect::<Vec<_>>(), [1, 1, 2]);
    }

    #[test]
    fn history_stops_before_what_is_reported() {
        let root = folder(&[("1.sql", b""), ("2.sql", b""), ("3.sql", b""), ("dump.txt", b"")]);
        let at = |name: &str| root.path().join(name);
        let project = load(&Request {
            paths: vec![at("2.sql")],
            history: vec![root.path().to_owned()],
            schema: Some(at("dump.txt")),
            ..Request::default()
        });
        let expected = [("dump.txt", Role::Baseline), ("1.sql", Role::History), ("2.sql", Role::Reported)];
        assert_eq!(names(&project), expected.map(|(name, role)| (name.to_owned(), role)));
        let migrations = project.migrations();
        assert_eq!(migrations.iter().map(|migration| migration.report).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn one_bad_file_does_not_stop_the_others() {
        let root = folder(&[("1.sql", b"SELECT 1;"), ("2.sql", b"-- \xff\n"), ("3.sql", b"\0")]);
        let mut paths = vec![root.path().to_owned()];
        paths.push(root.path().join("missing.sql"));
        let project = load(&Request { paths, ..Request::default() });
        let problems: Vec<_> = project.problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(problems, ["does not exist", "is no SQL text: byte 0 is NUL"]);
        assert_eq!(project.reported_files(), 2);
        let diagnostics = project.encoding_diagnostics(&Settings::default());
        assert_eq!(diagnostics.iter().map(|diagnostic| diagnostic.file).collect::<Vec<_>>(), [1]);
        assert!(diagnostics[0].message.starts_with("byte 3 is not UTF-8"), "{}", diagnostics[0].message);
    }

    #[test]
    fn sections_become_migrations_in_both_directions() {
        let root = folder(&[("1.sql", b"-- +goose Up\nSELECT 1;\n-- +goose Down\nSELECT 2;\n")]);
        let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
        let directions: Vec<_> = project.migrations().iter().map(|migration| migration.direction).collect();
        assert_eq!(directions, [Direction::Up, Direction::Down]);
    }

    #[test]
    fn many_files_are_read_in_parallel_in_order() {
        let files: Vec<(String, Vec<u8>)> =
            (1..=40).map(|n| (format!("{n}_x.sql"), format!("SELECT {n};").into())).collect();
        let borrowed: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (name.as_str(), text.as_slice())).collect();
        let root = folder(&borrowed);
        let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
        let expected: Vec<_> = files.iter().map(|(name, _)| (name.clone(), Role::Reported)).collect();
        assert_eq!(names(&project), expected);
    }
}
