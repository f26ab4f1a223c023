//! A timeout that cancels work which must be able to wait.

use crate::ast::{AlterTableAction, Ast};
use crate::confidence::Assumption;
use crate::fix::{Applicability, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::{is_autocommit, line_before};
use crate::rules::text::join;
use crate::rules::timeouts::TIMEOUTS;
use crate::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A timeout that is in effect while `CREATE INDEX CONCURRENTLY` or its like runs.
    ///
    /// ## Why it matters
    ///
    /// `CONCURRENTLY` means waiting for every transaction that may still use the old state, and working without a lock
    /// that stops others. A `lock_timeout` cancels that wait, a `statement_timeout` the work, and then an invalid index is
    /// left, which costs every write and serves no query; after `DETACH PARTITION CONCURRENTLY` a partition that is half
    /// detached.
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
    /// When the file sets no timeout: one that the role, the database or the program sets is not seen. Inside a
    /// transaction block, where PostgreSQL refuses the statement anyway.
    ///
    /// ## Fix safety
    ///
    /// The fix writes `SET ... = 0` before the statement. It is unsafe: the setting holds for what follows as
    /// well.
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
    let (verb, which) = if active.len() == 1 { ("is", "it") } else { ("are", "one") };
    let message = format!("{} {verb} in effect: when {which} strikes, {left}", join(&names));
    let zeros: Vec<String> = active.iter().map(|name| format!("\n    SET {name} = 0;")).collect();
    let help = if context.migration.runner.keeps_apart {
        format!("{} at the end of an earlier migration: this one must hold nothing else", zeros.concat().trim_start())
    } else {
        format!("before it:{}", zeros.concat())
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
        let title = "Switch the timeout off before it".to_owned();
        finding = finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] });
    }
    for name in active {
        if let Some(setting) = settings.get(name) {
            finding = finding.label_in(setting.place.file, setting.place.range, "set here");
        }
    }
    finding.emit();
}

/// Where the statement says what it does, and what is left when it is cancelled.
fn place(ast: &Ast, statement: TextRange) -> Option<(TextRange, &'static str)> {
    let invalid = "an invalid index is left";
    match ast {
        Ast::CreateIndex(create) => Some((create.keyword, invalid)),
        Ast::Reindex(reindex) => Some((reindex.keyword, invalid)),
        Ast::Drop(drop) => Some((drop.keyword, invalid)),
        Ast::AlterTable(alter) => {
            let detach = |action: &AlterTableAction| matches!(action, AlterTableAction::DetachPartition { .. });
            let command = alter.commands.iter().find(|command| detach(&command.action));
            Some((command.map_or(statement, |command| command.keyword), "the partition is left half detached"))
        }
        _ => None,
    }
}
