//! Columns that deployed code must fill and does not know.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::names::may_name;
use crate::rules::deployment::other_statements::{Until, added, ahead, any_later, earlier, is_column_made_here};
use crate::rules::deployment::phases::released;
use crate::rules::deployment::users::inserting_without;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Catalog, Column, Oid, Relation};
use pgvet_model::effect::{RelationName, Scan, ScanCause, Visibility};
use pgvet_syntax::ast::{AlterTableAction, Ast, ColumnDef, Firing, FunctionBody, LockMode, TriggerTiming};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use std::sync::Arc;

declare_rule! {
    /// A new column that is NOT NULL and has no default.
    ///
    /// ## Why it matters
    ///
    /// After the commit, each `INSERT` into the table by deployed code fails with a not-null violation, because
    /// deployed code does not know the column. `ADD COLUMN ... NOT NULL` without a default also fails at once if the
    /// table has rows.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// -- migration:
    /// ALTER TABLE users ADD COLUMN email text NOT NULL;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// -- migration:
    /// ALTER TABLE users ADD COLUMN email text NOT NULL DEFAULT '';
    /// ```
    ///
    /// As an alternative, add a nullable column, and deploy code that sets it. Fill the existing rows, and set
    /// `NOT NULL` in the next release.
    ///
    /// ## When it is not reported
    ///
    /// - tables that the same migration creates
    /// - columns with a default (including the default of a domain), identity columns and generated columns
    /// - a column that gets a default before the transaction commits
    /// - a column that a `BEFORE INSERT` trigger mentions
    ///
    /// ## Confidence
    ///
    /// `SET NOT NULL` and `DROP DEFAULT` are also reported for a column that the same deployment added. `DROP DEFAULT`
    /// is also reported for a column of the primary key. If `SET NOT NULL` or `DROP DEFAULT` changes another column
    /// that existed before the deployment, the confidence is `possible`, because deployed code may set that column. The
    /// finding is then shown only with `--confidence possible`. If a function of the database inserts rows without the
    /// column, the confidence stays `likely`, and the finding names the function.
    ///
    /// The confidence is also `possible` if the migration replaces a function that names the table and the column: that
    /// function, and not deployed code, may insert the rows. For `ADD COLUMN`, the function makes no difference,
    /// because existing rows make the statement fail in any case.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls only report `ADD COLUMN ... NOT NULL`. A column that is added, filled and made `NOT NULL` in one
    /// migration breaks deployed code in the same way.
    "required-column-without-default", Compatibility, Error,
    {
        sources: &[
            "squawk/adding-required-field", "pgls/addingRequiredField", "pg-migration-lint/PGM008", "atlas/MF103",
            "strong_migrations/add_column"],
        yields_to: &[&super::contract_before_release::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let mut tables: Vec<(&RelationName, TextRange)> = Vec::new();
    let mut seen: FxHashSet<Oid> = FxHashSet::default();
    for lock in &context.effects.locks {
        let table = &lock.relation;
        let is_old = table.kind.is_table() && table.visibility == Visibility::Existing;
        if is_old && lock.mode == LockMode::AccessExclusive && seen.insert(table.oid) {
            tables.push((table, lock.range));
        }
    }
    for (table, range) in tables {
        let Some(after) = context.after.get_relation(table.oid) else { continue };
        let before = context.before.get_relation(table.oid);
        if before.is_some_and(|before| Arc::ptr_eq(before, after)) {
            continue;
        }
        let required = |column: &Column| column.inherited_from == 0 && is_required(column);
        for (at, column) in after.columns.iter().enumerate().filter(|(_, column)| required(column)) {
            let old = before.and_then(|before| before.column_near(at, &column.name));
            let change = match old {
                None if is_added(context, before, after, column) => Change::Added,
                None => continue,
                Some(old) if is_required(old) => continue,
                Some(old) if is_new(context, table, old) => Change::RequiredNow,
                Some(old) if had_key_default(context.before, table.oid, old) => Change::KeyDefaultDropped,
                Some(_) => Change::OlderRequiredNow,
            };
            if !is_filled(context, after, table.oid, &column.name, change) {
                report(context, reporter, range, table, &column.name, change);
            }
        }
    }
}

/// Number of functions that a finding names.
const SHOWN: usize = 4;

/// How a column came to need a value from every `INSERT`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The statement adds it.
    Added,
    /// An earlier statement of the deployment added it; it was nullable or had a default.
    RequiredNow,
    /// Deployed code knows the column, and may not set it.
    OlderRequiredNow,
    /// The same, but the column is part of the primary key and its default gave new rows their keys.
    KeyDefaultDropped,
}

/// Whether new rows got their key from the default of the column.
fn had_key_default(before: &Catalog, table: Oid, column: &Column) -> bool {
    let Some(relation) = before.get_relation(table) else { return false };
    let has_default = column.default.is_some() || column.identity.is_some();
    has_default && relation.primary_key().is_some_and(|key| key.columns().contains(&column.name))
}

/// Whether the deployment added the column or gave it this name.
fn is_new(context: &RuleContext<'_>, table: &RelationName, column: &Column) -> bool {
    let deployment = context.deployment();
    deployment.is_some() && column.added_in == deployment || is_column_made_here(context, table, &column.name)
}

fn is_required(column: &Column) -> bool {
    column.not_null && column.default.is_none() && column.identity.is_none() && column.generated.is_none()
}

/// In ALTER TABLE a new column is one that it adds; elsewhere code may have added it.
fn is_added(context: &RuleContext<'_>, before: Option<&Arc<Relation>>, after: &Relation, column: &Column) -> bool {
    match context.ast {
        Ast::AlterTable(_) => add_column(context, &column.name).is_some(),
        Ast::Rename(_) => false,
        _ => before.is_none_or(|before| before.columns.len() < after.columns.len()),
    }
}

fn add_column<'a>(context: &RuleContext<'a>, name: &str) -> Option<&'a ColumnDef> {
    let Ast::AlterTable(alter) = context.ast else { return None };
    added(alter, name)
}

