//! PRIMARY KEY, UNIQUE and EXCLUDE that build their index under ACCESS EXCLUSIVE.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::key;
use crate::rules::advice::offer::offer;
use crate::rules::locking::unseen_partitions;
use crate::rules::statement::altered::{Altered, by_range, subject};
use pgvet_model::effect::{IndexBuild, IndexBuildCause, PartitionWorkKind, RelationName};
use pgvet_model::throughput::Work;
use pgvet_syntax::ast::ConstraintKind;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A `PRIMARY KEY`, `UNIQUE` or `EXCLUDE` constraint that builds its index while nobody can use the table.
    ///
    /// ## Why it matters
    ///
    /// ALTER TABLE holds an ACCESS EXCLUSIVE lock while the index is built. On a large table, this stops all queries
    /// for minutes or hours. For a primary key over columns that may hold nulls, PostgreSQL reads the table a second
    /// time.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ADD CONSTRAINT orders_number_key UNIQUE (number);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE UNIQUE INDEX CONCURRENTLY orders_number_key ON orders (number);
    /// ALTER TABLE orders ADD CONSTRAINT orders_number_key UNIQUE USING INDEX orders_number_key;
    /// ```
    ///
    /// For a primary key, set the columns NOT NULL first (see `set-not-null-scans-table`). Otherwise the second
    /// statement reads the whole table.
    ///
    /// PostgreSQL refuses `USING INDEX` for partitioned tables. There, add the constraint to each partition as shown
    /// above, and then to the parent with `ALTER TABLE ONLY`. Last, attach the index of each partition with
    /// `ALTER INDEX ... ATTACH PARTITION`. Until then the index of the parent is invalid, and `ON CONFLICT` on the
    /// parent fails.
    ///
    /// PostgreSQL cannot add `EXCLUDE` and `WITHOUT OVERLAPS` constraints in this way.
    ///
    /// ## When it is not reported
    ///
    /// - a constraint that is added with `USING INDEX`
    /// - a constraint on a new column, if adding the column rewrites the table: `column-default-rewrites-table` reports
    ///   that rewrite
    /// - a table that the same transaction created, or that the same migration created and left empty
    ///
    /// ## Fix safety
    ///
    /// If each statement of the file runs in its own transaction, the fix replaces the statement with the steps shown
    /// above. The resulting schema is the same. The fix is unsafe, because the concurrent build leaves an invalid index
    /// behind if it finds duplicate values.
    "constraint-builds-index", Locking, Error,
    {
        fixable: true,
        sources: &[
            "squawk/adding-serial-primary-key-field",
            "squawk/disallowed-unique-constraint",
            "eugene/E7",
            "eugene/E8",
            "strong_migrations/add_unique_constraint",
            "strong_migrations/add_exclusion_constraint",
            "pgls/addingPrimaryKeyConstraint",
            "pgls/disallowUniqueConstraint",
            "pgls/avoidAddingExclusionConstraint", "atlas/PG104", "atlas/PG105"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let altered = Altered::of(context);
    let rewrites = &context.effects.rewrites;
    let builds = context.effects.index_builds.iter().filter(|build| {
        build.cause == IndexBuildCause::Constraint
            && build.table.visibility.is_exposed()
            && !rewrites.iter().any(|rewrite| rewrite.relation.oid == build.table.oid)
    });
    for (range, builds) in by_range(builds, |build| build.range) {
        report(context, reporter, altered, range, &builds);
    }
    unseen_partitions::report(
        context,
        reporter,
        |work| match &work.kind {
            PartitionWorkKind::IndexBuild(IndexBuildCause::Constraint) => {
                Some("adding this constraint builds an index on".to_owned())
            }
            _ => None,
        },
        "build a unique index concurrently on each partition, add the constraint to the partition with USING INDEX, \
         and then add the constraint to the parent",
    );
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    altered: Option<Altered<'_>>,
    range: TextRange,
    builds: &[&IndexBuild],
) {
    let Some(first) = builds.first() else { return };
    let tables: Vec<&RelationName> = builds.iter().map(|build| &build.table).collect();
    let subject = subject(altered, &tables);
    let written = altered.and_then(|altered| Some((altered, altered.constraint(range)?)));
    let kind = match written.map(|(_, written)| &written.constraint.kind) {
        Some(ConstraintKind::PrimaryKey(_)) => "primary key",
        Some(ConstraintKind::Unique(_)) => "unique constraint",
        Some(ConstraintKind::Exclude(_)) => "exclusion constraint",
        _ => "constraint",
    };
    let message = format!(
        "adding this {kind} builds an index under ACCESS EXCLUSIVE, and blocks all reads and writes of {subject} \
         until the transaction ends"
    );
    let place = written.map_or(range, |(_, written)| written.constraint.keyword);
    let finding = reporter
        .report(place, message)
        .relation(altered.map_or(&first.table, |altered| altered.table))
        .work(Work::IndexBuild);
    let finding = match written {
        Some((altered, written)) => offer(context, finding, key::advice(context, altered, written, builds)),
        None => finding.help(key::in_words(context, builds)),
    };
    finding.emit();
}
