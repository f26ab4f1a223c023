//! A file that is not UTF-8 text; reported by the program that reads files, since there is no text to check.

use crate::rule::declare_rule;

declare_rule! {
    /// A file that is not encoded in UTF-8.
    ///
    /// ## Why it matters
    ///
    /// pgvet reads migrations as UTF-8. In any other encoding, string literals and comments are garbled or cannot be
    /// decoded. `psql` cannot read UTF-16 either. If `client_encoding` is UTF8, PostgreSQL rejects bytes that are not
    /// valid UTF-8.
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
    /// - earlier migrations, which pgvet reads only to know the schema
    /// - a file in UTF-8 with a byte order mark
    ///
    /// If only some bytes are wrong, the rest of the file is still checked.
    "unsupported-encoding", Engine, Error,
    {}
}
