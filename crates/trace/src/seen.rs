//! A statement that was measured, with what its transaction did before it.

use crate::observation::{LockTrace, MigrationTrace, Relation, StatementTrace, TransactionTrace};
use pgvet_model::catalog::{Catalog, Oid, RelationKind, TEMPORARY_SCHEMA};
use pgvet_model::effect::{RelationName, Visibility};
use pgvet_syntax::ast::LockMode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A statement that was measured.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) statement: &'a StatementTrace,
    /// All statements of its migration, and its place among them.
    all: &'a [StatementTrace],
    at: usize,
    transaction: Arc<Held>,
}

/// The locks that a transaction took and the storage that it made, and the statement that did so first. Relations have
/// the names that they had so far.
#[derive(Debug, Default)]
struct Held {
    statements: Vec<usize>,
    taken: BTreeMap<(String, LockMode), usize>,
    new_storage: BTreeMap<String, usize>,
}

impl Held {
    fn of(transaction: &TransactionTrace, statements: &[StatementTrace]) -> Self {
        let mut taken = BTreeMap::new();
        let mut new_storage = BTreeMap::new();
        for at in &transaction.statements {
            let statement = &statements[*at];
            for lock in &statement.locks {
                taken.entry((lock.relation.to_string(), lock.mode)).or_insert(*at);
            }
            for made in statement.creates.iter().chain(&statement.rewrites).chain(&statement.truncates) {
                new_storage.entry(made.to_string()).or_insert(*at);
            }
            for (old, new) in &statement.renames {
                let (old, new) = (old.to_string(), new.to_string());
                let modes: Vec<LockMode> =
                    taken.keys().filter(|(name, _)| *name == old).map(|(_, mode)| *mode).collect();
                for mode in modes {
                    taken.entry((new.clone(), mode)).or_insert(*at);
                }
                if new_storage.contains_key(&old) {
                    new_storage.entry(new).or_insert(*at);
                }
            }
        }
        Self { statements: transaction.statements.clone(), taken, new_storage }
    }
}

impl<'a> Seen<'a> {
    /// The statements of a migration that were in a transaction, their own or a block.
    pub(crate) fn in_transactions(trace: &'a MigrationTrace) -> Vec<Self> {
        let of_transaction = |transaction: &'a TransactionTrace| {
            let held = Arc::new(Held::of(transaction, &trace.statements));
            let seen = move |at: &usize| Self {
                statement: &trace.statements[*at],
                all: &trace.statements,
                at: *at,
                transaction: Arc::clone(&held),
            };
            transaction.statements.iter().map(seen)
        };
        trace.transactions.iter().flat_map(of_transaction).collect()
    }

    /// Whether an earlier statement of the transaction took this lock, so that taking it again shows nothing.
    pub(crate) fn holds_already(&self, relation: &str, mode: LockMode) -> bool {
        let taken = self.transaction.taken.get(&(relation.to_owned(), mode));
        taken.is_some_and(|by| *by < self.at)
    }

    /// Whether an earlier statement of the transaction created the relation or gave it new storage.
    pub(crate) fn has_new_storage(&self, relation: &str) -> bool {
        self.transaction.new_storage.get(relation).is_some_and(|by| *by < self.at)
    }

    /// The relation as effects name it.
    pub(crate) fn relation_name(&self, relation: &Relation, exposed: bool, catalog: &Catalog) -> RelationName {
        let schema = if relation.schema.starts_with("pg_temp") { TEMPORARY_SCHEMA } else { &relation.schema };
        // A relation that only the server knows must not be confused with one that the model knows.
        let of_server = Oid(u32::MAX - relation.oid);
        let made_here = || self.all[..self.at].iter().flat_map(|statement| &statement.creates);
        let visibility = if !exposed {
            Visibility::SameTransaction { filled: true }
        } else if made_here().any(|created| created.oid == relation.oid) {
            Visibility::SameDeployment { filled: true }
        } else {
            Visibility::Existing
        };
        RelationName {
            oid: catalog.relation_named(schema, &relation.name).unwrap_or(of_server),
            schema: schema.into(),
            name: relation.name.as_str().into(),
            kind: kind(relation.kind),
            visibility,
            few: None,
            unseen_part: None,
        }
    }

    /// The strongest lock on a relation that the transaction holds after the statement.
    pub(crate) fn strongest(&self, oid: u32) -> Option<&'a LockTrace> {
        let so_far = self.transaction.statements.iter().filter(|at| **at <= self.at);
        let locks = so_far.flat_map(|at| &self.all[*at].locks).filter(|lock| lock.relation.oid == oid);
        locks.max_by_key(|lock| lock.mode)
    }
}

pub(crate) fn kind(relkind: char) -> RelationKind {
    RelationKind::of_relkind(relkind).unwrap_or(RelationKind::Table)
}
