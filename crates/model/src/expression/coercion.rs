//! Coercion of a value from one type to another, as the steps that PostgreSQL would put into the expression.

use super::{Analyzer, typmod};
use crate::builtin::{self, BuiltinTypeKind, CastContext, CastMethod, TypeCategory, Volatility, oid};
use crate::catalog::{Oid, SqlType, TypeKind};
use smol_str::SmolStr;

/// The outcome of a coercion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coercion {
    /// PostgreSQL refuses it in this context.
    Impossible,
    /// A type, or the casts of a type, are not known.
    Unknown,
    /// Possible by these steps; none when the types are the same.
    Steps(Vec<Step>),
}

/// One node that a coercion adds to the expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Only the type changes, not the bytes (`RelabelType`).
    Relabel,
    Function {
        name: SmolStr,
        source: Oid,
        target: Oid,
        volatility: Volatility,
    },
    /// Through the text form (`CoerceViaIO`).
    ViaIo {
        volatility: Volatility,
    },
    /// Every element of an array is coerced (`ArrayCoerceExpr`).
    Elements {
        volatility: Volatility,
    },
    /// A row is coerced field by field.
    Row,
    /// To a domain; its constraints are checked.
    Domain {
        constrained: bool,
    },
    /// A length or precision is applied; `no_op` where every value has it already.
    Length {
        no_op: bool,
    },
}

impl Step {
    pub fn volatility(&self) -> Volatility {
        match self {
            Self::Function { volatility, .. } | Self::ViaIo { volatility } | Self::Elements { volatility } => {
                *volatility
            }
            // Row types coerce each field; what that takes is not followed, and no cast of PostgreSQL's is volatile.
            Self::Row => Volatility::Stable,
            // contain_volatile_functions does not look into the constraints of a domain.
            Self::Relabel | Self::Domain { .. } | Self::Length { .. } => Volatility::Immutable,
        }
    }
}

/// Why there are no steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSteps {
    Impossible,
    Unknown,
}

/// PostgreSQL's `CoercionPathType`, without "none".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pathway {
    Relabel,
    By(Step),
}

