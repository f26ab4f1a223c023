//! The file is no UTF-8 text; reported by the program that reads files, since there is no text to look at.

use crate::rule::declare_rule;

declare_rule! {
    /// A file that is not encoded in UTF-8.
    ///
    /// ## Why it matters
    ///
    /// Migrations are read as UTF-8. In another encoding, string literals and comments mean something else or nothing,
    /// and UTF-16 text is no SQL for `psql` either. A database whose encoding is UTF8 refuses the bytes.
    ///
    /// ## Example
    ///
    /// A file saved as Latin-1, where `é` is the single byte 0xE9.
    ///
    /// Use instead:
    ///
    /// ```text
    /// iconv -f latin1 -t utf-8 migration.sql
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// For files of the history, which are not checked. A byte order mark is allowed. Where only some bytes are wrong,
    /// the rest of the file is still checked.
    "unsupported-encoding", Engine, Error,
    {}
}
