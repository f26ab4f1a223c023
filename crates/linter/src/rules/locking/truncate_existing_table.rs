//! TRUNCATE of a table in use.

use crate::ast::{Ast, DropBehavior};
use crate::effect::RelationName;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::{enumerate, sql_name};

declare_rule! {
    /// `TRUNCATE` of a table that was there before the migration.
    ///
    /// ## Why it matters
    ///
    /// All rows are gone, and the table is locked ACCESS EXCLUSIVE until the transaction ends: nobody can read or write
    /// it, and the lock waits for every query that runs, while all later ones queue behind it. `CASCADE` does the same
    /// to every table that references it, and to those that reference them.
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
    /// repeated, each time in a transaction of its own, until it deletes nothing.
    ///
    /// ## When it is not reported
    ///
    /// For a table that the same transaction created, or the same migration while it is empty.
    "truncate-existing-table", Locking, Warning,
    {
        sources: &["squawk/ban-truncate-cascade", "pgls/banTruncate", "pgls/banTruncateCascade"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Truncate(statement) = context.ast else { return };
    if context.effects.fails.is_some() {
        return;
    }
    let exposed: Vec<&RelationName> =
        context.effects.truncates.iter().filter(|relation| relation.visibility.is_exposed()).collect();
    let Some(first) = exposed.first() else { return };
    let (named, cascaded): (Vec<&RelationName>, Vec<&RelationName>) =
        exposed.iter().copied().partition(|relation| is_named(context, relation));
    let mut message = format!(
        "this deletes all rows of {} and blocks every read and write until the transaction ends",
        enumerate(named.iter().map(|relation| relation.name.as_str()))
    );
    if named.is_empty() {
        "this blocks every read and write until the transaction ends".clone_into(&mut message);
    }
    if !cascaded.is_empty() {
        let names = enumerate(cascaded.iter().map(|relation| relation.name.as_str()));
        message += &format!("; CASCADE does the same to {names}");
    } else if statement.behavior == DropBehavior::Cascade && is_any_unknown(context, &named) {
        message += "; CASCADE does the same to every table that references it";
    }
    let mut finding = reporter.report(statement.keyword, message).help(help(context, first, cascaded.is_empty()));
    for relation in exposed {
        finding = finding.relation(relation);
    }
    drop(finding);
}

/// Is it one of the tables that the statement names, or a partition or child of one?
fn is_named(context: &RuleContext<'_>, relation: &RelationName) -> bool {
    let Ast::Truncate(statement) = context.ast else { return false };
    let lock = context.effects.locks.iter().find(|lock| lock.relation.oid == relation.oid);
    let dependent = lock.is_some_and(|lock| lock.cause == crate::effect::LockCause::Dependent);
    let path = context.session.settings.search_path();
    let found = |name| context.after.find_relation(name, &path) == Some(relation.oid);
    !dependent || statement.tables.iter().any(|(name, _)| found(name))
}

fn is_any_unknown(context: &RuleContext<'_>, relations: &[&RelationName]) -> bool {
    let known = |relation: &&RelationName| context.before.get_relation(relation.oid).is_some_and(|found| found.known);
    !relations.iter().all(|relation| known(relation))
}

fn help(context: &RuleContext<'_>, table: &RelationName, alone: bool) -> String {
    let name = sql_name(context, table);
    let order = if alone { "" } else { ", those that reference others first" };
    format!(
        "if the table is in use, delete in batches{order}, each in a transaction of its own, until nothing is left:\n    \
         DELETE FROM {name} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {name} LIMIT 10000));"
    )
}
