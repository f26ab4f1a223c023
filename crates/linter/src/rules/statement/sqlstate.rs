//! SQLSTATEs of refusals that a rule of their own explains. Source: PostgreSQL 18, src/backend/utils/errcodes.txt.

/// `active_sql_transaction`: the statement cannot run in a transaction block.
pub(crate) const ACTIVE_SQL_TRANSACTION: &str = "25001";

/// `unsafe_new_enum_value_usage`: the transaction has added the enum value that it uses.
pub(crate) const UNSAFE_NEW_ENUM_VALUE_USAGE: &str = "55P04";
