//! Foreign keys without an index on the referencing side.

use super::columns::foreign_key;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use crate::rules::advice::list;
use crate::rules::text::{enumerate, identifier, qualified};
use pgvet_model::catalog::{Catalog, Relation, RelationKind, index_name_addition};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{Persistence, ReferentialAction};
use smol_str::SmolStr;

declare_rule! {
    /// A foreign key without an index that begins with its columns.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL does not create an index on the referencing columns. Every `DELETE` of a referenced row, and every
    /// change of its key, reads the whole referencing table while the referenced row is locked. A statement that
    /// deletes many referenced rows reads the table once for each of them. Joins over the foreign key cannot use an
    /// index on these columns either.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users);
    /// CREATE INDEX orders_user_id ON orders (user_id);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a foreign key, if an index begins with its columns, in any order, after the last migration. The index may
    ///   belong to a primary key or a unique constraint. A partial index is accepted only if its condition is that the
    ///   columns are not null.
    /// - temporary tables
    /// - foreign keys that a later migration drops
    ///
    /// ## Other linters
    ///
    /// eugene checks a database after the migration. pg-migration-lint does not accept unique constraints.
    "unindexed-foreign-key", Schema, Warning,
    {
        recommended: false,
        sources: &["eugene/E15", "splinter/unindexed_foreign_keys", "pg-migration-lint/PGM501", "pglinter/B003"],
    }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((written, key)) = foreign_key(context) else { return };
    let (table, columns) = (context.relation, &key.columns);
    if table.persistence == Persistence::Temporary
        || !table.known
        || context.catalog.index_for_foreign_key(table, columns).is_some()
    {
        return;
    }
    let referenced = context.catalog.get_relation(key.referenced).map_or("it", |referenced| &referenced.name);
    let what = match key.on_delete {
        ReferentialAction::Cascade => "rows to delete",
        ReferentialAction::SetNull | ReferentialAction::SetDefault => "rows to update",
        _ => "rows that refer to it",
    };
    let message = format!(
        "deleting a row of `{referenced}` reads all of `{0}` to find {what}, because no index on `{0}` begins with {1}",
        table.name,
        enumerate(columns.iter().map(SmolStr::as_str))
    );
    let help = help(context.catalog, table, columns);
    reporter.report(written.keyword, message).relation(&RelationName::existing(table)).help(help).emit();
}

fn help(catalog: &Catalog, table: &Relation, columns: &[SmolStr]) -> String {
    let (name, list) = (qualified(&table.schema, &table.name), list(columns));
    match partitions(catalog, table).as_slice() {
        _ if table.kind != RelationKind::PartitionedTable => {
            format!(
                "build an index concurrently, outside a transaction:\n    CREATE INDEX CONCURRENTLY ON {name} \
                     ({list});"
            )
        }
        [] => format!("add an index:\n    CREATE INDEX ON {name} ({list});"),
        [first, others @ ..] => {
            let (upper, lower) = (index_name(catalog, table, columns), index_name(catalog, first, columns));
            let partition = qualified(&first.schema, &first.name);
            let more = match others.len() {
                0 => String::new(),
                1 => "\ndo the same for the other partition".to_owned(),
                more => format!("\ndo the same for the other {more} partitions"),
            };
            format!(
                "create the index ON ONLY `{}`, build an index concurrently on each partition (outside a \
                 transaction), and attach these indexes:\n    CREATE INDEX {} ON ONLY {name} ({list});\n    CREATE \
                 INDEX CONCURRENTLY {} ON {partition} ({list});\n    ALTER INDEX {} ATTACH PARTITION {};{more}",
                table.name,
                identifier(&upper),
                identifier(&lower),
                qualified(&table.schema, &upper),
                qualified(&first.schema, &lower),
            )
        }
    }
}

/// The partitions that contain rows, unless another partitioned table is between.
fn partitions<'c>(catalog: &'c Catalog, table: &Relation) -> Vec<&'c Relation> {
    let children = table.children.iter().filter_map(|oid| catalog.get_relation(*oid)).map(|child| &**child);
    children.filter(|child| child.kind == RelationKind::Table).collect()
}

/// The name that PostgreSQL would choose.
fn index_name(catalog: &Catalog, table: &Relation, columns: &[SmolStr]) -> SmolStr {
    let columns = index_name_addition(columns);
    catalog.choose_relation_name(&table.name, Some(&columns), "idx", &table.schema, false)
}
