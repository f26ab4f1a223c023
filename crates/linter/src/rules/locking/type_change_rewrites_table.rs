//! ALTER COLUMN TYPE that costs more than a change of the catalog.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::offer;
use crate::rules::advice::{Advice, column, outside_transaction};
use crate::rules::locking::unseen_partitions;
use crate::rules::statement::altered::{Altered, subject};
use crate::rules::text::{enumerate, sql_name};
use pgvet_model::builtin::type_by_name;
use pgvet_model::effect::{IndexBuildCause, PartitionWorkKind, RelationName, Rewrite, RewriteCause, ScanCause};
use pgvet_syntax::ast::AlterTableAction;
use pgvet_syntax::source::TextRange;
use std::fmt::Write;

declare_rule! {
    /// A change of a column's type that rewrites the table, rebuilds an index or rechecks a constraint for all rows.
    ///
    /// ## Why it matters
    ///
    /// ALTER TABLE holds an ACCESS EXCLUSIVE lock: nobody can read or write the table until the transaction ends.
    /// PostgreSQL writes every row and builds every index again. The rewrite also needs disk space for a second copy of
    /// the table and its indexes.
    ///
    /// A change that does not rewrite the rows can also take long. PostgreSQL rebuilds indexes that use the column in
    /// an expression or a predicate, and rechecks every row for each CHECK that uses the column.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ALTER COLUMN id TYPE bigint;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders ADD COLUMN id_new bigint;
    /// ```
    ///
    /// Then create a trigger that keeps the new column up to date, fill existing rows in batches, and swap the column
    /// names in one short transaction.
    ///
    /// ## When it is not reported
    ///
    /// - changes that PostgreSQL makes only in its catalog. Examples are `varchar(n)` to a wider one or to `text`,
    ///   `numeric` to a larger precision with the same scale, `cidr` to `inet`, and a domain without constraints to its
    ///   base type and back.
    /// - from PostgreSQL 12 on, `timestamp` to `timestamptz`, if the migration sets the time zone to UTC and no index
    ///   uses the column
    /// - a table that the same transaction created, or that the same migration created and left empty
    ///
    /// If no migration shows the current type of the column, pgvet assumes that the change rewrites the table. The
    /// confidence is `possible` if the new type is `varchar`, `text`, `numeric` or `bit varying`, because PostgreSQL only
    /// changes its catalog if such a type becomes wider.
    "type-change-rewrites-table", Locking, Error,
    {
        sources: &[
            "squawk/changing-column-type",
            "eugene/E5",
            "strong_migrations/change_column",
            "pgls/changingColumnType", "atlas/PG301"],
    }
    statement = check,
}

/// What one change of a type does.
#[derive(Default)]
struct Work<'e> {
    rewritten: Vec<&'e RelationName>,
    from_unknown: bool,
    /// The evidence that the change may be one in the catalog.
    doubt: Option<Assumption>,
    /// The length of the varchar that text becomes.
    new_length: Option<i32>,
    rebuilt: Vec<&'e RelationName>,
    built_on: Vec<&'e RelationName>,
    rechecked: Vec<&'e str>,
    scanned: Vec<&'e RelationName>,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let effects = context.effects;
    let rewrites = effects.rewrites.iter().filter(|rewrite| matches!(rewrite.cause, RewriteCause::TypeChange { .. }));
    let builds = effects.index_builds.iter().filter(|build| matches!(build.cause, IndexBuildCause::TypeChange { .. }));
    let scans = effects.scans.iter().filter(|scan| is_recheck(context, &scan.cause, scan.range));
    let mut ranges: Vec<TextRange> = rewrites.clone().map(|rewrite| rewrite.range).collect();
    ranges.extend(builds.clone().map(|build| build.range).chain(scans.clone().map(|scan| scan.range)));
    ranges.sort_unstable();
    ranges.dedup();
    for &range in &ranges {
        let mut work = Work::default();
        for rewrite in rewrites.clone().filter(|rewrite| rewrite.range == range) {
            if rewrite.relation.visibility.is_exposed() {
                work.rewritten.push(&rewrite.relation);
                if let RewriteCause::TypeChange { from, to, .. } = &rewrite.cause {
                    let oid = |name: &str| type_by_name(name).map(|found| found.oid);
                    let is = |sql_type: u32, name: &str| oid(name) == Some(sql_type);
                    work.from_unknown |= !from.is_known();
                    work.doubt = work.doubt.take().or_else(|| type_not_shown(rewrite));
                    let text = is(from.oid.0, "text") || is(from.oid.0, "varchar");
                    // PostgreSQL's VARHDRSZ is part of the modifier.
                    work.new_length = (text && is(to.oid.0, "varchar") && to.typmod > 4).then_some(to.typmod - 4);
                }
            }
        }
        for build in builds.clone().filter(|build| build.range == range && build.table.visibility.is_exposed()) {
            work.rebuilt.push(&build.index);
            work.built_on.push(&build.table);
        }
        for scan in scans.clone().filter(|scan| scan.range == range && scan.relation.visibility.is_exposed()) {
            if let ScanCause::Recheck { constraint } | ScanCause::ForeignKey { constraint: Some(constraint) } =
                &scan.cause
            {
                work.rechecked.push(constraint);
                work.scanned.push(&scan.relation);
            }
        }
        let by_time_zone = unless_utc(context).find(|rewrite| rewrite.range == range);
        match by_time_zone.filter(|_| work.rewritten.is_empty()) {
            Some(rewrite) => report_time_zone(reporter, rewrite, &work),
            None => work.report(context, reporter, range),
        }
    }
    for rewrite in unless_utc(context).filter(|rewrite| !ranges.contains(&rewrite.range)) {
        report_time_zone(reporter, rewrite, &Work::default());
    }
    unseen_partitions::report(
        context,
        reporter,
        |work| match &work.kind {
            PartitionWorkKind::Rewrite(RewriteCause::TypeChange { column, .. }) => {
                Some(format!("changing the type of `{column}` rewrites"))
            }
            _ => None,
        },
        "add a column of the new type, keep it up to date with a trigger, fill it in batches, and swap the names",
    );
}

