//! Tests over whole bodies.
