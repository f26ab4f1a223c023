//! Problems of the text itself.

pub mod ambiguous_text;
pub mod internal_error;
pub mod not_analyzed;
pub mod statement_will_fail;
pub mod suppression_without_reason;
pub mod syntax_error;
pub mod table_never_created;
pub mod unchecked_psql_command;
pub mod unknown_suppression;
pub mod unsupported_encoding;
pub mod unused_suppression;
