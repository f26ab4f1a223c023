//! The program as its users run it.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod action;
mod bad_input;
mod cache;
mod capture;
mod capture_commands;
mod capture_on;
mod capture_tls;
mod changes;
mod cli;
mod configuration;
mod connecting;
mod crash;
mod daily;
mod demo;
mod faults;
mod fix;
mod formats;
mod history;
mod inert;
mod lsp;
mod mcp;
mod patterns;
mod pre_commit;
mod precheck;
mod reduce;
mod rewrite;
mod rewrite_matrix;
mod roundtrip;
mod schemas;
mod supply_chain;
mod support;
mod trace;
mod trace_deadlock;
mod trace_page;
mod walk;
