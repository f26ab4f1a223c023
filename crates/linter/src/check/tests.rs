//! Whole runs.

mod cause;
mod runner;
