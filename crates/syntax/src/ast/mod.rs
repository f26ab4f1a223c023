//! Our own typed statements, in PostgreSQL's words, with a byte range on every name and keyword that a diagnostic
//! may point at. Ranges are offsets in the file, not in the statement.
//!
//! [`from_pg`] makes them from `pg_query`'s nodes and is the only place that names those.

pub mod from_pg;

mod control;
mod error;
mod expression;
mod lock_mode;
mod name;
mod object;
mod query;
mod rare;
mod stored;
mod table;
mod visit;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

pub use control::*;
pub use error::SyntaxError;
pub use expression::*;
pub use lock_mode::LockMode;
pub use name::*;
pub use object::*;
pub use query::*;
pub use rare::Rare;
pub use table::*;
pub use visit::Part;

/// One SQL statement. Those that bodies of functions consist of can be serialized.
///
/// What is larger than `ALTER TABLE` is in a box: a file may have hundreds of thousands of statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ast {
    // The parts of function bodies come first: numbers of variants count from here in what is written down.
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    // Tables and indexes
    #[serde(skip)]
    AlterTable(AlterTable),
    #[serde(skip)]
    AlterTableMoveAll(AlterTableMoveAll),
    #[serde(skip)]
    CreateTable(Box<CreateTable>),
    #[serde(skip)]
    CreateTableAs(Box<CreateTableAs>),
    #[serde(skip)]
    CreateIndex(Box<CreateIndex>),
    #[serde(skip)]
    CreateStatistics(Box<CreateStatistics>),
    // Other objects
    #[serde(skip)]
    CreateView(Box<CreateView>),
    #[serde(skip)]
    RefreshMaterializedView(RefreshMaterializedView),
    #[serde(skip)]
    CreateSequence(CreateSequence),
    #[serde(skip)]
    AlterSequence(AlterSequence),
    #[serde(skip)]
    CreateType(CreateType),
    #[serde(skip)]
    CreateDomain(Box<CreateDomain>),
    #[serde(skip)]
    AlterDomain(Box<AlterDomain>),
    #[serde(skip)]
    AlterEnum(Box<AlterEnum>),
    #[serde(skip)]
    CreateFunction(Box<CreateFunction>),
    #[serde(skip)]
    AlterFunction(Box<AlterFunction>),
    #[serde(skip)]
    CreateTrigger(Box<CreateTrigger>),
    #[serde(skip)]
    CreateRule(Box<CreateRule>),
    #[serde(skip)]
    CreatePolicy(Box<CreatePolicy>),
    #[serde(skip)]
    AlterPolicy(Box<AlterPolicy>),
    #[serde(skip)]
    CreatePublication(CreatePublication),
    #[serde(skip)]
    AlterPublication(AlterPublication),
    #[serde(skip)]
    CreateSchema(CreateSchema),
    #[serde(skip)]
    CreateExtension(CreateExtension),
    /// CREATE SUBSCRIPTION, CREATE DATABASE and so on: known by keyword only.
    #[serde(skip)]
    CreateOther(Box<CreateOther>),
    #[serde(skip)]
    Drop(Drop),
    #[serde(skip)]
    Rename(Box<Rename>),
    #[serde(skip)]
    SetSchema(Box<SetSchema>),
    #[serde(skip)]
    ChangeOwner(ChangeOwner),
    #[serde(skip)]
    Comment(Box<Comment>),
    #[serde(skip)]
    Grant(Box<Grant>),
    #[serde(skip)]
    GrantRole(GrantRole),
    #[serde(skip)]
    CreateRole(CreateRole),
    #[serde(skip)]
    AlterDefaultPrivileges(Box<AlterDefaultPrivileges>),
    #[serde(skip)]
    DropOwned(RoleList),
    #[serde(skip)]
    ReassignOwned(RoleList),
    // Whole-table commands
    #[serde(skip)]
    Truncate(Truncate),
    #[serde(skip)]
    LockTable(LockTable),
    #[serde(skip)]
    Vacuum(Box<Vacuum>),
    #[serde(skip)]
    Cluster(Box<Cluster>),
    #[serde(skip)]
    Reindex(Box<Reindex>),
    // Queries
    #[serde(skip)]
    Copy(Box<Copy>),
    #[serde(skip)]
    Explain(Explain),
    #[serde(skip)]
    Prepare(Prepare),
    #[serde(skip)]
    Execute(Name),
    #[serde(skip)]
    DeclareCursor(Box<Query>),
    // Control
    #[serde(skip)]
    Transaction(Transaction),
    #[serde(skip)]
    Set(Set),
    #[serde(skip)]
    Discard(Discard),
    /// DEALLOCATE; `None` for ALL.
    #[serde(skip)]
    Deallocate(Option<Name>),
    #[serde(skip)]
    Do(Do),
    #[serde(skip)]
    Call(Box<Call>),
    /// Takes no lock on a user's relation and changes nothing that the model knows, for example CREATE ROLE or LISTEN.
    /// Holds PostgreSQL's name of the node.
    #[serde(skip)]
    Other(SmolStr),
}

impl Ast {
    /// Whether the statement says CONCURRENTLY.
    pub fn is_concurrent(&self) -> bool {
        let detaches = |command: &AlterTableCommand| {
            matches!(command.action, AlterTableAction::DetachPartition { concurrently: true, .. })
        };
        match self {
            Self::CreateIndex(create) => create.concurrently,
            Self::Drop(drop) => drop.concurrently,
            Self::Reindex(reindex) => reindex.concurrently,
            Self::RefreshMaterializedView(refresh) => refresh.concurrently,
            Self::AlterTable(alter) => alter.commands.iter().any(detaches),
            _ => false,
        }
    }
}
