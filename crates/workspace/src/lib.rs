//! File IO around the engine.
