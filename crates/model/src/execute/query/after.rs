//! The triggers of changed rows, those of foreign keys among them, in the order in which PostgreSQL runs them.
//!
//! BEFORE triggers run first. AFTER triggers run in the order of their names, and those of foreign keys have names, too.
//! What ON DELETE and ON UPDATE change in other tables runs the AFTER triggers there once those of the first table have
//! run.
//!
//! Source: PostgreSQL 18, `src/backend/commands/trigger.c`, `RelationBuildTriggers`, `AfterTriggerSaveEvent` and
//! `CreateTriggerFiringOn`; `src/backend/utils/adt/ri_triggers.c`, `ri_PerformCheck`, which does not fire them itself.

use super::functions::FiredAt;
use crate::catalog::{Constraint, Oid};
use crate::effect::{DataChangeKind, LockCause};
use crate::execute::Executor;
use pgvet_syntax::ast::{LockMode, ReferentialAction};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows of a table that a statement or a foreign key changes.
pub(super) struct ChangedRows {
    pub(super) table: Oid,
    pub(super) kind: DataChangeKind,
    /// The columns that are set.
    pub(super) columns: Vec<SmolStr>,
    /// The columns that may get other values; `None` for all.
    pub(super) altered: Option<Vec<SmolStr>>,
}

impl Executor<'_> {
    /// Runs the triggers of changed rows.
    pub(super) fn run_triggers_of_rows(&mut self, changed: impl Iterator<Item = ChangedRows>, range: TextRange) {
        let mut queue: VecDeque<ChangedRows> = changed.collect();
        for rows in &queue {
            self.fire_triggers(rows, FiredAt::Before, range);
        }
        // Tables may refer to each other.
        let mut seen = Vec::new();
        while let Some(rows) = queue.pop_front() {
            self.fire_triggers(&rows, FiredAt::AfterByEarlierName, range);
            if !seen.contains(&rows.table) {
                seen.push(rows.table);
                self.enforce_foreign_keys(&rows, range, &mut queue);
            }
            self.fire_triggers(&rows, FiredAt::After, range);
        }
    }

    /// Locks the tables that the triggers of foreign keys read or change. `queue` gets the rows that they change.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/adt/ri_triggers.c`.
    fn enforce_foreign_keys(&mut self, rows: &ChangedRows, range: TextRange, queue: &mut VecDeque<ChangedRows>) {
        let ChangedRows { table, kind, .. } = *rows;
        let altered = rows.altered.as_deref();
        let touches =
            |list: &[SmolStr]| altered.is_none_or(|altered| list.iter().any(|column| altered.contains(column)));
        let relation = self.catalog.relation(table);
        if relation.all_triggers_off || self.is_replica() {
            return;
        }
        if kind != DataChangeKind::Delete {
            let referenced: Vec<Oid> = (relation.constraints.iter())
                .filter(|constraint| constraint.enforced)
                .filter_map(|constraint| constraint.foreign_key())
                .filter(|key| kind == DataChangeKind::Insert || touches(&key.columns))
                .map(|key| key.referenced)
                .collect();
            for other in referenced {
                self.lock_other_side(other, LockMode::RowShare, range);
            }
        }
        if kind == DataChangeKind::Insert {
            return;
        }
        for (referencing, constraint) in self.foreign_keys_to_family(table) {
            let Some(key) = constraint.foreign_key().filter(|_| constraint.enforced) else { continue };
            let action = match kind {
                DataChangeKind::Delete => key.on_delete,
                _ if touches(&key.referenced_columns) => key.on_update,
                _ => continue,
            };
            let next = match (action, kind) {
                (ReferentialAction::NoAction | ReferentialAction::Restrict, _) => None,
                (ReferentialAction::Cascade, DataChangeKind::Delete) => Some(DataChangeKind::Delete),
                _ => Some(DataChangeKind::Update),
            };
            let mode = if next.is_some() { LockMode::RowExclusive } else { LockMode::RowShare };
            self.lock_other_side(referencing, mode, range);
            if let Some(kind) = next {
                let altered = (kind == DataChangeKind::Update).then(|| key.columns.clone());
                let columns = altered.clone().unwrap_or_default();
                let rows = ChangedRows { table: referencing, kind, columns, altered };
                self.fire_triggers(&rows, FiredAt::Before, range);
                queue.push_back(rows);
            }
        }
    }

    fn lock_other_side(&mut self, oid: Oid, mode: LockMode, range: TextRange) {
        if self.catalog.get_relation(oid).is_some() {
            self.lock(oid, mode, LockCause::ForeignKey, range);
            self.lock_indexes(oid, mode, range);
            for child in self.lock_descendants(oid, mode, range) {
                self.lock_indexes(child, mode, range);
            }
        }
    }

    /// Foreign keys to a table or to a partitioned table that it is a part of.
    pub(crate) fn foreign_keys_to_family(&self, table: Oid) -> Vec<(Oid, Arc<Constraint>)> {
        let mut found = self.catalog.foreign_keys_to(table);
        let mut at = table;
        while let Some(relation) = self.catalog.get_relation(at).filter(|relation| relation.is_partition()) {
            let Some(parent) = relation.parents.first() else { break };
            found.extend(self.catalog.foreign_keys_to(*parent));
            at = *parent;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::{effects_on, locks_in_order};

    #[test]
    fn foreign_keys_of_deleted_rows_lock_level_by_level() {
        let history = "CREATE TABLE p(id int UNIQUE); CREATE TABLE first(id int UNIQUE, p int REFERENCES p (id) ON DELETE CASCADE);
            CREATE TABLE second(p int REFERENCES p (id) ON DELETE CASCADE);
            CREATE TABLE inner_rows(f int REFERENCES first (id) ON DELETE CASCADE);
            CREATE TABLE before_rows(); CREATE TABLE after_rows();
            CREATE FUNCTION b() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM before_rows; RETURN OLD; END';
            CREATE FUNCTION a() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM after_rows; RETURN OLD; END';
            CREATE TRIGGER a AFTER DELETE ON first FOR EACH ROW EXECUTE FUNCTION a();
            CREATE TRIGGER b BEFORE DELETE ON first FOR EACH ROW EXECUTE FUNCTION b();";
        let mut locks = locks_in_order(history, "DELETE FROM p");
        locks.retain(|name| !name.ends_with("_key"));
        let expected = ["p", "first", "before_rows", "second", "inner_rows", "after_rows"];
        assert_eq!(locks, expected.map(|name| format!("public.{name}")));
    }

    #[test]
    fn foreign_keys_without_triggers_lock_nothing() {
        let history = "CREATE TABLE p(id int UNIQUE); CREATE TABLE c(p int REFERENCES p (id));";
        let insert = "INSERT INTO c VALUES (1)";
        assert!(locks_in_order(history, insert).contains(&"public.p".to_owned()));
        let disabled = format!("{history} ALTER TABLE c DISABLE TRIGGER ALL");
        assert_eq!(locks_in_order(&disabled, insert), ["public.c"]);
        let history =
            "CREATE TABLE p(id int UNIQUE); CREATE TABLE c(p int, FOREIGN KEY (p) REFERENCES p (id) NOT ENFORCED);";
        let locks = effects_on(18, history, insert).locks;
        assert!(locks.iter().all(|lock| lock.relation.name == "c"));
    }
}
