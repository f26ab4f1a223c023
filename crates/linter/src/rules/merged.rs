//! Many findings of one rule in one migration or routine are one problem.

use crate::diagnostic::{Diagnostic, Label};
use crate::rule::RunContext;
use std::cmp::Reverse;

/// So many findings of one migration are told one by one.
pub(super) const MAX_FINDINGS: usize = 3;

/// So many of the others become labels, where each of them wants the same change.
pub(super) const MAX_LABELS: usize = 8;

/// A migration with more findings than this does one thing to all of its tables: they are told once, however different the
/// tables are.
pub(super) const MANY: usize = 20;

/// Where a migration has more than `most` findings, keeps the first of those that are worst. Of the others `shown` become
/// its labels, and `also` says in the message how many there are. It has the fixes of all.
pub(super) fn in_each_migration(
    found: &mut Vec<Diagnostic>,
    most: usize,
    shown: usize,
    also: impl Fn(usize) -> String,
) {
    merge(found, |finding| finding.file, most, shown, also);
}

/// The hook of a rule whose findings differ in the table alone: a migration with more than [`MANY`] that weigh the same has
/// one.
pub(super) fn once_where_many(run: &RunContext<'_>, found: &mut Vec<Diagnostic>) {
    if !run.settings.one_by_one {
        let also = |more| format!("{more} more statements of this migration do the same");
        merge(found, |finding| (finding.file, finding.severity), MANY, MAX_LABELS, also);
    }
}

/// The hook of a rule that has one finding for each statement, and one for a migration with more than [`MANY`].
pub(super) fn once_in_each_statement(
    run: &RunContext<'_>,
    found: &mut Vec<Diagnostic>,
    also: impl Fn(usize) -> String,
) {
    if !run.settings.one_by_one {
        in_each_statement(found, also);
        once_where_many(run, found);
    }
}

/// The same for more than a few findings of a migration whose help is the same, word for word.
pub(super) fn in_each_migration_alike(found: &mut Vec<Diagnostic>, also: impl Fn(usize) -> String) {
    merge(found, |finding| (finding.file, finding.help.clone()), MAX_FINDINGS, MAX_LABELS, also);
}

/// The same for the findings of each table in a migration: it has one.
pub(super) fn in_each_table(found: &mut Vec<Diagnostic>, also: impl Fn(usize) -> String) {
    merge(found, |finding| (finding.file, finding.relations.first().cloned()), 1, MAX_LABELS, also);
}

/// The same for the findings of what runs together, the statements of a migration or a function: it has one.
pub(super) fn in_what_runs_together(run: &RunContext<'_>, found: &mut Vec<Diagnostic>, also: impl Fn(usize) -> String) {
    let function = |finding: &Diagnostic| is_definition(run, finding).then_some(finding.statement);
    merge(found, |finding| (finding.file, function(finding)), 1, usize::MAX, also);
}

/// Is the finding about code that the migration defines, and does not run?
fn is_definition(run: &RunContext<'_>, finding: &Diagnostic) -> bool {
    let text = run.migrations.get(finding.file as usize).map_or("", |migration| migration.file.text.as_str());
    let statement = text.get(finding.statement.as_usize()).unwrap_or_default();
    statement.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("create"))
}

/// The same for the findings of each statement: it has one.
pub(super) fn in_each_statement(found: &mut Vec<Diagnostic>, also: impl Fn(usize) -> String) {
    merge(found, |finding| (finding.file, finding.statement), 1, MAX_LABELS, also);
}

/// The same for the findings of each function, procedure and DO block, which is a statement.
pub(super) fn in_each_routine(found: &mut Vec<Diagnostic>, also: impl Fn(usize) -> String) {
    in_each_statement(found, also);
}

/// The same for findings that have one cause, wherever they are.
pub(super) fn of_one_cause<C: Ord>(
    found: &mut Vec<Diagnostic>,
    cause: impl Fn(&Diagnostic) -> C,
    also: impl Fn(usize) -> String,
) {
    merge(found, cause, 1, MAX_LABELS, also);
}

fn merge<P: Ord>(
    found: &mut Vec<Diagnostic>,
    place: impl Fn(&Diagnostic) -> P,
    most: usize,
    shown: usize,
    also: impl Fn(usize) -> String,
) {
    found.sort_by_cached_key(|finding| (place(finding), finding.file, finding.range.start));
    let mut merged: Vec<Diagnostic> = Vec::with_capacity(found.len());
    for of_place in found.chunk_by(|one, other| place(one) == place(other)) {
        if of_place.len() > most {
            merged.extend(one_of(of_place, shown, &also(of_place.len() - 1)));
        } else {
            merged.extend(of_place.iter().cloned());
        }
    }
    *found = merged;
}

fn one_of(found: &[Diagnostic], shown: usize, also: &str) -> Option<Diagnostic> {
    let (at, worst) = found.iter().enumerate().min_by_key(|(_, finding)| Reverse(finding.severity))?;
    let mut merged = worst.clone();
    merged.message = format!("{}, and {also}", worst.message);
    merged.fixes = found.iter().flat_map(|finding| finding.fixes.iter().cloned()).collect();
    let others = found[..at].iter().chain(&found[at + 1..]);
    for other in others.clone() {
        for name in &other.relations {
            if !merged.relations.contains(name) {
                merged.relations.push(name.clone());
            }
        }
    }
    let label = |other: &Diagnostic| Label { file: other.file, range: other.range, message: other.message.clone() };
    merged.labels.extend(others.take(shown).map(label));
    Some(merged)
}
