//! Rules of one category.

pub mod autovacuum_disabled;
pub mod freeze_age_raised;
pub mod large_object_orphaned;
pub mod large_object_use;
pub mod savepoint_after_row_lock;
pub mod savepoint_not_released;
pub mod subtransaction_overflow;
pub mod subtransaction_per_row;
pub mod table_created_on_demand;
pub mod temporary_table_in_hot_path;
