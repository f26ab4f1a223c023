//! What migrations say against many rows in a table of an earlier deployment.

use super::Executor;
use crate::catalog::{Column, EmptiedBy, ForeignKeyConstraint, Function, Oid, Relation};
use crate::effect::{FewRows, Visibility};
use smol_str::SmolStr;

impl Executor<'_> {
    /// What the migrations so far say against many rows.
    pub(super) fn few_rows(&self, relation: &Relation) -> Option<FewRows> {
        if let Some(emptied) = self.emptied(relation) {
            return Some(match emptied.by {
                EmptiedBy::Truncate => FewRows::Truncated,
                EmptiedBy::Delete => FewRows::Deleted,
                EmptiedBy::Nobody => FewRows::FoundEmpty,
            });
        }
        let birth = relation.birth;
        if birth.created_again_in.is_some() && birth.created_again_in == self.deployment {
            return Some(FewRows::CreatedAgain);
        }
        if let Some(keys) = self.catalog.listed_keys(relation) {
            return Some(FewRows::ListedKeys { keys });
        }
        if birth.empty_in.is_some() && birth.empty_in == self.deployment {
            let is_cause =
                |column: &&Column| column.not_null && column.added_in == birth.empty_in && column.default.is_none();
            let added = relation.columns.iter().find(is_cause);
            let of_column = added.map(|column| FewRows::NoneForNewColumn { column: column.name.clone() });
            return of_column.or_else(|| self.excluded_by_reference(relation));
        }
        let is_needed_before = birth.needed_in.is_some() && birth.needed_in != self.deployment;
        let is_older = is_needed_before && !self.catalog.doubts_everything();
        if birth.made_if_missing_in.is_some() && birth.made_if_missing_in == self.deployment && !is_older {
            return Some(FewRows::MadeIfMissing);
        }
        self.catalog.lookup_rows(relation).map(|rows| FewRows::Listed { rows })
    }

    /// Whether a foreign key leaves a table no rows: none of its columns is ever NULL, and the table to which it refers is new
    /// and empty.
    pub(super) fn excludes_rows(&self, relation: &Relation, key: &ForeignKeyConstraint) -> bool {
        self.new_table_needed(relation, key).is_some_and(|referenced| !referenced.birth.filled)
    }

    /// The new table in which a foreign key needs a row for each row of another table.
    fn new_table_needed(&self, relation: &Relation, key: &ForeignKeyConstraint) -> Option<&Relation> {
        let is_never_null = |name: &SmolStr| relation.column(name).is_some_and(|column| column.not_null);
        let referenced = self.catalog.get_relation(key.referenced)?;
        let is_new = referenced.known && referenced.birth.is_of(self.deployment) && !referenced.birth.if_not_exists;
        (is_new && key.columns.iter().all(is_never_null)).then_some(referenced)
    }

    /// The new table to which all rows of a table would have had to refer before it got any.
    fn excluded_by_reference(&self, relation: &Relation) -> Option<FewRows> {
        let mut keys = relation.constraints.iter().filter(|own| own.valid).filter_map(|own| own.foreign_key());
        let referenced = keys.find_map(|key| self.new_table_needed(relation, key))?;
        Some(FewRows::NoneForNewReference { table: referenced.name.clone() })
    }

    /// Gives the locks of a statement the evidence that only its end shows: it locks a table first, and then adds a column
    /// that the table can only get while it has no rows.
    pub(super) fn note_new_evidence(&mut self, first_lock: usize) {
        let mut locks = std::mem::take(&mut self.effects.locks);
        locks.have_few_rows(first_lock, |relation| {
            let found = self.catalog.get_relation(relation.oid)?;
            let is_new = found.birth.empty_in.is_some() && relation.visibility == Visibility::Existing;
            is_new.then(|| self.few_rows(found))?
        });
        self.effects.locks = locks;
    }

    /// Notes an INSERT that gives values to these columns only, and so leaves the keys of its rows to the database: code
    /// that uses a lookup table knows its rows by their keys.
    pub(super) fn note_generated_keys(&mut self, table: Oid, given: &[SmolStr]) {
        let knows_rows = |relation: &Relation| {
            let is_given = |columns: Vec<SmolStr>| columns.iter().all(|column| given.contains(column));
            self.catalog.unique_indexes(relation).filter_map(|index| index.plain_columns()).any(is_given)
                || relation.columns.iter().all(|column| given.contains(&column.name))
        };
        let relation = self.catalog.relation(table);
        if relation.known && !relation.birth.generates_keys && !knows_rows(relation) {
            self.catalog.relation_mut(table).birth.generates_keys = true;
        }
    }

    /// Notes the tables into which a function inserts rows.
    pub(super) fn note_inserts(&mut self, function: &Function) {
        let path = function.search_path();
        for name in self.bodies.inserted(function) {
            if let Some(table) = self.catalog.find_relation(&name, &path) {
                self.catalog.relation_mut(table).birth.inserted_by = Some(function.oid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::effect::FewRows;
    use crate::execute::testing::effects_on;

    fn few(before: &str) -> Option<FewRows> {
        let effects = effects_on(17, before, "ALTER TABLE t ADD CHECK (id > 0);");
        effects.locks.first().and_then(|lock| lock.relation.few.clone())
    }

    #[test]
    fn tables_into_which_functions_insert_are_no_lookup_tables() {
        let table = "CREATE TABLE t (id int PRIMARY KEY, label text);
            INSERT INTO t (id, label) VALUES (1, 'a'), (2, 'b'), (3, 'c');";
        let function = |body: &str| format!("{table} CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS '{body}';");
        assert_eq!(few(&function("BEGIN PERFORM 1 FROM t; END")), Some(FewRows::Listed { rows: 3 }));
        let inserts = function("BEGIN INSERT INTO t (id) VALUES (4); END");
        assert_eq!(few(&inserts), None);
        assert_eq!(few(&format!("{inserts} DROP FUNCTION f();")), Some(FewRows::Listed { rows: 3 }));
    }

    #[test]
    fn a_delete_of_all_rows_leaves_few_in_its_transaction() {
        let few = |changes: &str| {
            let table = "CREATE TABLE t (id int PRIMARY KEY, label text);";
            let effects = effects_on(17, table, &format!("BEGIN; {changes} ALTER TABLE t ADD CHECK (id > 0);"));
            effects.locks.first().and_then(|lock| lock.relation.few.clone())
        };
        assert_eq!(few("DELETE FROM t;"), Some(FewRows::Deleted));
        assert_eq!(few("TRUNCATE t;"), Some(FewRows::Truncated));
        assert_eq!(few("DELETE FROM t WHERE id > 3;"), None);
        assert_eq!(few("DELETE FROM t; INSERT INTO t SELECT id, 'a' FROM other;"), None);
        assert_eq!(few("DELETE FROM t; COMMIT;"), None, "others may have inserted rows since");
    }

    #[test]
    fn code_that_stops_if_there_are_rows_shows_that_there_are_none() {
        let few = |body: &str| {
            let table = "CREATE TABLE t (id int PRIMARY KEY, label text); CREATE TABLE u (id int);";
            let code = format!("BEGIN; DO $$ DECLARE n bigint; name text; BEGIN {body} END $$;");
            let effects = effects_on(17, table, &format!("{code} ALTER TABLE t ADD CHECK (id > 0);"));
            effects.locks.first().and_then(|lock| lock.relation.few.clone())
        };
        let raise = |condition: &str| format!("IF {condition} THEN RAISE EXCEPTION 'rows'; END IF;");
        for condition in [
            "EXISTS (SELECT 1 FROM t)",
            "(SELECT count(*) FROM t) > 0",
            "0 <> (SELECT count(1) FROM t)",
            "NOT ((SELECT count(*) FROM t) = 0)",
            "EXISTS (SELECT FROM u) OR EXISTS (SELECT FROM t)",
        ] {
            assert_eq!(few(&raise(condition)), Some(FewRows::FoundEmpty), "{condition}");
        }
        for condition in [
            "NOT EXISTS (SELECT 1 FROM t)",
            "EXISTS (SELECT 1 FROM t WHERE id > 3)",
            "EXISTS (SELECT 1 FROM u)",
            "(SELECT count(*) FROM t) > 10",
            "(SELECT count(id) FROM t) > 0 AND now() > '2030-01-01'",
        ] {
            assert_eq!(few(&raise(condition)), None, "{condition}");
        }
        let counted = format!("SELECT count(*) INTO n FROM t; {}", raise("n > 0"));
        assert_eq!(few(&counted), Some(FewRows::FoundEmpty));
        let found = format!("PERFORM 1 FROM t; {}", raise("FOUND"));
        assert_eq!(few(&found), Some(FewRows::FoundEmpty));
        let each = "FOREACH name IN ARRAY ARRAY['u', 't'] LOOP
            EXECUTE format('SELECT count(*) FROM %I', name) INTO n; IF n > 0 THEN RAISE EXCEPTION 'rows'; END IF;
            END LOOP;";
        assert_eq!(few(each), Some(FewRows::FoundEmpty));
        assert_eq!(few(&format!("{counted} INSERT INTO t VALUES (1);")), None);
        assert_eq!(few("IF EXISTS (SELECT 1 FROM t) THEN RAISE NOTICE 'rows'; END IF;"), None);
        let handled = format!("BEGIN {} EXCEPTION WHEN OTHERS THEN NULL; END;", raise("EXISTS (SELECT 1 FROM t)"));
        assert_eq!(few(&handled), None);
        let otherwise = "IF NOT EXISTS (SELECT 1 FROM t) THEN NULL; ELSE RAISE EXCEPTION 'rows'; END IF;";
        assert_eq!(few(otherwise), Some(FewRows::FoundEmpty));
    }

    #[test]
    fn the_lines_of_copy_are_rows() {
        let few = |data: &str| {
            let table = "CREATE TABLE t (id int PRIMARY KEY, label text);";
            few(&format!("{table}\nCOPY t FROM stdin;\n{data}\\.\n"))
        };
        assert_eq!(few("1\ta\n2\tb\n3\tc\n"), Some(FewRows::Listed { rows: 3 }));
        assert_eq!(few(&"1\ta\n".repeat(20_000)), None);
    }

    #[test]
    fn tables_whose_rows_no_code_knows_are_no_lookup_tables() {
        let listed = |columns: &str, rows: &str| few(&format!("CREATE TABLE t ({columns}); INSERT INTO t {rows};"));
        let lookup = Some(FewRows::Listed { rows: 3 });
        let names = "(name) VALUES ('a'), ('b'), ('c')";
        assert_eq!(listed("id serial PRIMARY KEY, name text UNIQUE, note text", names), lookup);
        assert_eq!(listed("id serial PRIMARY KEY, name text, note text", names), None);
        let keys = "(id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')";
        assert_eq!(listed("id serial PRIMARY KEY, name text, note text", keys), lookup);
        assert_eq!(listed("id serial PRIMARY KEY, name text UNIQUE, password_hash text", keys), None);
    }

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
        let few = |policy: &str| few(&format!("{table} {policy}"));
        let listed = Some(FewRows::Listed { rows: 3 });
        assert_eq!(few(""), listed);
        assert_eq!(few("CREATE POLICY p ON t FOR ALL USING (pg_has_role('admin', 'member'));"), listed);
        assert_eq!(few("CREATE POLICY p ON t FOR SELECT USING (owner = current_user);"), listed);
        assert_eq!(few("CREATE POLICY p ON t FOR INSERT WITH CHECK (owner = current_user);"), None);
        assert_eq!(few("CREATE POLICY p ON t USING (owner = current_user);"), None);
    }
}
