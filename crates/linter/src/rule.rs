//! Rules: metadata with documentation, and functions that derive findings from the facts about a statement.

use crate::cause::TransactionId;
use crate::confidence::Confidence;
use crate::declared::DeclarationContext;
use crate::meta::{Category, RuleMeta, Status};
use crate::report::Reporter;
use crate::settings::Settings;
use crate::severity::Severity;
use pgvet_model::catalog::{Catalog, Function, Oid, Relation};
use pgvet_model::deployment::Deployment;
use pgvet_model::effect::{Effects, Evidence, ObjectChange, RelationName, UnknownReason};
use pgvet_model::execute::{CodeText, Executed};
use pgvet_model::migration::Migration;
use pgvet_model::place::Place;
use pgvet_model::routine::{CallSite, Creation, Endings, Hotness, Routine, RoutineReader, Routines, TriggerUse};
use pgvet_model::runner::KnownTransaction;
use pgvet_model::session::Session;
use pgvet_model::version::Target;
use pgvet_syntax::ast::{Ast, FunctionCall, ObjectName};
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{Doubt, Statement};
use std::rc::Rc;
use std::sync::Arc;

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
    /// Its own effects; those of its code belong to the statements there, which rules see one by one.
    pub effects: &'a Effects,
    /// Its effects together with those of all of its code.
    pub whole: &'a Effects,
    /// How many statements all of its code runs, as far as they are recorded.
    pub inner_statements: usize,
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
    /// The statements that the migration has run before that of the file, in the order of their beginnings.
    pub earlier: &'a [Earlier],
    /// Those of them that give something another name or schema, as positions.
    pub earlier_moves: &'a [usize],
    /// The code that runs the statement; `None` where it is in the file itself.
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
    /// Its own changes, with the ranges of the statement.
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
    /// Whether that statement runs in a transaction block.
    pub in_transaction: bool,
    /// Whether a condition or an exception handler decides if the statement runs, or fails.
    pub guarded: bool,
    /// PostgreSQL refuses the statement, and an exception handler continues as if nothing had happened.
    pub caught: bool,
    /// The catalog when the code has ended.
    pub end: &'a Catalog,
    /// The statements that the same code runs before and after it.
    pub earlier: &'a [Executed],
    pub later: &'a [Executed],
}

impl<'a> RuleContext<'a> {
    /// The deployment of the migration.
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

    /// The transaction in which it runs.
    pub(crate) fn transaction(&self) -> TransactionId {
        TransactionId::of(self.session, self.outer())
    }

    /// Whether that statement runs in a transaction block.
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
    /// The statements that it has run, in the file and in code.
    pub ran: &'a [Earlier],
    /// What is in doubt in the whole text of the file.
    pub doubts: &'a [Doubt],
    pub settings: &'a Settings,
    pub reader: &'a RoutineReader,
}

impl<'a> MigrationContext<'a> {
    /// The statements that a statement of the file has run: its code, and then the statement itself.
    pub fn ran_by(&self, statement: &Statement) -> impl Iterator<Item = &'a Earlier> + use<'a> {
        let start = statement.range.start;
        // A migration runs its statements in the order of the file.
        let first = self.ran.partition_point(|run| run.outer < start);
        self.ran[first..].iter().take_while(move |run| run.outer == start)
    }

    /// The deployment of the migration.
    pub fn deployment(&self) -> Option<Deployment> {
        self.migration.deployment(self.file)
    }

    /// The code of the database after the migration.
    pub fn routines(&self) -> Routines<'a> {
        Routines::new(self.migrations, self.after, &self.settings.functions, self.reader)
    }
}

