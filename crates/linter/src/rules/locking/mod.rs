//! Locks that stop other sessions for as long as the work takes.

pub mod column_default_rewrites_table;
pub mod constraint_builds_index;
pub mod constraint_scans_table;
pub mod drop_index_without_concurrently;
pub mod foreign_key_column_type_change;
pub mod foreign_key_locks_other_table;
pub mod foreign_key_without_not_valid;
pub mod index_without_concurrently;
pub mod reindex_without_concurrently;
pub mod set_not_null_scans_table;
pub mod type_change_rewrites_table;
pub mod validate_with_stronger_subcommand;
