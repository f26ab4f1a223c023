//! What must still hold of a smaller document.

mod difference;
mod error;
mod finding;
mod lock;
mod output;
mod project;
mod server;

pub use difference::DifferenceOracle;
pub use error::WantedError;
pub use finding::FindingOracle;
pub use lock::{LockOracle, WantedLock};
pub use output::WantedOutput;
pub use server::{ServerOracle, Wanted};

use crate::document::Document;
use pgvet_trace::Error;

/// Says whether a document still shows what the user asked about.
pub trait Oracle {
    /// Whether it holds of this document.
    ///
    /// # Errors
    /// If that cannot be known, because the server is gone, for example. The reduction ends with what it has.
    fn holds(&mut self, document: &Document) -> Result<bool, Error>;

    /// Whether the result of a search holds without anything that only makes tries fast. If not, the oracle does without
    /// that from now on, and the search begins again.
    ///
    /// # Errors
    /// See [`Self::holds`].
    fn confirms(&mut self, _: &Document) -> Result<bool, Error> {
        Ok(true)
    }

    /// Values that the original shows, once the oracle was asked about it. An error names the value that is refused.
    fn shown_values(&self) -> Vec<String> {
        Vec::new()
    }
}
