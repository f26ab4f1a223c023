//! How far the result of a function depends on more than its arguments.

use serde::{Deserialize, Serialize};

/// provolatile, safest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}
