//! Views that no longer accept writes.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::text::{either, identifier, qualified};
use pgvet_model::catalog::{Catalog, Relation, RelationKind};
use pgvet_model::effect::RelationName;
use pgvet_model::routine::Trial;
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::from_pg::parse_sql;
use pgvet_syntax::ast::{Ast, ObjectKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

declare_rule! {
    /// A view that accepts writes gets a new query that no longer allows them.
    ///
    /// ## Why it matters
    ///
    /// Deployed code that writes through the view fails after the commit. PostgreSQL passes `INSERT`, `UPDATE` and
    /// `DELETE` on a simple view to its table. PostgreSQL refuses writes to a view with `DISTINCT`, `GROUP BY` or a
    /// join, and writes to a computed column of a simple view. These writes need an `INSTEAD OF` trigger or a
    /// `DO INSTEAD` rule.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// CREATE VIEW accounts AS SELECT id, email FROM users;
    /// -- migration:
    /// CREATE OR REPLACE VIEW accounts AS SELECT DISTINCT id, email FROM users;
    /// ```
    ///
    /// Use instead:
    ///
    /// Create another view for reading, or create an `INSTEAD OF` trigger on the view in the same transaction.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// CREATE VIEW accounts AS SELECT id, email FROM users;
    /// -- migration:
    /// CREATE VIEW distinct_accounts AS SELECT DISTINCT id, email FROM users;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - views that the same migration creates, and views that no longer exist when it ends (`drop-table` reports
    ///   those)
    ///
    /// ## Confidence
    ///
    /// If no migration shows that the view is meant for writes, the confidence is `possible`, and the finding is shown
    /// only with `--confidence possible`. A migration shows this if it grants `INSERT`, `UPDATE` or `DELETE` on the
    /// view to a role, or creates an `INSTEAD OF` trigger on the view. `GRANT ALL` does not show this.
    ///
    /// ## Other linters
    ///
    /// No other known linter looks at writes through views.
    "view-not-updatable", Compatibility, Warning,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for old in named_views(context) {
        let Some(oid) = context.after.relation_named(&old.schema, &old.name) else { continue };
        let Some(new) = context.after.get_relation(oid).filter(|new| !Arc::ptr_eq(old, new)) else { continue };
        if new.kind != RelationKind::View || !new.known || old.birth.is_of(context.deployment()) {
            continue;
        }
        let Some(range) = place(context, old) else { continue };
        let lost = lost(context, old);
        if lost.is_empty() {
            continue;
        }
        let name = &old.name;
        let message = format!(
            "after this migration, the view `{name}` no longer accepts {}: deployed code that writes through the view \
             fails",
            either(&lost)
        );
        let mut finding = reporter.report(range, message).relation(&RelationName::existing(old));
        if !is_meant_for_writes(context.before, old) {
            finding = finding.assuming(Assumption::WritesView { view: name.clone() });
        }
        finding
            .help(
                "create another view with the new query, or add an INSTEAD OF trigger to this view in the same \
                 transaction",
            )
            .emit();
    }
}

/// The commands that the view accepted before the migration, and that PostgreSQL refuses after it.
fn lost(context: &MigrationContext<'_>, view: &Relation) -> Vec<String> {
    let name = qualified(&view.schema, &view.name);
    let is_lost = |sql: &str| {
        let accepts = |catalog| accepts(catalog, sql, context.settings.versions.to);
        accepts(context.before) == Some(true) && accepts(context.after) == Some(false)
    };
    let columns: Vec<String> = (view.columns.iter())
        .filter(|column| has_column(context, view, &column.name))
        .map(|column| identifier(&column.name))
        .collect();
    let not_updated: Vec<&String> =
        columns.iter().filter(|column| is_lost(&format!("UPDATE {name} SET {column} = {column}"))).collect();
    let mut lost = Vec::new();
    if is_lost(&format!("INSERT INTO {name} DEFAULT VALUES")) {
        lost.push("INSERT".to_owned());
    }
    if !not_updated.is_empty() && not_updated.len() == columns.len() {
        lost.push("UPDATE".to_owned());
    } else {
        lost.extend(not_updated.into_iter().map(|column| format!("UPDATE of `{column}`")));
    }
    if is_lost(&format!("DELETE FROM {name}")) {
        lost.push("DELETE".to_owned());
    }
    lost
}

/// Whether the view still has the column: `drop-column` and others report one that is gone.
fn has_column(context: &MigrationContext<'_>, view: &Relation, column: &str) -> bool {
    let new = context.after.relation_named(&view.schema, &view.name);
    new.is_some_and(|new| context.after.relation(new).column(column).is_some())
}

/// Whether PostgreSQL accepts the statement; `None` where code that was not analyzed leaves that in doubt.
fn accepts(catalog: &Catalog, sql: &str, version: PgVersion) -> Option<bool> {
    let statements = parse_sql(sql).ok()?;
    let path = vec!["public".into()].into();
    let effects = Trial::new(catalog, &path, version).run(statements.first()?);
    match effects.fails {
        Some(_) => Some(false),
        None => effects.unknown.is_empty().then_some(true),
    }
}

/// Whether migrations show that somebody writes through it. GRANT ALL shows nothing.
fn is_meant_for_writes(catalog: &Catalog, view: &Relation) -> bool {
    let given = catalog.privileges(view.oid);
    let has_all = |role: &str| given.clone().any(|given| given.grantee == role && given.privilege == "truncate");
    let writes = |privilege: &str| matches!(privilege, "insert" | "update" | "delete");
    let is_chosen = given.clone().any(|given| writes(&given.privilege) && !has_all(&given.grantee));
    is_chosen || !view.triggers.is_empty()
}

/// The views that existed before the migration and that a statement of it names, in the order of their creation.
fn named_views<'c>(context: &MigrationContext<'c>) -> Vec<&'c Arc<Relation>> {
    let names = context.ran.iter().flat_map(|run| changed_names(&run.ast)).map(|(name, _)| name);
    let named = names.flat_map(|name| context.before.relations_with_name(name));
    let mut views: Vec<_> = named.filter(|view| view.kind == RelationKind::View && view.known).collect();
    views.sort_unstable_by_key(|view| view.oid);
    views.dedup_by_key(|view| view.oid);
    views
}

/// The last statement that changes the view.
fn place(context: &MigrationContext<'_>, view: &Relation) -> Option<TextRange> {
    context.ran.iter().rev().find_map(|run| {
        let (_, range) = changed_names(&run.ast).into_iter().find(|(name, _)| **name == view.name)?;
        Some(run.in_file(range))
    })
}

/// The names of views that a statement may change, and where.
fn changed_names(ast: &Ast) -> Vec<(&SmolStr, TextRange)> {
    match ast {
        Ast::CreateView(create) => vec![(&create.name.name.text, create.name.range())],
        Ast::Drop(drop) => {
            let dropped = drop.objects.iter().filter_map(|object| match &object.on {
                Some(on) => (drop.kind == ObjectKind::Trigger).then_some((&on.name.text, object.name.range())),
                None => Some((&object.name.name.text, object.name.range())),
            });
            dropped.collect()
        }
        Ast::Rename(rename) if rename.sub_name.is_none() => vec![(&rename.new_name.text, rename.object.range())],
        _ => Vec::new(),
    }
}
