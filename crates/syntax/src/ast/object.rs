//! Views, sequences, types, functions, triggers, policies and what is done to objects by name.

use super::{
    Constraint, DefElem, DropBehavior, Expr, Literal, Name, ObjectKind, ObjectName, Persistence, Query, TypeName,
};
use crate::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// CREATE [OR REPLACE] VIEW.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    pub name: ObjectName,
    pub persistence: Persistence,
    pub or_replace: bool,
    pub columns: Vec<Name>,
    pub query: Arc<Query>,
    /// The query as written.
    pub text: SmolStr,
    pub options: Vec<DefElem>,
}

/// REFRESH MATERIALIZED VIEW.
#[derive(Debug, Clone, PartialEq)]
pub struct RefreshMaterializedView {
    pub name: ObjectName,
    pub concurrently: bool,
    pub with_data: bool,
    pub keyword: TextRange,
}

/// CREATE SEQUENCE.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSequence {
    pub name: ObjectName,
    pub persistence: Persistence,
    pub if_not_exists: bool,
    pub options: Vec<DefElem>,
}

/// ALTER SEQUENCE with sequence options.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterSequence {
    pub name: ObjectName,
    pub if_exists: bool,
    pub options: Vec<DefElem>,
}

/// CREATE TYPE.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateType {
    pub name: ObjectName,
    pub kind: CreateTypeKind,
}

/// The kinds of CREATE TYPE.
#[derive(Debug, Clone, PartialEq)]
pub enum CreateTypeKind {
    Composite(Vec<super::ColumnDef>),
    Enum(Vec<SmolStr>),
    Range(Vec<DefElem>),
    Base(Vec<DefElem>),
    Shell,
}

/// CREATE DOMAIN.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateDomain {
    pub name: ObjectName,
    pub base: TypeName,
    pub constraints: Vec<Constraint>,
}

/// ALTER DOMAIN.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterDomain {
    pub name: ObjectName,
    pub action: AlterDomainAction,
}

/// The actions of ALTER DOMAIN.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterDomainAction {
    SetDefault(Expr),
    DropDefault,
    SetNotNull,
    DropNotNull,
    AddConstraint(Constraint),
    DropConstraint { name: Name, if_exists: bool, behavior: DropBehavior },
    ValidateConstraint { name: Name },
}

/// ALTER TYPE ... ADD VALUE | RENAME VALUE.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterEnum {
    pub name: ObjectName,
    /// The old label of RENAME VALUE; `None` for ADD VALUE.
    pub renamed: Option<SmolStr>,
    pub value: SmolStr,
    pub if_not_exists: bool,
    /// BEFORE (false) or AFTER (true) which label.
    pub neighbour: Option<(SmolStr, bool)>,
}

/// CREATE [OR REPLACE] FUNCTION | PROCEDURE.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    pub name: ObjectName,
    pub or_replace: bool,
    pub procedure: bool,
    pub parameters: Vec<FunctionParameter>,
    pub returns: Option<TypeName>,
    /// Empty where a function with its body in quotes names none, which PostgreSQL refuses.
    pub language: SmolStr,
    pub body: FunctionBody,
    /// Everything else: volatility, strict, security, set, cost, ...
    pub options: Vec<DefElem>,
}

/// A parameter or, for RETURNS TABLE, an output column.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionParameter {
    pub name: Option<Name>,
    pub mode: ParameterMode,
    pub type_name: TypeName,
    pub default: Option<Expr>,
}

/// IN, OUT, INOUT, VARIADIC, TABLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParameterMode {
    In,
    Out,
    InOut,
    Variadic,
    Table,
}

impl ParameterMode {
    /// Whether it is part of the signature by which the function is called.
    pub fn is_input(self) -> bool {
        matches!(self, Self::In | Self::InOut | Self::Variadic)
    }
}

/// The body of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FunctionBody {
    /// `AS 'text'`: the text after unescaping, and the range of the text between the quotes in the file.
    Source {
        text: SmolStr,
        range: TextRange,
    },
    /// `RETURN expr` or `BEGIN ATOMIC ... END`: parsed with the statement.
    Atomic {
        statements: Vec<super::Ast>,
        /// The statements as text, and their range in the file; empty for RETURN.
        text: SmolStr,
        range: TextRange,
    },
    /// `AS 'library', 'symbol'`.
    Library,
    Missing,
}

/// ALTER FUNCTION | PROCEDURE with options.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterFunction {
    pub signature: Signature,
    pub options: Vec<DefElem>,
}

/// A function named with its argument types, where given.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    pub name: ObjectName,
    pub arguments: Option<Vec<TypeName>>,
}

