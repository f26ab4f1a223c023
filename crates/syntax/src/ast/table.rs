//! Tables, constraints, indexes and whole-table commands.

use super::{DefElem, DropBehavior, Expr, Name, ObjectName, Persistence, Query, TypeName};
use crate::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// The kind of object that a statement names by keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Table,
    Index,
    Sequence,
    View,
    MaterializedView,
    ForeignTable,
    /// Type of any kind; for ALTER TYPE ... ADD ATTRIBUTE a composite type.
    Type,
    Domain,
    Schema,
    Function,
    Procedure,
    Routine,
    Aggregate,
    Language,
    Trigger,
    Rule,
    Policy,
    Column,
    Constraint,
    DomainConstraint,
    Attribute,
    Extension,
    Publication,
    Subscription,
    Statistics,
    Collation,
    Role,
    Database,
    Tablespace,
    EventTrigger,
    /// A setting of the server.
    Parameter,
    /// Everything else (casts, operators, text search objects, ...).
    Other,
}

/// ALTER TABLE | INDEX | SEQUENCE | VIEW | MATERIALIZED VIEW | FOREIGN TABLE | TYPE with its commands.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    pub kind: ObjectKind,
    pub name: ObjectName,
    pub only: bool,
    pub if_exists: bool,
    pub commands: Vec<AlterTableCommand>,
    /// A command ends in CASCADE; ALTER TYPE ... ATTRIBUTE then changes the tables of the type.
    pub cascade: bool,
}

/// One comma-separated command of ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTableCommand {
    pub action: AlterTableAction,
    /// The whole command, without the comma.
    pub range: TextRange,
    /// The words that say what it does: `ADD COLUMN`, `SET NOT NULL`, `ALTER COLUMN ... TYPE` as `TYPE bigint`.
    pub keyword: TextRange,
}

/// The actions of ALTER TABLE commands.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterTableAction {
    AddColumn {
        column: ColumnDef,
        if_not_exists: bool,
    },
    DropColumn {
        column: Name,
        if_exists: bool,
        behavior: DropBehavior,
    },
    AlterColumnType {
        column: Name,
        type_name: TypeName,
        collation: Option<ObjectName>,
        using: Option<Expr>,
    },
    SetDefault {
        column: Name,
        default: Expr,
    },
    DropDefault {
        column: Name,
    },
    SetNotNull {
        column: Name,
    },
    DropNotNull {
        column: Name,
    },
    SetExpression {
        column: Name,
        expression: Expr,
    },
    DropExpression {
        column: Name,
        if_exists: bool,
    },
    /// The column by name or, for an index, by number.
    SetStatistics {
        column: Option<Name>,
        number: i16,
    },
    SetColumnOptions {
        column: Name,
        options: Vec<DefElem>,
        reset: bool,
    },
    SetStorage {
        column: Name,
        storage: SmolStr,
    },
    SetCompression {
        column: Name,
        method: SmolStr,
    },
    AddIdentity {
        column: Name,
        always: bool,
        options: Vec<DefElem>,
    },
    SetIdentity {
        column: Name,
        options: Vec<DefElem>,
    },
    DropIdentity {
        column: Name,
        if_exists: bool,
    },
    AddConstraint(Constraint),
    AlterConstraint(AlterConstraint),
    ValidateConstraint {
        name: Name,
    },
    DropConstraint {
        name: Name,
        if_exists: bool,
        behavior: DropBehavior,
    },
    ClusterOn {
        index: Name,
    },
    SetWithoutCluster,
    SetLogged,
    SetUnlogged,
    SetWithoutOids,
    /// `None` for SET ACCESS METHOD DEFAULT.
    SetAccessMethod {
        method: Option<Name>,
    },
    SetTablespace {
        tablespace: Name,
    },
    SetOptions(Vec<DefElem>),
    ResetOptions(Vec<DefElem>),
    Trigger {
        firing: Firing,
        which: TriggerChoice,
    },
    Rule {
        firing: Firing,
        name: Name,
    },
    Inherit {
        parent: ObjectName,
    },
    NoInherit {
        parent: ObjectName,
    },
    OfType {
        type_name: TypeName,
    },
    NotOf,
    ChangeOwner {
        role: SmolStr,
    },
    ReplicaIdentity(ReplicaIdentity),
    RowSecurity(RowSecurity),
    AttachPartition {
        partition: ObjectName,
        bound: Option<PartitionBound>,
    },
    DetachPartition {
        partition: ObjectName,
        concurrently: bool,
        finalize: bool,
    },
    /// OPTIONS of foreign tables and their columns.
    ForeignOptions,
}

/// ENABLE, DISABLE and their variants for triggers and rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Firing {
    Enable,
    EnableAlways,
    EnableReplica,
    Disable,
}

