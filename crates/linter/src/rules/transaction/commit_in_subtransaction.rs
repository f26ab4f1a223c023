//! COMMIT and ROLLBACK in PL/pgSQL where they cannot work.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_syntax::ast::{Ast, CreateFunction, DefElem, FunctionBody};
use pgvet_syntax::plpgsql::{self, BodyText, Context, StatementKind, Visitor, walk};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// PL/pgSQL code that runs `COMMIT` or `ROLLBACK` in a place where PostgreSQL does not allow it.
    ///
    /// ## Why it matters
    ///
    /// `COMMIT` and `ROLLBACK` fail at run time:
    ///
    /// - in a function
    /// - in a block with `EXCEPTION`, which is a subtransaction
    /// - in a procedure with a `SET` clause or `SECURITY DEFINER`
    /// - in a `DO` or `CALL` that runs in a transaction block
    ///
    /// Tests with little data often do not reach the `COMMIT` or `ROLLBACK`, so the code fails only in production.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE PROCEDURE archive() LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     DELETE FROM events WHERE id < 1000;
    ///     COMMIT;
    /// EXCEPTION WHEN OTHERS THEN
    ///     RAISE WARNING 'failed';
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE PROCEDURE archive() LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     BEGIN
    ///         DELETE FROM events WHERE id < 1000;
    ///     EXCEPTION WHEN lock_not_available THEN
    ///         RAISE WARNING 'failed';
    ///     END;
    ///     COMMIT;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - `COMMIT` and `ROLLBACK` in an exception handler: the subtransaction of its block has ended by then. If an
    ///   outer block also has `EXCEPTION`, the statement is reported.
    "commit-in-subtransaction", Transaction, Error,
    {}
    statement = check,
}

/// A COMMIT or ROLLBACK in a body.
struct Ending {
    range: TextRange,
    in_subtransaction: bool,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    match context.ast {
        Ast::Do(statement) if statement.language == "plpgsql" => {
            let in_transaction = context.in_block();
            let refusal = Refusal {
                reason: "a DO block cannot end the transaction block that it runs in",
                help: "run the DO block outside a transaction, or remove COMMIT and ROLLBACK from it",
            };
            report(context, &statement.body, statement.keyword, in_transaction.then_some(refusal), reporter);
        }
        Ast::CreateFunction(function) if function.language == "plpgsql" => {
            report(context, &function.body, function.name.range(), refusal(function), reporter);
        }
        Ast::Call(call) if context.in_block() => {
            let (name, schema) = (&call.call.name, &call.call.schema);
            let path = context.session.settings.schemas(schema.as_ref());
            let mut named = path.iter().flat_map(|schema| context.before.functions_named(schema, name));
            let ends = named.next().is_some_and(|procedure| {
                procedure.language == "plpgsql" && !endings(context.source(), &procedure.body, false).is_empty()
            });
            if ends {
                let message = format!(
                    "PostgreSQL refuses this call in a transaction block, because the procedure {name}() ends the \
                     transaction with COMMIT or ROLLBACK"
                );
                let help = "call the procedure from a migration that runs without a transaction";
                reporter.report(call.call.name_range, message).help(help).emit();
            }
        }
        _ => {}
    }
}

/// Why code can never end a transaction, and the next step.
struct Refusal {
    reason: &'static str,
    help: &'static str,
}

/// Returns why a function or procedure can never end a transaction.
///
/// Source: PostgreSQL 18, `src/backend/commands/functioncmds.c`, `ExecuteCallStmt`.
fn refusal(function: &CreateFunction) -> Option<Refusal> {
    let has = |name: &str, wanted: fn(&DefElem) -> bool| {
        function.options.iter().any(|option| option.name == name && wanted(option))
    };
    if !function.procedure {
        Some(Refusal {
            reason: "a function cannot end the transaction, but a procedure can",
            help: "use a procedure, and call it outside a transaction; or let the caller end the transaction",
        })
    } else if has("set", |_| true) {
        Some(Refusal {
            reason: "a procedure with a SET clause cannot end the transaction",
            help: "remove the SET clause (qualify names in the body instead of setting search_path), or let the \
                   caller end the transaction",
        })
    } else if has("security", |option| option.as_bool() == Some(true)) {
        Some(Refusal {
            reason: "a SECURITY DEFINER procedure cannot end the transaction",
            help: "use SECURITY INVOKER, and call the procedure outside a transaction; or let the caller end the \
                   transaction",
        })
    } else {
        None
    }
}

fn report(
    context: &RuleContext<'_>,
    body: &FunctionBody,
    fallback: TextRange,
    refusal: Option<Refusal>,
    reporter: &mut Reporter<'_>,
) {
    for ending in endings(context.source(), body, true) {
        let range = if ending.range.is_empty() { fallback } else { ending.range };
        if let Some(Refusal { reason, help }) = &refusal {
            reporter.report(range, format!("PostgreSQL refuses this: {reason}")).help(*help).emit();
        } else if ending.in_subtransaction {
            let message =
                "PostgreSQL refuses to end the transaction here: a block with an EXCEPTION clause is a subtransaction";
            let help = "put only the statements that may fail into the block with EXCEPTION, and end the transaction \
                        after that block";
            reporter.report(range, message).help(help).emit();
        }
    }
}

/// The endings of a body. Their ranges are those of the file if the body stands in it as it is (and `here`).
fn endings(file: &str, body: &FunctionBody, here: bool) -> Vec<Ending> {
    let FunctionBody::Source { text, range } = body else { return Vec::new() };
    let is_verbatim = here && file.get(range.as_usize()) == Some(text.as_str());
    let whole = TextRange::new(0, text.len() as u32);
    let body = if is_verbatim { BodyText::verbatim(file, *range) } else { BodyText::verbatim(text, whole) };
    let mut found = Endings { is_verbatim, endings: Vec::new() };
    walk(&plpgsql::read(&body).block, &mut found);
    found.endings
}

struct Endings {
    is_verbatim: bool,
    endings: Vec<Ending>,
}

impl Visitor for Endings {
    fn statement(&mut self, statement: &plpgsql::Statement, context: Context) {
        if matches!(statement.kind, StatementKind::Commit(_) | StatementKind::Rollback(_)) {
            let range = if self.is_verbatim { statement.keyword } else { TextRange::default() };
            self.endings.push(Ending { range, in_subtransaction: context.subtransactions > 0 });
        }
    }
}
