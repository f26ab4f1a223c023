//! Batches that are all in one transaction.

use crate::ast::{Ast, Expr, ExprKind, ObjectKind, ObjectName, OperatorForm, Part};
use crate::catalog::Relation;
use crate::check::{Migration, TransactionMode};
use crate::confidence::Assumption;
use crate::diagnostic::Severity;
use crate::expression::returned_table;
use crate::plpgsql::{Loop, LoopKind, Statement, StatementKind};
use crate::report::Reporter;
use crate::routine::{Around, Node, RoutineContext, Step};
use crate::rule::declare_rule;
use crate::rules::transaction::strong_locks;
use crate::source::TextRange;
use crate::statement::Statement as SqlStatement;

declare_rule! {
    /// A loop that updates or deletes a table in parts, without `COMMIT` between them.
    ///
    /// ## Why it matters
    ///
    /// Batches are meant to keep transactions short. Without `COMMIT` all of them are one transaction: every row that was
    /// changed stays locked until the last batch is done, vacuum can remove nothing meanwhile, and a failure at the end
    /// undoes everything.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// DO $$
    /// BEGIN
    ///     LOOP
    ///         DELETE FROM events WHERE id IN (SELECT id FROM events WHERE expired LIMIT 1000);
    ///         EXIT WHEN NOT FOUND;
    ///     END LOOP;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DO $$
    /// BEGIN
    ///     LOOP
    ///         DELETE FROM events WHERE id IN (SELECT id FROM events WHERE expired LIMIT 1000);
    ///         EXIT WHEN NOT FOUND;
    ///         COMMIT;
    ///     END LOOP;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// Where the loop has a `COMMIT`; for loops whose changes are not limited by `LIMIT` or by a range of keys, unless the
    /// loop goes through a whole table; for loops that alter, rename or drop something in each round; for temporary tables
    /// and tables of the same migration, and in a `DO` block for tables that the migration drops afterwards: whoever used
    /// their rows can do so no longer. A table that has lived through ten migrations and never got an index besides its
    /// primary key mostly has few rows, and is worth a note only (`--level info`). Where the transaction already holds a
    /// lock that stops reads or writes of a table in use, the finding is an error: the batches hold it as well.
    "bulk-change-in-loop", Data, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let steps = context.routine.steps();
    let mut said: Option<TextRange> = None;
    for step in &steps {
        let Node::Statement(statement) = step.node else { continue };
        let StatementKind::Loop(a_loop) = &statement.kind else { continue };
        if said.is_some_and(|said| said.contains(statement.range)) {
            continue;
        }
        let inside: Vec<&Step<'_>> = steps.iter().filter(|step| is_inside(step, statement)).collect();
        let commits = |step: &&&Step<'_>| {
            matches!(
                step.node,
                Node::Statement(Statement { kind: StatementKind::Commit(_) | StatementKind::Call(_), .. })
            )
        };
        if inside.iter().any(|step| commits(&step) || alters_tables(step)) {
            continue;
        }
        let whole = goes_through_whole_table(context, step, a_loop);
        let found = inside.iter().find_map(|step| change(context, step, whole));
        let is_kept = |(_, name): &(TextRange, &ObjectName)| !makes(&steps, name) && !is_dropped_later(context, name);
        let Some((range, name)) = found.filter(is_kept) else { continue };
        let table = &name.name.text;
        said = Some(statement.range);
        let message = if whole {
            format!("this changes `{table}` row by row in one transaction, which locks all of them until its end")
        } else {
            format!("all batches are one transaction, which locks their rows of `{table}` until its end")
        };
        let help = match context.function() {
            Some(function) if !function.procedure => {
                "a function cannot COMMIT; make it a procedure, and COMMIT after each batch"
            }
            Some(_) => "COMMIT after each batch",
            None => match context.migration.map(|migration| (migration.transaction, migration.statements().count())) {
                Some((TransactionMode::Transaction, _)) => {
                    "COMMIT after each batch, in a migration that runs without a transaction"
                }
                Some((TransactionMode::SingleString, 2..)) => {
                    "COMMIT after each batch, in a migration that holds nothing else: several statements are one transaction"
                }
                _ => {
                    "COMMIT after each batch, which PostgreSQL allows where the DO block is sent alone, outside of a transaction"
                }
            },
        };
        let mut finding = reporter.report(statement.keyword, message).label(range, "this change").help(help);
        if let Some(lock) = context.session.and_then(|session| strong_locks(session).next()) {
            let blocks = if lock.mode.blocks_reads() { "read or write" } else { "write to" };
            let message = format!(
                "nobody can {blocks} `{}` until then: this took {}, which the transaction holds to its end",
                lock.unqualified_name(),
                lock.mode.sql()
            );
            finding = finding.severity(Severity::Error).label_in(lock.place.file, lock.place.range, message);
        }
        if let Some(table) = context.relation(name) {
            let table = context.relation_name(table);
            finding = finding.relation(&table).assuming(Assumption::Large { table: table.name.clone() });
        }
        finding.emit();
    }
}

fn is_inside(step: &Step<'_>, statement: &Statement) -> bool {
    step.around.iter().any(|around| match around {
        Around::Loop { statement: own, .. } => own.range == statement.range,
        _ => false,
    })
}

