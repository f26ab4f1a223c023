//! Causes of dead rows in tables, indexes and catalogs, and of overflowing transaction caches.

pub mod autovacuum_disabled;
mod catalog_rows;
pub mod freeze_age_raised;
pub mod large_object_orphaned;
pub mod large_object_use;
mod large_objects;
pub mod savepoint_after_row_lock;
pub mod savepoint_not_released;
mod storage_options;
pub mod subtransaction_overflow;
pub mod subtransaction_per_row;
mod subtransactions;
pub mod table_created_on_demand;
pub mod temporary_table_in_hot_path;
mod transactions;
