//! The objects of a schema.

use crate::kind::Kind;
use serde::{Deserialize, Serialize};

/// The schema of one database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Where it was read.
    pub source: Source,
    /// The major version of PostgreSQL.
    pub pg_version: u8,
    /// The namespaces, without those of the system.
    pub schemas: Vec<String>,
    pub extensions: Vec<Extension>,
    pub enums: Vec<Enum>,
    pub domains: Vec<Domain>,
    pub composites: Vec<Composite>,
    pub sequences: Vec<Sequence>,
    /// Tables, views, materialized views and foreign tables.
    pub relations: Vec<Relation>,
    pub functions: Vec<Function>,
    pub publications: Vec<Publication>,
    /// Tables, views and sequences that are known to belong to extensions. Only their names are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_relations: Vec<Name>,
    /// Objects and properties that are not in this value, in words: they are compared with nothing.
    pub gaps: Vec<String>,
}

/// Where a schema was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// From migrations, through the model: expressions are as they were written.
    #[default]
    Files,
    /// From a dump, through the model: expressions are as PostgreSQL writes them.
    Dump,
    /// From the catalogs of a server: expressions are as PostgreSQL writes them, with the casts that it adds.
    Database,
}

impl Source {
    /// Whether PostgreSQL has written the expressions.
    pub(crate) fn is_of_server(self) -> bool {
        match self {
            Self::Files => false,
            Self::Dump | Self::Database => true,
        }
    }
}

/// A property that may not be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Known<T> {
    Value(T),
    /// Why it is not known.
    Unknown {
        not_known: String,
    },
}

impl<T: Default> Default for Known<T> {
    fn default() -> Self {
        Self::Value(T::default())
    }
}

impl<T> Known<T> {
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    pub fn unknown(why: &str) -> Self {
        Self::Unknown { not_known: why.to_owned() }
    }
}

/// An expression or a query as SQL.
pub type Code = Known<String>;

/// The schema and name of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name {
    pub schema: String,
    pub name: String,
}

/// An extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    pub name: String,
    pub schema: String,
    /// Whether no statement names the schema, so that the control file of the extension may choose another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed_schema: bool,
}

/// An enum type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enum {
    #[serde(flatten)]
    pub name: Name,
    pub labels: Vec<String>,
}

/// A domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    #[serde(flatten)]
    pub name: Name,
    #[serde(rename = "type")]
    pub base: Known<String>,
    pub not_null: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Code>,
    pub checks: Vec<DomainCheck>,
}

/// A CHECK of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainCheck {
    pub name: String,
    pub expression: Code,
    pub valid: bool,
}

/// A composite type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Composite {
    #[serde(flatten)]
    pub name: Name,
    pub columns: Vec<Column>,
}

/// A sequence, without those of identity columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    #[serde(flatten)]
    pub name: Name,
    #[serde(rename = "type")]
    pub sql_type: String,
    /// START, INCREMENT, MINVALUE, MAXVALUE, CACHE and CYCLE.
    pub options: Known<SequenceOptions>,
    /// The table and the column of OWNED BY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owned_by: Option<(Name, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub privileges: Vec<Privilege>,
}

/// How a sequence counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceOptions {
    pub start: i64,
    pub increment: i64,
    pub minimum: i64,
    pub maximum: i64,
    pub cache: i64,
    pub cycle: bool,
}

/// A table, view, materialized view or foreign table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    #[serde(flatten)]
    pub name: Name,
    pub kind: RelationKind,
    /// Whether a statement that was read creates it; otherwise only what later statements show is known.
    pub created_by_migrations: bool,
    pub unlogged: bool,
    pub columns: Vec<Column>,
    pub constraints: Vec<Constraint>,
    /// The indexes that are not those of constraints.
    pub indexes: Vec<Index>,
    pub triggers: Vec<Trigger>,
    pub policies: Vec<Policy>,
    pub rules: Vec<Rule>,
    pub statistics: Vec<Name>,
    pub row_level_security: bool,
    pub forced_row_level_security: bool,
    pub replica_identity: String,
    /// Storage parameters and options of views.
    pub options: Known<Vec<String>>,
    /// Its parents, by inheritance or as a partition.
    pub parents: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<Code>,
    /// FOR VALUES ... or DEFAULT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_bound: Option<Code>,
    /// The query of a view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Code>,
    pub privileges: Vec<Privilege>,
}

/// The kinds of relation that have columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelationKind {
    #[default]
    #[serde(rename = "table")]
    Table,
    #[serde(rename = "partitioned table")]
    PartitionedTable,
    #[serde(rename = "foreign table")]
    ForeignTable,
    #[serde(rename = "view")]
    View,
    #[serde(rename = "materialized view")]
    MaterializedView,
}

impl RelationKind {
    pub fn noun(self) -> &'static str {
        Kind::from(self).noun()
    }

    pub fn is_view(self) -> bool {
        matches!(self, Self::View | Self::MaterializedView)
    }
}

