//! How many rows a statement reads and writes of each table.
//!
//! The relations of a FROM clause are members, the parts of WHERE and of the ON of joins are conditions. A member is
//! bounded by constants for all columns of a unique index, or by the values of another member that is bounded. Of the
//! others, the conditions that hold for every row are taken away; what is left selects an unknown part.

mod all;
mod bound;
mod constant;
mod index;
mod known;
mod member;
mod omitted;
mod query;
mod read;
#[cfg(test)]
mod tests;

use super::Env;
use crate::catalog::Oid;
use crate::effect::{Rows, RowsReason};
use crate::execute::Executor;
use pgvet_syntax::ast::Expr;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use constant::Owner;
pub(super) use read::{MemberRead, Wanted};

/// Maximum number of subqueries of one statement that are examined: names of WITH that read each other multiply.
pub(in crate::execute) const MAX_QUERIES: u32 = 1000;

/// The relations of a FROM clause, with the target of a change before them, and what connects them.
pub(super) struct Joined<'a> {
    executor: &'a Executor<'a>,
    env: &'a Env<'a>,
    members: Vec<Member<'a>>,
    /// The first member of each name.
    named: FxHashMap<SmolStr, usize>,
    conditions: Vec<Condition<'a>>,
    /// In the order of the members.
    bounds: Vec<Option<Bound>>,
    /// For each member the others that conditions compare it with.
    compared: Vec<BTreeMap<usize, Vec<Comparison>>>,
    /// Which members constants pick, without the help of others.
    picked: OnceCell<Vec<bool>>,
}

/// An item of a FROM clause.
struct Member<'a> {
    name: SmolStr,
    source: Source<'a>,
    /// Other names of its columns.
    columns: &'a [SmolStr],
    /// A row of the result may have none of it: an outer join.
    optional: bool,
    /// The name in FROM.
    range: Option<TextRange>,
}

enum Source<'a> {
    Table {
        oid: Oid,
        only: bool,
    },
    /// A subquery or a name of WITH, and how many rows it yields.
    Query {
        rows: Rows,
        query: Option<&'a pgvet_syntax::ast::Query>,
    },
    /// A function, a relation of PostgreSQL itself, or one that is not known.
    Other(Rows),
}

/// A part of WHERE or ON.
#[derive(Clone)]
struct Condition<'a> {
    expression: Cow<'a, Expr>,
    /// In the ON of an outer join: the members on the side that may be missing.
    limits: Option<Range<usize>>,
}

/// `one.column = other.column`, as one of the two members sees it.
#[derive(Clone)]
struct Comparison {
    /// Its number among the conditions.
    condition: usize,
    own: SmolStr,
    other: SmolStr,
}

/// How many rows of a member take part, at most.
#[derive(Clone)]
struct Bound {
    rows: u64,
    /// How many there are for one combination of the rows of other members.
    factor: u64,
    reason: RowsReason,
}

impl Joined<'_> {
    /// How many rows of a member take part in the result.
    pub(super) fn rows_of(&self, at: usize) -> Rows {
        match &self.bounds[at] {
            Some(bound) => Rows::at_most(bound.rows, bound.reason.clone()),
            None => self.unbounded(at),
        }
    }

    /// The table of a member.
    fn table(&self, at: usize) -> Option<Oid> {
        match self.members[at].source {
            Source::Table { oid, .. } => Some(oid),
            Source::Query { .. } | Source::Other(_) => None,
        }
    }
}