/// CREATE [OR REPLACE] [CONSTRAINT] TRIGGER.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTrigger {
    pub name: Name,
    pub table: ObjectName,
    pub or_replace: bool,
    pub constraint: bool,
    pub constraint_from: Option<ObjectName>,
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub function: ObjectName,
    pub timing: TriggerTiming,
    pub for_each_row: bool,
    pub events: TriggerEvents,
    pub columns: Vec<Name>,
    pub condition: Option<Expr>,
    /// The arguments of the function.
    pub arguments: Vec<SmolStr>,
    /// REFERENCING OLD or NEW TABLE.
    pub transitions: Vec<TransitionTable>,
    pub keyword: TextRange,
}

/// A table with the old or the new rows of the statement that fires a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionTable {
    pub is_new: bool,
    pub name: SmolStr,
}

/// BEFORE, AFTER, INSTEAD OF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TriggerTiming {
    Before,
    After,
    InsteadOf,
}

/// The events of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TriggerEvents {
    pub insert: bool,
    pub update: bool,
    pub delete: bool,
    pub truncate: bool,
}

/// CREATE [OR REPLACE] RULE.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRule {
    pub name: Name,
    pub table: ObjectName,
    pub or_replace: bool,
    pub event: RuleEvent,
    /// DO INSTEAD.
    pub instead: bool,
    pub condition: Option<Expr>,
    /// Empty for NOTHING.
    pub actions: Vec<super::Ast>,
}

/// The command that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleEvent {
    Select,
    Insert,
    Update,
    Delete,
}

impl RuleEvent {
    /// The word in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// CREATE POLICY.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePolicy {
    pub name: Name,
    pub table: ObjectName,
    /// `all`, `select`, `insert`, `update` or `delete`.
    pub command: SmolStr,
    pub permissive: bool,
    pub roles: Vec<SmolStr>,
    pub using: Option<Expr>,
    pub check: Option<Expr>,
}

/// ALTER POLICY (not RENAME).
#[derive(Debug, Clone, PartialEq)]
pub struct AlterPolicy {
    pub name: Name,
    pub table: ObjectName,
    /// TO; empty where they stay.
    pub roles: Vec<SmolStr>,
    pub using: Option<Expr>,
    pub check: Option<Expr>,
}

/// CREATE PUBLICATION.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePublication {
    pub name: Name,
    pub all_tables: bool,
    pub objects: Vec<PublicationObject>,
    pub options: Vec<DefElem>,
}

/// ALTER PUBLICATION ... ADD | SET | DROP, or SET (options) with no objects.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterPublication {
    pub name: Name,
    pub action: PublicationAction,
    pub objects: Vec<PublicationObject>,
    pub options: Vec<DefElem>,
}

/// ADD, SET or DROP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicationAction {
    Add,
    Set,
    Drop,
}

/// The objects of a publication.
#[derive(Debug, Clone, PartialEq)]
pub enum PublicationObject {
    Table {
        table: ObjectName,
        only: bool,
        columns: Vec<Name>,
        filter: Option<Expr>,
    },
    /// TABLES IN SCHEMA; `None` for `CURRENT_SCHEMA`.
    Schema(Option<Name>),
}

/// CREATE SCHEMA, with the statements inside.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSchema {
    /// Absent for CREATE SCHEMA AUTHORIZATION role, which names it after the role.
    pub name: Option<Name>,
    pub authorization: Option<SmolStr>,
    pub if_not_exists: bool,
    pub elements: Vec<super::Ast>,
}

/// CREATE EXTENSION.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateExtension {
    pub name: Name,
    pub if_not_exists: bool,
    pub schema: Option<SmolStr>,
    pub cascade: bool,
}

/// An object that the model knows by kind and name only, or a command that PostgreSQL refuses in a transaction block.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateOther {
    /// PostgreSQL's command tag, for example `CREATE DATABASE`.
    pub tag: &'static str,
    pub name: Option<ObjectName>,
    pub options: Vec<DefElem>,
}

/// DROP of any kind of object.
#[derive(Debug, Clone, PartialEq)]
pub struct Drop {
    pub kind: ObjectKind,
    pub objects: Vec<DropObject>,
    pub if_exists: bool,
    pub behavior: DropBehavior,
    /// DROP INDEX CONCURRENTLY.
    pub concurrently: bool,
    /// `DROP TABLE`, `DROP INDEX`, ...
    pub keyword: TextRange,
}

