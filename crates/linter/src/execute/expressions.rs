//! What the model asks about types and expressions.

use super::Executor;
use crate::ast::{Expr, TypeName};
use crate::catalog::{Oid, SqlType, Volatility};
use smol_str::SmolStr;

/// What an expression is and uses.
#[derive(Debug, Clone)]
pub(crate) struct Analysis {
    pub(crate) sql_type: SqlType,
    pub(crate) volatility: Volatility,
    /// The function that makes it volatile.
    pub(crate) volatile_function: Option<SmolStr>,
    /// Columns of the table in scope that it mentions.
    pub(crate) columns: Vec<SmolStr>,
    /// Functions of the project that it calls.
    pub(crate) functions: Vec<Oid>,
    /// Why the analysis may be wrong.
    pub(crate) unknown: Vec<String>,
}

impl Executor<'_> {
    /// The type that a name stands for. A type that no statement has shown is assumed to exist (an extension's).
    pub(crate) fn resolve_type(&mut self, name: &TypeName) -> SqlType {
        let _ = name;
        SqlType::UNKNOWN
    }

    /// Analyses an expression over the columns of `table`.
    pub(crate) fn analyze(&self, expr: &Expr, table: Option<Oid>) -> Analysis {
        let _ = (expr, table);
        Analysis {
            sql_type: SqlType::UNKNOWN,
            volatility: Volatility::Immutable,
            volatile_function: None,
            columns: Vec::new(),
            functions: Vec::new(),
            unknown: Vec::new(),
        }
    }
}
