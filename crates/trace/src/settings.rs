//! How a trace is run.

use crate::resources::Limits;
use crate::rows::RowTarget;
use crate::script::Variables;
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::time::Duration;

/// How migrations are run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub variables: Variables,
    /// Longer statements are cancelled.
    pub statement_timeout: Option<Duration>,
    /// Resource limits of the whole run.
    pub limits: Limits,
    /// How often everything is run, each time on a new clone; 0 is 1.
    pub repeat: usize,
    /// Go on after a statement that is refused, as psql does.
    pub keep_going: bool,
    /// Tables to fill before the first measured migration.
    pub rows: Vec<RowTarget>,
    /// Tables by migration that sessions of ours read and write meanwhile, to see how long they wait: `schema.name`.
    pub canaries: BTreeMap<usize, Vec<String>>,
    /// How long a session reads those tables when the migration begins.
    pub reader: Option<Duration>,
    /// The statements that clients run meanwhile, and for how long.
    pub workload: Option<Workload>,
    /// Tell how far long statements have come.
    pub progress: bool,
    /// Only what statements do is wanted: sizes of tables are not measured, and statistics not waited for at the end.
    pub effects_only: bool,
    /// Run also what changes more of a shared server than one database.
    pub allow_server_changes: bool,
    /// SQL that is run on every new clone; one text is one query.
    pub setup: Vec<String>,
}
