//! The effects of a statement, as data: the one thing that rules look at.
//!
//! An effect carries its cause and the range that caused it, so that a rule needs no syntax of its own.

mod branches;
mod catalog_rows;
mod change;
mod contents;
mod demand;
mod locks;
mod reach;
mod removal;
mod rows;
mod summary;
mod unknown;

use crate::catalog::{Oid, Relation, RelationKind, SqlType};
use crate::place::Place;
pub use branches::{Branches, Decision};
pub use catalog_rows::CatalogRows;
pub use change::{ChangeAction, ChangedObject, ObjectChange, RuleAction};
pub use contents::FewRows;
pub use demand::{
    Access, Conversion, ConversionTest, Counterexample, Demand, DomainValues, Exclusion, KeyPart, Listed, Met,
    PartitionRows, Reference, RowDemand, UniqueKey, UsualRows, Written,
};
use indexmap::IndexSet;
pub use locks::Locks;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
pub use reach::Reach;
pub use removal::{Removal, RemovalReason, RemovedObject, RenamedObject, Renaming};
pub use rows::{Extent, Read, Rows, RowsReason};
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
pub use summary::names;
pub use unknown::{Limit, Unknown, UnknownReason};

/// Where knowledge of an effect comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Derived from the statement and the catalog before it.
    Predicted,
    /// Measured on a server.
    Observed,
}

/// Everything that one statement does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    pub locks: Locks,
    pub rewrites: Vec<Rewrite>,
    /// Rewrites that are skipped only because the time zone of the session is assumed to be UTC: no statement sets it.
    pub rewrites_unless_utc: Vec<Rewrite>,
    /// What is done to each partition of a partitioned table of which the migrations show none.
    pub partition_work: Vec<PartitionWork>,
    pub scans: Vec<Scan>,
    pub index_builds: Vec<IndexBuild>,
    /// What rows have to be like that tables of earlier deployments hold.
    pub demands: Vec<RowDemand>,
    pub creates: Vec<RelationName>,
    pub drops: Vec<RelationName>,
    /// The objects that DROP removes, columns, constraints and dependent objects included.
    pub removals: Vec<Removal>,
    pub renames: Vec<Renaming>,
    /// Triggers, rules, policies, extensions, functions, labels of enums, privileges and settings that it makes, alters,
    /// drops, enables or disables.
    pub changes: Vec<ObjectChange>,
    /// Emptied by TRUNCATE.
    pub truncates: Vec<RelationName>,
    pub fails: Option<Failure>,
    /// Why the lists may be incomplete.
    pub unknown: IndexSet<Unknown, FxBuildHasher>,
    /// Rows that are inserted, updated and deleted.
    pub data_changes: Vec<DataChange>,
    /// Rows of tables that queries read and lock.
    pub reads: Vec<Read>,
    /// Waits until every transaction that can see the old state has ended (CREATE INDEX CONCURRENTLY and other
    /// concurrent commands).
    pub waits_for_transactions: bool,
    /// Rows that CREATE TABLE, CREATE TABLE AS and CREATE INDEX add to the system catalogs.
    pub catalog_rows: CatalogRows,
    /// Functions of the project that it runs in place, the outermost first.
    pub calls: Vec<CalledFunction>,
    /// The objects beyond its database that it reaches, each once.
    pub reaches: Vec<Reach>,
}

/// A function that a statement runs in place: what that does is shown at the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledFunction {
    pub oid: Oid,
    pub name: String,
    /// The name in the call.
    pub range: TextRange,
    /// The name in its definition, and the index of that file.
    pub defined_at: Option<(u32, TextRange)>,
    /// Whether the statement itself calls it, and not a function that it runs.
    pub is_direct: bool,
}

/// A relation as effects name it: its identity and its name at the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationName {
    pub oid: Oid,
    pub schema: SmolStr,
    pub name: SmolStr,
    pub kind: RelationKind,
    /// Who else can see it.
    pub visibility: Visibility,
    /// Evidence for few rows in a table of an earlier deployment.
    pub few: Option<FewRows>,
    /// The part of it that a statement drops IF EXISTS, and that no statement has shown: without that, the statement
    /// does nothing.
    pub unseen_part: Option<SmolStr>,
}

