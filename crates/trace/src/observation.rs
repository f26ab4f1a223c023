//! Measurements. Durations are wall time as the client saw it, without the time that the observer itself took.

use pgvet_syntax::ast::{Ast, LockMode};
use pgvet_syntax::source::TextRange;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Everything that a run measured.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub major: u8,
    /// As the server says it: `15.18`.
    pub server_version: String,
    pub provider: &'static str,
    /// Why figures mean less than they seem to: no rows, a shared server.
    pub notes: Vec<String>,
    pub migrations: Vec<MigrationTrace>,
}

/// One migration, or the part of it that was run.
#[derive(Debug, Clone, Default)]
pub struct MigrationTrace {
    /// Index into the migrations of the run.
    pub migration: usize,
    pub duration: Duration,
    pub statements: Vec<StatementTrace>,
    pub transactions: Vec<TransactionTrace>,
    pub xids: i64,
    pub wal_bytes: i64,
    pub temp_bytes: i64,
    pub subtransactions: Subtransactions,
    pub catalog_rows: BTreeMap<String, RowCounts>,
    /// About how many rows each table had before, where that is known: `schema.name`.
    pub rows: BTreeMap<String, u64>,
    /// How large each table was before: `schema.name`.
    pub bytes: BTreeMap<String, TableBytes>,
    /// Tables that existed before or after, and changed in size or dead rows.
    pub tables: Vec<Growth>,
    pub canaries: Vec<CanaryTrace>,
    pub workload: Vec<WorkloadTrace>,
    /// Deadlocks between the migration and clients of the workload, or between clients.
    pub deadlocks: Vec<Deadlock>,
    pub notes: Vec<String>,
}

/// How long a session had to wait that used a table as an application does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryTrace {
    /// Quoted for SQL.
    pub relation: String,
    /// `reads` or `writes`.
    pub blocked: &'static str,
    pub probes: usize,
    /// The usual time of a probe that nothing blocks.
    pub usual: Duration,
    /// By how much the slowest probe took longer.
    pub longest_wait: Duration,
}

/// Sessions of which each waits for a lock of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// PostgreSQL's own report, with the names of the relations: which process waits for which lock of which.
    pub report: String,
    /// The process whose transaction PostgreSQL has cancelled.
    pub cancelled: i32,
    /// The sessions of the report, in its order.
    pub sessions: Vec<DeadlockSession>,
}

/// A session of a deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlockSession {
    pub pid: i32,
    /// `the migration`, `client 1`.
    pub name: String,
    /// What it ran in its transaction; the last statement waits.
    pub statements: Vec<DeadlockStatement>,
}

/// A statement of such a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlockStatement {
    /// `file:line`, for a statement of the workload.
    pub place: Option<String>,
    /// Without its passwords.
    pub sql: String,
}

/// How long a statement of the user's own took before, during and after the migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadTrace {
    /// `file:line`.
    pub place: String,
    pub sql: String,
    pub before: Latency,
    /// Of what ran while the migration did, even if only in part.
    pub during: Latency,
    pub after: Latency,
    /// Of what was refused, which counts in no other phase: after a lock is let go, a column may be gone.
    pub refused: Latency,
    /// Why, the first time.
    pub error: Option<String>,
}

/// Times of a statement that was run often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    pub runs: usize,
    pub median: Duration,
    /// Of twenty runs, nineteen took no longer.
    pub p95: Duration,
    pub longest: Duration,
}

impl MigrationTrace {
    /// The statement that PostgreSQL refused, and why.
    pub fn failure(&self) -> Option<(&StatementTrace, &Failure)> {
        self.statements.iter().find_map(|statement| Some((statement, statement.failure.as_ref()?)))
    }
}

/// A block from BEGIN to COMMIT or ROLLBACK, or a statement in a transaction of its own.
#[derive(Debug, Clone, Default)]
pub struct TransactionTrace {
    /// Indexes of its statements.
    pub statements: Vec<usize>,
    pub xids: i64,
    /// For how long others could not use a relation that they can see.
    pub blocked: Vec<Blocked>,
}

/// For how long one relation was closed to each kind of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    pub relation: Relation,
    pub mode: LockMode,
    pub held: Held,
}