/// The triggers that ENABLE/DISABLE TRIGGER is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerChoice {
    Named(Name),
    All,
    User,
}

/// ALTER TABLE ... ROW LEVEL SECURITY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSecurity {
    Enable,
    Disable,
    Force,
    NoForce,
}

/// REPLICA IDENTITY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaIdentity {
    Default,
    Full,
    Nothing,
    Index(Name),
}

/// ALTER CONSTRAINT: what is not mentioned is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterConstraint {
    pub name: Name,
    pub deferrable: Option<bool>,
    pub initially_deferred: bool,
    pub enforced: Option<bool>,
    pub no_inherit: Option<bool>,
}

/// ALTER TABLE ALL IN TABLESPACE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterTableMoveAll {
    pub kind: ObjectKind,
    pub from: SmolStr,
    pub to: SmolStr,
}

/// A column definition.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    pub name: Name,
    /// Absent for a column of OF type or PARTITION OF.
    pub type_name: Option<TypeName>,
    pub collation: Option<ObjectName>,
    pub storage: Option<SmolStr>,
    pub compression: Option<SmolStr>,
    pub constraints: Vec<Constraint>,
    pub range: TextRange,
}

/// A constraint of a column, a table or a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    pub name: Option<Name>,
    pub kind: ConstraintKind,
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub not_valid: bool,
    pub not_enforced: bool,
    pub no_inherit: bool,
    /// From CONSTRAINT or the kind's keyword to the last token of the clause.
    pub range: TextRange,
    /// The kind's keyword(s): `PRIMARY KEY`, `FOREIGN KEY`, `REFERENCES`, `CHECK`, `NOT NULL`, ...
    pub keyword: TextRange,
}

/// The kinds of constraint; column syntax includes some that PostgreSQL does not store as constraints.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstraintKind {
    Null,
    /// With a column where it is a table constraint (18).
    NotNull {
        column: Option<Name>,
    },
    Default(Expr),
    Identity {
        always: bool,
        options: Vec<DefElem>,
    },
    Generated {
        expression: Expr,
        stored: bool,
        /// Whether STORED or VIRTUAL was written. Before 18 the grammar requires STORED.
        explicit_kind: bool,
    },
    Check(Expr),
    PrimaryKey(Box<IndexConstraint>),
    Unique(Box<IndexConstraint>),
    Exclude(Box<ExcludeConstraint>),
    ForeignKey(Box<ForeignKey>),
}

/// UNIQUE and PRIMARY KEY. `columns` is empty in column syntax.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexConstraint {
    pub columns: Vec<Name>,
    pub including: Vec<Name>,
    pub using_index: Option<Name>,
    pub nulls_not_distinct: bool,
    pub without_overlaps: bool,
    /// `WITH (fillfactor = 70)`.
    pub parameters: Option<TextRange>,
    pub tablespace: Option<SmolStr>,
}

/// EXCLUDE.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcludeConstraint {
    pub method: SmolStr,
    pub elements: Vec<(IndexElement, SmolStr)>,
    pub including: Vec<Name>,
    pub predicate: Option<Expr>,
}

/// FOREIGN KEY and REFERENCES. `columns` is empty in column syntax, `referenced_columns` if omitted.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    pub columns: Vec<Name>,
    pub table: ObjectName,
    pub referenced_columns: Vec<Name>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
    pub set_columns: Vec<Name>,
    pub match_full: bool,
}

/// ON DELETE and ON UPDATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ReferentialAction {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// CREATE TABLE and CREATE FOREIGN TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    pub name: ObjectName,
    pub persistence: Persistence,
    pub foreign: bool,
    pub if_not_exists: bool,
    pub elements: Vec<TableElement>,
    /// INHERITS.
    pub inherits: Vec<ObjectName>,
    pub partition_of: Option<(ObjectName, PartitionBound)>,
    pub partition_by: Option<PartitionBy>,
    pub of_type: Option<TypeName>,
    pub options: Vec<DefElem>,
    pub on_commit_drop: bool,
    pub tablespace: Option<SmolStr>,
    pub access_method: Option<SmolStr>,
}

/// An element between the parentheses of CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum TableElement {
    Column(ColumnDef),
    Constraint(Constraint),
    Like { table: ObjectName, including: LikeOptions },
}

/// The INCLUDING options of LIKE that are in effect after all INCLUDING and EXCLUDING.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LikeOptions {
    pub comments: bool,
    pub compression: bool,
    pub constraints: bool,
    pub defaults: bool,
    pub generated: bool,
    pub identity: bool,
    pub indexes: bool,
    pub statistics: bool,
    pub storage: bool,
}

/// PARTITION BY.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionBy {
    pub strategy: PartitionStrategy,
    /// Columns are `ExprKind::Column` of one part.
    pub keys: Vec<Expr>,
}

/// RANGE, LIST or HASH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionStrategy {
    Range,
    List,
    Hash,
}