impl RelationName {
    /// Whether it may hold rows.
    pub fn may_have_rows(&self) -> bool {
        self.visibility.may_have_rows() && self.few != Some(FewRows::Truncated)
    }

    /// A relation that others see and use.
    pub fn existing(relation: &Relation) -> Self {
        Self {
            oid: relation.oid,
            schema: relation.schema.clone(),
            name: relation.name.clone(),
            kind: relation.kind,
            visibility: Visibility::Existing,
            few: None,
            unseen_part: None,
        }
    }
}

impl std::fmt::Display for RelationName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// Who can be hurt by a lock on a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// It was there before this deployment: treat it as large and in use.
    Existing,
    /// Made earlier in this deployment and committed since; others see it. `filled`: it may hold rows; meaningful only
    /// for tables and materialized views.
    SameDeployment { filled: bool },
    /// Made earlier in this transaction (or by this statement): nobody else can see it. `filled`: it may hold rows,
    /// so that work on it takes time while other locks are held.
    SameTransaction { filled: bool },
}

impl Visibility {
    /// Whether other sessions may wait for a lock on it, and work on it may take long. Rules about deployed code or about
    /// rows of earlier deployments compare with [`Visibility::Existing`] instead.
    pub fn is_exposed(self) -> bool {
        matches!(self, Self::Existing | Self::SameDeployment { filled: true })
    }

    /// Whether it may hold rows.
    pub fn may_have_rows(self) -> bool {
        match self {
            Self::Existing => true,
            Self::SameDeployment { filled } | Self::SameTransaction { filled } => filled,
        }
    }
}

/// A lock that a statement takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    pub relation: RelationName,
    pub mode: LockMode,
    pub cause: LockCause,
    pub range: TextRange,
    /// Milliseconds after which the statement gives up waiting for it: 0 with NOWAIT; `None` without `lock_timeout`.
    pub patience: Option<u64>,
    /// The decisions of code that lead to it, if somebody asks for them.
    pub branches: Branches,
}

impl Lock {
    /// Whether the statement fails if it cannot get the lock at once.
    pub fn is_nowait(&self) -> bool {
        self.patience == Some(0)
    }
}

/// Why a statement locks a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockCause {
    /// The statement names it.
    Target,
    /// An index, sequence, TOAST-like part or trigger table of what it names.
    Part,
    /// A partition or child of what it names.
    Child,
    /// The parent of a partition.
    Parent,
    /// The DEFAULT partition beside a partition that comes or goes.
    DefaultPartition,
    /// The other side of a foreign key that is added.
    ForeignKeyAdded,
    /// The other side of a foreign key that goes away.
    ForeignKeyDropped,
    /// The other side of a foreign key whose column changes, or that is validated or altered.
    ForeignKey,
    /// It depends on something that is dropped with CASCADE or changed.
    Dependent,
    /// A query reads or writes it.
    Query,
    /// A function that the statement runs uses it.
    Function,
    /// It uses a domain or type that is altered.
    TypeUser,
    /// Taken only where nobody has to wait for it, and given back when somebody does.
    WithoutWaiting,
}

/// New storage for a table, materialized view or index.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    pub relation: RelationName,
    pub cause: RewriteCause,
    pub range: TextRange,
}

/// Why a table is rewritten.
#[derive(Debug, Clone, PartialEq)]
pub enum RewriteCause {
    /// ADD COLUMN whose default must be computed for each row; the volatile function where one is to blame.
    VolatileDefault {
        column: SmolStr,
        function: Option<SmolStr>,
    },
    /// ADD COLUMN with a default that is the same for all rows, which PostgreSQL before 11 writes into each of them.
    DefaultBefore11 {
        column: SmolStr,
    },
    Serial {
        column: SmolStr,
    },
    Identity {
        column: SmolStr,
    },
    StoredGenerated {
        column: SmolStr,
    },
    /// ADD COLUMN of a domain that has constraints.
    ConstrainedDomain {
        column: SmolStr,
        domain: SmolStr,
    },
    TypeChange {
        column: SmolStr,
        from: SqlType,
        to: SqlType,
        using: Using,
    },
    SetExpression {
        column: SmolStr,
    },
    Persistence,
    AccessMethod,
    Tablespace,
    VacuumFull,
    Cluster,
    Refresh,
    /// Something above it in the inheritance tree is rewritten for the same cause, or the model cannot tell more.
    Other,
}

