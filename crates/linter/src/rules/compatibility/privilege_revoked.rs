//! Privileges that deployed code may use, and that REVOKE takes away.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::deployment::lasting::Lasting;
use crate::rules::text::{enumerate, join};
use pgvet_model::catalog::{
    Catalog, Function, NamedKind, NamedObject, Oid, PUBLIC, Privilege, PrivilegeKind, Relation, RelationKind,
};
use pgvet_model::effect::{ChangeAction, ChangedObject};
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::{Grant, ObjectKind, ObjectName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

declare_rule! {
    /// A privilege on an existing object that the migration revokes and does not grant again.
    ///
    /// ## Why it matters
    ///
    /// After the commit, deployed code fails with "permission denied" if it runs as the role that loses the privilege,
    /// or as a member of that role.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// GRANT SELECT, INSERT ON orders TO app;
    /// -- migration:
    /// REVOKE INSERT ON orders FROM app;
    /// ```
    ///
    /// Use instead:
    ///
    /// First deploy code that does not need the privilege, and revoke it in the next release. Deployed code continues
    /// to work if the same transaction grants the privilege again:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// GRANT ALL ON orders TO app;
    /// -- migration:
    /// BEGIN;
    /// REVOKE ALL ON orders FROM app;
    /// GRANT ALL ON orders TO app;
    /// COMMIT;
    /// ```
    ///
    /// Before you revoke a privilege from `PUBLIC`, grant it to the roles that need it.
    ///
    /// ## When it is not reported
    ///
    /// - objects that the same migration created
    /// - a privilege that the role still has through `PUBLIC`, or as a member of another role. By default, `PUBLIC` has
    ///   `EXECUTE` on functions, `USAGE` on types, languages and the schema `public`, and `CONNECT` and `TEMPORARY` on
    ///   databases.
    /// - `REVOKE ... FROM PUBLIC`, unless PostgreSQL grants the privilege to `PUBLIC` by default or a migration has
    ///   granted it to `PUBLIC`
    ///
    /// ## Confidence
    ///
    /// The confidence is `likely`, except in the following cases. In these, the confidence is `possible`, and the
    /// finding is shown only with `--confidence possible`:
    ///
    /// - No migration granted the privilege to the role.
    /// - The privilege is revoked from `PUBLIC`: roles may still have it through another `GRANT`.
    /// - The object is neither a relation nor a function.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports `REVOKE`.
    "privilege-revoked", Compatibility, Warning,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let lasting = Lasting::of(context.migration).statements;
    for run in lasting.iter().flat_map(|statement| context.ran_by(statement)) {
        for change in &run.changes {
            let ChangedObject::Privileges { grant, future: None, .. } = &change.object else { continue };
            if change.action != ChangeAction::Revoke || grant.grant_option {
                continue;
            }
            for role in &grant.grantees {
                let lost = match (kind(grant.kind), NamedKind::of(grant.kind)) {
                    (Some(kind), _) => lost(context, kind, grant, role),
                    (None, Some(kind)) => lost_on_named(context, kind, grant, role),
                    (None, None) => lost_on_others(context, grant, role),
                };
                if let Some(mut lost) = lost {
                    report(reporter, run.in_file(change.range), (role, grant.kind), &mut lost);
                }
            }
        }
    }
}

/// What a role loses.
struct Lost {
    privileges: Vec<String>,
    objects: Vec<SmolStr>,
    /// Migrations granted it.
    is_known: bool,
}

impl Lost {
    /// Adds what is lost on one object, if that is anything.
    fn add<'a>(&mut self, object: &SmolStr, lost: impl Iterator<Item = &'a Privilege>) {
        let lost: Vec<String> = lost.map(|privilege| privilege.privilege.to_uppercase()).collect();
        if !lost.is_empty() {
            self.objects.push(object.clone());
            self.privileges.extend(lost);
        }
    }
}

fn report(reporter: &mut Reporter<'_>, range: TextRange, (role, kind): (&SmolStr, ObjectKind), lost: &mut Lost) {
    lost.privileges.sort();
    lost.privileges.dedup();
    let (privileges, objects) = (join(&lost.privileges), enumerate(lost.objects.iter().map(SmolStr::as_str)));
    let objects = match (noun(kind), lost.objects.len()) {
        (Some(noun), 1) => format!("{noun} {objects}"),
        (Some(noun), _) => format!("the {noun}s {objects}"),
        (None, _) => objects,
    };
    let needed = if lost.privileges.len() == 1 { "the privilege" } else { "one of these privileges" };
    let message = if role == PUBLIC {
        format!(
            "revoking {privileges} on {objects} from PUBLIC breaks deployed code that runs as a role which has \
             {needed} only through PUBLIC"
        )
    } else {
        format!(
            "revoking {privileges} on {objects} from `{role}` breaks deployed code that runs as `{role}` and needs \
             {needed}"
        )
    };
    let mut finding = reporter.report(range, message);
    if !lost.is_known || role == PUBLIC {
        finding = finding.assuming(Assumption::UsesPrivilege { role: role.clone() });
    }
    let (these, them) = if lost.privileges.len() == 1 { ("the privilege", "it") } else { ("these privileges", "them") };
    let help = if role == PUBLIC {
        format!("first grant {these} to the roles that need {them}")
    } else {
        format!("first deploy code that does not need {these}, or that runs as a role that has {them}")
    };
    finding.help(help).emit();
}