/// Whether the migration replaces a function that names table and column: the database may be what inserts the rows.
fn is_filled_by_code(context: &RuleContext<'_>, table: &str, column: &str) -> bool {
    let names_both = |ast: &Ast| {
        let Ast::CreateFunction(create) = ast else { return false };
        let FunctionBody::Source { text, .. } = &create.body else { return false };
        create.or_replace && may_name(text, table) && may_name(text, column)
    };
    earlier(context).any(names_both) || any_later(context, names_both)
}

/// Whether a default or identity gives the column a value at the end of the transaction.
fn is_filled(context: &RuleContext<'_>, table: &Relation, oid: Oid, column: &str, change: Change) -> bool {
    // Between statements that replace the default of a key, few rows are inserted.
    let until = if change == Change::KeyDefaultDropped { Until::EndOfMigration } else { Until::Commit };
    let end = ahead(context, column, until);
    let still = end.get_relation(oid).and_then(|table| table.column(column));
    !still.is_some_and(|column| is_required(column) && !has_domain_default(&end, column))
        || change != Change::KeyDefaultDropped
            && end.get_relation(oid).is_some_and(|table| end.sequence_of(table, column).is_some())
        || has_trigger(&end, end.get_relation(oid).map_or(table, |table| table), column)
}

fn has_domain_default(catalog: &Catalog, column: &Column) -> bool {
    let definition = catalog.get_type(column.sql_type.oid);
    definition.is_some_and(
        |definition| matches!(&definition.kind, pgvet_model::catalog::TypeKind::Domain(domain) if domain.default.is_some()),
    )
}

/// Whether a trigger may fill the column of every row before it is written.
fn has_trigger(catalog: &Catalog, table: &Relation, column: &str) -> bool {
    let mut fills = table.triggers.iter().filter(|trigger| {
        trigger.timing == TriggerTiming::Before
            && trigger.for_each_row
            && trigger.events.insert
            && matches!(trigger.firing, Firing::Enable | Firing::EnableAlways)
    });
    fills.any(|trigger| match catalog.get_function(trigger.function).map(|function| &*function.body) {
        Some(FunctionBody::Source { text, .. }) => may_name(text, column),
        _ => true,
    })
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    table: &RelationName,
    column: &str,
    change: Change,
) {
    let (name, place) = (&table.name, place(context, column).unwrap_or(range));
    let message = match change {
        Change::Added => {
            let refused =
                if is_emptied(context, table) { "" } else { ", and this statement itself fails if the table has rows" };
            format!("INSERTs into `{name}` by deployed code fail because they do not set `{column}`{refused}")
        }
        Change::RequiredNow => format!(
            "INSERTs into `{name}` by deployed code fail after this statement, because they do not set `{column}`, a \
             column that is new in this deployment"
        ),
        Change::OlderRequiredNow | Change::KeyDefaultDropped => {
            format!("INSERTs into `{name}` by deployed code fail after this statement if they do not set `{column}`")
        }
    };
    let help = help(context, table, column, change);
    let finding = reporter.report(place, message).relation(table).help(help);
    // Rows that exist refuse it, whatever code runs.
    if change == Change::Added {
        return finding.emit();
    }
    let broken = inserting_without(context, table, column);
    let may_be_set = change == Change::OlderRequiredNow || is_filled_by_code(context, &table.name, column);
    let omitted =
        (broken.is_empty() && may_be_set).then(|| Assumption::LeftOut { table: name.clone(), column: column.into() });
    let mut finding = finding.assuming(omitted).assuming(released(context.migration, context.settings));
    for function in broken.iter().take(SHOWN) {
        if let Some(definition) = &function.defined_at {
            let message = format!("{} inserts rows without `{column}`", function.display_name());
            finding = finding.label_in(definition.file, definition.name, message);
        }
    }
    finding.emit();
}

