//! Properties of every text, one file for each target.

mod config;
mod convert;
mod edits;
mod fixes;
mod plpgsql;
mod replay;
mod split;
mod suppressions;
mod tree;

pub use config::config;
pub use convert::convert;
pub use edits::edits;
pub use fixes::fixes;
pub use plpgsql::plpgsql;
pub use replay::replay;
pub use split::split;
pub use suppressions::suppressions;
pub use tree::tree;