/// FOR VALUES ... or DEFAULT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PartitionBound {
    Default,
    List(Vec<Expr>),
    /// MINVALUE and MAXVALUE are `ExprKind::Column` of that one word.
    Range {
        from: Vec<Expr>,
        to: Vec<Expr>,
    },
    Hash {
        modulus: u32,
        remainder: u32,
    },
}

/// CREATE TABLE AS, CREATE MATERIALIZED VIEW. (SELECT INTO stays a [`Query`] with an INTO clause.)
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTableAs {
    pub into: super::IntoClause,
    pub materialized_view: bool,
    pub if_not_exists: bool,
    /// `None` for CREATE TABLE AS EXECUTE.
    pub query: Option<Arc<Query>>,
    /// The query of a materialized view as written; empty for a table, which does not keep it.
    pub text: SmolStr,
}

/// CREATE INDEX.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    /// Absent when PostgreSQL is to choose it.
    pub name: Option<Name>,
    pub table: ObjectName,
    pub only: bool,
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub nulls_not_distinct: bool,
    pub method: SmolStr,
    pub elements: Vec<IndexElement>,
    pub including: Vec<Name>,
    pub predicate: Option<Expr>,
    pub options: Vec<DefElem>,
    pub tablespace: Option<SmolStr>,
    /// `CREATE [UNIQUE] INDEX`.
    pub keyword: TextRange,
    /// The word INDEX: where CONCURRENTLY would follow.
    pub index_keyword: TextRange,
}

/// A key of an index: a column or an expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexElement {
    /// A plain column is `ExprKind::Column` of one part.
    pub key: Expr,
    pub collation: Option<SmolStr>,
    pub operator_class: Option<SmolStr>,
    pub descending: bool,
    /// NULLS FIRST (true) or LAST (false) where written.
    pub nulls_first: Option<bool>,
}

/// CREATE STATISTICS.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateStatistics {
    pub name: Option<ObjectName>,
    pub if_not_exists: bool,
    pub table: Option<ObjectName>,
    pub elements: Vec<Expr>,
}

/// TRUNCATE.
#[derive(Debug, Clone, PartialEq)]
pub struct Truncate {
    pub tables: Vec<(ObjectName, bool)>,
    pub restart_identity: bool,
    pub behavior: DropBehavior,
    pub keyword: TextRange,
}

/// LOCK TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct LockTable {
    /// Tables, and whether ONLY.
    pub tables: Vec<(ObjectName, bool)>,
    pub mode: crate::ast::LockMode,
    /// Whether a mode was written.
    pub explicit_mode: bool,
    pub nowait: bool,
    pub keyword: TextRange,
}

/// VACUUM and ANALYZE.
#[derive(Debug, Clone, PartialEq)]
pub struct Vacuum {
    /// False for plain ANALYZE.
    pub vacuum: bool,
    pub analyze: bool,
    pub full: bool,
    /// Named tables; empty means all of the database.
    pub tables: Vec<ObjectName>,
    /// Those of `tables` that are after ONLY.
    pub only: Vec<ObjectName>,
    /// The columns that are named with tables, each by the table's place in `tables`.
    pub columns: Vec<(usize, SmolStr)>,
    pub options: Vec<DefElem>,
    pub keyword: TextRange,
}

/// CLUSTER.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub table: Option<ObjectName>,
    pub index: Option<Name>,
    pub keyword: TextRange,
}

/// REINDEX.
#[derive(Debug, Clone, PartialEq)]
pub struct Reindex {
    pub target: ReindexTarget,
    pub concurrently: bool,
    pub tablespace: Option<SmolStr>,
    pub keyword: TextRange,
    /// The word INDEX, TABLE, ...: where CONCURRENTLY would follow.
    pub target_keyword: TextRange,
}

/// The target of REINDEX.
#[derive(Debug, Clone, PartialEq)]
pub enum ReindexTarget {
    Index(ObjectName),
    Table(ObjectName),
    Schema(Name),
    System,
    Database,
}

/// COPY. `\copy` of psql is not a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Copy {
    pub table: Option<ObjectName>,
    pub columns: Vec<Name>,
    pub query: Option<super::QueryStatement>,
    pub from: bool,
    pub options: Vec<DefElem>,
    /// `COPY ... FROM stdin`: its data follow in the file.
    pub stdin: bool,
    /// How many rows these data have at most: a row of CSV can have several lines.
    pub rows_at_most: Option<u64>,
    /// The resource that the server reads or writes besides the table.
    pub beyond: Option<CopyBeyond>,
    pub filter: Option<Expr>,
}

/// The resource of the server's machine that COPY reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyBeyond {
    /// `COPY ... FROM PROGRAM`.
    Program,
    /// `COPY ... FROM '/path'`.
    File,
}
