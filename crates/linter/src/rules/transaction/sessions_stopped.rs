//! Sessions of others that a migration ends.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::effect::Reach;
use pgvet_model::execute::reach_of_function;
use pgvet_syntax::ast::{Expr, ExprKind, Part};

declare_rule! {
    /// A migration that ends other sessions or cancels their statements.
    ///
    /// ## Why it matters
    ///
    /// `pg_terminate_backend` closes a connection in the middle of its transaction, and `pg_cancel_backend` cancels the
    /// statement that a session runs. The application gets errors, its open transactions are rolled back, and jobs and
    /// other migrations stop halfway. It is safer to set `lock_timeout`, and to retry if the timeout expires.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid();
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// SET lock_timeout = '2s';
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - functions that no migration calls
    "sessions-stopped", Transaction, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if !context.effects.reaches.contains(&Reach::Sessions) {
        return;
    }
    context.ast.visit(&mut |part| {
        let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part else { return };
        if reach_of_function(&call.name) != Some(&Reach::Sessions) {
            return;
        }
        let what = match call.name.as_str() {
            "pg_cancel_backend" => "cancels the running statements of other sessions, so that they fail",
            _ => "ends other sessions and rolls back their transactions",
        };
        let help = "set lock_timeout, and retry the migration if it cannot get a lock; or, before the migration, stop \
                    the programs that hold conflicting locks";
        reporter.report(call.name_range, format!("{}() {what}", call.name)).help(help).emit();
    });
}
