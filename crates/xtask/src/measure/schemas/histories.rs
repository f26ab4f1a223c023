//! The histories of the fixtures: those of rules, and the sample projects of migration tools.

use crate::measure::tools::{Address, Declaration, Installed, cases};
use crate::measure::{fixtures, read};
use pgvet_model::migration::{Direction, Migration, TransactionMode};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_workspace::config::ConfigSource;
use pgvet_workspace::{Project, Request};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Migrations of one database.
pub(super) struct History {
    pub(super) name: String,
    source: Origin,
    /// How many of its migrations are run; all if it is missing.
    until: Option<usize>,
}

enum Origin {
    /// The sections of a fixture, each statement of which runs by itself.
    Fixture(Vec<ParsedFile>),
    /// One that cannot be run as it is, and why.
    Unusable(String),
    /// A database of a project, whose migrations its tool would run.
    Project {
        project: Arc<Project>,
        database: u32,
        #[expect(dead_code, reason = "the folder lives as long as the project")]
        folder: Option<TempDir>,
    },
}

impl Origin {
    /// The migrations of a project.
    fn own(&self) -> Vec<Migration<'_>> {
        let Self::Project { project, database, .. } = self else { return Vec::new() };
        let mut own = project.migrations();
        own.retain(|one| one.direction == Direction::Up && (one.database == 0 || one.database == *database));
        own
    }
}

impl History {
    /// Of a project that cannot be read.
    pub(super) fn unreadable(project: &str, why: String) -> Self {
        Self { name: project.to_owned(), source: Origin::Unusable(why), until: None }
    }

    /// Only the first migrations of it.
    pub(super) fn up_to(self, count: usize) -> Self {
        Self { until: Some(count), ..self }
    }

    /// Why nothing of it is run.
    pub(super) fn unusable(&self) -> &str {
        match &self.source {
            Origin::Unusable(why) => why,
            _ => "it has no migrations",
        }
    }

    pub(super) fn migrations(&self, database: u32) -> Vec<Migration<'_>> {
        let mut migrations = self.all_migrations(database);
        migrations.truncate(self.until.unwrap_or(usize::MAX));
        migrations
    }

    fn all_migrations(&self, database: u32) -> Vec<Migration<'_>> {
        match &self.source {
            Origin::Fixture(files) => {
                let migration =
                    |file| Migration { database, transaction: TransactionMode::Autocommit, ..Migration::new(file) };
                files.iter().map(migration).collect()
            }
            Origin::Unusable(_) => Vec::new(),
            Origin::Project { .. } => {
                let mut migrations = self.source.own();
                for migration in &mut migrations {
                    migration.database = database;
                    migration.report = true;
                }
                migrations
            }
        }
    }
}

/// All of them, by name.
pub(super) fn histories() -> Result<Vec<History>, String> {
    let mut found = Vec::new();
    for folder in sorted(&fixtures("rules"))?.iter().filter(|path| path.is_dir()) {
        for path in sorted(folder)?.iter().filter(|path| path.extension().is_some_and(|extension| extension == "sql")) {
            let name = path.strip_prefix(fixtures("")).unwrap_or(path).to_string_lossy().into_owned();
            let parsed = |text: String| parse_file(SourceFile::new(name.clone(), text));
            let text = read(path)?;
            let is_copy = text.to_ascii_lowercase().contains("from stdin");
            let files: Vec<ParsedFile> = sections(&text).into_iter().map(parsed).collect();
            let is_template = files.iter().any(|file| file.statements.iter().any(|one| !one.placeholders.is_empty()));
            let source = if is_copy {
                Origin::Unusable("a client sends rows of it".to_owned())
            } else if name.contains("/system-catalog-write/") {
                Origin::Unusable("it breaks the catalogs".to_owned())
            } else if is_template {
                Origin::Unusable("it has placeholders without values".to_owned())
            } else {
                Origin::Fixture(files)
            };
            found.push(History { name, source, until: None });
        }
    }
    for tool in Declaration::all()? {
        let version = tool.versions.last().map_or("", String::as_str);
        let newest = Installed { tool: &tool, version };
        for case in cases(&tool)? {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let root = folder.path().join("project");
            case.write(&newest, &Address::of_nothing(), &root)?;
            std::fs::create_dir_all(root.join(".git")).map_err(|error| error.to_string())?;
            let project = Arc::new(load(root)?);
            let name = format!("tools/{}/{}", tool.name, case.name);
            found.push(History { name, source: origin(&project, 1, Some(folder)), until: None });
        }
    }
    Ok(found)
}

/// The folders of a folder, each of which is a project.
pub(super) fn projects(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let is_project = |path: &PathBuf| path.is_dir() && !path.file_name().is_some_and(is_hidden);
    Ok(sorted(folder)?.into_iter().filter(is_project).collect())
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// The name of a project and its histories, one for each database.
pub(super) fn checkout(root: &Path) -> (String, Result<Vec<History>, String>) {
    let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let histories = load(root.to_owned()).map(|project| {
        let project = Arc::new(project);
        let of_database = |database| History {
            name: format!("{name}/{database}"),
            source: origin(&project, database, None),
            until: None,
        };
        (1..=project.databases.len() as u32).map(of_database).collect()
    });
    (name, histories)
}

fn load(root: PathBuf) -> Result<Project, String> {
    let request = Request { paths: vec![root], config: ConfigSource::None, ..Request::default() };
    Project::load(&request, &|_, _| {}).map_err(|error| format!("{error:?}"))
}

/// What is run of a database of a project.
fn origin(project: &Arc<Project>, database: u32, folder: Option<TempDir>) -> Origin {
    let whole = Origin::Project { project: Arc::clone(project), database, folder };
    let statements = || whole.own().into_iter().flat_map(|one| one.statements());
    let why = if statements().any(|one| !one.placeholders.is_empty()) {
        "it has placeholders without values"
    } else if statements().any(|one| matches!(one.ast(), Some(Ast::Copy(copy)) if copy.stdin)) {
        "a client sends rows of it"
    } else {
        return whole;
    };
    Origin::Unusable(why.to_owned())
}

/// The texts behind `-- history:`, `-- migration:` and `-- baseline:`, or the whole text.
fn sections(text: &str) -> Vec<String> {
    let is_head = |line: &str| {
        let words = ["-- history:", "-- migration:", "-- baseline:"];
        words.iter().any(|word| line.trim_start().starts_with(word))
    };
    let mut sections = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if is_head(line) {
            sections.push(String::new());
        } else if let Some(last) = sections.last_mut() {
            last.push_str(line);
        }
    }
    sections
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
