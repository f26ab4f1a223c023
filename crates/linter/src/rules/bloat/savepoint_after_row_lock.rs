//! Rows that a transaction locks and one of its subtransactions changes.

use crate::report::Reporter;
use crate::rule::{MigrationContext, RoutineContext, declare_rule};
use pgvet_model::catalog::{Catalog, SearchPath};
use pgvet_model::routine::{Around, Sql, SqlRole, Step};
use pgvet_syntax::ast::{Ast, ObjectName, Part, Query, RowLockStrength, Transaction};
use pgvet_syntax::plpgsql::ExceptionSection;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// Rows that are locked with `SELECT ... FOR UPDATE` or a similar clause, and then changed in a subtransaction:
    /// after a `SAVEPOINT`, or in a PL/pgSQL block with `EXCEPTION`.
    ///
    /// ## Why it matters
    ///
    /// The transaction and the subtransaction both lock the row. PostgreSQL therefore stores a multixact ID in the row,
    /// and a new multixact ID for each further subtransaction. Sessions that read this row look the ID up in a small
    /// cache (the SLRU buffers of `pg_multixact`). On a busy server, this cache can become the bottleneck. Like
    /// transaction IDs, multixact IDs run out if VACUUM does not freeze old ones in time.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION pay(order_id bigint) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     PERFORM FROM orders WHERE id = order_id FOR UPDATE;
    ///     BEGIN
    ///         UPDATE orders SET paid = true WHERE id = order_id;
    ///     EXCEPTION WHEN check_violation THEN
    ///         RAISE NOTICE 'not paid';
    ///     END;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION pay(order_id bigint) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     BEGIN
    ///         PERFORM FROM orders WHERE id = order_id FOR UPDATE;
    ///         UPDATE orders SET paid = true WHERE id = order_id;
    ///     EXCEPTION WHEN check_violation THEN
    ///         RAISE NOTICE 'not paid';
    ///     END;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a lock and a change in the same subtransaction
    /// - a change that is an `INSERT`
    /// - `DO` blocks, which run once. `subtransaction-per-row` reports a `DO` block that starts a subtransaction for
    ///   each row.
    "savepoint-after-row-lock", Bloat, Warning,
    {}
    routine = check,
    migration = check_migration,
}

/// Rows of a table that are locked.
struct Locked {
    table: SmolStr,
    range: TextRange,
    /// Subtransactions around it, by where they begin.
    inside: Vec<TextRange>,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let locks_rows = || context.text(context.routine.statement).to_ascii_lowercase().contains("for ");
    if context.function().is_none() || !locks_rows() {
        return;
    }
    let mut locked: Vec<Locked> = Vec::new();
    let mut said: Vec<TextRange> = Vec::new();
    for step in context.routine.steps() {
        let around = subtransactions(&step);
        for sql in step.sql.iter().filter(|sql| sql.role != SqlRole::Expression) {
            for (table, range) in changed(sql, context) {
                let before =
                    |lock: &&Locked| lock.table == table && around.iter().any(|begin| !lock.inside.contains(begin));
                let Some(lock) = locked.iter().rev().find(before) else { continue };
                let begin = around.iter().find(|begin| !lock.inside.contains(begin));
                let Some(begin) = begin.filter(|begin| !said.contains(begin)) else { continue };
                said.push(*begin);
                report(&table, range, lock.range, (*begin, "this block is a subtransaction"), reporter);
            }
            locked.extend(locks(sql.ast).into_iter().map(|(name, range)| Locked {
                table: table_key(&name, context.catalog, &context.routine.search_path),
                range: sql.place(range),
                inside: around.clone(),
            }));
        }
    }
}

fn report(
    table: &str,
    range: TextRange,
    locked: TextRange,
    (begin, what): (TextRange, &str),
    reporter: &mut Reporter<'_>,
) {
    let name = table.rsplit_once('.').map_or(table, |(_, name)| name);
    let message = format!(
        "a subtransaction changes rows of `{name}` that the outer transaction has locked: PostgreSQL stores a multixact \
         ID in each row, which makes the row slower to read"
    );
    let help = "lock the rows in the same subtransaction that changes them, or remove the subtransaction";
    let finding = reporter.report(range, message).help(help);
    finding.label(locked, "the rows are locked here").label(begin, what).emit();
}