#[derive(Debug, Clone, Default)]
pub struct StatementTrace {
    pub range: TextRange,
    pub kind: StatementKind,
    /// As it was sent, without its passwords.
    pub sql: String,
    /// Since the migration began, without the time that the observer took.
    pub started: Duration,
    pub duration: Duration,
    /// Where it was run several times: `duration` is then the median.
    pub spread: Option<Spread>,
    /// It ran in a block of several statements.
    pub in_block: bool,
    /// It refuses to run in a transaction block, so its locks were sampled while it ran.
    pub sampled: bool,
    /// Other sessions used the tables meanwhile, so what it read and wrote itself is not known.
    pub uncounted: bool,
    pub locks: Vec<LockTrace>,
    /// Tables and materialized views with new storage.
    pub rewrites: Vec<Relation>,
    pub truncates: Vec<Relation>,
    pub scans: Vec<ScanTrace>,
    pub index_builds: Vec<Relation>,
    pub creates: Vec<Relation>,
    pub drops: Vec<Relation>,
    /// Rows that were written, by table.
    pub changes: Vec<(Relation, RowCounts)>,
    /// The relation as it was called before, and after.
    pub renames: Vec<(Relation, Relation)>,
    /// `None` in a block: only the block as a whole can be counted.
    pub xids: Option<i64>,
    pub wal_bytes: i64,
    pub catalog_rows: BTreeMap<String, RowCounts>,
    pub failure: Option<Failure>,
}

/// The kind of a statement, as far as the meaning of its measures depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatementKind {
    Alter,
    /// Anything but an index.
    Create,
    CreateIndex,
    Drop,
    /// REINDEX, VACUUM and CLUSTER.
    Maintain,
    Truncate,
    /// A query, a change of rows, code, control of transactions.
    #[default]
    Other,
}

impl From<&Ast> for StatementKind {
    fn from(ast: &Ast) -> Self {
        match ast {
            Ast::AlterTable(_)
            | Ast::AlterTableMoveAll(_)
            | Ast::AlterSequence(_)
            | Ast::AlterDomain(_)
            | Ast::AlterEnum(_)
            | Ast::AlterFunction(_)
            | Ast::AlterPolicy(_)
            | Ast::AlterPublication(_)
            | Ast::AlterDefaultPrivileges(_)
            | Ast::Rename(_)
            | Ast::SetSchema(_)
            | Ast::ChangeOwner(_) => Self::Alter,
            Ast::CreateTable(_)
            | Ast::CreateTableAs(_)
            | Ast::CreateStatistics(_)
            | Ast::CreateView(_)
            | Ast::CreateSequence(_)
            | Ast::CreateType(_)
            | Ast::CreateDomain(_)
            | Ast::CreateFunction(_)
            | Ast::CreateTrigger(_)
            | Ast::CreateRule(_)
            | Ast::CreatePolicy(_)
            | Ast::CreatePublication(_)
            | Ast::CreateRole(_)
            | Ast::CreateSchema(_)
            | Ast::CreateExtension(_) => Self::Create,
            Ast::CreateIndex(_) => Self::CreateIndex,
            Ast::CreateOther(other) => Self::named(other.tag),
            Ast::Other(node) => Self::named(node),
            Ast::Drop(_) | Ast::DropOwned(_) => Self::Drop,
            Ast::Reindex(_) | Ast::Vacuum(_) | Ast::Cluster(_) => Self::Maintain,
            Ast::Truncate(_) => Self::Truncate,
            Ast::Select(_)
            | Ast::Insert(_)
            | Ast::Update(_)
            | Ast::Delete(_)
            | Ast::Merge(_)
            | Ast::RefreshMaterializedView(_)
            | Ast::Comment(_)
            | Ast::Grant(_)
            | Ast::GrantRole(_)
            | Ast::ReassignOwned(_)
            | Ast::LockTable(_)
            | Ast::Copy(_)
            | Ast::Explain(_)
            | Ast::Prepare(_)
            | Ast::Execute(_)
            | Ast::DeclareCursor(_)
            | Ast::Transaction(_)
            | Ast::Set(_)
            | Ast::Discard(_)
            | Ast::Deallocate(_)
            | Ast::Do(_)
            | Ast::Call(_) => Self::Other,
        }
    }
}

