//! Tables, views, sequences and composite types.

use super::memo::Memo;
use super::{Bounds, Constraint, Copied, Index, Named, Oid, SqlType};
use crate::catalog::{RelationKind, SearchPath};
use crate::deployment::Deployment;
use imbl::{OrdMap, OrdSet, Vector};
use pgvet_syntax::ast::{
    Expr, Firing, PartitionBound, PartitionStrategy, Persistence, ReplicaIdentity, TransitionTable, TriggerEvents,
    TriggerTiming,
};
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// A relation: a row of `pg_class` with what hangs on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Relation {
    pub oid: Oid,
    pub schema: SmolStr,
    pub name: SmolStr,
    pub kind: RelationKind,
    pub persistence: Persistence,
    /// False for a relation that was used before any statement created it: its columns, indexes and constraints
    /// are only those that later statements showed.
    pub known: bool,
    /// A search path that no statement set says its schema.
    pub placed_by_path: bool,
    /// It has, or may have, partitions, children or indexes under names known only at run time.
    pub unknown_parts: bool,
    pub birth: Birth,
    /// Code takes what a query of the whole table returns for one row.
    pub taken_for_one_row: bool,
    /// The role of the last OWNER TO.
    pub owner: Option<SmolStr>,
    pub columns: Vec<Column>,
    pub constraints: Named<Constraint>,
    /// Oids of the indexes on this table, in creation order.
    pub indexes: Vec<Oid>,
    /// Those of them that are unique, in the same order.
    pub unique_indexes: Vec<Oid>,
    /// Those of them that are not attached to an index of a parent table.
    pub unattached_indexes: Vec<Oid>,
    pub triggers: Named<Trigger>,
    /// DISABLE TRIGGER ALL: those that check foreign keys are off, too.
    pub all_triggers_off: bool,
    pub rules: Vec<SmolStr>,
    /// The relations that the actions and the condition of a rule name.
    pub rule_references: Vec<(SmolStr, Oid)>,
    pub policies: Named<Policy>,
    pub row_security: bool,
    pub force_row_security: bool,
    pub replica_identity: ReplicaIdentity,
    /// Direct parents, by inheritance or as a partition.
    pub parents: Vec<Oid>,
    /// Direct children, in the order of creation, as PostgreSQL's `find_inheritance_children` sorts them.
    pub children: OrdSet<Oid>,
    pub partition_by: Option<PartitionKey>,
    /// Those of its partitions.
    pub bounds: Bounds,
    /// The bound of a partition within its parent.
    pub partition_bound: Option<Arc<PartitionBound>>,
    /// A bulk DELETE may have left empty pages at the end.
    pub tail_emptied: bool,
    /// DETACH CONCURRENTLY was begun and not finished.
    pub detach_pending: bool,
    pub access_method: Option<SmolStr>,
    pub tablespace: Option<SmolStr>,
    /// The composite type of OF type.
    pub of_type: Option<Oid>,
    /// WITH (...) options as written, lower case names.
    pub options: Vec<(SmolStr, SmolStr)>,
    /// Sequences that go when it goes.
    pub owned_sequences: Vec<Oid>,
    /// Tables with a foreign key to it.
    pub referenced_by: Vector<Oid>,
    /// Views and materialized views that read it.
    pub viewed_by: Vec<Oid>,
    /// The last copy from each table whose rows statements have inserted.
    pub copies: Vec<Copied>,
    /// Constraints and unique indexes that the last deployment with such a change has dropped.
    pub dropped: Vec<Dropped>,
    /// Columns that it surely has not, although not all of its columns are known.
    pub gone_columns: Vec<SmolStr>,
    /// See [`Catalog::listed_keys`](super::Catalog::listed_keys).
    #[serde(skip)]
    pub(super) listed_keys: Memo<Option<u64>>,
    pub detail: RelationDetail,
}

/// The properties that only one kind of relation has.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub enum RelationDetail {
    #[default]
    None,
    Index(Arc<Index>),
    Sequence(Sequence),
    View(Arc<ViewDefinition>),
}

/// What a deployment has dropped, although the rows that are there still meet it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Dropped {
    pub rule: DroppedRule,
    pub deployment: Option<Deployment>,
    /// Number of the transaction.
    pub transaction: u32,
}

/// What rows met.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum DroppedRule {
    Constraint(Arc<Constraint>),
    Index(Arc<Index>),
    /// The name of a constraint that no migration shows, in DROP CONSTRAINT IF EXISTS.
    Unseen(SmolStr),
}

