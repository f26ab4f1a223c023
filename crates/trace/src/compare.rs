//! Prediction against observation: every difference is a defect of the model, or of the observer.

use crate::observation::{MigrationTrace, StatementKind, StatementTrace};
use crate::seen::Seen;
use pgvet_model::effect::{Effects, Lock, LockCause, RelationName};
use pgvet_model::predict::StatementEffects;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use std::collections::{BTreeMap, BTreeSet};

/// Something that a statement did differently from the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDifference {
    /// Index into the migrations of the run.
    pub migration: usize,
    pub range: TextRange,
    /// `lock`, `rewrite`, `scan`, `index build`, `truncate`, `drop`, `catalog rows` or `error`.
    pub what: &'static str,
    pub relation: String,
    pub predicted: String,
    pub observed: String,
    /// The model said that it may be wrong here, and why.
    pub unknown: Option<String>,
}

/// Compares what a migration did with what the model says of its statements.
pub fn compare(trace: &MigrationTrace, predicted: &[StatementEffects]) -> Vec<ModelDifference> {
    let by_start: BTreeMap<u32, &StatementEffects> =
        predicted.iter().map(|statement| (statement.statement.start, statement)).collect();
    let mut differences = Vec::new();
    for seen in Seen::in_transactions(trace) {
        let range = seen.statement.range;
        let Some(prediction) = by_start.get(&range.start).filter(|_| !range.is_empty()) else { continue };
        let unknown = prediction.effects.unknown.first();
        differences.extend(differences_of(&prediction.effects, &seen).into_iter().map(|found| ModelDifference {
            migration: trace.migration,
            range,
            unknown: unknown.map(|unknown| unknown.reason.to_string()),
            ..found
        }));
    }
    differences
}

fn difference(what: &'static str, relation: &str, predicted: String, observed: String) -> ModelDifference {
    let (relation, range) = (relation.to_owned(), TextRange::default());
    ModelDifference { migration: 0, range, what, relation, predicted, observed, unknown: None }
}

fn differences_of(predicted: &Effects, seen: &Seen<'_>) -> Vec<ModelDifference> {
    let observed = seen.statement;
    let refused = observed.failure.as_ref().map(|failure| failure.sqlstate.as_str());
    let predicted_refusal = predicted.fails.as_ref().map(|failure| failure.sqlstate);
    if refused != predicted_refusal {
        // Rows decide about violated constraints, and the user about a timeout.
        let depends = |state: &str| state.starts_with("23") || state.starts_with("57");
        if refused.is_some_and(depends) {
            return Vec::new();
        }
        let text =
            |state: Option<&str>| state.map_or_else(|| "succeeds".to_owned(), |state| format!("fails ({state})"));
        return vec![difference("error", "", text(predicted_refusal), text(refused))];
    }
    if refused.is_some() {
        return Vec::new();
    }
    let mode = |mode: Option<LockMode>| mode.map_or_else(|| "none".to_owned(), |mode| mode.sql().to_owned());
    let mut differences: Vec<ModelDifference> = lock_disagreements(predicted, seen)
        .into_iter()
        .map(|lock| difference("lock", &lock.relation, mode(lock.predicted), mode(lock.observed)))
        .collect();
    let lists = [
        ("rewrite", rewrite_disagreements(predicted, observed)),
        ("scan", scan_disagreements(predicted, observed)),
        ("index build", build_disagreements(predicted, observed)),
        ("truncate", truncate_disagreements(predicted, seen)),
        ("drop", drop_disagreements(predicted, observed)),
    ];
    let in_place = emptied_in_place(predicted, seen);
    for (what, mut relations) in lists {
        relations.retain(|(name, _)| !in_place.contains(name));
        let text = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        differences.extend(
            relations.into_iter().map(|(name, observed)| difference(what, &name, text(!observed), text(observed))),
        );
    }
    differences.extend(catalog_differences(predicted, observed));
    differences
}

/// The model counts catalog rows of CREATE TABLE, CREATE TABLE AS and CREATE INDEX.
fn catalog_differences(predicted: &Effects, observed: &StatementTrace) -> Vec<ModelDifference> {
    let creates = matches!(observed.kind, StatementKind::Create | StatementKind::CreateIndex);
    // A materialized view is filled through a transient table, which has rows of its own.
    let transient = observed.creates.iter().any(|relation| relation.kind == 'm');
    if !creates || transient || predicted.catalog_rows.is_empty() || observed.creates.is_empty() {
        return Vec::new();
    }
    let inserted = |catalog: &str| observed.catalog_rows.get(catalog).map_or(0, |rows| rows.inserted);
    let differs = |(catalog, rows): (&'static str, u64)| {
        let observed = inserted(catalog);
        (i64::try_from(rows) != Ok(observed))
            .then(|| difference("catalog rows", catalog, rows.to_string(), observed.to_string()))
    };
    predicted.catalog_rows.all().into_iter().filter_map(differs).collect()
}

