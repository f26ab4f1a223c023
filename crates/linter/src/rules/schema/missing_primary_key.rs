//! Tables without a primary key.

use crate::ast::Persistence;
use crate::catalog::{Catalog, Relation};
use crate::declared::{DeclarationContext, Declared};
use crate::effect::{RelationKind, RelationName};
use crate::report::Reporter;
use crate::rule::declare_rule;

declare_rule! {
    /// A table is left without a primary key.
    ///
    /// ## Why it matters
    ///
    /// Rows that are equal cannot be told apart, so that none of them can be changed or deleted alone. Logical replication refuses
    /// `UPDATE` and `DELETE` on such a table, and tools that change data in batches, repack tables or compare databases need a key.
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
    /// Where a later migration adds the key or drops the table; where a unique index over columns that are all `NOT NULL` does the
    /// same; for temporary and foreign tables, partitions and children, and tables with a single row by their constraints.
    ///
    /// ## Other linters
    ///
    /// squawk's and splinter's rules do not count a unique index; pg-migration-lint replays the history as well.
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
    let message = format!("the rows of `{}` cannot be told apart: it has no primary key", table.name);
    let help = "declare the columns that identify a row as PRIMARY KEY, or add an identity column";
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
