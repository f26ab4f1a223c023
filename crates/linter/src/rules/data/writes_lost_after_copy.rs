//! Tables that go after their rows were copied, while others could still write to them.

use crate::assumption::{Assumption, CopyEvidence};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::names::may_name;
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::text::sql_name;
use crate::severity::Severity;
use pgvet_model::catalog::{Catalog, Copied, Oid, Relation};
use pgvet_model::effect::{DataChangeKind, RelationName, RemovedObject, RenamedObject, Visibility};
use pgvet_syntax::ast::FunctionBody;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A table that is replaced by a copy, while nothing blocks writes to the table between the copy and the swap.
    ///
    /// ## Why it matters
    ///
    /// The copy holds the rows that existed when the statement that copied them began. If other sessions insert, update
    /// or delete rows between the copy and the swap, they change only the old table. Nobody gets an error, and after
    /// the swap these writes are gone. A transaction around the copy and the swap does not help, because reading a
    /// table does not block writes to it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// BEGIN;
    /// CREATE TABLE orders_new (id bigint PRIMARY KEY, total bigint);
    /// INSERT INTO orders_new SELECT * FROM orders;
    /// ALTER TABLE orders RENAME TO orders_old;
    /// ALTER TABLE orders_new RENAME TO orders;
    /// COMMIT;
    /// ```
    ///
    /// Use instead:
    ///
    /// Create a trigger on the old table that applies each later INSERT, UPDATE and DELETE to the copy as well. Then
    /// copy the rows in batches, and swap the names in a short transaction. For a small table, a lock that blocks
    /// writes is enough:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// BEGIN;
    /// LOCK TABLE orders IN SHARE ROW EXCLUSIVE MODE;
    /// CREATE TABLE orders_new (id bigint PRIMARY KEY, total bigint);
    /// INSERT INTO orders_new SELECT * FROM orders;
    /// ALTER TABLE orders RENAME TO orders_old;
    /// ALTER TABLE orders_new RENAME TO orders;
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a swap whose transaction locked the table against writes before it copied the rows
    /// - tables that the same migration created
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`, in these cases:
    ///
    /// - the copy does not get the name of the table, and its rows are not copied back: they are moved elsewhere before
    ///   the table is dropped or emptied
    /// - a trigger on the table mentions the copy
    /// - a lock blocked writes during the last copy, but that copy read only a part of the rows
    /// - an earlier deployment created the copy: since then, code may write to both tables
    /// - only migrations insert rows into the table
    "writes-lost-after-copy", Data, Error,
    {}
    statement = check,
}

/// How a table, or its rows, go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Going {
    Renamed,
    Dropped,
    Emptied,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for (table, going, range) in gone(context) {
        if table.visibility != Visibility::Existing {
            continue;
        }
        let copies: Vec<_> =
            context.before.copies_of(table.oid).filter(|(_, copied)| is_stale(context, copied)).collect();
        if copies.is_empty() {
            continue;
        }
        let end = ahead(context, &table.name, Until::EndOfMigration);
        let successor = end.relation_named(&table.schema, &table.name);
        let has_name = |copy: &Relation| going != Going::Emptied && successor == Some(copy.oid);
        let replaces =
            |copy: &Relation| has_name(copy) || successor.is_some_and(|new| is_copied_back(context, &end, copy, new));
        for (copy, copied) in copies {
            let is_swap = replaces(copy);
            if is_swap || copied.deployment == context.deployment() {
                report(context, reporter, (table, going, range), (copy, copied), is_swap);
            }
        }
    }
}

/// Whether later statements copy the rows back to the table that then has the name.
fn is_copied_back(context: &RuleContext<'_>, end: &Catalog, copy: &Relation, new: Oid) -> bool {
    let back = |catalog: &Catalog| {
        catalog.copies_of(copy.oid).find(|(into, _)| into.oid == new).map(|(_, copied)| copied.place)
    };
    let place = back(end);
    place.is_some() && place != back(context.before)
}

/// The tables that the statement takes from others, or whose rows it deletes.
pub(super) fn gone<'c>(context: &RuleContext<'c>) -> Vec<(&'c RelationName, Going, TextRange)> {
    let effects = context.effects;
    let renamed = effects.renames.iter().filter_map(|renaming| match &renaming.object {
        RenamedObject::Relation { before, .. } => Some((before, Going::Renamed, renaming.range)),
        _ => None,
    });
    let dropped = effects.removals.iter().filter_map(|removal| match &removal.object {
        RemovedObject::Relation(relation) => Some((relation, Going::Dropped, removal.range)),
        _ => None,
    });
    let truncated = effects.truncates.iter().map(|table| (table, Going::Emptied, context.statement.range));
    let deleted = effects
        .data_changes
        .iter()
        .filter(|change| change.kind == DataChangeKind::Delete && change.rows.is_whole() && !change.by_trigger);
    let deleted = deleted.map(|change| (&change.relation, Going::Emptied, change.range));
    let all = renamed.chain(dropped).chain(truncated).chain(deleted);
    all.filter(|(relation, ..)| relation.kind.is_table()).collect()
}

/// Whether others could write to the table after the copy.
fn is_stale(context: &RuleContext<'_>, copied: &Copied) -> bool {
    !(copied.writes_blocked && copied.is_whole && is_same_transaction(context, copied))
}

fn is_same_transaction(context: &RuleContext<'_>, copied: &Copied) -> bool {
    let is_same_statement = copied.place.file == context.file && copied.statement == context.outer();
    let number = context.session.block.as_ref().map(|block| block.number);
    is_same_statement || number == Some(copied.transaction)
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    (table, going, range): (&RelationName, Going, TextRange),
    (copy, copied): (&Relation, &Copied),
    is_swap: bool,
) {
    let (name, new) = (&table.name, &copy.name);
    let moment = match going {
        Going::Renamed => "rename",
        Going::Dropped => "DROP",
        Going::Emptied => "removal of the old rows",
    };
    let message = format!(
        "writes to `{name}` by other sessions between the copy to `{new}` and this {moment} are lost, because nothing \
         blocks these writes"
    );
    // The trigger would apply the removal to the copy.
    let and_drop = match going {
        Going::Emptied => {
            ". In the transaction that removes the old rows, first drop the \
                           trigger"
        }
        Going::Renamed | Going::Dropped => "",
    };
    let help = format!(
        "before you copy the rows, create a trigger on `{name}` that applies each INSERT, UPDATE and DELETE to `{new}` \
         as well{and_drop}. Or, if the table is small, run everything in one transaction that first blocks \
         writes:\n    LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE;",
        sql_name(context, table)
    );
    let finding = reporter.report(range, message).relation(table);
    let finding = finding.label_in(copied.place.file, copied.place.range, format!("the copy to `{new}`")).help(help);
    let assumption = match evidence_against(context, table, copy, copied, is_swap) {
        Some(because) => Assumption::WritesNotCopied { table: name.clone(), because },
        None => Assumption::InUse { table: name.clone() },
    };
    let severity = if is_swap { Severity::Error } else { Severity::Warning };
    finding.severity(severity).assuming(assumption).emit();
}

/// Evidence for writes that are not lost.
fn evidence_against(
    context: &RuleContext<'_>,
    table: &RelationName,
    copy: &Relation,
    copied: &Copied,
    is_swap: bool,
) -> Option<CopyEvidence> {
    let old = context.before.get_relation(table.oid);
    let is_listed = old.is_some_and(|old| old.birth.is_listed_before(context.deployment()));
    if old.is_some_and(|old| copies_by_trigger(context.before, old, copy)) {
        Some(CopyEvidence::Trigger)
    } else if copied.writes_blocked && is_same_transaction(context, copied) {
        Some(CopyEvidence::LaterCopy)
    } else if copied.deployment != context.deployment() {
        Some(CopyEvidence::EarlierDeployment)
    } else if !is_swap {
        Some(CopyEvidence::MovedElsewhere)
    } else if is_listed {
        Some(CopyEvidence::Listed)
    } else {
        None
    }
}

/// Whether the code of a trigger of the table mentions the copy.
fn copies_by_trigger(catalog: &Catalog, table: &Relation, copy: &Relation) -> bool {
    table.triggers.iter().any(|trigger| match catalog.get_function(trigger.function).map(|function| &*function.body) {
        Some(FunctionBody::Source { text, .. }) => may_name(text, &copy.name),
        _ => true,
    })
}
