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
    ///
    /// `json`, `system_user` and a few other words are names in older versions, and keywords in PostgreSQL 16 or 17. A
    /// statement that only these words make invalid is reported for the newer versions. If all configured versions are
    /// older, PostgreSQL accepts it, but pgvet cannot read it: `not-analyzed` reports that.
    "syntax-error", Engine, Error,
    {}
}
