//! Passes over the findings of a run after the rules, in this order: evidence of the repository, refusals, overlap, suppression
//! ([`crate::suppression`]), and what the settings hide. Baseline and grouping belong to the programs that report.

mod refused;

use crate::assumption::Assumption;
use crate::confidence::Confidence;
use crate::diagnostic::Diagnostic;
use crate::meta::Category;
use crate::repository::IdleReason;
use crate::rules;
use crate::settings::Settings;
use crate::severity::Severity;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{Placeholder, PlaceholderKind};
pub(crate) use refused::Refused;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

/// Findings that a run made and does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// Less severe than [`Settings::level`].
    pub below_level: usize,
    /// Severe enough, but less sure than [`Settings::confidence`].
    pub below_confidence: usize,
}

/// Lowers the confidence of findings against which the repository has evidence.
pub(crate) fn weigh(found: &mut [Diagnostic], settings: &Settings) {
    if settings.repository.is_empty() {
        return;
    }
    for diagnostic in found {
        let Some(evidence) = settings.repository.get(&diagnostic.file) else { continue };
        if evidence.script && diagnostic.is_of(&rules::engine::syntax_error::RULE.meta) {
            diagnostic.assume(Assumption::SentUnchanged);
        }
        // That a tool leaves a file out is what rules of the history report.
        let is_of_history = || rules::find(diagnostic.rule).is_some_and(|rule| rule.meta.category == Category::History);
        let idle = evidence.idle.clone();
        if let Some(although) = idle.filter(|idle| *idle != IdleReason::Unlisted || !is_of_history()) {
            diagnostic.assume(Assumption::StillRun { although });
        }
        if let Some(although) = evidence.dialect.clone()
            && crate::refusal::is_refusal(diagnostic)
        {
            diagnostic.assume(Assumption::ForPostgreSql { although });
        }
        if evidence.built_with.as_ref().is_some_and(|tables| is_about_use(diagnostic, tables)) {
            diagnostic.assume(Assumption::RunsOnItsOwn);
        }
        let script = evidence.psql.as_ref().and_then(|psql| psql.transaction.clone());
        let assumed = diagnostic.assumptions.iter().position(Assumption::is_about_transaction);
        if let (Some(at), Some(script)) = (assumed, script) {
            diagnostic.assumptions.remove(at);
            diagnostic.assume(Assumption::TransactionOfFileThoughScript { script });
        }
        let order = evidence.psql.as_ref().and_then(|psql| psql.order.clone());
        if let Some(script) =
            order.filter(|_| diagnostic.is_of(&rules::compatibility::if_not_exists_masks_difference::RULE.meta))
        {
            diagnostic.assume(Assumption::OrderThoughScript { script });
        }
        if let Some(place) = &evidence.mentions_concurrently {
            name_program(diagnostic, place);
        }
        let unset = diagnostic.assumptions.iter().position(|one| *one == Assumption::LockTimeoutUnset);
        if let (Some(at), Some(code)) = (unset, evidence.timeout.clone()) {
            diagnostic.assumptions.remove(at);
            diagnostic.assume(Assumption::NoTimeoutThough { code });
        }
    }
}

/// Adds the place to the assumption that a program opens a transaction although it mentions CONCURRENTLY there.
fn name_program(diagnostic: &mut Diagnostic, place: &SmolStr) {
    for assumption in &mut diagnostic.assumptions {
        if let Assumption::TransactionOfFileThoughSelective { place: named } = assumption {
            *named = Some(place.clone());
        }
    }
}

/// Whether a finding is about rows and users of these tables only.
fn is_about_use(diagnostic: &Diagnostic, tables: &BTreeSet<SmolStr>) -> bool {
    use Category::{Compatibility, Data, Locking, Transaction};
    let category = rules::find(diagnostic.rule).map(|rule| rule.meta.category);
    let is_of_them = |relation: &String| tables.contains(relation.rsplit('.').next().unwrap_or_default());
    matches!(category, Some(Locking | Data | Transaction | Compatibility))
        && !crate::refusal::is_refusal(diagnostic)
        && !diagnostic.relations.is_empty()
        && diagnostic.relations.iter().all(is_of_them)
}

/// How much a finding counts against one that it would replace: whether it is shown, and whether it is more than possible.
type Weight = (bool, Confidence);

