//! The order in which transactions lock, and whether two of them can deadlock.

pub(super) mod application;
pub(super) mod cycle;
mod decisions;
mod doubts;
pub(super) mod ending;
pub(super) mod migration;
mod reach;
pub(super) mod request;
mod usage;
mod words;
