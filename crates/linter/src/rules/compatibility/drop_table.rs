//! DROP of a table or view that deployed code may use.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::dropped_together::{cascaded, described, is_queried, listed, publications};
use crate::rules::deployment::other_statements::{
    Successor, Until, ahead_of_maker, is_new_and_empty, is_relation_named_here, means, successor,
};
use crate::rules::deployment::users;
use crate::rules::text::enumerate;
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{Evidence, RelationName, Removal, RemovalReason, RemovedObject, Visibility};
use pgvet_syntax::ast::{Ast, ObjectName};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use std::fmt::Write;

declare_rule! {
    /// An existing table or view is dropped.
    ///
    /// ## Why it matters
    ///
    /// Every query of the deployed code, and of the code that a rollback of the deployment restores, fails if it still
    /// uses the table or view. The rows of a table are lost: only a backup can restore them. Objects that `CASCADE`
    /// also drops are listed.
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
    /// First deploy code that no longer uses the table, then run this migration with the next release. A
    /// table that is replaced in the same transaction by a relation with all of its columns breaks nothing:
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
    /// - a table that is replaced: when the transaction commits, another relation has its name and all of its columns
    ///   and, if that is a new table, rows that were inserted
    /// - a view that the same migration creates again with all of its columns, unless it is a materialized view that
    ///   another transaction creates again, after running its query
    /// - `IF EXISTS` of a table that the migrations do not show
    ///
    /// If the same migration renamed the table and copied all of its rows, the confidence is `possible`, and the finding is
    /// shown only with `--confidence possible`.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every `DROP TABLE`. pgvet does not report tables that the same migration creates or
    /// replaces. It also reports views, and looks into `DO` blocks and functions that the migration calls.
    "drop-table", Compatibility, Warning,
    {
        sources: &[
            "squawk/ban-drop-table", "pgls/banDropTable", "atlas/DS102", "pg-migration-lint/PGM201",
            "strong_migrations/drop_table"],
    }
    statement = check,
}

/// What becomes of a table that is dropped.
pub(crate) enum Loss {
    /// Nothing has its name.
    Gone,
    /// What has its name lacks a column.
    Lacks(String),
    /// A new table has its name, and no rows.
    Emptied,
    /// A materialized view that a later transaction creates again.
    Missing,
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

/// The existing table or view that a removal takes from deployed code.
pub(crate) fn lost<'c>(context: &RuleContext<'c>, removal: &'c Removal) -> Option<(&'c RelationName, Loss)> {
    let RemovedObject::Relation(relation) = &removal.object else { return None };
    let is_meant = removal.reason == RemovalReason::Named && is_queried(relation.kind);
    if !is_meant || relation.visibility != Visibility::Existing {
        return None;
    }
    let Some(before) = context.before.get_relation(relation.oid) else {
        let is_sure = match context.ast {
            _ if context.evidence == Evidence::Observed => true,
            Ast::Drop(drop) => !drop.if_exists,
            _ => false,
        };
        return is_sure.then_some((relation, Loss::Gone));
    };
    if before.is_partition() {
        return None;
    }
    let is_table = relation.kind.is_table();
    let until = if is_table { Until::Commit } else { Until::EndOfMigration };
    let end = ahead_of_maker(context, &relation.name, until);
    // Where only a server has shown that it goes, the model still has it.
    if end.relation_named(&relation.schema, &relation.name) == Some(relation.oid) {
        return Some((relation, Loss::Gone));
    }
    match successor(&end, before, relation) {
        Successor::Nothing if is_table => {
            // Created again after the end of the transaction: the gap is short, but the rows do not come back.
            let later = ahead_of_maker(context, &relation.name, Until::EndOfMigration);
            match successor(&later, before, relation) {
                Successor::Compatible(new) if !is_new_and_empty(context, &later, new) => None,
                Successor::Compatible(_) => Some((relation, Loss::Emptied)),
                Successor::Lacks(column) => Some((relation, Loss::Lacks(column))),
                Successor::Nothing => Some((relation, Loss::Gone)),
            }
        }
        Successor::Nothing => Some((relation, Loss::Gone)),
        Successor::Lacks(column) => Some((relation, Loss::Lacks(column))),
        Successor::Compatible(_) if is_missing_meanwhile(context, relation) => Some((relation, Loss::Missing)),
        Successor::Compatible(new) if is_table && is_new_and_empty(context, &end, new) => {
            Some((relation, Loss::Emptied))
        }
        Successor::Compatible(_) => None,
    }
}

/// Whether a materialized view comes back only after the transaction: its query runs until then.
fn is_missing_meanwhile(context: &RuleContext<'_>, view: &RelationName) -> bool {
    view.kind == RelationKind::MaterializedView
        && ahead_of_maker(context, &view.name, Until::Commit).relation_named(&view.schema, &view.name).is_none()
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
                "dropping {kind} `{name}`, which this migration renamed, breaks deployed code that uses its old name"
            )
        }
        Loss::Gone => {
            let data = if has_rows { "deletes its data and " } else { "" };
            format!("dropping {kind} `{name}` {data}breaks deployed code that still uses it")
        }
        Loss::Lacks(column) => {
            format!("the relation that replaces {kind} `{name}` has no column `{column}`, which deployed code may use")
        }
        Loss::Emptied => format!("dropping {kind} `{name}` and creating it again loses its rows"),
        Loss::Missing => format!(
            "dropping {kind} `{name}` breaks deployed code that reads it until a later statement has created and \
             filled the view again"
        ),
    };
    if let Some(along) = along {
        message = format!("{message}, and also drops {along}");
    }
    let finding = reporter.report(range, message).relation(relation);
    let is_copied = context.before.copies_of(relation.oid).any(|(_, copied)| copied.is_whole);
    let copied = (is_renamed && is_copied).then(|| Assumption::NeededThoughCopied { table: name.clone() });
    let finding = finding.assuming(copied);
    let (finding, users) = users::label(finding, context, &[name.as_str()], &[]);
    let mut help = match loss {
        Loss::Gone if is_renamed && has_rows => "keep the table until the copy is known to be complete".to_owned(),
        Loss::Gone => {
            let first = if users > 0 {
                format!("change the database functions that use the {kind}, deploy code that does not use it")
            } else {
                format!("first deploy code that does not use the {kind}")
            };
            format!("{first}, then drop it with the next release")
        }
        Loss::Lacks(column) => format!("keep `{column}` until no deployed code uses it"),
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

/// The names in a DROP statement, which may be thousands.
pub(crate) struct Written<'a> {
    objects: FxHashMap<&'a str, Vec<&'a ObjectName>>,
}

impl<'a> Written<'a> {
    pub(crate) fn of(context: &RuleContext<'a>) -> Self {
        let mut objects: FxHashMap<&str, Vec<&ObjectName>> = FxHashMap::default();
        if let Ast::Drop(drop) = context.ast {
            for object in &drop.objects {
                objects.entry(object.name.name.text.as_str()).or_default().push(&object.name);
            }
        }
        Self { objects }
    }

    /// The name of a dropped relation where the statement is a DROP, or else the range of its removal.
    pub(crate) fn place(&self, context: &RuleContext<'_>, range: TextRange, relation: &RelationName) -> TextRange {
        let mut named = self.objects.get(relation.name.as_str()).into_iter().flatten();
        named.find(|name| means(context, name, relation)).map_or(range, |name| name.range())
    }
}
