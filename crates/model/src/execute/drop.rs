//! DROP, and everything that goes with an object.
//!
//! As in PostgreSQL a drop has two steps: everything that depends on the targets is collected (and relations among it are
//! locked), then, if RESTRICT allows it, all of it is removed.

mod dependency;
mod remove;
mod target;

use super::{Executor, Run, fail};
use crate::catalog::Oid;
use crate::effect::{LockCause, Removal, RemovalReason, RemovedObject};
use dependency::{Dependency, Object};
use pgvet_syntax::ast::{DropBehavior, LockMode};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// A drop that is being collected: objects in the order in which they were found.
#[derive(Debug)]
struct Deletion {
    found: Vec<Found>,
    behavior: DropBehavior,
    /// The lock on relations; weaker for DROP INDEX CONCURRENTLY.
    mode: LockMode,
    /// DROP COLUMN takes out its column itself.
    keeps_target: bool,
    range: TextRange,
}

/// An object that is to go.
#[derive(Debug)]
struct Found {
    object: Object,
    /// It was named, or goes silently with something that goes.
    silent: bool,
    /// The object that it depends on, for the message.
    because_of: Option<Object>,
    /// The number of the target with which it goes.
    target: usize,
}

impl Deletion {
    fn new(behavior: DropBehavior, range: TextRange) -> Self {
        Self { found: Vec::new(), behavior, mode: LockMode::AccessExclusive, keeps_target: false, range }
    }

    fn contains(&self, object: &Object) -> bool {
        self.found.iter().any(|found| found.object == *object)
    }
}

