//! REINDEX that blocks the table.

use crate::fix::{Applicability, Edit, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::offer;
use crate::rules::advice::{Advice, everywhere_at_least, outside_transaction};
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{LockCause, RelationName};
use pgvet_syntax::ast::{Ast, LockMode, Reindex, ReindexTarget};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `REINDEX` without `CONCURRENTLY` on a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// The rebuild holds a SHARE lock on the table, which blocks all writes, and an ACCESS EXCLUSIVE lock on the index.
    /// The planner needs a lock on every index of a table, so even queries that would not use this index wait until the
    /// transaction ends.
    ///
    /// `REINDEX SYSTEM` rebuilds the indexes of the system catalogs. Every session reads these catalogs when it
    /// connects and when it plans a query, so new connections and any query may have to wait.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// REINDEX TABLE orders;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// REINDEX TABLE CONCURRENTLY orders;
    /// ```
    ///
    /// `CONCURRENTLY` needs PostgreSQL 12 and cannot run in a transaction block. `CONCURRENTLY` skips the indexes of
    /// exclusion constraints. It also skips invalid indexes, unless `REINDEX INDEX CONCURRENTLY` names them. A failed
    /// rebuild can leave an invalid index. The name of that index ends in `_ccnew`, or in `_ccold` if only the old
    /// index could not be dropped. A number can follow.
    ///
    /// ## When it is not reported
    ///
    /// - a table that the same transaction created, or that the same migration created and left empty
    ///
    /// ## Fix safety
    ///
    /// The fix adds `CONCURRENTLY`. The fix is unsafe, because the file can no longer run in a transaction, and a
    /// rebuild that fails leaves an invalid index. No fix is offered if PostgreSQL would refuse the statement: inside a
    /// transaction, for `REINDEX SYSTEM`, and for the index of an exclusion constraint.
    "reindex-without-concurrently", Locking, Error,
    {
        fixable: true,
        sources: &["squawk/require-concurrent-reindex", "pgls/requireConcurrentReindex"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Reindex(statement) = context.ast else { return };
    if statement.concurrently || context.effects.fails.is_some() {
        return;
    }
    let strong = |mode: LockMode, relation: &RelationName| mode >= LockMode::Share && relation.visibility.is_exposed();
    let locks: Vec<_> = context.effects.locks.iter().filter(|lock| strong(lock.mode, &lock.relation)).collect();
    let table = locks.iter().find(|lock| !lock.relation.kind.is_index()).map(|lock| &lock.relation);
    let index = locks.iter().find(|lock| lock.relation.kind.is_index()).map(|lock| &lock.relation);
    let what = match &statement.target {
        ReindexTarget::Index(_) | ReindexTarget::Table(_) => {
            let new_table = context.effects.locks.iter().any(|lock| {
                !lock.relation.kind.is_index() && !strong(lock.mode, &lock.relation) && lock.cause != LockCause::Query
            });
            match (table, index) {
                (Some(table), _) => format!("`{}`", table.name),
                (None, Some(index)) if !new_table => format!("the table of `{}`", index.name),
                _ => return,
            }
        }
        ReindexTarget::Schema(schema) => format!("schema `{}`", schema.text),
        ReindexTarget::Database => "the database".to_owned(),
        ReindexTarget::System => "the system catalogs".to_owned(),
    };
    let message = match &statement.target {
        ReindexTarget::Index(_) | ReindexTarget::Table(_) => {
            format!(
                "REINDEX blocks all writes to {what}, and most reads too: PostgreSQL cannot plan queries on the table \
                 until the transaction ends"
            )
        }
        // Every session reads the catalogs when it connects and when it plans a query.
        ReindexTarget::System => format!(
            "REINDEX can block new connections, DDL and the planning of any query while it rebuilds the indexes of \
             {what}, one catalog at a time"
        ),
        ReindexTarget::Schema(_) | ReindexTarget::Database => format!(
            "REINDEX rebuilds the indexes of {what} table by table, and blocks all writes to the current table and \
             most reads of it: PostgreSQL cannot plan queries on that table"
        ),
    };
    let mut finding = reporter.report(statement.keyword, message);
    if let Some(relation) = table.or(index) {
        finding = finding.relation(relation);
    }
    if let Some(reason) = refused(context, statement, index) {
        finding.help(format!("run REINDEX when there is little traffic, with a short lock_timeout ({reason})")).emit();
        return;
    }
    let target = TextRange::new(statement.keyword.start, statement.target_keyword.end);
    let rest = TextRange::new(statement.target_keyword.end, context.statement.range.end);
    let sql = format!("{} CONCURRENTLY {}", context.text(target), context.text(rest).trim());
    let advice = Advice::new(format!("rebuild the indexes concurrently, {}:", outside_transaction(context)))
        .sql(sql)
        .complete(context);
    finding = offer(context, finding, advice);
    if !context.session.in_transaction() {
        let edit = Edit { range: TextRange::at(statement.target_keyword.end), text: " CONCURRENTLY".to_owned() };
        let title = "Rebuild the indexes concurrently".to_owned();
        finding = finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] });
    }
    finding.emit();
}

/// Why PostgreSQL would not do it concurrently.
fn refused(context: &RuleContext<'_>, statement: &Reindex, index: Option<&RelationName>) -> Option<&'static str> {
    if statement.target == ReindexTarget::System {
        return Some("the indexes of system catalogs cannot be rebuilt concurrently");
    }
    if !everywhere_at_least(context, 12) {
        return Some("before PostgreSQL 12 there is no REINDEX CONCURRENTLY");
    }
    let index = index.filter(|index| {
        matches!(statement.target, ReindexTarget::Index(_)) && index.kind != RelationKind::PartitionedIndex
    })?;
    let definition = context.before.get_relation(index.oid)?.index()?;
    definition.exclusion.then_some("the index of an exclusion constraint cannot be rebuilt concurrently")
}