impl Analyzer<'_> {
    /// PostgreSQL's `coerce_to_target_type` (`src/backend/parser/parse_coerce.c)`: the type, then its modifier.
    pub fn coercion(&self, from: SqlType, to: SqlType, context: CastContext) -> Coercion {
        match self.coercion_steps(from, to, context) {
            Ok(steps) => Coercion::Steps(steps),
            Err(NoSteps::Impossible) => Coercion::Impossible,
            Err(NoSteps::Unknown) => Coercion::Unknown,
        }
    }

    pub(super) fn coercion_steps(
        &self,
        from: SqlType,
        to: SqlType,
        context: CastContext,
    ) -> Result<Vec<Step>, NoSteps> {
        if from == to && to.is_known() {
            return Ok(Vec::new());
        }
        if !from.is_known() || !to.is_known() {
            return Err(NoSteps::Unknown);
        }
        let mut steps = Vec::new();
        let typmod = self.coerce_type(from, to, context, &mut steps)?;
        if typmod != to.typmod && to.typmod >= 0 && !self.knows_length_coercion(to.oid) {
            return Err(NoSteps::Unknown);
        }
        self.coerce_typmod(SqlType { oid: to.oid, typmod }, to.typmod, &mut steps);
        Ok(steps)
    }

    /// Adds the steps of `coerce_type` and returns the modifier that the expression then has.
    fn coerce_type(
        &self,
        from: SqlType,
        to: SqlType,
        context: CastContext,
        steps: &mut Vec<Step>,
    ) -> Result<i32, NoSteps> {
        if from.oid == to.oid || is_pseudo_target(to.oid) {
            return Ok(from.typmod);
        }
        let target = self.facts(to.oid).ok_or(NoSteps::Unknown)?;
        // The base type of a domain comes with the modifier that the domain gives it.
        let base = self.base_type(to);
        if from.oid.0 == oid::UNKNOWN {
            // A literal becomes a constant of the target's base type at once.
            return Ok(self.coerce_to_domain(base, base, to.oid, steps));
        }
        let source = self.facts(from.oid).ok_or(NoSteps::Unknown)?;
        match self.pathway(from.oid, to.oid, context) {
            Ok(Pathway::Relabel) => {
                if target.kind == BuiltinTypeKind::Domain {
                    // The modifier of a value counts here even when its type is not literally the base type.
                    return Ok(self.coerce_to_domain(
                        SqlType { oid: base.oid, typmod: from.typmod },
                        base,
                        to.oid,
                        steps,
                    ));
                }
                steps.push(Step::Relabel);
                Ok(-1)
            }
            Ok(Pathway::By(step)) => {
                steps.push(step);
                Ok(self.coerce_to_domain(SqlType::new(base.oid), base, to.oid, steps))
            }
            Err(no_steps) => {
                use BuiltinTypeKind::Composite;
                if source.kind == Composite && to.oid.0 == oid::RECORD {
                    steps.push(Step::Relabel);
                    Ok(-1)
                } else if from.oid.0 == oid::RECORD && target.kind == Composite {
                    steps.push(Step::Row);
                    Ok(-1)
                } else {
                    Err(no_steps)
                }
            }
        }
    }

    /// PostgreSQL's `coerce_to_domain`; nothing when the type is no domain.
    fn coerce_to_domain(&self, value: SqlType, base: SqlType, domain: Oid, steps: &mut Vec<Step>) -> i32 {
        if base.oid == domain {
            return value.typmod;
        }
        self.coerce_typmod(value, base.typmod, steps);
        steps.push(Step::Domain { constrained: self.has_domain_constraints(domain) });
        -1
    }

    /// Whether it is known what gives a value of the type other modifiers. The code of an extension's type is not.
    fn knows_length_coercion(&self, oid: Oid) -> bool {
        let element = self.facts(oid).and_then(|facts| facts.element);
        builtin::type_by_oid(element.unwrap_or(oid).0).is_some()
    }

    /// PostgreSQL's `coerce_type_typmod`.
    fn coerce_typmod(&self, value: SqlType, typmod: i32, steps: &mut Vec<Step>) {
        if value.typmod == typmod {
            return;
        }
        let element = self.facts(value.oid).and_then(|facts| facts.element);
        let length_function = builtin::cast(element.unwrap_or(value.oid).0, element.unwrap_or(value.oid).0);
        steps.push(match length_function {
            Some(_) if typmod >= 0 && element.is_some() => Step::Elements { volatility: Volatility::Immutable },
            Some(_) if typmod >= 0 => Step::Length { no_op: typmod::is_no_op(value.oid.0, value.typmod, typmod) },
            _ => Step::Relabel,
        });
    }

    /// PostgreSQL's `find_coercion_pathway`.
    pub(super) fn pathway(&self, from: Oid, to: Oid, context: CastContext) -> Result<Pathway, NoSteps> {
        let source = self.base_type(SqlType::new(from)).oid;
        let target = self.base_type(SqlType::new(to)).oid;
        if source == target {
            return Ok(Pathway::Relabel);
        }
        if let Some(cast) = self.cast(source, target) {
            // With a row in pg_cast there is no automatic cast.
            return if context < cast.context {
                Err(NoSteps::Impossible)
            } else {
                Ok(self.cast_pathway(source, target, &cast))
            };
        }
        let (Some(source_facts), Some(target_facts)) = (self.facts(source), self.facts(target)) else {
            return Err(NoSteps::Unknown);
        };
        if let (Some(source_element), Some(target_element)) = (source_facts.element, target_facts.element)
            && !matches!(target.0, oid::OIDVECTOR | oid::INT2VECTOR)
        {
            match self.pathway(source_element, target_element, context) {
                Ok(Pathway::Relabel) => return Ok(Pathway::By(Step::Elements { volatility: Volatility::Immutable })),
                Ok(Pathway::By(step)) => return Ok(Pathway::By(Step::Elements { volatility: step.volatility() })),
                Err(NoSteps::Unknown) => return Err(NoSteps::Unknown),
                Err(NoSteps::Impossible) => {}
            }
        }
        let automatic = context >= CastContext::Assignment && target_facts.category == TypeCategory::String
            || context >= CastContext::Explicit && source_facts.category == TypeCategory::String;
        if automatic {
            Ok(Pathway::By(Step::ViaIo { volatility: source_facts.output.max(target_facts.input) }))
        } else if self.may_have_unseen_casts(source) || self.may_have_unseen_casts(target) {
            Err(NoSteps::Unknown)
        } else {
            Err(NoSteps::Impossible)
        }
    }

    fn cast_pathway(&self, source: Oid, target: Oid, cast: &Cast) -> Pathway {
        match cast.method {
            CastMethod::Binary => Pathway::Relabel,
            CastMethod::Function => {
                Pathway::By(Step::Function { name: cast.function.into(), source, target, volatility: cast.volatility })
            }
            CastMethod::InOut => {
                let output = self.facts(source).map_or(Volatility::Volatile, |facts| facts.output);
                let input = self.facts(target).map_or(Volatility::Volatile, |facts| facts.input);
                Pathway::By(Step::ViaIo { volatility: output.max(input) })
            }
        }
    }

    fn cast(&self, source: Oid, target: Oid) -> Option<Cast> {
        if source.is_builtin() && target.is_builtin() {
            let row = builtin::cast_in(source.0, target.0, self.target)?;
            return Some(Cast {
                context: row.context,
                method: row.method,
                volatility: row.volatility,
                function: row.function,
            });
        }
        let (source, target) = (self.type_name(source)?, self.type_name(target)?);
        let extensions = self.schema.extensions();
        let row = extensions
            .iter()
            .flat_map(|extension| extension.casts)
            .find(|row| row.source == source && row.target == target)?;
        Some(Cast { context: row.context, method: row.method, volatility: row.volatility, function: "cast" })
    }

    /// CREATE CAST is not followed, and base types of the user or of unknown extensions live on it.
    fn may_have_unseen_casts(&self, oid: Oid) -> bool {
        if oid.is_builtin() {
            return false;
        }
        let is_base = self.facts(oid).is_none_or(|facts| facts.kind == BuiltinTypeKind::Base);
        is_base && self.type_name(oid).is_none_or(|name| self.extension_type(&name).is_none())
    }

    /// Whether a type is implicitly cast to a built-in base type. `None` unless `pg_cast` alone decides that, as in most
    /// cases when an overload is chosen.
    fn is_implicit_cast(&self, from: Oid, to: Oid) -> Option<bool> {
        builtin::type_by_oid(to.0).filter(|target| target.kind == BuiltinTypeKind::Base)?;
        if let Some(source) = builtin::type_by_oid(from.0) {
            let casts = || builtin::implicit_casts_from(from.0, self.target);
            return (source.kind == BuiltinTypeKind::Base).then(|| casts().any(|target| target == to.0));
        }
        // Domains become what their base type becomes, and base types of extensions have casts of their own.
        let has_no_casts = matches!(
            self.schema.type_by_oid(from)?.kind,
            TypeKind::Enum { .. } | TypeKind::Composite { .. } | TypeKind::Range { .. } | TypeKind::Multirange { .. }
        );
        has_no_casts.then_some(false)
    }

    /// PostgreSQL's `can_coerce_type` for one argument; `None` where it is not known.
    pub(super) fn can_coerce(&self, from: Oid, to: Oid, context: CastContext) -> Option<bool> {
        if from == to || from.0 == oid::UNKNOWN || is_pseudo_target(to) {
            return Some(true);
        }
        if context == CastContext::Implicit
            && let Some(answer) = self.is_implicit_cast(from, to)
        {
            return Some(answer);
        }
        match self.coercion_steps(SqlType::new(from), SqlType::new(to), context) {
            Ok(_) => Some(true),
            Err(NoSteps::Impossible) => Some(false),
            Err(NoSteps::Unknown) => None,
        }
    }
}

/// A row of `pg_cast`, of the server or of an extension.
struct Cast {
    context: CastContext,
    method: CastMethod,
    volatility: Volatility,
    function: &'static str,
}

/// Accepts any value; polymorphic types are settled before.
fn is_pseudo_target(oid: Oid) -> bool {
    matches!(
        oid.0,
        oid::ANY
            | oid::ANYELEMENT
            | oid::ANYNONARRAY
            | oid::ANYARRAY
            | oid::ANYENUM
            | oid::ANYRANGE
            | oid::ANYMULTIRANGE
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
            | oid::ANYCOMPATIBLERANGE
            | oid::ANYCOMPATIBLEMULTIRANGE
    )
}
