//! The properties of a type, built-in or not, that coercion needs.

use super::{Analyzer, domain_is_constrained};
use crate::builtin::{self, BuiltinTypeKind, TypeCategory, Volatility, oid};
use crate::catalog::{Oid, SqlType, TypeKind};

/// The properties of a type that coercion needs.
#[derive(Debug, Clone)]
pub(super) struct TypeFacts {
    pub(super) kind: BuiltinTypeKind,
    pub(super) category: TypeCategory,
    pub(super) preferred: bool,
    /// The type of the elements of a true array.
    pub(super) element: Option<Oid>,
    pub(super) array: Option<Oid>,
    /// The base type of a domain, the subtype of a range.
    pub(super) base: SqlType,
    /// A domain that itself has NOT NULL or CHECK.
    pub(super) constrained: bool,
    pub(super) input: Volatility,
    pub(super) output: Volatility,
    pub(super) collation: &'static str,
}

impl Analyzer<'_> {
    /// `None` where the type is not known or was only assumed.
    pub(super) fn facts(&self, oid: Oid) -> Option<TypeFacts> {
        if let Some(row) = builtin::type_by_oid(oid.0) {
            return Some(self.builtin_facts(row));
        }
        let definition = self.schema.type_by_oid(oid)?;
        let mut facts = TypeFacts {
            kind: BuiltinTypeKind::Base,
            category: TypeCategory::User,
            preferred: false,
            element: None,
            array: Some(definition.array).filter(|array| array.is_valid()),
            base: SqlType::UNKNOWN,
            constrained: false,
            input: Volatility::Immutable,
            output: Volatility::Immutable,
            collation: "",
        };
        match &definition.kind {
            TypeKind::Enum { .. } => {
                facts.kind = BuiltinTypeKind::Enum;
                facts.category = TypeCategory::Enum;
                (facts.input, facts.output) = (Volatility::Stable, Volatility::Stable);
            }
            TypeKind::Domain(domain) => {
                // Domains between it and the root add nothing but constraints.
                let base = self.facts(domain.root)?;
                facts = TypeFacts { array: facts.array, base: domain.base, element: None, preferred: false, ..base };
                facts.kind = BuiltinTypeKind::Domain;
                facts.constrained = domain_is_constrained(domain);
            }
            TypeKind::Composite { .. } => {
                facts.kind = BuiltinTypeKind::Composite;
                facts.category = TypeCategory::Composite;
                // record_in and record_out
                (facts.input, facts.output) = (Volatility::Stable, Volatility::Stable);
            }
            TypeKind::Range { subtype } => {
                facts.kind = BuiltinTypeKind::Range;
                facts.category = TypeCategory::Range;
                facts.base = *subtype;
                (facts.input, facts.output) = (Volatility::Stable, Volatility::Stable);
            }
            TypeKind::Multirange { range } => {
                facts.kind = BuiltinTypeKind::Multirange;
                facts.category = TypeCategory::Range;
                facts.base = SqlType::new(*range);
                (facts.input, facts.output) = (Volatility::Stable, Volatility::Stable);
            }
            TypeKind::Array { element } => {
                facts.kind = BuiltinTypeKind::Array;
                facts.category = TypeCategory::Array;
                facts.element = Some(*element);
                (facts.input, facts.output) = (Volatility::Stable, Volatility::Stable);
            }
            TypeKind::Base => {
                if let Some(row) = self.extension_type(&definition.name) {
                    facts.category = row.category;
                    facts.preferred = row.preferred;
                    (facts.input, facts.output) = (row.input, row.output);
                    if row.category == TypeCategory::String {
                        facts.collation = "default";
                    }
                } else {
                    (facts.input, facts.output) = (Volatility::Volatile, Volatility::Volatile);
                }
            }
            TypeKind::Shell | TypeKind::Assumed => return None,
        }
        Some(facts)
    }

    fn builtin_facts(&self, row: &'static builtin::BuiltinType) -> TypeFacts {
        // "char" was a string until 14 (PostgreSQL 15 release notes, "Change the type category of "char"").
        let category =
            if row.oid == oid::CHAR && !self.target.at_least(15) { TypeCategory::String } else { row.category };
        // interval_out was immutable until 14, though it obeys IntervalStyle (PostgreSQL 14 and 15,
        // src/include/catalog/pg_proc.dat).
        let output =
            if row.oid == oid::INTERVAL && !self.target.at_least(15) { Volatility::Immutable } else { row.output };
        TypeFacts {
            kind: row.kind,
            category,
            preferred: row.preferred,
            element: (row.kind == BuiltinTypeKind::Array).then_some(Oid(row.element)),
            array: (row.array != 0).then_some(Oid(row.array)),
            base: if row.base == 0 {
                SqlType::UNKNOWN
            } else {
                SqlType { oid: Oid(row.base), typmod: row.base_typmod }
            },
            constrained: row.constrained,
            input: row.input,
            output,
            collation: row.collation,
        }
    }

    pub(super) fn extension_type(&self, name: &str) -> Option<&'static builtin::ExtensionType> {
        self.schema.extensions().iter().flat_map(|extension| extension.types).find(|row| row.name == name)
    }

    /// PostgreSQL's getBaseTypeAndTypmod: through domains, with the modifier of the innermost domain that has one.
    pub fn base_type(&self, sql_type: SqlType) -> SqlType {
        let mut current = sql_type;
        // A domain over itself cannot be, but the bound costs nothing.
        for _ in 0..64 {
            match self.facts(current.oid) {
                Some(facts) if facts.kind == BuiltinTypeKind::Domain => current = facts.base,
                _ => break,
            }
        }
        current
    }

    /// PostgreSQL's `DomainHasConstraints`: of the domain or of a domain below it.
    pub(super) fn has_domain_constraints(&self, oid: Oid) -> bool {
        let mut at = oid;
        loop {
            if let Some(row) = builtin::type_by_oid(at.0) {
                return row.kind == BuiltinTypeKind::Domain && row.constrained;
            }
            let Some(definition) = self.schema.type_by_oid(at) else { return false };
            match &definition.kind {
                TypeKind::Domain(domain) if domain_is_constrained(domain) => return true,
                TypeKind::Domain(domain) => at = domain.base.oid,
                _ => return false,
            }
        }
    }

    pub(super) fn category(&self, oid: Oid) -> TypeCategory {
        self.facts(oid).map_or(TypeCategory::User, |facts| facts.category)
    }

    /// `pg_type.typname`.
    pub(super) fn type_name(&self, oid: Oid) -> Option<String> {
        match builtin::type_by_oid(oid.0) {
            Some(row) => Some(row.name.to_owned()),
            None => self.schema.type_by_oid(oid).map(|definition| definition.name.to_string()),
        }
    }

    /// The element type of a true array, through domains.
    pub fn element_type(&self, oid: Oid) -> Option<Oid> {
        self.facts(self.base_type(SqlType::new(oid)).oid)?.element
    }

    pub(super) fn array_type(&self, element: Oid) -> Option<Oid> {
        self.facts(element)?.array
    }
}
