//! Commands whose purpose is to rewrite a table.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::locking::unseen_partitions;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::effect::{PartitionWork, PartitionWorkKind, RelationName, Rewrite, RewriteCause};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A command that rewrites a whole table, such as `VACUUM FULL`, `CLUSTER`, `SET LOGGED` or `SET TABLESPACE`.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL locks the table in ACCESS EXCLUSIVE mode before it copies the table: nobody can read or write it
    /// until the transaction ends. On a large table the copy takes minutes or hours, needs twice the disk space, and is
    /// sent to the standbys in full.
    ///
    /// Moving an index to another tablespace locks the index. Until the transaction ends, PostgreSQL cannot plan any
    /// query on the table of the index.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// VACUUM FULL orders;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// VACUUM orders;
    /// ```
    ///
    /// Plain VACUUM makes the space of dead rows reusable without a lock that blocks reads or writes. The extensions
    /// `pg_repack` and `pg_squeeze` return that space to the operating system while the table is in use.
    ///
    /// ## When it is not reported
    ///
    /// - a table that already has the persistence, access method or tablespace which the statement names: PostgreSQL
    ///   then rewrites nothing
    /// - rewrites that new columns and type changes cause, which `column-default-rewrites-table` and
    ///   `type-change-rewrites-table` report
    /// - a table that the same transaction created, or that the same migration created and left empty
    "table-rewrite", Locking, Error,
    {
        sources: &["squawk/prefer-repack", "pgls/banVacuumFull", "pg-migration-lint/PGM018", "pg-migration-lint/PGM021", "atlas/PG307", "atlas/PG311"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let rewrites = context.effects.rewrites.iter();
    let exposed: Vec<&Rewrite> = rewrites
        .filter(|rewrite| rewrite.relation.visibility.is_exposed() && action(&rewrite.cause).is_some())
        .collect();
    let mut ranges: Vec<TextRange> = exposed.iter().map(|rewrite| rewrite.range).collect();
    ranges.dedup();
    for range in ranges {
        let here: Vec<&Rewrite> = exposed.iter().filter(|rewrite| rewrite.range == range).copied().collect();
        report(context, range, &here, reporter);
    }
    let rewrites = |work: &PartitionWork, of_expression: bool| match &work.kind {
        PartitionWorkKind::Rewrite(cause) if matches!(cause, RewriteCause::SetExpression { .. }) == of_expression => {
            action(cause).map(str::to_owned)
        }
        _ => None,
    };
    let help = "run the statement on each partition separately, when nobody uses that partition";
    unseen_partitions::report(context, reporter, |work| rewrites(work, false), help);
    let help =
        "add a plain column, keep it up to date with a trigger, fill it in batches, and replace the column with it";
    unseen_partitions::report(context, reporter, |work| rewrites(work, true), help);
}

/// Reports what one command rewrites.
fn report(context: &RuleContext<'_>, range: TextRange, rewrites: &[&Rewrite], reporter: &mut Reporter<'_>) {
    let [first, more @ ..] = rewrites else { return };
    let Some(action) = action(&first.cause) else { return };
    let relation = &first.relation;
    // Each table has a transaction of its own. Source: PostgreSQL 18, vacuum.c, cluster.c.
    let is_one_at_a_time = matches!(first.cause, RewriteCause::VacuumFull | RewriteCause::Cluster);
    let tables = if more.len() == 1 { "table" } else { "tables" };
    // VACUUM runs in no transaction block.
    let end = if matches!(first.cause, RewriteCause::VacuumFull) { "the statement" } else { "the transaction" };
    let what = match (relation.kind.is_index(), more.len()) {
        (true, 0) => {
            format!("index `{}`, and blocks all queries on its table until the transaction ends", relation.name)
        }
        (true, more) => {
            format!(
                "index `{}` and {more} more, and blocks all queries on their tables until the transaction ends",
                relation.name
            )
        }
        (false, 0) => {
            format!("`{}`, and blocks all reads and writes of the table until {end} ends", relation.name)
        }
        (false, more) if is_one_at_a_time => format!(
            "`{}` and {more} more {tables} one after the other, and blocks all reads and writes of the current table",
            relation.name
        ),
        (false, more) => format!(
            "`{}` and {more} more {tables}, and blocks all reads and writes of these tables until the transaction \
             ends",
            relation.name
        ),
    };
    let message = format!("{action} {what}");
    let obstacle = no_statement(&first.cause).map(str::to_owned);
    let mut finding = reporter.report(range, message).help(help(context, relation, &first.cause)).obstacle(obstacle);
    for rewrite in rewrites {
        finding = finding.relation(table_of(context, &rewrite.relation).as_ref().unwrap_or(&rewrite.relation));
    }
    // The first table says nothing about the others.
    if more.is_empty() { finding.grows().emit() } else { finding.emit() }
}

/// The table of an index, whose size counts.
fn table_of(context: &RuleContext<'_>, relation: &RelationName) -> Option<RelationName> {
    let table = context.before.get_relation(relation.oid)?.index()?.table;
    let table = context.before.get_relation(table)?;
    Some(RelationName { visibility: relation.visibility, ..RelationName::existing(table) })
}

/// What the command does, where it is a command of this rule.
fn action(cause: &RewriteCause) -> Option<&'static str> {
    Some(match cause {
        RewriteCause::VacuumFull => "VACUUM FULL rewrites",
        RewriteCause::Cluster => "CLUSTER rewrites",
        RewriteCause::Persistence => "changing between LOGGED and UNLOGGED rewrites",
        RewriteCause::AccessMethod => "changing the access method rewrites",
        RewriteCause::Tablespace => "moving to another tablespace copies",
        RewriteCause::SetExpression { .. } => "changing the expression of a stored generated column rewrites",
        _ => return None,
    })
}

