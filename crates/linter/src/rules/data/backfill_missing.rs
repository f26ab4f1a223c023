//! Columns that are replaced while old rows have no value in their successor.

use crate::report::Reporter;
use crate::rule::{Earlier, MigrationContext, declare_rule};
use crate::rules::deployment::phases::{Fed, fed_columns};
use crate::rules::text::{identifier, qualified};
use pgvet_model::catalog::{Column, Relation};
use pgvet_model::effect::RelationName;
use pgvet_model::routine::Routines;
use pgvet_syntax::ast::{AlterTableAction, Ast, Name, ObjectKind, ObjectName};

declare_rule! {
    /// A migration drops or renames a column that a trigger copies to a new column, but no migration has filled the new
    /// column in rows that existed before the trigger.
    ///
    /// ## Why it matters
    ///
    /// When the old column is dropped, the values of rows without a backfill are lost. A column is replaced in phases.
    /// A migration adds the new column and a trigger that fills it (*expand*). A second one fills the rows that existed
    /// before the trigger (*backfill*). A last one removes the old column (*contract*).
    ///
    /// The trigger fills only rows that are written after its creation. Without the backfill, all other rows have
    /// `NULL` or the default in the new column. Tests do not show this, because in a test database every row was
    /// written after the trigger was created.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// -- history:
    /// ALTER TABLE users ADD COLUMN full_name text;
    /// CREATE FUNCTION copy_name() RETURNS trigger LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     NEW.full_name := NEW.name;
    ///     RETURN NEW;
    /// END $$;
    /// CREATE TRIGGER copy_name BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION copy_name();
    /// -- migration:
    /// DROP TRIGGER copy_name ON users;
    /// ALTER TABLE users DROP COLUMN name;
    /// ```
    ///
    /// Use instead:
    ///
    /// First fill the old rows in a separate migration, in batches if the table is large:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// -- history:
    /// ALTER TABLE users ADD COLUMN full_name text;
    /// CREATE FUNCTION copy_name() RETURNS trigger LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     NEW.full_name := NEW.name;
    ///     RETURN NEW;
    /// END $$;
    /// CREATE TRIGGER copy_name BEFORE INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION copy_name();
    /// -- history:
    /// UPDATE users SET full_name = name WHERE full_name IS NULL;
    /// -- migration:
    /// DROP TRIGGER copy_name ON users;
    /// ALTER TABLE users DROP COLUMN name;
    /// ```
    ///
    /// If a program fills the rows, suppress the finding with `-- pgvet: ignore[backfill-missing] reason`, and name the
    /// program in the reason. [docs/phases.md](../docs/phases.md) explains the phases.
    ///
    /// ## When it is not reported
    ///
    /// - a trigger that an earlier migration dropped: nothing then shows which column the new one replaces
    /// - a new column that a migration has updated, or that the same migration drops
    ///
    /// ## Incidents
    ///
    /// - [hindsight #1157](https://github.com/vectorize-io/hindsight/issues/1157): a migration added a new column
    ///   without copying the old values, and users lost their settings without an error
    /// - [scanopy #716](https://github.com/scanopy/scanopy/issues/716): twelve columns were dropped without a backfill
    ///   of the tables that replace them
    ///
    /// ## Other linters
    ///
    /// No other known linter compares several migrations in this way.
    "backfill-missing", Data, Error,
    { needs_commit: true }
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let routines = Routines::new(context.migrations, context.before, &context.settings.functions, context.reader);
    for (at, run) in context.ran.iter().enumerate() {
        for gone in gone_columns(&run.ast) {
            let Some(table) = table_before(context, gone.table).filter(|table| !table.triggers.is_empty()) else {
                continue;
            };
            let replaces = |fed: &Fed| {
                fed.sources.contains(&gone.column.text)
                    && table.column(&fed.column).is_some_and(is_unfilled)
                    && stays_unfilled(context, at, table, &fed.column)
                    && (gone.is_dropped || is_renamed_to(context, table, &fed.column, &gone.column.text))
            };
            if let Some(fed) = fed_columns(&routines, table).into_iter().find(replaces) {
                report(reporter, table, &fed, gone.column, run);
            }
        }
    }
}

