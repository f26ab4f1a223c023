//! A type change that also locks the table that a foreign key connects with it.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::Advice;
use crate::rules::statement::altered::{Altered, by_range};
use crate::rules::text::{enumerate, identifier, sql_name};
use pgvet_model::effect::{LockCause, RelationName};
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A type change of a foreign-key column, which also locks the other table of the foreign key.
    ///
    /// ## Why it matters
    ///
    /// The statement also blocks every query on a second, often busier, table, which it does not name. The reason is
    /// that PostgreSQL creates the foreign key again, and takes ACCESS EXCLUSIVE locks on both of its tables. It does
    /// so even if the type change affects only the catalog.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE countries (code varchar(2) PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, country varchar(2) REFERENCES countries);
    /// -- migration:
    /// ALTER TABLE orders ALTER COLUMN country TYPE varchar(3);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE countries (code varchar(2) PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, country varchar(2) REFERENCES countries);
    /// -- migration:
    /// ALTER TABLE orders DROP CONSTRAINT orders_country_fkey;
    /// ALTER TABLE orders ALTER COLUMN country TYPE varchar(3);
    /// ALTER TABLE orders ADD CONSTRAINT orders_country_fkey
    ///     FOREIGN KEY (country) REFERENCES countries NOT VALID;
    /// ALTER TABLE orders VALIDATE CONSTRAINT orders_country_fkey;
    /// ```
    ///
    /// Run each statement in its own transaction. The other table of the foreign key is then blocked only for a moment,
    /// when the foreign key is dropped and when it is added. The type change still blocks its own table. If the new
    /// type needs a rewrite, the table is blocked during the whole rewrite.
    ///
    /// ## When it is not reported
    ///
    /// - a foreign key, if the same transaction created the other table, or if the same migration created it and left
    ///   it empty
    /// - a foreign key that no migration shows
    ///
    /// `type-change-rewrites-table` reports the effect on the altered table.
    "foreign-key-column-type-change", Locking, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(altered) = Altered::of(context).filter(|_| context.effects.fails.is_none()) else { return };
    let locks = context.effects.locks.iter().filter(|lock| {
        lock.cause == LockCause::ForeignKey
            && lock.mode == LockMode::AccessExclusive
            && lock.relation.visibility.is_exposed()
            && altered.type_change(lock.range).is_some()
    });
    for (range, locks) in by_range(locks, |lock| lock.range) {
        let tables: Vec<&RelationName> = locks.iter().map(|lock| &lock.relation).collect();
        let names = enumerate(tables.iter().map(|table| table.name.as_str()));
        let message = format!(
            "this column is part of a foreign key, so the type change also takes ACCESS EXCLUSIVE on {names} and \
             blocks all reads and writes there until the transaction ends"
        );
        let mut finding = reporter.report(range, message);
        for table in &tables {
            finding = finding.relation(table);
        }
        finding.help(advice(context, altered, range, &tables)).emit();
    }
}

fn advice(context: &RuleContext<'_>, altered: Altered<'_>, range: TextRange, tables: &[&RelationName]) -> Advice {
    let mut drops = Vec::new();
    let column = altered.type_change(range).map(|column| &column.text);
    for owner in std::iter::once(&altered.table).chain(tables) {
        let Some(relation) = context.before.get_relation(owner.oid) else { continue };
        for constraint in &relation.constraints {
            let Some(key) = constraint.foreign_key() else { continue };
            let uses = column.is_some_and(|column| {
                (owner.oid == altered.table.oid && key.columns.contains(column))
                    || (key.referenced == altered.table.oid && key.referenced_columns.contains(column))
            });
            if uses && constraint.inherited_from == 0 {
                let (table, name) = (sql_name(context, owner), identifier(&constraint.name));
                drops.push(format!("ALTER TABLE {table} DROP CONSTRAINT {name}"));
            }
        }
    }
    if drops.is_empty() {
        return Advice::new("drop the foreign key first, and add it again NOT VALID after the type change");
    }
    Advice::new("before the type change, drop the foreign key in its own transaction, with a lock_timeout:")
        .sql("SET lock_timeout = '2s'")
        .all(drops)
        .then("after the type change, add the foreign key again NOT VALID, and validate it in a later transaction")
}