/// What ALTER COLUMN TYPE says of the old values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Using {
    /// Nothing: an assignment cast converts them.
    Absent,
    /// USING casts the column.
    Cast,
    /// USING computes new values.
    Computed,
}

/// Work on the partitions of a table, if programs have created any.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionWork {
    /// The partitioned table.
    pub relation: RelationName,
    pub kind: PartitionWorkKind,
    pub range: TextRange,
}

/// What is done to each partition.
#[derive(Debug, Clone, PartialEq)]
pub enum PartitionWorkKind {
    Rewrite(RewriteCause),
    Scan(ScanCause),
    IndexBuild(IndexBuildCause),
}

/// A full read of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    pub relation: RelationName,
    pub cause: ScanCause,
    /// The strongest lock that the statement holds on this table during the scan.
    pub lock: LockMode,
    pub range: TextRange,
}

/// Why a table is read in full.
#[derive(Debug, Clone, PartialEq)]
pub enum ScanCause {
    Rewrite,
    IndexBuild,
    NotNull {
        column: SmolStr,
    },
    Check {
        constraint: Option<SmolStr>,
    },
    ForeignKey {
        constraint: Option<SmolStr>,
    },
    /// VALIDATE CONSTRAINT.
    Validate {
        constraint: SmolStr,
    },
    /// A CHECK on a column whose type changes.
    Recheck {
        constraint: SmolStr,
    },
    PartitionBound,
    /// The DEFAULT partition, for rows that belong to a new partition.
    DefaultPartition,
    Domain {
        domain: SmolStr,
    },
    Query,
}

/// An index that is built.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexBuild {
    pub index: RelationName,
    pub table: RelationName,
    pub cause: IndexBuildCause,
    pub concurrently: bool,
    pub range: TextRange,
}

/// Why an index is built.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexBuildCause {
    CreateIndex,
    /// PRIMARY KEY, UNIQUE or EXCLUDE, in any syntax.
    Constraint,
    Reindex,
    /// The table is rewritten.
    Rewrite,
    /// The table is not rewritten, but the index depends on the changed column.
    TypeChange {
        column: SmolStr,
    },
    /// A partition gets the indexes of its parent.
    Partition,
}

/// PostgreSQL would refuse the statement here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Five characters, for example `25001`.
    pub sqlstate: &'static str,
    pub reason: String,
    pub subject: FailureSubject,
    pub range: TextRange,
    /// The schema in which an unqualified name was found because no statement has set `search_path`.
    pub assumed_schema: Option<SmolStr>,
    /// The SQLSTATE that RAISE gives the error, if code raises it: empty if only the run decides.
    pub raised: Option<SmolStr>,
    /// Whether an earlier statement may raise an error that a handler around both catches, so that this one does not run.
    pub unless_handled: bool,
}

impl Failure {
    pub fn new(sqlstate: &'static str, reason: impl Into<String>, range: TextRange) -> Self {
        Self {
            sqlstate,
            reason: reason.into(),
            subject: FailureSubject::Other,
            range,
            assumed_schema: None,
            raised: None,
            unless_handled: false,
        }
    }
}

/// The subject of a refusal, as far as its SQLSTATE leaves that open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureSubject {
    /// No function takes such arguments.
    Function,
    /// No operator takes values of these types.
    Operator,
    Other,
}

/// A change of rows in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct DataChange {
    pub relation: RelationName,
    pub kind: DataChangeKind,
    /// Whether an UPDATE may give a column of a unique index another value, so that it locks rows FOR UPDATE.
    pub changes_key: bool,
    /// How many rows are written.
    pub rows: Rows,
    /// A trigger makes it, as at any other change of the table that the trigger is on.
    pub by_trigger: bool,
    /// Whether COMMIT checks a foreign key for these rows. Until then PostgreSQL treats the table as in use.
    pub checked_at_commit: bool,
    /// The same statement in a migration of an earlier deployment.
    pub repeats: Option<Place>,
    pub range: TextRange,
}

/// INSERT, UPDATE, DELETE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataChangeKind {
    Insert,
    Update,
    Delete,
}
