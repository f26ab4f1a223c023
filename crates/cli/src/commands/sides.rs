//! Schemas to show and to compare: of migrations, of a dump, of a revision, of a live database.

use crate::args::{ConfigSourceArgs, LoudnessArgs};
use crate::error::Failure;
use pgvet_capture::Tables;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::predict::effects;
use pgvet_model::production::Functions;
use pgvet_model::version::{PgVersion, VersionRange};
use pgvet_schema::{Relation, Schema, Source, narrow, read};
use pgvet_trace::provider::{parse_address, with_password};
use pgvet_workspace::config::ConfigSource;
use pgvet_workspace::{Applied, Project, ProjectFile, Request, Revision, is_dump};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Where a schema comes from.
#[derive(Debug)]
pub(crate) enum Side {
    /// A connection string.
    Database(String),
    /// The migrations at a revision, below a path of the repository.
    Revision { revision: String, path: Option<PathBuf> },
    /// Folders with migrations, or a dump.
    Files(PathBuf),
}

/// How files become a schema.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a ConfigSourceArgs,
    pub(crate) loudness: &'a LoudnessArgs,
    /// The version; else that of the configuration.
    pub(crate) version: Option<PgVersion>,
    /// The last migration that is replayed.
    pub(crate) at: Option<&'a str>,
    pub(crate) timeout: Duration,
}

/// A schema with what it is called.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) title: String,
    pub(crate) schema: Schema,
    /// Whether everything was read.
    pub(crate) is_whole: bool,
    /// The migrations that were replayed.
    pub(crate) applied: Option<Applied>,
}

impl Side {
    /// `postgres://...` and `service=...` are databases, `REV:` and `REV:PATH` are revisions, everything else is a path.
    /// What exists does not matter: a checkout can have a folder that is called like a revision.
    pub(crate) fn parse(text: &str) -> Self {
        if is_database(text) {
            return Self::Database(text.to_owned());
        }
        match text.split_once(':') {
            Some((revision, path)) if !revision.is_empty() && !is_path(text) => {
                let path = (!path.is_empty()).then(|| PathBuf::from(path));
                Self::Revision { revision: revision.to_owned(), path }
            }
            _ => Self::Files(PathBuf::from(text)),
        }
    }

    pub(crate) fn is_database(&self) -> bool {
        matches!(self, Self::Database(_))
    }

    pub(crate) fn read(&self, reading: &Reading<'_>) -> Result<Read, Failure> {
        match self {
            Self::Database(text) => {
                let address = with_password(parse_address(text)?)?;
                let title = format!("database {}", address.database_name());
                let schema = pgvet_trace::schema(&address, reading.timeout)?;
                Ok(Read { title, schema, is_whole: true, applied: None })
            }
            Self::Revision { revision, path } => {
                let checkout =
                    Revision::checkout(Path::new("."), revision).map_err(|problem| Failure::from(&problem))?;
                let inside = checkout.path(path.as_deref());
                if !inside.exists() {
                    let what = path
                        .as_ref()
                        .map_or_else(|| "the current folder".to_owned(), |path| path.display().to_string());
                    return Err(Failure::new(format!("`{revision}` has no `{what}`")).help(
                        "name a folder of that revision as REV:PATH, with PATH relative to the root of the repository",
                    ));
                }
                let title = match path {
                    Some(path) => format!("{revision}:{}", path.display()),
                    None => format!("{revision}:"),
                };
                of_files(&inside, title, reading)
            }
            Self::Files(path) => of_files(path, path.display().to_string(), reading),
        }
    }
}

/// Why a table is not compared.
const OF_TOOL: &str = "a migration tool records there what has run, so it is not compared";

/// The schema without the tables of migration tools. Only one of two schemas has them, unless both are databases or dumps.
fn without_tool_tables(schema: Schema) -> Schema {
    let tables = Tables::with(None);
    let is_of_tool = |relation: &Relation| {
        let has = |name: &str| relation.columns.iter().any(|column| column.name == name);
        let name = &relation.name.name;
        // The columns are known of tables that something creates.
        if relation.created_by_migrations { tables.is_own_table(name, has) } else { tables.is_own(name) }
    };
    narrow::without(schema, is_of_tool, &Tables::own_schemas(), OF_TOOL)
}

/// The namespaces of two schemas that are compared, without the tables of migration tools; each must exist on one side.
pub(crate) fn both_in_schemas(before: &Schema, after: &Schema, wanted: &[String]) -> Result<(Schema, Schema), Failure> {
    let exists = |name: &&String| before.schemas.contains(name) || after.schemas.contains(name);
    if let Some(name) = wanted.iter().find(|name| !exists(name)) {
        return Err(Failure::new(format!("neither side has a schema `{name}`")));
    }
    let (mut from, mut to) = (without_tool_tables(before.clone()), without_tool_tables(after.clone()));
    if !wanted.is_empty() {
        narrow::place_extensions(&mut from, after);
        narrow::place_extensions(&mut to, before);
    }
    Ok((narrow::in_schemas(from, wanted), narrow::in_schemas(to, wanted)))
}

fn is_database(text: &str) -> bool {
    let keys = ["service=", "host=", "hostaddr=", "dbname="];
    text.starts_with("postgres://") || text.starts_with("postgresql://") || keys.iter().any(|key| text.starts_with(key))
}

/// Whether a text says that it is a path: no revision is absolute or begins with a dot.
fn is_path(text: &str) -> bool {
    text.starts_with('.')
        || matches!(Path::new(text).components().next(), Some(Component::Prefix(_) | Component::RootDir))
}

