//! The statement cannot be read; reported by the run itself, since there is no statement to look at. Code in a statement
//! that can be read is reported here.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use pgvet_model::catalog::Function;
use pgvet_syntax::ast::FunctionBody;
use pgvet_syntax::plpgsql::{self, BodyResult};
use pgvet_syntax::statement::is_template;
use smol_str::SmolStr;

declare_rule! {
    /// A statement, or the PL/pgSQL code of a function or `DO` block, that the PostgreSQL parser refuses.
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
    /// - code of functions that are created while `check_function_bodies` is off in the session
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
    routine = check_code,
}

/// PostgreSQL checks the syntax of code in PL/pgSQL when it creates the function, and before it runs a DO block.
fn check_code(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let unparsed = context.routine.unparsed();
    let Some((first, others)) = unparsed.split_first() else { return };
    let Some(message) = refused(context) else { return };
    let what = if context.function().is_some() { "CREATE FUNCTION" } else { "DO" };
    let message = format!("PostgreSQL refuses the code of this {what}: {message}");
    let mut finding = reporter.report(*first, message);
    if context.function().is_some_and(|function| function.checked.is_none()) {
        finding = finding.assuming(Assumption::SameRun { setting: SmolStr::new_static("check_function_bodies") });
    }
    for other in others {
        finding = finding.label(*other, "pgvet cannot parse this either");
    }
    finding.emit();
}

/// The message with which PostgreSQL refuses the code. Code in which a program replaces something is not judged.
fn refused(context: &RoutineContext<'_>) -> Option<String> {
    let Some(function) = context.function() else {
        let text = context.text(context.routine.statement);
        return plpgsql::refusal_of_block(text).filter(|_| !is_template(text));
    };
    let FunctionBody::Source { text, .. } = &*function.body else { return None };
    let is_changed = is_template(text) || text.contains(plpgsql::HOLE);
    if function.language != "plpgsql" || is_changed || function.checked == Some(false) {
        return None;
    }
    let names = function.parameters.iter().filter_map(|parameter| parameter.name.as_deref());
    plpgsql::refusal(text, names, result(function))
}

fn result(function: &Function) -> BodyResult {
    match function.result_name() {
        Some("trigger") => BodyResult::Trigger,
        Some("event_trigger") => BodyResult::EventTrigger,
        Some("void") => BodyResult::None,
        _ if function.returns_set => BodyResult::Set,
        _ if function.procedure => BodyResult::None,
        // With such parameters, RETURN has no expression.
        _ if function.parameters.iter().any(|parameter| !parameter.mode.is_input()) => BodyResult::None,
        _ => BodyResult::Value,
    }
}
