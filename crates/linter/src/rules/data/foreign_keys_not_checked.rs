//! Changes of rows while the triggers that check foreign keys are disabled.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{DataChange, DataChangeKind};
use pgvet_syntax::ast::Ast;
use smol_str::SmolStr;

declare_rule! {
    /// Changes to rows while `session_replication_role` is `replica`, or while all triggers of the table are disabled.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks foreign keys with triggers. While these triggers are disabled, it accepts rows that refer to
    /// nothing, and deletes rows to which other rows refer. When the triggers are enabled again, PostgreSQL does not
    /// check these rows. The catalog still says that the constraint is valid, and nobody notices the wrong rows until a
    /// dump cannot be restored.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, old boolean);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users);
    /// -- migration:
    /// ALTER TABLE users DISABLE TRIGGER ALL;
    /// DELETE FROM users WHERE old;
    /// ALTER TABLE users ENABLE TRIGGER ALL;
    /// ```
    ///
    /// Use instead:
    ///
    /// Use `DISABLE TRIGGER USER`, which does not disable the triggers of foreign keys.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, old boolean);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users);
    /// -- migration:
    /// SET lock_timeout = '2s';
    /// ALTER TABLE users DISABLE TRIGGER USER;
    /// DELETE FROM users WHERE id BETWEEN 1 AND 1000 AND old;
    /// ALTER TABLE users ENABLE TRIGGER USER;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a change that cannot violate a foreign key, for example an `UPDATE` that sets no column of a foreign key
    /// - temporary tables
    ///
    /// ## Confidence
    ///
    /// If the statement changes only a few rows, the confidence is `possible`, and the finding is shown only with
    /// `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [nebraska #1632](https://github.com/flatcar/nebraska/issues/1632): deletes with
    ///   `session_replication_role = replica` left rows without the rows to which they refer
    ///
    /// ## Other linters
    ///
    /// No other known linter reports these changes.
    "foreign-keys-not-checked", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for change in context.effects.data_changes.iter().filter(|change| !change.by_trigger) {
        let Some(table) = context.before.get_relation(change.relation.oid).filter(|table| !table.is_temporary()) else {
            continue;
        };
        if !is_session_off(context) && !table.all_triggers_off {
            continue;
        }
        if let Some((referencing, constraint)) = key(context, change) {
            report(context, reporter, change, referencing, &constraint);
        }
    }
}

/// Whether the session fires no triggers of tables.
///
/// Source: PostgreSQL 18 documentation, 19.11.1, `session_replication_role`.
fn is_session_off(context: &RuleContext<'_>) -> bool {
    let setting = context.session.settings.get("session_replication_role");
    setting.is_some_and(|setting| setting.value.trim_matches('\'').eq_ignore_ascii_case("replica"))
}

/// A foreign key that nothing checks for the change: one of the table itself for new values, else one that refers to it.
fn key(context: &RuleContext<'_>, change: &DataChange) -> Option<(Oid, SmolStr)> {
    let (catalog, table) = (context.after, change.relation.oid);
    // Other statements do not show which columns they set.
    let assignments = match context.ast {
        Ast::Update(update) => Some(update.assignments.as_slice()),
        Ast::Insert(insert) if change.kind == DataChangeKind::Update => {
            insert.on_conflict.as_ref().and_then(|conflict| conflict.update.as_deref())
        }
        _ => None,
    };
    let sets = |columns: &[SmolStr]| {
        assignments.is_none_or(|assignments| assignments.iter().any(|one| columns.contains(&one.column.text)))
    };
    let own = catalog.get_relation(table).filter(|_| change.kind != DataChangeKind::Delete);
    let mut of_table = own.into_iter().flat_map(|table| &table.constraints);
    let own = of_table.find(|constraint| constraint.foreign_key().is_some_and(|key| sets(&key.columns)));
    let own = own.map(|constraint| (table, constraint.name.clone()));
    own.or_else(|| {
        let mut referring = catalog.foreign_keys_to(table).into_iter().filter(|(_, constraint)| {
            let referenced = constraint.foreign_key().is_some_and(|key| sets(&key.referenced_columns));
            change.kind != DataChangeKind::Insert && referenced
        });
        referring.next().map(|(oid, constraint)| (oid, constraint.name.clone()))
    })
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    change: &DataChange,
    referencing: Oid,
    constraint: &SmolStr,
) {
    let table = &change.relation;
    let verb = match change.kind {
        DataChangeKind::Insert => "inserts into",
        DataChangeKind::Update => "updates in",
        DataChangeKind::Delete => "deletes from",
    };
    let message = format!(
        "triggers are disabled, so PostgreSQL never checks the foreign key `{constraint}` for the rows that this \
         statement {verb} `{}`",
        table.name
    );
    let relation = pgvet_model::effect::RelationName::existing(context.after.relation(referencing));
    let help = format!(
        "leave the triggers enabled; or drop the foreign key afterwards, add it again NOT VALID, and validate it:\n    \
         ALTER TABLE {} VALIDATE CONSTRAINT {};",
        sql_name(context, &relation),
        identifier(constraint)
    );
    let mut finding = reporter.report(change.range, message).relation(table).help(help);
    if change.rows.is_few() {
        finding = finding.assuming(Assumption::RowsViolate { constraint: constraint.clone() });
    }
    finding.emit();
}
