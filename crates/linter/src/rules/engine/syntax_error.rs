//! The statement cannot be read; reported by the run itself, since there is no statement to look at.

use crate::rule::declare_rule;

declare_rule! {
    /// A statement that the PostgreSQL parser refuses.
    ///
    /// ## Why it matters
    ///
    /// The migration fails at this statement. In a down migration, nobody notices the error until the migration is
    /// needed.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders DELETE COLUMN note;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders DROP COLUMN note;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - commands of psql, data of `COPY ... FROM stdin` and placeholders of templates, which are not SQL
    ///
    /// pgvet parses SQL with the grammar of PostgreSQL 18. If the configured version is older and does not know the
    /// syntax, `statement-will-fail` reports the statement.
    ///
    /// `json`, `system_user` and a few other words are ordinary names in older versions, and became keywords in
    /// PostgreSQL 16 or 17. If a statement is invalid only because of these words, this rule reports it for the newer
    /// versions. If all configured versions are older, PostgreSQL accepts the statement, but pgvet cannot parse it, and
    /// `not-analyzed` reports it.
    "syntax-error", Engine, Error,
    {}
}
