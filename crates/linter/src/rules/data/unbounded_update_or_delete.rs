//! UPDATE or DELETE of a whole table.

use crate::ast::Ast;
use crate::effect::DataChangeKind;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::settings::TableSize;
use crate::source::TextRange;

declare_rule! {
    /// `UPDATE`, `DELETE` or `MERGE` of all rows of a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// Every row is locked until the transaction ends, so that other sessions wait for hours to change any of them. Each
    /// updated row is written anew: the table grows by as much again, with its indexes, the WAL and the lag of replicas,
    /// and vacuum can remove nothing meanwhile.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// UPDATE orders SET total = price * quantity;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// UPDATE orders SET total = price * quantity WHERE id BETWEEN 1 AND 10000 AND total IS NULL;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// Where a WHERE clause limits the rows, for tables that the same transaction created, and for tables that
    /// configuration says to be small. While the transaction holds a strong lock, `work-after-strong-lock` says it. A `MERGE` is reported where a branch without condition has a whole table as source.
    "unbounded-update-or-delete", Data, Warning,
    {
        sources: &["pgls/updateWithoutWhere", "dryrun/update-without-where", "bytebase/statement.where.require"],
        yields_to: &["work-after-strong-lock"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let mut said: Vec<TextRange> = Vec::new();
    for change in context.effects.data_changes.iter().filter(|change| change.unbounded) {
        let table = &change.relation;
        let is_small = context.settings.table(&table.schema, &table.name).size() == TableSize::Small;
        if change.kind == DataChangeKind::Insert
            || !table.visibility.is_exposed()
            || is_small
            || said.contains(&change.range)
        {
            continue;
        }
        said.push(change.range);
        let (verb, help) = match change.kind {
            _ if matches!(context.ast, Ast::Merge(_)) => (
                "changes",
                "merge a part of the source at a time, each in a transaction of its own, \
                 and give WHEN MATCHED a condition that leaves out rows that are the same",
            ),
            DataChangeKind::Delete => (
                "deletes",
                "delete in batches of some thousand rows, each in a transaction of its own; \
                 TRUNCATE is fast where nobody needs the table meanwhile",
            ),
            _ => (
                "rewrites",
                "update in batches of some thousand rows, each in a transaction of its own:\n    \
                 UPDATE ... WHERE id BETWEEN ... AND ...;",
            ),
        };
        let message =
            format!("this {verb} every row of `{}` and keeps all of them locked until it is done", table.name);
        drop(reporter.report(change.range, message).relation(table).help(help));
    }
}