/// What a role loses on relations and functions.
fn lost(context: &MigrationContext<'_>, kind: PrivilegeKind, grant: &Grant, role: &SmolStr) -> Option<Lost> {
    let named = kind.named(&grant.privileges);
    let named: Vec<Privilege> = (named.into_iter())
        .map(|(privilege, _)| Privilege { grantee: role.clone(), privilege, column: None })
        .collect();
    let is_meant =
        |given: &Privilege| given.grantee == *role && named.iter().any(|other| other.privilege == given.privilege);
    let mut known = Lost { privileges: Vec::new(), objects: Vec::new(), is_known: true };
    let mut others = Lost { privileges: Vec::new(), objects: Vec::new(), is_known: false };
    for (oid, name) in objects(context.before, kind, grant) {
        if !is_there(context.after, kind, oid) {
            continue;
        }
        let stays = |privilege: &Privilege| context.after.has_privilege(kind, oid, privilege);
        let mut granted = context.before.privileges(oid).filter(|privilege| is_meant(privilege)).peekable();
        if granted.peek().is_some() {
            known.add(&name, granted.map(|privilege| &**privilege).filter(|privilege| !stays(privilege)));
        } else if !context.after.privileges(oid).any(|privilege| is_meant(privilege)) {
            let had = |privilege: &Privilege| role != PUBLIC || context.before.has_privilege(kind, oid, privilege);
            others.add(&name, named.iter().filter(|privilege| had(privilege) && !stays(privilege)));
        }
    }
    if !known.objects.is_empty() {
        return Some(known);
    }
    // PUBLIC has EXECUTE on functions by default, and nothing on relations.
    if (role == PUBLIC) == (kind == PrivilegeKind::Function) {
        for name in unseen(context, kind, grant) {
            others.add(&name, named.iter());
        }
    }
    (!others.objects.is_empty()).then_some(others)
}

/// Objects of a REVOKE that no migration shows.
fn unseen(context: &MigrationContext<'_>, kind: PrivilegeKind, grant: &Grant) -> Vec<SmolStr> {
    if grant.all_in_schema {
        return Vec::new();
    }
    let has = |catalog: &Catalog, name: &str| match kind {
        PrivilegeKind::Function => catalog.functions_with_name(name).next().is_some(),
        _ => catalog.relations_with_name(name).next().is_some(),
    };
    let written: Vec<&SmolStr> = match kind {
        PrivilegeKind::Function => grant.routines.iter().map(|signature| &signature.name.name.text).collect(),
        _ => grant.objects.iter().map(|object| &object.name.text).collect(),
    };
    let unseen = written.into_iter().filter(|name| !has(context.before, name) && !has(context.after, name));
    unseen.cloned().collect()
}

/// What a role loses on schemas, types, languages and databases.
fn lost_on_named(context: &MigrationContext<'_>, kind: NamedKind, grant: &Grant, role: &SmolStr) -> Option<Lost> {
    // PUBLIC lost CREATE on the schema `public` with PostgreSQL 15: one configured version without it is enough for a
    // role to lose the privilege, and one with it for PUBLIC.
    let versions = context.settings.versions;
    let since_15 = if role == PUBLIC { versions.from } else { versions.to } >= PgVersion(15);
    let is_new =
        |name: &str| kind == NamedKind::Schema && context.after.has_schema(name) && !context.before.has_schema(name);
    let wanted: Vec<Privilege> = (kind.named(&grant.privileges).into_iter())
        .map(|(privilege, column)| Privilege { grantee: role.clone(), privilege, column })
        .collect();
    let mut lost = Lost { privileges: Vec::new(), objects: Vec::new(), is_known: false };
    for written in &grant.objects {
        let name = &written.name.text;
        if is_new(name) || is_granted_again(context, grant, role, name) {
            continue;
        }
        let object = NamedObject { kind, schema: schema_of(context, kind, written), name: name.clone() };
        let has =
            |catalog: &Catalog, privilege: &Privilege| catalog.has_privilege_on_named(&object, privilege, since_15);
        let had = |privilege: &Privilege| role != PUBLIC || has(context.before, privilege);
        lost.add(name, wanted.iter().filter(|privilege| had(privilege) && !has(context.after, privilege)));
    }
    (!lost.objects.is_empty()).then_some(lost)
}

