//! Where the session of a migration can end so that something different is left.

use crate::script::{Script, Step, StepKind};
use pgvet_model::runner::Recording;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::SourceFile;
use serde::Serialize;

/// A moment at which a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// All statements of a transaction have run, and it is not committed.
    BeforeCommit,
    /// The statement is complete, and others follow.
    AfterStatement,
    /// The statement runs in several transactions, and the first of them is committed.
    DuringStatement,
    /// Every statement is complete, and the tool has not recorded the migration.
    BeforeRecord,
}

/// A point in a migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Point {
    pub moment: Moment,
    /// The line of the statement, counted from 1: of the last statement of the transaction before its COMMIT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Number of statements that are rolled back.
    #[serde(skip_serializing_if = "is_zero")]
    pub statements: usize,
    /// The index of the last command that is sent.
    #[serde(skip)]
    pub(crate) step: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Point {
    fn new(moment: Moment, at: usize, steps: &[Step<'_>], file: &SourceFile) -> Self {
        let statement = steps[..=at].iter().rev().find_map(|step| step.statement);
        let position = statement.map(|statement| file.position(statement.range.start));
        let (line, column) = position.map(|position| (position.line, position.column)).unzip();
        Self { moment, line, column, statements: 0, step: at }
    }
}

/// The points of a migration, and the statements that may commit inside of them at moments that nobody can provoke.
///
/// Inside a transaction there is one point, before its COMMIT: whatever has run of it is rolled back. A statement outside
/// a transaction is complete or rolled back, unless it is one that runs in several transactions.
pub(super) fn points(script: &Script<'_>, file: &SourceFile, recording: Recording) -> (Vec<Point>, Vec<Point>) {
    let steps = &script.steps;
    let mut points = Vec::new();
    let mut not_entered = Vec::new();
    let mut inside = 0;
    let last = steps.iter().rposition(|step| !matches!(step.kind, StepKind::Control | StepKind::Begin));
    for (at, step) in steps.iter().enumerate() {
        match step.kind {
            StepKind::Begin | StepKind::Control => continue,
            StepKind::Inside => {
                inside += 1;
                continue;
            }
            StepKind::End { .. } => {
                if inside > 0 {
                    let point = Point::new(Moment::BeforeCommit, at - 1, steps, file);
                    points.push(Point { statements: inside, ..point });
                }
                inside = 0;
            }
            StepKind::Alone => {
                if is_several_transactions(step) {
                    points.push(Point::new(Moment::DuringStatement, at, steps, file));
                }
                if matches!(step.ast(), Some(Ast::Do(_) | Ast::Call(_))) {
                    not_entered.push(Point::new(Moment::DuringStatement, at, steps, file));
                }
            }
        }
        if Some(at) != last {
            points.push(Point::new(Moment::AfterStatement, at, steps, file));
        } else if !(recording == Recording::InTransaction && step.statement.is_none()) {
            points.push(Point::new(Moment::BeforeRecord, at, steps, file));
        }
    }
    (points, not_entered)
}

/// Whether a statement commits before it is complete: a concurrent build, and DETACH PARTITION CONCURRENTLY.
///
/// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c` (`DefineIndex`, `ReindexRelationConcurrently`),
/// `src/backend/catalog/index.c` (`index_drop`), `src/backend/commands/tablecmds.c` (`ATExecDetachPartition`). REFRESH
/// MATERIALIZED VIEW CONCURRENTLY is one transaction (`src/backend/commands/matview.c`).
pub(super) fn is_several_transactions(step: &Step<'_>) -> bool {
    step.ast().is_some_and(|ast| ast.is_concurrent() && !matches!(ast, Ast::RefreshMaterializedView(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Variables;
    use pgvet_model::migration::{Migration, TransactionMode};
    use pgvet_syntax::statement::parse_file;

    fn moments(text: &str, transaction: TransactionMode, recording: Recording) -> Vec<(Moment, u32)> {
        let file = parse_file(SourceFile::new("m.sql".to_owned(), text.to_owned()));
        let migration = Migration { transaction, database: 1, ..Migration::new(&file) };
        let script = Script::new(&migration, &Variables::new()).unwrap();
        let (points, _) = points(&script, &file.source, recording);
        points.iter().map(|point| (point.moment, point.line.unwrap_or(0))).collect()
    }

    #[test]
    fn a_transaction_has_one_point() {
        use Moment::{AfterStatement, BeforeCommit, BeforeRecord, DuringStatement};
        let three = "CREATE TABLE a (id int);\nCREATE TABLE b (id int);\nCREATE TABLE c (id int);";
        let tool = TransactionMode::Transaction;
        assert_eq!(moments(three, tool, Recording::InTransaction), [(BeforeCommit, 3)]);
        assert_eq!(moments(three, tool, Recording::Afterwards), [(BeforeCommit, 3), (BeforeRecord, 3)]);
        let alone = TransactionMode::Autocommit;
        assert_eq!(
            moments(three, alone, Recording::InTransaction),
            [(AfterStatement, 1), (AfterStatement, 2), (BeforeRecord, 3)],
            "without a transaction the record is a statement of its own"
        );
        let build = "SET lock_timeout = '1s';\nCREATE INDEX CONCURRENTLY i ON t (a);";
        assert_eq!(moments(build, alone, Recording::Unknown), [(DuringStatement, 2), (BeforeRecord, 2)]);
        let own = "BEGIN;\nSELECT 1;\nCOMMIT;\nSELECT 2;";
        assert_eq!(
            moments(own, alone, Recording::Unknown),
            [(BeforeCommit, 2), (AfterStatement, 3), (BeforeRecord, 4)]
        );
    }
}