/// Tables that TRUNCATE empties in place, because the transaction created their storage, and their indexes: they are
/// rebuilt in the storage that they have, so that only a scan shows it.
///
/// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ExecuteTruncateGuts`; `src/backend/catalog/heap.c`,
/// `RelationTruncateIndexes`.
fn emptied_in_place(predicted: &Effects, seen: &Seen<'_>) -> BTreeSet<String> {
    let tables = names(predicted.truncates.iter().filter(|relation| seen.has_new_storage(&relation.to_string())));
    let of_them = predicted.index_builds.iter().filter(|build| tables.contains(&build.table.to_string()));
    let indexes = names(of_them.map(|build| &build.index));
    tables.into_iter().chain(indexes).collect()
}

fn names<T: ToString>(items: impl Iterator<Item = T>) -> BTreeSet<String> {
    items.map(|item| item.to_string()).collect()
}

/// Whether the relation existed before the statement.
fn existed(predicted: &Effects, relation: &RelationName) -> bool {
    let same = |created: &RelationName| {
        let known = created.oid.is_valid() && relation.oid.is_valid();
        let same_name = created.schema == relation.schema && created.name == relation.name;
        if known { created.oid == relation.oid } else { same_name }
    };
    !predicted.creates.iter().any(same)
}

/// From which mode on a lock matters. Weaker locks on indexes depend on the plan.
fn threshold(is_index: bool) -> LockMode {
    if is_index { LockMode::Share } else { LockMode::ShareUpdateExclusive }
}

fn strongest(locks: impl Iterator<Item = (String, LockMode)>) -> BTreeMap<String, LockMode> {
    let mut strongest = BTreeMap::new();
    for (name, mode) in locks {
        let known = strongest.entry(name).or_insert(mode);
        *known = mode.max(*known);
    }
    strongest
}

/// The strongest mode on a relation, where model and server do not agree about it.
pub(crate) struct LockDisagreement {
    pub(crate) relation: String,
    pub(crate) predicted: Option<LockMode>,
    pub(crate) observed: Option<LockMode>,
}

pub(crate) fn lock_disagreements(predicted: &Effects, seen: &Seen<'_>) -> Vec<LockDisagreement> {
    let observed = seen.statement;
    let all = predicted.locks.iter().filter(|lock| matters(predicted, lock));
    let model = strongest(all.map(|lock| (lock.relation.to_string(), lock.mode)));
    let all = observed.locks.iter().filter(|lock| lock.existed && lock.mode >= threshold(lock.relation.is_index()));
    let server = strongest(all.map(|lock| (lock.relation.to_string(), lock.mode)));
    let names: BTreeSet<&String> = model.keys().chain(server.keys()).collect();
    let mut disagreements = Vec::new();
    for name in names {
        let (model, server) = (model.get(name).copied(), server.get(name).copied());
        let held_already = model.is_some_and(|mode| seen.holds_already(name, mode)) && server <= model;
        // Samples may miss a lock, or its strongest moment.
        let missed = observed.sampled && server <= model;
        let momentary = server.is_none() && is_momentary(predicted, name);
        let fired_nothing = server.is_none() && changed_nothing(predicted, observed);
        if model != server && !held_already && !missed && !momentary && !fired_nothing {
            disagreements.push(LockDisagreement { relation: name.clone(), predicted: model, observed: server });
        }
    }
    disagreements
}

/// Whether a lock is visible to others, and depends on the statement alone.
pub(crate) fn matters(predicted: &Effects, lock: &Lock) -> bool {
    existed(predicted, &lock.relation) && lock.mode >= threshold(lock.relation.kind.is_index())
}

/// Whether the statement changed no row, so that triggers and foreign keys did nothing.
fn changed_nothing(predicted: &Effects, observed: &StatementTrace) -> bool {
    !predicted.data_changes.is_empty() && observed.changes.is_empty() && !observed.uncounted
}

/// Locks that are given back before the statement ends cannot be seen after it.
fn is_momentary(predicted: &Effects, name: &str) -> bool {
    let mut locks = predicted.locks.iter().filter(|lock| lock.relation.to_string() == name);
    locks.all(|lock| lock.cause == LockCause::WithoutWaiting)
}

/// Relations that are in one list only, and whether that is the one of the server.
type Disagreements = Vec<(String, bool)>;

