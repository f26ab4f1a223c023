//! Estimates of the time that a statement would take at the size of production, if its work grows with the rows of one
//! table.

use crate::observation::{MigrationTrace, Relation, StatementKind, StatementTrace};
use std::collections::BTreeSet;
use std::time::Duration;

/// A time that was not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extrapolation {
    /// The table whose rows count.
    pub relation: Relation,
    /// How many it has here.
    pub rows: u64,
    pub production_rows: u64,
    pub duration: Duration,
    /// It also builds indexes, and sorting takes longer than in proportion: the time is a lower bound.
    pub sorts: bool,
}

/// Fewer rows tell nothing about many.
const LEAST_ROWS: u64 = 10_000;
/// In shorter times, what does not depend on rows counts too much.
const LEAST_TIME: Duration = Duration::from_millis(20);

/// The time at this number of rows, for commands that read or rewrite all of one table. `production` knows how many rows a
/// table has there.
pub fn extrapolate(
    statement: &StatementTrace,
    migration: &MigrationTrace,
    production: &dyn Fn(&Relation) -> Option<u64>,
) -> Option<Extrapolation> {
    if !is_linear(statement.kind) || statement.failure.is_some() || statement.duration < LEAST_TIME {
        return None;
    }
    let relation = only_table(statement)?;
    let rows = rows(relation, statement, migration).filter(|rows| *rows >= LEAST_ROWS)?;
    let production_rows = production(relation).filter(|production| *production > rows)?;
    let nanoseconds = statement.duration.as_nanos() * u128::from(production_rows) / u128::from(rows);
    let duration = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
    let sorts = !statement.index_builds.is_empty();
    Some(Extrapolation { relation: relation.clone(), rows, production_rows, duration, sorts })
}

/// Queries and changes of rows follow a plan, which may be another one at another size; CLUSTER sorts the whole table.
fn is_linear(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::Alter | StatementKind::CreateIndex | StatementKind::Maintain)
}

/// The table that is read or rewritten, if it is only one.
fn only_table(statement: &StatementTrace) -> Option<&Relation> {
    let scanned = statement.scans.iter().map(|scan| &scan.relation);
    let tables: BTreeSet<&Relation> = scanned.chain(&statement.rewrites).collect();
    let mut tables = tables.into_iter();
    tables.next().filter(|_| tables.next().is_none())
}

/// Rows that were read, or those that the table had before.
fn rows(relation: &Relation, statement: &StatementTrace, migration: &MigrationTrace) -> Option<u64> {
    let once = |scan: &&crate::ScanTrace| scan.relation == *relation && scan.times == 1;
    let read = statement.scans.iter().find(once).and_then(|scan| u64::try_from(scan.rows).ok());
    read.or_else(|| migration.rows.get(&relation.to_string()).copied())
}

#[cfg(test)]
mod tests {
    use super::StatementKind::{Alter, Create, CreateIndex, Other};
    use super::*;
    use crate::observation::ScanTrace;

    fn relation(name: &str) -> Relation {
        Relation { schema: "public".to_owned(), name: name.to_owned(), kind: 'r', ..Relation::default() }
    }

    /// Extrapolates a statement that takes 100 ms and reads 50,000 rows of each of these tables.
    fn of(kind: StatementKind, tables: &[&str], change: impl Fn(&mut StatementTrace)) -> Option<(u128, bool)> {
        let scan = |name: &&str| ScanTrace { relation: relation(name), times: 1, rows: 50_000 };
        let mut statement = StatementTrace {
            kind,
            duration: Duration::from_millis(100),
            scans: tables.iter().map(scan).collect(),
            ..StatementTrace::default()
        };
        change(&mut statement);
        let production = |relation: &Relation| (relation.name == "t").then_some(5_000_000);
        let migration = MigrationTrace { rows: [("public.t".to_owned(), 20_000)].into(), ..MigrationTrace::default() };
        let found = extrapolate(&statement, &migration, &production)?;
        Some((found.duration.as_millis(), found.sorts))
    }

    #[test]
    fn only_work_in_proportion_to_one_table_is_extrapolated() {
        let nothing = |_: &mut StatementTrace| {};
        assert_eq!(of(Alter, &["t"], nothing), Some((10_000, false)));
        let builds = |statement: &mut StatementTrace| statement.index_builds.push(relation("i"));
        assert_eq!(of(CreateIndex, &["t"], builds), Some((10_000, true)));
        let rewrites = |statement: &mut StatementTrace| {
            statement.scans[0].times = 3;
            statement.rewrites.push(relation("t"));
        };
        assert_eq!(of(Alter, &["t"], rewrites), Some((25_000, false)));
        assert_eq!(of(Alter, &["t", "u"], nothing), None);
        assert_eq!(of(Other, &["t"], nothing), None);
        assert_eq!(of(Create, &["t"], nothing), None);
        assert_eq!(of(Alter, &["u"], nothing), None, "its size is not known");
        assert_eq!(of(Alter, &["t"], |statement| statement.duration = Duration::from_millis(5)), None);
        assert_eq!(of(Alter, &["t"], |statement| statement.scans[0].rows = 500), None);
    }
}
