//! Puts in place what a finding offers, as `check --fix` and `rewrite --in-place` do, and checks the result.

use super::project::{Copied, leads_up, load};
use pgvet_linter::check::check;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::fix::{Applicability, Fix, apply};
use pgvet_linter::refusal::is_refusal;
use pgvet_linter::rewrite::{PlannedFile, Refusal, rewrite};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_workspace::{Project, sequence};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A fix may make room for the next one.
const ROUNDS: usize = 5;

/// One way out of a finding.
pub(super) struct Offer {
    pub(super) found: Diagnostic,
    pub(super) way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Fix,
    Rewrite,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Fix => "fix",
            Self::Rewrite => "plan",
        })
    }
}

/// The result of applying an offer.
pub(super) enum Changed {
    /// There is no plan, for this reason.
    Refused(String),
    Files(ChangedFiles),
}

/// The migrations that take the place of the original.
pub(super) struct ChangedFiles {
    source: Source,
    /// The finding of their check that is evidence against the offer.
    pub(super) problem: Option<String>,
}

enum Source {
    /// Files of the migration tool.
    Loaded(Box<Project>),
    /// A plan for which the tool has no form, to be run by hand.
    Printed(Vec<(ParsedFile, TransactionMode)>),
}

impl Changed {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Self::Files(files) = self {
            for migration in files.migrations() {
                let SourceFile { path, text: sql, .. } = migration.file;
                let name: Vec<&str> = path.rsplit('/').take(2).collect();
                let _ = writeln!(text, "==> {} ({:?})\n{sql}", name.concat(), migration.transaction);
            }
        }
        text
    }
}

impl ChangedFiles {
    pub(super) fn migrations(&self) -> Vec<Migration<'_>> {
        let migrations: Vec<Migration<'_>> = match &self.source {
            Source::Loaded(project) => project.migrations().into_iter().filter(leads_up).collect(),
            Source::Printed(files) => {
                let printed = files.iter();
                printed.map(|(file, mode)| Migration { transaction: *mode, ..Migration::new(file) }).collect()
            }
        };
        migrations.into_iter().map(|migration| Migration { database: 1, report: true, ..migration }).collect()
    }
}

impl Copied {
    /// Applies the offer, checks the result, and restores the files.
    pub(super) fn change(&self, offer: &Offer) -> Result<Changed, String> {
        let source = match offer.way {
            Way::Fix => self.fixed(offer)?,
            Way::Rewrite => match self.planned(offer)? {
                Ok(source) => source,
                Err(reason) => return Ok(Changed::Refused(reason)),
            },
        };
        let mut files = ChangedFiles { source, problem: None };
        files.problem = self.problem(offer, &files.migrations());
        Ok(Changed::Files(files))
    }

    /// The plan as files; the reason where there is none.
    fn planned(&self, offer: &Offer) -> Result<Result<Source, String>, String> {
        let index = offer.found.file as usize;
        let (file, migrations) = (self.file(index), self.project.migrations());
        if file.has_values() {
            return Ok(Err("placeholders have values".to_owned()));
        }
        let plan = match rewrite(&migrations[..=index], &self.settings) {
            Ok(plan) => plan,
            Err(Refusal::NothingToDo) => return Ok(Err("nothing to do".to_owned())),
            Err(Refusal::Unsupported(reason) | Refusal::Fails(reason)) => return Ok(Err(reason)),
        };
        let section = file.layout.sections.iter().find(|section| section.range == migrations[index].section);
        match sequence(file, section.copied(), &plan.files) {
            Ok(sequence) => {
                let files: Vec<(PathBuf, String)> =
                    sequence.files.into_iter().map(|file| (file.path, file.text)).collect();
                written(&files).map(Ok)
            }
            Err(_) => Ok(Ok(Source::Printed(plan.files.iter().map(printed).collect()))),
        }
    }

