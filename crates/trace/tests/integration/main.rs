//! What needs a server: clones, traces, snapshots, and what PostgreSQL says of the claims of rules.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod cached_plans;
mod datadir;
mod dblab;
mod deadlocks;
mod deployed_code;
mod hostile;
mod progress;
mod providers;
mod rewrite;
mod row_demands;
mod seeds;
mod server;
mod snapshot;
mod subscriptions;
mod support;
mod tls;
mod unique_inserts;
