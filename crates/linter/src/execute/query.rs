//! Queries and data changes: which relations they lock, what they return.

use super::{Executor, Run};
use crate::ast::Query;
use crate::catalog::{Oid, SqlType};
use smol_str::SmolStr;

impl Executor<'_> {
    /// The relations that a query reads, with the columns that it uses.
    pub(crate) fn query_references(&mut self, query: &Query) -> Vec<(Oid, Vec<SmolStr>)> {
        let _ = query;
        Vec::new()
    }

    /// Takes the locks that planning and running a query takes.
    pub(crate) fn run_query(&mut self, query: &Query) -> Run {
        let _ = query;
        Ok(())
    }

    /// The names and types of a query's columns; `None` where a relation in it is not known.
    pub(crate) fn describe_query(&mut self, query: &Query) -> Option<Vec<(SmolStr, SqlType)>> {
        let _ = query;
        None
    }
}
