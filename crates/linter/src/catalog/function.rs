//! Functions and procedures of the project.

use super::{Oid, SqlType};
use crate::ast::{Expr, FunctionBody, ParameterMode};
use smol_str::SmolStr;
use std::sync::Arc;

/// A function: a row of `pg_proc`.
#[derive(Debug, Clone)]
pub struct Function {
    pub oid: Oid,
    pub schema: SmolStr,
    pub name: SmolStr,
    pub procedure: bool,
    pub aggregate: bool,
    pub parameters: Vec<Parameter>,
    pub returns: SqlType,
    pub returns_set: bool,
    pub language: SmolStr,
    pub volatility: Volatility,
    pub strict: bool,
    pub security_definer: bool,
    /// SET clauses, lower case names.
    pub settings: Vec<(SmolStr, SmolStr)>,
    pub body: Arc<FunctionBody>,
    /// The file and statement that defined it, for labels: index of the file in the run, and where the body starts in it.
    pub defined_at: Option<(u32, crate::source::TextRange)>,
    pub transaction: u32,
}

/// A parameter of a function.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: Option<SmolStr>,
    pub mode: ParameterMode,
    pub sql_type: SqlType,
    pub has_default: bool,
    pub default: Option<Arc<Expr>>,
}

/// provolatile, safest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

impl Function {
    /// The types that decide which call means this function.
    pub fn input_types(&self) -> impl Iterator<Item = SqlType> + '_ {
        self.parameters.iter().filter(|parameter| parameter.mode.is_input()).map(|parameter| parameter.sql_type)
    }
}
