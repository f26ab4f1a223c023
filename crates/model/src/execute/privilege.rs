//! GRANT, REVOKE and ALTER DEFAULT PRIVILEGES.

use super::{Executor, Run, fail};
use crate::builtin;
use crate::catalog::{
    DefaultPrivilege, NamedKind, NamedObject, NamedPrivileges, Oid, Privilege, PrivilegeKind, Relation, RelationKind,
};
use crate::effect::{ChangeAction, ChangedObject, Limit, LockCause, UnknownReason};
use crate::execute::alter_table::is_system_column;
use crate::execute::query::describe::sequence_columns;
use indexmap::IndexSet;
use pgvet_syntax::ast::{
    AlterDefaultPrivileges, CreateRole, FutureObjects, Grant, GrantRole, LockMode, Name, ObjectKind, ObjectName,
};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxBuildHasher;
use smol_str::SmolStr;

/// Maximum number of privileges that one statement may change: a short list of roles for a short list of objects names
/// very many.
const MAX_PRIVILEGES: usize = 100_000;

impl Executor<'_> {
    /// Privileges on a relation lock it since 18.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/aclchk.c`, `objectNamesToOids`.
    pub(super) fn grant(&mut self, grant: &Grant) -> Run {
        let noted = self.effects.changes.len();
        self.change_privileges(grant, None);
        if grant.all_in_schema {
            grant.objects.iter().try_for_each(|schema| self.check_schema(&schema.name))?;
        }
        if grant.kind == ObjectKind::Schema {
            grant.objects.iter().try_for_each(|schema| self.check_schema(&schema.name))?;
        }
        self.grant_on_named(grant);
        if matches!(grant.kind, ObjectKind::Type | ObjectKind::Domain) {
            let types: Vec<Oid> = grant.objects.iter().filter_map(|name| self.named_type(name)).collect();
            self.note_privileges_on(noted, &types);
            return grant.objects.iter().try_for_each(|name| match self.named_type(name) {
                None if builtin::type_by_name(&name.name.text).is_none() => self.missing_type(name),
                _ => Ok(()),
            });
        }
        let Some(kind) = PrivilegeKind::of(grant.kind) else { return Ok(()) };
        let objects = if grant.all_in_schema {
            self.all_in_schemas(kind, &grant.objects)
        } else if kind == PrivilegeKind::Function {
            grant.routines.iter().try_for_each(|signature| self.check_routine(signature, grant.kind))?;
            grant.routines.iter().filter_map(|signature| self.function_with(signature)).collect()
        } else {
            self.granted_relations(grant)?
        };
        self.note_privileges_on(noted, &objects);
        let Some(changed) = self.each_privilege(&kind.named(&grant.privileges), grant, objects.len()) else {
            return Ok(());
        };
        let names_functions = kind == PrivilegeKind::Function && !grant.all_in_schema;
        for object in objects {
            if grant.grant {
                self.catalog.grant(object, &changed);
                if names_functions {
                    self.catalog.note_granted_by_name(object, &grant.grantees);
                }
            } else if !grant.grant_option {
                self.catalog.revoke(object, &changed);
            }
        }
        Ok(())
    }

    /// GRANT and REVOKE on schemas, types, languages and databases.
    fn grant_on_named(&mut self, grant: &Grant) {
        let Some(kind) = NamedKind::of(grant.kind) else { return };
        let Some(changed) = self.each_privilege(&kind.named(&grant.privileges), grant, grant.objects.len()) else {
            return;
        };
        for name in &grant.objects {
            let schema = match kind {
                NamedKind::Type => self.named_type(name).and_then(|oid| self.catalog.get_type(oid)),
                _ => None,
            };
            let schema = schema.map(|definition| definition.schema.clone());
            let object = NamedObject { kind, schema, name: name.name.text.clone() };
            let since_15 = !object.is_schema_public() || self.target.at_least(15);
            if grant.grant {
                self.catalog.grant_on_named(&object, &changed, since_15);
            } else if !grant.grant_option {
                self.catalog.revoke_on_named(&object, &changed, since_15);
            }
        }
    }

    pub(super) fn grant_role(&mut self, grant: &GrantRole) {
        if grant.roles.len().saturating_mul(grant.members.len()) > MAX_PRIVILEGES {
            return self.give_up_privileges(TextRange::default());
        }
        for (role, member) in grant.roles.iter().flat_map(|role| grant.members.iter().map(move |member| (role, member)))
        {
            if !grant.grant {
                if !grant.option_only || grant.inherit.is_some() {
                    self.catalog.remove_member(role, member);
                }
            } else if grant.inherit.unwrap_or_else(|| self.catalog.inherits(member)) {
                self.catalog.add_member(role, member);
            }
        }
    }

    pub(super) fn create_role(&mut self, create: &CreateRole) {
        if !create.inherit {
            self.catalog.set_without_inheritance(&create.name);
        }
        for role in create.member_of.iter().filter(|_| create.inherit) {
            self.catalog.add_member(role, &create.name);
        }
        for member in &create.members {
            if self.catalog.inherits(member) {
                self.catalog.add_member(&create.name, member);
            }
        }
    }

    /// The named privileges of each grantee, each once; `None` if the statement changes too many of them, on all of its
    /// objects or schemas together.
    fn each_privilege(&mut self, named: &NamedPrivileges, grant: &Grant, objects: usize) -> Option<Vec<Privilege>> {
        let grantees: IndexSet<&SmolStr, FxBuildHasher> = grant.grantees.iter().collect();
        if named.len().saturating_mul(grantees.len()).saturating_mul(objects) > MAX_PRIVILEGES {
            self.give_up_privileges(grant.keyword);
            return None;
        }
        let of_grantee = |grantee: &SmolStr| {
            let grantee = grantee.clone();
            named.iter().cloned().map(move |(privilege, column)| Privilege {
                grantee: grantee.clone(),
                privilege,
                column,
            })
        };
        Some(grantees.into_iter().flat_map(of_grantee).collect())
    }

    fn give_up_privileges(&mut self, range: TextRange) {
        self.skip_code(UnknownReason::Limit(Limit::Privileges(MAX_PRIVILEGES)), range, true);
    }

    fn change_privileges(&mut self, grant: &Grant, future: Option<FutureObjects>) {
        let action = if grant.grant { ChangeAction::Grant } else { ChangeAction::Revoke };
        let object = ChangedObject::Privileges { grant: grant.clone(), future, on: Vec::new() };
        self.change_object(object, action, grant.keyword);
    }

    /// Adds the objects to a change of privileges that was noted.
    fn note_privileges_on(&mut self, change: usize, objects: &[Oid]) {
        let object = self.effects.changes.get_mut(change).map(|change| &mut change.object);
        if let Some(ChangedObject::Privileges { on, .. }) = object {
            on.extend_from_slice(objects);
        }
    }

    fn granted_relations(&mut self, grant: &Grant) -> Run<Vec<Oid>> {
        let path = self.session.settings.search_path();
        let mut found = Vec::new();
        for name in &grant.objects {
            match self.find(name) {
                Some(oid) => {
                    let relation = self.catalog.relation(oid);
                    if relation.kind.is_index() {
                        return fail("42809", format!("\"{}\" is an index", relation.name), name.range());
                    }
                    check_granted_columns(relation, grant, name.range())?;
                    if self.target.at_least(18) {
                        self.lock(oid, LockMode::AccessShare, LockCause::Target, name.range());
                    }
                    found.push(oid);
                }
                None if (self.knows_all_of(name.schema_name()) || self.catalog.is_gone(name, &path))
                    && !self.is_system_relation(name) =>
                {
                    self.check_schema_of(name)?;
                    return fail("42P01", format!("relation \"{name}\" does not exist"), name.range());
                }
                None => {}
            }
        }
        Ok(found)
    }

    fn all_in_schemas(&self, kind: PrivilegeKind, schemas: &[ObjectName]) -> Vec<Oid> {
        let named = |schema: &SmolStr| schemas.iter().any(|name| name.name.text == *schema);
        if kind == PrivilegeKind::Function {
            let functions = self.catalog.functions().filter(|function| named(&function.schema));
            return functions.map(|function| function.oid).collect();
        }
        let is_sequence = |relation: RelationKind| relation == RelationKind::Sequence;
        let relations = self.catalog.relations_where(|relation| {
            let fits = is_sequence(relation.kind) == (kind == PrivilegeKind::Sequence);
            fits && !relation.kind.is_index() && named(&relation.schema)
        });
        relations.into_iter().map(|relation| relation.oid).collect()
    }

    /// Source: PostgreSQL 18, `src/backend/catalog/aclchk.c`, `ExecAlterDefaultPrivilegesStmt`.
    pub(super) fn alter_default_privileges(&mut self, alter: &AlterDefaultPrivileges) -> Run {
        let AlterDefaultPrivileges { future, grant } = alter;
        self.change_privileges(grant, Some(future.clone()));
        for schema in &future.schemas {
            self.check_schema(&Name::new(schema.clone(), self.place.range))?;
        }
        let Some(kind) = PrivilegeKind::of(grant.kind) else { return Ok(()) };
        if grant.grant_option && !grant.grant {
            return Ok(());
        }
        let schemas: Vec<Option<SmolStr>> =
            if future.schemas.is_empty() { vec![None] } else { future.schemas.iter().cloned().map(Some).collect() };
        let Some(changed) = self.each_privilege(&kind.named(&grant.privileges), grant, schemas.len()) else {
            return Ok(());
        };
        for given in changed {
            for schema in &schemas {
                let default = DefaultPrivilege { kind, schema: schema.clone(), given: given.clone() };
                self.catalog.set_default_privilege(default, grant.grant);
            }
        }
        Ok(())
    }

    /// Gives a new relation what the defaults of its schema say.
    pub(crate) fn grant_default_privileges(&mut self, oid: Oid) {
        if !self.catalog.has_default_privileges() {
            return;
        }
        let relation = self.catalog.relation(oid);
        let kind = match relation.kind {
            RelationKind::Sequence => PrivilegeKind::Sequence,
            kind if kind.is_index() => return,
            _ => PrivilegeKind::Table,
        };
        let schema = relation.schema.clone();
        self.catalog.grant_defaults(oid, kind, &schema);
    }
}

