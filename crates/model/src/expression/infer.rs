//! The type and volatility of an expression, and what it uses.

use super::coercion::NoSteps;
use super::overload::{CallArguments, Candidate, Resolution};
use super::refusal::Refused;
use super::{Analyzer, Scope, constant, parameter_at};
use crate::builtin::{CastContext, Volatility, oid};
use crate::catalog::{Oid, SqlType};
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, IndirectionStep, OperatorForm, SubqueryKind, TypeName};
use smol_str::SmolStr;

/// The inferred properties of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Its type; PostgreSQL's `unknown` (705) for a bare string, [`SqlType::UNKNOWN`] where it could not be told.
    pub sql_type: SqlType,
    /// The greatest volatility of all functions, operators and casts in it, as `contain_volatile_functions` and
    /// `contain_mutable_functions` (src/backend/optimizer/util/clauses.c) see it.
    pub volatility: Volatility,
    /// The first volatile function in it.
    pub volatile_function: Option<SmolStr>,
    pub has_subquery: bool,
    /// Names of the columns that it uses, outside of subqueries; a whole-row reference is `*`.
    pub columns: Vec<SmolStr>,
    /// Relations that its subqueries read.
    pub relations: Vec<Oid>,
    /// User functions that it calls, also those that are inlined.
    pub functions: Vec<Oid>,
    /// Functions, types, operators and relations that are not known; each makes the volatility a guess on the safe side.
    pub unknown: Vec<String>,
    /// Why PostgreSQL refuses the expression.
    pub refused: Option<Refused>,
}

impl Analyzer<'_> {
    /// The type and volatility of an expression.
    pub fn infer(&self, expression: &Expr, scope: &Scope) -> Typed {
        let mut inference = Inference::new(*self);
        inference.typed.sql_type = inference.visit(expression, scope);
        inference.typed
    }

    /// The type of an expression alone: what cannot change it is not looked at.
    pub fn type_of(&self, expression: &Expr, scope: &Scope) -> SqlType {
        let mut inference = Inference::new(*self);
        inference.type_only = true;
        inference.visit(expression, scope)
    }
}

/// Deeper expressions are given up: they would need more stack than a thread has.
const MAX_DEPTH: u32 = 128;

/// An inference under way.
pub(super) struct Inference<'a> {
    pub(super) analyzer: Analyzer<'a>,
    pub(super) typed: Typed,
    /// Only the type is asked for; the rest of `typed` is not complete.
    pub(super) type_only: bool,
    /// Depth of the expression.
    pub(super) depth: u32,
    /// Depth of subqueries.
    pub(super) level: u32,
    /// Depth of places where a name may mean something other than it seems to, so that nothing is refused.
    pub(super) blind: u32,
    /// User functions whose bodies are being inlined, against recursion.
    pub(super) inlining: Vec<Oid>,
    /// How many calls were inlined: functions that call others twice each would make it grow without bound.
    pub(super) inlined: u32,
}

impl<'a> Inference<'a> {
    pub(super) fn new(analyzer: Analyzer<'a>) -> Self {
        let typed = Typed {
            sql_type: SqlType::UNKNOWN,
            volatility: Volatility::Immutable,
            volatile_function: None,
            has_subquery: false,
            columns: Vec::new(),
            relations: Vec::new(),
            functions: Vec::new(),
            unknown: Vec::new(),
            refused: None,
        };
        Self { analyzer, typed, type_only: false, depth: 0, level: 0, blind: 0, inlining: Vec::new(), inlined: 0 }
    }

    pub(super) fn visit(&mut self, expression: &Expr, scope: &Scope) -> SqlType {
        if self.depth == MAX_DEPTH {
            self.unknown(format!("an expression nested more than {MAX_DEPTH} deep"));
            return SqlType::UNKNOWN;
        }
        if self.type_only
            && let Some(sql_type) = self.type_without_operands(expression)
        {
            return sql_type;
        }
        self.depth += 1;
        let sql_type = self.visit_kind(expression, scope);
        self.depth -= 1;
        sql_type
    }

