//! The arguments of `pgvet reduce`.

use super::input::{InputArgs, OUTPUT};
use super::names;
use clap::Args;
use pgvet_reduce::{WantedError, WantedLock, WantedOutput};
use pgvet_workspace::config::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// Values of --difference.
const DIFFERENCES: [&str; 9] =
    ["any", "lock", "rewrite", "scan", "index build", "truncate", "drop", "catalog rows", "error"];

/// Shrinks migrations or a query as far as possible while they still show a finding, a lock, an error
/// or the output of a query.
///
/// pgvet removes files, statements and parts of statements, and replaces expressions by simpler ones. It writes the
/// reduced SQL to standard output, and a summary to standard error. Ctrl-C ends the search and writes the smallest SQL
/// so far.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 reduced, 1 ended early (the smallest SQL so far was written), \
    2 there is nothing to reduce, or something could not be read or run.")]
#[group(id = "shown", required = true, multiple = false, args = ["finding", "error", "lock", "difference", "output_differs"])]
pub(crate) struct ReduceArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Keep a finding of this rule.
    #[arg(long, value_name = "RULE", value_parser = names::rule_or_category(), hide_possible_values = true)]
    pub(crate) finding: Option<String>,
    /// Keep the error with this SQLSTATE, or with this text in its message. The SQL is run on a temporary server.
    #[arg(long, value_name = "SQLSTATE|TEXT", value_parser = error)]
    pub(crate) error: Option<WantedError>,
    /// Keep a lock, such as 'ACCESS EXCLUSIVE on t' or 'SHARE on app.t'.
    #[arg(long, value_name = "LOCK", value_parser = WantedLock::parse)]
    pub(crate) lock: Option<WantedLock>,
    /// Keep a statement that behaves differently on a temporary server than pgvet predicts. WHAT limits this to one
    /// kind of difference: `lock`, `rewrite`, `scan`, `index build`, `truncate`, `drop`, `catalog rows` or `error`.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "any",
        value_parser = DIFFERENCES)]
    pub(crate) difference: Option<String>,
    /// Keep the output of the last query, if it differs from what you expect: its rows (`result`), or a node of its
    /// plan, such as 'plan:Seq Scan on orders'. The SQL is run on a temporary server.
    #[arg(long, value_name = "OUTPUT", num_args = 0..=1, require_equals = true, default_missing_value = "result",
        value_parser = WantedOutput::parse)]
    pub(crate) output_differs: Option<WantedOutput>,
    /// End the search after this time, such as `30s`, with the smallest SQL so far.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    pub(crate) time_limit: Duration,
    /// With a temporary server: the folder with `initdb` and `postgres` [default: searched for].
    #[arg(long, value_name = "DIR", conflicts_with_all = ["finding", "lock"])]
    pub(crate) pg_bin: Option<PathBuf>,
    /// With a temporary server: cancel statements that take longer than this. A cancelled statement is treated as one
    /// that does not show the problem.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    pub(crate) statement_timeout: Duration,
    /// Write the SQL to this file.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
}

#[expect(clippy::unnecessary_wraps, reason = "clap takes parsers that can fail")]
fn error(text: &str) -> Result<WantedError, String> {
    Ok(WantedError::parse(text))
}
