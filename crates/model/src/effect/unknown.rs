//! Unknowns of a statement, and their reasons.

use super::Effects;
use indexmap::IndexSet;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxBuildHasher;
use smol_str::SmolStr;
use std::fmt;

/// A gap in the effects of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unknown {
    pub reason: UnknownReason,
    /// The code that was not analyzed, or the call that leads there; the statement for a missing fact.
    pub range: TextRange,
    /// Whether the code could change data or definitions.
    pub may_change: bool,
    /// Whether a trigger runs the code: so does every statement that fires it.
    pub by_trigger: bool,
}

/// Why the model does not know everything that a statement does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UnknownReason {
    /// EXECUTE of a text of which too little is constant.
    DynamicSql,
    /// EXECUTE of a statement about an object that only run time names, so that it could not be run.
    DynamicTarget,
    /// EXECUTE of a text that is constant except for names and values, run with placeholders for them.
    DynamicNames,
    /// Code in a language that is not read, such as `plpython3u`; the name of its function, or `None` for DO.
    Language { function: Option<String>, language: SmolStr },
    /// Code in SQL or PL/pgSQL that could not be parsed.
    Unparsed,
    /// Code in which strings end elsewhere if `standard_conforming_strings` is off, which it may be.
    Strings,
    /// A bound on the cost of the analysis was reached.
    Limit(Limit),
    /// A function runs SQL that it receives as text, where the effects of a statement do not reach.
    TextFunction { function: String },
    /// DROP OWNED: the objects that a role owns are not known.
    Owned,
    /// COPY runs a program on the server.
    Program,
    /// A function, called for what it does, that no statement defines.
    MissingFunction { function: String },
    /// Rules of the relation rewrite the statement.
    Rules { relation: SmolStr },
    /// A prepared statement that no statement of the session has prepared.
    PreparedStatement { name: SmolStr },
    /// The script of an extension that is not part of PostgreSQL.
    ExtensionScript { extension: SmolStr },
    /// IMPORT FOREIGN SCHEMA: another server decides which tables it creates.
    ForeignSchema { schema: SmolStr },
    /// LOAD runs the initialization code of a library.
    Library,
    /// The function of an event trigger, which later statements fire.
    EventTrigger { trigger: SmolStr },
    /// A refusal that dynamic SQL before it may have made impossible.
    Doubt,
    /// How many rows CREATE adds to the system catalogs.
    CatalogRows { relation: SmolStr },
    /// A fact about an object, a type or a value that no statement shows, in words.
    Fact(String),
}

/// A bound on the cost of the analysis of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nested calls.
    CallDepth(u8),
    /// Calls of functions.
    Calls(u32),
    /// Rounds of loops, where the dynamic SQL of each round is another one.
    Rounds(usize),
    /// Rows of system catalogs with which conditions are compared.
    CatalogRows(usize),
    /// Statements of code that rules see one by one. The effects of the others are known.
    Statements(usize),
    /// Privileges that a statement grants or revokes: one for each object and role.
    Privileges(usize),
}

