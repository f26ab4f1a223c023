//! Facts about the tool that runs a migration, from the files around it.

use super::captured::Captures;
use super::dotnet::{Library, Projects};
use super::explicit_order::{ExplicitOrder, Orders};
use super::unknown::UnknownRunner;
use super::{Tool, flyway_project, flyway_schema, project};
use crate::config::absolute;
use crate::init_scripts::InitScripts;
use crate::manifest::{Database, Manifests};
use crate::nearby::Nearby;
use crate::order::{self, FlywayName};
use crate::psql_scripts::PsqlScripts;
use crate::roots::{self, Repositories};
use crate::{fizz, read, rollback_name};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Facts about folders, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    known: Mutex<Known>,
    nearby: Arc<Nearby>,
    captures: Captures,
}

#[derive(Debug, Default)]
struct Known {
    facts: FxHashMap<PathBuf, Facts>,
    orders: Orders,
    /// The answers to what is asked about the folders around others.
    go_modules: FxHashMap<PathBuf, Option<bool>>,
    down_files: FxHashMap<PathBuf, bool>,
    repositories: Repositories,
    /// Whether migrations of a folder that a tool runs lack marks of a kind.
    lacking_marks: FxHashMap<(PathBuf, (&'static str, Option<&'static str>)), bool>,
    init_scripts: FxHashMap<PathBuf, Arc<InitScripts>>,
    /// By the folder that holds a sequence.
    psql_scripts: FxHashMap<PathBuf, Arc<PsqlScripts>>,
    projects: Projects,
    manifests: Manifests,
    /// How the files of folders are run that no tool claims.
    unknown_runners: FxHashMap<PathBuf, Arc<UnknownRunner>>,
}

/// Facts of a folder about the migrations directly in it.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The tool whose files lie beside them.
    pub(super) tool: Option<Tool>,
    /// sqlx or refinery, if the Rust project around them uses it.
    pub(super) rust_runner: Option<Tool>,
    /// Evolve or `DbUp`, if the project of .NET around them uses it.
    pub(super) dotnet: Option<Library>,
    /// Code and configuration around folders.
    pub(super) nearby: Arc<Nearby>,
    /// Pop, if the Go module around them uses it.
    pub(super) go_runner: Option<Tool>,
    /// Whether code beside them runs migrations of these names with another program than golang-migrate.
    pub(super) has_other_go_runner: bool,
    /// Whether a name here has a part for a dialect, as only those of pop have.
    pub(super) has_dialects: bool,
    /// Whether any of the migrations that are folders has a `down.sql`, as those of Diesel do.
    pub(super) has_down_files: bool,
    order: Option<Arc<ExplicitOrder>>,
    /// The names in `atlas.sum`.
    sums: Arc<FxHashSet<String>>,
    /// See [`roots::named_folder`].
    pub(crate) named: Option<PathBuf>,
    /// The names that Flyway gives migrations.
    flyway: Arc<Vec<String>>,
    /// The schema that the configuration of Flyway makes the default.
    pub(super) flyway_schema: Option<SmolStr>,
    /// See [`rollback_name::undone_versions`].
    undone_versions: Arc<FxHashSet<String>>,
    /// See [`in_other_languages`].
    pub(super) in_other_languages: bool,
    /// The tool whose names most files here have.
    pub(super) tool_by_names: Option<Tool>,
    /// Whether any name begins with a number.
    pub(super) has_numbers: bool,
    /// What the project says about their database.
    pub(crate) database: Database,
}

