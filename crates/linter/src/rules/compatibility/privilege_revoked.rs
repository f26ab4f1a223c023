//! Privileges that deployed code may use, and that REVOKE takes away.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::deployment::lasting::Lasting;
use crate::rules::text::{enumerate, join};
use pgvet_model::catalog::{Catalog, Oid, Privilege, PrivilegeKind};
use pgvet_model::effect::{ChangeAction, ChangedObject};
use pgvet_syntax::ast::{Grant, ObjectKind, ObjectName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A privilege on an existing object that the migration revokes and does not grant again.
    ///
    /// ## Why it matters
    ///
    /// Deployed code that runs as the role that loses the privilege, or as a member of that role, fails with
    /// "permission denied" after the commit.
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
    /// ## When it is not reported
    ///
    /// - objects that the same migration created
    /// - `REVOKE ... FROM PUBLIC` of a privilege that PostgreSQL does not grant by default and no migration granted
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`:
    ///
    /// - if no migration granted the privilege to the role
    /// - if the privilege is revoked from `PUBLIC`, because roles may have it by another `GRANT`
    /// - for objects other than relations and functions
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
            let ChangedObject::Privileges { grant, later_in: None } = &change.object else { continue };
            if change.action != ChangeAction::Revoke || grant.grant_option {
                continue;
            }
            for role in &grant.grantees {
                let lost = match kind(grant.kind) {
                    Some(kind) => lost(context, kind, grant, role),
                    None => lost_of_other_kind(context, grant, role),
                };
                if let Some(lost) = lost {
                    report(reporter, run.in_file(change.range), (role, grant.kind), &lost);
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

fn report(reporter: &mut Reporter<'_>, range: TextRange, (role, kind): (&SmolStr, ObjectKind), lost: &Lost) {
    let (privileges, objects) = (join(&lost.privileges), enumerate(lost.objects.iter().map(SmolStr::as_str)));
    let objects = match (noun(kind), lost.objects.len()) {
        (Some(noun), 1) => format!("{noun} {objects}"),
        (Some(noun), _) => format!("the {noun}s {objects}"),
        (None, _) => objects,
    };
    let needed = if lost.privileges.len() == 1 { "the privilege" } else { "one of these privileges" };
    let message = if role == "public" {
        format!(
            "revoking {privileges} on {objects} from PUBLIC breaks deployed code that needs {needed} and runs as a \
             role that was not granted it directly"
        )
    } else {
        format!(
            "revoking {privileges} on {objects} from `{role}` breaks deployed code that runs as `{role}` and needs \
             {needed}"
        )
    };
    let mut finding = reporter.report(range, message);
    if !lost.is_known || role == "public" {
        finding = finding.assuming(Assumption::UsesPrivilege { role: role.clone() });
    }
    finding.help("first deploy code that does not need the privilege, or that runs as another role").emit();
}

/// What a role loses on relations and functions, whose privileges the catalog knows.
fn lost(context: &MigrationContext<'_>, kind: PrivilegeKind, grant: &Grant, role: &SmolStr) -> Option<Lost> {
    let names: Vec<SmolStr> = kind.named(&grant.privileges).into_iter().map(|(name, _)| name).collect();
    let is_meant = |privilege: &Privilege| privilege.grantee == *role && names.contains(&privilege.privilege);
    let mut known = Lost { privileges: Vec::new(), objects: Vec::new(), is_known: true };
    let mut others: Vec<SmolStr> = unseen(context, kind, grant);
    for (oid, name) in objects(context.before, kind, grant) {
        if !is_there(context.after, kind, oid) {
            continue;
        }
        let after = context.after.privileges(oid);
        let has = |privilege: &Privilege| after.clone().any(|left| left.covers(privilege));
        let mut granted = context.before.privileges(oid).filter(|privilege| is_meant(privilege)).peekable();
        if granted.peek().is_none() && !after.clone().any(|privilege| is_meant(privilege)) {
            others.push(name);
            continue;
        }
        let gone: Vec<String> =
            (granted.filter(|privilege| !has(privilege))).map(|privilege| privilege.privilege.to_uppercase()).collect();
        if !gone.is_empty() {
            known.objects.push(name);
            known.privileges.extend(gone);
        }
    }
    known.privileges.sort();
    known.privileges.dedup();
    if !known.objects.is_empty() {
        return Some(known);
    }
    let by_default = role != "public" || kind == PrivilegeKind::Function;
    let privileges = names.iter().map(|name| name.to_uppercase()).collect();
    (by_default && !others.is_empty()).then_some(Lost { privileges, objects: others, is_known: false })
}

/// Objects of a REVOKE that no migration shows.
fn unseen(context: &MigrationContext<'_>, kind: PrivilegeKind, grant: &Grant) -> Vec<SmolStr> {
    if grant.all_in_schema {
        return Vec::new();
    }
    let has = |catalog: &Catalog, name: &str| match kind {
        PrivilegeKind::Function => catalog.functions().any(|function| function.name == name),
        _ => !catalog.relations_where(|relation| relation.name == name).is_empty(),
    };
    let written: Vec<&SmolStr> = match kind {
        PrivilegeKind::Function => grant.routines.iter().map(|signature| &signature.name.name.text).collect(),
        _ => grant.objects.iter().map(|object| &object.name.text).collect(),
    };
    let unseen = written.into_iter().filter(|name| !has(context.before, name) && !has(context.after, name));
    unseen.cloned().collect()
}

/// What a role loses on schemas, databases, types and others, whose privileges the catalog does not know.
fn lost_of_other_kind(context: &MigrationContext<'_>, grant: &Grant, role: &SmolStr) -> Option<Lost> {
    let is_new = |name: &str| {
        grant.kind == ObjectKind::Schema && context.after.has_schema(name) && !context.before.has_schema(name)
    };
    let is_granted = |name: &SmolStr| {
        context.ran.iter().flat_map(|run| &run.changes).any(|change| match &change.object {
            ChangedObject::Privileges { grant: other, later_in: None } => {
                change.action == ChangeAction::Grant
                    && other.kind == grant.kind
                    && other.grantees.contains(role)
                    && other.objects.iter().any(|object| object.name.text == *name)
            }
            _ => false,
        })
    };
    let written = grant.objects.iter().map(|object| &object.name.text);
    let objects: Vec<SmolStr> = written.filter(|name| !is_new(name) && !is_granted(name)).cloned().collect();
    let named = grant.privileges.iter().filter_map(|privilege| privilege.name.as_ref());
    let mut privileges: Vec<String> = named.map(|name| name.to_uppercase()).collect();
    if privileges.is_empty() {
        privileges.push("a privilege".to_owned());
    }
    (!objects.is_empty()).then_some(Lost { privileges, objects, is_known: false })
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

/// The objects of a REVOKE that the migration did not create, with their names.
fn objects(before: &Catalog, kind: PrivilegeKind, grant: &Grant) -> Vec<(Oid, SmolStr)> {
    let names = |schema: &str, name: &str| {
        let is_meant = |written: &ObjectName| {
            if grant.all_in_schema {
                return written.name.text == schema;
            }
            written.name.text == name && written.schema.as_ref().is_none_or(|written| written.text == schema)
        };
        match kind {
            PrivilegeKind::Function if !grant.all_in_schema => {
                grant.routines.iter().any(|signature| is_meant(&signature.name))
            }
            _ => grant.objects.iter().any(is_meant),
        }
    };
    if kind == PrivilegeKind::Function {
        let functions = before.functions().filter(|function| names(&function.schema, &function.name));
        return functions.map(|function| (function.oid, function.name.clone())).collect();
    }
    let relations = before.relations_where(|relation| {
        let is_sequence = relation.kind == pgvet_model::catalog::RelationKind::Sequence;
        is_sequence == (kind == PrivilegeKind::Sequence)
            && !relation.kind.is_index()
            && names(&relation.schema, &relation.name)
    });
    relations.into_iter().map(|relation| (relation.oid, relation.name.clone())).collect()
}
