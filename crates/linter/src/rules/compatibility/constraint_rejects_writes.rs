//! New constraints and unique indexes that writes of deployed code may violate.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead, ahead_of_removal};
use crate::rules::deployment::phases::released;
use pgvet_model::catalog::{Catalog, Column, Constraint, ConstraintKind, Oid, Relation};
use pgvet_model::effect::{RelationName, Visibility};
use pgvet_syntax::ast::{Expr, ExprKind, LockMode};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

declare_rule! {
    /// A new constraint or unique index on an existing table, if rows that deployed code writes may violate it.
    ///
    /// ## Why it matters
    ///
    /// Deployed code that does not know the constraint can fail: every `INSERT` and `UPDATE` must satisfy it as soon as
    /// it exists. `NOT VALID` skips only existing rows, and a unique index that is built `CONCURRENTLY` also rejects
    /// duplicates that code writes during the build.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// ALTER TABLE orders ADD COLUMN currency text;
    /// ALTER TABLE orders ADD CONSTRAINT has_currency CHECK (currency IS NOT NULL) NOT VALID;
    /// ```
    ///
    /// Use instead:
    ///
    /// First deploy code that writes only valid rows, or add a default value that satisfies the constraint.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, total int);
    /// -- migration:
    /// SET lock_timeout = '2s';
    /// ALTER TABLE orders ADD COLUMN currency text DEFAULT 'EUR';
    /// ALTER TABLE orders ADD CONSTRAINT has_currency CHECK (currency IS NOT NULL) NOT VALID;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables that the same migration created
    /// - a constraint that replaces one of the same kind over the same columns
    /// - a constraint that the migration drops again, such as a `CHECK` that only lets `SET NOT NULL` skip its scan
    /// - a constraint whose columns are all new in this deployment, because deployed code does not set these columns. A
    ///   `CHECK (column IS NOT NULL)` on a new column without a default is reported nevertheless.
    ///
    /// ## Confidence
    ///
    /// The confidence is `likely` for a `CHECK (column IS NOT NULL)` on a new column without a default. For other
    /// constraints it is `possible`, because no migration shows whether deployed code already satisfies them. These
    /// findings are shown only with `--confidence possible`.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports these constraints.
    "constraint-rejects-writes", Compatibility, Warning,
    { yields_to: &[&super::contract_before_release::RULE.meta] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let mut seen = FxHashSet::default();
    for lock in context.effects.locks.iter().filter(|lock| lock.mode >= LockMode::ShareUpdateExclusive) {
        let table = &lock.relation;
        if table.kind.is_table() && table.visibility == Visibility::Existing && seen.insert(table.oid) {
            check_table(context, reporter, table, lock.range);
        }
    }
}

fn check_table(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, table: &RelationName, range: TextRange) {
    let (Some(before), Some(after)) = (context.before.get_relation(table.oid), context.after.get_relation(table.oid))
    else {
        return;
    };
    let changed = after.constraints.unlike(&before.constraints);
    for constraint in changed.filter(|constraint| constraint.enforced) {
        let is_meant = !matches!(constraint.kind, ConstraintKind::NotNull { .. }) && constraint.inherited_from == 0;
        let any_older = || before.constraints.iter().any(|old| is_as_strict(old, constraint));
        let is_older = || match &constraint.kind {
            ConstraintKind::Check { .. } => {
                let first = before.constraints.first_like(constraint);
                first.is_some_and(|first| is_as_strict(first, constraint) || any_older())
            }
            _ => any_older(),
        };
        if is_meant && !is_older() && stays(context, table, &constraint.name) {
            let what = (
                format!("the constraint `{}`", constraint.name),
                "writes only valid rows, then add the \
                                 constraint",
            );
            report(context, reporter, (table, range), after, what, constraint.columns(), required(constraint));
        }
    }
    for oid in added(&before.indexes, &after.indexes) {
        let Some(relation) = context.after.get_relation(*oid) else { continue };
        let Some(index) = relation.index().filter(|index| index.unique) else { continue };
        let of_constraint = after.constraints.iter().any(|constraint| constraint.index() == Some(*oid));
        let columns = index.plain_columns().unwrap_or_default();
        if !of_constraint && !has_unique(context.before, before, &columns) {
            let what = (format!("the unique index `{}`", relation.name), "writes no duplicates, then create the index");
            report(context, reporter, (table, range), after, what, &columns, None);
        }
    }
}

/// The indexes after the statement that were not there before it.
fn added<'a>(before: &[Oid], after: &'a [Oid]) -> impl Iterator<Item = &'a Oid> {
    let shared = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let old: FxHashSet<Oid> = before[shared..].iter().copied().collect();
    after[shared..].iter().filter(move |oid| !old.contains(oid))
}

