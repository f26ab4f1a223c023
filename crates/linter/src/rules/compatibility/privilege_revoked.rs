//! Privileges that deployed code may use, and that REVOKE takes away.

use crate::confidence::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::lasting::Lasting;
use crate::rules::text::{enumerate, join};
use pgvet_model::catalog::{Catalog, Oid, Privilege, PrivilegeKind};
use pgvet_model::effect::{ChangeAction, ChangedObject};
use pgvet_syntax::ast::{Grant, ObjectKind, ObjectName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A privilege on an existing object is revoked, and the role does not have it again when the migration ends.
    ///
    /// ## Why it matters
    ///
    /// Deployed code that runs as this role, or as a member of it, fails with "permission denied" after the commit.
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
    /// first a release whose code does not use the privilege. A privilege that is granted again breaks nothing:
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
    /// The finding is only possible (`--confidence possible`) if no migration granted the privilege to the role, or if it
    /// is revoked from `PUBLIC`, because roles may have it by another `GRANT`.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports `REVOKE`.
    "privilege-revoked", Compatibility, Warning,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for run in Lasting::of(context.migration).statements.iter().flat_map(|statement| context.ran_by(statement)) {
        for change in &run.changes {
            let ChangedObject::Privileges { grant, later_in: None } = &change.object else { continue };
            if change.action == ChangeAction::Revoke && !grant.grant_option {
                revoked(context, reporter, grant, run.in_file(change.range));
            }
        }
    }
}

fn revoked(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>, grant: &Grant, range: TextRange) {
    let Some(kind) = kind(grant.kind) else { return };
    let objects = objects(context.before, kind, grant);
    let names: Vec<SmolStr> = kind.named(&grant.privileges).into_iter().map(|(name, _)| name).collect();
    for role in &grant.grantees {
        let is_meant = |privilege: &Privilege| privilege.grantee == *role && names.contains(&privilege.privilege);
        let mut known: Vec<&(Oid, SmolStr)> = Vec::new();
        let mut unknown: Vec<&(Oid, SmolStr)> = Vec::new();
        let mut lost: Vec<String> = Vec::new();
        for object in objects.iter().filter(|(oid, _)| is_there(context.after, kind, *oid)) {
            let after = context.after.privileges(object.0);
            let has = |privilege: &Privilege| after.iter().any(|left| left.covers(privilege));
            let granted: Vec<&Privilege> =
                context.before.privileges(object.0).iter().filter(|privilege| is_meant(privilege)).collect();
            let gone = granted.iter().filter(|privilege| !has(privilege));
            let gone: Vec<String> = gone.map(|privilege| privilege.privilege.to_uppercase()).collect();
            if !gone.is_empty() {
                known.push(object);
                lost.extend(gone);
            } else if granted.is_empty() && !after.iter().any(is_meant) {
                unknown.push(object);
            }
        }
        let is_default = role != "public" || kind == PrivilegeKind::Function;
        let is_known = !known.is_empty();
        if !is_known && (unknown.is_empty() || !is_default) {
            continue;
        }
        if !is_known {
            lost.extend(names.iter().map(|name| name.to_uppercase()));
        }
        lost.sort();
        lost.dedup();
        let revoked = if is_known { known } else { unknown };
        let (privileges, objects) = (join(&lost), enumerate(revoked.iter().map(|(_, name)| name.as_str())));
        let who = if role == "public" { "as any role".to_owned() } else { format!("as `{role}`") };
        let message = format!("deployed code that runs {who} fails where it needs {privileges} on {objects}");
        let mut finding = reporter.report(range, message);
        if !is_known || role == "public" {
            finding = finding.assuming(Assumption::UsesPrivilege { role: role.clone() });
        }
        finding.help("first release code that does not need the privilege, or that runs as another role").emit();
    }
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