/// When a relation came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// The deployment that created it; `None`: before everything (a dump, or never seen).
    pub deployment: Option<Deployment>,
    /// Number of the transaction that created it.
    pub transaction: u32,
    /// Whether it may hold rows. Set by CREATE TABLE AS, INSERT, COPY; a relation of an earlier deployment always may.
    pub filled: bool,
    /// Whether these may be many. Not if the migration itself writes them out as VALUES, or copies them from the system
    /// catalogs.
    pub many: bool,
    /// How many it holds at most, where its migrations say so.
    pub at_most: Option<u64>,
    /// The deployment that first put rows in.
    pub filled_in: Option<Deployment>,
    /// The deployment in which a statement has succeeded that fails if there are rows.
    pub empty_in: Option<Deployment>,
    /// Whether a statement has removed or found no rows, and nothing has inserted any since.
    pub emptied: Option<Emptied>,
    /// The last deployment that changed rows.
    pub changed_in: Option<Deployment>,
    /// The deployment that creates it unless it exists, where an earlier use is all that shows that it does.
    pub made_if_missing_in: Option<Deployment>,
    /// The last deployment with a statement that creates it again, and that PostgreSQL refuses for that reason.
    pub created_again_in: Option<Deployment>,
    /// Whether the statement that created it leaves one that exists as it is.
    pub if_not_exists: bool,
    /// The first deployment with a statement that fails if it does not exist, where no statement has shown who creates it.
    pub needed_in: Option<Deployment>,
    /// Whether an INSERT has left the keys of its rows to the database.
    pub generates_keys: bool,
    /// A function whose code inserts rows.
    pub inserted_by: Option<Oid>,
}

/// The removal of all rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emptied {
    /// Number of the transaction, after whose end others may insert rows.
    pub transaction: u32,
    pub by: EmptiedBy,
}

/// Why a table has no rows that others see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EmptiedBy {
    /// TRUNCATE keeps others from inserting until the transaction ends, and leaves no dead rows.
    Truncate,
    /// DELETE does neither.
    Delete,
    /// Code stops with an error if there are rows.
    Nobody,
}

impl Birth {
    /// That of a relation without rows, about which nothing else is known yet.
    pub(crate) fn empty(deployment: Option<Deployment>, transaction: u32) -> Self {
        Self {
            deployment,
            transaction,
            filled: false,
            many: false,
            at_most: None,
            filled_in: None,
            empty_in: None,
            emptied: None,
            changed_in: None,
            made_if_missing_in: None,
            created_again_in: None,
            if_not_exists: false,
            needed_in: None,
            generates_keys: false,
            inserted_by: None,
        }
    }

    /// Whether this deployment created it.
    pub fn is_of(&self, deployment: Option<Deployment>) -> bool {
        deployment.is_some() && self.deployment == deployment
    }

    /// Returns how many rows migrations wrote out, where none put in more than a few.
    pub fn listed_rows(&self) -> Option<u64> {
        self.at_most.filter(|_| self.filled && !self.many)
    }

    /// Returns how many rows migrations wrote out, if they are enough for a lookup table. A row or two may be the first
    /// of many: an administrator among users, a tenant.
    pub fn lookup_rows(&self) -> Option<u64> {
        self.listed_rows().filter(|rows| *rows >= 3)
    }

    /// Returns whether migrations of earlier deployments wrote out rows of it, and none put in more than a few.
    pub fn is_listed_before(&self, deployment: Option<Deployment>) -> bool {
        self.filled && !self.many && self.filled_in.is_some() && self.filled_in != deployment
    }
}

/// A column: a row of `pg_attribute`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Column {
    pub name: SmolStr,
    pub sql_type: SqlType,
    pub not_null: bool,
    pub default: Option<Arc<Expr>>,
    pub identity: Option<IdentityKind>,
    pub generated: Option<Generated>,
    pub collation: Option<SmolStr>,
    pub storage: Option<SmolStr>,
    pub compression: Option<SmolStr>,
    /// Defined here and not only inherited.
    pub is_local: bool,
    /// Number of parents that have it.
    pub inherited_from: u16,
    /// Has a value for old rows in the catalog (`attmissingval`).
    pub has_missing_value: bool,
    /// The deployment that added it to a table that was there.
    pub added_in: Option<Deployment>,
    /// The value that all rows have in it, unless something writes them that the migrations do not show.
    pub held: Option<HeldByAll>,
}

/// The value that all rows of a table have in a column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldByAll {
    pub value: Held,
    /// The deployment that gave it to them.
    pub since: Option<Deployment>,
}

/// The same value for all rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Held {
    /// The column was added without a value.
    Null,
    /// A default when it was added, or what an UPDATE gave to all rows.
    Value(Arc<Expr>),
}

/// GENERATED ALWAYS | BY DEFAULT AS IDENTITY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdentityKind {
    Always,
    ByDefault,
}

/// GENERATED ALWAYS AS (expression).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Generated {
    pub expression: Arc<Expr>,
    pub stored: bool,
}

