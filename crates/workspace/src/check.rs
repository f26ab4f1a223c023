//! The check of a project: each database by itself, and findings where they are in the files.

use crate::cache::{Cache, Warm};
use crate::config::{Config, ConfigError};
use crate::layout::{self, Folders, Section};
use crate::project::{Project, ProjectFile, Request, Role};
use crate::read::EncodingError;
use crate::texts::Texts;
use crate::{ahead, parallel};
use pgvet_linter::check::{self, Outcome};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::fix::Edit;
use pgvet_linter::repository::RepositoryEvidence;
use pgvet_linter::row_counts::RowCounts;
use pgvet_linter::settings::{Levels, Settings};
use pgvet_linter::severity::Severity;
use pgvet_model::application::Application;
use pgvet_model::catalog::Catalog;
use pgvet_model::effect::{Effects, Evidence};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::replay::Host;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{ParsedFile, Statement};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the observed effects of a statement on a server, if they are known: given the index of its migration, its
/// range, what the model says, and the catalog after it.
pub type Observe<'a> = dyn Fn(u32, TextRange, &Effects, &Catalog) -> Option<Effects> + Sync + 'a;

type MakeSettings<'a> = dyn Fn(&Config) -> Settings + Sync + 'a;

/// The migrations that are replayed on one catalog.
struct Group {
    config: Arc<Config>,
    application: Arc<Application>,
    /// Indexes into [`Project::migrations`].
    migrations: Vec<u32>,
}

impl Group {
    fn own<'m>(&self, migrations: &[Migration<'m>]) -> Vec<Migration<'m>> {
        self.migrations.iter().map(|index| migrations[*index as usize]).collect()
    }

    /// Findings name migrations by their position in the group: names them by their index in [`Project::migrations`].
    fn number(&self, outcome: &mut Outcome) {
        let suppressed = outcome.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
        for diagnostic in outcome.found.iter_mut().chain(suppressed) {
            diagnostic.file = self.migrations[diagnostic.file as usize];
            diagnostic.labels.iter_mut().for_each(|label| label.file = self.migrations[label.file as usize]);
        }
    }

    /// The settings of its run.
    fn settings(
        &self,
        levels: &BTreeMap<u32, Levels>,
        sections: &[(&ProjectFile, Section)],
        settings: &dyn Fn(&Config) -> Settings,
    ) -> Settings {
        let places = self.migrations.iter().enumerate();
        let of_files = places.filter_map(|(place, index)| Some((place as u32, levels.get(index)?.clone())));
        Settings {
            file_levels: of_files.collect(),
            opt_outs: opt_outs(self, sections),
            repository: evidence(self, sections),
            application: Arc::clone(&self.application),
            row_counts: row_counts(self, sections),
            ..settings(&self.config)
        }
    }
}

impl Project {
    /// [`Project::load`] for [`Project::check`] only: a file is parsed when the check comes to it, unless it leads to
    /// what the cache knows. `settings` makes the settings of a run of a configuration.
    pub fn load_to_check(
        request: &Request,
        cache: Option<&Cache>,
        settings: &MakeSettings<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, ConfigError> {
        let unread = |_: &Texts, _: &Path, text| Arc::new(ParsedFile::unread(text));
        let mut project = Self::load_with(request, &Folders::default(), &unread, progress)?;
        project.unread = true;
        if let Some(cache) = cache {
            let migrations = project.migrations();
            let (levels, sections) = (project.file_levels(), project.sections());
            let warm =
                |group: Group| Warm::new(cache, &group.own(&migrations), &group.settings(&levels, &sections, settings));
            project.warm = project.groups(&migrations).into_iter().map(warm).collect();
        }
        Ok(project)
    }

    /// All findings, in the order of files. [`Diagnostic::file`] is an index into [`Project::migrations`]. `settings`
    /// makes the settings of a run of a configuration.
    ///
    /// Databases have nothing to do with each other, so they are checked side by side. Calls `progress` with the number
    /// of migrations done and of all.
    pub fn check(&self, settings: &MakeSettings<'_>, progress: &(dyn Fn(usize, usize) + Sync)) -> Outcome {
        self.check_observed(settings, &|_, _, _, _| None, progress)
    }

    /// Like [`Self::check`], but judges what `observe` saw a statement do, if it knows.
    pub fn check_observed(
        &self,
        settings: &MakeSettings<'_>,
        observe: &Observe<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Outcome {
        let migrations = self.migrations();
        let done = AtomicUsize::new(0);
        let one_done = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, migrations.len());
        let (levels, sections) = (self.file_levels(), self.sections());
        let check_group = |at: usize, group: &Group| {
            let (own, settings) = (group.own(&migrations), group.settings(&levels, &sections, settings));
            let run = |statements: Option<&ahead::Read<'_>>| {
                let host = GroupHost { group, statements, observe, done: &one_done };
                match self.warm.get(at) {
                    Some(warm) => warm.check(&own, &settings, &host),
                    None => check::run(&own, &settings, &host),
                }
            };
            let mut outcome = if self.unread { ahead::with(&own, |read| run(Some(read))) } else { run(None) };
            group.number(&mut outcome);
            outcome
        };
        let size = |group: &&Group| {
            let texts = group.migrations.iter().map(|index| &migrations[*index as usize].file.text);
            texts.map(|text| text.len() as u64).sum()
        };
        let groups = self.groups(&migrations);
        let mut all = Outcome::default();
        for outcome in parallel::map_largest_first(groups.iter().collect(), size, check_group) {
            all.found.extend(outcome.found);
            all.suppressed.extend(outcome.suppressed);
            all.hidden.below_level += outcome.hidden.below_level;
            all.hidden.below_confidence += outcome.hidden.below_confidence;
        }
        self.finish(&mut all, settings);
        all
    }