    /// The type of an expression that is the same whatever its operands are.
    fn type_without_operands(&self, expression: &Expr) -> Option<SqlType> {
        match &expression.kind {
            ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::IsNull { .. }
            | ExprKind::BooleanTest { .. }
            | ExprKind::Subquery { kind: SubqueryKind::Exists, .. } => Some(SqlType::new(Oid(oid::BOOL))),
            ExprKind::Cast { target, .. } => Some(self.analyzer.resolve_type(target)),
            ExprKind::Call(call) => self.analyzer.only_result(call.schema.as_deref(), &call.name),
            ExprKind::Operator { form: OperatorForm::NullIf, .. } => None,
            ExprKind::Operator { form: OperatorForm::Plain, schema, operator, .. } => {
                self.analyzer.only_operator_result(schema.as_deref(), operator)
            }
            ExprKind::Operator { .. } => Some(SqlType::new(Oid(oid::BOOL))),
            ExprKind::Row(_) => Some(SqlType::new(Oid(oid::RECORD))),
            _ => None,
        }
    }

    fn visit_kind(&mut self, expression: &Expr, scope: &Scope) -> SqlType {
        let boolean = SqlType::new(Oid(oid::BOOL));
        match &expression.kind {
            ExprKind::Column(path) => self.column(path, scope),
            ExprKind::Star(_) => {
                self.use_column("*");
                SqlType::UNKNOWN
            }
            ExprKind::Literal(literal) => constant::literal_type(literal),
            ExprKind::Parameter(number) => {
                let index = usize::try_from(*number).unwrap_or_default().wrapping_sub(1);
                scope.parameters.get(index).copied().unwrap_or(SqlType::UNKNOWN)
            }
            ExprKind::Operator { .. } | ExprKind::Call(_) if parameter_at(expression).is_some() => SqlType::UNKNOWN,
            ExprKind::Call(call) => self.call(call, scope),
            ExprKind::Operator { schema, operator, form, operands } => {
                let types: Vec<SqlType> = operands.iter().map(|operand| self.visit(operand, scope)).collect();
                self.refuse_labels(operator, *form, operands, &types);
                self.operator(schema.as_deref(), operator, *form, &types)
            }
            ExprKind::Cast { operand, target } => {
                if let ExprKind::Array(items) = &operand.kind {
                    self.array_cast(items, target, scope)
                } else {
                    let from = self.visit(operand, scope);
                    let to = self.cast(from, target);
                    self.refuse_label(to, operand);
                    to
                }
            }
            ExprKind::And(list) | ExprKind::Or(list) => {
                for operand in list {
                    self.visit(operand, scope);
                }
                boolean
            }
            ExprKind::Not(operand) | ExprKind::IsNull { operand, .. } | ExprKind::BooleanTest { operand, .. } => {
                self.visit(operand, scope);
                boolean
            }
            ExprKind::Case { operand, branches, otherwise } => {
                self.case(operand.as_deref(), branches, otherwise.as_deref(), scope)
            }
            ExprKind::Coalesce(list) | ExprKind::MinMax { operands: list, .. } => self.common(list, scope),
            ExprKind::Array(list) => {
                let element = self.common(list, scope);
                // ARRAY[ARRAY[1]] is int4[] too.
                if self.analyzer.element_type(element.oid).is_some() { element } else { self.array_of(element) }
            }
            ExprKind::Row(list) => {
                for item in list {
                    self.visit(item, scope);
                }
                SqlType::new(Oid(oid::RECORD))
            }
            ExprKind::Subquery { kind, test, query } => {
                let test = test.as_deref().map(|test| self.visit(test, scope));
                let output = self.subquery(query, scope);
                match kind {
                    SubqueryKind::Exists => boolean,
                    SubqueryKind::Any | SubqueryKind::AnyOther | SubqueryKind::All => {
                        // The operator and the other columns are not looked at.
                        self.blind += 1;
                        let operands = [test.unwrap_or(SqlType::UNKNOWN), output];
                        self.operator(None, "=", OperatorForm::Plain, &operands);
                        self.blind -= 1;
                        boolean
                    }
                    SubqueryKind::Scalar => output,
                    SubqueryKind::Array => self.array_of(output),
                }
            }
            ExprKind::Collate { operand, .. } => self.visit(operand, scope),
            ExprKind::SqlValue(keyword, _) => {
                self.raise(Volatility::Stable, keyword);
                constant::sql_value_type(keyword)
            }
            ExprKind::Indirection { operand, steps } => {
                let start = self.visit(operand, scope);
                self.indirection(start, steps, scope)
            }
            ExprKind::Default => SqlType::UNKNOWN,
            ExprKind::Other(node, operands) => {
                for operand in operands {
                    self.visit(operand, scope);
                }
                // JSON constructors and similar nodes depend on settings and output functions at most; nothing looks
                // into XML.
                if *node != "XmlExpr" {
                    self.raise(Volatility::Stable, "");
                }
                SqlType::UNKNOWN
            }
        }
    }