/// A column of which a statement takes the name.
struct Gone<'a> {
    table: &'a ObjectName,
    column: &'a Name,
    is_dropped: bool,
}

fn gone_columns(ast: &Ast) -> Vec<Gone<'_>> {
    match ast {
        Ast::AlterTable(alter) => {
            let dropped = alter.commands.iter().filter_map(|command| match &command.action {
                AlterTableAction::DropColumn { column, .. } => Some(column),
                _ => None,
            });
            dropped.map(|column| Gone { table: &alter.name, column, is_dropped: true }).collect()
        }
        Ast::Rename(rename) if rename.kind == ObjectKind::Column => {
            let column = rename.sub_name.iter();
            column.map(|column| Gone { table: &rename.object, column, is_dropped: false }).collect()
        }
        _ => Vec::new(),
    }
}

/// The table of this name before the migration.
fn table_before<'a>(context: &MigrationContext<'a>, name: &ObjectName) -> Option<&'a Relation> {
    let oid = context.before.find_relation(name, &context.session.settings.search_path())?;
    context.before.get_relation(oid).map(|relation| &**relation)
}

/// Whether the column was added to a table that may have rows, and no UPDATE has given them values since.
fn is_unfilled(column: &Column) -> bool {
    let held = column.held.as_ref();
    held.is_some_and(|held| column.added_in.is_some() && held.since == column.added_in)
}

/// Whether the migration neither updates the table before the statement at this position, nor drops the column.
fn stays_unfilled(context: &MigrationContext<'_>, at: usize, table: &Relation, column: &str) -> bool {
    let is_of_table = |name: &ObjectName| table_before(context, name).is_some_and(|other| other.oid == table.oid);
    let updates = |run: &Earlier| matches!(&*run.ast, Ast::Update(update) if is_of_table(&update.table.name));
    let drops = |run: &Earlier| {
        let gone = gone_columns(&run.ast);
        gone.iter().any(|gone| gone.is_dropped && gone.column.text == column && is_of_table(gone.table))
    };
    !context.ran[..at].iter().any(updates) && !context.ran.iter().any(drops)
}

/// Whether the migration renames a column of the table in this way.
fn is_renamed_to(context: &MigrationContext<'_>, table: &Relation, from: &str, to: &str) -> bool {
    context.ran.iter().any(|run| {
        let Ast::Rename(rename) = &*run.ast else { return false };
        rename.kind == ObjectKind::Column
            && rename.sub_name.as_ref().is_some_and(|name| name.text == from)
            && rename.new_name.text == to
            && table_before(context, &rename.object).is_some_and(|other| other.oid == table.oid)
    })
}

fn report(reporter: &mut Reporter<'_>, table: &Relation, fed: &Fed, gone: &Name, run: &Earlier) {
    let (name, column) = (&table.name, &fed.column);
    let message = format!(
        "no migration fills `{column}` in the rows of `{name}` that were written before the trigger `{}` existed, so \
         these rows have no value when `{column}` replaces `{}`",
        fed.trigger, gone.text
    );
    let sql_column = identifier(column);
    let help = format!(
        "before this migration, fill `{column}` in a separate migration, in batches if the table is large:\n    \
         UPDATE {} SET {sql_column} = ... WHERE {sql_column} IS NULL;\nif a program fills the column, name the \
         program in a comment: -- pgvet: ignore[backfill-missing] reason",
        qualified(&table.schema, name)
    );
    let finding = reporter.report(run.in_file(gone.range), message).relation(&RelationName::existing(table)).help(help);
    let (file, place) = fed.defined_at;
    finding.label_in(file, place, format!("this trigger fills `{column}` from `{}`", gone.text)).emit();
}