    /// Returns the findings in migrations that replace one.
    fn check(&self, index: u32, new: &[Migration<'_>]) -> Vec<Diagnostic> {
        let mut migrations = self.project.migrations();
        migrations.truncate(index as usize);
        migrations.iter_mut().for_each(|migration| migration.report = false);
        migrations.extend(new);
        let mut found = check(&migrations, &self.settings);
        found.iter_mut().for_each(|found| found.file -= index);
        found
    }

    /// The findings that the offer brings about, and its own if that is still there. A statement of the author about
    /// which another rule has something to say now was not well before.
    fn new_findings(&self, offer: &Offer, new: &[Migration<'_>]) -> Vec<Diagnostic> {
        let found = self.check(offer.found.file, new);
        let before = || self.found.iter().filter(|found| found.file == offer.found.file);
        let is_ours = |found: &&Diagnostic| key(found) == key(&offer.found);
        let is_still_there = found.iter().filter(is_ours).count() >= before().filter(is_ours).count();
        let original = words(&self.file(offer.found.file as usize).shown().text);
        let is_of_author = |found: &Diagnostic| {
            let text = &new[found.file as usize].file.text;
            original.contains(&words(&text[found.statement.as_usize()]))
        };
        let is_new = |found: &Diagnostic| {
            let is_known_rule = before().any(|known| known.rule == found.rule);
            is_refusal(found) || is_still_there && is_ours(&found) || !is_known_rule && !is_of_author(found)
        };
        found.into_iter().filter(is_new).collect()
    }

    /// Fixes as `check --fix` does: what a fix brings about is fixed in the next rounds.
    fn fixed(&self, offer: &Offer) -> Result<Source, String> {
        let file = self.file(offer.found.file as usize);
        let mut text = file.shown().text.clone();
        let mut fixes: Vec<Fix> = best(&offer.found).into_iter().collect();
        for _ in 0..ROUNDS {
            text = apply(&text, &fixes).text;
            let Source::Loaded(project) = written(&[(file.path.clone(), text.clone())])? else { break };
            let migrations: Vec<Migration<'_>> = project.migrations().into_iter().filter(leads_up).collect();
            let new = self.new_findings(offer, &migrations);
            fixes = new.iter().filter(|found| key(found) != key(&offer.found)).filter_map(best).collect();
            if fixes.is_empty() {
                break;
            }
        }
        written(&[(file.path.clone(), text)])
    }

    /// Returns the problem that the check finds in the result.
    fn problem(&self, offer: &Offer, new: &[Migration<'_>]) -> Option<String> {
        let mut problem = String::new();
        for found in self.new_findings(offer, new) {
            let _ = writeln!(problem, "reported: {}: {}", found.rule, found.message);
        }
        (!problem.is_empty()).then_some(problem)
    }
}

/// The first fix that changes the file.
fn best(found: &Diagnostic) -> Option<Fix> {
    found.fixes.iter().find(|fix| fix.applicability >= Applicability::Unsafe).cloned()
}

/// Writes files, reads them as the tool would, in this order, and takes them away again.
fn written(files: &[(PathBuf, String)]) -> Result<Source, String> {
    let failure = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    let before: Vec<Option<Vec<u8>>> = files.iter().map(|(path, _)| fs::read(path).ok()).collect();
    for (path, text) in files {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failure(folder, &error))?;
        }
        fs::write(path, text).map_err(|error| failure(path, &error))?;
    }
    // Beside migrations lie settings of their tool: `V2__b.sql.conf`, `metadata.toml`.
    let is_sql =
        |path: &&PathBuf| path.to_string_lossy().contains(".sql") && path.extension().is_none_or(|end| end != "conf");
    let mut project = load(files.iter().map(|(path, _)| path).filter(is_sql).cloned().collect())?;
    project.files.sort_by_key(|file| files.iter().position(|(path, _)| *path == file.path));
    for ((path, _), before) in files.iter().zip(before) {
        let restored = match before {
            Some(text) => fs::write(path, text),
            None => fs::remove_file(path),
        };
        restored.map_err(|error| failure(path, &error))?;
    }
    Ok(Source::Loaded(Box::new(project)))
}

/// A text with single blanks between its words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The identity of a finding, without numbers, which count migrations and rows.
fn key(found: &Diagnostic) -> (&'static str, String) {
    (found.rule, found.message.replace(|character: char| character.is_ascii_digit(), ""))
}

fn printed(file: &PlannedFile) -> (ParsedFile, TransactionMode) {
    let mode = if file.transaction { TransactionMode::Transaction } else { TransactionMode::Autocommit };
    (parse_file(SourceFile::new(file.title.clone(), file.text())), mode)
}
