//! Which values a conversion to another type refuses, as a condition on the values.
//!
//! The conditions are exact. Where none is known, [`Refusals::Unknown`] says so.
//!
//! Sources: PostgreSQL 18, `src/backend/utils/adt`: `varchar.c`, `varbit.c`, `numeric.c`, `int8.c`, `float.c`, `bool.c`,
//! `uuid.c` and `enum.c`.

use super::{Analyzer, Scope, Step, typmod};
use crate::builtin::{self, BuiltinTypeKind, CastContext, TypeCategory, oid};
use crate::catalog::{Oid, SqlType, TypeKind};
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, OperatorForm};
use pgvet_syntax::deparse;
use pgvet_syntax::lexer::quote_identifier;

/// The values that a conversion refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusals {
    /// None.
    Never,
    /// Those for which the condition is true.
    When(String),
    Unknown,
}

impl Refusals {
    fn when(condition: impl Into<String>) -> Self {
        Self::When(condition.into())
    }

    /// What two conversions refuse, the second of which gets what the first yields.
    fn then(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Never => next(),
            Self::Unknown => Self::Unknown,
            Self::When(first) => match next() {
                Self::Never => Self::When(first),
                Self::Unknown => Self::Unknown,
                // The second must not be asked about what the first refuses.
                Self::When(second) => Self::When(format!("CASE WHEN {first} THEN true ELSE {second} END")),
            },
        }
    }
}

