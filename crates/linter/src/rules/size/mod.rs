//! Whether a table has few rows, as far as only a statement on it shows that.

pub(crate) mod one_row;
