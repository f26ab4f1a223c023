//! Changes of rows.

pub mod bulk_change_in_loop;
mod companion;
pub mod exception_driven_upsert;
mod existence_check;
pub mod foreign_keys_not_checked;
mod fresh;
pub(crate) mod handled;
pub mod insert_may_violate_unique;
mod inserted;
mod loaded;
pub mod looks_like_rename;
pub mod missing_analyze;
mod new_parent;
mod one_row;
pub mod rows_may_violate_constraint;
pub mod select_then_insert;
pub mod system_catalog_write;
pub mod toast_compression_not_applied;
pub mod trigger_left_disabled;
pub mod unbounded_row_lock;
pub mod unbounded_update_or_delete;
mod unique;
pub mod writes_lost_after_copy;
