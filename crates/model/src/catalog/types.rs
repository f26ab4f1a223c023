//! Data types.

use super::{Catalog, Named, Oid};
use pgvet_syntax::ast::Expr;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// A type with its modifier, as a column has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SqlType {
    /// Built-in types have PostgreSQL's oid, user types one of the catalog's; invalid when not known.
    pub oid: Oid,
    /// PostgreSQL's atttypmod: -1 without modifier. Only the code of an extension's type knows its own, so for such a
    /// type this is a place in [`TypeDef::modifiers`].
    pub typmod: i32,
}

impl SqlType {
    pub const UNKNOWN: Self = Self { oid: Oid::INVALID, typmod: -1 };

    pub const fn new(oid: Oid) -> Self {
        Self { oid, typmod: -1 }
    }

    pub fn is_known(self) -> bool {
        self.oid.is_valid()
    }
}

/// A user-defined type: a row of `pg_type`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TypeDef {
    pub oid: Oid,
    pub schema: SmolStr,
    pub name: SmolStr,
    /// The type of arrays of it; invalid for array types themselves.
    pub array: Oid,
    pub kind: TypeKind,
    pub transaction: u32,
    /// The modifiers that the type was used with, as written: `768` of `vector(768)`.
    pub modifiers: Vec<SmolStr>,
}

/// The kinds of type.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum TypeKind {
    Enum {
        labels: Named<EnumLabel>,
    },
    Domain(Domain),
    /// The row type of a relation, or a stand-alone composite type.
    Composite {
        relation: Oid,
    },
    Range {
        subtype: SqlType,
    },
    /// The range type that this is the multirange of.
    Multirange {
        range: Oid,
    },
    Array {
        element: Oid,
    },
    Base,
    Shell,
    /// Used before any statement created it, for example a type of an extension.
    Assumed,
}

impl TypeKind {
    /// Whether a new type of its name replaces it. An array type gets another name, a shell becomes the new type, and
    /// what was only mentioned was not there.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_type.c`, `moveArrayTypeName`.
    pub fn makes_way(&self) -> bool {
        matches!(self, Self::Array { .. } | Self::Shell | Self::Assumed)
    }
}

/// A label of an enum, and the transaction that added it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EnumLabel {
    pub label: SmolStr,
    /// Added by ALTER TYPE ... ADD VALUE in this transaction; `None` for labels of CREATE TYPE.
    pub added_in: Option<u32>,
}

/// A domain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Domain {
    pub base: SqlType,
    /// The type under all domains that it is over, as far as they were there when it was made.
    pub root: Oid,
    pub not_null: bool,
    /// The constraint behind NOT NULL, since 17.
    pub not_null_name: Option<SmolStr>,
    pub default: Option<Arc<Expr>>,
    pub checks: Named<DomainCheck>,
}

impl Domain {
    pub fn constraint_names(&self) -> impl Iterator<Item = &SmolStr> {
        self.checks.iter().map(|check| &check.name).chain(&self.not_null_name)
    }

    pub fn has_constraint(&self, name: &str) -> bool {
        self.checks.contains(name) || self.not_null_name.as_ref().is_some_and(|own| own == name)
    }
}

/// A CHECK of a domain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DomainCheck {
    pub name: SmolStr,
    pub expression: Arc<Expr>,
    pub valid: bool,
}

impl Catalog {
    /// The type that is in the way of a new one of this name.
    pub fn type_in_the_way(&self, schema: &str, name: &str) -> Option<&Arc<TypeDef>> {
        let oid = self.type_named(schema, name)?;
        self.get_type(oid).filter(|definition| !definition.kind.makes_way())
    }

    /// Gives the name to a new type: the oids of what makes way for it and of its arrays, where it becomes the new type.
    pub(super) fn make_room_for_type(&mut self, schema: &SmolStr, name: &SmolStr) -> Option<(Oid, Oid)> {
        let existing = Arc::clone(self.get_type(self.type_named(schema, name)?)?);
        if matches!(existing.kind, TypeKind::Array { .. }) {
            let free = self.free_array_type_name(schema, name);
            self.rename_type(existing.oid, schema.clone(), free);
        }
        matches!(existing.kind, TypeKind::Shell | TypeKind::Assumed).then_some((existing.oid, existing.array))
    }

    /// The [`SqlType::typmod`] of a type of the database that is used with these modifiers.
    pub fn typmod_of(&mut self, oid: Oid, modifiers: &str) -> i32 {
        let Some(definition) = self.get_type(oid) else { return -1 };
        let known = definition.modifiers.iter().position(|known| known == modifiers);
        let place = known.unwrap_or(definition.modifiers.len());
        if known.is_none()
            && let Some(definition) = self.type_mut(oid)
        {
            definition.modifiers.push(modifiers.into());
        }
        i32::try_from(place).unwrap_or(-1)
    }

    /// Changes a domain.
    pub fn set_domain(&mut self, oid: Oid, domain: Domain) {
        let Some(definition) = self.types.get(&oid).cloned() else { return };
        let TypeKind::Domain(before) = &definition.kind else { return };
        let of_not_null = |one: &Domain, other: &Domain| {
            one.not_null_name.clone().filter(|_| one.not_null_name != other.not_null_name)
        };
        let gone = before.checks.unlike(&domain.checks).map(|check| check.name.clone());
        for name in gone.chain(of_not_null(before, &domain)) {
            self.forget_constraint_name(&definition.schema, &name);
        }
        let new = domain.checks.unlike(&before.checks).map(|check| check.name.clone());
        for name in new.chain(of_not_null(&domain, before)) {
            self.note_constraint_name(&definition.schema, &name);
        }
        if let Some(definition) = self.type_mut(oid) {
            definition.kind = TypeKind::Domain(domain);
        }
    }

    pub(super) fn note_domain_constraints(&mut self, schema: &SmolStr, kind: &TypeKind) {
        if let TypeKind::Domain(domain) = kind {
            domain.constraint_names().for_each(|name| self.note_constraint_name(schema, name));
        }
    }

    pub(super) fn forget_domain_constraints(&mut self, schema: &SmolStr, kind: &TypeKind) {
        if let TypeKind::Domain(domain) = kind {
            domain.constraint_names().for_each(|name| self.forget_constraint_name(schema, name));
        }
    }
}
