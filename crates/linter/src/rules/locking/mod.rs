//! Locks that stop other sessions for as long as the work takes.

pub mod attach_partition_scans;
pub mod detach_partition_without_concurrently;
pub mod domain_constraint_scans_tables;
pub mod drop_partition_locks_parent;
pub mod explicit_table_lock;
pub mod index_without_concurrently;
pub mod missing_lock_timeout;
pub mod partition_of_locks_parent;
pub mod refresh_blocks_readers;
pub mod row_level_security_locks;
pub mod table_rewrite;
pub mod timeout_during_concurrent_build;
pub mod timeout_not_in_effect;
pub mod trigger_blocks_writes;
pub mod truncate_existing_table;
