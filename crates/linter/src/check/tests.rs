//! Whole runs.

mod runner;
