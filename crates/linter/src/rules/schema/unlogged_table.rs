//! Tables that a crash empties.

use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use crate::rules::text::qualified;
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::Persistence;

declare_rule! {
    /// A table is `UNLOGGED` after the last migration.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL writes no WAL for an unlogged table. After a crash, a failover or a restore from a base backup the
    /// table is empty. The table cannot be read on a standby, and subscribers of logical replication never get its
    /// rows. `SET LOGGED` writes the whole table to the WAL at once, under an ACCESS EXCLUSIVE lock.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE UNLOGGED TABLE sessions (id uuid PRIMARY KEY, data jsonb);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE sessions (id uuid PRIMARY KEY, data jsonb);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that is logged, or no longer exists, after the last migration
    ///
    /// ## Other linters
    ///
    /// pg-migration-lint reports the same.
    "unlogged-table", Schema, Warning,
    { recommended: false, sources: &["pg-migration-lint/PGM506"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let range = match context.declared {
        Declared::Table(create) if create.persistence == Persistence::Unlogged => create.name.range(),
        Declared::Unlogged(range) => range,
        _ => return,
    };
    let table = context.relation;
    if table.persistence != Persistence::Unlogged {
        return;
    }
    let message = format!("`{}` is empty after a crash or a failover, and cannot be read on a standby", table.name);
    let help = format!(
        "keep the table UNLOGGED only if its rows may be lost; otherwise make it LOGGED:\n    ALTER TABLE {} SET \
         LOGGED;",
        qualified(&table.schema, &table.name)
    );
    reporter.report(range, message).relation(&RelationName::existing(table)).help(help).emit();
}