/// Changes between `timestamp` and `timestamptz` that leave the rows alone in UTC only, of tables that the statement does
/// not rewrite anyway.
///
/// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATColumnChangeRequiresRewrite`.
fn unless_utc<'c>(context: &RuleContext<'c>) -> impl Iterator<Item = &'c Rewrite> {
    let effects = context.effects;
    let is_rewritten = |oid| effects.rewrites.iter().any(|rewrite| rewrite.relation.oid == oid);
    let is_reported =
        move |rewrite: &&Rewrite| rewrite.relation.visibility.is_exposed() && !is_rewritten(rewrite.relation.oid);
    effects.rewrites_unless_utc.iter().filter(is_reported)
}

/// Reports such a change, with the work that remains in UTC.
fn report_time_zone(reporter: &mut Reporter<'_>, rewrite: &Rewrite, in_utc: &Work<'_>) {
    let mut message = format!(
        "unless the time zone of the session is UTC, this type change rewrites `{}` under ACCESS EXCLUSIVE, and \
         blocks all reads and writes until the transaction ends",
        rewrite.relation.name
    );
    let mut kept = "does not rewrite the rows".to_owned();
    if !in_utc.rebuilt.is_empty() {
        let indexes = enumerate(in_utc.rebuilt.iter().map(|index| index.name.as_str()));
        let _ = write!(message, "; in UTC, it still builds {indexes} again");
        let _ = write!(kept, " and only builds {indexes} again");
    } else if !in_utc.rechecked.is_empty() {
        let constraints = enumerate(in_utc.rechecked.iter().copied());
        let _ = write!(message, "; in UTC, it still checks {constraints} again for every row");
        kept.push_str(" and only checks them again");
    }
    let help = format!(
        "if the values are in UTC, set the time zone first, so that PostgreSQL {kept}:\n    SET timezone = 'UTC';"
    );
    let finding = reporter.report(rewrite.range, message).relation(&rewrite.relation);
    finding.help(help).assuming(Assumption::TimeZoneNotUtc).emit();
}

/// What is assumed about a type change of a column whose type no migration shows, to a type of which PostgreSQL widens the
/// limit without a rewrite.
pub(crate) fn type_not_shown(rewrite: &Rewrite) -> Option<Assumption> {
    let RewriteCause::TypeChange { column, from, to, .. } = &rewrite.cause else { return None };
    let widened = ["varchar", "text", "numeric", "varbit"];
    let is_widened = widened.iter().any(|name| type_by_name(name).is_some_and(|found| found.oid == to.oid.0));
    let table = rewrite.relation.name.clone();
    (!from.is_known() && is_widened).then(|| Assumption::OldTypeNotWidened { table, column: column.clone() })
}

