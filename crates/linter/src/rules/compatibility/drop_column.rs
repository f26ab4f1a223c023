//! DROP COLUMN of a column that running code may use.

use super::along::{cascaded, described, listed, parts, publications};
use crate::ast::{AlterTableAction, Ast};
use crate::effect::{RelationKind, RelationName, Removal, RemovalReason, RemovedObject, Visibility};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::{Until, adds, ahead_of_maker, is_column_made_here, means, rest};
use crate::rules::text::enumerate;
use crate::rules::users;
use crate::source::TextRange;
use std::fmt::Write;

declare_rule! {
    /// A column of an existing table is dropped.
    ///
    /// ## Why it matters
    ///
    /// The code that is running while the migration commits, and the one that a rollback of the deployment brings back, still
    /// names the column: `SELECT` lists of ORMs, `INSERT` column lists, functions in the database. All of that fails from the
    /// commit on. Indexes and constraints over several columns go silently with any one of them.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, tenant bigint, email text, UNIQUE (tenant, email));
    /// -- migration:
    /// ALTER TABLE users DROP COLUMN tenant;
    /// ```
    ///
    /// Use instead:
    /// a release whose code does not name the column any more, and this migration with the next one. A column
    /// that the same migration has replaced under the old name breaks nothing:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, first_name text, last_name text, name text);
    /// -- migration:
    /// BEGIN;
    /// ALTER TABLE users DROP COLUMN name;
    /// ALTER TABLE users ADD COLUMN name text GENERATED ALWAYS AS (first_name || ' ' || last_name) STORED;
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// For tables and columns that the same migration made, for temporary tables, and where the column is there again when the
    /// transaction commits, as in the swap of a column with its replacement. A plain column that is added again has lost its
    /// values, and is reported. A column of partitions or children is reported
    /// with that of the parent.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every `DROP COLUMN`, those of the table that the migration made and those that are put back
    /// included. pg-migration-lint names the indexes that go; pgvet names constraints and what `CASCADE` takes as well, and
    /// shows functions that still use the column.
    "drop-column", Compatibility, Warning,
    {
        sources: &[
            "squawk/ban-drop-column", "pgls/banDropColumn", "strong_migrations/remove_column", "atlas/DS103",
            "pg-migration-lint/PGM009", "pg-migration-lint/PGM010", "pg-migration-lint/PGM011", "pg-migration-lint/PGM012"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for removal in &context.effects.removals {
        if let Some((table, column)) = lost(context, removal) {
            report(context, reporter, removal.range, table, column);
        }
    }
}

/// The column of an existing table that a removal takes from running code.
pub(super) fn lost<'c>(context: &RuleContext<'c>, removal: &'c Removal) -> Option<(&'c RelationName, &'c str)> {
    let RemovedObject::Column { table, column } = &removal.object else { return None };
    let stays = context.after.get_relation(table.oid).is_some() && removal.reason == RemovalReason::Named;
    if !stays || table.visibility != Visibility::Existing || table.kind == RelationKind::CompositeType {
        return None;
    }
    let of_parent = |other: &Removal| {
        let RemovedObject::Column { table: parent, column: same } = &other.object else { return false };
        let relation = context.before.get_relation(table.oid);
        same == column && relation.is_some_and(|relation| relation.parents.contains(&parent.oid))
    };
    if context.effects.removals.iter().any(of_parent) || is_column_made_here(context, table, column) {
        return None;
    }
    let end = ahead_of_maker(context, column, Until::Commit);
    let is_there = end
        .get_relation(table.oid)
        .and_then(|table| table.column(column))
        .is_some_and(|new| new.generated.is_some() || !is_added_again(context, table, column));
    let is_swapped = end
        .relation_named(&table.schema, &table.name)
        .is_some_and(|new| new != table.oid && end.relation(new).column(column).is_some());
    (!is_there && !is_swapped).then_some((table, column.as_str()))
}

/// Does the statement, or a later one, add a column of this name? It has none of the values.
fn is_added_again(context: &RuleContext<'_>, table: &RelationName, column: &str) -> bool {
    let adds_it = |ast: &Ast| match ast {
        Ast::AlterTable(alter) => adds(alter, column) && means(context, &alter.name, table),
        _ => false,
    };
    adds_it(context.ast) || rest(context).iter().any(|ast| adds_it(ast))
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    table: &RelationName,
    column: &str,
) {
    let mut along = parts(context.effects, context.before, table, range);
    along.extend(cascaded(context.effects, range).into_iter().map(described));
    let is_emptied = is_added_again(context, table, column);
    let mut message = if is_emptied {
        format!("dropping `{column}` of `{}` and adding it again loses its values", table.name)
    } else {
        format!("dropping `{column}` of `{}` breaks running code that still names it", table.name)
    };
    if let Some(along) = listed(along) {
        message = format!("{message}, and takes {along} along");
    }
    let relation = context.before.get_relation(table.oid);
    let triggers: Vec<_> =
        relation.iter().flat_map(|relation| &relation.triggers).map(|trigger| trigger.function).collect();
    if is_emptied {
        let help = "change its type with ALTER COLUMN ... TYPE ... USING, or fill a column of another name before this one goes";
        return reporter.report(place(context, range), message).relation(table).help(help).emit();
    }
    let finding = reporter.report(place(context, range), message).relation(table);
    let (finding, users) = users::label(finding, context, &[column, &table.name], &triggers);
    let mut help =
        "first release code that does not name it (with an ORM, one that ignores the column), then drop it with \
        the next release"
            .to_owned();
    if users > 0 {
        help.push_str("; change the functions of the database before that");
    }
    let published = publications(context.before, table);
    if !published.is_empty() {
        let names = enumerate(published.iter().map(String::as_str));
        let _ =
            write!(help, "\nthe table is published by {names}: subscribers keep the column, drop it there afterwards");
    }
    finding.help(help).emit();
}

/// The name of the column, where the statement is an ALTER TABLE.
fn place(context: &RuleContext<'_>, range: TextRange) -> TextRange {
    let Ast::AlterTable(alter) = context.ast else { return range };
    let command = alter.commands.iter().find(|command| command.range == range);
    match command.map(|command| &command.action) {
        Some(AlterTableAction::DropColumn { column, .. }) => column.range,
        _ => range,
    }
}
