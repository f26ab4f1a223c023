//! Effects of ALTER COLUMN ... TYPE: whether the table is rewritten, and whether an index can stay.

use super::coercion::NoSteps;
use super::{Analyzer, Scope, Step};
use crate::builtin::{self, CastContext, OperatorClass, oid};
use crate::catalog::{Oid, SqlType};
use pgvet_syntax::ast::{Expr, ExprKind, Literal};

/// The effect of ALTER COLUMN ... TYPE on the column's storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeChange {
    /// PostgreSQL refuses it with this SQLSTATE.
    Impossible(&'static str),
    Rewrite,
    NoRewrite {
        /// A btree index on the column with default operator class need not be rebuilt.
        same_operator_class: bool,
    },
    /// A type is not known: the reason.
    Unknown(String),
}

const DATATYPE_MISMATCH: &str = "42804";
const FEATURE_NOT_SUPPORTED: &str = "0A000";

impl Analyzer<'_> {
    /// PostgreSQL's `ATPrepAlterColumnType` and `ATColumnChangeRequiresRewrite` (src/backend/commands/tablecmds.c).
    ///
    /// `column` is the altered column and `scope` its table. `timezone_is_utc` is whether the session's time zone has
    /// offset zero always, which counts from PostgreSQL 12 on.
    pub fn type_change(
        &self,
        scope: &Scope,
        column: &str,
        old: SqlType,
        new: SqlType,
        using: Option<&Expr>,
        timezone_is_utc: bool,
    ) -> TypeChange {
        let same = old == new && old.is_known();
        if same && using.is_none() {
            return TypeChange::NoRewrite { same_operator_class: true };
        }
        let mut steps = Vec::new();
        let mut reduced = true;
        let mut value = old;
        if let Some(using) = using {
            match self.column_under_casts(using, column, old, &mut steps) {
                Ok(Some(sql_type)) => value = sql_type,
                Ok(None) => {
                    let typed = self.infer(using, scope);
                    if typed.has_subquery {
                        return TypeChange::Impossible(FEATURE_NOT_SUPPORTED);
                    }
                    reduced = false;
                    value = typed.sql_type;
                }
                Err(NoSteps::Impossible) => return TypeChange::Impossible("42846"),
                Err(NoSteps::Unknown) => return self.unknown_change(old, new),
            }
        }
        match self.coercion_steps(value, new, CastContext::Assignment) {
            Err(NoSteps::Impossible) => TypeChange::Impossible(DATATYPE_MISMATCH),
            // Whatever the type of the expression is, the table is rewritten.
            Err(NoSteps::Unknown) | Ok(_) if !reduced => TypeChange::Rewrite,
            Err(NoSteps::Unknown) => self.unknown_change(old, new),
            Ok(more) => {
                steps.extend(more);
                if steps.iter().all(|step| self.keeps_bytes(step, timezone_is_utc)) {
                    TypeChange::NoRewrite { same_operator_class: self.same_operator_class(old, new) }
                } else {
                    TypeChange::Rewrite
                }
            }
        }
    }

    fn unknown_change(&self, old: SqlType, new: SqlType) -> TypeChange {
        let name = |sql_type| self.format_type(sql_type);
        TypeChange::Unknown(format!("casts between {} and {} are not known", name(old), name(new)))
    }

    /// The type of `using` where it is the column under casts and COLLATE, with the steps of the casts; `None` for any
    /// other expression.
    fn column_under_casts(
        &self,
        using: &Expr,
        column: &str,
        old: SqlType,
        steps: &mut Vec<Step>,
    ) -> Result<Option<SqlType>, NoSteps> {
        match &using.kind {
            ExprKind::Column(parts) if parts.last().is_some_and(|name| name == column) => Ok(Some(old)),
            ExprKind::Collate { operand, .. } => self.column_under_casts(operand, column, old, steps),
            ExprKind::Cast { operand, target } => {
                let Some(inner) = self.column_under_casts(operand, column, old, steps)? else { return Ok(None) };
                let target = self.resolve_type(target);
                steps.extend(self.coercion_steps(inner, target, CastContext::Explicit)?);
                Ok(Some(target))
            }
            ExprKind::Call(call) => match self.identity_argument(call) {
                Some((argument, sql_type)) => {
                    let inner = self.column_under_casts(argument, column, old, steps)?;
                    Ok(inner.filter(|inner| inner.oid == sql_type.oid))
                }
                None => Ok(None),
            },
            // The planner drops the other branches.
            ExprKind::Case { operand: None, branches, .. } => match branches.first() {
                Some((condition, result)) if matches!(condition.kind, ExprKind::Literal(Literal::Boolean(true))) => {
                    self.column_under_casts(result, column, old, steps)
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The nodes that `ATColumnChangeRequiresRewrite` looks through.
    fn keeps_bytes(&self, step: &Step, timezone_is_utc: bool) -> bool {
        match step {
            Step::Relabel | Step::Length { no_op: true } | Step::Domain { constrained: false } => true,
            Step::Function { source, target, .. } => {
                matches!((source.0, target.0), (oid::TIMESTAMP, oid::TIMESTAMPTZ) | (oid::TIMESTAMPTZ, oid::TIMESTAMP))
                    && timezone_is_utc
                    && self.target.at_least(12)
            }
            _ => false,
        }
    }

    /// Whether a btree index with default operator class can stay, as `CheckIndexCompatible`
    /// (src/backend/commands/indexcmds.c) decides. It compares collation and operator class, and the type itself where
    /// the class is polymorphic.
    fn same_operator_class(&self, old: SqlType, new: SqlType) -> bool {
        let collation = |sql_type: SqlType| self.facts(sql_type.oid).map(|facts| facts.collation);
        let class = |sql_type| self.default_operator_class("btree", sql_type);
        match (class(old), class(new)) {
            (Some(old_class), Some(new_class)) => {
                old_class.name == new_class.name
                    && old_class.input == new_class.input
                    && collation(old) == collation(new)
                    && (old.oid == new.oid || !is_polymorphic(old_class))
            }
            // No operator class, so no such index either; or one that only an extension knows.
            _ => old.oid == new.oid,
        }
    }

    /// [`builtin::default_operator_class`] for any type; `None` also for types whose class only an extension knows.
    pub fn default_operator_class(&self, method: &str, sql_type: SqlType) -> Option<&'static OperatorClass> {
        use crate::builtin::BuiltinTypeKind as Kind;
        let base = self.base_type(sql_type).oid;
        let stand_in = match self.facts(base)?.kind {
            _ if base.is_builtin() => base,
            Kind::Enum => Oid(oid::ANYENUM),
            Kind::Array => Oid(oid::ANYARRAY),
            Kind::Range => Oid(oid::ANYRANGE),
            Kind::Multirange => Oid(oid::ANYMULTIRANGE),
            Kind::Composite => Oid(oid::RECORD),
            _ => return None,
        };
        builtin::default_operator_class(method, stand_in.0)
    }
}

fn is_polymorphic(class: &OperatorClass) -> bool {
    matches!(class.input, oid::ANYARRAY | oid::ANYENUM | oid::ANYRANGE | oid::ANYMULTIRANGE)
}