impl UnknownReason {
    /// Whether the text of EXECUTE is the reason.
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self, Self::DynamicSql | Self::DynamicTarget | Self::DynamicNames)
    }

    /// Whether code was not analyzed at all, so that anything it does is missing from the effects.
    pub fn hides_code(&self) -> bool {
        match self {
            Self::DynamicSql
            | Self::DynamicTarget
            | Self::Language { .. }
            | Self::Unparsed
            | Self::Strings
            | Self::Limit(Limit::CallDepth(_) | Limit::Calls(_) | Limit::Rounds(_) | Limit::CatalogRows(_))
            | Self::TextFunction { .. }
            | Self::Program
            | Self::Owned
            | Self::MissingFunction { .. }
            | Self::Rules { .. }
            | Self::PreparedStatement { .. }
            | Self::ExtensionScript { .. }
            | Self::ForeignSchema { .. }
            | Self::Library
            | Self::EventTrigger { .. } => true,
            Self::Limit(Limit::Statements(_) | Limit::Privileges(_))
            | Self::DynamicNames
            | Self::Doubt
            | Self::CatalogRows { .. }
            | Self::Fact(_) => false,
        }
    }

    /// Whether rules have not seen all that the statement does.
    pub fn hides_findings(&self) -> bool {
        self.hides_code() || matches!(self, Self::Limit(_))
    }
}

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DynamicSql => f.write_str("dynamic SQL whose text is known only at run time"),
            Self::DynamicTarget => f.write_str("dynamic SQL for an object that is known only at run time"),
            Self::DynamicNames => f.write_str("dynamic SQL with names that are known only at run time"),
            Self::Language { function: Some(function), language } => {
                write!(f, "calls {function}, which is written in {language}")
            }
            Self::Language { function: None, language } => write!(f, "a DO block in language {language}"),
            Self::Unparsed => f.write_str("code that could not be parsed"),
            Self::Strings => f.write_str("code whose strings depend on `standard_conforming_strings`"),
            Self::Limit(Limit::CallDepth(limit)) => write!(f, "calls nested more than {limit} deep"),
            Self::Limit(Limit::Calls(limit)) => write!(f, "more than {limit} calls in one statement"),
            Self::Limit(Limit::Rounds(limit)) => write!(f, "loops of more than {limit} iterations in one statement"),
            Self::Limit(Limit::CatalogRows(limit)) => {
                write!(f, "conditions on more than {limit} rows of system catalogs in one statement")
            }
            Self::Limit(Limit::Statements(limit)) => write!(f, "code that runs more than {limit} statements"),
            Self::Limit(Limit::Privileges(limit)) => write!(f, "more than {limit} privileges in one statement"),
            Self::TextFunction { function } => write!(f, "`{function}` runs SQL that it receives as text"),
            Self::Owned => f.write_str("the objects that a role owns are not known"),
            Self::Program => f.write_str("a program that the server runs"),
            Self::MissingFunction { function } => write!(f, "no statement defines `{function}`"),
            Self::Rules { relation } => write!(f, "the rules of `{relation}` are not followed"),
            Self::PreparedStatement { name } => write!(f, "no earlier statement prepares `{name}`"),
            Self::ExtensionScript { extension } => write!(f, "the script of extension `{extension}` is not known"),
            Self::ForeignSchema { schema } => {
                write!(f, "the foreign tables that this creates in `{schema}` are not known")
            }
            Self::Library => f.write_str("code of a library"),
            Self::EventTrigger { trigger } => {
                write!(f, "later statements that fire the event trigger `{trigger}` are not followed")
            }
            Self::Doubt => f.write_str("earlier dynamic SQL may have changed objects that this statement uses"),
            Self::CatalogRows { relation } => {
                write!(f, "the catalog rows of `{relation}` are not known, because its columns are not")
            }
            Self::Fact(fact) => f.write_str(fact),
        }
    }
}

impl Effects {
    /// Adds a gap, each once.
    pub(crate) fn note_unknown(&mut self, unknown: Unknown) {
        self.unknown.insert(unknown);
    }

    /// Returns the reasons of the gaps, each once, in order.
    pub fn unknown_reasons(&self) -> Vec<&UnknownReason> {
        let reasons: IndexSet<&UnknownReason, FxBuildHasher> =
            self.unknown.iter().map(|unknown| &unknown.reason).collect();
        reasons.into_iter().collect()
    }

    /// Changes the ranges of the gaps.
    pub(crate) fn move_unknown(&mut self, place: impl Fn(TextRange) -> TextRange) {
        let moved = std::mem::take(&mut self.unknown).into_iter();
        self.unknown = moved.map(|unknown| Unknown { range: place(unknown.range), ..unknown }).collect();
    }

    /// Returns whether [`Effects::catalog_rows`] counts every created relation.
    pub fn knows_catalog_rows(&self) -> bool {
        !self.unknown.iter().any(|unknown| matches!(unknown.reason, UnknownReason::CatalogRows { .. }))
    }
}