/// All that a rule may look at in the code of a function, a procedure or a DO block.
///
/// A function is shown when the replay of its database has ended, if its definition is in a reported migration. Rules
/// about code that fails see it also with the schema that its deployment leaves, even if a later one replaces or drops it. A
/// DO block is shown at its statement.
#[derive(Debug)]
pub struct RoutineContext<'a> {
    /// Index of the migration that holds the definition.
    pub file: u32,
    /// The file of the definition.
    pub source: &'a SourceFile,
    /// The migration that a DO block is a statement of.
    pub migration: Option<&'a Migration<'a>>,
    /// The session before a DO block.
    pub session: Option<&'a Session>,
    pub routine: Rc<Routine>,
    /// The catalog that the code meets: at the end of the replay, or before the DO block.
    pub catalog: &'a Catalog,
    /// The same, or the catalog after the DO block.
    pub after: &'a Catalog,
    pub settings: &'a Settings,
    /// All code of the database.
    pub routines: &'a Routines<'a>,
    /// A statement of a migration calls it, in code that it runs at the latest: it is a helper of migrations, and what it
    /// does was reported there.
    pub called_by_migration: bool,
    /// For a function that is shown once more, with the schema that its deployment leaves: what a later deployment does.
    /// Only the triggers of such a function are known, and not who calls it.
    pub until: Option<Until>,
}

/// What a later deployment does about a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It replaces the function, here.
    Replaced(Place),
    Dropped,
    /// It changes only tables.
    SchemaChanged,
}

impl RoutineContext<'_> {
    /// The deployment of the migration that holds the definition.
    pub fn deployment(&self) -> Option<Deployment> {
        self.routines.migrations.get(self.file as usize)?.deployment(self.file)
    }

    /// The text of a range of the file.
    pub fn text(&self, range: TextRange) -> &str {
        self.source.text.get(range.as_usize()).unwrap_or_default()
    }

    /// `None` for a DO block.
    pub fn function(&self) -> Option<&Arc<Function>> {
        self.routine.function.as_ref()
    }

    /// `app.f()`, or `this DO block`.
    pub fn name(&self) -> String {
        self.routine.name()
    }

    /// The relation that the code means by a name, temporary ones included.
    pub fn relation(&self, name: &ObjectName) -> Option<&Relation> {
        let oid = self.catalog.find_relation(name, &self.routine.search_path)?;
        self.catalog.get_relation(oid).map(|relation| &**relation)
    }

    /// The relation for [`crate::report::Finding::relation`]: at run time it is there and in use.
    pub fn relation_name(&self, relation: &Relation) -> RelationName {
        RelationName::existing(relation)
    }

    /// The functions of the project that a call may mean.
    pub fn called(&self, call: &FunctionCall) -> Vec<Oid> {
        self.catalog.functions_called(call, &self.routine.search_path)
    }

    /// The triggers that run it.
    pub fn triggers(&self) -> &[TriggerUse] {
        self.routine.oid().map_or(&[], |oid| self.routines.triggers_of(oid))
    }

    /// The places in other code that call it.
    pub fn callers(&self) -> &[CallSite] {
        self.routine.oid().map_or(&[], |oid| self.routines.callers_of(oid))
    }

    /// Whether it runs often, and why. A DO block runs once.
    pub fn hotness(&self) -> Rc<Hotness> {
        self.routine.oid().map_or_else(Rc::default, |oid| self.routines.hotness_of(oid))
    }

    /// The tables that the code creates, with the catalog rows that the newest configured major inserts for each.
    pub fn creations(&self) -> Vec<Creation> {
        self.routine.creations(self.catalog, self.settings.versions.to)
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
            meta: $crate::meta::RuleMeta {
                $($field: $value,)*
                ..$crate::meta::RuleMeta {
                    name: $name,
                    category: $crate::meta::Category::$category,
                    severity: $crate::severity::Severity::$severity,
                    confidence: $crate::meta::Category::$category.confidence(),
                    status: $crate::meta::Status::Stable,
                    recommended: true,
                    fixable: false,
                    sources: &[],
                    yields_to: &[],
                    covers_migration: false,
                    needs_commit: $crate::meta::Category::$category.needs_commit(),
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
        covers_migration: false,
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
