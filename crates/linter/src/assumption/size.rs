//! Tables that are treated as large, although there is evidence for few rows.

use pgvet_model::effect::FewRows;
use std::fmt;

pub(super) fn large_although(f: &mut fmt::Formatter<'_>, table: &str, because: &FewRows) -> fmt::Result {
    match because {
        FewRows::Truncated => {
            write!(f, "assumes that `{table}` is large, although this transaction has truncated it")
        }
        FewRows::Deleted => {
            write!(f, "assumes that `{table}` is large, although this transaction has deleted all of its rows")
        }
        FewRows::FoundEmpty => {
            write!(f, "assumes that `{table}` is large, although this transaction stops if the table has rows")
        }
        FewRows::NoneForNewColumn { column } => {
            write!(
                f,
                "assumes that `{table}` is large, although the migration adds `{column}` as NOT NULL without a value \
                 for existing rows: that fails if the table has rows"
            )
        }
        FewRows::NoneForNewReference { table: referenced } => {
            write!(
                f,
                "assumes that `{table}` is large, although the migration adds a foreign key to the new table \
                 `{referenced}`: that fails if the table has rows"
            )
        }
        FewRows::ListedKeys { keys } => {
            write!(
                f,
                "assumes that `{table}` is large, although a unique index allows at most {keys} rows: constraints or \
                 types list all values of the indexed columns"
            )
        }
        FewRows::CreatedAgain => {
            write!(
                f,
                "assumes that `{table}` already exists and is large, although this migration creates it: PostgreSQL \
                 refuses that if the table exists"
            )
        }
        FewRows::MadeIfMissing => {
            write!(
                f,
                "assumes that `{table}` already exists and is large, although this migration contains CREATE TABLE IF \
                 NOT EXISTS for it"
            )
        }
        FewRows::Listed { rows } => {
            write!(
                f,
                "assumes that `{table}` is large, although it looks like a lookup table: migrations insert {rows} rows"
            )
        }
    }
}
