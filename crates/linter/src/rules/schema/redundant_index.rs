//! Indexes that another one replaces.

use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use crate::rules::text::qualified;
use pgvet_model::catalog::{Index, Relation, RelationKind};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::IndexElement;

declare_rule! {
    /// An index whose columns are the first columns of another index of its table, so that the other index can replace
    /// it.
    ///
    /// ## Why it matters
    ///
    /// Every query that can use the shorter index can also use the longer one, although the longer one is somewhat
    /// larger. The shorter index makes every write slower, and takes disk space and cache for entries that the longer
    /// one also has.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, placed_at timestamptz);
    /// CREATE INDEX orders_user_placed ON orders (user_id, placed_at);
    /// CREATE INDEX orders_user ON orders (user_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint, placed_at timestamptz);
    /// CREATE INDEX orders_user_placed ON orders (user_id, placed_at);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - indexes that differ in method, collation, operator class, sort order or `WHERE`
    /// - indexes other than B-trees, unless both have the same columns
    /// - a shorter index that includes a column (`INCLUDE`) which the longer one lacks
    /// - indexes of constraints
    /// - indexes of partitions: the index of the parent is reported
    /// - a shorter index that is unique, unless the other is unique on the same columns
    /// - a pair of indexes, if a later migration drops one of them
    ///
    /// The finding is at the statement that creates the later of the two indexes. The message names the index to drop.
    ///
    /// ## Other linters
    ///
    /// splinter finds only indexes that are equal. pg-migration-lint, like pgvet, looks at the indexes after the last
    /// migration.
    "redundant-index", Schema, Warning,
    { recommended: false, sources: &["splinter/duplicate_index", "pg-migration-lint/PGM508", "pglinter/B002"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Declared::Index(create) = context.declared else { return };
    let Some(index) = context.relation.index() else { return };
    let Some(table) = context.catalog.get_relation(index.table).filter(|table| !table.is_temporary()) else { return };
    let older = table.indexes.iter().filter(|oid| **oid < context.relation.oid);
    let older: Vec<&Relation> = older.filter_map(|oid| context.catalog.get_relation(*oid)).map(|it| &**it).collect();
    let found = older.iter().find_map(|other| {
        let other_index = other.index()?;
        if is_prefix(index, other_index) {
            Some((context.relation, *other))
        } else {
            is_prefix(other_index, index).then_some((*other, context.relation))
        }
    });
    let Some((redundant, kept)) = found else { return };
    let is_constraint = table.constraints.iter().any(|constraint| constraint.index() == Some(redundant.oid));
    if is_constraint {
        return;
    }
    let range = create.name.as_ref().map_or(create.keyword, |name| name.range);
    let message =
        format!("`{}` is redundant: every query that can use this index can also use `{}`", redundant.name, kept.name);
    let name = qualified(&redundant.schema, &redundant.name);
    let help = if redundant.oid == context.relation.oid {
        "remove this CREATE INDEX".to_owned()
    } else if redundant.kind == RelationKind::PartitionedIndex {
        format!(
            "create `{0}`, then set a lock_timeout and drop `{1}` (PostgreSQL refuses CONCURRENTLY for the index of a \
             partitioned table):\n    DROP INDEX {name};",
            kept.name, redundant.name
        )
    } else {
        format!(
            "create `{0}`, then drop `{1}` concurrently, outside a transaction:\n    DROP INDEX CONCURRENTLY {name};",
            kept.name, redundant.name
        )
    };
    reporter.report(range, message).relation(&RelationName::existing(table)).help(help).emit();
}

/// Whether the second index can do everything that the first does.
fn is_prefix(short: &Index, long: &Index) -> bool {
    let same_rows = match (&short.predicate, &long.predicate) {
        (None, None) => true,
        (Some(ours), Some(theirs)) => ours.is_same(theirs),
        _ => false,
    };
    let same_keys = short.elements.len() <= long.elements.len()
        && std::iter::zip(short.elements.iter(), long.elements.iter()).all(|(ours, theirs)| is_same(ours, theirs));
    let equal_length = short.elements.len() == long.elements.len();
    // Only a B-tree can be used by its first columns alone.
    let usable = short.method == long.method && (long.method == "btree" || equal_length);
    let enforced =
        !short.unique || (long.unique && equal_length && short.nulls_not_distinct == long.nulls_not_distinct);
    let included = short.including.iter().all(|column| {
        long.including.contains(column) || long.elements.iter().any(|element| element.key.as_column() == Some(column))
    });
    let both_valid = short.valid && long.valid && !short.exclusion && !long.exclusion;
    same_rows && same_keys && usable && enforced && included && both_valid && short.parent.is_none()
}

fn is_same(ours: &IndexElement, theirs: &IndexElement) -> bool {
    let order = |element: &IndexElement| (element.descending, element.nulls_first.unwrap_or(element.descending));
    ours.key.is_same(&theirs.key)
        && ours.collation == theirs.collation
        && ours.operator_class == theirs.operator_class
        && order(ours) == order(theirs)
}
