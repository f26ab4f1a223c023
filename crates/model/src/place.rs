//! Places in a run.

use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};

/// A place in the run: the migration's index and a range in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    pub file: u32,
    pub range: TextRange,
}
