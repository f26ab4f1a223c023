//! Privileges that GRANT gave on relations and functions, those that later objects will have, and row-level security.

use super::{Catalog, Function, Oid, Relation};
use crate::builtin::oid;
use indexmap::IndexSet;
use pgvet_syntax::ast::{NamedPrivilege, ObjectKind};
use rustc_hash::{FxBuildHasher, FxHashSet};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// Privileges, each with the column that it is for.
pub type NamedPrivileges = IndexSet<(SmolStr, Option<SmolStr>), FxBuildHasher>;

/// The kinds of object that have privileges of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PrivilegeKind {
    Table,
    Sequence,
    Function,
}

impl PrivilegeKind {
    /// Returns the kind of the objects that GRANT or REVOKE names, if it is one of these.
    pub fn of(kind: ObjectKind) -> Option<Self> {
        Some(match kind {
            ObjectKind::Table | ObjectKind::View => Self::Table,
            ObjectKind::Sequence => Self::Sequence,
            ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine => Self::Function,
            _ => return None,
        })
    }

    /// The privileges that ALL means.
    ///
    /// Source: PostgreSQL 18, `src/include/utils/acl.h`, `ACL_ALL_RIGHTS_RELATION` and the macros beside it, without
    /// MAINTAIN.
    fn all(self) -> &'static [&'static str] {
        match self {
            Self::Table => &["select", "insert", "update", "delete", "truncate", "references", "trigger"],
            Self::Sequence => &["usage", "select", "update"],
            Self::Function => &["execute"],
        }
    }

    /// The privileges that a statement names, each once, with the column that each is for, ALL taken apart.
    pub fn named(self, privileges: &[NamedPrivilege]) -> NamedPrivileges {
        let whole = |name: &&'static str| (SmolStr::new_static(name), None);
        if privileges.is_empty() {
            return self.all().iter().map(whole).collect();
        }
        let mut named = IndexSet::default();
        for privilege in privileges {
            let names = match &privilege.name {
                Some(name) => vec![name.to_ascii_lowercase().into()],
                None => ALL_OF_COLUMN.iter().map(|name| SmolStr::new_static(name)).collect(),
            };
            for name in names {
                if privilege.columns.is_empty() {
                    named.insert((name, None));
                } else {
                    named.extend(privilege.columns.iter().map(|column| (name.clone(), Some(column.clone()))));
                }
            }
        }
        named
    }
}

/// Source: PostgreSQL 18, `src/include/utils/acl.h`, `ACL_ALL_RIGHTS_COLUMN`.
const ALL_OF_COLUMN: [&str; 4] = ["select", "insert", "update", "references"];

/// The name under which PUBLIC is a grantee.
pub const PUBLIC: &str = "public";

/// A privilege of a role on one object; `public` stands for PUBLIC.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Privilege {
    pub grantee: SmolStr,
    pub privilege: SmolStr,
    /// `None`: on the whole object.
    pub column: Option<SmolStr>,
}

impl Privilege {
    /// Whether a role with this privilege has the other one, too. REVOKE on a table also revokes those of its columns.
    pub fn covers(&self, other: &Self) -> bool {
        let same = (&self.grantee, &self.privilege) == (&other.grantee, &other.privilege);
        same && (self.column.is_none() || self.column == other.column)
    }
}

/// A privilege that objects made from now on will have: a row's part of `pg_default_acl`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DefaultPrivilege {
    pub kind: PrivilegeKind,
    /// `None`: in every schema.
    pub schema: Option<SmolStr>,
    pub given: Privilege,
}

fn is_on(privilege: &Privilege, column: &str) -> bool {
    privilege.column.as_ref().is_some_and(|own| own == column)
}

impl Catalog {
    /// Privileges on a relation or function that GRANT, or default privileges, gave. The owner's own are not among
    /// them.
    pub fn privileges(&self, object: Oid) -> impl Iterator<Item = &Arc<Privilege>> + Clone {
        self.privileges.get(&object).into_iter().flatten()
    }

    pub fn grant(&mut self, object: Oid, given: &[Privilege]) {
        let known = self.privileges.entry(object).or_default();
        for privilege in given {
            if !known.contains(privilege) {
                known.push(privilege.clone());
            }
        }
    }

    /// Notes that a GRANT names a function.
    pub fn note_granted_by_name(&mut self, function: Oid, grantees: &[SmolStr]) {
        self.granted_by_name.extend(grantees.iter().map(|grantee| (function, grantee.clone())));
        let is_of_trigger = |one: &&Arc<Function>| matches!(one.returns.oid.0, oid::TRIGGER | oid::EVENT_TRIGGER);
        if let Some(schema) = self.get_function(function).filter(is_of_trigger).map(|one| one.schema.clone()) {
            self.granted_on_triggers.extend(grantees.iter().map(|grantee| (schema.clone(), grantee.clone())));
        }
    }

    /// Whether GRANT has given a role EXECUTE on this function in particular. Not if the role gets it on all functions:
    /// by default privileges, or because each is granted on its own, and so even functions of triggers, which nobody can
    /// call.
    pub fn is_execute_granted(&self, function: &Function, role: &SmolStr) -> bool {
        let is_default = |default: &Arc<DefaultPrivilege>| {
            default.kind == PrivilegeKind::Function
                && default.given.grantee == *role
                && default.schema.as_ref().is_none_or(|schema| *schema == function.schema)
        };
        self.granted_by_name.contains(&(function.oid, role.clone()))
            && !self.default_privileges.iter().any(is_default)
            && !self.granted_on_triggers.contains(&(function.schema.clone(), role.clone()))
    }

