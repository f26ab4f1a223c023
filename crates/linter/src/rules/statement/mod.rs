//! What a statement does to its tables, which locks and timeouts are in effect at it, and why PostgreSQL refuses it.

pub(crate) mod altered;
pub(crate) mod locks;
pub(crate) mod sqlstate;
pub(crate) mod timeouts;
