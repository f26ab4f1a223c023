//! The observed effects of a statement, which the rules judge after a trace.
//!
//! Where the server did as predicted the prediction stays, for it knows causes and places. Where it did otherwise, the
//! effects are corrected.

use crate::compare::{
    build_disagreements, drop_disagreements, lock_disagreements, matters, rewrite_disagreements, scan_disagreements,
    truncate_disagreements,
};
use crate::observation::{LockTrace, Relation, StatementKind, Trace};
use crate::seen::{Seen, kind};
use pgvet_model::catalog::Catalog;
use pgvet_model::effect::{
    Branches, Effects, IndexBuild, IndexBuildCause, Lock, LockCause, RelationName, Removal, RemovalReason,
    RemovedObject, Rewrite, RewriteCause, Scan, ScanCause,
};
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use std::collections::BTreeMap;

/// The statements of a run that were measured.
#[derive(Debug)]
pub struct Observations<'a> {
    /// By migration and place.
    statements: BTreeMap<(usize, u32), Seen<'a>>,
}

impl<'a> Observations<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        let mut statements = BTreeMap::new();
        for migration in &trace.migrations {
            for seen in Seen::in_transactions(migration) {
                if !seen.statement.range.is_empty() {
                    statements.insert((migration.migration, seen.statement.range.start), seen);
                }
            }
        }
        Self { statements }
    }

    /// Returns the observed effects of a statement, for the check to judge; `None` if it was not run to its end.
    pub fn effects(
        &self,
        migration: u32,
        statement: TextRange,
        predicted: &Effects,
        after: &Catalog,
    ) -> Option<Effects> {
        let seen = self.statements.get(&(migration as usize, statement.start))?;
        seen.statement.failure.is_none().then(|| Correction { seen, catalog: after, statement }.of(predicted))
    }
}

/// How the prediction for one statement becomes what was seen.
struct Correction<'a> {
    seen: &'a Seen<'a>,
    catalog: &'a Catalog,
    statement: TextRange,
}

