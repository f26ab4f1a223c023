//! Code that only PostgreSQL can read.

use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{RoutineContext, RuleContext, declare_rule};
use crate::rules::text::enumerate;
use crate::severity::Severity;
use pgvet_model::catalog::Catalog;
use pgvet_model::effect::{ChangedObject, Limit, Unknown, UnknownReason};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A statement that runs or defines code that pgvet does not analyze.
    ///
    /// ## Why it matters
    ///
    /// pgvet does not check code that it cannot analyze. That code may lock or rewrite a table or delete its rows
    /// without any other finding.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE settings (name text PRIMARY KEY, statement text NOT NULL);
    /// DO $$
    /// DECLARE
    ///     command text;
    /// BEGIN
    ///     SELECT statement INTO command FROM settings WHERE name = 'upgrade';
    ///     EXECUTE command;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE settings ADD COLUMN changed_at timestamptz;
    /// ```
    ///
    /// ## What is not analyzed
    ///
    /// - `EXECUTE` of a text that is known only at run time, or that changes an object whose name is known only at run
    ///   time
    /// - functions and `DO` blocks in languages other than SQL and PL/pgSQL
    /// - code that cannot be parsed
    /// - code with a backslash before a quote, if `standard_conforming_strings` may be off when the code runs: the string
    ///   then ends at a different quote, and other statements run
    /// - calls that are nested more than 8 levels deep
    /// - more than 500 calls in one statement
    /// - more than 1000 iterations of loops with dynamic SQL in one statement
    /// - loops over a query of the system catalogs for which pgvet would have to test more than 100,000 rows
    /// - everything after the first 200 statements that one statement runs: of the later statements, pgvet checks only
    ///   the combined effects
    /// - more than 100,000 privileges that one statement grants or revokes, counted for each role and object
    /// - SQL that `dblink`, `pg_cron` and Citus run on other connections
    /// - `DROP OWNED`: pgvet does not know which objects a role owns
    /// - programs that `COPY ... PROGRAM` runs on the server
    /// - functions that no migration defines, if `SELECT`, `PERFORM` or `CALL` runs them for their effects
    /// - rules of tables and views (`CREATE RULE`)
    /// - prepared statements that the migration did not prepare
    /// - scripts of extensions that are not part of PostgreSQL (`CREATE EXTENSION`)
    /// - `LOAD`, which runs the code of a library, and `IMPORT FOREIGN SCHEMA`, whose tables another server lists
    /// - functions of event triggers: the finding is at `CREATE EVENT TRIGGER`, not at the statements that fire it
    ///
    /// ## Severity
    ///
    /// The finding is a warning if the code runs in the migration and could change data or definitions. The severity is
    /// `info` if a function is only defined, or if the code can only read. The severity is also `info` for `LOAD`,
    /// `IMPORT FOREIGN SCHEMA` and the script of an extension: these usually create only new objects, or change only
    /// the session.
    ///
    /// ## When it is not reported
    ///
    /// - The text that `EXECUTE` runs is constant, except for values and for names of new objects.
    /// - The text that `EXECUTE` runs comes from a variable with a constant value, or from a loop over constants.
    /// - An earlier statement of the migration fires the same trigger: the finding there also covers the later
    ///   statements.
    /// - A trigger runs the code, and the text that `EXECUTE` runs can only be a query.
    /// - `dynamic-ddl-on-unknown-object` reports the same `EXECUTE`.
    /// - `syntax-error` reports the code, because PostgreSQL refuses it, too.
    "not-analyzed", Engine, Warning,
    {
        sources: &["strong_migrations/opaque-dynamic-sql"],
        yields_to: &[
            &crate::rules::plpgsql::dynamic_ddl_on_unknown_object::RULE.meta,
            &super::syntax_error::RULE.meta,
        ],
    }
    statement = check_statement,
    routine = check_definition,
}

/// Help that always applies.
const READ_IT: &str = "check the effects yourself, or run the migration on a copy of the database with `pgvet trace`; \
                       afterwards `pgvet baseline` can hide this finding";