impl Analyzer<'_> {
    /// What ALTER COLUMN ... TYPE refuses of the values of a column. `using` is the expression behind USING.
    pub fn refused_values(
        &self,
        scope: &Scope,
        column: &str,
        old: SqlType,
        new: SqlType,
        using: Option<&Expr>,
    ) -> Refusals {
        let Some(using) = using else {
            return self.refused_by_cast(&quote_identifier(column), old, new, CastContext::Assignment);
        };
        let Ok(value) = written(using) else { return Refusals::Unknown };
        let from = self.type_of(using, scope);
        self.refused_within(using, scope).then(|| self.refused_by_cast(&value, from, new, CastContext::Assignment))
    }

    /// What the evaluation of an expression refuses.
    fn refused_within(&self, expression: &Expr, scope: &Scope) -> Refusals {
        let all_total = |items: &[Expr]| {
            if items.iter().all(|item| self.refused_within(item, scope) == Refusals::Never) {
                Refusals::Never
            } else {
                Refusals::Unknown
            }
        };
        match &expression.kind {
            ExprKind::Column(_) | ExprKind::Literal(_) => Refusals::Never,
            ExprKind::Collate { operand, .. } => self.refused_within(operand, scope),
            // If the literal is not valid, the statement is refused whatever the rows are.
            ExprKind::Cast { operand, .. } if matches!(operand.kind, ExprKind::Literal(_)) => Refusals::Never,
            ExprKind::Cast { operand, target } => {
                let Ok(value) = written(operand) else { return Refusals::Unknown };
                let (from, to) = (self.type_of(operand, scope), self.resolve_type(target));
                self.refused_within(operand, scope)
                    .then(|| self.refused_by_cast(&value, from, to, CastContext::Explicit))
            }
            ExprKind::Case { operand: None, branches, otherwise } => {
                self.refused_by_branches(branches, otherwise.as_deref(), scope)
            }
            ExprKind::Coalesce(items) | ExprKind::And(items) | ExprKind::Or(items) => all_total(items),
            ExprKind::Not(operand) | ExprKind::IsNull { operand, .. } | ExprKind::BooleanTest { operand, .. } => {
                all_total(std::slice::from_ref(operand))
            }
            ExprKind::Operator { schema: None, operator, form, operands } if is_total(operator, *form) => {
                all_total(operands)
            }
            ExprKind::Call(call) if self.is_total_call(call) => {
                let values = call.arguments.iter().map(|argument| &argument.value);
                if values.into_iter().all(|value| self.refused_within(value, scope) == Refusals::Never) {
                    Refusals::Never
                } else {
                    Refusals::Unknown
                }
            }
            _ => Refusals::Unknown,
        }
    }

    fn refused_by_branches(&self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, scope: &Scope) -> Refusals {
        let mut text = String::from("CASE");
        let mut refuses = false;
        let mut condition = |refusals: Refusals| match refusals {
            Refusals::Never => Some("false".to_owned()),
            Refusals::When(condition) => {
                refuses = true;
                Some(condition)
            }
            Refusals::Unknown => None,
        };
        for (test, result) in branches {
            let is_total = self.refused_within(test, scope) == Refusals::Never;
            let (Ok(test), true, Some(result)) =
                (written(test), is_total, condition(self.refused_within(result, scope)))
            else {
                return Refusals::Unknown;
            };
            text = format!("{text} WHEN {test} THEN {result}");
        }
        let otherwise = otherwise.map_or(Refusals::Never, |otherwise| self.refused_within(otherwise, scope));
        match condition(otherwise) {
            Some(result) if refuses => Refusals::When(format!("{text} ELSE {result} END")),
            Some(_) => Refusals::Never,
            None => Refusals::Unknown,
        }
    }

    /// What one cast refuses. `value` is the text of its operand.
    fn refused_by_cast(&self, value: &str, from: SqlType, to: SqlType, context: CastContext) -> Refusals {
        let Ok(steps) = self.coercion_steps(from, to, context) else { return Refusals::Unknown };
        let (from, base) = (self.base_type(from), self.base_type(to));
        let mut refusals = Refusals::Never;
        for step in steps {
            refusals = refusals.then(|| match step {
                Step::Relabel | Step::Length { no_op: true } | Step::Domain { constrained: false } => Refusals::Never,
                Step::Function { source, target, .. } => refused_by_function(value, source.0, target.0),
                Step::ViaIo { .. } => self.refused_as_text(value, from, to),
                Step::Length { no_op: false } => refused_length(value, from, base, context),
                Step::Elements { .. } | Step::Row | Step::Domain { constrained: true } => Refusals::Unknown,
            });
        }
        refusals
    }

    /// What the input function of a type refuses.
    fn refused_as_text(&self, value: &str, from: SqlType, to: SqlType) -> Refusals {
        if self.is_text(to) {
            return Refusals::Never;
        }
        let text = match from.oid.0 {
            oid::TEXT | oid::VARCHAR => value.to_owned(),
            // A cast of `character` to text would drop the spaces at the end.
            oid::BPCHAR => format!("format('%s', {value})"),
            _ => format!("({value})::text"),
        };
        if !self.is_text(from) && from.oid.0 != oid::JSON {
            return Refusals::Unknown;
        }
        let refusals = self.refused_text(&text, to);
        match refusals {
            Refusals::When(condition) if from.oid.0 == oid::BPCHAR => {
                Refusals::When(format!("{value} IS NOT NULL AND {condition}"))
            }
            other => other,
        }
    }

    fn refused_text(&self, text: &str, to: SqlType) -> Refusals {
        let own = self.schema.type_by_oid(to.oid);
        if let Some(TypeKind::Enum { labels }) = own.as_deref().map(|own| &own.kind) {
            let labels: Vec<String> = labels.iter().map(|label| deparse::string(&label.label)).collect();
            return Refusals::When(match labels.as_slice() {
                [] => format!("{text} IS NOT NULL"),
                labels => format!("{text} NOT IN ({})", labels.join(", ")),
            });
        }
        match self.type_as_sql(to) {
            Some(name) if self.target.at_least(16) && self.reports_input_errors(to.oid) => {
                // Source: PostgreSQL 16, `src/backend/utils/adt/misc.c`, `pg_input_is_valid`.
                Refusals::When(format!("NOT pg_input_is_valid({text}, {})", deparse::string(&name)))
            }
            _ => refused_before_16(text, to.oid.0),
        }
    }

    /// Whether the input function of a type reports errors softly.
    fn reports_input_errors(&self, oid: Oid) -> bool {
        let Some(facts) = self.facts(oid) else { return false };
        match facts.kind {
            BuiltinTypeKind::Enum => true,
            BuiltinTypeKind::Array => facts.element.is_some_and(|element| self.reports_input_errors(element)),
            BuiltinTypeKind::Base => is_common(oid.0),
            _ => false,
        }
    }

    fn is_text(&self, sql_type: SqlType) -> bool {
        self.category(self.base_type(sql_type).oid) == TypeCategory::String
    }

    /// A type as SQL that needs no search path.
    pub fn type_as_sql(&self, sql_type: SqlType) -> Option<String> {
        match self.schema.type_by_oid(sql_type.oid) {
            Some(own) if matches!(own.kind, TypeKind::Array { .. }) => {
                let element = self.facts(sql_type.oid)?.element?;
                Some(format!("{}[]", self.type_as_sql(SqlType { oid: element, typmod: sql_type.typmod })?))
            }
            Some(own) => Some(format!("{}.{}", quote_identifier(&own.schema), quote_identifier(&own.name))),
            None => self.known_type(sql_type),
        }
    }

    fn is_total_call(&self, call: &FunctionCall) -> bool {
        const TOTAL: [&str; 12] = [
            "lower",
            "upper",
            "initcap",
            "btrim",
            "ltrim",
            "rtrim",
            "replace",
            "translate",
            "concat",
            "length",
            "char_length",
            "md5",
        ];
        let is_system = call.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
        let is_plain = call.window.is_none() && call.filter.is_none() && !call.distinct && !call.variadic;
        is_system
            && is_plain
            && TOTAL.contains(&call.name.as_str())
            && self.schema.functions_named(call.schema.as_deref(), &call.name).is_empty()
    }
}

