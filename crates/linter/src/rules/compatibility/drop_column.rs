//! DROP COLUMN of a column that deployed code may use.

use super::name_reuse::report_other_type;
use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::dropped_column::{Replacement, is_emptied, place, replacement, taken};
use crate::rules::deployment::dropped_together::{cascaded, described, listed, parts, publications};
use crate::rules::deployment::other_statements::{Until, ahead_of_maker};
use crate::rules::deployment::phases::released;
use crate::rules::deployment::users;
use crate::rules::text::enumerate;
use pgvet_model::effect::RelationName;
use pgvet_syntax::source::TextRange;
use std::fmt::Write;

declare_rule! {
    /// Dropping a column of an existing table.
    ///
    /// ## Why it matters
    ///
    /// Deployed code may still name the column: in `SELECT` lists of ORMs, in `INSERT` column lists, or in database
    /// functions. Every statement that names the column fails after the commit. If the deployment is rolled back, the
    /// older code fails in the same way. PostgreSQL also drops every index and constraint that contains the column,
    /// without a notice.
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
    ///
    /// First deploy code that no longer uses the column, then run this migration in the next release. If the table is
    /// small, and deployed code only reads the column, the same transaction can replace the column by a generated one with
    /// the same name and values. Adding a `STORED` column rewrites the table under ACCESS EXCLUSIVE, and statements that
    /// set the column fail:
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
    /// The dropped columns of one table are reported as one finding with several locations, unless dropping a column
    /// also drops other objects, or functions use the column.
    ///
    /// ## When it is not reported
    ///
    /// - tables and columns that the same migration created, and temporary tables
    /// - a column, if a generated or renamed column of the same type has its name when the transaction commits. A plain
    ///   column that is dropped and added again is reported, because its values are lost.
    /// - a column of a partition or inheritance child: only the column of the parent is reported
    ///
    /// ## Confidence
    ///
    /// A dropped column is also reported if a column of a different type has its name when the transaction commits. If
    /// the new type accepts every value of the old type, the confidence is `possible`, and the finding is shown only
    /// with `--confidence possible`.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every `DROP COLUMN`, even of tables that the migration creates. pg-migration-lint names
    /// the indexes that are dropped. pgvet also names the constraints and the objects that `CASCADE` drops, and lists
    /// the functions that still use the column.
    "drop-column", Compatibility, Warning,
    {
        sources: &[
            "squawk/ban-drop-column", "pgls/banDropColumn", "strong_migrations/remove_column", "atlas/DS103",
            "pg-migration-lint/PGM009", "pg-migration-lint/PGM010", "pg-migration-lint/PGM011", "pg-migration-lint/PGM012"],
        yields_to: &[&super::contract_before_release::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for removal in &context.effects.removals {
        let Some((table, column)) = taken(context, removal) else { continue };
        let end = ahead_of_maker(context, column, Until::Commit);
        match replacement(context, &end, table, column) {
            Replacement::Nothing | Replacement::NotShown => report(context, reporter, removal.range, table, column),
            Replacement::Column(new) => {
                report_other_type(context, reporter, place(context, removal.range), table, &end, new);
            }
        }
    }
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
    let is_emptied = is_emptied(context, table, column);
    let mut message = if is_emptied {
        format!("dropping `{}.{column}` and adding it again loses its values", table.name)
    } else {
        format!("dropping `{}.{column}` breaks deployed code that still uses the column", table.name)
    };
    let along = listed(along);
    if let Some(along) = &along {
        message = format!("{message}; this also drops {along}");
    }
    let relation = context.before.get_relation(table.oid);
    let triggers: Vec<_> =
        relation.iter().flat_map(|relation| &relation.triggers).map(|trigger| trigger.function).collect();
    if is_emptied {
        let help = "change the type with ALTER COLUMN ... TYPE ... USING, or copy the values to a column of another \
                    name before you drop this column";
        return reporter.report(place(context, range), message).relation(table).help(help).emit();
    }
    let finding = reporter.report(place(context, range), message).relation(table);
    let (finding, users) = users::label(finding, context, &[column, &table.name], &triggers);
    let first = match users {
        0 => format!("first deploy code that does not use `{column}`"),
        _ => format!("first change the database functions and deploy the code so that neither uses `{column}`"),
    };
    let mut help = format!(
        "{first}. If an ORM maps the column, remove it from the model or mark it as ignored in that release. Then drop \
         the column in the next release"
    );
    let published = publications(context.before, table);
    if !published.is_empty() {
        let names = enumerate(published.iter().map(String::as_str));
        let _ = write!(
            help,
            "\nthe table is published by {names}: subscribers keep the column, so drop it there \
                         afterwards"
        );
    }
    // What a finding says of its column alone must not be hidden behind another column.
    let cause = (along.is_none() && users == 0).then_some(Cause::Object(table.oid));
    finding.caused_by(cause).assuming(released(context.migration, context.settings)).help(help).emit();
}
