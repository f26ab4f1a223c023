//! Tables without a primary key.

use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::catalog::{Catalog, Relation, RelationKind};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::Persistence;

declare_rule! {
    /// A table without a primary key after the last migration.
    ///
    /// ## Why it matters
    ///
    /// Identical rows cannot be told apart, so you cannot update or delete just one of them. If the table is published
    /// for logical replication, `UPDATE` and `DELETE` on it fail unless it has another replica identity. Tools that
    /// change data in batches, repack tables or compare databases need a key, too.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE events (payload jsonb);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that gets a primary key, or is dropped, in a later migration
    /// - a table with a unique index over columns that are all `NOT NULL`
    /// - temporary and foreign tables, partitions and inheritance children
    /// - tables whose constraints allow at most one row
    ///
    /// ## Other linters
    ///
    /// splinter also reports tables that have a unique index instead of a primary key. pg-migration-lint, like pgvet,
    /// looks at the table after the last migration.
    "missing-primary-key", Schema, Warning,
    { recommended: false, sources: &["splinter/no_primary_key", "pg-migration-lint/PGM502", "pglinter/B001"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Declared::Table(create) = context.declared else { return };
    let table = context.relation;
    let is_table = matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable);
    let is_own = table.parents.is_empty() && table.persistence != Persistence::Temporary && table.of_type.is_none();
    let is_known = table.known && !table.unknown_parts;
    if !is_table || !is_own || !is_known || table.primary_key().is_some() || has_key_index(context.catalog, table) {
        return;
    }
    if context.catalog.has_one_row(table) {
        return;
    }
    let message = format!("`{}` has no primary key, so identical rows cannot be told apart", table.name);
    let help = "declare a primary key on the columns that identify a row, or add an identity column as the primary key";
    reporter.report(create.name.range(), message).relation(&RelationName::existing(table)).help(help).emit();
}

/// A unique index over columns that cannot be null.
fn has_key_index(catalog: &Catalog, table: &Relation) -> bool {
    let indexes = table.indexes.iter().filter_map(|oid| catalog.get_relation(*oid)?.index());
    indexes.filter(|index| index.unique && index.valid && index.predicate.is_none()).any(|index| {
        let columns = index.plain_columns().unwrap_or_default();
        let not_null = |column: &smol_str::SmolStr| table.column(column).is_some_and(|column| column.not_null);
        !columns.is_empty() && columns.iter().all(not_null)
    })
}
