//! Rows that are deleted although the copy of their table lacks them.

use super::writes_lost_after_copy::{Going, gone};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::catalog::{Copied, Omitted, Relation};
use pgvet_model::effect::{RelationName, Visibility};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A migration copies a part of the rows of a table, and then deletes all of them.
    ///
    /// ## Why it matters
    ///
    /// The rows that the copy does not have are lost. PostgreSQL gives no error: a condition, a join without a matching
    /// row, and `ON CONFLICT DO NOTHING` leave rows out silently.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE events (id bigint PRIMARY KEY, closed boolean);
    /// CREATE TABLE old_events (id bigint PRIMARY KEY, closed boolean);
    /// -- migration:
    /// INSERT INTO old_events SELECT * FROM events WHERE closed;
    /// DELETE FROM events;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE events (id bigint PRIMARY KEY, closed boolean);
    /// CREATE TABLE old_events (id bigint PRIMARY KEY, closed boolean);
    /// -- migration:
    /// INSERT INTO old_events SELECT * FROM events WHERE closed;
    /// DELETE FROM events WHERE closed;
    /// ```
    ///
    /// ## When it is reported
    ///
    /// A statement of the same deployment has copied rows of an older table together with a unique key, and then `DELETE`
    /// of all rows, `TRUNCATE` or `DROP TABLE` removes the rows. The copy has a condition, an inner join, or `ON CONFLICT
    /// DO NOTHING`.
    ///
    /// ## When it is not reported
    ///
    /// - a join in which a foreign key and `NOT NULL` guarantee a matching row
    /// - a condition that only excludes rows that the copy already has
    /// - another copy of the same deployment that has all rows
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`, in these cases:
    ///
    /// - the condition has a subquery, a variable or LIMIT
    /// - a condition selects the rows, and then the whole table is dropped
    /// - `ON CONFLICT DO NOTHING` omits the rows
    /// - several statements copy parts of the table
    "uncopied-rows-deleted", Data, Error,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for (table, going, range) in gone(context) {
        if table.visibility != Visibility::Existing || going == Going::Renamed {
            continue;
        }
        let copies = context.before.copies_of(table.oid);
        let copies: Vec<_> = copies.filter(|(_, copied)| copied.deployment == context.deployment()).collect();
        let has_all = |copied: &Copied| copied.is_whole && copied.omits.is_none();
        if copies.iter().any(|(_, copied)| has_all(copied)) {
            continue;
        }
        let parts: u32 = copies.iter().map(|(_, copied)| copied.parts).sum();
        for (copy, copied) in copies {
            if let Some(omitted) = &copied.omits {
                let is_doubtful = parts > 1 || is_doubtful(omitted, going);
                report(reporter, (table, going, range), (copy, copied, omitted), is_doubtful);
            }
        }
    }
}

/// Whether the copy may omit the rows on purpose.
fn is_doubtful(omitted: &Omitted, going: Going) -> bool {
    match omitted {
        Omitted::Excluded { plain } => !plain || going == Going::Dropped,
        Omitted::Unjoined { .. } => false,
        Omitted::Skipped => true,
    }
}

fn report(
    reporter: &mut Reporter<'_>,
    (table, going, range): (&RelationName, Going, TextRange),
    (copy, copied, omitted): (&Relation, &Copied, &Omitted),
    is_doubtful: bool,
) {
    let (name, new) = (&table.name, &copy.name);
    let which = match omitted {
        Omitted::Excluded { .. } => format!("the condition of the copy to `{new}` excludes"),
        Omitted::Unjoined { to } => format!("the copy to `{new}` omits because `{to}` has no matching row"),
        Omitted::Skipped => format!("the copy to `{new}` skips because of ON CONFLICT DO NOTHING"),
    };
    let message = format!("this also deletes the rows of `{name}` that {which}");
    let help = match (omitted, going) {
        (Omitted::Unjoined { .. }, _) => "copy these rows as well, for example with a LEFT JOIN",
        (_, Going::Emptied) => "delete only the rows that were copied, or copy all of them",
        _ => "copy all rows, or delete the others in a statement of their own, so that the loss is intended",
    };
    let finding = reporter.report(range, message).relation(table).help(help);
    let finding = finding.label_in(copied.place.file, copied.place.range, format!("the copy to `{new}`"));
    finding.assuming(is_doubtful.then(|| Assumption::NeededThoughOmitted { table: name.clone() })).emit();
}