/// Whether this transaction has removed all rows of the table.
fn is_emptied(context: &RuleContext<'_>, table: &RelationName) -> bool {
    let emptied = context.before.get_relation(table.oid).and_then(|relation| relation.birth.emptied);
    let block = context.session.block.as_ref();
    emptied.is_some_and(|emptied| block.is_some_and(|block| block.number == emptied.transaction))
}

fn help(context: &RuleContext<'_>, table: &RelationName, column: &str, change: Change) -> String {
    match (change, is_unique(context.after, table.oid, column)) {
        // Every row would get the same value.
        (Change::Added, true) => {
            "add the column without NOT NULL and without its key (UNIQUE or PRIMARY KEY), deploy code that sets it, \
             fill the existing rows, and add both in the next release"
                .to_owned()
        }
        (Change::Added, false) => {
            "give the column a constant DEFAULT; or add it without NOT NULL, deploy code that sets it, fill the \
             existing rows, and add NOT NULL in the next release"
                .to_owned()
        }
        (Change::KeyDefaultDropped, _) => {
            "first deploy code that sets the column, or give the column another default in the same transaction"
                .to_owned()
        }
        (Change::RequiredNow | Change::OlderRequiredNow, is_unique) => {
            let cost = if scan_of(context, column).is_some() {
                "\nadding NOT NULL reads the whole table under ACCESS EXCLUSIVE, and blocks all reads and writes"
            } else {
                ""
            };
            let first =
                if change == Change::RequiredNow { "leave the column nullable in this release, " } else { "first " };
            let steps = format!(
                "{first}deploy code that sets the column, fill the rows that have no value, and add NOT NULL in the \
                 next release{cost}"
            );
            if is_unique {
                return steps;
            }
            format!(
                "before this statement, set a default:\n    ALTER TABLE {} ALTER COLUMN {} SET DEFAULT ...;\n\
                 if no default fits, {steps}",
                sql_name(context, table),
                identifier(column)
            )
        }
    }
}

/// Whether a unique constraint forbids equal values in the column.
fn is_unique(catalog: &Catalog, table: Oid, column: &str) -> bool {
    let indexes = catalog.get_relation(table).into_iter().flat_map(|table| &table.indexes);
    indexes.filter_map(|oid| catalog.get_relation(*oid)?.index()).any(|index| {
        let only = matches!(index.plain_columns().as_deref(), Some([only]) if only == column);
        index.unique && only
    })
}

/// The read of the table that SET NOT NULL needs.
fn scan_of<'c>(context: &RuleContext<'c>, column: &str) -> Option<&'c Scan> {
    let of_column = |scan: &&Scan| matches!(&scan.cause, ScanCause::NotNull { column: scanned } if scanned == column);
    context.effects.scans.iter().find(of_column)
}

/// The column's name in ALTER TABLE; of SET NOT NULL the place of the scan, for it is one problem.
fn place(context: &RuleContext<'_>, column: &str) -> Option<TextRange> {
    let Ast::AlterTable(alter) = context.ast else { return None };
    if let Some(added) = added(alter, column) {
        return Some(added.name.range);
    }
    if let Some(scan) = scan_of(context, column) {
        return Some(scan.range);
    }
    alter.commands.iter().find_map(|command| match &command.action {
        AlterTableAction::SetNotNull { column: set } | AlterTableAction::DropDefault { column: set }
            if set.text == column =>
        {
            Some(set.range)
        }
        _ => None,
    })
}