/// PARTITION BY: key expressions, columns as one-part column expressions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PartitionKey {
    pub strategy: PartitionStrategy,
    pub keys: Arc<Vec<Expr>>,
}

/// A trigger, without those that implement foreign keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trigger {
    pub name: SmolStr,
    /// The function as resolved, or invalid when no statement created it.
    pub function: Oid,
    pub function_name: SmolStr,
    pub timing: TriggerTiming,
    pub for_each_row: bool,
    pub events: TriggerEvents,
    pub columns: Vec<SmolStr>,
    pub firing: Firing,
    /// The constraint of a constraint trigger, which keeps its name when the trigger gets another.
    pub constraint: Option<SmolStr>,
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub condition: Option<Arc<Expr>>,
    /// The arguments of the function.
    pub arguments: Vec<SmolStr>,
    /// REFERENCING OLD or NEW TABLE.
    pub transitions: Vec<TransitionTable>,
    /// Cloned from the parent of a partition.
    pub inherited: bool,
    /// The name in CREATE TRIGGER, or the statement that made it: index of the file and range.
    pub defined_at: (u32, TextRange),
}

/// A row-level security policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Policy {
    pub name: SmolStr,
    pub using: Option<Arc<Expr>>,
    pub check: Option<Arc<Expr>>,
    /// What USING and WITH CHECK read.
    pub using_reads: ConditionReads,
    pub check_reads: ConditionReads,
    pub permissive: bool,
    pub command: SmolStr,
    pub roles: Vec<SmolStr>,
}

/// What the condition of a policy reads, other than the row itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionReads {
    /// Whether it contains a subquery, whatever that reads.
    pub has_subquery: bool,
    /// The relations of its subqueries.
    pub relations: Vec<Oid>,
    /// The functions of the project that it calls.
    pub calls: Vec<ConditionCall>,
}

/// A function that the condition of a policy calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionCall {
    pub function: Oid,
    /// Whether another part of the condition, or rows of a subquery, decide if it is called.
    pub conditional: bool,
}

/// A sequence.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sequence {
    /// The table and column of OWNED BY, serial or identity.
    pub owned_by: Option<(Oid, SmolStr)>,
    /// Implements an identity column.
    pub identity: bool,
    pub sql_type: SqlType,
    pub counting: Counting,
}

/// How a sequence counts: what its statements said; `None` is what PostgreSQL chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    pub start: Option<i64>,
    pub increment: Option<i64>,
    pub minimum: Option<i64>,
    pub maximum: Option<i64>,
    pub cache: Option<i64>,
    pub cycle: bool,
}

impl Counting {
    /// With everything that PostgreSQL chooses for a type.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/sequence.c`, `init_params`.
    #[must_use]
    pub fn complete(&self, sql_type: SqlType) -> Self {
        let (lowest, highest) = match sql_type.oid.0 {
            21 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            23 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let increment = self.increment.unwrap_or(1);
        let minimum = self.minimum.unwrap_or(if increment > 0 { 1 } else { lowest });
        let maximum = self.maximum.unwrap_or(if increment > 0 { highest } else { -1 });
        Self {
            start: Some(self.start.unwrap_or(if increment > 0 { minimum } else { maximum })),
            increment: Some(increment),
            minimum: Some(minimum),
            maximum: Some(maximum),
            cache: Some(self.cache.unwrap_or(1)),
            cycle: self.cycle,
        }
    }
}

/// The query of a view or materialized view, and what it depends on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ViewDefinition {
    pub query: Arc<pgvet_syntax::ast::Query>,
    /// The query as written, with the names of its time.
    pub text: SmolStr,
    /// The schemas in which the session looked names up.
    pub search_path: SearchPath,
    /// Relations that it reads, with the columns that it uses; an empty list of columns means that they are not known.
    pub references: Vec<(Oid, Vec<SmolStr>)>,
    /// User functions and types that it uses.
    pub objects: Vec<Oid>,
    /// A materialized view that has data.
    pub populated: bool,
}

/// A publication.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Publication {
    pub name: SmolStr,
    pub all_tables: bool,
    pub schemas: Vec<SmolStr>,
    /// Tables, with their column lists where given.
    pub tables: OrdMap<Oid, Vec<SmolStr>>,
    /// Whether `publish` names UPDATE, and DELETE. It does if it is not set.
    pub updates: bool,
    pub deletes: bool,
}

impl Column {
    /// Computed when it is read.
    pub fn is_virtual(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| !generated.stored)
    }

    /// A column of its own with nothing but a name and a type.
    pub fn new(name: SmolStr, sql_type: SqlType) -> Self {
        Self {
            name,
            sql_type,
            not_null: false,
            default: None,
            identity: None,
            generated: None,
            collation: None,
            storage: None,
            compression: None,
            is_local: true,
            inherited_from: 0,
            has_missing_value: false,
            added_in: None,
            held: None,
        }
    }
}

