//! What a finding follows from.

use pgvet_model::catalog::Oid;
use pgvet_model::session::Session;
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};

/// What findings of a rule have in common, so that reports show one of them with the places of the others. They are in
/// one file unless the cause says otherwise.
/// Suppressions, the baseline, fixes and the language server see each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// What one transaction does together.
    Transaction(TransactionId),
    /// The statements of a transaction that work on one relation.
    Work { relation: Oid, transaction: TransactionId },
    /// A statement that reads the rows of one relation once, whatever it checks in them.
    Pass { relation: Oid, statement: TextRange },
    /// What the migration takes from one table or type, with the same consequence each time.
    Object(Oid),
    /// Deadlocks on the same two tables, in any migration of a database.
    LockOrder { tables: [Oid; 2], database: u32 },
    /// Policies that read each other in a circle, in any migration of a database. `circle` is a digest of its tables.
    Policies { circle: u64, database: u32 },
    /// What one setting of the role, the database or the connection would mend, in any migration of the database with
    /// this number.
    Database(u32),
    /// The message, which says no more about one place than about another.
    Message,
}

/// A transaction of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TransactionId {
    /// The number of the transaction block.
    Block(u32),
    /// A statement that is a transaction of its own, with all code that it runs.
    Statement(TextRange),
}

impl Cause {
    /// Returns whether findings in different files are one, too.
    pub fn spans_files(&self) -> bool {
        matches!(self, Self::LockOrder { .. } | Self::Policies { .. } | Self::Database(_))
    }
}

impl TransactionId {
    /// The transaction of a statement of the file.
    pub(crate) fn of(session: &Session, statement: TextRange) -> Self {
        session.block.as_ref().map_or(Self::Statement(statement), |block| Self::Block(block.number))
    }
}