impl From<RelationKind> for Kind {
    fn from(kind: RelationKind) -> Self {
        match kind {
            RelationKind::Table => Self::Table,
            RelationKind::PartitionedTable => Self::PartitionedTable,
            RelationKind::ForeignTable => Self::ForeignTable,
            RelationKind::View => Self::View,
            RelationKind::MaterializedView => Self::MaterializedView,
        }
    }
}

/// A column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    /// As `format_type` writes it, with the schema of types that are not built in.
    #[serde(rename = "type")]
    pub sql_type: Known<String>,
    pub not_null: bool,
    /// The default, or what a generated column is computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Generation>,
    /// Unless it is the default of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<String>,
    /// Defined here and not only inherited.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub local: bool,
}

fn yes() -> bool {
    true
}

/// GENERATED ... AS IDENTITY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    #[serde(rename = "always")]
    Always,
    #[serde(rename = "by default")]
    ByDefault,
}

/// GENERATED ALWAYS AS (...).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    Stored,
    Virtual,
}

/// A constraint of a table, without NOT NULL, which columns have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    pub name: String,
    pub kind: ConstraintKind,
    /// In the order of the key; empty for CHECK and EXCLUDE.
    pub columns: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub including: Vec<String>,
    /// Whether all rows have been checked.
    pub valid: bool,
    pub enforced: bool,
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub no_inherit: bool,
    /// Defined here and not only inherited.
    pub local: bool,
    #[serde(default)]
    pub nulls_not_distinct: bool,
    /// WITHOUT OVERLAPS, or PERIOD of a foreign key.
    #[serde(default)]
    pub over_period: bool,
    /// The condition of CHECK; the keys and operators of EXCLUDE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<Reference>,
}

/// The kinds of constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConstraintKind {
    #[serde(rename = "primary key")]
    PrimaryKey,
    #[serde(rename = "unique")]
    Unique,
    #[serde(rename = "exclude")]
    Exclude,
    #[serde(rename = "check")]
    Check,
    #[serde(rename = "foreign key")]
    ForeignKey,
}

/// What a foreign key references.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub table: Name,
    pub columns: Vec<String>,
    /// `NO ACTION`, `CASCADE`, `SET NULL (a)` and so on.
    pub on_delete: String,
    pub on_update: String,
    pub match_full: bool,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    pub name: String,
    pub unique: bool,
    pub valid: bool,
    pub method: String,
    pub keys: Vec<Key>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub including: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<Code>,
    #[serde(default)]
    pub nulls_not_distinct: bool,
    /// The index of the parent table that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
}

/// A key of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub expression: Code,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<String>,
    /// Unless it is the default for the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_class: Option<String>,
    #[serde(default)]
    pub descending: bool,
    #[serde(default)]
    pub nulls_first: bool,
}

/// A trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    pub name: String,
    /// BEFORE, AFTER or INSTEAD OF.
    pub timing: String,
    /// INSERT, UPDATE, DELETE and TRUNCATE, in this order.
    pub events: Vec<String>,
    /// The columns of UPDATE OF.
    pub columns: Vec<String>,
    pub for_each_row: bool,
    pub constraint: bool,
    /// Of a constraint trigger.
    #[serde(default)]
    pub deferrable: bool,
    #[serde(default)]
    pub initially_deferred: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Code>,
    /// Its function, without schema if no statement creates it.
    pub function: Name,
    pub arguments: Vec<String>,
    pub transition_tables: Known<Vec<String>>,
    /// `ENABLE`, `DISABLE`, `ENABLE ALWAYS` or `ENABLE REPLICA`.
    pub firing: String,
    /// The trigger of a partition that comes from its parent's.
    pub inherited: bool,
}

/// A policy of row-level security.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub name: String,
    pub permissive: bool,
    /// ALL, SELECT, INSERT, UPDATE or DELETE.
    pub command: String,
    pub roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub using: Option<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Code>,
}

/// A rewrite rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub name: String,
    pub definition: Code,
}

/// A function, procedure or aggregate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    #[serde(flatten)]
    pub name: Name,
    /// The types by which it is called.
    pub inputs: Vec<String>,
    /// `function`, `procedure` or `aggregate`.
    pub kind: String,
    /// All parameters as in CREATE FUNCTION.
    pub parameters: Known<String>,
    /// Empty for procedures.
    pub returns: Known<String>,
    pub language: String,
    /// `immutable`, `stable` or `volatile`.
    pub volatility: String,
    pub strict: bool,
    pub security_definer: bool,
    /// SET, as `name=value`.
    pub settings: Vec<String>,
    pub body: Code,
    pub privileges: Vec<Privilege>,
}

/// A publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    pub name: String,
    pub all_tables: bool,
    pub schemas: Vec<String>,
    pub tables: Vec<Name>,
    pub updates: bool,
    pub deletes: bool,
}

/// A privilege that is neither the owner's nor a default of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Privilege {
    /// `public` stands for PUBLIC.
    pub grantee: String,
    /// In upper case.
    pub privilege: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}