    pub fn revoke(&mut self, object: Oid, taken: &[Privilege]) {
        let key = |taken: &Privilege| (taken.grantee.clone(), taken.privilege.clone(), taken.column.clone());
        let keys: FxHashSet<_> = taken.iter().map(key).collect();
        self.forget_privileges(object, |privilege| {
            let (grantee, name, column) = key(privilege);
            keys.contains(&(grantee.clone(), name.clone(), None)) || keys.contains(&(grantee, name, column))
        });
        if self.functions.contains_key(&object) && taken.iter().any(|taken| taken.grantee == PUBLIC) {
            self.closed_functions.insert(object);
        }
    }

    /// Whether a role has a privilege on a relation or function: by itself, through PUBLIC, or as a member of a role.
    /// The owner's own privileges are not among them.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/adt/acl.c`, `acldefault` and `aclmask`.
    pub fn has_privilege(&self, kind: PrivilegeKind, object: Oid, wanted: &Privilege) -> bool {
        let by_default = kind == PrivilegeKind::Function && !self.closed_functions.contains(&object);
        by_default || self.reaches(&wanted.grantee, self.privileges(object).map(|given| &**given), wanted)
    }

    /// Whether one of the given privileges covers the wanted one, for the role or for one whose privileges it has.
    pub(super) fn reaches<'a>(
        &self,
        role: &SmolStr,
        given: impl Iterator<Item = &'a Privilege> + Clone,
        wanted: &Privilege,
    ) -> bool {
        self.roles_of(role).into_iter().any(|role| {
            let wanted = Privilege { grantee: role, ..wanted.clone() };
            given.clone().any(|given| given.covers(&wanted))
        })
    }

    /// Moves the privileges on a column to its new name.
    pub fn rename_column_privileges(&mut self, table: Oid, old: &str, new: &SmolStr) {
        for privilege in self.privileges_where(table, |privilege| is_on(privilege, old)) {
            let renamed = Privilege { column: Some(new.clone()), ..Privilege::clone(&privilege) };
            self.privileges.entry(table).or_default().rename(&privilege, renamed);
        }
    }

    /// Privileges on a column go with it.
    pub(super) fn forget_column_privileges(&mut self, table: Oid, column: &str) {
        self.forget_privileges(table, |privilege| is_on(privilege, column));
    }

    fn forget_privileges(&mut self, object: Oid, goes: impl Fn(&Privilege) -> bool) {
        for privilege in self.privileges_where(object, goes) {
            self.privileges.entry(object).or_default().remove(&privilege);
        }
    }

    fn privileges_where(&self, object: Oid, is_meant: impl Fn(&Privilege) -> bool) -> Vec<Arc<Privilege>> {
        self.privileges(object).filter(|privilege| is_meant(privilege)).cloned().collect()
    }

    /// Switches row-level security on or off.
    pub fn set_row_security(&mut self, table: Oid, on: bool) {
        self.relation_mut(table).row_security = on;
        if on {
            self.row_secured.insert(table, ());
        }
    }

    /// The relations with row-level security.
    pub fn row_secured(&self) -> impl Iterator<Item = &Relation> {
        let known = self.row_secured.keys().filter_map(|oid| self.get_relation(*oid));
        known.map(|relation| &**relation).filter(|relation| relation.row_security)
    }

    pub fn has_default_privileges(&self) -> bool {
        !self.default_privileges.is_empty()
    }

    /// Whether PUBLIC gets no EXECUTE on new functions.
    pub fn closes_functions(&self) -> bool {
        self.closes_functions
    }

    /// Whether a role gets EXECUTE on new functions of one of the schemas, because statements said so.
    pub fn has_default_for_functions(&self, role: &str, schemas: &[SmolStr]) -> bool {
        self.default_privileges.iter().any(|default| {
            let is_of_schema = default.schema.as_ref().is_some_and(|schema| schemas.contains(schema));
            default.kind == PrivilegeKind::Function && default.given.grantee == role && is_of_schema
        })
    }

    pub fn set_default_privilege(&mut self, default: DefaultPrivilege, given: bool) {
        // A revocation in single schemas does not undo what PostgreSQL gives in all of them.
        if default.kind == PrivilegeKind::Function && default.given.grantee == PUBLIC && default.schema.is_none() {
            self.closes_functions = !given;
        }
        self.default_privileges.remove(&default);
        if given {
            self.default_privileges.push(default);
        }
    }

    /// Gives a new object what the defaults of its schema say.
    pub fn grant_defaults(&mut self, object: Oid, kind: PrivilegeKind, schema: &str) {
        if kind == PrivilegeKind::Function && self.closes_functions {
            self.closed_functions.insert(object);
        }
        if self.default_privileges.is_empty() {
            return;
        }
        let applies = |default: &&Arc<DefaultPrivilege>| {
            default.kind == kind && default.schema.as_ref().is_none_or(|only| only == schema)
        };
        let given: Vec<Privilege> =
            self.default_privileges.iter().filter(applies).map(|default| default.given.clone()).collect();
        if !given.is_empty() {
            self.grant(object, &given);
        }
    }
}
