//! A rule that panicked; reported by the run itself.

use crate::rule::declare_rule;

declare_rule! {
    /// A defect of pgvet: a rule crashed while it checked a statement.
    ///
    /// ## Why it matters
    ///
    /// The findings of this rule for the statement are missing. All other rules and all other statements were checked.
    ///
    /// ## Example
    ///
    /// No statement is known that causes such a defect.
    ///
    /// Use instead:
    ///
    /// Suppress the rule for the file until the rule is fixed, and report the statement:
    ///
    /// ```sql
    /// -- pgvet:ignore-file name-of-the-rule: it stops here
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - earlier migrations, which pgvet reads only to know the schema
    "internal-error", Engine, Error,
    {}
}