fn check_granted_columns(relation: &Relation, grant: &Grant, range: TextRange) -> Run {
    let has = |name: &SmolStr| match relation.kind {
        RelationKind::Sequence => sequence_columns().iter().any(|(column, _)| column == name),
        _ => relation.column(name).is_some(),
    };
    let mut columns = grant.privileges.iter().flat_map(|privilege| &privilege.columns);
    let missing = columns.find(|name| !has(name) && !is_system_column(name));
    match missing.filter(|_| relation.known) {
        Some(name) => {
            let reason = format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
            fail("42703", reason, range)
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{effects_on, locks_of};
    use crate::catalog::{Catalog, NamedKind, NamedObject, Privilege, PrivilegeKind};
    use crate::routine::Trial;
    use crate::version::PgVersion;
    use pgvet_syntax::ast::from_pg::parse_sql;

    #[test]
    fn privileges_lock_since_18() {
        let locks = |major| locks_of(&effects_on(major, "CREATE TABLE t(a int)", "GRANT SELECT ON t TO public"));
        assert!(locks(17).is_empty());
        assert_eq!(locks(18), ["t AccessShare"]);
    }

    fn catalog_after(sql: &str) -> Catalog {
        let mut trial = Trial::new(&Catalog::new(), &vec!["public".into()].into(), PgVersion(17));
        for statement in parse_sql(sql).unwrap() {
            trial.run(&statement);
        }
        trial.catalog().clone()
    }

    fn privileges(sql: &str) -> Vec<String> {
        let catalog = catalog_after(sql);
        let table = catalog.relation_named("public", "t").unwrap();
        let shown = |given: &std::sync::Arc<crate::catalog::Privilege>| {
            let column = given.column.iter().map(|column| format!(" ({column})"));
            column.fold(format!("{} {}", given.grantee, given.privilege), |shown, column| shown + &column)
        };
        catalog.privileges(table).map(shown).collect()
    }

    #[test]
    fn columns_have_privileges_of_their_own() {
        let table = "CREATE TABLE t(a int, b int);";
        let granted = format!("{table} GRANT SELECT (a, b), UPDATE (a) ON t TO app;");
        assert_eq!(privileges(&granted), ["app select (a)", "app select (b)", "app update (a)"]);
        assert_eq!(privileges(&format!("{granted} REVOKE SELECT (b) ON t FROM app;")).len(), 2);
        assert_eq!(privileges(&format!("{granted} REVOKE SELECT ON t FROM app;")), ["app update (a)"]);
        assert_eq!(privileges(&format!("{granted} ALTER TABLE t DROP a;")), ["app select (b)"]);
        let renamed = format!("{granted} ALTER TABLE t RENAME a TO c; ALTER TABLE t DROP b;");
        assert_eq!(privileges(&renamed), ["app select (c)", "app update (c)"]);
        let whole = format!("{table} GRANT SELECT ON t TO app; REVOKE SELECT (a) ON t FROM app;");
        assert_eq!(privileges(&whole), ["app select"]);
        assert_eq!(privileges(&format!("{table} GRANT ALL (a) ON t TO app;")).len(), 4);
    }

    #[test]
    fn a_column_that_a_table_does_not_have_is_refused() {
        let refused = |grant| effects_on(17, "CREATE TABLE t(a int)", grant).fails.map(|failure| failure.sqlstate);
        assert_eq!(refused("GRANT SELECT (b) ON t TO public"), Some("42703"));
        assert_eq!(refused("GRANT SELECT (a, ctid) ON t TO public"), None);
    }

    #[test]
    fn revoke_takes_what_grant_gave() {
        let history = "CREATE TABLE t(a int); GRANT SELECT, INSERT ON t TO app, public; REVOKE ALL ON t FROM public;";
        assert_eq!(privileges(history), ["app select", "app insert"]);
        let option = "CREATE TABLE t(a int); GRANT SELECT ON t TO app; REVOKE GRANT OPTION FOR SELECT ON t FROM app;";
        assert_eq!(privileges(option), ["app select"]);
        let schema = "CREATE TABLE t(a int); GRANT SELECT ON ALL TABLES IN SCHEMA public TO app;";
        assert_eq!(privileges(schema), ["app select"]);
    }

    #[test]
    fn new_tables_have_the_default_privileges() {
        let defaults = "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO anon;";
        assert_eq!(privileges(&format!("{defaults} CREATE TABLE t(a int);")), ["anon select"]);
        assert!(privileges(&format!("CREATE TABLE t(a int); {defaults}")).is_empty());
        let revoked = "ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE SELECT ON TABLES FROM anon;";
        assert!(privileges(&format!("{defaults} {revoked} CREATE TABLE t(a int);")).is_empty());
    }

    #[test]
    fn privileges_are_counted_before_they_are_multiplied() {
        let names = |name: &str, count: usize| (0..count).map(|at| format!("{name}{at}")).collect::<Vec<_>>().join(",");
        let unknown = |sql: &str| effects_on(18, "CREATE TABLE t(a int); CREATE TABLE u(a int)", sql).unknown.len();
        let again = "SELECT,".repeat(30_000);
        assert_eq!(unknown(&format!("GRANT {again}UPDATE ON t TO {}", names("r", 3_000))), 0);
        assert_eq!(unknown(&format!("GRANT {again}UPDATE ON t, u TO {}", names("r", 30_000))), 1);
        let schemas = vec!["public"; 400].join(",");
        assert_eq!(unknown(&format!("GRANT USAGE ON SCHEMA {schemas} TO {}", names("r", 400))), 1);
        assert_eq!(unknown(&format!("GRANT {} TO {}", names("r", 400), names("m", 400))), 1);
        assert_eq!(privileges("CREATE TABLE t(a int); GRANT SELECT, SELECT ON t TO app, app;"), ["app select"]);
    }

    fn reaches(sql: &str, role: &str) -> [bool; 3] {
        let catalog = catalog_after(sql);
        let wanted = |privilege: &str| Privilege { grantee: role.into(), privilege: privilege.into(), column: None };
        let table = catalog.relation_named("public", "t").unwrap();
        let function = catalog.functions().next().unwrap().oid;
        let schema = NamedObject { kind: NamedKind::Schema, schema: None, name: "public".into() };
        [
            catalog.has_privilege(PrivilegeKind::Table, table, &wanted("select")),
            catalog.has_privilege(PrivilegeKind::Function, function, &wanted("execute")),
            catalog.has_privilege_on_named(&schema, &wanted("usage"), true),
        ]
    }

    const OBJECTS: &str = "CREATE TABLE t(a int); CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';";

    #[test]
    fn public_has_some_privileges_by_default() {
        assert_eq!(reaches(OBJECTS, "app"), [false, true, true]);
        let closed = "REVOKE ALL ON FUNCTION f() FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC;";
        assert_eq!(reaches(&format!("{OBJECTS} {closed}"), "app"), [false, false, false]);
        let open = "GRANT SELECT ON t TO PUBLIC; GRANT EXECUTE ON FUNCTION f() TO PUBLIC;";
        assert_eq!(reaches(&format!("{OBJECTS} {closed} {open}"), "app"), [true, true, false]);
        let defaults = "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;";
        assert_eq!(reaches(&format!("{defaults} {OBJECTS}"), "app"), [false, false, true]);
        let recreated = "DROP SCHEMA public CASCADE; CREATE SCHEMA public;";
        assert_eq!(reaches(&format!("{recreated} {OBJECTS}"), "app"), [false, true, false]);
    }

    #[test]
    fn members_have_the_privileges_of_their_roles() {
        let granted = format!("{OBJECTS} GRANT SELECT ON t TO readers;");
        let select = |sql: &str| reaches(&format!("{granted} {sql}"), "app")[0];
        assert!(!select(""));
        assert!(select("GRANT readers TO app;"));
        assert!(select("GRANT readers TO staff; CREATE ROLE app IN ROLE staff;"));
        assert!(select("CREATE ROLE staff IN ROLE readers USER app;"));
        assert!(!select("GRANT readers TO app; REVOKE readers FROM app;"));
        assert!(select("GRANT readers TO app; REVOKE ADMIN OPTION FOR readers FROM app;"));
        assert!(!select("CREATE ROLE app NOINHERIT; GRANT readers TO app;"));
        assert!(!select("GRANT readers TO app WITH INHERIT FALSE;"));
    }
}