/// `FOR r IN SELECT ... FROM t LOOP` without any condition, for a table in use.
fn goes_through_whole_table(context: &RoutineContext<'_>, step: &Step<'_>, a_loop: &Loop) -> bool {
    if !matches!(a_loop.kind, LoopKind::Query { .. }) {
        return false;
    }
    let reads_all = |ast: &Ast| {
        let Ast::Select(query) = ast else { return false };
        let table = returned_table(query).and_then(|table| context.relation(table));
        table.is_some_and(|table| is_in_use(context, table))
    };
    step.sql.iter().any(|sql| reads_all(sql.ast))
}

fn is_in_use(context: &RoutineContext<'_>, table: &Relation) -> bool {
    let is_new = context.function().is_none() && table.birth.is_of(context.deployment());
    table.kind.is_table() && !table.is_temporary() && !is_new
}

/// Does a step alter, rename or drop something? Then the loop goes from table to table, and holds stronger locks than those
/// of rows.
fn alters_tables(step: &Step<'_>) -> bool {
    step.sql.iter().any(|sql| matches!(sql.ast, Ast::AlterTable(_) | Ast::Rename(_) | Ast::SetSchema(_) | Ast::Drop(_)))
}

/// Does the code make a table of that name?
pub(super) fn makes(steps: &[Step<'_>], name: &ObjectName) -> bool {
    steps.iter().flat_map(|step| &step.sql).any(|sql| match sql.ast {
        Ast::CreateTable(create) => create.name.name.text == name.name.text,
        Ast::CreateTableAs(create) => create.into.name.name.text == name.name.text,
        _ => false,
    })
}

/// Does a statement after the DO block drop the table?
fn is_dropped_later(context: &RoutineContext<'_>, name: &ObjectName) -> bool {
    let table = |name: &ObjectName| context.relation(name).map(|relation| relation.oid);
    let drops = |statement: &SqlStatement| match statement.ast() {
        Some(Ast::Drop(drop)) if drop.kind == ObjectKind::Table => {
            drop.objects.iter().any(|object| table(&object.name).is_some_and(|oid| table(name) == Some(oid)))
        }
        _ => false,
    };
    let end = context.routine.statement.end;
    let mut later = context.migration.into_iter().flat_map(Migration::statements);
    later.any(|statement| statement.range.start >= end && drops(statement))
}

/// The first UPDATE or DELETE of a step that a batch consists of. A table that no statement has shown is in use.
fn change<'a>(context: &RoutineContext<'_>, step: &Step<'a>, any: bool) -> Option<(TextRange, &'a ObjectName)> {
    step.sql.iter().find_map(|sql| {
        let (mut changes, mut limited) = (Vec::new(), false);
        visit_changes(sql.ast, &mut |part| match part {
            Part::Update(update) => changes.push((&update.table.name, &update.filter, update.keyword)),
            Part::Delete(delete) => changes.push((&delete.table.name, &delete.filter, delete.keyword)),
            Part::Query(query) => limited |= query.limit.is_some(),
            _ => {}
        });
        let in_use = |name: &ObjectName| context.relation(name).is_none_or(|table| is_in_use(context, table));
        let (name, filter, keyword) = changes.into_iter().find(|(name, ..)| in_use(name))?;
        let in_range = filter.as_ref().is_some_and(|filter| is_range(context, filter));
        (any || limited || in_range).then(|| (sql.place(keyword), name))
    })
}

/// Goes through a statement that changes rows: all of it, and of a query only WITH, for what reads the changed rows limits
/// none of them.
fn visit_changes<'a>(ast: &'a Ast, visit: &mut dyn FnMut(Part<'a>)) {
    match ast {
        Ast::Select(query) => {
            query.with.iter().flat_map(|with| &with.ctes).for_each(|cte| cte.statement.visit(visit));
        }
        _ => ast.visit(visit),
    }
}

/// Does a condition limit a column to a range between variables? `id BETWEEN first AND last`, `id > last AND id <= last + 1000`.
fn is_range(context: &RoutineContext<'_>, filter: &Expr) -> bool {
    let is_variable = |expression: &Expr| {
        let mut found = false;
        expression.walk(&mut |part| {
            found |= matches!(&part.kind, ExprKind::Column(path) if context.routine.is_variable(path));
        });
        found
    };
    let column = |expression: &Expr| match &expression.kind {
        ExprKind::Column(path) if !context.routine.is_variable(path) => path.last().cloned(),
        _ => None,
    };
    let (mut from, mut to) = (Vec::new(), Vec::new());
    filter.walk(&mut |part| {
        let ExprKind::Operator { operator, operands, form, .. } = &part.kind else { return };
        match (form, operands.as_slice()) {
            (OperatorForm::Between, [tested, bounds @ ..]) if bounds.iter().any(is_variable) => {
                from.extend(column(tested));
                to.extend(column(tested));
            }
            (OperatorForm::Plain, [left, right]) if is_variable(left) || is_variable(right) => {
                let (below, above) = match operator.as_str() {
                    "<" | "<=" => (left, right),
                    ">" | ">=" => (right, left),
                    _ => return,
                };
                to.extend(column(below));
                from.extend(column(above));
            }
            _ => {}
        }
    });
    from.iter().any(|column| to.contains(column))
}
