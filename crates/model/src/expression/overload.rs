//! Which function or operator a call means.
//!
//! PostgreSQL's `FuncnameGetCandidates` (src/backend/catalog/namespace.c) and `func_select_candidate`
//! (`src/backend/parser/parse_func.c`).

use super::coercion::{Pathway, Step};
use super::{Analyzer, Scope};
use crate::builtin::{
    self, BuiltinFunction, BuiltinOperator, BuiltinTypeKind, CastContext, TypeCategory, Volatility, oid,
};
use crate::catalog::{Function, Oid, SqlType};
use pgvet_syntax::ast::{Expr, ExprKind};
use smol_str::SmolStr;
use std::sync::Arc;

/// One overload, with its argument types as the call would fill them.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) arguments: Vec<Oid>,
    pub(super) returns: SqlType,
    pub(super) volatility: Volatility,
    pub(super) user: Option<Arc<Function>>,
}

/// The outcome of looking for a function or operator.
#[derive(Debug, Clone)]
pub(super) enum Resolution {
    /// Nothing has that name.
    NotFound,
    /// Exactly this one.
    One(Candidate),
    /// The name is that of this type: `int4(x)` is a cast.
    Cast(SqlType),
    /// Not decided: one of these.
    OneOf(Vec<Candidate>),
    /// None of these takes arguments of such number and types.
    NoMatch(Vec<Candidate>),
}

/// A function as stored, before it meets a call.
struct Signature<'a> {
    arguments: Vec<Oid>,
    names: Vec<&'a str>,
    defaults: usize,
    /// The element type of a VARIADIC argument.
    variadic: Option<Oid>,
}

/// The arguments of a call: the type of each, and the names of the named ones at the end.
pub(super) struct CallArguments<'a> {
    pub(super) types: Vec<Oid>,
    pub(super) names: Vec<&'a SmolStr>,
    /// `f(VARIADIC array)`.
    pub(super) variadic: bool,
}

