//! The measurements of a trace, prepared for the formats of `pgvet trace`.

use super::{Finding, JsonRange, Report};
use pgvet_model::effect::Evidence;
use pgvet_model::predict::StatementEffects;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::{Position, TextRange};
use pgvet_trace::{
    Exceeded, Extrapolation, LockTrace, MigrationTrace, ModelDifference, Relation, RowTarget, StatementTrace, Trace,
    compare, exceeded, extrapolate,
};
use pgvet_workspace::ProjectFile;
use pgvet_workspace::config::Limit;
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
    /// The findings of the rules about the observed effects.
    pub(crate) findings: Report<'a>,
    /// How many rows tables have in production, where the arguments say it.
    production: &'a [RowTarget],
    /// The file of each migration of the run.
    files: Vec<&'a ProjectFile>,
}

/// A migration that was run, and its file.
#[derive(Debug)]
pub(crate) struct TracedFile<'a> {
    file: &'a ProjectFile,
    pub(crate) trace: &'a MigrationTrace,
}

impl<'a> TraceReport<'a> {
    /// `predicted` runs parallel to [`pgvet_workspace::Project::migrations`].
    pub(crate) fn new(
        trace: &'a Trace,
        predicted: &[Vec<StatementEffects>],
        limits: &[Limit],
        production: &'a [RowTarget],
        findings: Report<'a>,
    ) -> Self {
        let files = findings.project.files_of_migrations();
        let traced = trace.migrations.iter();
        let migrations: Vec<TracedFile<'a>> =
            traced.map(|trace| TracedFile { file: files[trace.migration], trace }).collect();
        let differences = trace.migrations.iter().flat_map(|trace| compare(trace, &predicted[trace.migration]));
        let exceeded = trace.migrations.iter().enumerate().flat_map(|(at, trace)| {
            let mut limits_of = findings.project.config_of(files[trace.migration].database).max_held.clone();
            limits.iter().for_each(|limit| limits_of.set(*limit));
            exceeded(trace, &limits_of).into_iter().map(move |exceeded| (at, exceeded))
        });
        let (differences, exceeded) = (differences.collect(), exceeded.collect());
        Self { trace, migrations, differences, exceeded, findings, production, files }
    }

    /// The file of a difference, and its place there.
    pub(crate) fn place(&self, difference: &ModelDifference) -> (&'a str, JsonRange) {
        let file = self.files[difference.migration];
        (file.named(), json_range(file, difference.range))
    }

    pub(crate) fn failed(&self) -> bool {
        self.trace.migrations.iter().any(|migration| migration.failure().is_some())
    }

    /// How many statements were measured.
    pub(crate) fn statements(&self) -> usize {
        self.trace.migrations.iter().map(|migration| migration.statements.len()).sum()
    }

    /// Extrapolates the time of the statement in production, if that is possible.
    pub(crate) fn extrapolation(&self, traced: &TracedFile<'_>, statement: &StatementTrace) -> Option<Extrapolation> {
        let config = self.findings.project.config_of(traced.file.database);
        let given = |relation: &Relation| {
            let name = relation.to_string();
            self.production.iter().find(|target| target.table == name || target.table == relation.name)
        };
        let configured = |relation: &Relation| config.settings.table(&relation.schema, &relation.name).rows;
        let production =
            |relation: &Relation| given(relation).map(|target| target.rows).or_else(|| configured(relation));
        extrapolate(statement, traced.trace, &production)
    }

    /// The findings about one statement of a migration.
    pub(crate) fn findings_about(&self, traced: &TracedFile<'_>, statement: &StatementTrace) -> Vec<&Finding<'a>> {
        let start = traced.file.on_disk(statement.range).start;
        let all = self.findings_in(traced).into_iter();
        all.filter(|finding| finding.diagnostic.statement.start == start).collect()
    }

    /// The findings of a migration that are about none of the statements that were run.
    pub(crate) fn other_findings(&self, traced: &TracedFile<'_>) -> Vec<&Finding<'a>> {
        let all = self.findings_in(traced).into_iter();
        all.filter(|finding| traced.statement_of(finding).is_none()).collect()
    }

    /// The findings of a migration.
    pub(crate) fn findings_in(&self, traced: &TracedFile<'_>) -> Vec<&Finding<'a>> {
        let in_migration = |finding: &&Finding<'a>| finding.diagnostic.file as usize == traced.trace.migration;
        self.findings.findings.iter().filter(in_migration).collect()
    }
}

impl<'a> TracedFile<'a> {
    /// As the user named it; of a captured migration, its source.
    pub(crate) fn path(&self) -> &'a str {
        self.file.named()
    }

    /// The statements of the file, without what the tool adds.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &'a StatementTrace> + use<'a> {
        self.trace.statements.iter().filter(|statement| !statement.range.is_empty())
    }

    /// The statement of a finding, as it was run.
    pub(crate) fn statement_of(&self, finding: &Finding<'_>) -> Option<&'a StatementTrace> {
        let start = finding.diagnostic.statement.start;
        self.statements().find(|statement| self.file.on_disk(statement.range).start == start)
    }

    pub(crate) fn line(&self, statement: &StatementTrace) -> u32 {
        self.file.positions(self.file.on_disk(statement.range)).0.line
    }

    /// Where an offset of what was run is in the file.
    pub(crate) fn position(&self, offset: u32) -> Position {
        self.file.shown().position(self.file.on_disk(TextRange::at(offset)).start)
    }

    /// The text of a range of the file.
    pub(crate) fn text(&self, range: TextRange) -> &'a str {
        self.file.shown().text.get(range.as_usize()).unwrap_or_default()
    }

    pub(crate) fn range(&self, range: TextRange) -> JsonRange {
        json_range(self.file, range)
    }
}

fn json_range(file: &ProjectFile, range: TextRange) -> JsonRange {
    JsonRange::new(file.shown(), file.on_disk(range))
}

/// How a finding came about, in a word.
pub(crate) fn evidence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Predicted => "predicted",
        Evidence::Observed => "observed",
    }
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

/// Whether somebody may have to wait for a lock, among those of its statement.
pub(crate) fn matters(lock: &LockTrace, all: &[&LockTrace]) -> bool {
    let weakest = if lock.relation.is_index() { LockMode::Share } else { LockMode::ShareUpdateExclusive };
    // A session that cannot use a table does not get to its indexes.
    let closed =
        |table: u32| all.iter().any(|lock| lock.relation.oid == table && lock.mode == LockMode::AccessExclusive);
    lock.mode >= weakest && !lock.relation.table.is_some_and(closed)
}

/// The work of others that the lock blocks; nothing if they cannot see the relation.
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
