//! What migrations say against many rows in a table of an earlier deployment.

use super::Executor;
use crate::catalog::{Column, ConstraintKind, Relation};
use crate::effect::FewRows;
use pgvet_syntax::ast::Expr;

impl Executor<'_> {
    /// What the migrations so far say against many rows.
    pub(super) fn few_rows(&self, relation: &Relation) -> Option<FewRows> {
        if self.emptied(relation).is_some_and(|emptied| emptied.truncated) {
            return Some(FewRows::Truncated);
        }
        if let Some(keys) = self.catalog.listed_keys(relation) {
            return Some(FewRows::ListedKeys { keys });
        }
        let birth = relation.birth;
        if birth.empty_in.is_some() && birth.empty_in == self.deployment {
            let is_cause =
                |column: &&Column| column.not_null && column.added_in == birth.empty_in && column.default.is_none();
            let added = relation.columns.iter().find(is_cause);
            return added.map(|column| FewRows::NoneForNewColumn { column: column.name.clone() });
        }
        if birth.made_if_missing_in.is_some() && birth.made_if_missing_in == self.deployment {
            return Some(FewRows::MadeIfMissing);
        }
        let rows = birth.lookup_rows().filter(|_| !takes_rows_of_users(relation))?;
        let mut referenced = relation.constraints.iter().filter_map(|constraint| match &constraint.kind {
            ConstraintKind::ForeignKey(key) => self.catalog.get_relation(key.referenced),
            _ => None,
        });
        let is_lookup = referenced.all(|table| table.oid == relation.oid || table.birth.listed_rows().is_some());
        is_lookup.then_some(FewRows::Listed { rows })
    }
}

/// Whether a policy lets sessions insert rows by what is in the row, such as their own: rows that the migrations have
/// inserted are not all.
fn takes_rows_of_users(relation: &Relation) -> bool {
    let depends_on_row = |condition: &Expr| {
        let mut found = false;
        condition.walk(&mut |part| found |= part.as_column().is_some_and(|name| relation.column(name).is_some()));
        found
    };
    relation.policies.iter().any(|policy| {
        let condition = policy.check.as_ref().or(policy.using.as_ref());
        ["insert", "all"].contains(&policy.command.as_str()) && condition.is_some_and(|found| depends_on_row(found))
    })
}

#[cfg(test)]
mod tests {
    use crate::effect::FewRows;
    use crate::execute::testing::effects_on;

    #[test]
    fn keys_are_counted_again_when_indexes_and_types_change() {
        let few = |changes: &str| {
            // The INSERT asks for the number before the changes.
            let table = "CREATE TYPE kind AS ENUM ('a', 'b'); CREATE TABLE t (id kind PRIMARY KEY, note text);
                INSERT INTO t SELECT id FROM other;";
            let effects = effects_on(17, &format!("{table} {changes}"), "ALTER TABLE t DROP COLUMN note;");
            effects.locks.first().and_then(|lock| lock.relation.few.clone())
        };
        assert_eq!(few(""), Some(FewRows::ListedKeys { keys: 2 }));
        assert_eq!(few("ALTER TYPE kind ADD VALUE 'c';"), Some(FewRows::ListedKeys { keys: 3 }));
        assert_eq!(few("ALTER TABLE t DROP CONSTRAINT t_pkey;"), None);
    }

    #[test]
    fn tables_into_which_sessions_insert_are_no_lookup_tables() {
        let table = "CREATE TABLE t (id int PRIMARY KEY, owner name, label text);
            INSERT INTO t (id, label) VALUES (1, 'a'), (2, 'b'), (3, 'c');";
        let few = |policy: &str| {
            let effects = effects_on(17, &format!("{table} {policy}"), "ALTER TABLE t ADD CHECK (id > 0);");
            effects.locks.first().and_then(|lock| lock.relation.few.clone())
        };
        let listed = Some(FewRows::Listed { rows: 3 });
        assert_eq!(few(""), listed);
        assert_eq!(few("CREATE POLICY p ON t FOR ALL USING (pg_has_role('admin', 'member'));"), listed);
        assert_eq!(few("CREATE POLICY p ON t FOR SELECT USING (owner = current_user);"), listed);
        assert_eq!(few("CREATE POLICY p ON t FOR INSERT WITH CHECK (owner = current_user);"), None);
        assert_eq!(few("CREATE POLICY p ON t USING (owner = current_user);"), None);
    }
}