impl Facts {
    /// The folder of the migrations that the tool's own list names.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.order.as_ref().map(|order| order.root.as_path())
    }

    /// The same, where the files here are not among them but belong to them.
    pub(crate) fn root_beside(&self) -> Option<&Path> {
        self.order.as_ref().filter(|order| order.is_outside_sequence()).map(|order| order.root.as_path())
    }

    /// Returns the folder of the tool's own list that names the file: a plan, a journal, a changelog or `atlas.sum`.
    pub(crate) fn list_with(&self, path: &Path) -> Option<PathBuf> {
        let is_named = |order: &&Arc<ExplicitOrder>| {
            !order.is_outside_sequence() && order.place(path).is_some_and(|place| order.is_main(place))
        };
        let root = self.order.as_ref().filter(is_named).map(|order| order.root.clone());
        let is_summed = || path.file_name().and_then(|name| name.to_str()).is_some_and(|name| self.sums.contains(name));
        root.or_else(|| path.parent().filter(|_| is_summed()).map(Path::to_owned))
    }

    /// Returns the tool whose own list names the file, or to whose list the file belongs.
    pub(super) fn tool_of_list(&self, path: &Path) -> Option<Tool> {
        // Files beside those of a changelog may belong to anything.
        let is_of_list = |order: &&Arc<ExplicitOrder>| order.tool != Tool::Liquibase || order.place(path).is_some();
        self.order.as_ref().filter(is_of_list).map(|order| order.tool)
    }

    /// Whether the tool does not run the file. This includes Sqitch's scripts that revert or verify a change.
    pub(super) fn is_not_run(&self, path: &Path) -> bool {
        self.is_unlisted(path) || self.root_beside().is_some()
    }

    /// Whether the tool's own list omits a file that would be run if it were listed.
    pub(super) fn is_unlisted(&self, path: &Path) -> bool {
        self.order.as_ref().is_some_and(|order| !order.is_outside_sequence() && order.place(path).is_none())
    }

    /// Whether the file runs again: always, or whenever it changes.
    pub(super) fn runs_again(&self, path: &Path) -> bool {
        self.order.as_ref().is_some_and(|order| order.runs_again(path))
    }

    /// Whether each run runs the file again, changed or not.
    pub(super) fn runs_always(&self, path: &Path) -> bool {
        self.order.as_ref().is_some_and(|order| order.runs_always(path))
    }

    /// Whether the tool's own list says that the file runs outside a transaction.
    pub(super) fn is_autocommit(&self, path: &Path) -> bool {
        self.order.as_ref().is_some_and(|order| order.is_autocommit(path))
    }

    /// The number of the release that the migration is part of, where the tool's own list has releases.
    pub(super) fn release(&self, path: &Path) -> Option<u32> {
        self.order.as_ref().and_then(|order| order.release(path))
    }

    /// Whether a script has the version of a migration here, and a name that says that it undoes that migration.
    pub(super) fn is_rollback_of_a_migration(&self, name: &str) -> bool {
        rollback_name::undoes(name, &self.undone_versions)
    }

    /// Whether Flyway runs a versioned migration of this version or an older one in the folder.
    pub(super) fn has_flyway_version_up_to(&self, baseline: &FlywayName<'_>) -> bool {
        self.flyway.iter().any(|name| {
            FlywayName::parse(name).is_some_and(|known| known.kind == 'V' && known.version() <= baseline.version())
        })
    }
}

impl Folders {
    pub(crate) fn nearby(&self) -> &Nearby {
        &self.nearby
    }