/// One object of DROP.
#[derive(Debug, Clone, PartialEq)]
pub struct DropObject {
    pub name: ObjectName,
    /// The table of a trigger, rule or policy.
    pub on: Option<ObjectName>,
    /// Argument types of a routine, where given.
    pub arguments: Option<Vec<TypeName>>,
}

/// ALTER ... RENAME.
#[derive(Debug, Clone, PartialEq)]
pub struct Rename {
    /// The kind of the renamed object.
    pub kind: ObjectKind,
    /// For a column, constraint or attribute: the kind of the object that has it, as written.
    pub relation_kind: ObjectKind,
    /// The object itself, or the relation (type, domain) that has the column, constraint, trigger, rule or policy.
    pub object: ObjectName,
    /// The column, constraint, attribute, trigger, rule or policy.
    pub sub_name: Option<Name>,
    pub arguments: Option<Vec<TypeName>>,
    pub new_name: Name,
    pub only: bool,
    pub if_exists: bool,
    /// RENAME ATTRIBUTE with CASCADE.
    pub cascade: bool,
    /// The words RENAME ... TO, or RENAME alone.
    pub keyword: TextRange,
}

/// ALTER ... SET SCHEMA.
#[derive(Debug, Clone, PartialEq)]
pub struct SetSchema {
    pub kind: ObjectKind,
    pub object: ObjectName,
    pub arguments: Option<Vec<TypeName>>,
    pub new_schema: Name,
    pub if_exists: bool,
    pub keyword: TextRange,
}

/// ALTER ... OWNER TO of things that are no relations.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeOwner {
    pub kind: ObjectKind,
    pub object: ObjectName,
}

/// COMMENT ON.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    pub kind: ObjectKind,
    /// The object, or the relation of a column, constraint, trigger, rule or policy.
    pub object: ObjectName,
    pub sub_name: Option<Name>,
    /// Those of a routine, where they are written.
    pub arguments: Option<Vec<TypeName>>,
    pub text: Option<SmolStr>,
}

/// GRANT and REVOKE of membership in roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRole {
    pub grant: bool,
    /// The roles of which others become members.
    pub roles: Vec<SmolStr>,
    pub members: Vec<SmolStr>,
    /// WITH INHERIT: whether members have the privileges of the roles without SET ROLE.
    pub inherit: Option<bool>,
    /// REVOKE ... OPTION FOR, which leaves the membership.
    pub option_only: bool,
}

/// CREATE ROLE, USER or GROUP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateRole {
    pub name: SmolStr,
    /// Whether the role has the privileges of its roles without SET ROLE.
    pub inherit: bool,
    /// IN ROLE.
    pub member_of: Vec<SmolStr>,
    /// ROLE and ADMIN.
    pub members: Vec<SmolStr>,
}

/// GRANT and REVOKE of privileges.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub grant: bool,
    /// WITH GRANT OPTION, or REVOKE GRANT OPTION FOR, which leaves the privilege.
    pub grant_option: bool,
    pub kind: ObjectKind,
    pub objects: Vec<ObjectName>,
    /// The same with their arguments, where they are routines.
    pub routines: Vec<Signature>,
    /// ON ALL TABLES (...) IN SCHEMA: then `objects` are the schemas.
    pub all_in_schema: bool,
    /// Empty means ALL.
    pub privileges: Vec<NamedPrivilege>,
    /// `public` stands for PUBLIC.
    pub grantees: Vec<SmolStr>,
    pub keyword: TextRange,
}

/// A privilege as GRANT writes it: `SELECT`, `UPDATE (a, b)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPrivilege {
    /// `None` is ALL, of columns.
    pub name: Option<SmolStr>,
    /// Empty means the whole object.
    pub columns: Vec<SmolStr>,
}

/// The objects to which default privileges apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FutureObjects {
    /// FOR ROLE: the roles that create them; empty means the current role.
    pub creators: Vec<SmolStr>,
    /// IN SCHEMA; empty means everywhere.
    pub schemas: Vec<SmolStr>,
}

/// ALTER DEFAULT PRIVILEGES: what later objects of a kind will have.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterDefaultPrivileges {
    pub future: FutureObjects,
    /// GRANT or REVOKE, without objects.
    pub grant: Grant,
}

/// DROP OWNED BY, REASSIGN OWNED BY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleList {
    pub roles: Vec<SmolStr>,
    pub behavior: DropBehavior,
}

/// A literal that names an object, as in `nextval('s')`.
pub fn string_literal(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        super::ExprKind::Literal(Literal::String(text)) => Some(text),
        super::ExprKind::Cast { operand, .. } => string_literal(operand),
        _ => None,
    }
}
