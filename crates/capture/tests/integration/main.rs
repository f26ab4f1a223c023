//! Recordings of real frameworks, and the proxy before a real server.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod plain_files;
mod proxy;
mod samples;
mod support;
