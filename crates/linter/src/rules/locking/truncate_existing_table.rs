//! TRUNCATE of a table in use.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::{enumerate, sql_name};
use pgvet_model::effect::{LockCause, RelationName};
use pgvet_syntax::ast::{Ast, DropBehavior};

declare_rule! {
    /// `TRUNCATE` of a table that existed before the migration.
    ///
    /// ## Why it matters
    ///
    /// All rows are lost, and the table is locked in ACCESS EXCLUSIVE mode until the transaction ends: nobody can read
    /// or write it. The statement waits for every open transaction that has used the table, and all later queries on it
    /// queue behind it. With `CASCADE`, PostgreSQL also truncates every table that references the table, directly or
    /// indirectly.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// TRUNCATE orders;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DELETE FROM orders WHERE ctid = ANY (ARRAY(SELECT ctid FROM orders LIMIT 10000));
    /// ```
    ///
    /// Repeat the statement, each time in its own transaction, until no row is left.
    ///
    /// ## When it is not reported
    ///
    /// - a table that the same transaction created, or that the same migration created and left empty
    "truncate-existing-table", Locking, Warning,
    {
        sources: &["squawk/ban-truncate-cascade", "pgls/banTruncate", "pgls/banTruncateCascade"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let exposed: Vec<&RelationName> =
        context.effects.truncates.iter().filter(|relation| relation.visibility.is_exposed()).collect();
    let Some(first) = exposed.first() else { return };
    let lock = |relation: &RelationName| context.effects.locks.iter().find(|lock| lock.relation.oid == relation.oid);
    let range = match context.ast {
        Ast::Truncate(statement) => statement.keyword,
        _ => lock(first).map_or(context.statement.range, |lock| lock.range),
    };
    let is_cascaded = |relation: &RelationName| lock(relation).is_some_and(|lock| lock.cause == LockCause::Dependent);
    let (cascaded, named): (Vec<&RelationName>, Vec<&RelationName>) =
        exposed.iter().copied().partition(|relation| is_cascaded(relation));
    let mut message = "this blocks all reads and writes until the transaction ends".to_owned();
    if !named.is_empty() {
        let names = enumerate(named.iter().map(|relation| relation.name.as_str()));
        message =
            format!("this deletes all rows of {names}, and blocks all reads and writes until the transaction ends");
    }
    let cascade = matches!(context.ast, Ast::Truncate(statement) if statement.behavior == DropBehavior::Cascade);
    if !cascaded.is_empty() {
        let names = enumerate(cascaded.iter().map(|relation| relation.name.as_str()));
        message = format!("{message}; CASCADE also truncates {names}");
    } else if cascade && is_any_unknown(context, &named) {
        let table = if named.len() == 1 { "this table" } else { "these tables" };
        message = format!("{message}; CASCADE also truncates every table that references {table}");
    }
    let mut finding = reporter.report(range, message).help(help(context, first, cascaded.is_empty()));
    for relation in exposed {
        finding = finding.relation(relation);
    }
    finding.emit();
}

fn is_any_unknown(context: &RuleContext<'_>, relations: &[&RelationName]) -> bool {
    let known = |relation: &&RelationName| context.before.get_relation(relation.oid).is_some_and(|found| found.known);
    !relations.iter().all(known)
}

fn help(context: &RuleContext<'_>, table: &RelationName, alone: bool) -> String {
    let name = sql_name(context, table);
    let order = if alone { "" } else { ", beginning with the tables that reference it" };
    format!(
        "if the table is in use, delete in batches{order}, each batch in its own transaction, until no rows are \
         left:\n    DELETE FROM {name} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {name} LIMIT 10000));"
    )
}
