//! Runs statements on the catalog as PostgreSQL would, and records what that does.
//!
//! One pass serves two purposes: the effects of a statement and the catalog after it come from the same code, which
//! follows PostgreSQL's own (`src/backend/commands`), one file per family of statements. Nothing is executed on data:
//! tables that existed before are taken to hold rows.

mod alter_table;
mod drop;
mod expressions;
mod foreign_key;
mod index;
mod open;
mod partition;
mod query;
mod record;

use crate::ast::Ast;
use crate::catalog::{Birth, Catalog, Oid};
use crate::effect::{Effects, Failure};
use crate::session::{Place, Session};
use crate::source::TextRange;
use crate::version::Target;

/// The outcome of a part of a statement: an `Err` is PostgreSQL's refusal.
pub(crate) type Run<T = ()> = Result<T, Failure>;

/// Makes the `Err` of a [`Run`].
pub(crate) fn fail<T>(sqlstate: &'static str, reason: impl Into<String>, range: TextRange) -> Run<T> {
    Err(Failure { sqlstate, reason: reason.into(), range })
}

/// How much of the database the run has seen, and so what a name that no statement showed means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Knowledge {
    /// A file alone: what it uses was made elsewhere.
    Nothing,
    /// Migrations before it: what it uses may be older than they are, but what it makes IF NOT EXISTS or drops
    /// IF EXISTS is taken not to exist.
    History,
    /// A dump of the whole schema: what is missing does not exist.
    Everything,
}

/// Runs one statement for one major version.
pub(crate) struct Executor<'a> {
    /// The catalog; changed as the statement runs.
    pub(crate) catalog: Catalog,
    pub(crate) session: Session,
    pub(crate) effects: Effects,
    pub(crate) target: &'a Target,
    /// Where the statement stands.
    pub(crate) place: Place,
    /// Number of the migration, from 1; 0 for a dump of a schema that counts as there from the beginning.
    pub(crate) migration: u32,
    /// Number of the transaction that the statement runs in.
    pub(crate) transaction: u32,
    /// In a transaction block that forbids statements such as CREATE INDEX CONCURRENTLY.
    pub(crate) in_block: bool,
    /// How much of the database the run has seen.
    pub(crate) knowledge: Knowledge,
    /// Relations that this statement created.
    pub(crate) created: Vec<Oid>,
}

impl Executor<'_> {
    /// Runs the statement. On refusal the catalog is as it was, and [`Effects::fails`] says why.
    pub(crate) fn run(&mut self, ast: &Ast) {
        let before = self.catalog.clone();
        if let Err(failure) = self.statement(ast) {
            self.catalog = before;
            self.effects.fails = Some(failure);
        }
    }

    fn statement(&mut self, ast: &Ast) -> Run {
        match ast {
            Ast::AlterTable(statement) => self.alter_table(statement),
            Ast::AlterTableMoveAll(statement) => self.alter_table_move_all(statement),
            _ => Ok(()),
        }
    }

    /// The birth of an object that this statement makes.
    pub(crate) fn birth(&self, filled: bool) -> Birth {
        let migration = (self.migration > 0).then_some(self.migration);
        Birth { migration, transaction: self.transaction, filled }
    }

    /// Notes why the effects may be incomplete.
    pub(crate) fn unknown(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.effects.unknown.contains(&reason) {
            self.effects.unknown.push(reason);
        }
    }
}