impl Relation {
    /// Whether a view uses the privileges of the role that queries it.
    pub fn is_security_invoker(&self) -> bool {
        let is_on = |value: &str| matches!(value, "true" | "on" | "1" | "yes");
        self.options.iter().any(|(name, value)| name == "security_invoker" && is_on(value))
    }

    /// A relation with nothing on it.
    pub fn new(oid: Oid, schema: SmolStr, name: SmolStr, kind: RelationKind, birth: Birth) -> Self {
        Self {
            oid,
            schema,
            name,
            kind,
            persistence: Persistence::Permanent,
            known: true,
            placed_by_path: false,
            unknown_parts: false,
            taken_for_one_row: false,
            birth,
            owner: None,
            columns: Vec::new(),
            constraints: Named::new(),
            indexes: Vec::new(),
            unique_indexes: Vec::new(),
            unattached_indexes: Vec::new(),
            triggers: Named::new(),
            all_triggers_off: false,
            rules: Vec::new(),
            rule_references: Vec::new(),
            policies: Named::new(),
            row_security: false,
            force_row_security: false,
            replica_identity: ReplicaIdentity::Default,
            parents: Vec::new(),
            children: OrdSet::new(),
            bounds: Bounds::default(),
            partition_by: None,
            partition_bound: None,
            tail_emptied: false,
            detach_pending: false,
            access_method: None,
            tablespace: None,
            of_type: None,
            options: Vec::new(),
            owned_sequences: Vec::new(),
            referenced_by: Vector::new(),
            viewed_by: Vec::new(),
            copies: Vec::new(),
            dropped: Vec::new(),
            gone_columns: Vec::new(),
            listed_keys: Memo::default(),
            detail: RelationDetail::None,
        }
    }

    pub fn column_mut(&mut self, name: &str) -> Option<&mut Column> {
        self.columns.iter_mut().find(|column| column.name == name)
    }

    pub fn primary_key(&self) -> Option<&Arc<Constraint>> {
        self.constraints.iter().find(|constraint| constraint.is_primary_key())
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The column of that name, which is likely at this position: few statements move a column.
    pub fn column_near(&self, position: usize, name: &str) -> Option<&Column> {
        self.columns.get(position).filter(|column| column.name == name).or_else(|| self.column(name))
    }

    /// Whether nothing shows that it lacks a column of this name.
    pub fn may_have_column(&self, name: &str) -> bool {
        self.column(name).is_some() || !self.known && self.gone_columns.iter().all(|gone| gone != name)
    }

    pub fn constraint(&self, name: &str) -> Option<&Arc<Constraint>> {
        self.constraints.get(name)
    }

    /// Whether a foreign key of it references that table.
    pub(super) fn references(&self, table: Oid) -> bool {
        let mut keys = self.constraints.iter().filter_map(|constraint| constraint.foreign_key());
        keys.any(|key| key.referenced == table)
    }

    /// A constraint trigger has a constraint, by this name.
    pub fn has_constraint_trigger(&self, name: &str) -> bool {
        self.triggers.iter().any(|trigger| trigger.constraint.as_ref().is_some_and(|own| own == name))
    }

    /// The names of all its constraints, those of constraint triggers included.
    pub fn constraint_names(&self) -> impl Iterator<Item = &SmolStr> {
        let of_triggers = self.triggers.iter().filter_map(|trigger| trigger.constraint.as_ref());
        self.constraints.iter().map(|constraint| &constraint.name).chain(of_triggers)
    }

    /// Whether logical decoding reads it like a catalog.
    pub fn is_user_catalog(&self) -> bool {
        let option = self.options.iter().find(|(name, _)| name == "user_catalog_table");
        option.is_some_and(|(_, value)| matches!(value.as_str(), "true" | "on" | "1" | "yes"))
    }

    pub fn is_partition(&self) -> bool {
        self.partition_bound.is_some()
    }

    pub fn is_temporary(&self) -> bool {
        self.persistence == Persistence::Temporary
    }

    pub fn index(&self) -> Option<&Arc<Index>> {
        match &self.detail {
            RelationDetail::Index(index) => Some(index),
            _ => None,
        }
    }

    pub fn sequence(&self) -> Option<&Sequence> {
        match &self.detail {
            RelationDetail::Sequence(sequence) => Some(sequence),
            _ => None,
        }
    }

    pub fn view(&self) -> Option<&Arc<ViewDefinition>> {
        match &self.detail {
            RelationDetail::View(view) => Some(view),
            _ => None,
        }
    }
}