/// The schema of a type that the migrations show.
fn schema_of(context: &MigrationContext<'_>, kind: NamedKind, written: &ObjectName) -> Option<SmolStr> {
    if kind != NamedKind::Type {
        return None;
    }
    let path = context.session.settings.search_path();
    let named = |schema: &str| context.before.type_named(schema, &written.name.text);
    let oid = match &written.schema {
        Some(schema) => named(&schema.text),
        None => path.iter().find_map(|schema| named(schema)),
    };
    oid.and_then(|oid| context.before.get_type(oid)).map(|definition| definition.schema.clone())
}

/// What a role loses on foreign servers, tablespaces and others, whose privileges the catalog does not know.
fn lost_on_others(context: &MigrationContext<'_>, grant: &Grant, role: &SmolStr) -> Option<Lost> {
    let written = grant.objects.iter().map(|object| &object.name.text);
    let objects: Vec<SmolStr> = written.filter(|name| !is_granted_again(context, grant, role, name)).cloned().collect();
    let named = grant.privileges.iter().filter_map(|privilege| privilege.name.as_ref());
    let mut privileges: Vec<String> = named.map(|name| name.to_uppercase()).collect();
    if privileges.is_empty() {
        privileges.push("a privilege".to_owned());
    }
    (!objects.is_empty()).then_some(Lost { privileges, objects, is_known: false })
}

/// Whether the migration grants the role some privilege on an object of a REVOKE.
fn is_granted_again(context: &MigrationContext<'_>, grant: &Grant, role: &SmolStr, name: &SmolStr) -> bool {
    context.ran.iter().flat_map(|run| &run.changes).any(|change| match &change.object {
        ChangedObject::Privileges { grant: other, future: None, .. } => {
            change.action == ChangeAction::Grant
                && other.kind == grant.kind
                && other.grantees.contains(role)
                && other.objects.iter().any(|object| object.name.text == *name)
        }
        _ => false,
    })
}

/// Returns the word for an object that is not a table.
fn noun(kind: ObjectKind) -> Option<&'static str> {
    Some(match kind {
        ObjectKind::Sequence => "sequence",
        ObjectKind::Function => "function",
        ObjectKind::Procedure => "procedure",
        ObjectKind::Routine => "routine",
        ObjectKind::Schema => "schema",
        ObjectKind::Type => "type",
        ObjectKind::Domain => "domain",
        ObjectKind::Language => "language",
        ObjectKind::Database => "database",
        _ => return None,
    })
}

fn kind(kind: ObjectKind) -> Option<PrivilegeKind> {
    Some(match kind {
        ObjectKind::Table | ObjectKind::View => PrivilegeKind::Table,
        ObjectKind::Sequence => PrivilegeKind::Sequence,
        ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine => PrivilegeKind::Function,
        _ => return None,
    })
}

fn is_there(catalog: &Catalog, kind: PrivilegeKind, oid: Oid) -> bool {
    if kind == PrivilegeKind::Function {
        catalog.get_function(oid).is_some()
    } else {
        catalog.get_relation(oid).is_some()
    }
}

/// The objects of a REVOKE that the migration did not create, with their names, in the order of their creation.
fn objects(before: &Catalog, kind: PrivilegeKind, grant: &Grant) -> Vec<(Oid, SmolStr)> {
    let fits = |relation: &Relation| {
        let is_sequence = relation.kind == RelationKind::Sequence;
        is_sequence == (kind == PrivilegeKind::Sequence) && !relation.kind.is_index()
    };
    let of_function = |function: &Arc<Function>| (function.oid, function.name.clone());
    let of_relation = |relation: &Arc<Relation>| (relation.oid, relation.name.clone());
    let in_schemas = |schema: &str| grant.objects.iter().any(|written| written.name.text == schema);
    let is_function = kind == PrivilegeKind::Function;
    let mut found: Vec<(Oid, SmolStr)> = match (grant.all_in_schema, is_function) {
        (true, true) => before.functions().filter(|one| in_schemas(&one.schema)).map(of_function).collect(),
        (true, false) => {
            let relations = before.relations().filter(|relation| in_schemas(&relation.schema) && fits(relation));
            relations.map(of_relation).collect()
        }
        (false, true) => {
            let named = grant.routines.iter().flat_map(|signature| {
                let functions = before.functions_with_name(&signature.name.name.text);
                functions.filter(|function| is_in_schema(&signature.name, &function.schema))
            });
            named.map(of_function).collect()
        }
        (false, false) => {
            let named = grant.objects.iter().flat_map(|written| {
                let relations = before.relations_with_name(&written.name.text);
                relations.filter(|relation| is_in_schema(written, &relation.schema) && fits(relation))
            });
            named.map(of_relation).collect()
        }
    };
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether the name may mean an object of that name in this schema.
fn is_in_schema(written: &ObjectName, schema: &str) -> bool {
    written.schema.as_ref().is_none_or(|written| written.text == schema)
}
