//! Privileges that GRANT gave on relations and functions, those that later objects will have, and row-level security.

use super::{Catalog, Oid, Relation};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// The kinds of object that have privileges of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrivilegeKind {
    Table,
    Sequence,
    Function,
}

impl PrivilegeKind {
    /// What ALL stands for.
    ///
    /// Source: PostgreSQL 18, `src/include/utils/acl.h`, `ACL_ALL_RIGHTS_RELATION` and its like, without MAINTAIN.
    fn all(self) -> &'static [&'static str] {
        match self {
            Self::Table => &["select", "insert", "update", "delete", "truncate", "references", "trigger"],
            Self::Sequence => &["usage", "select", "update"],
            Self::Function => &["execute"],
        }
    }

    /// The privileges that a statement names, ALL taken apart.
    pub fn named(self, privileges: &[SmolStr]) -> Vec<SmolStr> {
        if privileges.is_empty() {
            return self.all().iter().map(|privilege| SmolStr::new_static(privilege)).collect();
        }
        privileges.iter().map(|privilege| privilege.to_ascii_lowercase().into()).collect()
    }
}

/// A privilege of a role on one object; `public` stands for PUBLIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privilege {
    pub grantee: SmolStr,
    pub privilege: SmolStr,
}

/// A privilege that objects made from now on will have: a row's part of `pg_default_acl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultPrivilege {
    pub kind: PrivilegeKind,
    /// `None`: in every schema.
    pub schema: Option<SmolStr>,
    pub given: Privilege,
}

impl Catalog {
    /// What GRANT, or default privileges, gave on a relation or function. The owner's own are not among them.
    pub fn privileges(&self, object: Oid) -> &[Privilege] {
        self.privileges.get(&object).map_or(&[], |given| given.as_slice())
    }

    pub fn grant(&mut self, object: Oid, given: &[Privilege]) {
        let known = Arc::make_mut(self.privileges.entry(object).or_default());
        for privilege in given {
            if !known.contains(privilege) {
                known.push(privilege.clone());
            }
        }
    }

    pub fn revoke(&mut self, object: Oid, taken: &[Privilege]) {
        if let Some(known) = self.privileges.get_mut(&object) {
            Arc::make_mut(known).retain(|privilege| !taken.contains(privilege));
        }
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

    pub fn default_privileges(&self) -> &[DefaultPrivilege] {
        &self.default_privileges
    }

    pub fn set_default_privilege(&mut self, default: DefaultPrivilege, given: bool) {
        let known = Arc::make_mut(&mut self.default_privileges);
        known.retain(|other| *other != default);
        if given {
            known.push(default);
        }
    }

    /// Gives a new object what the defaults of its schema say.
    pub fn grant_defaults(&mut self, object: Oid, kind: PrivilegeKind, schema: &str) {
        if self.default_privileges.is_empty() {
            return;
        }
        let applies = |default: &&DefaultPrivilege| {
            default.kind == kind && default.schema.as_ref().is_none_or(|only| only == schema)
        };
        let given: Vec<Privilege> =
            self.default_privileges.iter().filter(applies).map(|default| default.given.clone()).collect();
        if !given.is_empty() {
            self.grant(object, &given);
        }
    }
}
