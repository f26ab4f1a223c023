//! What is wrong, in one line.

use crate::ast::Ast;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};

declare_rule! {
    /// What is reported, in one sentence.
    ///
    /// ## Why it matters
    ///
    /// What a user or operator would notice.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// -- migration:
    /// DROP TABLE orders;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// SELECT 1;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// For objects that nobody else can see yet.
    "freeze-age-raised", Bloat, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Drop(statement) = context.ast else { return };
    for relation in context.effects.drops.iter().filter(|relation| relation.visibility.is_exposed()) {
        let message = format!("dropping `{}` hurts", relation.name);
        drop(reporter.report(statement.keyword, message).relation(relation).help("do something else"));
    }
}
