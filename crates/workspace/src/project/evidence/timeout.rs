//! Timeouts that the program sets in the session in which it runs migrations.

use crate::config::absolute;
use crate::layout::Tool;
use crate::layout::runner_code::reads_files;
use crate::nearby::{self, Nearby};
use crate::order;
use crate::problem::display;
use crate::project::ProjectFile;
use crate::roots::Repositories;
use pgvet_linter::repository::CodeTimeout;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use std::path::{Path, PathBuf};

/// So far above the migrations code is searched for.
const LEVELS: usize = 5;

/// Most files that are read for one folder.
const FILES: usize = 300;

/// What limits how long a statement waits for a lock.
pub(super) const SETTINGS: [&str; 2] = ["lock_timeout", "statement_timeout"];

/// The timeouts of folders of migrations, each searched for once.
#[derive(Debug, Default)]
pub(super) struct Timeouts {
    repositories: Repositories,
    known: FxHashMap<PathBuf, Option<CodeTimeout>>,
}

impl Timeouts {
    pub(super) fn of(&mut self, file: &ProjectFile, nearby: &Nearby) -> Option<CodeTimeout> {
        if file.layout.tool == Tool::Captured {
            return None;
        }
        let folder = absolute(&order::sequence(&file.path));
        if let Some(known) = self.known.get(&folder) {
            return known.clone();
        }
        let found = self.repositories.top(&folder).and_then(|top| find(&folder, &top, file.layout.tool, nearby));
        self.known.entry(folder).or_insert(found).clone()
    }
}

/// Finds the timeout in code that runs the files of a folder, or in what configures the connection.
fn find(folder: &Path, top: &Path, tool: Tool, nearby: &Nearby) -> Option<CodeTimeout> {
    let name = folder.file_name()?.to_str()?;
    let around = folder.ancestors().take(LEVELS).take_while(|above| above.starts_with(top));
    let folders: Vec<PathBuf> = around.flat_map(|above| nearby.code_folders(above).to_vec()).collect();
    let files = folders.iter().flat_map(|folder| nearby.code_and_configuration(folder));
    files.take(FILES).find_map(|path| {
        let text = nearby.text(&path).filter(|text| SETTINGS.iter().any(|setting| text.contains(setting)))?;
        let (setting, line) = timeout(&text, name, tool)?;
        let shown = display(path.strip_prefix(top).unwrap_or(&path));
        Some(CodeTimeout { setting: SmolStr::new_static(setting), place: format_smolstr!("{shown}:{line}") })
    })
}

/// What code names that runs migrations with the library of a tool.
const LIBRARIES: [(Tool, &[&str]); 16] = [
    (Tool::Goose, &["pressly/goose"]),
    (Tool::GolangMigrate, &["golang-migrate/migrate"]),
    (Tool::SqlMigrate, &["rubenv/sql-migrate"]),
    (Tool::Dbmate, &["amacneil/dbmate"]),
    (Tool::Pop, &["gobuffalo/pop"]),
    (Tool::Tern, &["jackc/tern"]),
    (Tool::Atlas, &["ariga.io/atlas"]),
    (Tool::Sqlx, &["sqlx::migrate"]),
    (Tool::Refinery, &["embed_migrations!", "refinery::"]),
    (Tool::Diesel, &["diesel_migrations"]),
    (Tool::Flyway, &["org.flywaydb"]),
    (Tool::Liquibase, &["import liquibase"]),
    (Tool::Drizzle, &["/migrator'", "/migrator\""]),
    (Tool::NodePgMigrate, &["'node-pg-migrate", "\"node-pg-migrate"]),
    (Tool::PostgresMigrations, &["'postgres-migrations", "\"postgres-migrations"]),
    (Tool::Postgrator, &["'postgrator", "\"postgrator"]),
];

/// Whether a text runs the migrations of a folder: it names the folder, reads its files, or uses the library of the tool.
fn runs(text: &str, folder: &str, tool: Tool) -> bool {
    let names_library = || {
        let names = LIBRARIES.iter().filter(|(of, _)| *of == tool).flat_map(|(_, names)| *names);
        names.into_iter().any(|name| text.contains(name))
    };
    nearby::has_path(text, folder)
        || text.contains(&format!(" {folder}/"))
        || reads_files(text, folder)
        || names_library()
}

/// The setting of a text that runs the migrations of a folder, or that gives every connection options, and its line.
fn timeout(text: &str, folder: &str, tool: Tool) -> Option<(&'static str, usize)> {
    let runs = runs(text, folder, tool);
    let is_comment =
        |line: &str| ["//", "*", "#", "--", ";", "<!--"].iter().any(|mark| line.trim_start().starts_with(mark));
    let lines = || text.lines().zip(1..).filter(|(line, _)| !is_comment(line));
    SETTINGS.into_iter().find_map(|setting| {
        let counts = |line: &str| sets(line, setting) && (runs || is_of_connections(line));
        lines().find(|(line, _)| counts(line)).map(|(_, line)| (setting, line))
    })
}