/// The blocks with EXCEPTION around a step, by their keyword.
fn subtransactions(step: &Step<'_>) -> Vec<TextRange> {
    let begins = |around: &Around<'_>| match around {
        Around::Exception { section: ExceptionSection { keyword, .. }, .. } => Some(*keyword),
        _ => None,
    };
    step.around.iter().filter_map(begins).collect()
}

/// Tables whose rows a statement updates or deletes.
fn changed(sql: &Sql<'_>, context: &RoutineContext<'_>) -> Vec<(SmolStr, TextRange)> {
    let key = |name: &ObjectName| table_key(name, context.catalog, &context.routine.search_path);
    changes(sql.ast).into_iter().map(|(name, range)| (key(&name), sql.place(range))).collect()
}

fn changes(ast: &Ast) -> Vec<(ObjectName, TextRange)> {
    let mut found = Vec::new();
    ast.visit(&mut |part| match part {
        Part::Update(update) => found.push((update.table.name.clone(), update.keyword)),
        Part::Delete(delete) => found.push((delete.table.name.clone(), delete.keyword)),
        _ => {}
    });
    found
}

/// Tables whose rows a statement locks, with the place of the name.
fn locks(ast: &Ast) -> Vec<(ObjectName, TextRange)> {
    let mut found = Vec::new();
    ast.visit(&mut |part| {
        if let Part::Query(query) = part
            && !query.locking.is_empty()
        {
            found.extend(locked_tables(query));
        }
    });
    found
}

/// The tables of a query with FOR UPDATE or a similar clause; subqueries are separate queries.
fn locked_tables(query: &Query) -> Vec<(ObjectName, TextRange)> {
    let pgvet_syntax::ast::QueryBody::Select(select) = &query.body else { return Vec::new() };
    let is_locked = |relation: &&pgvet_syntax::ast::RelationRef| {
        query.locking.iter().any(|locking| {
            locking.strength >= RowLockStrength::KeyShare
                && (locking.of.is_empty() || locking.of.iter().any(|of| of.name.text == *relation.called()))
        })
    };
    let place = |relation: &pgvet_syntax::ast::RelationRef| (relation.name.clone(), relation.name.range());
    select.relations().into_iter().filter(is_locked).map(place).collect()
}

/// The table's full name, so that the same table is the same under all its names.
fn table_key(name: &ObjectName, catalog: &Catalog, path: &SearchPath) -> SmolStr {
    let found = catalog.find_relation(name, path).map(|oid| catalog.relation(oid));
    found.map_or_else(
        || smol_str::format_smolstr!("{name}"),
        |found| smol_str::format_smolstr!("{}.{}", found.schema, found.name),
    )
}

/// `SELECT ... FOR UPDATE; SAVEPOINT s; UPDATE ...` in a migration.
fn check_migration(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let mut locked: Vec<(SmolStr, TextRange, usize)> = Vec::new();
    let mut savepoints: Vec<(SmolStr, TextRange)> = Vec::new();
    let path = context.session.settings.search_path();
    for run in context.ran {
        let ast = &*run.ast;
        match ast {
            Ast::Transaction(Transaction::Savepoint(name)) => savepoints.push((name.text.clone(), name.range)),
            Ast::Transaction(Transaction::Release(name)) => {
                if let Some(at) = savepoints.iter().rposition(|(set, _)| *set == name.text) {
                    savepoints.truncate(at);
                }
            }
            Ast::Transaction(Transaction::Commit { .. } | Transaction::Rollback { .. }) => {
                savepoints.clear();
                locked.clear();
            }
            Ast::Select(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Insert(_) => {
                for (name, range) in changes(ast) {
                    let table = table_key(&name, context.after, &path);
                    let lock = locked.iter().find(|(other, _, depth)| *other == table && *depth < savepoints.len());
                    if let Some((_, at, depth)) = lock {
                        report(
                            &table,
                            run.in_file(range),
                            *at,
                            (savepoints[*depth].1, "this begins a subtransaction"),
                            reporter,
                        );
                    }
                }
                let depth = savepoints.len();
                let keyed = |(name, range): (ObjectName, TextRange)| {
                    (table_key(&name, context.after, &path), run.in_file(range), depth)
                };
                locked.extend(locks(ast).into_iter().map(keyed));
            }
            _ => {}
        }
    }
}