fn disagreements(predicted: &BTreeSet<String>, observed: &BTreeSet<String>) -> Disagreements {
    let either = predicted.symmetric_difference(observed);
    either.map(|name| (name.clone(), observed.contains(name))).collect()
}

pub(crate) fn rewrite_disagreements(predicted: &Effects, observed: &StatementTrace) -> Disagreements {
    disagreements(&rewrites(predicted), &names(observed.rewrites.iter()))
}

pub(crate) fn scan_disagreements(predicted: &Effects, observed: &StatementTrace) -> Disagreements {
    disagreements(&predicted_scans(predicted, observed), &observed_scans(predicted, observed))
}

pub(crate) fn build_disagreements(predicted: &Effects, observed: &StatementTrace) -> Disagreements {
    disagreements(&builds(predicted), &names(observed.index_builds.iter()))
}

/// Of tables whose new storage can be seen. One that has new storage since the transaction began is emptied in place.
pub(crate) fn truncate_disagreements(predicted: &Effects, seen: &Seen<'_>) -> Disagreements {
    use pgvet_model::catalog::RelationKind;
    let observed = names(seen.statement.truncates.iter());
    // Where it is read or rewritten as well, storage alone does not tell what was done to it.
    let rewritten = names(seen.statement.rewrites.iter());
    let shows = |relation: &&RelationName| {
        let (name, kind) = (relation.to_string(), relation.kind);
        kind == RelationKind::Table && !rewritten.contains(&name) && !seen.has_new_storage(&name)
    };
    let emptied = predicted.truncates.iter().filter(|relation| existed(predicted, relation));
    let predicted = names(emptied.filter(|relation| shows(relation) || observed.contains(&relation.to_string())));
    let mut found = disagreements(&predicted, &observed);
    // TRUNCATE may empty a table in place, where nothing is to be seen; what it takes along by CASCADE is.
    found.retain(|(_, was_seen)| *was_seen || seen.statement.kind != StatementKind::Truncate);
    found
}

/// Of tables and views; the model does not list all of their parts.
pub(crate) fn drop_disagreements(predicted: &Effects, observed: &StatementTrace) -> Disagreements {
    use pgvet_model::catalog::RelationKind;
    let counts =
        |kind: RelationKind| kind.is_table() || matches!(kind, RelationKind::View | RelationKind::MaterializedView);
    let gone = predicted.drops.iter().filter(|relation| counts(relation.kind) && existed(predicted, relation));
    let seen = observed.drops.iter().filter(|relation| matches!(relation.kind, 'r' | 'p' | 'f' | 'v' | 'm'));
    disagreements(&names(gone), &names(seen))
}

fn rewrites(predicted: &Effects) -> BTreeSet<String> {
    use pgvet_model::catalog::RelationKind;
    let rewritten = predicted.rewrites.iter().map(|rewrite| &rewrite.relation);
    let has_rows =
        |relation: &&RelationName| relation.kind.is_table() || relation.kind == RelationKind::MaterializedView;
    names(rewritten.filter(|relation| existed(predicted, relation)).filter(has_rows))
}

/// A partitioned index has no storage of its own.
fn builds(predicted: &Effects) -> BTreeSet<String> {
    use pgvet_model::catalog::RelationKind;
    let builds = predicted.index_builds.iter().filter(|build| existed(predicted, &build.table));
    let builds = builds.filter(|build| build.index.kind != RelationKind::PartitionedIndex);
    names(builds.map(|build| &build.index))
}

/// Scans that do not depend on a plan: of tables that the statement locks strongly, but not as the other side of a
/// foreign key.
fn is_forced(predicted: &Effects, name: &str) -> bool {
    let locks: Vec<_> = predicted.locks.iter().filter(|lock| lock.relation.to_string() == name).collect();
    let other_side = |cause| matches!(cause, LockCause::ForeignKeyAdded | LockCause::ForeignKey);
    locks.iter().any(|lock| lock.mode >= LockMode::ShareUpdateExclusive && !other_side(lock.cause))
}

fn predicted_scans(predicted: &Effects, observed: &StatementTrace) -> BTreeSet<String> {
    if observed.uncounted || changed_nothing(predicted, observed) {
        return observed_scans(predicted, observed);
    }
    let scans = predicted.scans.iter().filter(|scan| existed(predicted, &scan.relation));
    names(scans.map(|scan| &scan.relation)).into_iter().filter(|name| is_forced(predicted, name)).collect()
}

fn observed_scans(predicted: &Effects, observed: &StatementTrace) -> BTreeSet<String> {
    let scans = names(observed.scans.iter().map(|scan| &scan.relation));
    scans.into_iter().filter(|name| is_forced(predicted, name)).collect()
}