fn of_files(path: &Path, title: String, reading: &Reading<'_>) -> Result<Read, Failure> {
    if !path.exists() {
        let help = "name a folder, FILE.sql, REV:, REV:PATH, or a database such as postgres://USER@HOST/DATABASE";
        return Err(Failure::new(format!("`{title}` does not exist")).help(help));
    }
    let is_file = path.is_file();
    let config = match reading.source.source() {
        // A dump is judged by itself.
        ConfigSource::Nearest if is_file => ConfigSource::None,
        source => source,
    };
    let request = Request { paths: vec![path.to_owned()], config, without_history: is_file, ..Request::default() };
    let project = super::load_request(&request, reading.loudness)?;
    if project.databases.len() > 1 {
        let folders: Vec<String> = project.databases.iter().map(|database| database.shown().clone()).collect();
        return Err(Failure::new(format!("`{title}` has the migrations of several databases: {}", folders.join(", ")))
            .help("compare them one by one: name the folder of one database"));
    }
    if !project.files.iter().any(ProjectFile::is_run) {
        return Err(Failure::new(format!("`{title}` has no migrations that are run"))
            .help("`pgvet config --files` lists all files with their roles"));
    }
    let end = reading.at.map(|name| file_called(&project, name)).transpose()?;
    let version = reading.version.unwrap_or_else(|| project.config_of(1).settings.versions.to);
    let mut replayed = replay(&project, 1, end, version);
    let mut run = project.files.iter().filter(|file| file.is_run());
    if run.all(|file| is_dump(&file.parsed.source.text)) {
        replayed.schema.source = Source::Dump;
    }
    let is_whole = project.problems.is_empty() && replayed.unread == 0;
    let title = match reading.at {
        Some(at) => format!("{title} at {at}"),
        None => title,
    };
    let applied = replayed.last_file.map(|last| Applied::until(&project, last));
    Ok(Read { title, schema: replayed.schema, is_whole, applied })
}

/// What migrations leave.
pub(crate) struct Replayed {
    pub(crate) schema: Schema,
    /// The path of the last migration, and its index in [`Project::files`].
    pub(crate) last: Option<String>,
    pub(crate) last_file: Option<usize>,
    /// Statements that could not be read.
    pub(crate) unread: usize,
}

/// Replays the migrations of a database up to and including the file at `end`.
pub(crate) fn replay(project: &Project, database: u32, end: Option<usize>, version: PgVersion) -> Replayed {
    let all = std::iter::zip(project.migrations(), project.file_indexes());
    let own = all.filter(|(migration, file)| {
        end.is_none_or(|end| *file <= end) && (migration.database == 0 || migration.database == database)
    });
    let own: Vec<(Migration<'_>, usize)> = own.collect();
    let forward = |(migration, _): &&(Migration<'_>, usize)| migration.direction == Direction::Up;
    let last_file = own.iter().rfind(forward).map(|(_, file)| *file);
    let last = last_file.map(|file| project.files[file].shown().path.clone());
    let mut migrations: Vec<Migration<'_>> = own.into_iter().map(|(migration, _)| migration).collect();
    let mut state = Checkpoint::default();
    state.advance(&migrations, migrations.len(), VersionRange { from: version, to: version }, &());
    let mut schema = read(state.catalog(), version);
    migrations.retain(|migration| migration.direction == Direction::Up);
    let unread = note_failures(&mut schema, &mut migrations, version);
    Replayed { schema, last, last_file, unread }
}

/// Notes the statements that cannot be read or would fail: nothing of them is in the schema. Returns how many cannot be
/// read.
fn note_failures(schema: &mut Schema, migrations: &mut [Migration<'_>], version: PgVersion) -> usize {
    let mut unread = 0;
    migrations.iter_mut().for_each(|migration| migration.report = true);
    let effects = effects(migrations, version, &Functions::default());
    for (migration, effects) in migrations.iter().zip(&effects) {
        let place = |start: u32| format!("{}:{}", migration.file.path, migration.file.position(start).line);
        let mut unparsed = Vec::new();
        for statement in migration.statements() {
            if let Err(error) = &statement.parsed {
                unread += 1;
                unparsed.push(statement.range);
                let place = place(statement.range.start);
                schema.gaps.push(format!("{place}: {}: the schema is shown without this statement", error.message));
            }
        }
        for one in effects {
            // What cannot be read is said already.
            let failure = one.effects.fails.as_ref();
            let failure = failure.filter(|failure| !unparsed.iter().any(|range| range.contains(failure.range)));
            if let Some(failure) = failure {
                let place = place(failure.range.start);
                schema.gaps.push(format!("{place}: {}: the statement fails, so it changes nothing", failure.reason));
            }
        }
    }
    unread
}

/// The index of the file that a name means.
pub(crate) fn file_called(project: &Project, name: &str) -> Result<usize, Failure> {
    let called = project.files.iter().enumerate().filter(|(_, file)| file.is_called(name));
    let called: Vec<(usize, &ProjectFile)> = called.collect();
    match called.as_slice() {
        [(at, _)] => Ok(*at),
        [] => Err(Failure::new(format!("no migration matches `{name}`"))
            .help("name it as in `0041_add_users.sql` or `0041`; `pgvet config --files` lists all files")),
        [.., (at, last)] => {
            // The files of one version, such as up.sql and down.sql, are one migration.
            let folder = last.path.parent();
            if called.iter().all(|(_, file)| file.path.parent() == folder && file.database == last.database) {
                Ok(*at)
            } else {
                Err(Failure::new(format!("several migrations match `{name}`")).help("name it with its folder"))
            }
        }
    }
}
