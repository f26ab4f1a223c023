//! A strong lock that is waited for without limit.

use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::fix::{Applicability, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::{leave_transaction, line_at_start, line_before};
use crate::rules::deployment::dropped_later::is_dropped_later;
use crate::rules::deployment::dropped_relation::{self, Loss};
use crate::rules::statement::locks::blocks_only_writes_of_lookup;
use crate::rules::statement::timeouts::{awaited_lock_of, lock_timeout_in_effect, lost, waited_before};
use crate::settings::LockTimeout;
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{RelationName, Removal};
use pgvet_syntax::ast::{Ast, ObjectKind};

declare_rule! {
    /// A statement that can wait indefinitely for a lock that blocks reads or writes, because no `lock_timeout` is in
    /// effect.
    ///
    /// ## Why it matters
    ///
    /// Even if the work is short, the statement waits for every transaction that holds a conflicting lock, and later
    /// conflicting queries queue behind it. One forgotten transaction or long report is enough to lock everybody out
    /// until it ends. With a `lock_timeout` the migration gives up after a moment and can be retried.
    ///
    /// The finding assumes that `lock_timeout` is not set for the role, the database or the connection. If it is, set
    /// `lock-timeout = "runner"` in pgvet.toml. Because one such setting would be enough for all migrations of a database,
    /// reports combine the findings of a run into one finding with all locations.
    ///
    /// ## Example
    ///
    /// ```sql,reported
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
    /// In a transaction, use `SET LOCAL lock_timeout = '2s'`: the setting then ends with the transaction.
    ///
    /// A statement that waits for several locks is reported once. The message names the lock that blocks most. If
    /// several locks block equally, it names the one on the table that was created first.
    ///
    /// ## When it is not reported
    ///
    /// - a statement in a transaction in which an earlier statement has taken a lock that blocks reads or writes, on
    ///   any table: the earlier statement is reported
    /// - a table or view that the migration drops for good, which `drop-table` reports
    /// - a `LOCK TABLE` statement, which `explicit-table-lock` reports
    /// - a migration that sets a timeout that is not in effect, which `timeout-not-in-effect` reports
    /// - statements such as `CREATE INDEX CONCURRENTLY`: a timeout could make them leave an invalid index
    /// - a table that the same transaction created, or that the same deployment created and left empty
    ///
    /// ## Confidence
    ///
    /// If the lock blocks only writes, and only migrations insert the rows of the table, the confidence is `possible`.
    ///
    /// ## Incidents
    ///
    /// - [sentry #79052](https://github.com/getsentry/sentry/pull/79052): a migration without a lock timeout waited for
    ///   its lock, and production went down
    ///
    /// ## Fix safety
    ///
    /// In a transaction, the fix writes `SET LOCAL lock_timeout` before the statement. That fix is safe: if the timeout
    /// expires, the whole transaction is rolled back. Outside a transaction, the fix writes `SET lock_timeout` at the
    /// start of the file. That fix is unsafe: if the timeout expires, earlier statements are already committed. The
    /// setting also remains for the session. Outside a transaction, there is no fix in files with `CONCURRENTLY`,
    /// because concurrent builds must be able to wait. There is also no fix for an index that can be built or dropped
    /// concurrently.
    "missing-lock-timeout", Locking, Warning,
    {
        fixable: true,
        sources: &[
            "squawk/require-lock-timeout",
            "squawk/ban-alter-row-level-security",
            "squawk/ban-create-policy",
            "eugene/E9",
            "pgls/lockTimeoutWarning",
        ],
    }
    statement = check,
}

const INSIDE: &str = "set lock_timeout at the start of the transaction:\n    SET LOCAL lock_timeout = '2s';";
const OUTSIDE: &str = "set lock_timeout at the start of the file:\n    SET lock_timeout = '2s';";
/// For a file whose parts have sessions of their own.
const FOR_THE_ROLE: &str = "set lock_timeout for the role or the database: each part of this file runs in a session of its \
                            own, so a SET does not reach the next part";
/// For a file with an up and a down section.
const OUTSIDE_OF_PART: &str = "set lock_timeout at the start of the up section:\n    SET lock_timeout = '2s';";
const ELSEWHERE: &str =
    "if the role, database or connection sets lock_timeout, set `lock-timeout = \"runner\"` in pgvet.toml";

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let settled = context.settings.lock_timeout == LockTimeout::Runner || lock_timeout_in_effect(context);
    if settled || matches!(context.ast, Ast::LockTable(_)) || waited_before(context) {
        return;
    }
    let dropped: Vec<Oid> = context.effects.removals.iter().filter_map(|removal| gone(context, removal)).collect();
    let is_dropped = |relation: &RelationName| {
        dropped.contains(&relation.oid) || (relation.kind.is_table() && is_dropped_later(context, relation))
    };
    let Some(lock) = awaited_lock_of(context, |relation| !is_dropped(relation)) else { return };
    if lost(context).is_some() {
        return;
    }
    let stopped = if lock.mode.blocks_reads() { "query" } else { "write" };
    let message = format!(
        "without lock_timeout this can wait indefinitely for {} on `{}`, and every later {stopped} queues behind it",
        lock.mode.sql(),
        lock.relation.name
    );
    let setting = match context.migration.section {
        _ if context.in_block() && context.is_surely_in_block() => INSIDE,
        _ if context.migration.runner.session_per_string => FOR_THE_ROLE,
        None => OUTSIDE,
        Some(_) => OUTSIDE_OF_PART,
    };
    let help = format!("{setting}\n{ELSEWHERE}");
    let finding = reporter.report(lock.range, message).relation(&lock.relation).help(help);
    let is_idle = blocks_only_writes_of_lookup(context, lock.relation.oid, lock.mode);
    let finding =
        finding.assuming(is_idle.then(|| Assumption::WritesListedTable { table: lock.relation.name.clone() }));
    let finding = finding.assuming(Assumption::LockTimeoutUnset).caused_by(Cause::Database(context.migration.database));
    finding.fix(set_before(context)).emit();
}

