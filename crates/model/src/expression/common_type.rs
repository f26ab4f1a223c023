//! The one type that several values get, and the types that polymorphic functions give.

use super::Analyzer;
use super::overload::Candidate;
use crate::builtin::{CastContext, oid};
use crate::catalog::{Oid, SqlType};

impl Analyzer<'_> {
    /// The type that UNION, CASE, VALUES and so on give several inputs; [`SqlType::UNKNOWN`] where it is not known, or
    /// where PostgreSQL refuses them.
    pub fn common_type(&self, types: &[SqlType]) -> SqlType {
        self.select_common_type(types).unwrap_or(SqlType::UNKNOWN)
    }

    /// PostgreSQL's `select_common_type` (documentation, "UNION, CASE, and Related Constructs"), or two types that cannot
    /// be matched.
    pub(super) fn select_common_type(&self, types: &[SqlType]) -> Result<SqlType, (SqlType, SqlType)> {
        let Some(first) = types.first().copied() else { return Ok(SqlType::UNKNOWN) };
        if first.oid.0 != oid::UNKNOWN && types.iter().all(|sql_type| *sql_type == first) {
            return Ok(first);
        }
        if types.iter().any(|sql_type| !sql_type.is_known()) {
            return Ok(SqlType::UNKNOWN);
        }
        let bases = types.iter().map(|sql_type| self.base_type(SqlType::new(sql_type.oid)));
        let mut known = bases.filter(|sql_type| sql_type.oid.0 != oid::UNKNOWN);
        let Some(mut chosen) = known.next() else { return Ok(SqlType::new(Oid(oid::TEXT))) };
        let category = self.category(chosen.oid);
        for other in known {
            if self.category(other.oid) != category {
                return Err((chosen, other));
            }
            let preferred = self.facts(chosen.oid).is_some_and(|facts| facts.preferred);
            let widens = self.can_coerce(chosen.oid, other.oid, CastContext::Implicit) == Some(true)
                && self.can_coerce(other.oid, chosen.oid, CastContext::Implicit) != Some(true);
            if !preferred && widens {
                chosen = other;
            }
        }
        Ok(SqlType::new(chosen.oid))
    }

    /// The result type with polymorphic types settled by the arguments.
    pub(super) fn returned(&self, candidate: &Candidate, types: &[SqlType]) -> SqlType {
        let declared = candidate.returns.oid.0;
        let is_element = |oid: u32| matches!(oid, oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYENUM);
        let is_compatible = |oid: u32| matches!(oid, oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY);
        let given = || {
            let pairs = candidate.arguments.iter().zip(types);
            pairs.filter(|(_, from)| from.is_known() && from.oid.0 != oid::UNKNOWN)
        };
        let subtype = |range: Oid| self.facts(range).map(|facts| facts.base.oid);
        let element = || {
            given().find_map(|(to, from)| match to.0 {
                oid if is_element(oid) => Some(from.oid),
                oid::ANYARRAY => self.element_type(from.oid),
                oid::ANYRANGE => subtype(from.oid),
                _ => None,
            })
        };
        let compatible = || {
            let elements = given().filter_map(|(to, from)| match to.0 {
                oid if is_compatible(oid) => Some(from.oid),
                oid::ANYCOMPATIBLEARRAY => self.element_type(from.oid),
                oid::ANYCOMPATIBLERANGE => subtype(from.oid),
                _ => None,
            });
            let elements: Vec<SqlType> = elements.map(SqlType::new).collect();
            Some(self.common_type(&elements).oid).filter(|oid| oid.is_valid())
        };
        let same = |wanted: u32| given().find(|(to, _)| to.0 == wanted).map(|(_, from)| from.oid);
        let settled = match declared {
            oid if is_element(oid) => element(),
            oid if is_compatible(oid) => compatible(),
            oid::ANYARRAY => element().and_then(|element| self.array_type(element)),
            oid::ANYCOMPATIBLEARRAY => compatible().and_then(|element| self.array_type(element)),
            oid::ANYRANGE | oid::ANYMULTIRANGE | oid::ANYCOMPATIBLERANGE | oid::ANYCOMPATIBLEMULTIRANGE => {
                same(declared)
            }
            _ => return candidate.returns,
        };
        settled.map_or(SqlType::UNKNOWN, SqlType::new)
    }
}