impl Correction<'_> {
    fn of(&self, predicted: &Effects) -> Effects {
        let mut effects = Effects { fails: None, ..predicted.clone() };
        self.locks(&mut effects);
        self.rewrites(&mut effects);
        self.index_builds(&mut effects);
        // Which scans do not depend on a plan is seen from the locks.
        self.scans(&mut effects);
        self.truncates(&mut effects);
        self.drops(&mut effects);
        effects
    }

    /// The relation as the effects so far name it.
    fn name(&self, relation: &Relation, effects: &Effects) -> RelationName {
        let text = relation.to_string();
        let locks = effects.locks.iter().map(|lock| &lock.relation);
        let mut known = locks.chain(&effects.creates);
        if let Some(name) = known.find(|name| name.to_string() == text) {
            return name.clone();
        }
        let lock = self.seen.statement.locks.iter().find(|lock| lock.relation.oid == relation.oid);
        self.seen.relation_name(relation, lock.is_none_or(|lock| lock.exposed), self.catalog)
    }

    /// The place that the model knows for a relation, or the whole statement.
    fn range(&self, relation: &str, effects: &Effects) -> TextRange {
        let lock = effects.locks.iter().find(|lock| lock.relation.to_string() == relation);
        lock.map_or(self.statement, |lock| lock.range)
    }

    fn locks(&self, effects: &mut Effects) {
        for found in lock_disagreements(effects, self.seen) {
            let known = effects.locks.iter().find(|lock| lock.relation.to_string() == found.relation).cloned();
            let before = effects.clone();
            let too_strong = |lock: &Lock| {
                lock.relation.to_string() == found.relation
                    && matters(&before, lock)
                    && found.observed.is_none_or(|mode| lock.mode > mode)
            };
            effects.locks.retain(|lock| !too_strong(lock));
            let locks = &self.seen.statement.locks;
            let mut locks = locks.iter().filter(|lock| lock.relation.to_string() == found.relation);
            let Some(seen) = locks.find(|lock| Some(lock.mode) == found.observed) else { continue };
            effects.locks.push(match known {
                Some(known) => Lock { mode: seen.mode, ..known },
                None => Lock {
                    relation: self.seen.relation_name(&seen.relation, seen.exposed, self.catalog),
                    mode: seen.mode,
                    cause: self.cause(seen),
                    range: self.statement,
                    patience: None,
                    branches: Branches::default(),
                },
            });
        }
    }

    /// The likely cause of a lock that the model does not know.
    fn cause(&self, lock: &LockTrace) -> LockCause {
        if lock.relation.is_index() {
            return LockCause::Part;
        }
        match self.seen.statement.kind {
            StatementKind::Alter | StatementKind::Create | StatementKind::CreateIndex | StatementKind::Drop => {
                LockCause::Dependent
            }
            _ => LockCause::Function,
        }
    }

    fn rewrites(&self, effects: &mut Effects) {
        for (name, observed) in rewrite_disagreements(effects, self.seen.statement) {
            effects.rewrites.retain(|rewrite| rewrite.relation.to_string() != name);
            let seen = self.seen.statement.rewrites.iter().filter(|relation| observed && relation.to_string() == name);
            for relation in seen {
                let range = self.range(&name, effects);
                let relation = self.name(relation, effects);
                effects.rewrites.push(Rewrite { relation, cause: RewriteCause::Other, range });
            }
        }
    }

    fn index_builds(&self, effects: &mut Effects) {
        for (name, observed) in build_disagreements(effects, self.seen.statement) {
            effects.index_builds.retain(|build| build.index.to_string() != name);
            let builds = &self.seen.statement.index_builds;
            let seen = builds.iter().filter(|index| observed && index.to_string() == name);
            effects.index_builds.extend(seen.filter_map(|index| self.index_build(index, effects)).collect::<Vec<_>>());
        }
    }

    fn index_build(&self, index: &Relation, effects: &Effects) -> Option<IndexBuild> {
        let statement = self.seen.statement;
        let table = self.seen.strongest(index.table?)?;
        let is = |relations: &[Relation], oid: u32| relations.iter().any(|relation| relation.oid == oid);
        let cause = if is(&statement.rewrites, table.relation.oid) {
            IndexBuildCause::Rewrite
        } else if is(&statement.creates, index.oid) {
            IndexBuildCause::CreateIndex
        } else {
            IndexBuildCause::Reindex
        };
        Some(IndexBuild {
            index: self.name(index, effects),
            table: self.name(&table.relation, effects),
            cause,
            concurrently: table.mode < LockMode::Share,
            range: self.range(&table.relation.to_string(), effects),
        })
    }

    fn scans(&self, effects: &mut Effects) {
        let statement = self.seen.statement;
        for (name, observed) in scan_disagreements(effects, statement) {
            effects.scans.retain(|scan| scan.relation.to_string() != name);
            for scan in statement.scans.iter().filter(|scan| observed && scan.relation.to_string() == name) {
                let table = scan.relation.oid;
                let cause = if statement.index_builds.iter().any(|index| index.table == Some(table)) {
                    ScanCause::IndexBuild
                } else if statement.rewrites.iter().any(|relation| relation.oid == table) {
                    ScanCause::Rewrite
                } else {
                    ScanCause::Query
                };
                let lock = self.seen.strongest(table).map_or(LockMode::AccessShare, |lock| lock.mode);
                let range = self.range(&name, effects);
                let relation = self.name(&scan.relation, effects);
                effects.scans.push(Scan { relation, cause, lock, range });
            }
        }
    }

    fn truncates(&self, effects: &mut Effects) {
        for (name, observed) in truncate_disagreements(effects, self.seen) {
            effects.truncates.retain(|relation| relation.to_string() != name);
            let seen = self.seen.statement.truncates.iter().filter(|relation| observed && relation.to_string() == name);
            effects.truncates.extend(seen.map(|relation| self.name(relation, effects)).collect::<Vec<_>>());
        }
    }

    fn drops(&self, effects: &mut Effects) {
        let drops_table = self.seen.statement.drops.iter().any(|relation| kind(relation.kind).is_table());
        for (name, observed) in drop_disagreements(effects, self.seen.statement) {
            effects.drops.retain(|relation| relation.to_string() != name);
            effects.removals.retain(|removal| match &removal.object {
                RemovedObject::Relation(relation) => relation.to_string() != name,
                _ => true,
            });
            for relation in self.seen.statement.drops.iter().filter(|relation| observed && relation.to_string() == name)
            {
                let relation = self.name(relation, effects);
                // A DROP of a table that also names its views could have omitted them.
                let is_dependent = !relation.kind.is_table() && drops_table;
                effects.removals.push(Removal {
                    description: format!("{} \"{}\"", relation.kind.word(), relation.name),
                    object: RemovedObject::Relation(relation.clone()),
                    reason: if is_dependent { RemovalReason::Cascade } else { RemovalReason::Named },
                    range: self.statement,
                });
                effects.drops.push(relation);
            }
        }
    }
}
