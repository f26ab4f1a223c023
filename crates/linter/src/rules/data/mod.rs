//! Changes of rows.

pub mod backfill_missing;
pub mod bulk_change_in_loop;
pub mod exception_driven_upsert;
pub mod foreign_keys_not_checked;
pub mod insert_may_violate_unique;
mod loaded;
pub mod looks_like_rename;
pub mod missing_analyze;
pub mod referenced_value_deleted;
pub mod rows_may_violate_constraint;
pub mod select_then_insert;
pub mod sequence_behind_keys;
pub mod statement_per_row;
pub mod system_catalog_write;
pub mod toast_compression_not_applied;
pub mod trigger_left_disabled;
pub mod unbounded_row_lock;
pub mod unbounded_update_or_delete;
pub mod uncopied_rows_deleted;
pub mod update_collides_with_itself;
pub mod writes_lost_after_copy;
