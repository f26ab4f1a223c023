//! What a rule is: metadata with its documentation, and functions from what is known about a statement to findings.

use crate::ast::Ast;
use crate::catalog::Catalog;
use crate::check::Migration;
use crate::confidence::Confidence;
use crate::declared::DeclarationContext;
use crate::deployment::Deployment;
use crate::diagnostic::Severity;
use crate::effect::{Effects, Evidence, ObjectChange, UnknownReason};
use crate::execute::{CodeText, Executed};
use crate::report::Reporter;
use crate::routine::{Endings, RoutineContext, RoutineReader, Routines};
use crate::runner::KnownTransaction;
use crate::session::Session;
use crate::settings::Settings;
use crate::source::TextRange;
use crate::statement::Statement;
use crate::version::Target;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Groups of rules; the folder of a rule is its category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Problems of the text itself; they belong to no preset.
    Engine,
    Locking,
    Transaction,
    Compatibility,
    Data,
    Bloat,
    Plpgsql,
    Schema,
    Security,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Locking => "locking",
            Self::Transaction => "transaction",
            Self::Compatibility => "compatibility",
            Self::Data => "data",
            Self::Bloat => "bloat",
            Self::Plpgsql => "plpgsql",
            Self::Schema => "schema",
            Self::Security => "security",
        }
    }

    /// Does what its rules report harm the more the more rows and traffic a table has?
    pub(crate) fn grows_with_tables(self) -> bool {
        match self {
            Self::Locking | Self::Transaction | Self::Data | Self::Bloat | Self::Plpgsql | Self::Schema => true,
            Self::Engine | Self::Compatibility | Self::Security => false,
        }
    }

    /// How sure its findings are, as far as nothing else is assumed than that tables are large. [`RuleMeta::confidence`]
    /// can say otherwise.
    pub(crate) const fn confidence(self) -> Confidence {
        match self {
            Self::Locking | Self::Engine => Confidence::Certain,
            _ => Confidence::Likely,
        }
    }

    /// Does what its rules report harm only when it is committed? [`RuleMeta::needs_commit`] can say otherwise.
    pub(crate) const fn needs_commit(self) -> bool {
        matches!(self, Self::Compatibility | Self::Security)
    }
}

/// How far a rule may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Preview,
    Stable,
    Deprecated,
}

/// Which findings of a rule a report for people folds into one entry. Formats for programs list every finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupedBy {
    /// Those of one migration.
    Migration,
    /// All of the run: they have one cause outside of the migrations.
    Run,
}

/// What is known about a rule without running it.
#[derive(Debug)]
pub struct RuleMeta {
    /// Kebab-case name of the hazard.
    pub name: &'static str,
    pub category: Category,
    pub severity: Severity,
    /// How sure a finding is whose assumptions hold.
    pub confidence: Confidence,
    pub status: Status,
    /// Part of the default preset; otherwise only of `strict`.
    pub recommended: bool,
    /// May a finding carry a fix?
    pub fixable: bool,
    /// Equivalent rules of other linters, such as `squawk/require-concurrent-index-creation`.
    pub sources: &'static [&'static str],
    /// Rules whose finding at the same place says it better, so that this one is silent there.
    pub yields_to: &'static [&'static Rule],
    /// Which of its findings are one entry in a report for people.
    pub grouped_by: GroupedBy,
    /// Does it harm only where the statement stays? Such a rule is silent about what a ROLLBACK of the migration undoes.
    pub needs_commit: bool,
    /// The version of pgvet that has it first.
    pub since: &'static str,
    /// The rule's doc comment: its page in markdown.
    pub docs: &'static str,
    /// The file that declares it.
    pub file: &'static str,
}

