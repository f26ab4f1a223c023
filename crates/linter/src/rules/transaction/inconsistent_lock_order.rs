//! A migration and a function that lock the same tables in opposite order.

use crate::ast::{AlterTableAction, Ast, ObjectKind, ObjectName, Part, Transaction};
use crate::catalog::{Catalog, Oid};
use crate::check::{Migration, TransactionMode};
use crate::report::Reporter;
use crate::routine::{Routine, Routines};
use crate::rule::{MigrationContext, declare_rule};
use crate::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A migration locks two tables in the opposite order of a function that writes both.
    ///
    /// ## Why it matters
    ///
    /// While the migration holds the first table and waits for the second, a call of the function holds the second and waits for the
    /// first: neither can go on, and after `deadlock_timeout` PostgreSQL cancels one of them. That may be the migration, or the
    /// order of a customer.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, total int);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, account bigint);
    /// CREATE FUNCTION place(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO orders (id, account) VALUES (1, wanted);
    ///     UPDATE accounts SET total = total + 1 WHERE id = wanted;
    /// END $$;
    /// -- migration: transaction
    /// ALTER TABLE accounts ADD COLUMN note text;
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, total int);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, account bigint);
    /// CREATE FUNCTION place(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO orders (id, account) VALUES (1, wanted);
    ///     UPDATE accounts SET total = total + 1 WHERE id = wanted;
    /// END $$;
    /// -- migration: transaction
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ALTER TABLE accounts ADD COLUMN note text;
    /// ```
    ///
    /// or a transaction for each table.
    ///
    /// ## When it is not reported
    ///
    /// For statements in transactions of their own, for tables that the migration made, and for functions whose statements do not
    /// stand in the order in which they run. Two migrations are not compared: tools run one at a time.
    ///
    /// ## Other linters
    ///
    /// None of the known ones compares migrations with functions.
    "inconsistent-lock-order", Transaction, Warning,
    { recommended: false }
    migration = check,
}

/// A table under a strong lock, and where the migration takes it.
type Locked = (Oid, TextRange);

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let transactions = transactions(context.migration, context.before);
    if transactions.iter().all(|locked| locked.len() < 2) {
        return;
    }
    let routines = context.routines();
    let mut said: Vec<(Oid, Oid)> = Vec::new();
    for locked in &transactions {
        for (at, (second, range)) in locked.iter().enumerate() {
            for (first, first_range) in &locked[..at] {
                if said.contains(&(*first, *second)) {
                    continue;
                }
                let Some((routine, place)) = opposite(context, &routines, *first, *second) else { continue };
                said.push((*first, *second));
                let name = |oid: Oid| context.before.relation(oid).name.clone();
                let message = format!(
                    "this locks `{}` while `{}` is locked, and {} writes them the other way round: both may wait for each other",
                    name(*second),
                    name(*first),
                    routine.name()
                );
                let help = "lock the tables in the order of the function, or give each a transaction of its own";
                let finding = reporter.report(*range, message).label(*first_range, "locked here");
                drop(finding.label_in(routine.file, place, "written here first").help(help));
            }
        }
    }
}

/// The tables that each transaction of the migration locks against writes, in their order.
fn transactions(migration: &Migration<'_>, before: &Catalog) -> Vec<Vec<Locked>> {
    let mut found: Vec<Vec<Locked>> = vec![Vec::new()];
    let mut in_block = migration.transaction != TransactionMode::Autocommit;
    let mut path = vec![SmolStr::new_static("public")];
    for statement in migration.statements() {
        let Ok(ast) = &statement.parsed else { continue };
        match ast {
            Ast::Transaction(Transaction::Begin) => in_block = true,
            Ast::Transaction(Transaction::Commit { .. } | Transaction::Rollback { .. }) => {
                in_block = false;
                found.push(Vec::new());
            }
            Ast::Set(set) => path = search_path(set).unwrap_or(path),
            _ => {}
        }
        if !in_block {
            continue;
        }
        for name in locked_tables(ast) {
            let Some(oid) = before.find_relation(name, &path) else { continue };
            let transaction = found.last_mut().filter(|locked| !locked.iter().any(|(known, _)| *known == oid));
            if let Some(transaction) = transaction {
                transaction.push((oid, name.range()));
            }
        }
    }
    found
}

fn search_path(set: &crate::ast::Set) -> Option<Vec<SmolStr>> {
    let crate::ast::Setting::Value { name, values } = &set.setting else { return None };
    let texts = values.iter().filter_map(|value| match value {
        crate::ast::Literal::String(text) => Some(text.clone()),
        _ => None,
    });
    (name == "search_path").then(|| texts.collect())
}

/// The tables that a statement locks so that nobody can write them.
fn locked_tables(ast: &Ast) -> Vec<&ObjectName> {
    match ast {
        Ast::AlterTable(alter) if alter.kind == ObjectKind::Table => {
            let is_weak = |action: &AlterTableAction| {
                matches!(
                    action,
                    AlterTableAction::ValidateConstraint { .. }
                        | AlterTableAction::SetStatistics { .. }
                        | AlterTableAction::AttachPartition { .. }
                        | AlterTableAction::ClusterOn { .. }
                )
            };
            if alter.commands.iter().all(|command| is_weak(&command.action)) { Vec::new() } else { vec![&alter.name] }
        }
        Ast::CreateIndex(create) if !create.concurrently => vec![&create.table],
        Ast::CreateTrigger(create) => vec![&create.table],
        Ast::Truncate(truncate) => truncate.tables.iter().map(|(name, _)| name).collect(),
        Ast::LockTable(lock) => lock.tables.iter().map(|(name, _)| name).collect(),
        Ast::Drop(drop) if drop.kind == ObjectKind::Table => drop.objects.iter().map(|object| &object.name).collect(),
        _ => Vec::new(),
    }
}

/// A function that writes the second table before the first, and where.
fn opposite(
    context: &MigrationContext<'_>,
    routines: &Routines<'_>,
    first: Oid,
    second: Oid,
) -> Option<(std::rc::Rc<Routine>, TextRange)> {
    let names = [&context.before.relation(first).name, &context.before.relation(second).name];
    let mentions = |function: &crate::catalog::Function| match &*function.body {
        crate::ast::FunctionBody::Source { text, .. } => names.iter().all(|name| text.contains(name.as_str())),
        _ => false,
    };
    let mut candidates: Vec<Oid> =
        context.after.functions().filter(|function| mentions(function)).map(|function| function.oid).collect();
    candidates.sort_unstable();
    candidates.into_iter().find_map(|oid| {
        let routine = routines.function(oid)?;
        let writes = writes(&routine, context.after);
        let at = |table: Oid| writes.iter().position(|(written, _)| *written == table);
        let (at_first, at_second) = (at(first)?, at(second)?);
        (at_second < at_first).then(|| (std::rc::Rc::clone(&routine), writes[at_second].1))
    })
}

/// The tables that the code writes, in the order of its text.
fn writes(routine: &Routine, catalog: &Catalog) -> Vec<Locked> {
    let mut found: Vec<Locked> = Vec::new();
    for step in routine.steps() {
        for sql in &step.sql {
            sql.ast.visit(&mut |part| {
                let table = match part {
                    Part::Insert(insert) => &insert.table.name,
                    Part::Update(update) => &update.table.name,
                    Part::Delete(delete) => &delete.table.name,
                    Part::Merge(merge) => &merge.table.name,
                    _ => return,
                };
                if let Some(oid) = catalog.find_relation(table, &routine.search_path) {
                    found.push((oid, sql.place(table.range())));
                }
            });
        }
    }
    found
}