impl StatementKind {
    /// By a command tag (`ALTER SUBSCRIPTION`) or the name of a node (`AlterExtensionStmt`).
    fn named(name: &str) -> Self {
        let begins = |word: &str| name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        if begins("alter") {
            Self::Alter
        } else if begins("create") || begins("import") {
            Self::Create
        } else if begins("drop") {
            Self::Drop
        } else {
            Self::Other
        }
    }
}

/// The fastest and the slowest of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    pub runs: usize,
    pub least: Duration,
    pub most: Duration,
}

/// A lock that a statement took and did not have before.
#[derive(Debug, Clone)]
pub struct LockTrace {
    pub relation: Relation,
    pub mode: LockMode,
    /// The relation was there before the statement.
    pub existed: bool,
    /// It was there before the transaction, so others can see it.
    pub exposed: bool,
    /// Since the migration began.
    pub acquired: Duration,
    pub held: Held,
}

/// How long a lock was held: the best estimate, and bounds that are certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    pub best: Duration,
    pub low: Duration,
    pub high: Duration,
}

impl Held {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { best: self.best + other.best, low: self.low + other.low, high: self.high + other.high }
    }
}

/// A relation as it was called when it was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Relation {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: char,
    /// The table of an index.
    pub table: Option<u32>,
}

impl Relation {
    pub fn is_index(&self) -> bool {
        matches!(self.kind, 'i' | 'I')
    }

    /// Has rows, itself or in its partitions.
    pub fn is_table(&self) -> bool {
        matches!(self.kind, 'r' | 'p' | 'm')
    }

    /// Quoted for SQL.
    pub(crate) fn sql(&self) -> String {
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = if self.schema.starts_with("pg_temp") { "pg_temp" } else { &self.schema };
        write!(f, "{schema}.{}", self.name)
    }
}

/// Full reads of a table by one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanTrace {
    pub relation: Relation,
    pub times: i64,
    pub rows: i64,
}

/// Rows of a catalog that were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub inserted: i64,
    pub updated: i64,
    pub deleted: i64,
}

impl RowCounts {
    pub(crate) fn is_zero(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            inserted: (self.inserted - before.inserted).max(0),
            updated: (self.updated - before.updated).max(0),
            deleted: (self.deleted - before.deleted).max(0),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
    }
}

/// Subtransactions of the transaction that had most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subtransactions {
    /// Those with an XID. On 16 and later only those that are not aborted, and at most the 64 that the cache has;
    /// before, all of them.
    pub max: i64,
    /// More than 64: every snapshot on the server has to look into `pg_subtrans`. `None` where it cannot be told.
    pub overflowed: Option<bool>,
}

/// The size of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableBytes {
    /// Without indexes.
    pub table: u64,
    /// Of all its indexes.
    pub indexes: u64,
}

/// How a table or an index changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    pub relation: Relation,
    pub dead_rows: i64,
    pub bytes_before: i64,
    pub bytes_after: i64,
}

/// PostgreSQL's error when it refuses a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Byte offset in the file, where PostgreSQL tells a position.
    pub position: Option<u32>,
    /// Why it ended, where it is not PostgreSQL who decided so.
    pub timed_out: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    fn kind(sql: &str) -> StatementKind {
        let file = parse_file(SourceFile::new("m.sql".to_owned(), sql.to_owned()));
        StatementKind::from(file.statements[0].ast().unwrap())
    }

    #[test]
    fn statements_that_are_known_by_their_tag_only_have_a_kind_too() {
        use StatementKind::{Alter, Create, Drop, Maintain, Other};
        for (sql, expected) in [
            ("ALTER EXTENSION postgis UPDATE", Alter),
            ("ALTER SUBSCRIPTION s DISABLE", Alter),
            ("ALTER SYSTEM SET work_mem = '1GB'", Alter),
            ("CREATE SUBSCRIPTION s CONNECTION 'x' PUBLICATION p", Create),
            ("CREATE AGGREGATE a (int) (sfunc = f, stype = int)", Create),
            ("IMPORT FOREIGN SCHEMA s FROM SERVER f INTO public", Create),
            ("CREATE ROLE r", Create),
            ("DROP SUBSCRIPTION s", Drop),
            ("DROP ROLE r", Drop),
            ("CLUSTER t USING i", Maintain),
            ("LISTEN c", Other),
        ] {
            assert_eq!(kind(sql), expected, "{sql}");
        }
    }
}
