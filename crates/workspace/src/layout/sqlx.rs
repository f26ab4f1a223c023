//! sqlx: whether it knows the comment that takes a migration out of its transaction.

use super::header::SQLX_NO_TRANSACTION;
use super::{Layout, Tool, crate_version};
use crate::nearby::Nearby;
use pgvet_model::migration::TransactionMode;
use std::path::Path;

/// The first version that reads `-- no-transaction`. Source: sqlx, CHANGELOG.md, 0.8.0, pull request 3181.
const READS_COMMENT: (u32, u32) = (0, 8);

/// Whether the project of a migration uses a version of sqlx that does not read the comment.
pub(super) fn ignores_comment(path: &Path, nearby: &Nearby) -> bool {
    crate_version::of(path, "sqlx", nearby).is_some_and(|version| version < READS_COMMENT)
}

/// Whether the library of the project opens a transaction although the migration has the comment. sqlx-cli, which may run
/// it instead, can be newer.
pub(super) fn has_doubtful_transaction(layout: &Layout, text: &str) -> bool {
    layout.tool == Tool::Sqlx
        && text.starts_with(SQLX_NO_TRANSACTION)
        && layout.sections.iter().any(|section| section.transaction == TransactionMode::Transaction)
}