/// Drops findings where a rule that says it better has one at the same place or within it, or points to it; or anywhere in
/// the migration, if its findings are about all of it. One that is hidden replaces none that is shown, and one that is only possible none that is surer.
pub(crate) fn yield_to_others(found: &mut Vec<Diagnostic>, settings: &Settings) {
    let weight =
        |found: &Diagnostic| -> Weight { (is_shown(found, settings), found.confidence.min(Confidence::Likely)) };
    let mut places: BTreeMap<(&str, u32, u32, u32), Weight> = BTreeMap::new();
    for diagnostic in found.iter() {
        let labels = diagnostic.labels.iter().map(|label| (label.file, label.range));
        for (file, range) in labels.chain([(diagnostic.file, diagnostic.range)]) {
            let known = places.entry((diagnostic.rule, file, range.start, range.end)).or_insert(weight(diagnostic));
            *known = (*known).max(weight(diagnostic));
        }
    }
    let is_replaced = |diagnostic: &Diagnostic| {
        let (is_shown, confidence) = weight(diagnostic);
        let TextRange { start, end } = diagnostic.range;
        let yields_to = rules::find(diagnostic.rule).map_or(&[][..], |rule| rule.meta.yields_to);
        yields_to.iter().any(|rule| {
            let (start, end) = if rule.covers_migration { (0, u32::MAX) } else { (start, end) };
            let mut within =
                places.range((rule.name, diagnostic.file, start, 0)..=(rule.name, diagnostic.file, end, u32::MAX));
            within.any(|((.., ends), (shown, sure))| *ends <= end && *shown >= is_shown && *sure >= confidence)
        })
    };
    let replaced: Vec<bool> = found.iter().map(is_replaced).collect();
    let mut replaced = replaced.into_iter();
    found.retain(|_| !replaced.next().unwrap_or_default());
}

/// Removes what the settings do not show, and counts it.
pub(crate) fn hide(found: &mut Vec<Diagnostic>, settings: &Settings) -> Hidden {
    let mut hidden = Hidden::default();
    found.retain(|diagnostic| {
        let (severe, sure) = (is_severe(diagnostic, settings), diagnostic.confidence >= settings.confidence);
        hidden.below_level += usize::from(!severe);
        hidden.below_confidence += usize::from(severe && !sure);
        severe && sure
    });
    hidden
}

/// Whether the settings show the finding.
pub(crate) fn is_shown(diagnostic: &Diagnostic, settings: &Settings) -> bool {
    is_severe(diagnostic, settings) && diagnostic.confidence >= settings.confidence
}

fn is_severe(diagnostic: &Diagnostic, settings: &Settings) -> bool {
    diagnostic.severity >= settings.level || is_engine(diagnostic)
}

fn is_engine(diagnostic: &Diagnostic) -> bool {
    rules::find(diagnostic.rule).is_some_and(|rule| rule.meta.category == Category::Engine)
        && diagnostic.severity > Severity::Info
}

