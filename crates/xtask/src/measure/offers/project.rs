//! A copy of the migrations of a project, in the order in which they were measured.

use super::offer::{Offer, Way};
use crate::measure::history_truth::{Database, short_name};
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::fix::Applicability;
use pgvet_linter::settings::Settings;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::version::VersionRange;
use pgvet_workspace::{Project, ProjectFile, Request};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Setup that the files of a repository do not show: its `pgvet.toml`, and what an administrator did before.
struct Presupposed {
    repo: &'static str,
    configuration: &'static str,
    setup: &'static str,
}

const PRESUPPOSED: [Presupposed; 2] = [
    Presupposed {
        repo: "auth",
        configuration: "[placeholders]\n'{{ index .Options \"Namespace\" }}' = \"auth\"\n",
        setup: "CREATE SCHEMA auth",
    },
    Presupposed { repo: "synapse", configuration: "[migrations]\ntransaction = \"transaction\"\n", setup: "" },
];

/// A project whose files may be changed.
pub(super) struct Copied {
    pub(super) root: TempDir,
    repo: String,
    pub(super) project: Project,
    /// In the order of [`Project::migrations`].
    pub(super) found: Vec<Diagnostic>,
    pub(super) settings: Settings,
}

impl Copied {
    /// Copies what lies beside the files of a database, and above them, because that gives their tool away.
    pub(super) fn new(checkouts: &Path, database: &Database, versions: VersionRange) -> Result<Self, String> {
        let repo = short_name(&database.repo).to_owned();
        let from = checkouts.join(&repo);
        let root = tempfile::tempdir().map_err(|error| format!("a folder for {repo}: {error}"))?;
        let paths: Vec<&Path> = database.files.iter().map(|file| Path::new(file.parsed.source.path.as_str())).collect();
        let mut common = paths.first().and_then(|path| path.parent()).unwrap_or(Path::new(""));
        while !paths.iter().all(|path| path.starts_with(common)) {
            common = common.parent().unwrap_or(Path::new(""));
        }
        copy(&from.join(common), &root.path().join(common), true)?;
        for above in common.ancestors().skip(1) {
            copy(&from.join(above), &root.path().join(above), false)?;
        }
        if let Some(presupposed) = PRESUPPOSED.iter().find(|presupposed| presupposed.repo == repo) {
            let path = root.path().join("pgvet.toml");
            fs::write(&path, presupposed.configuration).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let places: BTreeMap<PathBuf, usize> =
            paths.iter().enumerate().map(|(at, path)| (root.path().join(path), at)).collect();
        let mut project = load(places.keys().cloned().collect())?;
        project.files.sort_by_key(|file| places.get(&file.path).copied());
        project.databases.truncate(1);
        project.files.iter_mut().for_each(|file| file.database = 1);
        let settings = Settings { versions, versions_configured: true, ..Settings::default() };
        let found = project.check(&|config| with_versions(&config.settings, versions), &|_, _| ()).found;
        Ok(Self { root, repo, project, found, settings })
    }

    /// SQL that creates the objects that the first migration presupposes.
    pub(super) fn setup(&self) -> &'static str {
        PRESUPPOSED.iter().find(|presupposed| presupposed.repo == self.repo).map_or("", |presupposed| presupposed.setup)
    }

    /// The changes of `check --fix --unsafe-fixes` and `rewrite` for each finding.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let mut offers = Vec::new();
        for found in &self.found {
            if found.fixes.iter().any(|fix| fix.applicability >= Applicability::Unsafe) {
                offers.push(Offer { found: found.clone(), way: Way::Fix });
            }
            if !found.steps.is_empty() {
                offers.push(Offer { found: found.clone(), way: Way::Rewrite });
            }
        }
        offers
    }

    /// The file of a migration.
    pub(super) fn file(&self, migration: usize) -> &ProjectFile {
        self.project.files_of_migrations()[migration]
    }

    /// The migration of the finding, alone.
    pub(super) fn original(&self, offer: &Offer) -> Vec<Migration<'_>> {
        vec![self.project.migrations()[offer.found.file as usize]]
    }

    /// `lemmy migrations/x/up.sql:3:1: message`
    pub(super) fn shown(&self, found: &Diagnostic) -> String {
        let file = self.file(found.file as usize).shown();
        let at = file.position(found.range.start);
        let path = Path::new(&file.path);
        let path = path.strip_prefix(self.root.path()).unwrap_or(path).display();
        format!("{} {path}:{}:{}: {}", self.repo, at.line, at.column, found.message)
    }
}

/// Loads files without what lies beside them.
pub(super) fn load(paths: Vec<PathBuf>) -> Result<Project, String> {
    let request = Request { paths, without_history: true, ..Request::default() };
    let project = Project::load(&request, &|_, _| ()).map_err(|error| error.message)?;
    match project.problems.first() {
        Some(problem) => Err(format!("{}: {}", problem.path, problem.message)),
        None => Ok(project),
    }
}

fn with_versions(settings: &Settings, versions: VersionRange) -> Settings {
    Settings { versions, versions_configured: true, ..settings.clone() }
}

fn copy(from: &Path, to: &Path, with_folders: bool) -> Result<(), String> {
    let failure = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(failure)?;
    for entry in fs::read_dir(from).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_file() {
            fs::copy(&path, &target).map_err(failure)?;
        } else if path.is_dir() && with_folders {
            copy(&path, &target, true)?;
        }
    }
    Ok(())
}

/// Whether it is run as an up migration.
pub(super) fn leads_up(migration: &Migration<'_>) -> bool {
    migration.direction == Direction::Up
}
