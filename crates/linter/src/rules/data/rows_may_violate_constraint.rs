//! Constraints and unique indexes that fail because of rows that are already there.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::sql_name;
use pgvet_model::effect::{Demand, RowDemand};
use pgvet_syntax::ast::{Ast, Part};
use pgvet_syntax::statement::Statement;

declare_rule! {
    /// A constraint or unique index that fails if existing rows violate it.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks every row when it adds a `NOT NULL`, `CHECK`, `UNIQUE` or foreign key, and a single row that
    /// violates it makes the statement fail. A test database rarely has such a row, but production often does, because
    /// nothing has rejected it until now. The deployment then stops in the middle, often after it has blocked the table
    /// during the check.
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
    /// Add the constraint `NOT VALID`, so that PostgreSQL checks only new rows. Count the rows that
    /// violate it, with the query in the help of the finding or with `pgvet precheck`, correct them, and validate the
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
    /// - changes of a column's type, exclusion constraints, domains and bounds of partitions, which `pgvet precheck` lists
    ///
    /// In a captured migration, the confidence is only `possible` if the program has read rows of the table before: it may
    /// change them, but it sends nothing for a table that is empty on the private server.
    ///
    /// The confidence is `likely` if every row violates the constraint, because a new column has the same value in all
    /// of them. Otherwise it depends on the data: the confidence is `possible`, and the finding is shown only with
    /// `--confidence possible`. `pgvet precheck` lists and counts all of them.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports it.
    "rows-may-violate-constraint", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let is_ours =
        |demand: &&RowDemand| !matches!(demand.demand, Demand::Other(_)) && !is_of_new_column(context, demand);
    for demand in context.effects.demands.iter().filter(is_ours) {
        let table = demand.relation.name.clone();
        let assumption = match (demand.met, &demand.demand) {
            (Some(because), _) => Assumption::RowsRefuseThough { table, because },
            _ if reads_rows(context, &table) => Assumption::RowsRefuseThoughRead { table },
            (None, Demand::NoRows { .. } | Demand::OneRow { .. }) => Assumption::RowsRefuse { table },
            (None, _) => Assumption::RowsMayRefuse { table },
        };
        let help = match demand.query(|relation| sql_name(context, relation)) {
            Ok(query) => format!("count such rows in production before the deployment:\n    {query};"),
            Err(_) => "look for such rows in production before the deployment".to_owned(),
        };
        reporter
            .report(demand.range, format!("this {demand}"))
            .relation(&demand.relation)
            .assuming(assumption)
            .help(help)
            .emit();
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
    let Demand::NoRows { column } = &demand.demand else { return false };
    context.before.get_relation(demand.relation.oid).is_some_and(|table| table.column(column).is_none())
}
