//! Sums of money as floating-point numbers.

use super::columns::declared_type;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// A column whose name suggests money is a floating-point number.
    ///
    /// ## Why it matters
    ///
    /// `real` and `double precision` cannot represent most decimal fractions exactly: 0.1 + 0.2 is not 0.3. Sums depend
    /// on the order of the rows and can be wrong by cents, and comparisons of equal amounts can fail.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total_price double precision);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total_price numeric(12, 2));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - columns whose name does not suggest money
    /// - columns that a later migration changes or drops
    ///
    /// ## Other linters
    ///
    /// pg-migration-lint reports every floating-point column.
    "float-money", Schema, Warning,
    { recommended: false, sources: &["pg-migration-lint/PGM109"] }
    declaration = check,
}

/// Words of column names for sums of money.
const WORDS: [&str; 14] = [
    "amount", "balance", "charge", "cost", "discount", "fee", "invoice", "money", "payment", "payout", "price",
    "refund", "salary", "wage",
];

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let found = declared_type(context, "float4").or_else(|| declared_type(context, "float8"));
    let Some((column, range)) = found.filter(|(column, _)| speaks_of_money(&column.name)) else { return };
    let message = format!(
        "`{}` has a floating-point type, which cannot store most decimal fractions exactly: sums and comparisons can \
         be wrong by cents",
        column.name
    );
    let help = "use numeric, or whole cents in bigint";
    reporter.report(range, message).relation(&RelationName::existing(context.relation)).help(help).emit();
}

/// Whether one of the words of the name, or its plural, is a word for money.
fn speaks_of_money(name: &str) -> bool {
    let mut words: Vec<String> = Vec::new();
    for part in name.split('_') {
        for (at, letter) in part.char_indices() {
            if at == 0 || letter.is_ascii_uppercase() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(letter.to_ascii_lowercase());
            }
        }
    }
    words.iter().any(|word| WORDS.contains(&word.as_str()) || WORDS.contains(&word.trim_end_matches('s')))
}

#[cfg(test)]
mod tests {
    use super::speaks_of_money;

    #[test]
    fn words_of_names_are_distinguished() {
        for (name, expected) in
            [("total_price", true), ("totalPrice", true), ("fees", true), ("coffee_ratio", false), ("costume", false)]
        {
            assert_eq!(speaks_of_money(name), expected, "{name}");
        }
    }
}
