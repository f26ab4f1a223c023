//! Changes of rows.

pub mod unbounded_update_or_delete;
