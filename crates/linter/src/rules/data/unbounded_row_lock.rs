//! SELECT ... FOR UPDATE of a whole table.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::effect::{Extent, Rows};
use pgvet_model::production::TableSize;
use pgvet_model::routine::grouped;
use pgvet_syntax::ast::RowLockStrength;

declare_rule! {
    /// `SELECT ... FOR UPDATE`, `FOR NO KEY UPDATE`, `FOR SHARE` or `FOR KEY SHARE` that locks an unlimited number of
    /// rows of a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// Every row that the query returns is locked until the transaction ends. Until then, other sessions that want to
    /// change these rows have to wait. With `FOR KEY SHARE`, only sessions that delete the rows or change their keys
    /// have to wait. Each lock is stored in the row itself: every page with a locked row is written again, and the
    /// locks go to the WAL.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint);
    /// -- migration:
    /// SELECT id FROM accounts FOR UPDATE;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint);
    /// -- migration:
    /// SELECT id FROM accounts WHERE id IN (1, 2, 3) FOR UPDATE;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a query whose number of rows is limited: by LIMIT, or because all columns of a unique index are compared with
    ///   constants
    /// - a loop that commits after each batch
    /// - tables that the same transaction created, and tables that the configuration declares small
    ///
    /// ## Confidence
    ///
    /// The confidence is `likely` if the query has no condition, or only conditions that do not compare a column with a
    /// value, such as `IS NOT NULL`. The confidence is only `possible` if a condition compares a column with a value,
    /// because this condition may select only a few rows.
    "unbounded-row-lock", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for read in &context.effects.reads {
        let Some((rows, strength)) = &read.row_lock else { continue };
        let table = &read.relation;
        let size = context.settings.table(&table.schema, &table.name).size();
        if rows.is_few() || !table.visibility.is_exposed() || size == TableSize::Small {
            continue;
        }
        let message = format!(
            "this locks {} of `{}` until the transaction ends: other sessions cannot {} these rows until then",
            what(rows),
            table.name,
            if *strength >= RowLockStrength::NoKeyUpdate { "change or lock" } else { "change" },
        );
        let help = "select the rows by their keys, in batches, and lock each batch in its own transaction";
        let finding = reporter.report(read.range, message).relation(table).grows().help(help);
        if size == TableSize::Large && rows.is_whole() {
            finding.emit();
        } else {
            finding.assuming(Assumption::many(&table.name, rows)).emit();
        }
    }
}

fn what(rows: &Rows) -> String {
    match rows.extent {
        Extent::All => "every row".to_owned(),
        Extent::Most => "most rows".to_owned(),
        Extent::UnknownPart => "an unknown number of rows".to_owned(),
        Extent::AtMost(rows) => format!("up to {} rows", grouped(rows)),
    }
}
