//! Whole projects of migration tools, as they lie in a repository.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod frameworks;
mod tools;
mod unread;