    pub(super) fn raise(&mut self, volatility: Volatility, name: &str) {
        self.typed.volatility = self.typed.volatility.max(volatility);
        if volatility == Volatility::Volatile && self.typed.volatile_function.is_none() && !name.is_empty() {
            self.typed.volatile_function = Some(name.into());
        }
    }

    /// Notes what is not known; it may be anything.
    pub(super) fn unknown(&mut self, what: String) {
        self.typed.volatility = Volatility::Volatile;
        if !self.typed.unknown.contains(&what) {
            self.typed.unknown.push(what);
        }
    }

    fn use_column(&mut self, name: &str) {
        if self.level == 0 && !self.typed.columns.iter().any(|column| column == name) {
            self.typed.columns.push(name.into());
        }
    }

    fn column(&mut self, path: &[SmolStr], scope: &Scope) -> SqlType {
        let Some(name) = path.last() else { return SqlType::UNKNOWN };
        match scope.column(path) {
            Some(sql_type) => {
                self.use_column(name);
                sql_type
            }
            None if path.len() == 1 && scope.relation(name).is_some() => {
                self.use_column("*");
                SqlType::UNKNOWN
            }
            None => {
                self.use_column(name);
                SqlType::UNKNOWN
            }
        }
    }

    fn call(&mut self, call: &FunctionCall, scope: &Scope) -> SqlType {
        let mut types = Vec::with_capacity(call.arguments.len());
        let mut volatilities = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let before = std::mem::replace(&mut self.typed.volatility, Volatility::Immutable);
            types.push(self.visit(&argument.value, scope));
            volatilities.push(self.typed.volatility);
            self.typed.volatility = self.typed.volatility.max(before);
        }
        if !self.type_only {
            for part in call.filter.iter().chain(&call.order_by).chain(call.window.iter().flatten()) {
                self.visit(part, scope);
            }
        }
        if call.star {
            types.clear();
        }
        let mut arguments = CallArguments {
            types: types.iter().map(|sql_type| sql_type.oid).collect(),
            names: call.arguments.iter().filter_map(|argument| argument.name.as_ref()).collect(),
            variadic: call.variadic,
        };
        let analyzer = self.analyzer;
        let resolve = |arguments: &_| analyzer.resolve_function(call.schema.as_deref(), &call.name, arguments);
        let mut meant = resolve(&arguments);
        if matches!(meant, Resolution::NoMatch(_)) && !call.order_by.is_empty() {
            // An expression in WITHIN GROUP is an argument, too.
            let ordered: Vec<SqlType> = call.order_by.iter().map(|part| self.visit(part, scope)).collect();
            types.extend(ordered);
            arguments.types = types.iter().map(|sql_type| sql_type.oid).collect();
            meant = resolve(&arguments);
        }
        match meant {
            Resolution::One(candidate) => self.chosen(&call.name, &candidate, &types, Some(&volatilities)),
            Resolution::Cast(target) => {
                self.coerce(types[0], target, CastContext::Explicit);
                target
            }
            Resolution::OneOf(candidates) => self.undecided(&call.name, &candidates),
            Resolution::NoMatch(candidates) => {
                self.refuse_call(call, &arguments);
                self.undecided(&call.name, &candidates)
            }
            Resolution::NotFound => {
                self.refuse_call(call, &arguments);
                self.raise(Volatility::Volatile, &call.name);
                self.unknown(format!("function {}", call.name));
                SqlType::UNKNOWN
            }
        }
    }

    pub(super) fn chosen(
        &mut self,
        name: &str,
        candidate: &Candidate,
        types: &[SqlType],
        arguments: Option<&[Volatility]>,
    ) -> SqlType {
        let returns = self.analyzer.returned(candidate, types);
        if self.type_only {
            return returns;
        }
        for (from, to) in types.iter().zip(&candidate.arguments) {
            if from.is_known() && to.is_valid() {
                self.coerce(*from, SqlType { oid: *to, typmod: -1 }, CastContext::Implicit);
            }
        }
        let inlined = match (&candidate.user, arguments) {
            (Some(function), Some(arguments)) => {
                self.use_function(function.oid);
                self.inline(function, arguments)
            }
            _ => false,
        };
        if !inlined {
            self.raise(self.concatenation(candidate, types).unwrap_or(candidate.volatility), name);
        }
        returns
    }

    /// `text || x` is a SQL function that PostgreSQL inlines (textanycat, anytextcat): it is as volatile as the output of
    /// x, not stable as declared.
    fn concatenation(&self, candidate: &Candidate, types: &[SqlType]) -> Option<Volatility> {
        let other = match candidate.arguments.as_slice() {
            [Oid(oid::TEXT), Oid(oid::ANYNONARRAY)] => types.get(1)?,
            [Oid(oid::ANYNONARRAY), Oid(oid::TEXT)] => types.first()?,
            _ => return None,
        };
        self.analyzer.facts(other.oid).map(|facts| facts.output)
    }

    /// Several overloads remain: where they agree, nothing is lost.
    pub(super) fn undecided(&mut self, name: &str, candidates: &[Candidate]) -> SqlType {
        let volatility = candidates.iter().map(|candidate| candidate.volatility).max().unwrap_or(Volatility::Volatile);
        if candidates.iter().any(|candidate| candidate.volatility != volatility) {
            self.typed.unknown.push(format!("which overload of {name}"));
        }
        for function in candidates.iter().filter_map(|candidate| candidate.user.as_ref()) {
            self.use_function(function.oid);
        }
        self.raise(volatility, name);
        match candidates {
            [first, rest @ ..] if rest.iter().all(|candidate| candidate.returns == first.returns) => {
                self.analyzer.returned(first, &[])
            }
            _ => SqlType::UNKNOWN,
        }
    }

    fn use_function(&mut self, oid: Oid) {
        if !self.typed.functions.contains(&oid) {
            self.typed.functions.push(oid);
        }
    }

    fn cast(&mut self, from: SqlType, target: &TypeName) -> SqlType {
        let to = self.analyzer.resolve_type(target);
        if !to.is_known() && from.oid.0 != oid::UNKNOWN {
            self.unknown(format!("type {}", target.name));
        }
        self.coerce(from, to, CastContext::Explicit);
        to
    }

    /// `ARRAY[...]::t[]` casts the elements one by one.
    fn array_cast(&mut self, items: &[Expr], target: &TypeName, scope: &Scope) -> SqlType {
        let to = self.analyzer.resolve_type(target);
        let Some(element) = self.analyzer.element_type(to.oid) else {
            let from = self.common(items, scope);
            let array = self.array_of(from);
            return self.cast(array, target);
        };
        for item in items {
            let from = self.visit(item, scope);
            // Rows of a multidimensional array are arrays already.
            let is_row = self.analyzer.element_type(from.oid).is_some();
            self.coerce(
                from,
                if is_row { to } else { SqlType { oid: element, typmod: to.typmod } },
                CastContext::Explicit,
            );
        }
        to
    }

    fn coerce(&mut self, from: SqlType, to: SqlType, context: CastContext) {
        let steps = self.analyzer.coercion_steps(from, to, context);
        if steps == Err(NoSteps::Impossible) && context == CastContext::Explicit {
            self.refuse_cast(from, to);
        }
        if let Ok(steps) = steps {
            for step in steps {
                self.raise(step.volatility(), "");
            }
        } else if context == CastContext::Explicit && from.oid.0 != oid::UNKNOWN {
            if !from.is_known() && to.is_known() {
                // Any source: a cast is at worst stable, unless a user made a volatile one.
                self.raise(Volatility::Stable, "");
            } else if to.is_known() {
                self.unknown(format!("cast to {}", self.analyzer.format_type(to)));
            }
        }
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        scope: &Scope,
    ) -> SqlType {
        if !self.type_only {
            let operand = operand.map(|operand| self.visit(operand, scope));
            for (written, _) in branches {
                let condition = self.visit(written, scope);
                if let Some(operand) = operand {
                    self.refuse_label(operand, written);
                    self.operator(None, "=", OperatorForm::Plain, &[operand, condition]);
                }
            }
        }
        // ELSE goes first, as in PostgreSQL's transformCaseExpr.
        let results = otherwise.into_iter().chain(branches.iter().map(|(_, result)| result));
        let types: Vec<SqlType> = results.map(|result| self.visit(result, scope)).collect();
        self.common_type(&types)
    }

    fn common(&mut self, list: &[Expr], scope: &Scope) -> SqlType {
        let types: Vec<SqlType> = list.iter().map(|item| self.visit(item, scope)).collect();
        self.common_type(&types)
    }

    pub(super) fn common_type(&mut self, types: &[SqlType]) -> SqlType {
        match self.analyzer.select_common_type(types) {
            Ok(chosen) => {
                if !self.type_only && chosen.is_known() {
                    types.iter().for_each(|sql_type| self.coerce(*sql_type, chosen, CastContext::Implicit));
                }
                chosen
            }
            Err((first, second)) => {
                self.refuse_common_type(first, second);
                SqlType::UNKNOWN
            }
        }
    }

    fn array_of(&self, element: SqlType) -> SqlType {
        self.analyzer.array_type(element.oid).map_or(SqlType::UNKNOWN, |oid| SqlType { oid, typmod: element.typmod })
    }

    fn indirection(&mut self, start: SqlType, steps: &[IndirectionStep], scope: &Scope) -> SqlType {
        let mut current = start;
        for step in steps {
            match step {
                IndirectionStep::Field(name) => current = self.field(current, name),
                IndirectionStep::AllFields => current = SqlType::UNKNOWN,
                IndirectionStep::Subscript(index) => {
                    if let Some(index) = index {
                        self.visit(index, scope);
                    }
                    if current.oid.0 != oid::JSONB {
                        let element = self.analyzer.element_type(current.oid);
                        current = element.map_or(SqlType::UNKNOWN, |oid| SqlType { oid, typmod: current.typmod });
                    }
                }
                IndirectionStep::Slice(from, to) => {
                    for bound in from.iter().chain(to) {
                        self.visit(bound, scope);
                    }
                }
            }
        }
        current
    }

    fn field(&self, row: SqlType, name: &str) -> SqlType {
        let base = self.analyzer.base_type(row).oid;
        let columns = self.analyzer.schema.type_by_oid(base).and_then(|definition| match definition.kind {
            crate::catalog::TypeKind::Composite { relation } => self.analyzer.schema.columns(relation),
            _ => None,
        });
        let column = columns.iter().flatten().find(|(column, _)| column == name);
        column.map_or(SqlType::UNKNOWN, |(_, sql_type)| *sql_type)
    }
}
