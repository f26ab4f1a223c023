//! The type money.

use super::columns::declared_type;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// A column is of type `money`.
    ///
    /// ## Why it matters
    ///
    /// The meaning of a value depends on the `lc_monetary` setting of the session. With another setting, the same rows
    /// are read as another currency, perhaps with another number of decimal places. The type cannot hold fractions of a
    /// cent, and one column cannot hold several currencies.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total money);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total numeric(12, 2), currency text);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a column that a later migration changes or drops: only its type after the last migration counts
    ///
    /// ## Other linters
    ///
    /// pg-migration-lint reports the same.
    "money-type", Schema, Warning,
    {
        recommended: false,
        sources: &["pg-migration-lint/PGM104", "squawk/ban-money"],
    }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((column, range)) = declared_type(context, "money") else { return };
    let message = format!("the currency of `{}` depends on the `lc_monetary` setting of each session", column.name);
    reporter
        .report(range, message)
        .relation(&RelationName::existing(context.relation))
        .help("use numeric and a column for the currency, or whole cents in bigint")
        .emit();
}
