//! Evolve and `DbUp`, libraries of .NET that the project file around the migrations names.
//!
//! Read in the source, because no package registry at hand has them: Evolve 3.4, `MigrationUtil.cs`, `MigrationScript.cs`
//! and `SimpleSqlStatementBuilder.cs`; `DbUp` 6, `UpgradeEngineBuilder`, `DefaultScriptSorter.cs`, `StandardExtensions.cs`
//! and `PostgresqlConnectionManager.cs`.

use super::folder::Facts;
use super::model::of_dbup;
use super::project::LEVELS;
use super::{Layout, Tool};
use crate::boundary::Boundary;
use crate::config::absolute;
use crate::nearby::Nearby;
use crate::skipped;
use pgvet_model::migration::TransactionMode::{self, Autocommit, Transaction};
use rustc_hash::FxHashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A project of .NET.
#[derive(Debug)]
struct Project {
    folder: PathBuf,
    /// Of the project file.
    text: Arc<str>,
    transaction: TransactionMode,
    /// Whether the transaction is one for all scripts.
    is_one: bool,
}

/// The projects of folders that have one, each looked up once.
#[derive(Debug, Default)]
pub(super) struct Projects(FxHashMap<PathBuf, Option<Arc<Project>>>);

/// The library that runs the SQL files of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    Evolve,
    /// `is_one`: whether the transaction is one for all scripts.
    Dbup {
        transaction: TransactionMode,
        is_one: bool,
    },
}

impl Library {
    pub(super) fn tool(self) -> Tool {
        match self {
            Self::Evolve => Tool::Evolve,
            Self::Dbup { .. } => Tool::Dbup,
        }
    }
}

impl Projects {
    /// Returns the library of the nearest project around a folder.
    pub(super) fn library(&mut self, folder: &Path, nearby: &Nearby) -> Option<Library> {
        let boundary = Boundary::around(folder);
        let mut around = folder.ancestors().take(LEVELS).take_while(|above| boundary.refusal(above).is_none());
        let project = around.find_map(|above| {
            let known =
                self.0.entry(above.to_owned()).or_insert_with_key(|above| Project::of(above, nearby).map(Arc::new));
            known.clone()
        })?;
        if project.requires("Evolve") {
            return Some(Library::Evolve);
        }
        let Project { transaction, is_one, .. } = *project;
        let is_dbup = project.requires("dbup-postgresql") && project.takes_sql_of(folder);
        is_dbup.then_some(Library::Dbup { transaction, is_one })
    }
}

impl Project {
    /// The project whose file lies directly in a folder.
    fn of(folder: &Path, nearby: &Nearby) -> Option<Self> {
        let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
        let is_project = |path: &PathBuf| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("csproj" | "fsproj"))
        };
        let mut files: Vec<PathBuf> = entries.filter(is_project).collect();
        files.sort();
        let text = files.iter().find_map(|file| nearby.text(file))?;
        let (transaction, is_one) = transaction(folder, nearby);
        Some(Self { folder: folder.to_owned(), text, transaction, is_one })
    }

    fn requires(&self, package: &str) -> bool {
        self.items("PackageReference").any(|name| name.eq_ignore_ascii_case(package))
    }

    /// What the items of a kind include.
    fn items<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a str> {
        let kind = format!("<{kind} ");
        self.text.lines().filter_map(move |line| {
            let item = &line[line.find(&kind)?..];
            let value = &item[item.find("Include=\"")? + "Include=\"".len()..];
            Some(&value[..value.find('"')?])
        })
    }

    /// Whether SQL files of the folder are part of the program or are copied beside it.
    fn takes_sql_of(&self, folder: &Path) -> bool {
        let folder = absolute(folder);
        let Ok(relative) = folder.strip_prefix(&self.folder) else { return false };
        let is_of_folder = |pattern: &str| {
            let pattern = pattern.replace('\\', "/");
            let Some((above, name)) = pattern.rsplit_once('/') else { return false };
            let (above, is_deep) = match above.split_once("**") {
                Some((above, _)) => (above.trim_end_matches('/'), true),
                None => (above, false),
            };
            skipped::is_sql(name) && (relative == Path::new(above) || (is_deep && relative.starts_with(above)))
        };
        ["EmbeddedResource", "Content", "None"].iter().any(|kind| self.items(kind).any(is_of_folder))
    }
}

