//! A `lock_timeout` that is set and has no effect.

use crate::fix::{Applicability, Edit, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::line_before;
use crate::rules::statement::timeouts::{Lost, TIMEOUTS, awaited_lock, lock_timeout_in_effect, lost, waited_before};
use crate::settings::LockTimeout;
use pgvet_model::effect::{ChangedObject, ObjectChange};
use pgvet_syntax::ast::{Literal, Setting};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A timeout that a migration sets, but that is not in effect when it is needed.
    ///
    /// ## Why it matters
    ///
    /// The migration looks as if its waits were limited, but they are not. `SET LOCAL` outside a transaction block only
    /// raises a warning. The value 0 turns a timeout off. `RESET` also turns it off, unless the server, the database or
    /// the role sets another default. The effect of `SET LOCAL` ends at COMMIT, and ROLLBACK undoes every SET of the
    /// transaction.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// SET LOCAL lock_timeout = '2s';
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
    /// - a timeout after which no statement takes a lock that blocks reads or writes of a table in use. `SET LOCAL`
    ///   outside a transaction is always reported.
    /// - `lock_timeout = 0` before `CREATE INDEX CONCURRENTLY`, which must be able to wait
    ///
    /// ## Fix safety
    ///
    /// Outside a transaction, the fix removes `LOCAL`. Otherwise it sets `lock_timeout` again before the first statement
    /// that waits for a lock. The fix is unsafe, because a statement that would have waited now fails when the timeout
    /// expires, and earlier statements are already committed.
    "timeout-not-in-effect", Locking, Warning,
    { fixable: true }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let is_setting = |change: &&ObjectChange| matches!(change.object, ChangedObject::Setting { .. });
    if let Some(change) = context.effects.changes.iter().find(is_setting) {
        check_local(context, change, reporter);
    } else if !lock_timeout_in_effect(context) && !waited_before(context) {
        check_lost(context, reporter);
    }
}

/// SET LOCAL outside a transaction block.
fn check_local(context: &RuleContext<'_>, change: &ObjectChange, reporter: &mut Reporter<'_>) {
    let ChangedObject::Setting { setting: Setting::Value { name, values }, local } = &change.object else { return };
    let is_off = matches!(values.as_slice(), [Literal::Integer(0)]);
    if !local || is_off || context.session.in_transaction() || !TIMEOUTS.contains(&name.as_str()) {
        return;
    }
    let message = format!("SET LOCAL has no effect outside a transaction block: {name} is not set");
    let help = format!("set {name} for the session:\n    SET {};", without_local(context));
    let local = context.statement.tokens.get(1).map(|token| token.range);
    let mut finding = reporter.report(change.range, message).help(help);
    if let Some(range) = local.filter(|range| context.text(*range).eq_ignore_ascii_case("local")) {
        let next = context.statement.tokens.get(2).map_or(range.end, |token| token.range.start);
        let edit = Edit { range: TextRange::new(range.start, next), text: String::new() };
        let title = "Set the timeout for the session".to_owned();
        finding = finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] });
    }
    finding.emit();
}

/// The text after SET LOCAL.
fn without_local<'c>(context: &RuleContext<'c>) -> &'c str {
    let (statement, text) = (context.statement, context.source());
    let start = statement.tokens.get(2).map_or(statement.range.start, |token| token.range.start);
    text.get(start as usize..statement.range.end as usize).unwrap_or_default()
}

/// A strong lock after the timeout was switched off or lost.
fn check_lost(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(lock) = awaited_lock(context) else { return };
    let Some((why, place)) = lost(context) else { return };
    let by_runner = context.settings.lock_timeout == LockTimeout::Runner && why != Lost::Zero;
    let label = match why {
        // Reported where it stands.
        Lost::NoTransaction => return,
        _ if by_runner => return,
        Lost::Zero => "0 turns it off",
        Lost::Reset => "restores the server's default, which is off",
        Lost::Committed => "SET LOCAL ends with the transaction",
        Lost::RolledBack => "the ROLLBACK undoes the SET",
    };
    let message = format!(
        "lock_timeout is no longer in effect, so this can wait indefinitely for {} on `{}`",
        lock.mode.sql(),
        lock.relation.name
    );
    let set = context.set_command();
    let help = format!("set lock_timeout again before this statement:\n    {set} lock_timeout = '2s';");
    let finding = reporter.report(lock.range, message).relation(&lock.relation).label(place, label).help(help);
    let edit = line_before(context, &format!("{set} lock_timeout = '2s'"));
    let title = "Set lock_timeout again before the statement".to_owned();
    finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] }).emit();
}
