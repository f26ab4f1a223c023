//! serial instead of an identity column.

use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use crate::rules::advice::column::serial_integer;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// A column is declared as `serial`.
    ///
    /// ## Why it matters
    ///
    /// `serial` is only a default value and a separate sequence. To insert rows, a role also needs a privilege on the
    /// sequence. A wider column type does not widen the sequence. After
    /// `CREATE TABLE ... (LIKE ... INCLUDING DEFAULTS)`, two tables share one sequence. Any `INSERT` may write its own
    /// number, which the sequence later generates again. `GENERATED ALWAYS AS IDENTITY` is the standard form without
    /// these traps.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigserial PRIMARY KEY);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a column that a later migration changes to an identity column or drops
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report the statement. pgvet reports the column as it is after the last migration.
    "serial-column", Schema, Warning,
    { recommended: false, sources: &["squawk/prefer-identity", "pgls/preferIdentity", "pg-migration-lint/PGM105"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Declared::Column(declared) = context.declared else { return };
    let Some(type_name) = &declared.type_name else { return };
    let Some(integer) = serial_integer(&type_name.name).filter(|_| type_name.schema.is_none()) else { return };
    let Some(column) = context.relation.column(&declared.name.text) else { return };
    let is_serial = column.identity.is_none() && context.catalog.sequence_of(context.relation, &column.name).is_some();
    if !is_serial || context.relation.is_temporary() {
        return;
    }
    let message = format!(
        "`{}` is a serial column: an INSERT needs a privilege on its sequence, and an INSERT with an explicit value \
         bypasses the sequence",
        column.name
    );
    let help = format!("use {integer} GENERATED ALWAYS AS IDENTITY");
    reporter.report(type_name.range, message).relation(&RelationName::existing(context.relation)).help(help).emit();
}
