//! char(n).

use super::columns::declared_type;
use super::full_length::has_full_length;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// A column of type `char(n)`, which is padded with blanks.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL stores the blanks, ignores them in comparisons, and removes them when the value is converted to
    /// `text`. Therefore `length`, `LIKE` and concatenation give surprising results. `char(n)` is neither faster nor
    /// smaller than `text`.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE countries (code char(10) PRIMARY KEY);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE countries (code text PRIMARY KEY CHECK (char_length(code) = 10));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a column that a later migration changes or drops: only its type after the last migration counts
    /// - `char(1)` to `char(3)`, which are used for flags and codes of that length
    /// - a column with a `CHECK` that excludes shorter values: `char_length(code) = 10`, or `code ~ '^[A-Z]{10}$'`
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every `char(n)`. pgvet does not report lengths up to three, which are common for
    /// fixed-length codes.
    "char-type", Schema, Warning,
    {
        recommended: false,
        sources: &["squawk/ban-char-field", "pgls/banCharField", "pg-migration-lint/PGM103"],
    }
    declaration = check,
}

/// Maximum length of codes (countries, currencies, flags) that are never shorter.
const SHORT: i32 = 3;

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((column, range)) =
        declared_type(context, "bpchar").filter(|(column, _)| column.sql_type.typmod - 4 > SHORT)
    else {
        return;
    };
    if has_full_length(context.relation, column) {
        return;
    }
    let message = format!("PostgreSQL pads every value of `{}` with spaces to the declared length", column.name);
    reporter
        .report(range, message)
        .relation(&RelationName::existing(context.relation))
        .help("use text, with a CHECK if the length matters")
        .emit();
}
