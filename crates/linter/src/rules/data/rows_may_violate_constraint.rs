//! Constraints and unique indexes that fail because of rows that are already there.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::row_counts::RowCount;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::sql_name;
use pgvet_model::effect::{Demand, Met, RowDemand, UsualRows};
use pgvet_syntax::ast::{Ast, Part};
use pgvet_syntax::statement::Statement;

declare_rule! {
    /// A new constraint or unique index that PostgreSQL refuses if existing rows violate it.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks every row when it adds a `NOT NULL`, `CHECK`, `UNIQUE` or foreign key constraint. A single row
    /// that violates the constraint makes the statement fail. A test database rarely has a violating row, but
    /// production often has one, because nothing has rejected it until now. The deployment then stops in the middle,
    /// often after it has blocked the table during the check.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// ALTER TABLE orders ADD CONSTRAINT positive CHECK (total > 0);
    /// ```
    ///
    /// Use instead:
    ///
    /// Add the constraint `NOT VALID`, so that PostgreSQL checks only new rows. To count the rows that violate the
    /// constraint, run `pgvet precheck`, or the query in the help of the finding. Correct these rows, and validate the
    /// constraint in a later migration.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// ALTER TABLE orders ADD CONSTRAINT positive CHECK (total > 0) NOT VALID;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables that the same migration created, and `ADD COLUMN ... NOT NULL`, which `required-column-without-default`
    ///   reports
    /// - a constraint that no row can violate, because it follows from valid constraints, from unique indexes, or from
    ///   a constraint that the same transaction drops
    /// - a foreign key or unique index over a new column without a default: the column is NULL in all rows. A unique
    ///   index with `NULLS NOT DISTINCT` is reported.
    /// - `NOT NULL` on a new column with a default
    /// - changes of a column's type, exclusion constraints, domains and bounds of partitions, which `pgvet precheck`
    ///   lists
    ///
    /// ## Confidence
    ///
    /// In a migration that `pgvet capture` recorded, the confidence is only `possible` if the program read rows of the
    /// table before the statement. The program may correct these rows. A capture on a private server cannot show that,
    /// because the table is empty there.
    ///
    /// With the results of `pgvet precheck --format json` (`--precheck FILE` or `precheck` in the configuration), a
    /// finding says how many violating rows were counted, and on which day. If at least one row was counted, the
    /// confidence is `certain`, and pgvet also reports statements that otherwise only `pgvet precheck` lists. If no row
    /// was counted, the confidence is `possible`.
    ///
    /// A count is used only for the migration for which it was made. If a checked migration changes rows of the table
    /// before the statement, pgvet ignores a count of zero, and the confidence of a finding with counted rows is
    /// `possible`.
    ///
    /// Without these results, the confidence is `likely` in these cases:
    ///
    /// - Every row violates the constraint, because a new column has the same value in all rows, or because a foreign key
    ///   refers to a new table that has no rows.
    /// - The deployment drops a `CHECK` that lists the values of a column, and the new `CHECK` refuses one of them.
    /// - The new `CHECK` uses a new column, in which all rows have the same value, and a column whose possible values
    ///   are known from a `CHECK`, an enum or `boolean`. It refuses one of these values together with the value of the
    ///   new column. An example is `CHECK (status <> 'done' OR done_at IS NOT NULL)` with the new column `done_at`.
    ///
    /// If only the data can show whether rows violate the constraint, or if the deployment changes rows of the table
    /// first, the confidence is `possible`, and the finding is shown only with `--confidence possible`. `pgvet precheck`
    /// lists all of these statements, and counts the rows that make them fail.
    ///
    /// ## Incidents
    ///
    /// - [ctms-api #832](https://github.com/mozilla-it/ctms-api/issues/832): the unique index could not be created
    ///   because of duplicates
    /// - [nocturne #828](https://github.com/nightscout/nocturne/issues/828): the same in a service that runs migrations
    ///   at startup and therefore crashed again and again
    ///
    /// ## Other linters
    ///
    /// No other known linter reports these constraints.
    "rows-may-violate-constraint", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for demand in context.effects.demands.iter().filter(|demand| !is_of_new_column(context, demand)) {
        match counted(context, demand) {
            Some(count) if count.rows > 0 => report_counted(context, reporter, demand, count),
            _ if is_listed_only(&demand.demand) => {}
            counted => {
                let message = format!("this {demand}");
                let report = reporter.report(demand.range, message).relation(&demand.relation);
                report.assuming(assumption(context, demand, counted)).help(help(context, demand)).emit();
            }
        }
    }
}

/// What was counted for the migration. That there were no such rows says nothing once a migration that the database had not
/// applied has changed rows.
fn counted<'c>(context: &RuleContext<'c>, demand: &RowDemand) -> Option<&'c RowCount> {
    let counts = context.settings.row_counts.get(&context.file)?;
    let count = counts.get(&demand.qualified_query().ok()?)?;
    (count.rows > 0 || !is_changed_since(context, demand)).then_some(count)
}

