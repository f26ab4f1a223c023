//! Transactions, settings, and statements that run other statements.

use super::{Ast, FunctionBody, FunctionCall, Literal, Name};
use crate::source::TextRange;
use smol_str::SmolStr;

/// Transaction control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transaction {
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT, END.
    Commit {
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        chain: bool,
    },
    Savepoint(Name),
    Release(Name),
    RollbackTo(Name),
    Prepare,
    CommitPrepared,
    RollbackPrepared,
}

impl Transaction {
    /// Whether a transaction block ends with it, committed or not.
    pub fn ends(&self) -> bool {
        matches!(self, Self::Commit { .. } | Self::Rollback { .. } | Self::Prepare)
    }
}

/// SET, RESET.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    pub setting: Setting,
    /// SET LOCAL.
    pub local: bool,
    pub range: TextRange,
}

/// The subject of SET or RESET.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// `SET name = values`; names are in lower case.
    Value { name: SmolStr, values: Vec<Literal> },
    /// `SET name TO DEFAULT`, `RESET name`.
    Default { name: SmolStr },
    /// RESET ALL.
    ResetAll,
    /// SET TRANSACTION, SET SESSION CHARACTERISTICS.
    Transaction,
}

/// DISCARD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    All,
    Plans,
    Sequences,
    Temporary,
}

/// DO.
#[derive(Debug, Clone, PartialEq)]
pub struct Do {
    pub language: SmolStr,
    pub body: FunctionBody,
    pub keyword: TextRange,
}

impl Do {
    /// The same statement in a text that has its text `by` bytes further on.
    #[must_use]
    pub fn shifted(self, by: u32) -> Self {
        let body = match self.body {
            FunctionBody::Source { text, range } => FunctionBody::Source { text, range: range.shifted(by) },
            other => other,
        };
        Self { body, keyword: self.keyword.shifted(by), ..self }
    }
}

/// CALL.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub call: FunctionCall,
}

/// EXPLAIN; with ANALYZE the statement really runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    pub analyze: bool,
    pub statement: Box<Ast>,
}

/// PREPARE name AS statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepare {
    pub name: Name,
    pub statement: Box<Ast>,
    /// The text of the statement.
    pub text: SmolStr,
}