/// The next step for code that the migration runs.
fn help(reason: &UnknownReason) -> String {
    let first = match reason {
        UnknownReason::DynamicSql | UnknownReason::DynamicTarget => "write the SQL out with constant names",
        UnknownReason::Limit(_) => "split the work into several statements",
        UnknownReason::ForeignSchema { .. } => "create the tables with CREATE FOREIGN TABLE",
        UnknownReason::PreparedStatement { .. } => "PREPARE the statement in this migration",
        UnknownReason::Strings => "write `E'...'` with doubled backslashes, which does not depend on the setting",
        UnknownReason::MissingFunction { .. } => {
            "let pgvet read the file that defines the function, with --history or --schema"
        }
        _ => return READ_IT.to_owned(),
    };
    format!("{first}. If you cannot, {READ_IT}")
}

fn check_statement(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for reason in context.effects.unknown_reasons().into_iter().filter(|reason| reason.hides_findings()) {
        let is_known = was_fired(context, reason);
        let is_new = |gap: &&Unknown| gap.reason == *reason && !(gap.by_trigger && (is_known || !gap.may_change));
        report(context, reporter, reason, context.effects.unknown.iter().filter(is_new));
    }
    for change in &context.effects.changes {
        if let ChangedObject::Function { oid, .. } = &change.object
            && let Some(function) = context.after.get_function(*oid)
            && !["sql", "plpgsql", "internal"].contains(&function.language.as_str())
        {
            let (language, name) = (&function.language, context.text(change.range));
            let message = format!(
                "pgvet does not analyze code in {language}, so the effects of function {name}() are not checked"
            );
            reporter.report(change.range, message).severity(Severity::Info).emit();
        }
    }
}

/// Whether an earlier statement of the migration has fired a trigger with the same code.
fn was_fired(context: &RuleContext<'_>, reason: &UnknownReason) -> bool {
    let in_file = context.earlier.iter().take_while(|run| run.outer < context.outer().start);
    let in_code = context.code.iter().flat_map(|code| code.earlier).flat_map(|run| &run.effects.unknown);
    in_file.flat_map(|run| &run.opaque_triggers).any(|known| known == reason)
        || in_code.filter(|unknown| unknown.by_trigger).any(|unknown| unknown.reason == *reason)
}

/// Whether the code usually creates only objects of its own, or changes only its session.
fn is_usually_harmless(reason: &UnknownReason) -> bool {
    matches!(
        reason,
        UnknownReason::ExtensionScript { .. } | UnknownReason::ForeignSchema { .. } | UnknownReason::Library
    )
}

/// The installed extensions that may have a function, because their functions are not known: those of its schema, if it
/// is named and there are some. An extension can make a schema of its own name, whatever schema it is installed in.
fn unknown_extensions<'c>(catalog: &'c Catalog, function: &str) -> Vec<&'c str> {
    let unknown = || catalog.unknown_extensions();
    let schema = function.rsplit_once('.').map(|(schema, _)| schema);
    let of_schema = unknown().filter(|(name, own)| schema.is_some_and(|schema| *name == schema || *own == schema));
    let of_schema: Vec<&str> = of_schema.map(|(name, _)| name.as_str()).collect();
    if of_schema.is_empty() { unknown().map(|(name, _)| name.as_str()).collect() } else { of_schema }
}

/// The end of the message about code that a trigger runs.
const OF_TRIGGER: &str = "; a trigger runs this code, and pgvet reports each trigger only once";

/// Reports the gaps of one reason as one finding.
fn report<'u>(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    reason: &UnknownReason,
    gaps: impl Iterator<Item = &'u Unknown>,
) {
    let gaps: Vec<&Unknown> = gaps.collect();
    let Some(first) = gaps.iter().find(|gap| gap.may_change).or(gaps.first()) else { return };
    let severity = if first.may_change && !is_usually_harmless(reason) { Severity::Warning } else { Severity::Info };
    let trigger = if first.by_trigger { OF_TRIGGER } else { "" };
    let message = format!("{}{trigger}", message(context, reason));
    let mut finding =
        reporter.report(first.range, message).severity(severity).help(help(reason)).caused_by(Cause::Message);
    for other in gaps.iter().filter(|other| other.range != first.range) {
        finding = finding.label(other.range, "this is not analyzed either");
    }
    finding.emit();
}