    /// Whether changelogs of Liquibase led to more files than are followed.
    pub(crate) fn lack_changelogs(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).orders.lack_changelogs()
    }

    pub(crate) fn captures(&self) -> &Captures {
        &self.captures
    }

    /// Remembers for the folder of a file whether migrations there lack marks of a kind.
    pub(super) fn lacks_marks(
        &self,
        path: &Path,
        kind: (&'static str, Option<&'static str>),
        look: impl FnOnce() -> bool,
    ) -> bool {
        let key = (path.parent().unwrap_or(Path::new("")).to_owned(), kind);
        let known = |folders: &Self| {
            folders.known.lock().unwrap_or_else(PoisonError::into_inner).lacking_marks.get(&key).copied()
        };
        if let Some(lacks) = known(self) {
            return lacks;
        }
        // Files are read without the lock.
        let lacks = look();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).lacking_marks.insert(key, lacks);
        lacks
    }

    /// What is known about the program that runs a file that no tool claims.
    pub(super) fn unknown_runner(&self, path: &Path) -> Arc<UnknownRunner> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runner) = known.unknown_runners.get(parent) {
            return Arc::clone(runner);
        }
        let folder = absolute(parent);
        let runner = Arc::new(UnknownRunner::of(&folder, known.repositories.top(&folder).as_deref(), &self.nearby));
        known.unknown_runners.insert(parent.to_owned(), Arc::clone(&runner));
        runner
    }

    /// Whether code of the project runs the files of the folder of this one, or a page says how to.
    pub(crate) fn have_runner(&self, path: &Path) -> bool {
        self.unknown_runner(path).is_known()
    }

    /// Where the code that runs a file names statements that cannot run in a transaction.
    pub(crate) fn mention_of_concurrently(&self, path: &Path) -> Option<SmolStr> {
        self.unknown_runner(path).code.as_ref()?.concurrently.clone()
    }

    /// Whether the image of PostgreSQL runs a file to fill a new database, as far as the repository shows.
    pub(crate) fn fills_new_database(&self, path: &Path) -> bool {
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scripts) = known.init_scripts.get(parent) {
            return scripts.hold(path);
        }
        let folder = absolute(parent);
        let scripts = Arc::new(InitScripts::of(&folder, known.repositories.top(&folder).as_deref(), &self.nearby));
        known.init_scripts.insert(parent.to_owned(), Arc::clone(&scripts));
        scripts.hold(path)
    }

    /// The scripts that run the files of a sequence with psql.
    pub(crate) fn psql_scripts(&self, sequence: &Path) -> Arc<PsqlScripts> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scripts) = known.psql_scripts.get(sequence) {
            return Arc::clone(scripts);
        }
        let folder = absolute(sequence);
        let top = known.repositories.top(&folder);
        let scripts = top.map(|top| PsqlScripts::of(&folder, &top, &self.nearby)).unwrap_or_default();
        let scripts = Arc::new(scripts);
        known.psql_scripts.insert(sequence.to_owned(), Arc::clone(&scripts));
        scripts
    }

    pub(crate) fn around(&self, path: &Path) -> Facts {
        let parent = path.parent().unwrap_or(Path::new(""));
        // A thread that panicked while holding the lock left a map of complete entries.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = known.facts.get(parent) {
            return facts.clone();
        }
        let order = known.orders.around(parent);
        // What is above it counts too, wherever pgvet is run.
        let folder = absolute(parent);
        let names = names_in(&folder);
        let rust_runner = rust_runner(&folder, &self.nearby);
        let dotnet = known.projects.library(&folder, &self.nearby);
        let has_flyway_names = names.iter().any(|name| FlywayName::parse(name).is_some());
        let facts = Facts {
            tool: tool(&folder, order.as_deref(), &self.nearby)
                .or(dotnet.map(Library::tool).filter(|tool| *tool == Tool::Dbup)),
            rust_runner,
            dotnet,
            nearby: Arc::clone(&self.nearby),
            go_runner: go_runner(&folder, &mut known.go_modules)
                .or_else(|| names.iter().any(|name| fizz::is_up(name)).then_some(Tool::Pop)),
            has_other_go_runner: has_other_go_runner(&folder, &names, &self.nearby),
            has_dialects: names.iter().any(|name| has_dialect(name)),
            has_down_files: has_down_files(&folder, &mut known.down_files),
            order,
            sums: Arc::new(names_in_atlas_sum(&folder)),
            named: roots::named_folder(parent, &mut known.repositories),
            database: known.manifests.database(&folder, &self.nearby),
            in_other_languages: in_other_languages(&folder, &names),
            has_numbers: names.iter().any(|name| name.starts_with(|first: char| first.is_ascii_digit())),
            tool_by_names: tool_by_names(&names, rust_runner.or(dotnet.map(Library::tool)), || {
                flyway_project::is_around(&folder, &self.nearby)
            }),
            undone_versions: Arc::new(rollback_name::undone_versions(&names)),
            flyway_schema: has_flyway_names.then(|| flyway_schema::around(&folder, &self.nearby)).flatten(),
            flyway: Arc::new(flyway_names(names)),
        };
        known.facts.insert(parent.to_owned(), facts.clone());
        facts
    }
}

/// The tool whose names most SQL files of a folder have, where names alone tell it. Flyway runs a single one if the
/// project uses it.
fn tool_by_names(names: &[String], runner: Option<Tool>, has_flyway: impl FnOnce() -> bool) -> Option<Tool> {
    let flyway = runner.filter(|tool| matches!(tool, Tool::Refinery | Tool::Evolve)).unwrap_or(Tool::Flyway);
    let files: Vec<&Path> = names
        .iter()
        .map(Path::new)
        .filter(|path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("sql")))
        .collect();
    let run = |tool: &Tool| files.iter().filter(|path| !tool.skips(path)).count();
    // Misspelled names of Flyway are no names of another tool.
    let misspelled = if run(&flyway) > 0 { files.iter().filter(|path| is_nearly_flyway(path)).count() } else { 0 };
    let others = |tool: &Tool| if *tool == flyway { files.len() - misspelled } else { files.len() };
    let known = [flyway, Tool::Postgrator, Tool::GolangMigrate].into_iter().find(|tool| 2 * run(tool) > others(tool));
    known.or_else(|| (run(&flyway) > 0 && flyway == Tool::Flyway && has_flyway()).then_some(flyway))
}

