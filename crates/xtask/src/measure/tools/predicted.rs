//! The model's prediction for a project, in the form in which runs are recorded.

use super::observation::{End, Numbers};
use pgvet_model::catalog::RelationKind;
use pgvet_model::migration::{Direction, Migration, TransactionMode};
use pgvet_model::predict::{StatementEffects, effects};
use pgvet_model::production::Functions;
use pgvet_model::runner::RefusalKind;
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_workspace::config::ConfigSource;
use pgvet_workspace::{Project, Request, Tool};
use std::collections::BTreeSet;
use std::path::Path;

/// A table or an index that a statement creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub file: String,
    pub object: String,
    pub transaction: usize,
    /// In milliseconds.
    pub lock_timeout: u64,
}

/// The predicted observation of a run.
#[derive(Debug)]
pub struct Prediction {
    /// The tools that pgvet recognized.
    pub tools: Vec<Tool>,
    pub steps: Vec<Step>,
    /// The SQLSTATE of the statement that fails; empty where the tool refuses a file.
    pub error: Option<String>,
    pub end: End,
    pub left: Vec<String>,
}

/// All migrations of a project run at once, in a new database.
///
/// # Errors
/// Says what cannot be loaded.
pub fn predict(root: &Path, major: u8) -> Result<Prediction, String> {
    let request = Request { paths: vec![root.to_owned()], config: ConfigSource::None, ..Request::default() };
    let project = Project::load(&request, &|_, _| {}).map_err(|error| format!("{error:?}"))?;
    let paths = project.files_of_migrations();
    let mut migrations = project.migrations();
    for migration in &mut migrations {
        migration.release = Some(0);
        migration.report = true;
    }
    let all = effects(&migrations, PgVersion(major), &Functions::default());
    let mut run = Replayed::default();
    for ((migration, effects), file) in migrations.iter().zip(&all).zip(&paths) {
        if migration.direction == Direction::Down {
            continue;
        }
        let path = file.path.strip_prefix(root).unwrap_or(&file.path).to_string_lossy().into_owned();
        if !run.migration(migration, effects, &path) {
            break;
        }
    }
    let tools: BTreeSet<Tool> = project.files.iter().map(|file| file.layout.tool).collect();
    Ok(run.finish(tools.into_iter().collect()))
}

#[derive(Default)]
struct Replayed {
    steps: Vec<Step>,
    /// The transaction of each step in the model, and whether it was rolled back.
    transactions: Vec<String>,
    undone: BTreeSet<String>,
    error: Option<String>,
    end: Option<End>,
    alone: usize,
}

impl Replayed {
    /// Replays a migration. Returns whether the run continues after it.
    fn migration(&mut self, migration: &Migration<'_>, effects: &[StatementEffects], path: &str) -> bool {
        for refusal in migration.refusals {
            self.end = match refusal.kind {
                RefusalKind::Fails => Some(End::Failure),
                RefusalKind::NeverEnds => Some(End::Never),
                RefusalKind::Skips => continue,
            };
            if migration.runner.one_transaction {
                self.undone.extend(self.transactions.iter().cloned());
            }
            return false;
        }
        for (statement, one) in migration.statements().zip(effects) {
            let transaction = one.block.map_or_else(
                || {
                    self.alone += 1;
                    format!("alone {}", self.alone)
                },
                |number| number.to_string(),
            );
            if let Some(failure) = &one.effects.fails {
                self.undone.insert(transaction);
                self.error = Some(failure.sqlstate.to_owned());
                self.end = Some(End::Failure);
                return false;
            }
            if let Some(Ast::Transaction(Transaction::Rollback { .. })) = statement.ast() {
                self.undone.insert(transaction.clone());
            }
            for created in one.effects.creates.iter().filter(|created| created.name.starts_with("t_")) {
                let kind = match created.kind {
                    RelationKind::Table | RelationKind::PartitionedTable => "table",
                    RelationKind::Index => "index",
                    _ => continue,
                };
                self.steps.push(Step {
                    file: path.to_owned(),
                    object: format!("{kind} {}.{}", created.schema, created.name),
                    transaction: 0,
                    lock_timeout: one.settings.timeout("lock_timeout").unwrap_or_default(),
                });
                self.transactions.push(transaction.clone());
            }
        }
        let misses = migration.runner.misses_its_transaction
            && migration.transaction == TransactionMode::Transaction
            && ends_its_transaction(migration);
        if misses {
            self.end = Some(End::Failure);
            return false;
        }
        true
    }

    fn finish(self, tools: Vec<Tool>) -> Prediction {
        let mut numbers = Numbers::default();
        let mut left: Vec<String> = Vec::new();
        let mut steps = self.steps;
        for (step, transaction) in steps.iter_mut().zip(&self.transactions) {
            step.transaction = numbers.of(transaction);
            if !self.undone.contains(transaction) {
                left.push(step.object.clone());
            }
        }
        left.sort();
        Prediction { tools, steps, error: self.error, end: self.end.unwrap_or(End::Success), left }
    }
}

/// Whether the file ends the transaction that the tool has opened, and opens no other.
fn ends_its_transaction(migration: &Migration<'_>) -> bool {
    let control = migration.statements().rev().find_map(|statement| match statement.ast() {
        Some(Ast::Transaction(control)) => Some(control),
        _ => None,
    });
    matches!(control, Some(Transaction::Commit { .. } | Transaction::Rollback { .. } | Transaction::Prepare))
}
