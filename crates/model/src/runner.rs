//! How the program that runs migrations continues after a COMMIT, and from one migration to the next.

use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};

/// Properties of the program that runs a migration, besides [`TransactionMode`](crate::migration::TransactionMode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Runner {
    pub after_commit: AfterCommit,
    pub session: SessionScope,
    /// Whether one transaction holds all migrations that a run finds pending.
    pub one_transaction: bool,
    /// Whether it refuses a file that holds a statement which cannot run in a transaction, and another that can.
    pub keeps_apart: bool,
    /// Whether the run fails at its own COMMIT where a migration has ended its transaction.
    pub misses_its_transaction: bool,
    /// How it handles a migration that has stopped half way, outside a transaction.
    pub retry: Retry,
    /// Whether the program is known; otherwise a file is treated as one for psql.
    pub is_known: bool,
    /// What shows that it opens the transaction of the migration.
    pub known_transaction: KnownTransaction,
}

/// How a program handles a migration of which a part has been applied and a later statement has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retry {
    /// Runs it again from its first statement.
    #[default]
    Again,
    /// Continues with the statement that failed.
    Continues,
    /// Refuses to run until this step is done, and then runs the migration from its first statement.
    After(&'static str),
}

/// What shows that a program opens the transaction of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KnownTransaction {
    /// The program, the configuration or the file itself.
    #[default]
    Known,
    /// Words in code of the project, which can mean something else.
    Recognized,
    /// Nothing, but most programs do.
    Assumed,
    /// Nothing, and another migration could not run in one.
    Doubtful,
    /// The tool that the file is written for, but comments in place of names show that another program sends the file.
    Replaced,
    /// Nothing, and the migration has no statement that could run in one.
    Unlikely,
}

/// How a program continues after a COMMIT, or a ROLLBACK, that ends the transaction which the program opened around a
/// migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterCommit {
    /// Each statement runs alone.
    #[default]
    Alone,
    /// Later statements are in another transaction: they were sent in the same string, or the driver begins one.
    Together,
}

/// For how long a session lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SessionScope {
    /// Each migration has its own, or all settings are reset before it.
    #[default]
    Migration,
    /// All migrations of a run share it.
    Run,
    /// They do, but `search_path` and the role are reset before each.
    RunWithoutSearchPath,
}

/// A statement that the program does not run although PostgreSQL would: it refuses a migration before it sends it, or
/// never ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// The text that it refuses.
    pub range: TextRange,
    /// One sentence without period.
    pub message: String,
    pub help: String,
    /// Whether a setting that pgvet does not see may change it.
    pub by_default: bool,
    /// The program, if only marks in the file name it: other programs read them, too.
    pub unproven: Option<&'static str>,
}

/// The behaviour of a program in place of running a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// It ends with an error.
    Fails,
    /// It runs the others and does not mention this one.
    Skips,
    /// It waits for itself.
    NeverEnds,
}
