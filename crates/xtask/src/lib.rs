//! The parts of the project's tasks that its tests use too.

pub mod measure;