impl Executor<'_> {
    /// Drops a relation and what belongs to it (indexes, owned sequences, row type, foreign keys of it); with CASCADE also
    /// what depends on it (views, foreign keys to it, defaults that use a sequence), otherwise fails with 2BP01.
    /// Locks everything that goes and both sides of foreign keys.
    pub(crate) fn drop_relation(
        &mut self,
        oid: Oid,
        behavior: DropBehavior,
        cause: LockCause,
        range: TextRange,
    ) -> Run {
        self.lock(oid, LockMode::AccessExclusive, cause, range);
        self.delete(&[Object::Relation(oid)], Deletion::new(behavior, range))
    }

    /// Drops the dependents of a column: indexes, constraints, sequences, views with CASCADE. The column itself is left
    /// to the caller.
    pub(crate) fn drop_column_dependents(
        &mut self,
        table: Oid,
        column: &SmolStr,
        behavior: DropBehavior,
        range: TextRange,
    ) -> Run {
        let deletion = Deletion { keeps_target: true, ..Deletion::new(behavior, range) };
        self.delete(&[Object::Column(table, column.clone())], deletion)
    }

    /// Drops a constraint with its index and what depends on it.
    pub(crate) fn drop_constraint_object(
        &mut self,
        table: Oid,
        name: &SmolStr,
        behavior: DropBehavior,
        range: TextRange,
    ) -> Run {
        self.delete(&[Object::Constraint(table, name.clone())], Deletion::new(behavior, range))
    }

    /// Source: PostgreSQL 18, `src/backend/catalog/dependency.c`, `performMultipleDeletions`.
    fn delete(&mut self, targets: &[Object], mut deletion: Deletion) -> Run {
        self.catalog.read_mentions();
        for (target, object) in targets.iter().enumerate() {
            deletion.found.push(Found { object: object.clone(), silent: true, because_of: None, target });
        }
        self.check_owners(targets, &deletion)?;
        let mut at = 0;
        while let Some(found) = deletion.found.get(at) {
            let (object, target) = (found.object.clone(), found.target);
            if let Some(relation) = object.locked_relation() {
                let cause = if at < targets.len() { LockCause::Target } else { self.cause_of(&object) };
                self.lock(relation, deletion.mode, cause, deletion.range);
            }
            for (dependent, dependency) in self.dependents(&object) {
                let silent = dependency == Dependency::Auto;
                if let Some(found) = deletion.found.iter_mut().find(|found| found.object == dependent) {
                    found.silent |= silent;
                    found.target = found.target.min(target);
                } else {
                    let because_of = Some(object.clone());
                    deletion.found.push(Found { object: dependent, silent, because_of, target });
                }
            }
            at += 1;
        }
        if deletion.behavior == DropBehavior::Restrict
            && let Some(found) = deletion.found.iter().find(|found| !found.silent)
        {
            let dropped = found.because_of.as_ref().map_or_else(String::new, |object| self.describe(object));
            let reason = format!(
                "cannot drop {dropped} because other objects depend on it, such as {}",
                self.describe(&found.object)
            );
            return fail("2BP01", reason, deletion.range);
        }
        self.note_removals(&deletion, targets.len());
        let kept = if deletion.keeps_target { targets.len() } else { 0 };
        // One target after the other, and the newest dependents of each first (`object_address_comparator`).
        let mut removed: Vec<&Found> = deletion.found.iter().skip(kept).rev().collect();
        removed.sort_by_key(|found| found.target);
        for found in removed {
            self.remove(&found.object, &deletion);
        }
        Ok(())
    }

    /// Records what goes, and why.
    fn note_removals(&mut self, deletion: &Deletion, targets: usize) {
        for (at, found) in deletion.found.iter().enumerate() {
            let reason = match found.silent {
                _ if at < targets => RemovalReason::Named,
                true => RemovalReason::Part,
                false => RemovalReason::Cascade,
            };
            let object = match &found.object {
                Object::Relation(oid) => RemovedObject::Relation(self.relation_name(*oid)),
                Object::Column(table, column) => {
                    RemovedObject::Column { table: self.relation_name(*table), column: column.clone() }
                }
                Object::Constraint(table, constraint) => {
                    RemovedObject::Constraint { table: self.relation_name(*table), constraint: constraint.clone() }
                }
                _ => RemovedObject::Other,
            };
            let description = self.describe(&found.object);
            self.effects.removals.push(Removal { object, description, reason, range: deletion.range });
        }
    }

    /// A part of something cannot be dropped alone: the index of a constraint, the sequence of an identity column, the
    /// index of a partition that belongs to the parent's, a table's row type.
    fn check_owners(&mut self, targets: &[Object], deletion: &Deletion) -> Run {
        for target in targets {
            let Some((owner, locked)) = self.owner_of(target) else { continue };
            if let Some(relation) = locked {
                self.lock(relation, LockMode::AccessExclusive, LockCause::Parent, deletion.range);
            }
            if !deletion.contains(&owner) {
                let reason =
                    format!("cannot drop {} because {} requires it", self.describe(target), self.describe(&owner));
                return fail("2BP01", reason, deletion.range);
            }
        }
        Ok(())
    }

    fn cause_of(&self, object: &Object) -> LockCause {
        let Object::Relation(oid) = object else { return LockCause::Dependent };
        let relation = self.catalog.relation(*oid);
        let owned = relation.sequence().is_some_and(|sequence| sequence.owned_by.is_some());
        if relation.kind.is_index() || owned {
            LockCause::Part
        } else if relation.parents.is_empty() {
            LockCause::Dependent
        } else {
            LockCause::Child
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::check;

    #[test]
    fn a_serial_column_goes_with_its_sequence() {
        let history = "CREATE TABLE t (id serial, a int);";
        let expected =
            ["drop public.t_id_seq", "lock public.t AccessExclusive", "lock public.t_id_seq AccessExclusive"];
        check(history, "ALTER TABLE t DROP COLUMN id", &expected);
        check(history, "DROP SEQUENCE t_id_seq", &["fails 2BP01", "lock public.t_id_seq AccessExclusive"]);
        let both = ["lock public.t AccessExclusive", "lock public.t_id_seq AccessExclusive"];
        check(history, "DROP TABLE t", &[&["drop public.t", "drop public.t_id_seq"], &both[..]].concat());
    }

    /// Recorded from servers of 14 and 18: each session waited for the first of these while it held nothing on the second.
    #[test]
    fn foreign_keys_of_the_first_table_go_first() {
        let history = "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE q (id int PRIMARY KEY);
            CREATE TABLE a (p int REFERENCES p); CREATE TABLE b (q int REFERENCES q);";
        let first = |sql| {
            let locks = crate::execute::testing::locks_in_order(history, sql);
            locks.into_iter().find(|name| ["public.p", "public.q"].contains(&name.as_str()))
        };
        assert_eq!(first("DROP TABLE a, b").as_deref(), Some("public.p"));
        assert_eq!(first("DROP TABLE b, a").as_deref(), Some("public.q"));
    }

    #[test]
    fn a_schema_goes_with_what_is_in_it() {
        let history = "CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY); CREATE TABLE u (id int REFERENCES s.t);";
        let locks = ["lock s.t AccessExclusive", "lock s.t_pkey AccessExclusive"];
        let gone = ["drop s.t", "drop s.t_pkey", "lock public.u AccessExclusive"];
        check(history, "DROP SCHEMA s CASCADE", &[&gone[..], &locks].concat());
        check(history, "DROP SCHEMA s", &[&["fails 2BP01"], &locks[..]].concat());
    }

    #[test]
    fn views_fall_one_after_the_other() {
        let history =
            "CREATE TABLE t (a int, b int); CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT * FROM v;";
        let locks = ["lock public.t AccessExclusive", "lock public.v AccessExclusive", "lock public.w AccessExclusive"];
        check(
            history,
            "ALTER TABLE t DROP COLUMN a CASCADE",
            &[&["drop public.v", "drop public.w"], &locks[..]].concat(),
        );
        check(history, "ALTER TABLE t DROP COLUMN b", &locks[..1]);
    }

    #[test]
    fn concurrently_has_its_limits() {
        let history = "CREATE TABLE t (id int PRIMARY KEY, a int); CREATE INDEX i ON t (a); CREATE INDEX j ON t (a);";
        let locks = ["lock public.i AccessExclusive", "lock public.t ShareUpdateExclusive"];
        check(history, "DROP INDEX CONCURRENTLY i", &[&["drop public.i"], &locks[..]].concat());
        check(history, "BEGIN; DROP INDEX CONCURRENTLY i", &["fails 25001"]);
        check(history, "DROP INDEX CONCURRENTLY i, j", &["fails 0A000"]);
        let key = ["fails 2BP01", "lock public.t ShareUpdateExclusive", "lock public.t_pkey ShareUpdateExclusive"];
        check(history, "DROP INDEX CONCURRENTLY t_pkey", &key);
    }

    #[test]
    fn everything_that_uses_a_function_goes_with_it() {
        let history = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TABLE t (a int DEFAULT f());";
        check(history, "DROP FUNCTION f()", &["fails 2BP01"]);
        check(history, "DROP FUNCTION f() CASCADE", &["lock public.t AccessExclusive"]);
    }
}