/// An expression as an operand.
fn written(expression: &Expr) -> Result<String, deparse::NotKept> {
    let text = deparse::expression(expression)?;
    Ok(match &expression.kind {
        ExprKind::Column(_) | ExprKind::Call(_) | ExprKind::Coalesce(_) => text,
        _ => format!("({text})"),
    })
}

/// Whether an operator yields a value for all operands, whatever their type is.
fn is_total(operator: &str, form: OperatorForm) -> bool {
    match form {
        OperatorForm::NullIf | OperatorForm::In | OperatorForm::Distinct | OperatorForm::NotDistinct => true,
        OperatorForm::Plain => matches!(operator, "=" | "<>" | "<" | "<=" | ">" | ">=" | "||"),
        _ => false,
    }
}

/// The built-in types whose input functions report errors softly and that are not those of system catalogs.
fn is_common(oid: u32) -> bool {
    builtin::type_by_oid(oid).is_some_and(|row| {
        matches!(
            row.category,
            TypeCategory::Numeric
                | TypeCategory::Boolean
                | TypeCategory::DateTime
                | TypeCategory::Timespan
                | TypeCategory::Network
                | TypeCategory::Geometric
                | TypeCategory::BitString
        ) && !row.name.starts_with("reg")
            || matches!(oid, oid::UUID | oid::JSON | oid::JSONB | oid::BYTEA)
    })
}

