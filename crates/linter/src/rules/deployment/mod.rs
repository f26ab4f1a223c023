//! What else the same migration or deployment does: whether a change lasts, and who still uses what it changes.

pub(crate) mod dropped_column;
pub(crate) mod dropped_later;
pub(crate) mod dropped_relation;
pub(crate) mod dropped_together;
pub(crate) mod lasting;
pub(crate) mod names;
pub(crate) mod other_statements;
pub(crate) mod phases;
pub(crate) mod queries;
pub(crate) mod retyped;
pub(crate) mod users;
