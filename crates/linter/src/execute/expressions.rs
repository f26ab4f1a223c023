//! What the model asks about types and expressions.

use super::Executor;
use crate::ast::{Expr, ExprKind, TypeName};
use crate::catalog::{Column, Oid, SqlType, Volatility};
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

/// What a change of a column's type does to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeChange {
    /// No cast exists.
    Impossible,
    Rewrite,
    NoRewrite,
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

    /// The name of the domain where the type is one that has constraints, itself or below.
    pub(crate) fn constrained_domain(&self, sql_type: SqlType) -> Option<SmolStr> {
        let _ = sql_type;
        None
    }

    /// The volatile function in a default, coerced to the column's type; an empty name where none is to blame.
    pub(crate) fn volatility_of_default(&mut self, default: &Expr, table: Oid, sql_type: SqlType) -> Option<SmolStr> {
        let _ = (default, table, sql_type);
        None
    }

    /// Do the valid constraints of the table prove that the column holds no null?
    pub(crate) fn constraints_imply_not_null(&self, table: Oid, column: &SmolStr) -> bool {
        let _ = (table, column);
        false
    }

    /// What changing the type of a column does to the rows.
    pub(crate) fn type_change(
        &mut self,
        table: Oid,
        column: &Column,
        new: SqlType,
        using: Option<&Expr>,
    ) -> TypeChange {
        let _ = (table, column, new, using);
        TypeChange::Rewrite
    }

    /// Do both types have the same default operator class for the access method?
    pub(crate) fn same_operator_class(&self, method: &str, old: SqlType, new: SqlType) -> bool {
        let _ = method;
        old.oid == new.oid
    }

    /// Does the type have a collation?
    pub(crate) fn is_collatable(&self, sql_type: SqlType) -> bool {
        let _ = sql_type;
        true
    }
}

/// The columns that an expression mentions, each once, in order.
pub(crate) fn columns_of(expr: &Expr) -> Vec<SmolStr> {
    let mut columns = Vec::new();
    expr.walk(&mut |part| {
        if let ExprKind::Column(parts) = &part.kind {
            if let Some(column) = parts.last() {
                if !columns.contains(column) {
                    columns.push(column.clone());
                }
            }
        }
    });
    columns
}

/// Does the expression mention the column? A whole-row reference counts.
pub(crate) fn mentions(expr: &Expr, column: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| match &part.kind {
        ExprKind::Column(parts) => found |= parts.last().is_some_and(|last| last == column),
        ExprKind::Star(_) => found = true,
        _ => {}
    });
    found
}
