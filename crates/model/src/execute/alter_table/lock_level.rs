//! The lock that ALTER TABLE takes before it looks at anything.
//!
//! Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `AlterTableGetLockLevel`, and
//! `src/backend/access/common/reloptions.c` for storage parameters.

use crate::version::Target;
use pgvet_syntax::ast::{AlterTable, AlterTableAction, ConstraintKind, DefElem, LockMode};

/// The strongest lock that any of the commands needs.
pub(super) fn lock_level(statement: &AlterTable, target: &Target) -> LockMode {
    let modes = statement.commands.iter().map(|command| command_lock_level(&command.action, target));
    modes.max().unwrap_or(LockMode::AccessExclusive)
}

/// The lock that one command needs.
pub fn command_lock_level(action: &AlterTableAction, target: &Target) -> LockMode {
    use AlterTableAction as Action;
    match action {
        Action::SetStatistics { .. }
        | Action::SetColumnOptions { .. }
        | Action::ClusterOn { .. }
        | Action::SetWithoutCluster
        | Action::ValidateConstraint { .. } => LockMode::ShareUpdateExclusive,
        // PostgreSQL 12 release notes, section "Partitioning".
        Action::AttachPartition { .. } if target.at_least(12) => LockMode::ShareUpdateExclusive,
        Action::DetachPartition { concurrently, finalize, .. } if *concurrently || *finalize => {
            LockMode::ShareUpdateExclusive
        }
        Action::Trigger { .. } => LockMode::ShareRowExclusive,
        Action::AddConstraint(constraint) => match constraint.kind {
            ConstraintKind::ForeignKey(_) => LockMode::ShareRowExclusive,
            _ => LockMode::AccessExclusive,
        },
        Action::SetOptions(options) | Action::ResetOptions(options) => {
            let modes = options.iter().map(option_lock_level);
            modes.max().unwrap_or(LockMode::AccessExclusive)
        }
        _ => LockMode::AccessExclusive,
    }
}

/// Most storage parameters can change while the table is written; these are read under the stronger lock.
fn option_lock_level(option: &DefElem) -> LockMode {
    if option.namespace.as_deref() == Some("toast") {
        return LockMode::ShareUpdateExclusive;
    }
    match option.name.as_str() {
        "user_catalog_table"
        | "security_barrier"
        | "security_invoker"
        | "check_option"
        | "fastupdate"
        | "gin_pending_list_limit"
        | "buffering"
        | "pages_per_range"
        | "autosummarize"
        | "length" => LockMode::AccessExclusive,
        name if name.starts_with("col") && name[3..].bytes().all(|byte| byte.is_ascii_digit()) => {
            LockMode::AccessExclusive
        }
        _ => LockMode::ShareUpdateExclusive,
    }
}