fn message(context: &RuleContext<'_>, reason: &UnknownReason) -> String {
    let what = match reason {
        UnknownReason::DynamicSql => "this executes SQL that is known only at run time".to_owned(),
        UnknownReason::DynamicTarget => {
            "this executes SQL for an object whose name is known only at run time".to_owned()
        }
        UnknownReason::Language { function: Some(function), language } => {
            format!("this runs {function}, which is written in {language}")
        }
        UnknownReason::Language { function: None, language } => format!("this runs code in {language}"),
        UnknownReason::Unparsed => "this runs code that pgvet cannot parse".to_owned(),
        UnknownReason::Strings => {
            "this runs code whose strings depend on `standard_conforming_strings`, which may be off".to_owned()
        }
        UnknownReason::Limit(Limit::CallDepth(limit)) => {
            format!("this statement nests function calls more than {limit} levels deep")
        }
        UnknownReason::Limit(Limit::Calls(limit)) => format!("this statement makes more than {limit} function calls"),
        UnknownReason::Limit(Limit::Rounds(limit)) => format!("this statement loops more than {limit} times"),
        UnknownReason::Limit(Limit::CatalogRows(limit)) => {
            format!("this statement tests conditions on more than {limit} rows of the system catalogs")
        }
        UnknownReason::Limit(Limit::Statements(limit)) => {
            return format!(
                "this statement runs more than {limit} other statements: pgvet checks the first {limit} one by one, \
                 and the others only as a whole"
            );
        }
        UnknownReason::Limit(Limit::Privileges(limit)) => {
            return format!(
                "this statement grants or revokes more than {limit} privileges, counted for each role and object: \
                 pgvet does not know who has them afterwards"
            );
        }
        UnknownReason::Owned => {
            "this drops all objects that a role owns, and no migration shows which objects these are".to_owned()
        }
        UnknownReason::Program => "this runs a program on the server".to_owned(),
        UnknownReason::TextFunction { function } => format!("{function} runs SQL that it receives as text"),
        UnknownReason::MissingFunction { function } => match unknown_extensions(context.before, function).as_slice() {
            [] => format!("no earlier statement defines {function}"),
            names => format!(
                "{function} may belong to an extension whose functions pgvet does not know ({})",
                enumerate(names.iter().copied())
            ),
        },
        UnknownReason::Rules { relation } => format!("rules (CREATE RULE) of `{relation}` rewrite this statement"),
        UnknownReason::PreparedStatement { name } => {
            format!("no statement of this migration prepares the statement `{name}`")
        }
        UnknownReason::ExtensionScript { extension } => {
            format!("this runs the script of extension `{extension}`, which is not part of PostgreSQL")
        }
        UnknownReason::ForeignSchema { schema } => {
            return format!(
                "IMPORT FOREIGN SCHEMA creates foreign tables in schema `{schema}` that pgvet does not know: later \
                 statements that use them are not checked"
            );
        }
        UnknownReason::Library => {
            return "this loads a library, which runs its initialization code: pgvet does not check what that code does"
                .to_owned();
        }
        UnknownReason::EventTrigger { trigger } => {
            return format!(
                "the event trigger `{trigger}` runs a function on later DDL statements, and the effects of that \
                 function are not checked"
            );
        }
        other => other.to_string(),
    };
    format!("{what}, so its effects are not checked")
}

/// A function that no migration calls.
fn check_definition(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    if context.function().is_none() || context.called_by_migration {
        return;
    }
    let name = context.name();
    let mut gap = |ranges: Vec<TextRange>, what: &str| {
        let Some((first, others)) = ranges.split_first() else { return };
        let message = format!("{what}, so the effects of {name} are not checked");
        let mut finding = reporter.report(*first, message).severity(Severity::Info).help(DEFINITION_HELP);
        for other in others {
            finding = finding.label(*other, "this is not analyzed either");
        }
        finding.emit();
    };
    gap(context.routine.unparsed(), "pgvet cannot parse this");
    gap(context.routine.unread_dynamic(), "this executes SQL that is known only at run time");
}

const DEFINITION_HELP: &str = "check the effects yourself, or run the migration on a copy of the database with `pgvet \
                               trace`";