/// Whether a line configures all connections: `PGOPTIONS`, the options of a URL, Flyway's `initSql`.
fn is_of_connections(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["pgoptions", "?options=", "&options=", "initsql", "init-sql", "init_sql"].iter().any(|word| line.contains(word))
}

/// Whether a line gives a setting a value that is not zero: `SET lock_timeout = '5s'`, `-c lock_timeout=5s`,
/// `lock_timeout: 5000`, `set_config('lock_timeout', '5s', false)`, `RuntimeParams["lock_timeout"] = "5s"`.
fn sets(line: &str, setting: &str) -> bool {
    let is_word = |one: char| one.is_alphanumeric() || one == '_';
    line.match_indices(setting).any(|(at, _)| {
        let before = &line[..at];
        let is_reset = ["show", "reset"].iter().any(|word| before.trim_end().to_ascii_lowercase().ends_with(word));
        let mut rest = line[at + setting.len()..].trim_start_matches(['"', '\'', ']', ')', ' ']);
        // A URL writes an equals sign as %3D.
        let marks: [&str; 7] = ["=>", ":=", "=", "%3D", "%3d", ":", ","];
        let Some(value) = marks.iter().find_map(|mark| rest.strip_prefix(mark)).or_else(|| {
            rest = rest.strip_prefix("TO ").or_else(|| rest.strip_prefix("to "))?;
            Some(rest)
        }) else {
            return false;
        };
        let value = value.trim_start_matches([' ', '"', '\'', '`']);
        let is_zero =
            value.trim_start_matches('0').chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '.')
                && value.starts_with('0');
        (!before.ends_with(is_word) || before.ends_with("%20"))
            && !is_reset
            && !is_zero
            && !value.is_empty()
            && !value.starts_with('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_every_form() {
        for line in [
            "await client.unsafe(`SET lock_timeout = '${DDL_LOCK_TIMEOUT}'`)",
            "connection.execute(\"SET LOCAL lock_timeout TO '5s'\")",
            "PGOPTIONS=-c lock_timeout=5s",
            "postgres://u@h/d?options=-c%20lock_timeout%3D5s",
            "config.RuntimeParams[\"lock_timeout\"] = \"5s\"",
            "connection: { lock_timeout: 5000 }",
            "select set_config('lock_timeout', '500ms', false)",
            "lock_timeout = 0.5s",
        ] {
            assert!(sets(line, "lock_timeout"), "{line}");
        }
        for line in [
            "SET lock_timeout = 0",
            "SET lock_timeout = '0';",
            "SHOW lock_timeout",
            "RESET lock_timeout;",
            "my_lock_timeout = 5",
            "if lock_timeout == 5",
            "// hits lock_timeout",
            "Who sets `lock_timeout`: each migration, or the role",
        ] {
            assert!(!sets(line, "lock_timeout"), "{line}");
        }
    }

    #[test]
    fn the_code_must_run_the_migrations_or_configure_connections() {
        let set = "SET lock_timeout = '5s'";
        let of = |text: &str| timeout(text, "migrations", Tool::GolangMigrate);
        let at = |line| Some(("lock_timeout", line));
        assert_eq!(of(&format!("read('migrations')\n// {set}\nrun(\"{set}\")")), at(3));
        assert_eq!(of(&format!("run(\"{set}\")")), None);
        assert_eq!(of(&format!("// after the migrations\nrun(\"{set}\")")), None);
        assert_eq!(of(&format!("//go:embed migrations/*.sql\nrun(\"{set}\")")), at(2));
        assert_eq!(of("PGOPTIONS: -c statement_timeout=60s"), Some(("statement_timeout", 1)));
        let reads = format!("// The migrations.\nglob(dir + \"*.up.sql\"); os.ReadFile(file)\nexec(\"{set}\")");
        assert_eq!(of(&reads), at(3));
        assert_eq!(of(&reads.replace("ReadFile", "Open").replace("glob", "walk")), None);
        let options =
            "import \"github.com/golang-migrate/migrate/v4\"\nopen(url + \"?options=-c lock_timeout=\" + wait)";
        assert_eq!(of(options), at(2));
        let pool = "import \"github.com/golang-migrate/migrate/v4\"\nRuntimeParams: map{\"lock_timeout\": \"5s\"}";
        assert_eq!(of(pool), at(2));
        assert_eq!(timeout(pool, "migrations", Tool::Goose), None, "another tool runs the migrations");
    }
}
