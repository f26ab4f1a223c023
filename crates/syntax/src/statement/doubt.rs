//! Places of a text that can be read in more than one way, or that run what is not read at all.

use crate::source::TextRange;

/// A place that can be read otherwise, or that runs what is not in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    pub range: TextRange,
    pub kind: DoubtKind,
    /// The text that makes it uncertain, if that is another place.
    pub cause: Option<TextRange>,
}

/// The kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtKind {
    /// A backslash before a quote, where `standard_conforming_strings` is not known.
    Quoting,
    /// The same after a statement of the text that sets it: a program that sends both in one string has the string read
    /// before the setting is in effect.
    SentTogether {
        /// The value that the string was read with.
        standard_conforming_strings: bool,
        /// Whether a command before it shows that psql reads the text, which sends each statement alone.
        by_psql: bool,
    },
    /// Characters beyond ASCII, where the encoding of the client may take an ASCII byte for a part of one.
    Encoding,
    /// A tag of a template that is other statements if no template engine replaces it.
    Template,
    /// Data of COPY that psql reads as commands if it does not run the COPY.
    CopyData,
    /// A variable of psql whose value is read as SQL.
    Variable,
    /// `\set SINGLELINE`: each line is a statement.
    SingleLine,
    /// `\i`: a file that is not read.
    IncludedFile,
    /// `\gexec`: statements that a query makes.
    QueryResult,
    /// `\!`, `|program`: a program.
    Program,
    /// `\g` without a statement: the last one runs again.
    RunsAgain,
    /// A command that psql does not know: it skips the rest of the line.
    UnknownCommand,
}

impl DoubtKind {
    /// Whether it is about what psql runs without being read; else it is about how the text is read.
    pub fn is_unread(self) -> bool {
        matches!(
            self,
            Self::IncludedFile
                | Self::QueryResult
                | Self::Program
                | Self::RunsAgain
                | Self::UnknownCommand
                | Self::Variable
        )
    }
}
