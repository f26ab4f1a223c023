//! A timeout that cancels work which must be able to wait.

use crate::assumption::Assumption;
use crate::fix::{Applicability, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::{is_autocommit, line_before};
use crate::rules::statement::timeouts::TIMEOUTS;
use pgvet_syntax::ast::{AlterTableAction, Ast};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A timeout that is in effect while `CREATE INDEX CONCURRENTLY` or a similar statement runs.
    ///
    /// ## Why it matters
    ///
    /// With `CONCURRENTLY`, PostgreSQL waits for older transactions that may still use the table without the change. If
    /// a `lock_timeout` cancels that wait, or a `statement_timeout` cancels the work, an invalid index can remain. An
    /// invalid index slows down every write, but no query can use it. A cancelled `DETACH PARTITION CONCURRENTLY` can
    /// leave the detach pending until you run `DETACH PARTITION ... FINALIZE`.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// SET lock_timeout = '2s';
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// SET lock_timeout = 0;
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - timeouts that the file does not set: pgvet does not know the timeouts that the role, the database or the
    ///   migration tool sets
    /// - statements inside a transaction block, which PostgreSQL refuses anyway
    ///
    /// ## Fix safety
    ///
    /// The fix adds `SET ... = 0` before the statement. The fix is unsafe, because the setting also applies to later
    /// statements.
    "timeout-during-concurrent-build", Locking, Warning,
    { fixable: true }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if !context.effects.waits_for_transactions || context.effects.fails.is_some() {
        return;
    }
    let settings = &context.session.settings;
    let active: Vec<&str> = TIMEOUTS.into_iter().filter(|name| settings.timeout(name).is_some()).collect();
    let Some((range, left)) = place(context.ast, context.statement.range) else { return };
    if active.is_empty() {
        return;
    }
    let names: Vec<String> = active.iter().map(ToString::to_string).collect();
    let message = format!("if {} expires, this statement {left}", names.join(" or "));
    let zeros: Vec<String> = active.iter().map(|name| format!("\n    SET {name} = 0;")).collect();
    let which = if active.len() == 1 { "the timeout" } else { "both timeouts" };
    let help = if context.migration.runner.keeps_apart {
        format!(
            "turn off {which} at the end of an earlier migration, because this migration must contain nothing else:{}",
            zeros.concat()
        )
    } else {
        format!("turn off {which} before this statement:{}", zeros.concat())
    };
    let mut finding = reporter.report(range, message).help(help);
    let doubtful = active.iter().find(|name| settings.is_doubtful(name));
    if let Some(name) = doubtful {
        finding = finding.assuming(Assumption::SameRun { setting: SmolStr::new(name) });
    }
    // A program that refuses a SET beside such a statement would refuse the migration.
    if is_autocommit(context) && !context.migration.runner.keeps_apart {
        let sql: Vec<String> = active.iter().map(|name| format!("SET {name} = 0")).collect();
        let edit = line_before(context, &sql.join(";\n"));
        let title = "Turn the timeout off before the statement".to_owned();
        finding = finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] });
    }
    for name in active {
        if let Some(setting) = settings.get(name) {
            finding = finding.label_in(setting.place.file, setting.place.range, "set here");
        }
    }
    finding.emit();
}

/// The words of the statement that do it, and what remains if it is cancelled.
fn place(ast: &Ast, statement: TextRange) -> Option<(TextRange, &'static str)> {
    let invalid = "can leave an invalid index";
    match ast {
        Ast::CreateIndex(create) => Some((create.keyword, invalid)),
        Ast::Reindex(reindex) => Some((reindex.keyword, invalid)),
        Ast::Drop(drop) => Some((drop.keyword, invalid)),
        Ast::AlterTable(alter) => {
            let detach = |action: &AlterTableAction| matches!(action, AlterTableAction::DetachPartition { .. });
            let command = alter.commands.iter().find(|command| detach(&command.action));
            Some((
                command.map_or(statement, |command| command.keyword),
                "can leave the detach incomplete (DETACH PENDING)",
            ))
        }
        _ => None,
    }
}
