//! The speed of work whose duration grows with a table, as measured on the server.

use crate::observation::{MigrationTrace, Relation, StatementTrace, Trace};
use pgvet_model::migration::Migration;
use pgvet_model::throughput::{Size, Work};
use pgvet_syntax::ast::{AlterTableAction, Ast, Constraint, ConstraintKind, ObjectName};
use pgvet_syntax::statement::Statement;
use std::time::Duration;

/// Minimum number of rows: smaller tables say nothing about large ones.
pub const LEAST_ROWS: u64 = 100_000;
/// Minimum duration: in a shorter time, work that does not depend on the rows has too much weight.
pub const LEAST_TIME: Duration = Duration::from_millis(20);

/// Returns the work, the table size and the duration of each statement of a run that shows how fast the server is.
///
/// A statement is used if it does only one kind of work, and if its table is large enough and was not changed earlier in
/// the migration. `migrations` are those of the run.
pub fn calibrate(trace: &Trace, migrations: &[Migration<'_>]) -> Vec<(Work, Size, Duration)> {
    let mut measures = Vec::new();
    for run in &trace.migrations {
        let Some(migration) = migrations.get(run.migration) else { continue };
        for (at, statement) in run.statements.iter().enumerate() {
            let mut written = migration.parsed.iter();
            let ast = written.find(|written| written.range == statement.range).and_then(Statement::ast);
            measures.extend(ast.and_then(|ast| measure(ast, statement, run, at)));
        }
    }
    measures
}

fn measure(ast: &Ast, statement: &StatementTrace, run: &MigrationTrace, at: usize) -> Option<(Work, Size, Duration)> {
    let (work, name) = work(ast)?;
    let relation = table(name, statement)?;
    let earlier = run.statements.get(..at)?;
    if !did(work, statement)
        || statement.duration < LEAST_TIME
        || earlier.iter().any(|one| changed(work, relation, one))
    {
        return None;
    }
    let name = relation.to_string();
    let rows = run.rows.get(&name).copied().filter(|rows| *rows >= LEAST_ROWS)?;
    let bytes = run.bytes.get(&name)?;
    let referenced_rows = referenced_rows(relation, statement, run).unwrap_or(rows);
    let size = Size { rows, bytes: bytes.table, index_bytes: bytes.indexes, referenced_rows };
    Some((work, size, statement.duration))
}

/// Rows of the other table that the statement locks.
fn referenced_rows(table: &Relation, statement: &StatementTrace, run: &MigrationTrace) -> Option<u64> {
    let tables = statement.locks.iter().map(|lock| &lock.relation).filter(|one| one.is_table() && one.oid != table.oid);
    tables.filter_map(|one| run.rows.get(&one.to_string()).copied()).max()
}

/// The one sort of work that a statement has with its table, if the server does it at all.
fn work(ast: &Ast) -> Option<(Work, &ObjectName)> {
    match ast {
        Ast::CreateIndex(index) => {
            let plain = !index.concurrently && index.predicate.is_none() && matches!(&*index.method, "" | "btree");
            plain.then_some((Work::IndexBuild, &index.table))
        }
        Ast::AlterTable(alter) => match &*alter.commands {
            [command] => Some((work_of_command(&command.action)?, &alter.name)),
            _ => None,
        },
        _ => None,
    }
}

fn work_of_command(action: &AlterTableAction) -> Option<Work> {
    match action {
        AlterTableAction::AlterColumnType { .. } => Some(Work::Rewrite),
        AlterTableAction::SetNotNull { .. } => Some(Work::Scan),
        AlterTableAction::AddConstraint(Constraint { kind, not_valid: false, not_enforced: false, .. }) => match kind {
            ConstraintKind::Check(_) | ConstraintKind::NotNull { .. } => Some(Work::Scan),
            ConstraintKind::ForeignKey(_) => Some(Work::ForeignKey),
            ConstraintKind::Unique(_) => Some(Work::IndexBuild),
            _ => None,
        },
        _ => None,
    }
}

/// The table of that name that the statement read once or rewrote.
fn table<'t>(name: &ObjectName, statement: &'t StatementTrace) -> Option<&'t Relation> {
    let read = statement.scans.iter().filter(|scan| scan.times == 1).map(|scan| &scan.relation);
    statement.rewrites.iter().chain(read).find(|relation| {
        relation.name == *name.name.text && name.schema.as_ref().is_none_or(|schema| *schema.text == relation.schema)
    })
}

/// Whether the statement did that work, and no other.
fn did(work: Work, statement: &StatementTrace) -> bool {
    let (rewrites, builds) = (statement.rewrites.len(), statement.index_builds.len());
    let alone = match work {
        Work::Scan | Work::ForeignKey => (rewrites, builds) == (0, 0),
        Work::IndexBuild => (rewrites, builds) == (0, 1),
        Work::Rewrite => rewrites == 1,
    };
    alone && statement.failure.is_none()
}

