//! What was measured, put together for the formats of `pgvet trace`.

use pgvet_linter::check::{ParsedFile, StatementEffects};
use pgvet_linter::effect::LockMode;
use pgvet_trace::{
    Exceeded, Limit, LockTrace, MigrationTrace, ModelDifference, StatementTrace, Trace, compare, exceeded,
};
use pgvet_workspace::Project;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Everything that a format may show.
#[derive(Debug)]
pub(crate) struct TraceReport<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) migrations: Vec<TracedFile<'a>>,
    pub(crate) differences: Vec<ModelDifference>,
    /// With the index of their migration in `migrations`.
    pub(crate) exceeded: Vec<(usize, Exceeded<'a>)>,
    /// The file of each migration of the run.
    files: Vec<&'a ParsedFile>,
}

/// A migration that was run, and its file.
#[derive(Debug)]
pub(crate) struct TracedFile<'a> {
    pub(crate) file: &'a ParsedFile,
    pub(crate) trace: &'a MigrationTrace,
}

impl<'a> TraceReport<'a> {
    /// `predicted` runs parallel to [`Project::migrations`].
    pub(crate) fn new(
        project: &'a Project,
        trace: &'a Trace,
        predicted: &[Vec<StatementEffects>],
        limits: &[Limit],
    ) -> Self {
        let files: Vec<&ParsedFile> = project.migrations().iter().map(|migration| migration.file).collect();
        let traced = trace.migrations.iter();
        let migrations: Vec<TracedFile<'a>> =
            traced.map(|trace| TracedFile { file: files[trace.migration], trace }).collect();
        let differences = trace.migrations.iter().flat_map(|trace| compare(trace, &predicted[trace.migration]));
        let exceeded = trace.migrations.iter().enumerate();
        let exceeded = exceeded.flat_map(|(at, trace)| exceeded_in(at, trace, limits));
        Self { trace, differences: differences.collect(), exceeded: exceeded.collect(), migrations, files }
    }

    pub(crate) fn file(&self, migration: usize) -> &'a ParsedFile {
        self.files[migration]
    }

    pub(crate) fn failed(&self) -> bool {
        self.trace.migrations.iter().any(|migration| migration.failure().is_some())
    }

    /// How many statements were measured.
    pub(crate) fn statements(&self) -> usize {
        self.trace.migrations.iter().map(|migration| migration.statements.len()).sum()
    }
}

fn exceeded_in<'a>(
    at: usize,
    trace: &'a MigrationTrace,
    limits: &[Limit],
) -> impl Iterator<Item = (usize, Exceeded<'a>)> + use<'a> {
    exceeded(trace, limits).into_iter().map(move |exceeded| (at, exceeded))
}

/// The strongest lock on each relation that was there before the statement, strongest first.
pub(crate) fn strongest_locks(statement: &StatementTrace) -> Vec<&LockTrace> {
    let mut strongest: BTreeMap<u32, &LockTrace> = BTreeMap::new();
    for lock in statement.locks.iter().filter(|lock| lock.existed) {
        let known = strongest.entry(lock.relation.oid).or_insert(lock);
        if lock.mode > known.mode {
            *known = lock;
        }
    }
    let mut locks: Vec<_> = strongest.into_values().collect();
    locks.sort_by_key(|lock| (Reverse(lock.mode), lock.relation.is_index(), lock.relation.to_string()));
    locks
}

/// What others cannot do while the lock is held; nothing where they cannot see the relation.
pub(crate) fn blocks(lock: &LockTrace) -> Vec<&'static str> {
    if !lock.exposed {
        return Vec::new();
    }
    let uses = [
        (LockMode::AccessShare, "reads"),
        (LockMode::RowShare, "row-locks"),
        (LockMode::RowExclusive, "writes"),
        (LockMode::ShareUpdateExclusive, "ddl"),
    ];
    uses.into_iter().filter(|(wanted, _)| wanted.conflicts_with(lock.mode)).map(|(_, name)| name).collect()
}
