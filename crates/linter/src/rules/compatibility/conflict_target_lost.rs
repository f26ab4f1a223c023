//! Unique indexes that ON CONFLICT may name.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead, ahead_of_maker, earlier, is_relation_name_freed};
use crate::rules::deployment::users;
use crate::rules::text::enumerate;
use pgvet_model::catalog::{Catalog, Index, Oid, Relation, RelationKind};
use pgvet_model::effect::{RelationName, RemovalReason, RemovedObject};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// Dropping a unique index or constraint, if no other unique index on the same columns replaces it.
    ///
    /// ## Why it matters
    ///
    /// `INSERT ... ON CONFLICT (columns)` needs a unique index on exactly these columns. Without this index, the
    /// `INSERT` of deployed code fails. The `INSERT` also fails if the index has a `WHERE` clause that the `INSERT`
    /// does not repeat. The error is "there is no unique or exclusion constraint matching the ON CONFLICT
    /// specification".
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text, deleted_at timestamptz);
    /// CREATE UNIQUE INDEX users_email ON users (email);
    /// -- migration:
    /// DROP INDEX CONCURRENTLY users_email;
    /// CREATE UNIQUE INDEX CONCURRENTLY users_email_active ON users (email) WHERE deleted_at IS NULL;
    /// ```
    ///
    /// Use instead:
    ///
    /// Keep a unique index on the same columns, without `WHERE`. If the new index needs a `WHERE`, first deploy code
    /// that writes `ON CONFLICT (email) WHERE deleted_at IS NULL`. Drop the old index after that deployment.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// CREATE UNIQUE INDEX users_email ON users (email);
    /// CREATE UNIQUE INDEX users_email_2 ON users (email);
    /// -- migration:
    /// DROP INDEX CONCURRENTLY users_email;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - an index or constraint, if the table has another unique index without `WHERE` on the same columns, now or at
    ///   the end of the migration
    /// - an index that the same migration created, or whose table or columns the migration drops
    /// - an index over expressions
    /// - a `DEFERRABLE` constraint, because `ON CONFLICT` cannot use it
    /// - a table that the same migration has renamed, unless a view has the old name: `rename-table` reports the rename
    ///
    /// ## Incidents
    ///
    /// - [adcp #448](https://github.com/adcontextprotocol/adcp/pull/448): a migration created the unique index with a
    ///   `WHERE`, and each `INSERT ... ON CONFLICT` failed
    ///
    /// ## Other linters
    ///
    /// No other known linter looks at `ON CONFLICT`.
    "conflict-target-lost", Compatibility, Warning,
    { recommended: false }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for removal in context.effects.removals.iter().filter(|removal| removal.reason == RemovalReason::Named) {
        let index = match &removal.object {
            RemovedObject::Relation(relation) if relation.kind.is_index() => Some(relation.oid),
            RemovedObject::Constraint { table, constraint } => {
                let table = context.before.get_relation(table.oid);
                table.and_then(|table| table.constraint(constraint)?.index())
            }
            _ => None,
        };
        let Some(index) = index.and_then(|oid| context.before.get_relation(oid)) else { continue };
        report(context, reporter, removal.range, index);
    }
}

fn report(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange, dropped: &Relation) {
    let made_here = dropped.birth.is_of(context.deployment());
    let Some(index) = dropped.index().filter(|index| index.unique && index.predicate.is_none() && !made_here) else {
        return;
    };
    if is_deferrable(context.before, index.table, dropped.oid) {
        return;
    }
    let (Some(table), Some(columns)) = (context.after.get_relation(index.table), index.plain_columns()) else { return };
    let Some(known_as) = name_for_running_code(context, table) else { return };
    let end = ahead(context, &table.name, Until::EndOfMigration);
    if has_target(&end, index.table, &columns) {
        return;
    }
    let list = columns.join(", ");
    let message = format!(
        "without the unique index `{}`, deployed code that runs `INSERT INTO {known_as} ... ON CONFLICT ({list})` \
         fails",
        dropped.name
    );
    let partial = partial_indexes(&end, index.table, &columns);
    let help = if partial.is_empty() {
        let columns = enumerate(columns.iter().map(SmolStr::as_str));
        format!("first deploy code that does not use `ON CONFLICT ({list})`, or keep a unique index on {columns}")
    } else {
        let names = enumerate(partial.iter().map(String::as_str));
        format!(
            "{names} covers only some of the rows: first deploy code whose ON CONFLICT repeats the WHERE of the index"
        )
    };
    let finding = reporter.report(range, message).relation(&RelationName::existing(table));
    let (finding, _) = users::label(finding, context, &["conflict", &table.name], &[]);
    finding.help(help).emit();
}

/// The name under which deployed code can write the table: the old one if the migration renamed it and left a view.
fn name_for_running_code<'c>(context: &RuleContext<'c>, table: &'c Relation) -> Option<&'c SmolStr> {
    let renamed = earlier(context).find_map(|ast| match ast {
        Ast::Rename(rename) if rename.sub_name.is_none() && rename.new_name.text == table.name => Some(&rename.object),
        _ => None,
    });
    let Some(old) = renamed.filter(|_| !is_relation_name_freed(context, &table.schema, &table.name)) else {
        return Some(&table.name);
    };
    let end = ahead_of_maker(context, &old.name.text, Until::EndOfMigration);
    let left = end.relation_named(&table.schema, &old.name.text).map(|oid| end.relation(oid).kind);
    (left == Some(RelationKind::View)).then_some(&old.name.text)
}

/// PostgreSQL does not use the index of a DEFERRABLE constraint for ON CONFLICT.
///
/// Source: PostgreSQL 18, `src/backend/executor/execIndexing.c`, `ExecCheckIndexConstraints`.
fn is_deferrable(catalog: &Catalog, table: Oid, index: Oid) -> bool {
    let constraints = catalog.get_relation(table).into_iter().flat_map(|table| &table.constraints);
    constraints.filter(|constraint| constraint.index() == Some(index)).any(|constraint| constraint.deferrable)
}

/// The unique indexes on exactly these columns that ON CONFLICT can use.
fn indexes_on<'c>(
    catalog: &'c Catalog,
    table: Oid,
    columns: &'c [SmolStr],
) -> impl Iterator<Item = (&'c Relation, &'c Index)> {
    let all = catalog.get_relation(table).into_iter().flat_map(|table| &table.indexes);
    let indexes = all.filter_map(|oid| {
        let relation = catalog.get_relation(*oid)?;
        Some((&**relation, &**relation.index()?))
    });
    indexes.filter(move |(relation, index)| {
        let same = |own: &[SmolStr]| own.len() == columns.len() && own.iter().all(|column| columns.contains(column));
        let is_target = index.unique && index.plain_columns().is_some_and(|own| same(&own));
        is_target && !is_deferrable(catalog, table, relation.oid)
    })
}

/// Whether there is a unique index on exactly these columns. A dropped table needs none.
fn has_target(catalog: &Catalog, table: Oid, columns: &[SmolStr]) -> bool {
    let Some(relation) = catalog.get_relation(table) else { return true };
    columns.iter().any(|column| relation.column(column).is_none())
        || indexes_on(catalog, table, columns).any(|(_, index)| index.predicate.is_none())
}

fn partial_indexes(catalog: &Catalog, table: Oid, columns: &[SmolStr]) -> Vec<String> {
    let partial = indexes_on(catalog, table, columns).filter(|(_, index)| index.predicate.is_some());
    partial.map(|(relation, _)| relation.name.to_string()).collect()
}
