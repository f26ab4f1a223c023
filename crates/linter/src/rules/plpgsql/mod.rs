//! Code in the database.

pub mod ambiguous_column_name;
mod changed;
pub mod ddl_in_function;
pub mod dynamic_ddl_on_unknown_object;
pub mod dynamic_sql_injection;
mod names;
mod records;
mod scope;
pub mod swallowed_exception;
mod taint;
mod target;
pub mod trigger_refers_to_deleted_row;
pub mod trigger_variable_mismatch;
pub mod unknown_column_or_table;
