//! Whether a row that is inserted can meet another one with the same key, and what the code does then.

pub(crate) mod companion;
pub(crate) mod existence_check;
pub(crate) mod fresh;
pub(crate) mod handled;
pub(crate) mod inserted;
pub(crate) mod new_parent;
pub(crate) mod unique;