    /// Moves findings to where they are in the files, adds those about the files themselves, and sorts.
    pub(crate) fn finish(&self, outcome: &mut Outcome, settings: &dyn Fn(&Config) -> Settings) {
        let files = self.files_of_migrations();
        let suppressed = outcome.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
        for diagnostic in outcome.found.iter_mut().chain(suppressed) {
            put_on_disk(diagnostic, &files);
        }
        outcome.found.extend(self.encoding_diagnostics(settings));
        let place = |diagnostic: &Diagnostic| (diagnostic.file, diagnostic.range.start, diagnostic.range.end);
        outcome.found.sort_by_key(place);
        outcome.suppressed.sort_by_key(|suppressed| place(&suppressed.diagnostic));
    }

    /// The migrations of each database, after the history that all of them share.
    fn groups(&self, migrations: &[Migration<'_>]) -> Vec<Group> {
        let databases: BTreeSet<u32> = migrations.iter().map(|migration| migration.database).collect();
        let only_shared = databases.iter().all(|database| *database == 0);
        let belongs = |database: u32| {
            let all = migrations.iter().enumerate();
            let own = all.filter(move |(_, migration)| migration.database == 0 || migration.database == database);
            own.map(|(index, _)| index as u32).collect()
        };
        let databases = databases.into_iter().filter(|database| *database != 0 || only_shared);
        let group = |database| Group {
            config: self.config_of(database),
            application: Arc::clone(&self.application),
            migrations: belongs(database),
        };
        databases.map(group).collect()
    }

    /// The settings of the run of a project that has one database.
    pub(crate) fn only_settings(&self, settings: &Settings) -> Settings {
        let migrations = (0..self.migrations().len() as u32).collect();
        let application = Arc::clone(&self.application);
        let group = Group { config: self.config_of(1), application, migrations };
        group.settings(&self.file_levels(), &self.sections(), &|_| settings.clone())
    }

    /// The file and section of each migration.
    fn sections(&self) -> Vec<(&ProjectFile, Section)> {
        let sections = |file| ProjectFile::sections(file).map(move |section| (file, section));
        self.files.iter().flat_map(sections).collect()
    }

    /// The levels of rules in files for which configuration has overrides, by the index of the migration.
    fn file_levels(&self) -> BTreeMap<u32, Levels> {
        let mut levels = BTreeMap::new();
        let mut index = 0;
        for file in &self.files {
            let own = if file.role == Role::Reported { file.config.levels_of(&file.path) } else { None };
            for _ in &file.layout.sections {
                if let Some(own) = &own {
                    levels.insert(index, own.clone());
                }
                index += 1;
            }
        }
        levels
    }

    /// Findings about the files themselves. [`Diagnostic::file`] is an index into [`Project::migrations`].
    pub(crate) fn encoding_diagnostics(&self, settings: &dyn Fn(&Config) -> Settings) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        let mut index = 0;
        for file in &self.files {
            let sections = file.layout.sections.len();
            if let Some(error) = file.encoding.filter(|_| file.role == Role::Reported && sections > 0) {
                diagnostics.push(encoding_diagnostic(index, error, &settings(&self.config_of(file.database))));
            }
            index += sections as u32;
        }
        diagnostics
    }
}

