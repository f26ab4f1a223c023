//! A suppression without a reason; reported where suppressions are read.

use crate::rule::declare_rule;

declare_rule! {
    /// A suppression without a reason, if the configuration requires reasons (`require-reasons = true`).
    ///
    /// ## Why it matters
    ///
    /// The next reader cannot know whether the finding was examined or only hidden, or whether the reason still
    /// applies.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- set: require-reasons
    /// CREATE TABLE settings (key text, value text);
    /// -- migration:
    /// -- pgvet: ignore[index-without-concurrently]
    /// CREATE INDEX settings_key_idx ON settings (key);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- set: require-reasons
    /// CREATE TABLE settings (key text, value text);
    /// -- migration:
    /// -- pgvet: ignore[index-without-concurrently] it has 200 rows
    /// CREATE INDEX settings_key_idx ON settings (key);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - suppressions, if the configuration does not require reasons
    /// - comments of other linters
    "suppression-without-reason", Engine, Warning,
    {}
}
