//! Locks that stop other sessions for as long as the work takes.

pub mod index_without_concurrently;
