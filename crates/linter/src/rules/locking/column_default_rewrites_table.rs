//! ADD COLUMN that writes a value into every row.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::column::{Filling, fill_later};
use crate::rules::advice::offer::offer;
use crate::rules::locking::unseen_partitions;
use crate::rules::statement::altered::{Altered, by_range, subject};
use pgvet_model::effect::{PartitionWorkKind, RelationName, Rewrite, RewriteCause};
use pgvet_model::throughput::Work;
use pgvet_syntax::ast::{AlterTableAction, ColumnDef, ConstraintKind};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `ADD COLUMN` that rewrites the table because each row needs its own value.
    ///
    /// ## Why it matters
    ///
    /// From PostgreSQL 11 on, the value of a constant default is stored in the catalog, so the column is added at once.
    /// For other columns, PostgreSQL rewrites the whole table and all of its indexes under an ACCESS EXCLUSIVE lock,
    /// which blocks every query:
    ///
    /// - before PostgreSQL 11, a column with any default except NULL
    /// - a column with a volatile default, such as `gen_random_uuid()`, `clock_timestamp()` or `nextval(...)`
    /// - a serial or identity column
    /// - a STORED generated column
    /// - a column whose type is a domain with constraints
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ADD COLUMN token uuid DEFAULT gen_random_uuid();
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders ADD COLUMN token uuid;
    /// ALTER TABLE orders ALTER COLUMN token SET DEFAULT gen_random_uuid();
    /// ```
    ///
    /// Then fill the old rows in batches.
    ///
    /// ## When it is not reported
    ///
    /// - constant and stable defaults, including `now()`, because PostgreSQL 11 and later do not rewrite the table for
    ///   these. If the configured versions include PostgreSQL 10, they are reported.
    /// - a column without a default, or with `DEFAULT NULL`. Serial and identity columns, STORED generated columns, and
    ///   columns whose type is a domain with constraints are reported nevertheless.
    /// - VIRTUAL generated columns
    /// - a table that the same transaction created, or that the same migration created and left empty
    ///
    /// For a function that the migrations define, pgvet uses the declared volatility, or `VOLATILE` if none is
    /// declared.
    "column-default-rewrites-table", Locking, Error,
    {
        sources: &[
            "squawk/adding-field-with-default",
            "eugene/E11",
            "strong_migrations/add_column_default",
            "strong_migrations/add_column_generated_stored",
            "pgls/addingFieldWithDefault",
            "pgls/addSerialColumn", "atlas/PG302", "atlas/PG309", "atlas/PG310"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let rewrites = context
        .effects
        .rewrites
        .iter()
        .filter(|rewrite| rewrite.relation.visibility.is_exposed() && reason(&rewrite.cause).is_some());
    for (range, rewrites) in by_range(rewrites, |rewrite| rewrite.range) {
        report(context, reporter, range, &rewrites);
    }
    unseen_partitions::report(
        context,
        reporter,
        |work| match &work.kind {
            PartitionWorkKind::Rewrite(cause) => {
                reason(cause).map(|reason| format!("{reason}: adding this column rewrites"))
            }
            _ => None,
        },
        "add the column without the default, set the default in a later statement, and fill old rows in batches",
    );
}

/// Why the rows need values.
fn reason(cause: &RewriteCause) -> Option<String> {
    Some(match cause {
        RewriteCause::VolatileDefault { function: Some(function), .. } => {
            format!("the default calls {function}(), which is volatile")
        }
        RewriteCause::VolatileDefault { .. } => "the default is volatile".to_owned(),
        RewriteCause::DefaultBefore11 { .. } => "PostgreSQL before 11 writes the default into every row".to_owned(),
        RewriteCause::Serial { .. } => "PostgreSQL calls nextval() for each row of a serial column".to_owned(),
        RewriteCause::Identity { .. } => "PostgreSQL calls nextval() for each row of an identity column".to_owned(),
        RewriteCause::StoredGenerated { .. } => "PostgreSQL computes a STORED generated column for each row".to_owned(),
        RewriteCause::ConstrainedDomain { domain, .. } => {
            format!("PostgreSQL checks the constraints of the domain `{domain}` for each row")
        }
        _ => return None,
    })
}

fn report(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange, rewrites: &[&Rewrite]) {
    let Some((first, reason)) = rewrites.first().and_then(|first| Some((first, reason(&first.cause)?))) else { return };
    let altered = Altered::of(context);
    let tables: Vec<&RelationName> = rewrites.iter().map(|rewrite| &rewrite.relation).collect();
    let subject = subject(altered, &tables);
    let message = format!(
        "{reason}: this rewrites {subject} under ACCESS EXCLUSIVE, and blocks all reads and writes until the \
         transaction ends"
    );
    let column = altered.and_then(|altered| match &altered.command(range)?.action {
        AlterTableAction::AddColumn { column, .. } => Some((altered.table, column)),
        _ => None,
    });
    let Some((table, column)) = column else {
        let help = "add the column without the default, set the default in a later statement, and fill old rows in \
                    batches";
        reporter.report(range, message).relation(&first.relation).help(help).emit();
        return;
    };
    let (place, filling) = culprit(column, &first.cause);
    let finding = reporter.report(place.unwrap_or(range), message).relation(table).work(Work::Rewrite);
    let finding = match filling {
        Some(filling) => offer(context, finding, fill_later(context, table, column, filling)),
        None => finding,
    };
    finding.emit();
}

/// The part of the column's definition that causes the rewrite, and what to do instead.
fn culprit<'c>(column: &'c ColumnDef, cause: &RewriteCause) -> (Option<TextRange>, Option<Filling<'c>>) {
    let type_name = column.type_name.as_ref();
    match cause {
        RewriteCause::Serial { .. } => {
            let integer = type_name.and_then(|name| crate::rules::advice::column::serial_integer(&name.name));
            (type_name.map(|name| name.range), integer.map(Filling::Serial))
        }
        RewriteCause::ConstrainedDomain { .. } => (type_name.map(|name| name.range), Some(Filling::Domain)),
        _ => {
            let constraint = column.constraints.iter().find_map(|constraint| {
                let filling = match (&constraint.kind, cause) {
                    (
                        ConstraintKind::Default(default),
                        RewriteCause::VolatileDefault { .. } | RewriteCause::DefaultBefore11 { .. },
                    ) => Filling::Default(default),
                    (ConstraintKind::Identity { .. }, RewriteCause::Identity { .. }) => Filling::Identity,
                    (ConstraintKind::Generated { expression, .. }, RewriteCause::StoredGenerated { .. }) => {
                        Filling::Stored(expression)
                    }
                    _ => return None,
                };
                Some((constraint.keyword, filling))
            });
            (constraint.map(|(range, _)| range), constraint.map(|(_, filling)| filling))
        }
    }
}