/// The bounds of the integer types.
fn integers(oid: u32) -> Option<(i64, i64)> {
    match oid {
        oid::INT2 => Some((i16::MIN.into(), i16::MAX.into())),
        oid::INT4 => Some((i32::MIN.into(), i32::MAX.into())),
        oid::INT8 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

fn is_temporal(oid: u32) -> bool {
    matches!(oid, oid::DATE | oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL)
}

fn refused_by_function(value: &str, source: u32, target: u32) -> Refusals {
    let (from, to) = (integers(source), integers(target));
    match (source, target) {
        (_, oid::TEXT | oid::VARCHAR | oid::BPCHAR) | (oid::BOOL, oid::INT4) | (oid::INT4, oid::BOOL) => {
            Refusals::Never
        }
        (oid::FLOAT4, oid::FLOAT8) | (oid::FLOAT4 | oid::FLOAT8, oid::NUMERIC) => Refusals::Never,
        (_, oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8) if from.is_some() => Refusals::Never,
        _ if is_temporal(source) && is_temporal(target) => Refusals::Never,
        (oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8, _) => match to {
            Some((least, greatest)) if source == oid::NUMERIC => {
                Refusals::When(format!("round({value}) NOT BETWEEN {least} AND {greatest}"))
            }
            // They round to the nearest even number, and so does round(). NaN is above all numbers.
            Some((least, greatest)) => {
                let above = i128::from(greatest) + 1;
                let rounded = format!("round(({value})::double precision)");
                Refusals::When(format!("NOT ({rounded} >= {least} AND {rounded} < {above})"))
            }
            None => Refusals::Unknown,
        },
        _ => match (from, to) {
            (Some((lowest, _)), Some((least, greatest))) if lowest < least => {
                Refusals::When(format!("{value} NOT BETWEEN {least} AND {greatest}"))
            }
            (Some(_), Some(_)) => Refusals::Never,
            _ => Refusals::Unknown,
        },
    }
}

/// What a length or precision refuses. An explicit cast cuts a string, others cut spaces only.
fn refused_length(value: &str, from: SqlType, to: SqlType, context: CastContext) -> Refusals {
    let is_explicit = context == CastContext::Explicit;
    match to.oid.0 {
        oid::VARCHAR | oid::BPCHAR | oid::BIT | oid::VARBIT if is_explicit => Refusals::Never,
        oid::VARCHAR | oid::BPCHAR => {
            let text = if matches!(from.oid.0, oid::TEXT | oid::VARCHAR) {
                value.to_owned()
            } else {
                format!("({value})::text")
            };
            Refusals::When(format!("char_length(rtrim({text}, ' ')) > {}", typmod::length(to.typmod)))
        }
        oid::BIT => Refusals::When(format!("length({value}) <> {}", to.typmod)),
        oid::VARBIT => Refusals::When(format!("length({value}) > {}", to.typmod)),
        oid::NUMERIC => {
            let (precision, scale) = typmod::numeric(to.typmod);
            let number = if from.oid.0 == oid::NUMERIC { value.to_owned() } else { format!("({value})::numeric") };
            let is_number =
                if integers(from.oid.0).is_some() { String::new() } else { format!("{number} <> 'NaN' AND ") };
            Refusals::When(format!("{is_number}abs(round({number}, {scale})) >= 1e{}", precision - scale))
        }
        oid if is_temporal(oid) => Refusals::Never,
        _ => Refusals::Unknown,
    }
}

/// What input functions refuse where no function of the server says so.
fn refused_before_16(text: &str, oid: u32) -> Refusals {
    const SPACE: &str = r"[ \t\n\v\f\r]*";
    match oid {
        // Source: PostgreSQL 15, `src/backend/utils/adt/numutils.c`, `pg_strtoint64`.
        oid::INT2 | oid::INT4 | oid::INT8 => {
            let Some((least, greatest)) = integers(oid) else { return Refusals::Unknown };
            Refusals::When(format!(
                "CASE WHEN {text} ~ '^{SPACE}[-+]?0*[0-9]{{1,19}}{SPACE}$' \
                 THEN ({text})::numeric NOT BETWEEN {least} AND {greatest} ELSE {text} IS NOT NULL END"
            ))
        }
        // Source: PostgreSQL 15, `src/backend/utils/adt/uuid.c`, `string_to_uuid`.
        oid::UUID => {
            const DIGITS: &str = "([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}";
            Refusals::When(format!(r"{text} !~ '^({DIGITS}|\{{{DIGITS}\}})$'"))
        }
        // Source: PostgreSQL 15, `src/backend/utils/adt/bool.c`, `parse_bool_with_len`.
        oid::BOOL => Refusals::when(format!(
            "{text} !~* '^{SPACE}(t|tr|tru|true|f|fa|fal|fals|false|y|ye|yes|n|no|on|of|off|1|0){SPACE}$'"
        )),
        _ => Refusals::Unknown,
    }
}