impl RuleMeta {
    /// The first paragraph of the documentation, on one line.
    pub fn summary(&self) -> String {
        let paragraph = self.docs.trim_start().split("\n\n").next().unwrap_or_default();
        paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The address of its page.
    pub fn url(&self) -> String {
        format!("{}/blob/main/rules/{}.md", env!("CARGO_PKG_REPOSITORY"), self.name)
    }

    /// Its page without the title.
    pub fn page(&self) -> String {
        // Doc comments keep the blank after their slashes.
        let lines = self.docs.trim().lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A rule: its metadata and what it looks at. Most look at one statement at a time.
#[derive(Debug)]
pub struct Rule {
    pub meta: RuleMeta,
    /// Called for every statement and each major version for which it means something else.
    pub statement: Option<fn(&RuleContext<'_>, &mut Reporter<'_>)>,
    /// Called for the code of every function, procedure and DO block, see [`RoutineContext`].
    pub routine: Option<fn(&RoutineContext<'_>, &mut Reporter<'_>)>,
    /// Called for everything that a reported migration declares and that is there when all migrations have run.
    pub declaration: Option<fn(&DeclarationContext<'_>, &mut Reporter<'_>)>,
    /// Called when a migration has ended.
    pub migration: Option<fn(&MigrationContext<'_>, &mut Reporter<'_>)>,
}

/// All that a rule may look at: the statement, what it does, and the state before it.
#[derive(Debug, Clone, Copy)]
pub struct RuleContext<'a> {
    /// Index of the migration in the run.
    pub file: u32,
    pub migration: &'a Migration<'a>,
    pub statement: &'a Statement,
    pub ast: &'a Ast,
    /// What it does itself; what its code does belongs to the statements there, which rules see one by one.
    pub effects: &'a Effects,
    /// What it does with all of its code.
    pub whole: &'a Effects,
    /// Where they come from.
    pub evidence: Evidence,
    /// The catalog before the statement, and after it.
    pub before: &'a Catalog,
    pub after: &'a Catalog,
    /// The session before the statement.
    pub session: &'a Session,
    /// The major version that effects and rule are about.
    pub target: &'a Target,
    pub settings: &'a Settings,
    /// All migrations of the run, for their texts: the statements of others may be gone.
    pub migrations: &'a [Migration<'a>],
    pub reader: &'a RoutineReader,
    pub endings: &'a Endings,
    /// What the migration has run before the statement of the file, in the order of their beginnings.
    pub earlier: &'a [Earlier],
    /// The code that runs the statement; `None` where it stands in the file itself.
    pub code: Option<InCode<'a>>,
}

/// A statement that the migration has run.
#[derive(Debug, Clone)]
pub struct Earlier {
    /// Where the statement of the file begins: this one, or the one whose code runs it.
    pub outer: u32,
    pub ast: Arc<Ast>,
    /// Where the file shows it.
    pub range: TextRange,
    /// The code that runs it, in whose text its ranges are offsets.
    pub code: Option<Arc<CodeText>>,
    /// What it changed itself, with the ranges of the statement.
    pub(crate) changes: Vec<ObjectChange>,
    /// Why the code of the triggers that it fired was not analyzed.
    pub(crate) opaque_triggers: Vec<UnknownReason>,
    /// Whether PostgreSQL refuses it.
    pub(crate) refused: bool,
}

impl Earlier {
    /// Where the file shows a range of the statement.
    pub fn in_file(&self, range: TextRange) -> TextRange {
        self.code.as_ref().map_or(range, |code| code.shown.range(range))
    }
}

/// The place of a statement that code runs.
#[derive(Debug, Clone, Copy)]
pub struct InCode<'a> {
    /// The text in which the ranges of the statement and its effects are offsets.
    pub text: &'a CodeText,
    /// The statement of the file that runs the code.
    pub outer: TextRange,
    /// Does that statement run in a transaction block?
    pub in_transaction: bool,
    /// Does it depend on a condition or a handler of exceptions whether the statement runs, or fails?
    pub guarded: bool,
    /// PostgreSQL refuses the statement, and a handler of exceptions goes on as if nothing had happened.
    pub caught: bool,
    /// The catalog when the code has ended.
    pub end: &'a Catalog,
    /// What the same code runs before and after it.
    pub earlier: &'a [Executed],
    pub later: &'a [Executed],
}

impl<'a> RuleContext<'a> {
    /// What is released together with the migration.
    pub fn deployment(&self) -> Option<Deployment> {
        self.migration.deployment(self.file)
    }