/// Whether a name would be one of Flyway with another letter or separator: `v4__c.sql`, `V3_b.sql`, `2__b.sql`.
fn is_nearly_flyway(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let after_letter = name.strip_prefix(['V', 'v']).unwrap_or(&name);
    let rest = after_letter.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
    let has_letter = after_letter.len() < name.len();
    let is_misspelled = rest.len() < after_letter.len() && (has_letter || rest.starts_with("__"));
    is_misspelled && Tool::Flyway.skips(path)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Extensions of programming languages that tools take migrations in.
const LANGUAGES: [&str; 13] = ["go", "py", "js", "mjs", "cjs", "ts", "java", "kt", "rb", "clj", "exs", "rs", "php"];

/// Whether there are migrations in a programming language among those in SQL. What they do is in no file that is read
/// here. Flyway has them in a folder of the same name below `java` or `kotlin` in place of `resources`.
fn in_other_languages(folder: &Path, names: &[String]) -> bool {
    let is_code = |name: &String| {
        let path = Path::new(name);
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_other = [".d", ".test", ".spec", "_test"].iter().any(|end| stem.ends_with(end));
        LANGUAGES.contains(&extension) && !is_other && order::is_versioned(path)
    };
    let of_flyway = |language: &str| {
        let parts: Vec<_> = folder.components().collect();
        let at = parts.iter().rposition(|part| part.as_os_str() == "resources")?;
        let beside: PathBuf = parts[..at].iter().collect();
        Some(beside.join(language).join(parts[at + 1..].iter().collect::<PathBuf>()))
    };
    let is_unread = |name: &String| {
        fizz::is_up(name) && read::text(&folder.join(name)).is_ok_and(|text| fizz::to_sql(&text).is_none())
    };
    names.iter().any(|name| is_code(name) || is_unread(name))
        || ["java", "kotlin"].into_iter().filter_map(of_flyway).any(|folder| names_in(&folder).iter().any(is_code))
}

/// The names in a folder that follow Flyway's convention; few folders have a baseline, for which they are needed.
fn flyway_names(names: Vec<String>) -> Vec<String> {
    let is_baseline = |name: &String| FlywayName::parse(name).is_some_and(|name| name.kind == 'B');
    if names.iter().any(is_baseline) { names } else { Vec::new() }
}

/// Whether the folder, or one beside it, has a `down.sql`. Folders that cannot be read may have one.
fn has_down_files(migration: &Path, known: &mut FxHashMap<PathBuf, bool>) -> bool {
    if !migration.join("up.sql").exists() {
        return true;
    }
    let Some(all) = migration.parent() else { return true };
    *known.entry(all.to_owned()).or_insert_with_key(|all| {
        let Ok(folders) = fs::read_dir(all) else { return true };
        folders.filter_map(Result::ok).any(|folder| folder.path().join("down.sql").exists())
    })
}

fn tool(parent: &Path, order: Option<&ExplicitOrder>, nearby: &Nearby) -> Option<Tool> {
    if is_of_supabase(parent) && !parent.join("atlas.sum").exists() {
        Some(Tool::Supabase)
    } else if parent.join("meta/_journal.json").exists() {
        Some(Tool::Drizzle)
    } else if parent.join("atlas.sum").exists() {
        Some(Tool::Atlas)
    } else if is_graphile(parent) {
        Some(Tool::GraphileMigrate)
    } else if holds_migrations_of_prisma(parent) {
        Some(Tool::Prisma)
    } else if holds_migrations_of_diesel(parent, nearby) {
        Some(Tool::Diesel)
    } else {
        order.map(|order| order.tool).or_else(|| project::tool(parent, nearby))
    }
}

/// Whether the Supabase CLI runs the files of a folder. Drizzle Kit can write them there, with a journal that the CLI does
/// not read. Source: Supabase documentation, "Drizzle".
pub(super) fn is_of_supabase(folder: &Path) -> bool {
    folder.ends_with("supabase/migrations")
}

/// The names in the `atlas.sum` of a folder, each of which has a sum after it.
fn names_in_atlas_sum(folder: &Path) -> FxHashSet<String> {
    let sums = read::text(&folder.join("atlas.sum")).unwrap_or_default();
    sums.lines().filter_map(|line| Some(line.rsplit_once(" h1:")?.0.to_owned())).collect()
}

/// sqlx or refinery, if the Cargo.toml of the project names one, and `migrations` is the folder of that name.
fn rust_runner(migrations: &Path, nearby: &Nearby) -> Option<Tool> {
    if !migrations.ends_with("migrations") {
        return None;
    }
    // The manifest of the crate, or of its workspace.
    let manifests = migrations.ancestors().skip(1).take(3).map(|folder| folder.join("Cargo.toml"));
    for manifest in manifests.filter_map(|manifest| nearby.text(&manifest)) {
        for (name, tool) in [("sqlx", Tool::Sqlx), ("refinery", Tool::Refinery)] {
            if manifest.lines().any(|line| is_dependency(line, name)) {
                return Some(tool);
            }
        }
    }
    None
}

/// graphile-migrate keeps what has run in `committed`, and what is being worked on in `current.sql` or `current`.
fn is_graphile(parent: &Path) -> bool {
    let has_both = |folder: &Path| {
        folder.join("committed").is_dir() && (folder.join("current.sql").exists() || folder.join("current").is_dir())
    };
    let inside = parent.ends_with("committed") || parent.ends_with("current");
    has_both(parent) || (inside && parent.parent().is_some_and(has_both))
}

/// Whether Prisma keeps its migrations in folders below this one: its lock is here, or the usual name and a migration.
fn holds_migrations_of_prisma(folder: &Path) -> bool {
    let has_migration = || {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).any(|migration| migration.join("migration.sql").is_file())
    };
    folder.join("migration_lock.toml").is_file() || (folder.ends_with("prisma/migrations") && has_migration())
}

