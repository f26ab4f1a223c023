//! Locks that stop other sessions for as long as the work takes.

pub mod attach_partition_scans;
pub mod column_default_rewrites_table;
pub mod constraint_builds_index;
pub mod constraint_scans_table;
pub mod detach_partition_without_concurrently;
pub mod domain_constraint_scans_tables;
pub mod drop_index_without_concurrently;
pub mod drop_partition_locks_parent;
pub mod explicit_table_lock;
pub mod foreign_key_column_type_change;
pub mod foreign_key_locks_other_table;
pub mod foreign_key_without_not_valid;
pub mod index_without_concurrently;
pub mod missing_lock_timeout;
pub mod partition_of_locks_parent;
pub mod refresh_blocks_readers;
pub mod reindex_without_concurrently;
pub mod set_not_null_scans_table;
pub mod table_rewrite;
pub mod timeout_during_concurrent_build;
pub mod timeout_not_in_effect;
pub mod trigger_blocks_writes;
pub mod truncate_existing_table;
pub mod type_change_rewrites_table;
pub mod validate_with_stronger_subcommand;

mod partition_bound;
mod unseen_partitions;

use crate::rule::RuleContext;
use pgvet_model::effect::RelationName;
use pgvet_model::session::HeldLock;
use pgvet_syntax::ast::LockMode;

/// Whether a lock at least as strong is held already, so that a statement waits for nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Not,
    /// If the program that runs the file opens a transaction, which is only assumed.
    IfInTransaction,
    Surely,
}

/// Whether earlier statements of the transaction, or of the code that the same statement runs, hold one of these locks.
fn held(context: &RuleContext<'_>, table: &RelationName, mode: LockMode) -> Held {
    let locks = context.session.block.iter().flat_map(|block| block.locks.of(table.oid));
    let mut locks = locks.filter(|lock| lock.mode >= mode).peekable();
    if locks.peek().is_none() {
        return Held::Not;
    }
    let is_of_same_statement =
        |lock: &HeldLock| lock.place.file == context.file && context.outer().contains(lock.range);
    let surely = context.is_surely_in_block() || context.code.is_some() && locks.any(is_of_same_statement);
    if surely { Held::Surely } else { Held::IfInTransaction }
}
