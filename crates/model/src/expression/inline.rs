//! Simple SQL functions, which PostgreSQL replaces by their body before it asks how volatile an expression is.
//!
//! `inline_function` (src/backend/optimizer/util/clauses.c).

use super::infer::Inference;
use super::{Analyzer, Scope, ScopeColumn};
use crate::builtin::{self, CastContext, Volatility, oid};
use crate::catalog::{Function, SqlType};
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, OperatorForm, Query, QueryBody};

/// More calls of one expression are not inlined; they keep the volatility that they are declared with, which is never
/// below that of their body.
const MAX_INLINED: u32 = 500;

impl Inference<'_> {
    /// Inlines the body of the function, if PostgreSQL would; `arguments` are the volatilities
    /// of the arguments.
    pub(super) fn inline(&mut self, function: &Function, arguments: &[Volatility]) -> bool {
        if self.inlined == MAX_INLINED
            || self.inlining.contains(&function.oid)
            || arguments.len() != function.input_types().count()
        {
            return false;
        }
        let Some(query) = self.analyzer.inlinable_query(function) else { return false };
        let Some(value) = only_value(&query) else { return false };
        let mut body = Inference::new(self.analyzer);
        body.depth = self.depth;
        body.inlined = self.inlined + 1;
        body.inlining.clone_from(&self.inlining);
        body.inlining.push(function.oid);
        let sql_type = body.visit(value, &parameter_scope(function));
        self.inlined = body.inlined;
        let typed = body.typed;
        if typed.has_subquery || !typed.unknown.is_empty() || typed.volatility > function.volatility {
            return false;
        }
        if function.strict && !is_strict_in_all_parameters(value, function) {
            return false;
        }
        // A volatile argument must not be evaluated twice.
        let repeats = |(position, volatility): (usize, &Volatility)| {
            *volatility == Volatility::Volatile && uses(value, function, position) > 1
        };
        if typed.volatility == Volatility::Volatile || arguments.iter().enumerate().any(repeats) {
            return false;
        }
        let Ok(steps) = self.analyzer.coercion_steps(sql_type, function.returns, CastContext::Assignment) else {
            return false;
        };
        for step in steps {
            self.raise(step.volatility(), "");
        }
        self.raise(typed.volatility, &function.name);
        self.typed.functions.extend(typed.functions);
        true
    }
}

impl Analyzer<'_> {
    fn inlinable_query(&self, function: &Function) -> Option<std::sync::Arc<Query>> {
        let simple = function.language == "sql"
            && !function.procedure
            && !function.aggregate
            && !function.security_definer
            && !function.returns_set
            && function.settings.is_empty()
            && function.returns.oid.0 != oid::RECORD;
        if simple { self.schema.sql_body(function) } else { None }
    }

    /// The argument of a call of an inlinable function that returns just that argument, and the parameter's type.
    pub(super) fn identity_argument<'e>(&self, call: &'e FunctionCall) -> Option<(&'e Expr, SqlType)> {
        let functions = self.schema.functions_named(call.schema.as_deref(), &call.name);
        let ([function], [argument]) = (functions.as_slice(), call.arguments.as_slice()) else { return None };
        if !builtin::functions(&call.name).is_empty() || function.input_types().count() != 1 {
            return None;
        }
        let parameter = function.input_types().next()?;
        let query = self.inlinable_query(function)?;
        let value = only_value(&query)?;
        let is_identity = is_parameter(value, function, 0) && function.returns.oid == parameter.oid;
        is_identity.then_some((&argument.value, parameter))
    }
}

/// The value of `SELECT value` without anything else.
fn only_value(query: &Query) -> Option<&Expr> {
    let Query { with, body: QueryBody::Select(select), order_by, limit, offset, locking, .. } = query else {
        return None;
    };
    let plain = with.is_none()
        && order_by.is_empty()
        && limit.is_none()
        && offset.is_none()
        && locking.is_empty()
        && select.distinct.is_none()
        && select.into.is_none()
        && select.from.is_empty()
        && select.filter.is_none()
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.windows.is_empty();
    match select.targets.as_slice() {
        [target] if plain => Some(&target.value),
        _ => None,
    }
}

fn parameter_scope(function: &Function) -> Scope {
    let inputs = || function.parameters.iter().filter(|parameter| parameter.mode.is_input());
    let named = inputs()
        .filter_map(|parameter| Some(ScopeColumn { name: parameter.name.clone()?, sql_type: parameter.sql_type }));
    Scope {
        relations: Vec::new(),
        parameters: inputs().map(|parameter| parameter.sql_type).collect(),
        variables: named.collect(),
        ..Scope::default()
    }
}

fn is_parameter(value: &Expr, function: &Function, position: usize) -> bool {
    let mut inputs = function.parameters.iter().filter(|parameter| parameter.mode.is_input());
    match &value.kind {
        ExprKind::Parameter(number) => usize::try_from(*number) == Ok(position + 1),
        ExprKind::Column(path) => {
            let name = inputs.nth(position).and_then(|parameter| parameter.name.as_ref());
            name.is_some() && path.last() == name
        }
        _ => false,
    }
}

fn uses(value: &Expr, function: &Function, position: usize) -> usize {
    let mut count = 0;
    value.walk(&mut |part| count += usize::from(is_parameter(part, function, position)));
    count
}

/// Whether a null in any parameter makes the value null. False if that is not obvious.
fn is_strict_in_all_parameters(value: &Expr, function: &Function) -> bool {
    let mut strict = true;
    value.walk(&mut |part| {
        strict &= match &part.kind {
            ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Cast { .. } => true,
            ExprKind::Operator { operator, form: OperatorForm::Plain, schema: None, .. } => {
                let rows = builtin::operators(operator);
                !rows.is_empty() && rows.iter().all(|row| row.strict)
            }
            ExprKind::Call(call) => {
                let rows = builtin::functions(&call.name);
                !rows.is_empty() && rows.iter().all(|row| row.strict)
            }
            _ => false,
        };
    });
    strict && (0..function.input_types().count()).all(|position| uses(value, function, position) > 0)
}