/// Whether the first line of a file takes it out of the transaction. Source: Evolve, `MigrationScript.cs`, `OptionExists`.
pub(super) fn is_outside_for_evolve(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.to_ascii_lowercase().contains("evolve-tx-off"))
}

/// How the code of the project asks `DbUp` to run scripts, if it is found beside the project file.
pub(super) fn ask_for_transaction(layout: &mut Layout, around: &Facts) {
    let Some(Library::Dbup { transaction, is_one }) = around.dotnet else { return };
    layout.runner_of_code = Some(of_dbup(is_one));
    layout.sections.iter_mut().for_each(|section| section.transaction = transaction);
}

/// The transaction of a script, and whether it is one for all of them. None is the default.
fn transaction(project: &Path, nearby: &Nearby) -> (TransactionMode, bool) {
    let code: Vec<Arc<str>> = nearby.code(project).filter_map(|file| nearby.text(&file)).collect();
    let calls = |name: &str| code.iter().any(|text| text.contains(name));
    match (calls(".WithTransactionPerScript("), calls(".WithTransaction(")) {
        (true, _) => (Transaction, false),
        (false, is_one) => (if is_one { Transaction } else { Autocommit }, is_one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(csproj: &str, code: &str, folder: &str) -> Option<Library> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        let folder = root.path().join("src/App").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(root.path().join("src/App/App.csproj"), csproj).unwrap();
        fs::write(root.path().join("src/App/Program.cs"), code).unwrap();
        Projects::default().library(&folder, &Nearby::default())
    }

    #[test]
    fn project_files_name_the_library() {
        let dbup = "<PackageReference Include=\"dbup-postgresql\" Version=\"6\" />\n";
        let embedded = |pattern: &str| format!("{dbup}<EmbeddedResource Include=\"{pattern}\" />\n");
        for (csproj, expected) in [
            ("<PackageReference Include=\"Evolve\" Version=\"3.2.0\" />".to_owned(), Some(Tool::Evolve)),
            ("<PackageReference Include=\"Evolve.Other\" />".to_owned(), None),
            (embedded("db\\Scripts\\*.sql"), Some(Tool::Dbup)),
            (embedded("db/**/*.sql"), Some(Tool::Dbup)),
            (embedded("**\\*.sql"), Some(Tool::Dbup)),
            (embedded("db\\*.sql"), None),
            (embedded("db\\Scripts\\*.txt"), None),
            (dbup.to_owned(), None),
        ] {
            assert_eq!(found(&csproj, "", "db/Scripts").map(Library::tool), expected, "{csproj}");
        }
    }

    #[test]
    fn code_asks_for_a_transaction() {
        for (code, expected) in [
            ("DeployChanges.To.PostgresqlDatabase(c).Build();", (Autocommit, false)),
            ("DeployChanges.To.PostgresqlDatabase(c).WithTransactionPerScript().Build();", (Transaction, false)),
            (".WithTransaction()\n", (Transaction, true)),
        ] {
            let csproj = "<PackageReference Include=\"dbup-postgresql\" />\n<EmbeddedResource Include=\"**/*.sql\" />";
            let (transaction, is_one) = expected;
            assert_eq!(found(csproj, code, "Scripts"), Some(Library::Dbup { transaction, is_one }), "{code}");
        }
    }

    #[test]
    fn the_first_line_takes_a_file_of_evolve_out_of_the_transaction() {
        assert!(is_outside_for_evolve("-- Evolve-TX-off\nVACUUM;"));
        assert!(!is_outside_for_evolve("VACUUM;\n-- evolve-tx-off"));
    }
}