/// The table or view that a removal drops for good: a query that queues behind the lock fails in any case, and
/// `drop-table` reports that.
fn gone(context: &RuleContext<'_>, removal: &Removal) -> Option<Oid> {
    let (relation, loss) = dropped_relation::lost(context, removal)?;
    matches!(loss, Loss::Gone).then_some(relation.oid)
}

/// In a transaction the setting stands on a line before the statement, elsewhere once at the start of the file; not
/// where something follows that must be able to wait.
fn set_before(context: &RuleContext<'_>) -> Option<Fix> {
    let in_transaction = context.is_surely_in_block();
    let waits = || context.endings.outline(context.file, context.migration).has_concurrent();
    let is_lost = context.migration.runner.session_per_string;
    if can_be_concurrent(context) || !in_transaction && (is_lost || waits()) {
        return None;
    }
    if in_transaction {
        let sql = "SET LOCAL lock_timeout = '2s'";
        let (title, edits) = (format!("Add {sql} before this statement"), vec![line_before(context, sql)]);
        return Some(Fix { title, applicability: Applicability::Safe, edits });
    }
    let sql = "SET lock_timeout = '2s'";
    let edit = line_at_start(context, sql)?;
    let start = if context.migration.section.is_some() { "up section" } else { "file" };
    let title = format!("Add {sql} at the start of the {start}");
    Some(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] })
}

/// Whether the fix would have to write CONCURRENTLY, which a timeout would harm.
fn can_be_concurrent(context: &RuleContext<'_>) -> bool {
    let knows_it = match context.ast {
        Ast::CreateIndex(_) | Ast::Reindex(_) | Ast::RefreshMaterializedView(_) => true,
        Ast::Drop(drop) => drop.kind == ObjectKind::Index,
        _ => false,
    };
    knows_it && leave_transaction(context).is_some()
}

#[cfg(test)]
mod tests {
    use crate::check::check;
    use crate::settings::Settings;
    use pgvet_model::migration::{Direction, Migration, TransactionMode};
    use pgvet_syntax::source::{SourceFile, TextRange};
    use pgvet_syntax::statement::parse_file;

    #[test]
    fn the_help_names_the_part_of_a_file_with_two() {
        let text = "-- migrate:up\nALTER TABLE orders ADD note text;\n-- migrate:down\n";
        let file = parse_file(SourceFile::new("1.sql".to_owned(), text.to_owned()));
        let help = |section| {
            let (direction, transaction) = (Direction::Up, TransactionMode::Autocommit);
            let migration = Migration { section, direction, transaction, ..Migration::new(&file) };
            let settings = Settings { only: vec!["missing-lock-timeout".to_owned()], ..Settings::default() };
            check(&[migration], &settings)[0].help.clone().unwrap_or_default()
        };
        assert!(help(None).starts_with("set lock_timeout at the start of the file:"));
        assert!(help(Some(TextRange::new(14, 48))).starts_with("set lock_timeout at the start of the up section:"));
    }
}
