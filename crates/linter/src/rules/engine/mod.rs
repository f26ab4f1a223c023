//! Problems of the text itself.

pub mod statement_will_fail;
pub mod syntax_error;
