//! Tables that users reach through an HTTP interface, without row-level security.

use super::api_roles::{is_exposed_schema, reaching};
use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use crate::rules::text::{enumerate, qualified};
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::Persistence;

declare_rule! {
    /// A table without row-level security that users can reach through an HTTP interface.
    ///
    /// ## Why it matters
    ///
    /// `PostgREST`, which Supabase uses, lets every visitor query each table of an exposed schema (`public` by default) on
    /// which the roles of visitors, such as `anon`, have privileges. Without row-level security, visitors can read every
    /// row. If these roles also have the privileges INSERT, UPDATE and DELETE, visitors can change and delete the rows,
    /// too. By default, Supabase granted these privileges on new tables until 2026.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE profiles (id uuid PRIMARY KEY, email text);
    /// GRANT SELECT, INSERT, UPDATE ON profiles TO authenticated;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE profiles (id uuid PRIMARY KEY, email text);
    /// ALTER TABLE profiles ENABLE ROW LEVEL SECURITY;
    /// CREATE POLICY own ON profiles TO authenticated USING (id = auth.uid());
    /// GRANT SELECT, INSERT, UPDATE ON profiles TO authenticated;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that a later migration drops, or for which a later migration enables row-level security
    /// - partitions, because queries use their parent
    /// - `DISABLE ROW LEVEL SECURITY`, which `trigger-left-disabled` reports
    ///
    /// A table is reachable if migrations grant privileges on it to `anon`, `authenticated` or a similar role, directly
    /// or by default privileges. A table is also reachable if its schema is `public` and other tables there have
    /// policies for these roles or with `auth.uid()`.
    ///
    /// ## Other linters
    ///
    /// splinter checks the same on a live database.
    "row-level-security-disabled", Security, Warning,
    { sources: &["splinter/rls_disabled_in_public", "migrationpilot/MP057"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Declared::Table(create) = context.declared else { return };
    let table = context.relation;
    let is_table = matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable);
    let is_meant =
        is_table && !table.row_security && !table.is_partition() && table.persistence != Persistence::Temporary;
    if !is_meant {
        return;
    }
    let roles = reaching(context.catalog, table);
    let who = if !roles.is_empty() {
        format!("so {} can access every row", enumerate(roles.iter().map(|role| role.as_str())))
    } else if table.schema == "public" && is_exposed_schema(context.catalog, &table.schema) {
        "unlike other tables of `public`: the roles of the HTTP API (PostgREST), such as `anon`, can access every row"
            .to_owned()
    } else {
        return;
    };
    let message = format!("`{}` has no row-level security, {who}", table.name);
    let name = qualified(&table.schema, &table.name);
    let help = format!(
        "in the same migration, create policies for the rows that users may see, and enable row-level security:\n    \
         ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;"
    );
    reporter.report(create.name.range(), message).relation(&RelationName::existing(table)).help(help).emit();
}
