//! Schemas that cause problems later, as they are after the last migration.

mod columns;
mod full_length;

pub mod char_type;
pub mod default_violates_check;
pub mod float_money;
pub mod identifier_too_long;
pub mod int4_primary_key;
pub mod json_column;
pub mod missing_primary_key;
pub mod mixed_type_comparison;
pub mod money_type;
pub mod redundant_index;
pub mod serial_column;
pub mod set_null_on_not_null_column;
pub mod timestamp_without_time_zone;
pub mod timestamptz_to_date_cast;
pub mod unindexed_foreign_key;
pub mod unlogged_table;
pub mod varchar_limit;
pub mod volatile_check_constraint;
