//! Statistics that the planner lacks after a migration.

use crate::fix::{Applicability, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::line_after;
use crate::rules::deployment::other_statements::any_later;
use crate::rules::text::sql_name;
use pgvet_model::effect::{DataChangeKind, IndexBuildCause, RelationName};
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::ast::{AlterTableAction, Ast};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// An index on an expression, a change of a column's type or a bulk load, without `ANALYZE` after it.
    ///
    /// ## Why it matters
    ///
    /// The planner has no statistics about an expression until the table is analyzed. A type change drops the
    /// statistics of the column. After a bulk load the statistics still describe the table as it was before. Until
    /// autovacuum analyzes the table, query plans can be so slow that the effect looks like an outage.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint, email text);
    /// -- migration:
    /// CREATE INDEX CONCURRENTLY users_email ON users (lower(email));
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint, email text);
    /// -- migration:
    /// CREATE INDEX CONCURRENTLY users_email ON users (lower(email));
    /// ANALYZE users;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a statement after which the migration runs `ANALYZE` on the table
    /// - tables that the same migration creates
    /// - all but the last of several statements about one table
    /// - statements that a `ROLLBACK` of the migration undoes
    ///
    /// ## Incidents
    ///
    /// - [concourse #9420](https://github.com/concourse/concourse/pull/9420): after the migrations a query took 7 s
    ///   instead of 0.3 ms, until the table was analyzed
    /// - [umami #4353](https://github.com/umami-software/umami/issues/4353): after an upgrade dashboard queries were
    ///   more than ten times slower because of stale statistics
    ///
    /// ## Fix safety
    ///
    /// The fix adds an ANALYZE after the statement. The fix is safe, because ANALYZE only reads a sample of the rows
    /// and changes no data.
    "missing-analyze", Data, Info,
    { fixable: true, needs_commit: true, sources: &["migrationpilot/MP088"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((range, table, why)) = reason(context) else { return };
    let is_analyzed = |ast: &Ast| match ast {
        Ast::Vacuum(vacuum) => {
            vacuum.analyze
                && (vacuum.tables.is_empty() || vacuum.tables.iter().any(|name| name.name.text == table.name))
        }
        // Said there.
        Ast::AlterTable(alter) => alter.name.name.text == table.name && changes_type(ast),
        Ast::CreateIndex(index) => {
            index.table.name.text == table.name
                && index.elements.iter().any(|element| element.key.as_column().is_none())
        }
        _ => false,
    };
    if any_later(context, is_analyzed) {
        return;
    }
    let help = format!("run ANALYZE at the end of the migration:\n    ANALYZE {};", sql_name(context, table));
    let finding = reporter.report(range, why).relation(table).help(help);
    // A string with one statement runs without the transaction that a second one brings.
    let is_concurrent = matches!(context.ast, Ast::CreateIndex(index) if index.concurrently);
    let runs_alone = is_concurrent && context.migration.transaction == TransactionMode::SingleString;
    let edit = line_after(context, &format!("ANALYZE {}", sql_name(context, table))).filter(|_| !runs_alone);
    let title = "Add ANALYZE after the statement".to_owned();
    let fix = edit.map(|edit| Fix { title, applicability: Applicability::Safe, edits: vec![edit] });
    finding.fix(fix).emit();
}

fn changes_type(ast: &Ast) -> bool {
    matches!(ast, Ast::AlterTable(alter)
        if alter.commands.iter().any(|command| matches!(command.action, AlterTableAction::AlterColumnType { .. })))
}

/// The cause of missing statistics, and where it is.
fn reason<'a>(context: &'a RuleContext<'_>) -> Option<(TextRange, &'a RelationName, String)> {
    let effects = context.effects;
    if let Ast::AlterTable(alter) = context.ast {
        let table = &effects.locks.first()?.relation;
        let change = alter.commands.iter().find_map(|command| match &command.action {
            AlterTableAction::AlterColumnType { column, .. } => Some(column),
            _ => None,
        })?;
        let why = format!(
            "until ANALYZE runs, the planner has no statistics about `{}`: this type change drops them",
            change.text
        );
        return table.visibility.is_exposed().then_some((change.range, table, why));
    }
    for build in effects.index_builds.iter().filter(|build| build.cause == IndexBuildCause::CreateIndex) {
        let index = context.after.get_relation(build.index.oid).and_then(|index| index.index());
        if build.table.visibility.is_exposed() && index.is_some_and(|index| index.has_expressions()) {
            let why = format!(
                "until ANALYZE runs, the planner has no statistics about the expression in index `{}`",
                build.index.name
            );
            return Some((build.range, &build.table, why));
        }
    }
    let is_load = |kind| kind == DataChangeKind::Insert;
    let load = effects
        .data_changes
        .iter()
        .find(|change| is_load(change.kind) && !change.rows.is_few() && change.relation.visibility.is_exposed())?;
    let Ast::Insert(insert) = context.ast else { return None };
    let why = format!(
        "until ANALYZE runs, the planner's statistics describe `{}` as it was before this INSERT",
        load.relation.name
    );
    Some((insert.table.name.range(), &load.relation, why))
}