/// A CHECK or foreign key that is checked again because a type changed.
fn is_recheck(context: &RuleContext<'_>, cause: &ScanCause, range: TextRange) -> bool {
    match cause {
        ScanCause::Recheck { .. } => true,
        ScanCause::ForeignKey { .. } => {
            Altered::of(context).is_some_and(|altered| altered.type_change(range).is_some())
        }
        _ => false,
    }
}

impl Work<'_> {
    fn report(&self, context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange) {
        let altered = Altered::of(context);
        let (message, table) = if let Some(first) = self.rewritten.first() {
            let subject = subject(altered, &self.rewritten);
            let message = if self.from_unknown {
                format!(
                    "this type change may rewrite {subject} under ACCESS EXCLUSIVE, and block all reads and writes \
                     until the transaction ends: no migration shows the column's current type"
                )
            } else {
                format!(
                    "this type change rewrites {subject}, including all indexes, under ACCESS EXCLUSIVE, and blocks all \
                     reads and writes until the transaction ends"
                )
            };
            (message, *first)
        } else if let Some(first) = self.built_on.first() {
            let indexes = enumerate(self.rebuilt.iter().map(|index| index.name.as_str()));
            let subject = subject(altered, &self.built_on[..1]);
            let message = format!(
                "this type change does not rewrite the rows, but builds {indexes} again, and blocks all reads and \
                 writes of {subject} until the transaction ends"
            );
            (message, *first)
        } else if let Some(first) = self.scanned.first() {
            let constraints = enumerate(self.rechecked.iter().copied());
            let subject = subject(altered.filter(|altered| altered.table.oid == first.oid), &self.scanned[..1]);
            let message = format!(
                "this type change checks {constraints} again for every row of {subject} under ACCESS EXCLUSIVE, and \
                 blocks all reads and writes until the transaction ends"
            );
            (message, *first)
        } else {
            return;
        };
        let mut finding = reporter.report(range, message).relation(altered.map_or(table, |altered| altered.table));
        if !self.rewritten.is_empty() {
            finding = finding.work(pgvet_model::throughput::Work::Rewrite).assuming(self.doubt.clone());
        }
        if let Some(advice) = self.advice(context, altered, range) {
            finding = offer(context, finding, advice);
        }
        finding.emit();
    }

    fn advice(&self, context: &RuleContext<'_>, altered: Option<Altered<'_>>, range: TextRange) -> Option<Advice> {
        let altered = altered?;
        let AlterTableAction::AlterColumnType { column, type_name, collation, using } = &altered.command(range)?.action
        else {
            return None;
        };
        let type_range = collation.iter().fold(type_name.range, |range, collation| range.cover(collation.range()));
        let table = sql_name(context, altered.table);
        if !self.rewritten.is_empty() {
            return Some(match (self.new_length, using) {
                (Some(length), None) => column::limit_length(context, altered.table, column, length),
                _ => column::replace(context, altered.table, column, type_range, using.as_ref()),
            });
        }
        if !self.rebuilt.is_empty() {
            let indexes: Vec<String> = self.rebuilt.iter().map(|index| sql_name(context, index)).collect();
            let partitioned = altered.table.kind == pgvet_model::catalog::RelationKind::PartitionedTable;
            let belongs = self.rebuilt.iter().any(|index| {
                let of_constraint = |constraint: &std::sync::Arc<pgvet_model::catalog::Constraint>| {
                    constraint.index() == Some(index.oid)
                };
                let table = context.before.get_relation(altered.table.oid);
                table.is_some_and(|table| table.constraints.iter().any(of_constraint))
            });
            if partitioned || belongs {
                return Some(column::replace(context, altered.table, column, type_range, using.as_ref()));
            }
            let command = crate::rules::advice::one_line(context, altered.command(range)?.range)?;
            let names = enumerate(self.rebuilt.iter().map(|index| index.name.as_str()));
            let them = if self.rebuilt.len() == 1 { "the index" } else { "these indexes" };
            return Some(
                Advice::new(format!(
                    "drop {names} concurrently, {}. Then change the type, and build {them} again concurrently:",
                    outside_transaction(context)
                ))
                .all(indexes.iter().map(|index| format!("DROP INDEX CONCURRENTLY {index}")))
                .sql(format!("ALTER TABLE {table} {command}"))
                .then("then run CREATE INDEX CONCURRENTLY, and ANALYZE the table"),
            );
        }
        Some(Advice::new(
            "in this ALTER TABLE, drop the constraint and add it again as NOT VALID; then validate it in a later \
             transaction",
        ))
    }
}
