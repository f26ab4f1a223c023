//! Deleted rows of lookup tables that other tables refer to.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::{enumerate, identifier, qualified, sql_name};
use pgvet_model::catalog::{Constraint, ForeignKeyConstraint, Relation};
use pgvet_model::effect::{DataChange, DataChangeKind, Met, Visibility};
use pgvet_syntax::ast::ReferentialAction;
use smol_str::SmolStr;

declare_rule! {
    /// A `DELETE` from a lookup table that other tables reference.
    ///
    /// A lookup table is a table whose rows are inserted by migrations, such as states, kinds or permissions.
    ///
    /// ## Why it matters
    ///
    /// Rows in production refer to these values. With an ordinary foreign key, the `DELETE` fails if even one row
    /// refers to a deleted value. With `ON DELETE CASCADE`, it also deletes the rows that refer to the value. Tests
    /// show neither if the test database has no rows that refer to the value.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE states (id int PRIMARY KEY, name text);
    /// INSERT INTO states VALUES (1, 'new'), (2, 'paid'), (3, 'lost');
    /// CREATE TABLE orders (id bigint PRIMARY KEY, state_id int REFERENCES states);
    /// -- migration:
    /// DELETE FROM states WHERE id = 3;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE states (id int PRIMARY KEY, name text);
    /// INSERT INTO states VALUES (1, 'new'), (2, 'paid'), (3, 'lost');
    /// CREATE TABLE orders (id bigint PRIMARY KEY, state_id int REFERENCES states);
    /// -- migration:
    /// ALTER TABLE states ADD COLUMN retired boolean NOT NULL DEFAULT false;
    /// UPDATE states SET retired = true WHERE id = 3;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables into which no migration inserts rows, and tables whose rows do not all come from lists of values in
    ///   migrations
    /// - foreign keys with `ON DELETE SET NULL` or `SET DEFAULT`
    /// - referencing tables that the same deployment creates
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` if the migration has already changed rows of the referencing table.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports these statements.
    "referenced-value-deleted", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let deletes = context.effects.data_changes.iter();
    for change in deletes.filter(|change| change.kind == DataChangeKind::Delete && !change.by_trigger) {
        let is_old = change.relation.visibility == Visibility::Existing;
        let Some(table) = context.before.get_relation(change.relation.oid).filter(|_| is_old) else { continue };
        // What a foreign key deletes is the consequence of another row.
        let is_named = change.rows.bound() != Some(0) && !change.rows.are_of_few();
        if is_named && table.birth.is_listed_before(context.deployment()) {
            check_references(context, reporter, change, table);
        }
    }
}

fn check_references(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, change: &DataChange, table: &Relation) {
    let keys = context.before.foreign_keys_to(table.oid);
    let mut keys = keys.iter().filter_map(|(oid, constraint)| {
        let referencing = context.before.get_relation(*oid)?;
        let is_old = *oid != table.oid && !referencing.birth.is_of(context.deployment());
        Some((&**referencing, &**constraint, constraint.foreign_key()?)).filter(|_| is_old)
    });
    let fails =
        |key: &ForeignKeyConstraint| matches!(key.on_delete, ReferentialAction::NoAction | ReferentialAction::Restrict);
    let refused = keys.clone().find(|(.., key)| fails(key));
    let cascades = || keys.find(|(.., key)| key.on_delete == ReferentialAction::Cascade);
    if let Some((referencing, constraint, key)) = refused.or_else(cascades) {
        report(context, reporter, change, (referencing, constraint, key));
    }
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    change: &DataChange,
    (referencing, constraint, key): (&Relation, &Constraint, &ForeignKeyConstraint),
) {
    let (table, other) = (&change.relation.name, &referencing.name);
    let is_refused = key.on_delete != ReferentialAction::Cascade;
    let message = if is_refused {
        format!(
            "this fails with a foreign key violation on `{}` if a row of `{other}` refers to one of the deleted rows \
             of `{table}`",
            constraint.name
        )
    } else {
        format!("this also deletes the rows of `{other}` that refer to the deleted rows of `{table}`")
    };
    let columns = enumerate(key.columns.iter().map(SmolStr::as_str));
    let help = format!(
        "keep these rows of `{table}`, and add a column that marks them as no longer in use. Or first give another \
         {columns} to the rows of `{other}` that refer to them. To count these rows in production:\n    SELECT \
         {names}, count(*) FROM {referencing} GROUP BY {names};",
        names = key.columns.iter().map(|name| identifier(name)).collect::<Vec<_>>().join(", "),
        referencing = qualified(&referencing.schema, other),
    );
    let is_changed =
        is_refused && context.deployment().is_some() && referencing.birth.changed_in == context.deployment();
    let doubt = if is_changed {
        Assumption::RowsRefuseThough { table: other.clone(), because: Met::Changed }
    } else {
        Assumption::ReferTo { table: other.clone(), referenced: sql_name(context, &change.relation).into() }
    };
    reporter.report(change.range, message).relation(&change.relation).assuming(doubt).help(help).emit();
}
