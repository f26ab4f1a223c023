//! Which migrations are released together.

use serde::{Deserialize, Serialize};

/// Migrations that are released together. Code that uses what one of them makes is not running before all of them are.
/// Those of one kind are in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Deployment {
    /// Nothing says with which others the migration at this index is released.
    Alone(u32),
    /// Number of the release, see [`Migration::release`](crate::migration::Migration::release).
    Release(u32),
}
