//! What migrations say about the number of rows in a table that an earlier deployment made.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Why a table may have few rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FewRows {
    /// None: this transaction has truncated the table.
    Truncated,
    /// None that others see: this transaction has deleted all of them, and the space of the old ones is still read.
    Deleted,
    /// None: this transaction stops if the table has rows.
    FoundEmpty,
    /// This deployment added the column with NOT NULL and no value for old rows, which fails if there are any.
    NoneForNewColumn { column: SmolStr },
    /// This deployment added a foreign key of columns that are never NULL to a new table without rows, which fails if there are
    /// any.
    NoneForNewReference { table: SmolStr },
    /// The schema lists all values of its key.
    ListedKeys { keys: u64 },
    /// This deployment creates the table unless it exists, and only an earlier use shows that it does.
    MadeIfMissing,
    /// This deployment creates the table, which PostgreSQL refuses if it exists.
    CreatedAgain,
    /// Migrations insert its rows one by one, as into a lookup table.
    Listed { rows: u64 },
}
