//! Views that bypass row-level security.

use super::api_roles::reaching;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::everywhere_at_least;
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::text::{enumerate, sql_name};
use pgvet_model::catalog::{Catalog, Oid, Relation, RelationKind};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::Ast;

declare_rule! {
    /// A view uses the privileges of its owner to read tables that have row-level security.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL applies the policies of the tables for the owner of the view, not for the role that queries the view.
    /// The owner is usually the role that ran the migration and owns the tables. Policies do not apply to the owner of
    /// a table unless they are forced, so every role that may query the view sees all rows that the view returns. From
    /// PostgreSQL 15 on, `security_invoker` makes a view use the privileges of the querying role.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- pg-version: 15-18
    /// -- history:
    /// CREATE TABLE posts (id bigint PRIMARY KEY, author uuid);
    /// ALTER TABLE posts ENABLE ROW LEVEL SECURITY;
    /// -- migration:
    /// CREATE VIEW recent AS SELECT * FROM posts;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- pg-version: 15-18
    /// -- history:
    /// CREATE TABLE posts (id bigint PRIMARY KEY, author uuid);
    /// ALTER TABLE posts ENABLE ROW LEVEL SECURITY;
    /// -- migration:
    /// CREATE VIEW recent WITH (security_invoker = true) AS SELECT * FROM posts;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a view whose tables have no row-level security, as far as the migrations show
    /// - a view for which a later migration sets the option
    /// - a view on PostgreSQL before 15, which does not have the option
    /// - `CREATE OR REPLACE` that loses the option, which `replace-loses-attributes` reports
    ///
    /// ## Other linters
    ///
    /// splinter checks the same on a live database.
    "view-without-security-invoker", Security, Warning,
    {
        recommended: false,
        sources: &["splinter/security_definer_view"],
        yields_to: &[&crate::rules::compatibility::replace_loses_attributes::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::CreateView(create) = context.ast else { return };
    if context.effects.fails.is_some() || !context.target.at_least(15) {
        return;
    }
    let path = context.session.settings.search_path();
    let Some(oid) = context.after.find_relation(&create.name, &path) else { return };
    let end = ahead(context, &create.name.name.text, Until::EndOfMigration);
    let Some(view) = end.get_relation(oid).filter(|view| !view.is_security_invoker()) else { return };
    let mut tables = Vec::new();
    protected(&end, oid, &mut tables, 0);
    if tables.is_empty() {
        return;
    }
    let names = enumerate(tables.iter().map(|table| table.name.as_str()));
    let who = match reaching(&end, view).first() {
        Some(role) => format!("`{role}` and every other role"),
        None => "every role".to_owned(),
    };
    let message = format!(
        "{who} with SELECT on `{}` can read all rows of {names} that the view shows, regardless of row-level security",
        view.name
    );
    let first = if everywhere_at_least(context, 15) {
        "let the view use the privileges of the querying role"
    } else {
        "on PostgreSQL 15 and later, let the view use the privileges of the querying role"
    };
    let name = sql_name(context, &RelationName::existing(view));
    let help = format!("{first}:\n    ALTER VIEW {name} SET (security_invoker = true);");
    reporter.report(create.name.range(), message).help(help).emit();
}

/// The tables under a view that have row-level security, as far as its owner's rights reach.
///
/// Source: PostgreSQL 18 documentation, CREATE VIEW, "Notes".
fn protected<'c>(catalog: &'c Catalog, view: Oid, found: &mut Vec<&'c Relation>, depth: u8) {
    const MAX_DEPTH: u8 = 8;
    let Some(definition) = catalog.get_relation(view).and_then(|view| view.view()) else { return };
    for (oid, _) in &definition.references {
        let Some(read) = catalog.get_relation(*oid) else { continue };
        if read.kind == RelationKind::View && depth < MAX_DEPTH {
            // Such a view asks with the rights of the user, also where another view reads it.
            if !read.is_security_invoker() {
                protected(catalog, *oid, found, depth + 1);
            }
        } else if read.row_security && !found.iter().any(|known| known.oid == *oid) {
            found.push(read);
        }
    }
}
