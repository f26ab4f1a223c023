//! `cargo xtask nodes`: the node types of PostgreSQL's parser as Rust structs of the same layout.
//!
//! The headers are those of the pinned `pg_query` crate, so the structs are those that its C library was compiled with.

mod header;
mod layout;
mod write;

use header::Headers;
use std::path::{Path, PathBuf};

/// Where the headers lie in the source of `pg_query`.
const HEADERS: &str = "libpg_query/src/postgres/include/nodes";
/// The headers that declare what the grammar makes.
const FILES: &[&str] = &["nodetags.h", "nodes.h", "lockoptions.h", "value.h", "primnodes.h", "parsenodes.h"];

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The unpacked source of the crate `pg_query`, for example in cargo's registry.
    #[arg(value_name = "DIR")]
    source: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), String> {
    let mut headers = Headers::default();
    for file in FILES {
        let path = arguments.source.join(HEADERS).join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        headers.read(&text);
    }
    let target = super::repository().join("crates/parser/src");
    write_formatted(&target.join("nodes.rs"), &write::rust(&headers)?)?;
    write_formatted(&target.join("layout.rs"), &layout::rust(&headers, &arguments.source)?)
}

fn write_formatted(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    let status = std::process::Command::new("rustfmt").args(["--edition", "2024"]).arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("rustfmt: {status}")),
        Err(error) => Err(format!("rustfmt: {error}")),
    }
}
