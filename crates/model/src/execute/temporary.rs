//! Temporary tables at the end of a transaction, and objects of a role.

use super::{Executor, Run};
use crate::catalog::Oid;
use crate::effect::LockCause;
use pgvet_syntax::ast::{DropBehavior, LockMode, RoleList};

impl Executor<'_> {
    /// ON COMMIT DROP.
    pub(super) fn drop_at_commit(&mut self) -> Run {
        let dropped: Vec<Oid> = self
            .catalog
            .temporary_relations()
            .filter(|relation| relation.options.iter().any(|(name, value)| name == "on_commit" && value == "drop"))
            .map(|relation| relation.oid)
            .collect();
        for oid in dropped {
            if self.catalog.get_relation(oid).is_some() {
                self.drop_relation(oid, DropBehavior::Cascade, LockCause::Target, self.place.range)?;
            }
        }
        Ok(())
    }

    /// REASSIGN OWNED: what earlier OWNER TO gave to the roles; what else they own is not known.
    pub(super) fn reassign_owned(&mut self, statement: &RoleList) -> Run {
        let owned: Vec<Oid> = self
            .catalog
            .relations_in_order()
            .into_iter()
            .filter(|relation| relation.owner.as_ref().is_some_and(|owner| statement.roles.contains(owner)))
            .map(|relation| relation.oid)
            .collect();
        for oid in owned {
            self.lock(oid, LockMode::AccessExclusive, LockCause::Target, self.place.range);
            self.catalog.relation_mut(oid).owner = None;
        }
        self.unknown("which other objects a role owns is not known");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::{check_failure, check_locks};

    #[test]
    fn another_session_makes_its_own_temporary_objects() {
        let make = "CREATE TEMP TABLE m (a int); CREATE FUNCTION pg_temp.f(int) RETURNS int LANGUAGE sql RETURN 1";
        check_failure(make, make, "");
        check_failure(make, "CREATE TYPE pg_temp._m AS (a int)", "");
        check_failure(make, "SELECT pg_temp.f(1)", "");
        check_failure("", &format!("{make}; CREATE TEMP TABLE m (a int)"), "42P07");
    }

    #[test]
    fn temporary_children_are_gone_with_their_session() {
        let history =
            "CREATE TABLE p (id int); CREATE TEMP TABLE c () INHERITS (p); CREATE TEMP VIEW v AS SELECT * FROM p;";
        check_locks(history, "SELECT * FROM p", &["p AccessShare"]);
        check_locks(history, "ALTER TABLE p ALTER COLUMN id TYPE bigint", &["p AccessExclusive"]);
    }
}