/// The help for commands that no sequence of statements replaces. Source: PostgreSQL 18 documentation, "CLUSTER" and
/// "VACUUM".
fn no_statement(cause: &RewriteCause) -> Option<&'static str> {
    match cause {
        RewriteCause::VacuumFull | RewriteCause::Cluster | RewriteCause::Tablespace => Some(
            "PostgreSQL up to 18 has no statement that does this while the table is in use; tools such as pg_repack \
             can",
        ),
        _ => None,
    }
}

fn help(context: &RuleContext<'_>, relation: &RelationName, cause: &RewriteCause) -> String {
    let name = sql_name(context, relation);
    let everything = matches!(context.ast, Ast::Vacuum(vacuum) if vacuum.tables.is_empty());
    let tables = if everything { String::new() } else { format!(" {name}") };
    match cause {
        RewriteCause::VacuumFull => format!(
            "to return the space to the operating system while the table is in use, use the extension pg_repack or \
             pg_squeeze. To only make the space reusable, use plain VACUUM, which does not block reads or writes:\n    \
             VACUUM{tables};"
        ),
        RewriteCause::Cluster => {
            "use the extension pg_repack or pg_squeeze, which puts rows in order while the table is in use".to_owned()
        }
        RewriteCause::Tablespace if relation.kind.is_index() => move_index(context, relation, &name),
        RewriteCause::Tablespace => {
            "use the extension pg_repack, which moves a table (`--tablespace`) while the table is in use".to_owned()
        }
        RewriteCause::SetExpression { column } => format!(
            "add a plain column, keep it up to date with a trigger, fill it in batches, and replace `{column}` with it"
        ),
        _ => {
            "create a new table with the new setting, keep it up to date with a trigger, fill it in batches, and swap \
              the names"
                .to_owned()
        }
    }
}

/// REINDEX builds the index again in the other tablespace (14 and later), except that of an exclusion constraint.
fn move_index(context: &RuleContext<'_>, index: &RelationName, name: &str) -> String {
    let definition = context.before.get_relation(index.oid).and_then(|relation| relation.index());
    let unless = if definition.is_none() { ", unless it belongs to an exclusion constraint" } else { "" };
    let exclusion = definition.is_some_and(|definition| definition.exclusion);
    let tablespace = match context.ast {
        Ast::AlterTable(statement) => statement.commands.iter().find_map(|command| match &command.action {
            pgvet_syntax::ast::AlterTableAction::SetTablespace { tablespace } => Some(identifier(&tablespace.text)),
            _ => None,
        }),
        _ => None,
    };
    match tablespace {
        Some(tablespace) if !exclusion && context.target.at_least(14) => format!(
            "rebuild the index concurrently in the new tablespace, outside a transaction{unless}:\n    REINDEX \
             (TABLESPACE {tablespace}) INDEX CONCURRENTLY {name};"
        ),
        _ if exclusion => {
            "the index of an exclusion constraint cannot be built concurrently: move the index while the table is \
                           not in use"
                .to_owned()
        }
        _ => "create another index in the new tablespace with CREATE INDEX CONCURRENTLY, then drop this one with DROP \
             INDEX CONCURRENTLY"
            .to_owned(),
    }
}