impl Analyzer<'_> {
    /// The type that a function gives whatever its arguments are.
    pub(super) fn only_result(&self, schema: Option<&str>, name: &str) -> Option<SqlType> {
        if schema.is_some_and(|schema| schema != "pg_catalog") || !self.schema.functions_named(schema, name).is_empty()
        {
            return None;
        }
        let of_version = builtin::functions(name).iter().filter(|row| row.majors.contain(self.target));
        let others = self.schema.extensions().iter().flat_map(|extension| extension.functions);
        let others = others.filter(|row| row.name == name).map(|row| row.returns);
        self.only(of_version.map(|row| row.returns), others)
    }

    /// The type that an operator gives whatever its operands are.
    pub(super) fn only_operator_result(&self, schema: Option<&str>, name: &str) -> Option<SqlType> {
        if schema.is_some_and(|schema| schema != "pg_catalog") {
            return None;
        }
        let of_version = builtin::operators(name).iter().filter(|row| row.majors.contain(self.target));
        let others = self.schema.extensions().iter().flat_map(|extension| extension.operators);
        let others = others.filter(|row| row.name == name).map(|row| row.result);
        self.only(of_version.map(|row| row.result), others)
    }

    /// The type that all results have, those of extensions by name, unless it depends on the arguments.
    fn only<'n>(
        &self,
        mut results: impl Iterator<Item = u32>,
        mut others: impl Iterator<Item = &'n str>,
    ) -> Option<SqlType> {
        let first = results.next().filter(|first| !builtin::is_polymorphic(*first))?;
        let agreed =
            results.all(|other| other == first) && others.all(|other| self.type_oid(None, other) == Some(Oid(first)));
        agreed.then(|| SqlType::new(Oid(first)))
    }

    pub(super) fn resolve_function(&self, schema: Option<&str>, name: &str, call: &CallArguments) -> Resolution {
        if let Some(exact) = self.exact_function(schema, name, call) {
            return Resolution::One(exact);
        }
        let candidates = self.overloads(schema, name, Some(call));
        let exact = candidates.iter().any(|candidate| candidate.arguments == call.types);
        if !exact && let Some(target) = self.type_called(schema, name, call) {
            return Resolution::Cast(target);
        }
        if !candidates.is_empty() {
            return self.choose(candidates, &call.types);
        }
        let all = self.overloads(schema, name, None);
        match (all.is_empty(), self.type_of_call(schema, name, call)) {
            (true, Some(target)) => Resolution::Cast(target),
            (true, None) => Resolution::NotFound,
            (false, Some(_)) => Resolution::OneOf(all),
            (false, None) if !call.names.is_empty() => Resolution::OneOf(all),
            (false, None) => Resolution::NoMatch(all),
        }
    }

    /// The column that an expression is where its casts do nothing: `date(x)` and `x::date` are `x` where that is a date.
    pub fn column_behind_casts<'e>(&self, expression: &'e Expr, scope: &Scope) -> Option<&'e SmolStr> {
        let operand = match &expression.kind {
            ExprKind::Column(_) => return expression.as_column(),
            ExprKind::Cast { operand, .. } => operand,
            ExprKind::Call(call) => &call.arguments.first()?.value,
            _ => return None,
        };
        let column = self.column_behind_casts(operand, scope)?;
        let from = self.type_of(operand, scope);
        let does_nothing = match &expression.kind {
            ExprKind::Cast { target, .. } => self.resolve_type(target) == from,
            ExprKind::Call(call) => {
                let arguments = CallArguments { types: vec![from.oid], names: Vec::new(), variadic: call.variadic };
                let meant = self.resolve_function(call.schema.as_deref(), &call.name, &arguments);
                call.arguments.len() == 1 && matches!(meant, Resolution::Cast(target) if target.oid == from.oid)
            }
            _ => false,
        };
        (does_nothing && from.is_known()).then_some(column)
    }

    /// The type whose name is called like a function, where the cast needs no function: that goes before functions which
    /// would need a conversion, so that `date(x)` is `x` itself where it is a date, and never `date(timestamp)`.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_func.c`, `func_get_detail`.
    fn type_called(&self, schema: Option<&str>, name: &str, call: &CallArguments) -> Option<SqlType> {
        let target = self.type_of_call(schema, name, call)?;
        let facts = self.facts(target.oid).filter(|facts| facts.kind != BuiltinTypeKind::Composite)?;
        let from = *call.types.first()?;
        let is_row = || {
            let source = self.facts(from);
            from.0 == oid::RECORD || source.is_some_and(|source| source.kind == BuiltinTypeKind::Composite)
        };
        let is_cast = from.0 == oid::UNKNOWN
            || match self.pathway(from, target.oid, CastContext::Explicit) {
                Ok(Pathway::Relabel) => true,
                Ok(Pathway::By(Step::ViaIo { .. })) => facts.category != TypeCategory::String || !is_row(),
                Ok(Pathway::By(_)) | Err(_) => false,
            };
        is_cast.then_some(target)
    }

    fn type_of_call(&self, schema: Option<&str>, name: &str, call: &CallArguments) -> Option<SqlType> {
        let plain = call.types.len() == 1 && call.types[0].is_valid() && call.names.is_empty() && !call.variadic;
        self.type_oid(schema, name).filter(|_| plain).map(SqlType::new)
    }

    pub(super) fn resolve_operator(&self, schema: Option<&str>, name: &str, operands: &[Oid]) -> Resolution {
        if let Some(exact) = self.exact_operator(schema, name, operands) {
            return Resolution::One(exact);
        }
        let mut candidates = Vec::new();
        if schema.is_none_or(|schema| schema == "pg_catalog") {
            let of_shape =
                |row: &&BuiltinOperator| row.majors.contain(self.target) && (row.left == 0) == (operands.len() == 1);
            let rows = || builtin::operators(name).iter().filter(of_shape);
            candidates.extend(rows().filter(|row| self.operator_accepts(row, operands)).map(operator_candidate));
            if candidates.is_empty() {
                candidates.extend(rows().map(operator_candidate));
            }
        }
        let extensions = self.schema.extensions();
        for row in extensions.iter().flat_map(|extension| extension.operators).filter(|row| row.name == name) {
            let names = [row.left, row.right].into_iter().filter(|name| !name.is_empty());
            let arguments: Vec<Oid> = names.filter_map(|name| self.type_oid(None, name)).collect();
            if arguments.len() == operands.len() {
                let returns = self.type_oid(None, row.result).map_or(SqlType::UNKNOWN, SqlType::new);
                candidates.push(Candidate { arguments, returns, volatility: row.volatility, user: None });
            }
        }
        if candidates.is_empty() {
            return Resolution::NotFound;
        }
        // Where an operand could be anything, so could the operator.
        if operands.iter().any(|operand| !operand.is_valid()) {
            return Resolution::OneOf(candidates);
        }
        // oper() takes a literal beside a known type for that type where there is such an operator.
        if let [left, right] = operands {
            let assumed = match (left.0 == oid::UNKNOWN, right.0 == oid::UNKNOWN) {
                (true, false) => Some(*right),
                (false, true) => Some(*left),
                _ => None,
            };
            if let Some(assumed) = assumed
                && let Some(exact) = candidates.iter().find(|candidate| candidate.arguments == [assumed, assumed])
            {
                return Resolution::One(exact.clone());
            }
        }
        self.choose(candidates, operands)
    }

    /// Whether the operands can be used as those of the operator. This alone rules out most operators of a name.
    fn operator_accepts(&self, row: &BuiltinOperator, operands: &[Oid]) -> bool {
        let expected = [row.left, row.right].into_iter().filter(|oid| *oid != 0).map(Oid);
        operands
            .iter()
            .zip(expected)
            .all(|(from, to)| !from.is_valid() || self.can_coerce(*from, to, CastContext::Implicit) != Some(false))
    }

    /// The built-in operator for just these types: by far the most frequent answer. A literal beside a known type is
    /// taken for that type, as `oper()` does.
    fn exact_operator(&self, schema: Option<&str>, name: &str, operands: &[Oid]) -> Option<Candidate> {
        let [left, right] = operands else { return None };
        let (left, right) = match (left.0, right.0) {
            (oid::UNKNOWN, oid::UNKNOWN) | (0, _) | (_, 0) => return None,
            (oid::UNKNOWN, right) => (right, right),
            (left, oid::UNKNOWN) => (left, left),
            both => both,
        };
        if schema.is_some_and(|schema| schema != "pg_catalog") {
            return None;
        }
        let rows = builtin::operators(name).iter();
        let mut exact = rows.filter(|row| row.left == left && row.right == right);
        exact.find(|row| row.majors.contain(self.target)).map(operator_candidate)
    }

    /// The built-in function for just these types, which goes before all that would need a conversion.
    fn exact_function(&self, schema: Option<&str>, name: &str, call: &CallArguments) -> Option<Candidate> {
        if schema.is_some_and(|schema| schema != "pg_catalog") || !call.names.is_empty() || call.variadic {
            return None;
        }
        let is_exact = |row: &&BuiltinFunction| {
            row.variadic == 0
                && row.majors.contain(self.target)
                && row.arguments.len() == call.types.len()
                && row.arguments.iter().zip(&call.types).all(|(to, from)| *to != 0 && *to == from.0)
        };
        builtin::functions(name).iter().find(is_exact).map(|row| Candidate {
            arguments: call.types.clone(),
            returns: SqlType::new(Oid(row.returns)),
            volatility: row.volatility,
            user: None,
        })
    }

    /// Overloads that fit the shape of the call, or all of them.
    fn overloads(&self, schema: Option<&str>, name: &str, call: Option<&CallArguments>) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        if schema.is_none_or(|schema| schema == "pg_catalog") {
            for row in builtin::functions(name).iter().filter(|row| row.majors.contain(self.target)) {
                let signature = Signature {
                    arguments: row.arguments.iter().copied().map(Oid).collect(),
                    names: row.argument_names.to_vec(),
                    defaults: usize::from(row.defaults),
                    variadic: (row.variadic != 0).then_some(Oid(row.variadic)),
                };
                if let Some(arguments) = fit(&signature, call) {
                    candidates.push(Candidate {
                        arguments,
                        returns: SqlType::new(Oid(row.returns)),
                        volatility: row.volatility,
                        user: None,
                    });
                }
            }
        }
        let user = self.schema.functions_named(schema, name);
        candidates.extend(user.into_iter().filter_map(|function| self.user_candidate(function, call)));
        if candidates.iter().all(|candidate| candidate.user.is_none()) {
            candidates.extend(self.extension_candidates(name, call));
        }
        candidates
    }

    fn user_candidate(&self, function: Arc<Function>, call: Option<&CallArguments>) -> Option<Candidate> {
        let inputs = || function.parameters.iter().filter(|parameter| parameter.mode.is_input());
        let variadic =
            inputs().next_back().filter(|parameter| parameter.mode == pgvet_syntax::ast::ParameterMode::Variadic);
        let signature = Signature {
            arguments: inputs().map(|parameter| parameter.sql_type.oid).collect(),
            names: inputs().map(|parameter| parameter.name.as_deref().unwrap_or_default()).collect(),
            defaults: inputs().filter(|parameter| parameter.has_default).count(),
            variadic: variadic.and_then(|parameter| self.element_type(parameter.sql_type.oid)),
        };
        let arguments = fit(&signature, call)?;
        Some(Candidate { arguments, returns: function.returns, volatility: function.volatility, user: Some(function) })
    }

    fn extension_candidates(&self, name: &str, call: Option<&CallArguments>) -> Vec<Candidate> {
        let oid = |name: &str| self.type_oid(None, name).unwrap_or_default();
        let extensions = self.schema.extensions();
        let functions = extensions.iter().flat_map(|extension| extension.functions).filter(|row| row.name == name);
        functions
            .filter_map(|row| {
                let arguments: Vec<Oid> = row.arguments.iter().map(|name| oid(name)).collect();
                let variadic = arguments.last().filter(|_| row.variadic).and_then(|array| self.element_type(*array));
                let signature =
                    Signature { arguments, names: Vec::new(), defaults: usize::from(row.defaults), variadic };
                Some(Candidate {
                    arguments: fit(&signature, call)?,
                    returns: SqlType::new(oid(row.returns)),
                    volatility: row.volatility,
                    user: None,
                })
            })
            .collect()
    }

    fn choose(&self, candidates: Vec<Candidate>, types: &[Oid]) -> Resolution {
        // With an argument of unknown type every overload that accepts the others stays possible.
        let known = types.iter().all(|oid| oid.is_valid());
        if known && let Some(exact) = candidates.iter().find(|candidate| candidate.arguments == types) {
            return Resolution::One(exact.clone());
        }
        let mut possible: Vec<Candidate> = candidates
            .iter()
            .filter(|candidate| candidate.arguments.len() >= types.len())
            .filter(|candidate| self.is_consistent(candidate, types))
            .filter(|candidate| {
                candidate.arguments.iter().zip(types).all(|(to, from)| {
                    !from.is_valid()
                        || !to.is_valid()
                        || self.can_coerce(*from, *to, CastContext::Implicit) != Some(false)
                            && self.fits_polymorphic(*from, *to)
                })
            })
            .cloned()
            .collect();
        if possible.is_empty() {
            if types.iter().all(|oid| self.is_plain(*oid)) {
                return Resolution::NoMatch(candidates);
            }
            possible = candidates;
        } else if known && possible.len() > 1 {
            possible = self.select_candidate(possible, types);
        }
        match <[Candidate; 1]>::try_from(possible) {
            Ok([candidate]) => Resolution::One(candidate),
            Err(possible) => Resolution::OneOf(possible),
        }
    }

    /// A type about which all is known that decides what takes it.
    fn is_plain(&self, oid: Oid) -> bool {
        let Some(facts) = self.facts(oid) else { return false };
        match facts.kind {
            // As an array it would be taken for its base type, as an element not.
            BuiltinTypeKind::Domain => self.element_type(facts.base.oid).is_none() && self.is_plain(facts.base.oid),
            _ => facts.element.is_none_or(|element| self.facts(element).is_some()),
        }
    }

    /// The part of `check_generic_type_consistency` that tells overloads apart.
    fn fits_polymorphic(&self, from: Oid, to: Oid) -> bool {
        use crate::builtin::BuiltinTypeKind as Kind;
        if from.0 == oid::UNKNOWN {
            return true;
        }
        let kind = self.facts(self.base_type(SqlType::new(from)).oid).map(|facts| facts.kind);
        match to.0 {
            oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => kind == Some(Kind::Array) || from == to,
            // Unlike the others, a domain over an enum is none.
            oid::ANYENUM => self.facts(from).is_none_or(|facts| facts.kind == Kind::Enum),
            oid::ANYRANGE | oid::ANYCOMPATIBLERANGE => kind == Some(Kind::Range),
            oid::ANYMULTIRANGE | oid::ANYCOMPATIBLEMULTIRANGE => kind == Some(Kind::Multirange),
            oid::ANYNONARRAY | oid::ANYCOMPATIBLENONARRAY => kind != Some(Kind::Array),
            _ => true,
        }
    }

    /// `check_generic_type_consistency`: where arrays are given, the elements must go with theirs.
    fn is_consistent(&self, candidate: &Candidate, types: &[Oid]) -> bool {
        let given = || pairs(candidate, types).filter(|(_, from)| from.is_valid() && from.0 != oid::UNKNOWN);
        let elements_of = |array: u32| {
            given()
                .filter(move |(to, _)| to.0 == array)
                .filter_map(|(_, from)| self.element_type(from))
                .collect::<Vec<_>>()
        };
        let subtypes = given().filter(|(to, _)| to.0 == oid::ANYRANGE).filter_map(|(_, range)| {
            self.facts(range).filter(|facts| facts.kind == BuiltinTypeKind::Range).map(|facts| facts.base.oid)
        });
        let mut same = elements_of(oid::ANYARRAY);
        same.extend(subtypes);
        let compatible = elements_of(oid::ANYCOMPATIBLEARRAY);
        let converts = |from, to| self.can_coerce(from, to, CastContext::Implicit) != Some(false);
        given().all(|(to, from)| match to.0 {
            oid::ANYELEMENT | oid::ANYNONARRAY => same.iter().all(|element| *element == from),
            oid::ANYARRAY => self.element_type(from).is_none_or(|own| same.iter().all(|element| *element == own)),
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => {
                compatible.iter().all(|element| converts(*element, from) || converts(from, *element))
            }
            _ => true,
        })
    }

    /// `func_select_candidate`: the rules of the documentation, "Function Type Resolution", steps 4.a to 4.f.
    fn select_candidate(&self, mut candidates: Vec<Candidate>, types: &[Oid]) -> Vec<Candidate> {
        let types: Vec<Oid> = types.iter().map(|oid| self.base_type(SqlType::new(*oid)).oid).collect();
        keep_best(&mut candidates, |candidate| pairs(candidate, &types).filter(|(to, from)| to == from).count());
        keep_best(&mut candidates, |candidate| {
            pairs(candidate, &types)
                .filter(|(to, from)| from.0 != oid::UNKNOWN && (to == from || self.is_preferred(*to, *from)))
                .count()
        });
        for position in (0..types.len()).filter(|position| types[*position].0 == oid::UNKNOWN) {
            self.keep_category(&mut candidates, position);
        }
        if candidates.len() > 1 {
            let mut known = types.iter().filter(|oid| oid.0 != oid::UNKNOWN);
            if let Some(first) = known.next()
                && known.all(|oid| oid == first)
            {
                let all_of_it: Vec<Candidate> = candidates
                    .iter()
                    .filter(|candidate| {
                        pairs(candidate, &types).all(|(to, from)| from.0 != oid::UNKNOWN || to == *first)
                    })
                    .cloned()
                    .collect();
                if all_of_it.len() == 1 {
                    return all_of_it;
                }
            }
        }
        candidates
    }

    /// Step 4.e: a literal takes the string category where some candidate has it, or else the one that all share.
    fn keep_category(&self, candidates: &mut Vec<Candidate>, position: usize) {
        let category = |candidate: &Candidate| candidate.arguments.get(position).map(|oid| self.category(*oid));
        let chosen = if candidates.iter().any(|candidate| category(candidate) == Some(TypeCategory::String)) {
            Some(TypeCategory::String)
        } else {
            let first = candidates.first().and_then(category);
            first.filter(|_| candidates.iter().all(|candidate| category(candidate) == first))
        };
        let Some(chosen) = chosen else { return };
        candidates.retain(|candidate| category(candidate) == Some(chosen));
        let preferred = |candidate: &Candidate| {
            candidate.arguments.get(position).and_then(|oid| self.facts(*oid)).is_some_and(|facts| facts.preferred)
        };
        if candidates.iter().any(preferred) {
            candidates.retain(preferred);
        }
    }

    /// PostgreSQL's `IsPreferredType`: preferred in the category of the argument.
    fn is_preferred(&self, to: Oid, from: Oid) -> bool {
        self.facts(to).is_some_and(|facts| facts.preferred && facts.category == self.category(from))
    }
}

