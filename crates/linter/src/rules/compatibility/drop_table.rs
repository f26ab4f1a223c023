//! DROP of a table or view that deployed code may use.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::dropped_column::whole_copies;
use crate::rules::deployment::dropped_relation::{Loss, Written, lost};
use crate::rules::deployment::dropped_together::{cascaded, described, listed, publications};
use crate::rules::deployment::other_statements::{is_relation_named_here, lacking};
use crate::rules::deployment::phases::released;
use crate::rules::deployment::users;
use crate::rules::text::enumerate;
use pgvet_model::catalog::{Relation, RelationKind};
use pgvet_model::effect::RelationName;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::fmt::Write;

declare_rule! {
    /// Dropping an existing table or view.
    ///
    /// ## Why it matters
    ///
    /// Queries of deployed code that still use the table or view fail. If the deployment is rolled back, queries of the
    /// older code fail as well. The rows of a table are lost: only a backup can restore them. The finding lists the
    /// objects that `CASCADE` also drops.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE coupons (id bigint PRIMARY KEY);
    /// -- migration:
    /// DROP TABLE coupons;
    /// ```
    ///
    /// Use instead:
    ///
    /// First deploy code that no longer uses the table, then run this migration in the next release. If the same
    /// transaction creates a table or view with the same name, columns and rows, deployed code can still read it. Grant
    /// the privileges on it again, because they are dropped with the old table:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE coupons (id bigint PRIMARY KEY, code text);
    /// CREATE TABLE vouchers (id bigint PRIMARY KEY, code text, kind text);
    /// -- migration:
    /// BEGIN;
    /// DROP TABLE coupons;
    /// CREATE VIEW coupons AS SELECT id, code FROM vouchers WHERE kind = 'coupon';
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables that the same migration created, and temporary tables
    /// - partitions, which `drop-partition-locks-parent` reports
    /// - a table that is replaced: when the transaction commits, another table or view has its name and all of its
    ///   columns. If the replacement is a new table, rows must have been inserted into it.
    /// - a view that the same migration creates again with all of its columns. A materialized view must be created
    ///   again in the same transaction: otherwise deployed code cannot read it until it exists again.
    /// - `DROP TABLE IF EXISTS` of a table that no migration creates
    ///
    /// ## Confidence
    ///
    /// If the same migration renamed the table and copied all of its rows, the confidence is `possible`, and the
    /// finding is shown only with `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [scenic #386](https://github.com/scenic-views/scenic/issues/386): dropping large materialized views and
    ///   creating them again caused minutes of downtime
    /// - [django-pgviews #27](https://github.com/mypebble/django-pgviews/issues/27): a view was dropped and created
    ///   again in separate transactions, and queries failed in production
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every `DROP TABLE`. pgvet does not report tables that the same migration creates or
    /// replaces. pgvet also reports views, and checks `DO` blocks and functions that the migration calls.
    "drop-table", Compatibility, Warning,
    {
        sources: &[
            "squawk/ban-drop-table", "pgls/banDropTable", "atlas/DS102", "pg-migration-lint/PGM201",
            "strong_migrations/drop_table"],
        yields_to: &[&super::contract_before_release::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let written = Written::of(context);
    // Objects that CASCADE drops are those of the whole statement.
    let mut along: FxHashMap<TextRange, Option<String>> = FxHashMap::default();
    for removal in &context.effects.removals {
        if let Some((relation, loss)) = lost(context, removal) {
            let along = along.entry(removal.range).or_insert_with_key(|range| {
                listed(cascaded(context.effects, *range).into_iter().map(described).collect())
            });
            report(
                context,
                reporter,
                written.place(context, removal.range, relation),
                relation,
                &loss,
                along.as_deref(),
            );
        }
    }
}

/// Whether the deployment has copied all rows and columns of a table to one that stays.
fn is_archived(context: &RuleContext<'_>, table: &RelationName) -> bool {
    let Some(old) = context.before.get_relation(table.oid) else { return false };
    let has_all = |copy: &Relation| old.columns.iter().all(|column| copy.column(&column.name).is_some());
    old.known && whole_copies(context, table).any(|copy| !copy.is_temporary() && has_all(copy))
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    relation: &RelationName,
    loss: &Loss,
    along: Option<&str>,
) {
    let (name, kind) = (&relation.name, relation.kind.word());
    let has_rows = relation.kind.is_table() && relation.kind != RelationKind::ForeignTable;
    // Deployed code does not know the name.
    let is_renamed = is_relation_named_here(context, relation);
    let mut message = match loss {
        Loss::Gone if is_renamed && has_rows => {
            format!("dropping {kind} `{name}`, which this migration renamed, deletes the rows that were not copied")
        }
        Loss::Gone if is_renamed => {
            format!(
                "dropping {kind} `{name}`, which this migration renamed, breaks deployed code that still uses the old \
                 name"
            )
        }
        Loss::Gone => {
            let data = if has_rows && !is_archived(context, relation) { "deletes its data and " } else { "" };
            format!("dropping {kind} `{name}` {data}breaks deployed code that still uses the {kind}")
        }
        Loss::Lacks { columns, emptied } => {
            let lacks = lacking(columns);
            if *emptied {
                format!("dropping {kind} `{name}` and creating it again loses its rows, and the new {kind} {lacks}")
            } else {
                format!("the relation that replaces {kind} `{name}` {lacks}")
            }
        }
        Loss::Emptied => format!("dropping {kind} `{name}` and creating it again loses its rows"),
        Loss::Missing => format!(
            "deployed code that reads {kind} `{name}` fails until a later statement has created and filled it again"
        ),
    };
    if let Some(along) = along {
        message = format!("{message}; CASCADE also drops {along}");
    }
    let finding = reporter.report(range, message).relation(relation);
    let is_copied = context.before.copies_of(relation.oid).any(|(_, copied)| copied.is_whole);
    let copied = (is_renamed && is_copied).then(|| Assumption::NeededThoughCopied { table: name.clone() });
    let is_about_code = matches!(loss, Loss::Gone | Loss::Lacks { emptied: false, .. });
    let finding = finding
        .assuming(copied)
        .assuming(is_about_code.then(|| released(context.migration, context.settings)).flatten());
    let (finding, users) = users::label_relation(finding, context, relation);
    let mut help = match loss {
        Loss::Gone if is_renamed && has_rows => "keep the table until you have checked that the copy is \
                                                 complete"
            .to_owned(),
        Loss::Gone => {
            let first = if users > 0 {
                format!("first change the database functions and deploy the code so that neither uses the {kind}")
            } else {
                format!("first deploy code that does not use the {kind}")
            };
            format!("{first}, then drop the {kind} in the next release")
        }
        Loss::Lacks { columns, emptied } => {
            let rows = if *emptied { ", and copy the rows before you drop the table" } else { "" };
            let names = enumerate(columns.iter().map(SmolStr::as_str));
            let them = if columns.len() == 1 { "it" } else { "them" };
            format!("keep {names} until no deployed code uses {them}{rows}")
        }
        Loss::Missing => {
            "create the new view under another name, then swap the names in one short transaction".to_owned()
        }
        Loss::Emptied => "change the table with ALTER TABLE, or copy the rows before you drop it".to_owned(),
    };
    let published = publications(context.before, relation);
    if !published.is_empty() && relation.kind.is_table() {
        let names = enumerate(published.iter().map(String::as_str));
        let _ = write!(help, "\nthe table is published by {names}: subscribers keep their copy of the table");
    }
    finding.help(help).emit();
}