    /// The text that ranges are offsets in: the file, or the code that runs the statement.
    pub fn source(&self) -> &'a str {
        self.code.map_or(&self.migration.file.text, |code| &code.text.text)
    }

    /// The text of a range.
    pub fn text(&self, range: TextRange) -> &'a str {
        self.source().get(range.as_usize()).unwrap_or_default()
    }

    /// Where the file shows a range.
    pub fn in_file(&self, range: TextRange) -> TextRange {
        self.code.map_or(range, |code| code.text.shown.range(range))
    }

    /// The statement of the file: this one, or the one that runs it.
    pub fn outer(&self) -> TextRange {
        self.code.map_or(self.statement.range, |code| code.outer)
    }

    /// Does that statement run in a transaction block?
    pub fn in_block(&self) -> bool {
        self.code.map_or(self.session.in_transaction(), |code| code.in_transaction)
    }

    /// Whether it runs in a transaction block, and more than an assumption about the program says so.
    pub(crate) fn is_surely_in_block(&self) -> bool {
        let is_known = self.migration.runner.known_transaction == KnownTransaction::Known;
        self.session.block.as_ref().is_some_and(|block| block.explicit || is_known)
    }

    /// The command for a setting that need not stay longer than the transaction.
    pub(crate) fn set_command(&self) -> &'static str {
        if self.is_surely_in_block() { "SET LOCAL" } else { "SET" }
    }

    /// The catalog after that statement.
    pub fn end(&self) -> &'a Catalog {
        self.code.map_or(self.after, |code| code.end)
    }

    /// The statements of the file after it.
    pub fn later(&self) -> impl Iterator<Item = &'a Statement> + use<'a> {
        self.migration.statements_after(self.outer().start)
    }
}

/// A migration that has ended.
#[derive(Debug)]
pub struct MigrationContext<'a> {
    pub file: u32,
    pub migration: &'a Migration<'a>,
    /// All migrations of the run, for their texts: the statements of others may be gone.
    pub migrations: &'a [Migration<'a>],
    /// The session at the end, before an open transaction is closed.
    pub session: &'a Session,
    /// The catalog before the migration, and after it.
    pub before: &'a Catalog,
    pub after: &'a Catalog,
    /// What it has run, in the file and in code.
    pub ran: &'a [Earlier],
    pub settings: &'a Settings,
    pub reader: &'a RoutineReader,
}

impl<'a> MigrationContext<'a> {
    /// What a statement of the file has run: its code, and then the statement itself.
    pub fn ran_by(&self, statement: &Statement) -> impl Iterator<Item = &'a Earlier> + use<'a> {
        let start = statement.range.start;
        // A migration runs its statements in the order of the file.
        let first = self.ran.partition_point(|run| run.outer < start);
        self.ran[first..].iter().take_while(move |run| run.outer == start)
    }

    /// What is released together with the migration.
    pub fn deployment(&self) -> Option<Deployment> {
        self.migration.deployment(self.file)
    }

    /// The code of the database after the migration.
    pub fn routines(&self) -> Routines<'a> {
        Routines::new(self.migrations, self.after, self.settings, self.reader)
    }
}

/// Declares a rule as a `pub static RULE`. The doc comment is the rule's page. A rule without functions is reported by
/// the run itself.
macro_rules! declare_rule {
    (
        $(#[doc = $doc:literal])+
        $name:literal, $category:ident, $severity:ident,
        { $($field:ident: $value:expr),* $(,)? }
        $($hook:ident = $function:expr),* $(,)?
    ) => {
        $(#[doc = $doc])+
        pub static RULE: $crate::rule::Rule = $crate::rule::Rule {
            meta: $crate::rule::RuleMeta {
                $($field: $value,)*
                ..$crate::rule::RuleMeta {
                    name: $name,
                    category: $crate::rule::Category::$category,
                    severity: $crate::diagnostic::Severity::$severity,
                    confidence: $crate::rule::Category::$category.confidence(),
                    status: $crate::rule::Status::Stable,
                    recommended: true,
                    fixable: false,
                    sources: &[],
                    yields_to: &[],
                    grouped_by: $crate::rule::GroupedBy::Migration,
                    needs_commit: $crate::rule::Category::$category.needs_commit(),
                    since: "0.1.0",
                    docs: concat!($($doc, "\n"),+),
                    file: file!(),
                }
            },
            ..$crate::rule::Rule {
                $($hook: Some($function),)*
                ..$crate::rule::NO_HOOKS
            }
        };
    };
}
pub(crate) use declare_rule;

/// A rule without functions, for the macro to fill in.
#[doc(hidden)]
pub const NO_HOOKS: Rule = Rule {
    meta: RuleMeta {
        name: "",
        category: Category::Engine,
        severity: Severity::Error,
        confidence: Confidence::Certain,
        status: Status::Stable,
        recommended: true,
        fixable: false,
        sources: &[],
        yields_to: &[],
        grouped_by: GroupedBy::Migration,
        needs_commit: false,
        since: "",
        docs: "",
        file: "",
    },
    statement: None,
    routine: None,
    declaration: None,
    migration: None,
};