/// Whether a statement changed the part of the table's size with which that work grows.
fn changed(work: Work, table: &Relation, statement: &StatementTrace) -> bool {
    let is_table = |relation: &Relation| relation.oid == table.oid;
    let is_index = |relation: &Relation| relation.table == Some(table.oid);
    let counts_bytes = matches!(work, Work::Scan | Work::Rewrite);
    statement.changes.iter().any(|(relation, _)| is_table(relation))
        || statement.truncates.iter().any(is_table)
        || counts_bytes && statement.rewrites.iter().any(is_table)
        || work == Work::Rewrite && statement.index_builds.iter().chain(&statement.drops).any(is_index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{RowCounts, ScanTrace, TableBytes};
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    fn orders() -> Relation {
        Relation { oid: 20_000, schema: "public".to_owned(), name: "orders".to_owned(), kind: 'r', table: None }
    }

    fn index() -> Relation {
        Relation { oid: 20_001, name: "i".to_owned(), kind: 'i', table: Some(20_000), ..orders() }
    }

    /// The sorts of work that count in a migration whose statements read a table of 200,000 rows for 100 ms each.
    fn counted(sql: &str, change: impl Fn(usize, &mut StatementTrace)) -> Vec<Work> {
        let file = parse_file(SourceFile::new("m.sql".to_owned(), sql.to_owned()));
        let statements = file.statements.iter().enumerate().map(|(at, written)| {
            let mut statement = StatementTrace {
                range: written.range,
                duration: Duration::from_millis(100),
                scans: vec![ScanTrace { relation: orders(), times: 1, rows: 200_000 }],
                ..StatementTrace::default()
            };
            change(at, &mut statement);
            statement
        });
        let bytes = TableBytes { table: 20_000_000, indexes: 4_000_000 };
        let run = MigrationTrace {
            statements: statements.collect(),
            rows: [("public.orders".to_owned(), 200_000)].into(),
            bytes: [("public.orders".to_owned(), bytes)].into(),
            ..MigrationTrace::default()
        };
        let trace = Trace { migrations: vec![run], ..Trace::default() };
        let measures = calibrate(&trace, &[Migration::new(&file)]);
        let size = Size { rows: 200_000, bytes: 20_000_000, index_bytes: 4_000_000, referenced_rows: 200_000 };
        assert!(measures.iter().all(|(_, found, time)| *found == size && time.as_millis() == 100), "{measures:?}");
        measures.into_iter().map(|(work, ..)| work).collect()
    }

    #[test]
    fn only_one_sort_of_work_counts() {
        let nothing = |_, _: &mut StatementTrace| {};
        for (sql, expected) in [
            ("ALTER TABLE orders ALTER a SET NOT NULL", &[Work::Scan][..]),
            ("ALTER TABLE public.orders ADD CHECK (a > 1)", &[Work::Scan]),
            ("ALTER TABLE orders ADD FOREIGN KEY (a) REFERENCES users", &[Work::ForeignKey]),
            ("ALTER TABLE orders ADD FOREIGN KEY (a) REFERENCES users NOT VALID", &[]),
            ("ALTER TABLE orders ALTER a SET NOT NULL, ADD CHECK (a > 1)", &[]),
            ("ALTER TABLE app.orders ALTER a SET NOT NULL", &[]),
            ("ALTER TABLE orders ALTER a TYPE bigint", &[]),
            ("CREATE INDEX ON orders (a)", &[]),
            ("SELECT count(*) FROM orders", &[]),
        ] {
            assert_eq!(counted(sql, nothing), expected, "{sql}");
        }
        let builds = |_, statement: &mut StatementTrace| statement.index_builds.push(index());
        assert_eq!(counted("CREATE INDEX ON orders (a)", builds), [Work::IndexBuild]);
        assert_eq!(counted("ALTER TABLE orders ADD UNIQUE (a)", builds), [Work::IndexBuild]);
        for other in ["CREATE INDEX CONCURRENTLY ON orders (a)", "CREATE INDEX ON orders (a) WHERE a > 1"] {
            assert_eq!(counted(other, builds), [], "{other}");
        }
        assert_eq!(counted("CREATE INDEX ON orders USING gin (a)", builds), []);
        let rewrites = |_, statement: &mut StatementTrace| statement.rewrites.push(orders());
        assert_eq!(counted("ALTER TABLE orders ALTER a TYPE bigint", rewrites), [Work::Rewrite]);
    }

    #[test]
    fn what_is_short_or_comes_after_a_change_of_the_table_does_not_count() {
        let set = "ALTER TABLE orders ALTER a SET NOT NULL;";
        let short = |_, statement: &mut StatementTrace| statement.duration = Duration::from_millis(19);
        assert_eq!(counted(set, short), []);
        let after = |first: &str, change: &dyn Fn(&mut StatementTrace)| {
            let sql = format!("{first}; {set} ALTER TABLE orders ADD FOREIGN KEY (a) REFERENCES users");
            counted(&sql, |at, statement| {
                if at == 0 {
                    change(statement);
                }
            })
        };
        let written = RowCounts { updated: 1, ..RowCounts::default() };
        assert_eq!(after("UPDATE orders SET a = 1", &|one| one.changes.push((orders(), written))), []);
        assert_eq!(after("VACUUM FULL orders", &|one| one.rewrites.push(orders())), [Work::ForeignKey]);
        assert_eq!(
            after("REINDEX TABLE orders", &|one| one.index_builds.push(index())),
            [Work::Scan, Work::ForeignKey]
        );
    }
}
