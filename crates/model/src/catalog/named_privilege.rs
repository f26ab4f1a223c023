//! Privileges on objects that are neither relations nor functions: schemas, types, languages and databases.

use super::privilege::{NamedPrivileges, PUBLIC, Privilege};
use super::{Arc, Catalog};
use pgvet_syntax::ast::{NamedPrivilege, ObjectKind};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NamedKind {
    Schema,
    /// Types and domains.
    Type,
    Language,
    Database,
}

impl NamedKind {
    pub fn of(kind: ObjectKind) -> Option<Self> {
        Some(match kind {
            ObjectKind::Schema => Self::Schema,
            ObjectKind::Type | ObjectKind::Domain => Self::Type,
            ObjectKind::Language => Self::Language,
            ObjectKind::Database => Self::Database,
            _ => return None,
        })
    }

    /// The privileges that ALL means.
    ///
    /// Source: PostgreSQL 18, `src/include/utils/acl.h`, `ACL_ALL_RIGHTS_SCHEMA` and the macros beside it.
    fn all(self) -> &'static [&'static str] {
        match self {
            Self::Schema => &["usage", "create"],
            Self::Type | Self::Language => &["usage"],
            Self::Database => &["connect", "create", "temporary"],
        }
    }

    /// The privileges that a statement names, each once; none of them is for a column.
    pub fn named(self, privileges: &[NamedPrivilege]) -> NamedPrivileges {
        if privileges.is_empty() {
            return self.all().iter().map(|name| (SmolStr::new_static(name), None)).collect();
        }
        let named = privileges.iter().filter_map(|privilege| privilege.name.as_ref());
        named.map(|name| (full_name(name.to_ascii_lowercase()), None)).collect()
    }
}

fn full_name(name: String) -> SmolStr {
    if name == "temp" { SmolStr::new_static("temporary") } else { name.into() }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NamedObject {
    pub kind: NamedKind,
    /// The schema of a type, if it is known.
    pub schema: Option<SmolStr>,
    pub name: SmolStr,
}

impl NamedObject {
    /// Whether this is the schema on which PUBLIC has privileges by default.
    pub fn is_schema_public(&self) -> bool {
        self.kind == NamedKind::Schema && self.name == "public"
    }

    /// What PUBLIC has on an object of which nothing else is known. Before PostgreSQL 15 that includes CREATE on the
    /// schema `public`.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/adt/acl.c`, `acldefault`; `src/bin/initdb/initdb.c`, `setup_privileges`.
    fn defaults(&self, since_15: bool) -> Vec<Privilege> {
        let names: &[&'static str] = match self.kind {
            NamedKind::Schema if !self.is_schema_public() => &[],
            NamedKind::Schema if since_15 => &["usage"],
            NamedKind::Schema => &["usage", "create"],
            NamedKind::Type | NamedKind::Language => &["usage"],
            NamedKind::Database => &["connect", "temporary"],
        };
        let of_public = |name: &&'static str| Privilege {
            grantee: PUBLIC.into(),
            privilege: SmolStr::new_static(name),
            column: None,
        };
        names.iter().map(of_public).collect()
    }
}

impl Catalog {
    /// Whether a role has a privilege on a schema, type, language or database: by itself, through PUBLIC, or as a
    /// member of a role.
    pub fn has_privilege_on_named(&self, object: &NamedObject, wanted: &Privilege, since_15: bool) -> bool {
        let given = self.on_named(object, since_15);
        self.reaches(&wanted.grantee, given.iter(), wanted)
    }

    /// Whether a role itself has been granted a privilege on a schema, type, language or database.
    pub fn is_granted_on_named(&self, object: &NamedObject, wanted: &Privilege) -> bool {
        self.named_privileges.get(object).is_some_and(|known| known.contains(wanted))
    }

    pub fn grant_on_named(&mut self, object: &NamedObject, given: &[Privilege], since_15: bool) {
        let mut known = self.on_named(object, since_15);
        let new: Vec<Privilege> = {
            let known: FxHashSet<&Privilege> = known.iter().collect();
            given.iter().filter(|given| !known.contains(given)).cloned().collect()
        };
        known.extend(new);
        self.named_privileges.insert(object.clone(), Arc::new(known));
    }

    pub fn revoke_on_named(&mut self, object: &NamedObject, taken: &[Privilege], since_15: bool) {
        let mut known = self.on_named(object, since_15);
        let taken: FxHashSet<&Privilege> = taken.iter().collect();
        known.retain(|given| !taken.contains(given));
        self.named_privileges.insert(object.clone(), Arc::new(known));
    }

    /// A schema that a statement creates or renames gives PUBLIC nothing, even if it is called `public`.
    pub(super) fn forget_schema_privileges(&mut self, name: &SmolStr) {
        let object = NamedObject { kind: NamedKind::Schema, schema: None, name: name.clone() };
        self.named_privileges.insert(object, Arc::default());
    }

    fn on_named(&self, object: &NamedObject, since_15: bool) -> Vec<Privilege> {
        self.named_privileges.get(object).map_or_else(|| object.defaults(since_15), |known| known.to_vec())
    }
}