/// Whether Diesel keeps its migrations in folders below this one: one of them is there, and the project uses Diesel.
fn holds_migrations_of_diesel(folder: &Path, nearby: &Nearby) -> bool {
    let has_migration = || {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).any(|migration| migration.join("up.sql").is_file())
    };
    let is_used = |above: &Path| {
        let requires = |text: Arc<str>| text.lines().any(|line| is_dependency(line, "diesel"));
        above.join("diesel.toml").is_file() || nearby.text(&above.join("Cargo.toml")).is_some_and(requires)
    };
    folder.ancestors().skip(1).take(3).any(is_used) && has_migration()
}

/// Pop, if the go.mod of the project requires it. `known` says of folders whether their go.mod does, if they have one.
fn go_runner(migrations: &Path, known: &mut FxHashMap<PathBuf, Option<bool>>) -> Option<Tool> {
    let requires = |line: &str| line.trim().trim_start_matches("require ").starts_with("github.com/gobuffalo/pop");
    // ory/x has a pop of its own, which reads other names.
    let is_ory = |line: &str| line.trim().trim_start_matches("require ").starts_with("github.com/ory/x");
    let look = |folder: &Path| {
        let module = read::text(&folder.join("go.mod")).ok()?;
        Some(module.lines().any(requires) && !module.lines().any(is_ory))
    };
    let mut around = migrations.ancestors().skip(1).take(3);
    let uses_pop = around.find_map(|folder| *known.entry(folder.to_owned()).or_insert_with(|| look(folder)))?;
    uses_pop.then_some(Tool::Pop)
}

/// Parts of names by which pop chooses files: `1_x.mysql.up.sql`. Source: pop, `migration_info.go`, and ory/x, `popx`.
const PARTS_OF_POP: [&str; 8] =
    ["postgres", "postgresql", "mysql", "sqlite", "sqlite3", "cockroach", "cockroachdb", "autocommit"];

/// Whether the name of a migration has such a part.
pub(super) fn has_dialect(name: &str) -> bool {
    let stem = name.strip_suffix(".up.sql").or_else(|| name.strip_suffix(".down.sql"));
    stem.is_some_and(|stem| stem.split('.').skip(1).any(|part| PARTS_OF_POP.contains(&part)))
}

/// Programs that run `1_x.up.sql` and identify it by its whole name.
const OTHER_GO_RUNNERS: [&str; 2] = ["\"github.com/maragudk/migrate\"", "\"maragu.dev/migrate\""];

/// Whether Go code in the folder or the one above imports such a program.
fn has_other_go_runner(folder: &Path, names: &[String], nearby: &Nearby) -> bool {
    if !names.iter().any(|name| name.ends_with(".up.sql")) {
        return false;
    }
    let imports = |path: &PathBuf| {
        let is_go = path.extension().is_some_and(|extension| extension == "go");
        is_go && nearby.text(path).is_some_and(|text| OTHER_GO_RUNNERS.iter().any(|import| text.contains(import)))
    };
    folder.ancestors().take(2).any(|folder| nearby.code(folder).any(|path| imports(&path)))
}

