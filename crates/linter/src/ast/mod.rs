//! Our own typed statements, in PostgreSQL's words, with a byte range on every name and keyword that a diagnostic
//! may point at. Ranges are offsets in the file, not in the statement.
//!
//! [`from_pg`] makes them from `pg_query`'s nodes and is the only place that names those.

pub mod from_pg;

mod control;
mod expression;
mod name;
mod object;
mod query;
mod table;
mod visit;

pub use control::*;
pub use expression::*;
pub use name::*;
pub use object::*;
pub use query::*;
pub use table::*;
pub use visit::Part;

/// One SQL statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Ast {
    // Tables and indexes
    AlterTable(AlterTable),
    AlterTableMoveAll(AlterTableMoveAll),
    CreateTable(CreateTable),
    CreateTableAs(CreateTableAs),
    CreateIndex(CreateIndex),
    CreateStatistics(CreateStatistics),
    // Other objects
    CreateView(CreateView),
    RefreshMaterializedView(RefreshMaterializedView),
    CreateSequence(CreateSequence),
    AlterSequence(AlterSequence),
    CreateType(CreateType),
    CreateDomain(CreateDomain),
    AlterDomain(AlterDomain),
    AlterEnum(AlterEnum),
    CreateFunction(CreateFunction),
    AlterFunction(AlterFunction),
    CreateTrigger(CreateTrigger),
    CreateRule(CreateRule),
    CreatePolicy(CreatePolicy),
    AlterPolicy(AlterPolicy),
    CreatePublication(CreatePublication),
    AlterPublication(AlterPublication),
    CreateSchema(CreateSchema),
    CreateExtension(CreateExtension),
    /// CREATE SUBSCRIPTION, CREATE DATABASE and the like: known by keyword only.
    CreateOther(CreateOther),
    Drop(Drop),
    Rename(Rename),
    SetSchema(SetSchema),
    ChangeOwner(ChangeOwner),
    Comment(Comment),
    Grant(Grant),
    AlterDefaultPrivileges(AlterDefaultPrivileges),
    DropOwned(RoleList),
    ReassignOwned(RoleList),
    // Whole-table commands
    Truncate(Truncate),
    LockTable(LockTable),
    Vacuum(Vacuum),
    Cluster(Cluster),
    Reindex(Reindex),
    // Queries
    Select(Query),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Merge(Merge),
    Copy(Copy),
    Explain(Explain),
    Prepare(Prepare),
    Execute(Name),
    DeclareCursor(Query),
    // Control
    Transaction(Transaction),
    Set(Set),
    Discard(Discard),
    Do(Do),
    Call(Call),
    /// Takes no lock on a user's relation and changes nothing that the model knows, for example CREATE ROLE or LISTEN.
    /// Holds PostgreSQL's name of the node.
    Other(&'static str),
}
