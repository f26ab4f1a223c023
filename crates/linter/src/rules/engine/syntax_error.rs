//! The statement cannot be read; reported by the run itself, since there is no statement to look at.

use crate::rule::declare_rule;

declare_rule! {
    /// A statement that PostgreSQL's own parser refuses.
    ///
    /// ## Why it matters
    ///
    /// The migration stops here. In a down migration nobody notices until it is needed.
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
    /// The grammar is that of PostgreSQL 18. If the configured version is older and does not know the syntax,
    /// `statement-will-fail` reports the statement.
    "syntax-error", Engine, Error,
    {}
}
