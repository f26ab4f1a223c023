//! How the program that runs migrations goes on behind a COMMIT, and from one migration to the next.

use crate::check::TransactionMode;
use crate::confidence::Assumption;
use crate::session::SettingValue;
use crate::source::TextRange;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// What [`TransactionMode`](crate::check::TransactionMode) does not say about the program that runs a migration.
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
    /// What it does with a migration that has stopped half way, outside a transaction.
    pub retry: Retry,
    /// Whether the program is known; otherwise a file is treated as one for psql.
    pub is_known: bool,
    /// What shows that it opens the transaction of the migration.
    pub known_transaction: KnownTransaction,
}

/// What a program does with a migration of which a part has been applied and a later statement has failed.
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
    /// Nothing, and the migration has no statement that could run in one.
    Unlikely,
}

impl Runner {
    /// What is assumed about a transaction that the program opens, as far as it is not known.
    pub(crate) fn assumption(&self, transaction: TransactionMode) -> Option<Assumption> {
        match self.known_transaction {
            KnownTransaction::Known => None,
            KnownTransaction::Recognized | KnownTransaction::Assumed => Some(match transaction {
                TransactionMode::SingleString => Assumption::SentAsString,
                _ => Assumption::TransactionOfFile,
            }),
            KnownTransaction::Doubtful => Some(Assumption::TransactionOfFileThoughNotOfOthers),
            KnownTransaction::Unlikely => Some(Assumption::TransactionOfFileThoughUnfit),
        }
    }
}

/// What follows a COMMIT, or a ROLLBACK, that ends the transaction which the program opened around a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterCommit {
    /// Each statement runs alone.
    #[default]
    Alone,
    /// What follows is in another transaction: it was sent in the same string, or the driver begins one.
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

/// What the program does not do although PostgreSQL would: it refuses a migration before it sends it, or never ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// What it stumbles over.
    pub range: TextRange,
    /// One sentence without period.
    pub message: String,
    pub help: String,
    /// Whether a setting that pgvet does not see may change it.
    pub by_default: bool,
    /// The program, where only marks in the file tell of it: others read them, too.
    pub unproven: Option<&'static str>,
}

/// What a program does in place of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// It ends with an error.
    Fails,
    /// It runs the others and does not mention this one.
    LeavesOut,
    /// It waits for itself.
    NeverEnds,
}

/// The session that a migration leaves to the next one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) settings: OrdMap<SmolStr, SettingValue>,
    pub(crate) path: String,
    pub(crate) report: bool,
    pub(crate) release: Option<u32>,
    pub(crate) scope: SessionScope,
    /// The number of the first transaction of the migrations that may be in one with it.
    pub(crate) since: u32,
}

#[cfg(test)]
mod tests;
