//! Functions, procedures and DO blocks as rules see them: the code, read once with exact ranges in the file that holds
//! it, what surrounds each statement, who calls it, and whether that is often.

mod bound;
mod calls;
mod creations;
mod evaluation;
mod hotness;
mod made;
mod naming;
mod outline;
mod reach;
mod read;
mod steps;
pub mod subtransactions;
mod trial;
mod variables;
mod words;

#[cfg(test)]
mod tests;

pub use bound::Bound;
pub use calls::{CallSite, CallerKind, Routines, TriggerUse};
pub use creations::Creation;
pub use hotness::grouped;
pub use hotness::{Hotness, Reason, ReasonKind};
pub use outline::{Outline, may_make};
pub use pgvet_syntax::plpgsql::texts::SqlRole;
pub(crate) use reach::of_definitions as reaches_of_definitions;
pub use read::{Code, Dynamic, Routine, RoutineReader};
pub use steps::{Around, Node, Sql, Step};
pub use trial::{Ending, Endings, Trial};
pub use variables::{Variable, VariableKind};
pub use words::{AllWords, Words, words_of};