fn pairs<'a>(candidate: &'a Candidate, types: &'a [Oid]) -> impl Iterator<Item = (Oid, Oid)> + 'a {
    candidate.arguments.iter().copied().zip(types.iter().copied())
}

fn keep_best(candidates: &mut Vec<Candidate>, score: impl Fn(&Candidate) -> usize) {
    if let Some(best) = candidates.iter().map(&score).max() {
        candidates.retain(|candidate| score(candidate) == best);
    }
}

/// The argument types of a function in the order of the call, or `None` where the call does not fit.
fn fit(signature: &Signature, call: Option<&CallArguments>) -> Option<Vec<Oid>> {
    let Some(call) = call else { return Some(signature.arguments.clone()) };
    let given = call.types.len();
    let declared = signature.arguments.len();
    if !call.names.is_empty() {
        let positional = given - call.names.len();
        let mut order: Vec<Oid> = signature.arguments.get(..positional)?.to_vec();
        for name in &call.names {
            let position = signature.names.iter().position(|candidate| candidate == name)?;
            order.push(*signature.arguments.get(position)?);
        }
        return (given + signature.defaults >= declared).then_some(order);
    }
    if let Some(element) = signature.variadic
        && !call.variadic
        && given + 1 >= declared
    {
        let mut arguments = signature.arguments[..declared - 1].to_vec();
        arguments.resize(given.max(declared - 1), element);
        return Some(arguments);
    }
    (given <= declared && given + signature.defaults >= declared).then(|| signature.arguments[..given].to_vec())
}

fn operator_candidate(row: &builtin::BuiltinOperator) -> Candidate {
    Candidate {
        arguments: [row.left, row.right].into_iter().filter(|oid| *oid != 0).map(Oid).collect(),
        returns: SqlType::new(Oid(row.result)),
        volatility: row.volatility,
        user: None,
    }
}