/// Whether the constraint is there when the migration has ended, and not only the proof for SET NOT NULL.
fn stays(context: &RuleContext<'_>, table: &RelationName, name: &SmolStr) -> bool {
    let end = ahead_of_removal(context, name);
    end.get_relation(table.oid).is_none_or(|table| table.constraint(name).is_some())
}

/// Whether an older constraint already demanded the same, as far as kind and columns tell.
fn is_as_strict(old: &Constraint, new: &Constraint) -> bool {
    use ConstraintKind as K;
    match (&old.kind, &new.kind) {
        (K::Check { expression: old, .. }, K::Check { expression: new, .. }) => old.is_same(new),
        (K::ForeignKey(old), K::ForeignKey(new)) => {
            (&old.columns, old.referenced, &old.referenced_columns)
                == (&new.columns, new.referenced, &new.referenced_columns)
        }
        (
            K::PrimaryKey { columns: old, .. } | K::Unique { columns: old, .. },
            K::PrimaryKey { .. } | K::Unique { .. },
        ) => old.iter().all(|column| new.columns().contains(column)),
        (K::Exclude { .. }, K::Exclude { .. }) => old.name == new.name,
        _ => false,
    }
}

/// Whether a unique index of the table already allows fewer rows.
fn has_unique(catalog: &Catalog, table: &Relation, columns: &[SmolStr]) -> bool {
    let mut indexes = table.indexes.iter().filter_map(|oid| catalog.get_relation(*oid)?.index());
    indexes.any(|index| {
        let own = index.plain_columns().filter(|_| index.unique && index.predicate.is_none());
        own.is_some_and(|own| !columns.is_empty() && own.iter().all(|column| columns.contains(column)))
    })
}

/// The column of `CHECK (column IS NOT NULL)`.
fn required(constraint: &Constraint) -> Option<&SmolStr> {
    let ConstraintKind::Check { expression, .. } = &constraint.kind else { return None };
    required_by(expression)
}

fn required_by(expression: &Expr) -> Option<&SmolStr> {
    match &expression.kind {
        ExprKind::IsNull { operand, negated: true } => operand.as_column(),
        ExprKind::And(parts) => parts.iter().find_map(required_by),
        _ => None,
    }
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    (table, range): (&RelationName, TextRange),
    after: &Relation,
    (what, wanted): (String, &str),
    columns: &[SmolStr],
    required: Option<&SmolStr>,
) {
    let is_new = |name: &SmolStr| {
        let column = after.column(name);
        context.deployment().is_some() && column.is_some_and(|column| column.added_in == context.deployment())
    };
    let left_null = required.filter(|column| is_new(column) && stays_null(context, table, column));
    if left_null.is_none() && !columns.is_empty() && columns.iter().all(is_new) {
        return;
    }
    let name = &table.name;
    let message = match left_null {
        Some(column) => format!(
            "INSERTs into `{name}` by deployed code fail, because they do not set the new column `{column}`: {what} \
             checks new rows even while it is NOT VALID"
        ),
        None => format!("deployed code fails if it writes rows to `{name}` that violate {what}"),
    };
    let mut finding = reporter.report(range, message).relation(table);
    if left_null.is_none() {
        finding = finding.assuming(Assumption::WritesViolate { table: name.clone() });
    }
    let help = match left_null {
        Some(column) => format!("first deploy code that sets `{column}`, then add the constraint in the next release"),
        None => format!("first deploy code that {wanted} in the next release"),
    };
    finding.assuming(released(context.migration, context.settings)).help(help).emit();
}

/// Whether an INSERT that leaves the column out stores NULL when the transaction has ended.
fn stays_null(context: &RuleContext<'_>, table: &RelationName, column: &SmolStr) -> bool {
    let end = ahead(context, column, Until::Commit);
    let has_no_value =
        |column: &Column| column.default.is_none() && column.identity.is_none() && column.generated.is_none();
    let relation = end.get_relation(table.oid);
    let has_trigger = relation
        .is_some_and(|relation| relation.triggers.iter().any(|trigger| trigger.events.insert && trigger.for_each_row));
    !has_trigger && relation.and_then(|relation| relation.column(column)).is_some_and(has_no_value)
}
