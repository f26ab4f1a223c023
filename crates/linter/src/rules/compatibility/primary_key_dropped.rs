//! Primary keys that a migration drops for good.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::text::join;
use pgvet_model::catalog::{Catalog, Relation, RelationKind};
use pgvet_model::effect::{RelationName, RemovalReason, RemovedObject, Visibility};
use smol_str::SmolStr;

declare_rule! {
    /// Dropping the primary key of an existing table without replacing it with another key.
    ///
    /// ## Why it matters
    ///
    /// After the commit, the table accepts several rows with the same key. If another statement drops `NOT NULL`, the
    /// table also accepts nulls. `INSERT ... ON CONFLICT` on these columns fails, and lookups by key read the whole
    /// table. If a publication includes the table, and the table has no other replica identity, `UPDATE` and `DELETE`
    /// fail.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// ALTER TABLE orders DROP CONSTRAINT orders_pkey;
    /// ```
    ///
    /// Use instead:
    ///
    /// Build the new key first, and replace the old one in one short transaction.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// CREATE UNIQUE INDEX orders_key ON orders (id);
    /// -- migration:
    /// SET lock_timeout = '2s';
    /// ALTER TABLE orders DROP CONSTRAINT orders_pkey, ADD CONSTRAINT orders_pkey PRIMARY KEY USING INDEX orders_key;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that has a primary key, or a unique index over columns that cannot be null, when the migration ends
    /// - tables that the same migration created, and tables or key columns that the migration drops
    ///
    /// ## Confidence
    ///
    /// If the table still has another unique index, the confidence is `possible`, and the finding is shown only with
    /// `--confidence possible`.
    ///
    /// ## Other linters
    ///
    /// pg-migration-lint reports a table without a primary key only at the statement that creates it.
    "primary-key-dropped", Compatibility, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for removal in context.effects.removals.iter().filter(|removal| removal.reason != RemovalReason::Part) {
        let RemovedObject::Constraint { table, constraint } = &removal.object else { continue };
        let before = context.before.get_relation(table.oid).filter(|_| table.visibility == Visibility::Existing);
        let key = before.and_then(|before| before.primary_key()).filter(|key| key.name == *constraint);
        let Some(columns) = key.map(|key| key.columns()) else { continue };
        let end = ahead(context, &table.name, Until::EndOfMigration);
        let Some(after) = end.get_relation(table.oid) else { continue };
        let has_columns = columns.iter().all(|column| after.column(column).is_some());
        if has_columns && after.primary_key().is_none() {
            report(reporter, (table, removal.range), columns, &end, after);
        }
    }
}

fn report(
    reporter: &mut Reporter<'_>,
    (table, range): (&RelationName, pgvet_syntax::source::TextRange),
    columns: &[SmolStr],
    end: &Catalog,
    after: &Relation,
) {
    let unique = || {
        let indexes = after.indexes.iter().filter_map(|oid| end.get_relation(*oid)?.index());
        indexes.filter(|index| index.unique && index.valid && index.predicate.is_none())
    };
    let cannot_be_null = |column: &SmolStr| after.column(column).is_some_and(|column| column.not_null);
    let is_key = |columns: Option<Vec<SmolStr>>| columns.is_some_and(|columns| columns.iter().all(cannot_be_null));
    if unique().any(|index| is_key(index.plain_columns())) {
        return;
    }
    let name = &table.name;
    let values = match columns {
        [column] => format!("the same `{column}`"),
        columns => format!("the same combination of {}", join_quoted(columns)),
    };
    let message = format!("without its primary key, `{name}` accepts several rows with {values}");
    let help = if table.kind == RelationKind::PartitionedTable {
        "if the table is to get another primary key, drop this one and add the other in one ALTER TABLE"
    } else {
        "if the table is to get another primary key, first build a unique index on its columns with CREATE UNIQUE INDEX \
         CONCURRENTLY. Then, in one ALTER TABLE, drop this key and add the other with USING INDEX"
    };
    let mut finding = reporter.report(range, message).relation(table).help(help);
    if unique().next().is_some() {
        finding = finding.assuming(Assumption::KeyNotReplaced { table: name.clone() });
    }
    finding.emit();
}

fn join_quoted(columns: &[SmolStr]) -> String {
    join(&columns.iter().map(|column| format!("`{column}`")).collect::<Vec<_>>())
}