/// Provides the information that the check of a group requests.
struct GroupHost<'h> {
    group: &'h Group,
    /// Where files were not parsed when they were read.
    statements: Option<&'h ahead::Read<'h>>,
    observe: &'h Observe<'h>,
    done: &'h dyn Fn(),
}

impl Host for GroupHost<'_> {
    fn statements(&self, migration: u32) -> Option<Arc<Vec<Statement>>> {
        self.statements.map(|read| read(migration))
    }

    fn observed(&self, migration: u32, statement: TextRange, predicted: &Effects, after: &Catalog) -> Option<Effects> {
        (self.observe)(self.group.migrations[migration as usize], statement, predicted, after)
    }

    fn done(&self) {
        (self.done)();
    }
}

/// What the repository shows about each migration of a group.
fn evidence(group: &Group, sections: &[(&ProjectFile, Section)]) -> FxHashMap<u32, RepositoryEvidence> {
    let places = group.migrations.iter().zip(0..).map(|(index, place)| (place, &sections[*index as usize].0.evidence));
    places.filter(|(_, evidence)| !evidence.is_empty()).map(|(place, evidence)| (place, evidence.clone())).collect()
}

/// What a database has answered about each migration of a group.
fn row_counts(group: &Group, sections: &[(&ProjectFile, Section)]) -> FxHashMap<u32, RowCounts> {
    let places =
        group.migrations.iter().zip(0..).map(|(index, place)| (place, &sections[*index as usize].0.row_counts));
    places.filter(|(_, counts)| !counts.is_empty()).map(|(place, counts)| (place, counts.clone())).collect()
}

/// The edits that take each migration of a group out of the transaction of its tool.
fn opt_outs(group: &Group, sections: &[(&ProjectFile, Section)]) -> FxHashMap<u32, Edit> {
    let mut opt_outs = FxHashMap::default();
    for (place, index) in group.migrations.iter().enumerate() {
        let (file, section) = &sections[*index as usize];
        if file.role == Role::Reported && section.transaction == TransactionMode::Transaction {
            let text = &file.parsed.source.text;
            let opt_out = layout::opt_out(file.layout.tool, text, section.range);
            opt_outs.extend(opt_out.map(|edit| (place as u32, edit)));
        }
    }
    opt_outs
}

/// Moves the places of a finding to where they are in the files.
fn put_on_disk(diagnostic: &mut Diagnostic, files: &[&ProjectFile]) {
    let file = files[diagnostic.file as usize];
    diagnostic.range = file.on_disk(diagnostic.range);
    diagnostic.statement = file.on_disk(diagnostic.statement);
    if file.origin.is_some() {
        // The source would have to be changed.
        diagnostic.fixes.clear();
    }
    // A change of a value would have to be made in the configuration.
    let holds_value = |range| file.original.as_ref().is_some_and(|original| original.substitution.holds_value(range));
    // Nor may a fix write a value where the file has the placeholder.
    let writes_value = |text: &str| {
        file.original.is_some()
            && file.config.placeholders.values().any(|value| value.len() > 1 && text.contains(value))
    };
    let keeps = |edit: &Edit| !holds_value(edit.range) && !writes_value(&edit.text);
    diagnostic.fixes.retain(|fix| fix.edits.iter().all(keeps));
    if diagnostic.steps.iter().any(|step| writes_value(&step.sql)) {
        diagnostic.steps.clear();
    }
    for edit in diagnostic.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
        edit.range = file.on_disk(edit.range);
    }
    for label in &mut diagnostic.labels {
        label.range = files[label.file as usize].on_disk(label.range);
    }
}

fn encoding_diagnostic(file: u32, error: EncodingError, settings: &Settings) -> Diagnostic {
    let at = error.range.start;
    let help = "save the file as UTF-8; the bytes were read as `?`, and the rest was checked";
    Diagnostic {
        rule: "unsupported-encoding",
        severity: Severity::Error,
        confidence: Confidence::Certain,
        assumptions: Vec::new(),
        message: format!("byte {at} is not UTF-8, the encoding in which migrations are read"),
        help: Some(help.to_owned()),
        file,
        range: error.range,
        statement: error.range,
        labels: Vec::new(),
        relations: Vec::new(),
        pg_versions: settings.versions.iter().collect(),
        fixes: Vec::new(),
        steps: Vec::new(),
        obstacle: None,
        evidence: Evidence::Predicted,
        cause: None,
    }
}