/// Whether a reported migration changes rows of the tables before the statement.
fn is_changed_since(context: &RuleContext<'_>, demand: &RowDemand) -> bool {
    let referenced = match &demand.demand {
        Demand::References(key) => Some(key.referenced.oid),
        _ => None,
    };
    let tables = [Some(demand.relation.oid), referenced].into_iter().flatten();
    let mut changes = tables.filter_map(|table| context.before.get_relation(table)?.birth.changed_in);
    let until_here = std::iter::zip(0..=context.file, context.migrations);
    let reported = until_here.filter(|(_, migration)| migration.report);
    let reported: Vec<_> = reported.filter_map(|(index, migration)| migration.deployment(index)).collect();
    changes.any(|deployment| reported.contains(&deployment))
}

/// What `pgvet precheck` lists, and no finding reports unless such rows were counted.
fn is_listed_only(demand: &Demand) -> bool {
    matches!(
        demand,
        Demand::Exclusion(_) | Demand::Type(_) | Demand::Bound(_) | Demand::DefaultPartition(_) | Demand::Domain(_)
    )
}

fn report_counted(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, demand: &RowDemand, count: &RowCount) {
    let RowCount { rows, is_least, day } = count;
    let least = if *is_least { "at least " } else { "" };
    let message = format!("this {demand}: `pgvet precheck` counted {least}{rows} on {day}");
    let report = reporter.report(demand.range, message).relation(&demand.relation).help(help(context, demand));
    // A statement that comes first may correct them.
    let met = demand.met.or_else(|| is_changed_since(context, demand).then_some(Met::Changed));
    let corrected = met.filter(|met| *met != Met::Retriable);
    let table = demand.relation.name.clone();
    match corrected {
        Some(because) => report.assuming(Assumption::RowsRefuseThough { table, because }).emit(),
        None => report.emit(),
    }
}

fn assumption(context: &RuleContext<'_>, demand: &RowDemand, counted: Option<&RowCount>) -> Assumption {
    let table = demand.relation.name.clone();
    // The values of new columns are part of the usual rows.
    let usual = demand.usual.as_ref().filter(|_| demand.met.is_none_or(|met| met == Met::NewColumns));
    if let (None, Some(rows)) = (counted, usual.filter(|_| !reads_rows(context, &table))) {
        return match rows {
            UsualRows::All => Assumption::RowsRefuse { table },
            rows @ UsualRows::With { .. } => Assumption::HasUsualRows { table, rows: rows.clone() },
        };
    }
    match (counted, demand.met, &demand.demand) {
        (Some(count), ..) => Assumption::RowsRefuseSince { table, day: count.day.clone() },
        (None, Some(because), _) => Assumption::RowsRefuseThough { table, because },
        (None, None, _) if reads_rows(context, &table) => Assumption::RowsRefuseThoughRead { table },
        (None, None, Demand::NoRows { .. } | Demand::OneRow { .. }) => Assumption::RowsRefuse { table },
        (None, None, _) => Assumption::RowsMayRefuse { table },
    }
}

fn help(context: &RuleContext<'_>, demand: &RowDemand) -> String {
    // The message already names the only value that a NOT NULL refuses, and a key that is not there looks like a value
    // of the reader's own rows.
    let says_nothing = matches!(demand.demand, Demand::NotNull { .. } | Demand::References(_));
    let example = demand.counterexample.as_ref().filter(|_| !says_nothing);
    let example = example.map_or_else(String::new, |example| format!(" (for example, {example})"));
    match demand.query(|relation| sql_name(context, relation)) {
        Ok(query) => {
            format!(
                "before the deployment, count the rows in production that would make this fail{example}:\n    {query};"
            )
        }
        Err(_) => format!("before the deployment, look in production for rows that would make this fail{example}"),
    }
}

/// Whether the program of a captured migration has read rows of the table. It may change each of them, but it sends nothing
/// for a table that is empty on the private server.
fn reads_rows(context: &RuleContext<'_>, table: &str) -> bool {
    let reads = |statement: &Statement| {
        let mut found = false;
        if let Some(ast @ Ast::Select(_)) = statement.ast() {
            ast.visit(&mut |part| found |= matches!(part, Part::Read(read) if read.name.name.text == table));
        }
        found
    };
    context.migration.captured && context.migration.statements_before(context.outer().start).any(reads)
}

/// Whether the statement itself adds the column, so that no row can have a value.
fn is_of_new_column(context: &RuleContext<'_>, demand: &RowDemand) -> bool {
    let Demand::NoRows { column, referenced: None } = &demand.demand else { return false };
    context.before.get_relation(demand.relation.oid).is_some_and(|table| table.column(column).is_none())
}