/// Removes edits that would change a placeholder, or write the filler that replaces it into the file.
pub(crate) fn keep_placeholders(found: &mut [Diagnostic], placeholders: &[Placeholder]) {
    if placeholders.is_empty() {
        return;
    }
    let is_value = |placeholder: &Placeholder| {
        !matches!(placeholder.kind, PlaceholderKind::Control | PlaceholderKind::MetaCommand | PlaceholderKind::Omitted)
    };
    let only_values = placeholders.iter().all(is_value);
    let stand_ins: Vec<String> = placeholders.iter().map(Placeholder::identifier).collect();
    let names_one = |text: &str| {
        let text = text.to_ascii_lowercase();
        stand_ins.iter().any(|stand_in| text.contains(stand_in.as_str()))
    };
    let holds_one = |range: TextRange| {
        placeholders
            .iter()
            .any(|placeholder| placeholder.range.start < range.end && range.start < placeholder.range.end)
    };
    for diagnostic in found {
        diagnostic
            .fixes
            .retain(|fix| only_values && !fix.edits.iter().any(|edit| holds_one(edit.range) || names_one(&edit.text)));
        if !only_values || diagnostic.steps.iter().any(|step| names_one(&step.sql)) {
            diagnostic.steps.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{CodeTimeout, DialectDoubt, Repeated, RepositoryEvidence};

    /// The confidence of the findings of a migration about which the repository shows this.
    fn confidences(text: &str, evidence: RepositoryEvidence) -> Vec<(&'static str, Confidence)> {
        let file =
            pgvet_syntax::statement::parse_file(pgvet_syntax::source::SourceFile::new("1.sql".into(), text.into()));
        let repository = std::iter::once((0, evidence)).collect();
        let settings = Settings { repository, confidence: Confidence::Possible, ..Settings::default() };
        let found = crate::check::check(&[pgvet_model::migration::Migration::new(&file)], &settings);
        found.iter().map(|found| (found.rule, found.confidence)).collect()
    }

    #[test]
    fn a_migration_that_may_not_run_has_possible_findings_only() {
        let idle = || Some(IdleReason::Folder { name: "old".into() });
        let text = "ALTER TABLE t DROP COLUMN a;\nSELEC 1;\n";
        let found = confidences(text, RepositoryEvidence { idle: idle(), ..RepositoryEvidence::default() });
        assert!(found.iter().all(|(_, confidence)| *confidence == Confidence::Possible), "{found:?}");
        let sure = confidences(text, RepositoryEvidence::default());
        assert_eq!(sure.len(), found.len());
        assert!(sure.contains(&("syntax-error", Confidence::Certain)), "{sure:?}");
    }

    #[test]
    fn a_timeout_of_the_program_counts_for_waits_alone() {
        let timeout = || CodeTimeout { setting: "lock_timeout".into(), place: "migrate.ts:4".into() };
        let found = confidences(
            "ALTER TABLE t DROP COLUMN a;\n",
            RepositoryEvidence { timeout: Some(timeout()), ..RepositoryEvidence::default() },
        );
        assert!(found.contains(&("missing-lock-timeout", Confidence::Possible)), "{found:?}");
        assert!(found.contains(&("drop-column", Confidence::Likely)), "{found:?}");
    }

    #[test]
    fn parts_of_a_baseline_and_repeated_files_are_doubted() {
        let text = "CREATE TABLE a (b int);\nALTER TABLE t DROP COLUMN b;\nDROP TABLE u;\nCREATE TABLE a (b int);\n";
        let of = |evidence| -> BTreeMap<&str, Confidence> { confidences(text, evidence).into_iter().collect() };
        let tables = std::sync::Arc::new(BTreeSet::from(["t".into()]));
        let built = of(RepositoryEvidence { built_with: Some(tables), ..RepositoryEvidence::default() });
        assert_eq!(built["drop-column"], Confidence::Possible);
        assert_eq!(built["drop-table"], Confidence::Likely, "no other file creates it");
        assert_eq!(built["statement-will-fail"], Confidence::Certain);
    }

    #[test]
    fn files_that_run_again_hide_no_refusal_that_the_first_run_has() {
        let of = |text: &str, removes| {
            let repeated = Some(Repeated { path: "1.sql".into(), removes });
            let evidence = RepositoryEvidence { repeated, ..RepositoryEvidence::default() };
            let file = |name: &str, text: &str| {
                pgvet_syntax::statement::parse_file(pgvet_syntax::source::SourceFile::new(name.into(), text.into()))
            };
            let files = [file("1.sql", "CREATE TABLE t (b int);"), file("2.sql", text)];
            let repository = std::iter::once((1, evidence)).collect();
            let settings = Settings { repository, confidence: Confidence::Possible, ..Settings::default() };
            let migrations = files.each_ref().map(pgvet_model::migration::Migration::new);
            let found = crate::check::check(&migrations, &settings);
            found.iter().find(|found| found.rule == "statement-will-fail").map(|found| found.confidence).unwrap()
        };
        // Whatever has run before.
        assert_eq!(of("CREATE TABLE a (b int);\nCREATE TABLE a (b int);\n", true), Confidence::Certain);
        assert_eq!(of("CREATE TABLE a (b int);\nALTER TABLE a DROP COLUMN c;\n", true), Confidence::Certain);
        assert_eq!(of("DO $$ BEGIN RAISE EXCEPTION 'no'; END $$;\n", true), Confidence::Certain);
        // Because of the table of the first file.
        assert_eq!(of("CREATE TABLE t (b int);\n", false), Confidence::Possible);
        assert_eq!(of("ALTER TABLE t DROP COLUMN missing;\n", true), Confidence::Possible);
        assert_eq!(of("ALTER TABLE t DROP COLUMN missing;\n", false), Confidence::Certain);
    }

    #[test]
    fn refusals_of_what_may_be_for_another_database_are_not_certain() {
        let doubt = DialectDoubt { database: "SQLite".into(), place: None };
        let evidence = RepositoryEvidence { dialect: Some(doubt), ..RepositoryEvidence::default() };
        let found = confidences("CREATE TABLE a (b int);\nCREATE TABLE a (b int);\nDROP TABLE t;\n", evidence);
        assert!(found.contains(&("statement-will-fail", Confidence::Likely)), "{found:?}");
        let text = "CREATE TABLE a (b integer PRIMARY KEY AUTOINCREMENT);\n";
        assert!(confidences(text, RepositoryEvidence::default()).contains(&("syntax-error", Confidence::Certain)));
    }
}