/// Maximum number of levels above a file at which the manifest of its project is searched, if no repository ends
/// before.
const MANIFEST_LEVELS: usize = 8;

/// Whether a manifest or the tool's own configuration says that the project uses the tool whose marks a file has. Other
/// tools that read the same marks need not read the rest as that tool does.
pub(super) fn proves(tool: Tool, path: &Path, nearby: &Nearby) -> bool {
    let (manifest, name, configuration) = match tool {
        Tool::Goose => ("go.mod", "github.com/pressly/goose", "dbconf.yml"),
        Tool::SqlMigrate => ("go.mod", "github.com/rubenv/sql-migrate", "dbconfig.yml"),
        Tool::Dbmate => ("package.json", "\"dbmate\"", ".dbmate"),
        Tool::GolangMigrate => ("go.mod", "github.com/golang-migrate/migrate", ".golang-migrate"),
        Tool::Postgrator => ("package.json", "\"postgrator", ".postgratorrc.json"),
        _ => return true,
    };
    let is_direct = |line: &str| line.contains(name) && !line.trim_end().ends_with("// indirect");
    let is_required =
        |folder: &Path| nearby.text(&folder.join(manifest)).is_some_and(|text| text.lines().any(is_direct));
    let path = absolute(path);
    for folder in path.ancestors().skip(1).take(MANIFEST_LEVELS) {
        if is_required(folder) || folder.join(configuration).exists() {
            return true;
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    false
}

/// `sqlx = "0.8"`, `sqlx.workspace = true`, `[dependencies.sqlx]`.
fn is_dependency(line: &str, name: &str) -> bool {
    let line = line.trim();
    let key = line.split(['=', '.']).next().unwrap_or_default().trim();
    key == name || line.ends_with(&format!(".{name}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_a_folder_are_read_once() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("atlas.sum"), "h1:x=\n1_a.sql h1:y=\n").unwrap();
        let (folders, path) = (Folders::default(), root.path().join("1_a.sql"));
        let list = |path: &Path| folders.around(path).list_with(path);
        assert_eq!(list(&path).as_deref(), Some(root.path()));
        fs::remove_file(root.path().join("atlas.sum")).unwrap();
        assert_eq!(list(&path).as_deref(), Some(root.path()));
        assert_eq!(list(&path.with_file_name("1_b.sql")), None);
    }

    #[test]
    fn migrations_in_programming_languages_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let seen = |code: &str, sql: &str| {
            let (code, sql) = (root.path().join(code), root.path().join(sql));
            for file in [&code, &sql] {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
            Folders::default().around(&sql).in_other_languages
        };
        assert!(seen("a/00002_fill.go", "a/00001_users.sql"));
        assert!(seen("b/20240101_fill.py", "b/20231231_users.sql"));
        assert!(seen("src/main/java/db/migration/V2__Fill.java", "src/main/resources/db/migration/V1__users.sql"));
        assert!(!seen("c/embed.go", "c/00001_users.sql"));
        assert!(!seen("d/00001_users_test.go", "d/00001_users.sql"));
        assert!(!seen("src/main/kotlin/db/Users.kt", "src/main/resources/db/V1__users.sql"));
    }

    #[test]
    fn names_and_code_show_that_another_program_runs_up_files() {
        let tool = |files: &[(&str, &str)]| {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let first = root.path().join(files[0].0);
            let name = first.file_name().unwrap().to_string_lossy();
            super::super::file_name::tool_by_name(&first, &name, &Folders::default().around(&first))
        };
        let import = "import (\n\t\"github.com/maragudk/migrate\"\n)\n";
        assert_eq!(tool(&[("db/1_a.up.sql", "")]), Some(Tool::GolangMigrate));
        assert_eq!(tool(&[("db/1_a.up.sql", ""), ("db/2_b.mysql.up.sql", "")]), Some(Tool::Pop));
        assert_eq!(tool(&[("db/sql/1_a.up.sql", ""), ("db/run.go", import)]), None);
        assert_eq!(tool(&[("db/sql/1_a.up.sql", ""), ("run.go", import)]), Some(Tool::GolangMigrate));
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        assert!(is_dependency("sqlx = { version = \"0.8\" }", "sqlx"));
        assert!(is_dependency("sqlx.workspace = true", "sqlx"));
        assert!(is_dependency("[workspace.dependencies.sqlx]", "sqlx"));
        assert!(!is_dependency("sqlx-cli = \"0.8\"", "sqlx"));
        assert!(!is_dependency("# sqlx", "sqlx"));
    }
}
