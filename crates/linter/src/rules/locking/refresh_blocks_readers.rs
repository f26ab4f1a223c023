//! REFRESH MATERIALIZED VIEW that locks out readers.

use crate::fix::{Applicability, Edit, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::sql_name;
use pgvet_model::catalog::{Catalog, Relation};
use pgvet_model::effect::{Rewrite, RewriteCause};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `REFRESH MATERIALIZED VIEW` without `CONCURRENTLY`.
    ///
    /// ## Why it matters
    ///
    /// Nobody can read the view until the transaction ends: PostgreSQL locks it in ACCESS EXCLUSIVE mode, then runs its
    /// query and builds its indexes. `CONCURRENTLY` lets readers continue. `CONCURRENTLY` works only if the view has a
    /// unique index on plain columns without WHERE, and has been filled before.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// REFRESH MATERIALIZED VIEW daily_sales;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// REFRESH MATERIALIZED VIEW CONCURRENTLY daily_sales;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a view that was never filled (`WITH NO DATA`): reading it is an error until the first refresh
    /// - a view that the same transaction created
    ///
    /// ## Fix safety
    ///
    /// The fix adds `CONCURRENTLY` if the view has the unique index that `CONCURRENTLY` needs. The fix is unsafe,
    /// because the refresh can take longer and write more if many rows have changed.
    "refresh-blocks-readers", Locking, Warning,
    {
        fixable: true,
        sources: &["pgls/requireConcurrentRefreshMatview"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let with_data = !matches!(context.ast, Ast::RefreshMaterializedView(refresh) if !refresh.with_data);
    for rewrite in &context.effects.rewrites {
        if rewrite.cause == RewriteCause::Refresh && rewrite.relation.visibility.is_exposed() {
            report(context, rewrite, with_data, reporter);
        }
    }
}

fn report(context: &RuleContext<'_>, rewrite: &Rewrite, with_data: bool, reporter: &mut Reporter<'_>) {
    let view = context.before.get_relation(rewrite.relation.oid);
    if view.and_then(|view| view.view()).is_some_and(|definition| !definition.populated) {
        return;
    }
    let name = &rewrite.relation.name;
    let (message, help) = if with_data {
        let message = format!("this refresh blocks all reads of `{name}` until the transaction ends");
        (message, help(context, &sql_name(context, &rewrite.relation), view.map(AsRef::as_ref)))
    } else {
        let message = format!("WITH NO DATA makes every read of `{name}` fail until the next refresh");
        (message, "omit WITH NO DATA; or, if nobody reads the view any more, drop it".to_owned())
    };
    let finding = reporter.report(rewrite.range, message).relation(&rewrite.relation).help(help);
    let usable = view.is_some_and(|view| view.view().is_some() && has_usable_index(context.before, view));
    finding.fix(concurrently(context).filter(|_| with_data && usable)).emit();
}

fn concurrently(context: &RuleContext<'_>) -> Option<Fix> {
    let Ast::RefreshMaterializedView(_) = context.ast else { return None };
    let view = context.statement.tokens.get(2)?.range;
    let edit = Edit { range: TextRange::at(view.end), text: " CONCURRENTLY".to_owned() };
    let title = "Refresh the view concurrently".to_owned();
    Some(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] })
}

fn help(context: &RuleContext<'_>, name: &str, view: Option<&Relation>) -> String {
    let concurrently = format!("REFRESH MATERIALIZED VIEW CONCURRENTLY {name};");
    match view.filter(|view| view.view().is_some()) {
        Some(view) if has_usable_index(context.before, view) => {
            format!("refresh the view without blocking readers:\n    {concurrently}")
        }
        Some(_) => format!(
            "CONCURRENTLY is refused because `{name}` has no unique index over plain columns without WHERE: create one \
             first, outside a transaction:\n    CREATE UNIQUE INDEX CONCURRENTLY ON {name} (...);\n    {concurrently}"
        ),
        None => format!(
            "refresh the view concurrently if `{name}` was filled before and has a unique index over plain columns \
             without WHERE (create one first if it has none):\n    {concurrently}"
        ),
    }
}

/// Source: PostgreSQL 18, `src/backend/commands/matview.c`, `is_usable_unique_index`.
fn has_usable_index(catalog: &Catalog, view: &Relation) -> bool {
    let indexes = view.indexes.iter().filter_map(|oid| catalog.get_relation(*oid)?.index());
    indexes
        .into_iter()
        .any(|index| index.unique && index.valid && index.predicate.is_none() && !index.has_expressions())
}
