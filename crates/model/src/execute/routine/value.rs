//! Values of PL/pgSQL expressions, as far as they are known before the code runs.

use super::text;
use crate::catalog::Oid;
use crate::execute::Executor;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, Literal, OperatorForm, SubqueryKind, TypeName};
use pgvet_syntax::plpgsql::HOLE;
use smol_str::SmolStr;

/// Texts that code makes are followed up to this length, in bytes: `x := x || x` doubles with every round.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// A value that is at least partly known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Null,
    /// As output would show it, with [`HOLE`] for every part known only at run time.
    Text(String),
    /// A number of at least 1, such as the count of rows that exist.
    Positive,
    /// The number of rows of a table.
    RowsOf(Oid),
    /// Whether a table has rows.
    HasRows(Oid),
    /// Not null; nothing more is known.
    Something,
    List(Vec<Option<Value>>),
    /// Not known: the database, the role or a setting decides it.
    Environment,
    /// Not known: a setting decides it that no statement makes. `unset`: what it is without the setting.
    Setting {
        name: SmolStr,
        unset: Box<Value>,
    },
}

impl Value {
    pub(super) fn boolean(truth: bool) -> Self {
        Self::Text(truth.to_string())
    }

    /// The text, if all of it is known.
    pub(in crate::execute) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.contains(HOLE) => Some(text),
            _ => None,
        }
    }

    pub(in crate::execute) fn as_integer(&self) -> Option<i64> {
        self.as_text()?.parse().ok()
    }

    /// How many elements a list has.
    pub(in crate::execute) fn length_of_list(&self) -> Option<u64> {
        match self {
            Self::List(list) => Some(list.len() as u64),
            _ => None,
        }
    }

    pub(super) fn truth(&self) -> Option<bool> {
        match self.as_text()? {
            "t" | "true" => Some(true),
            "f" | "false" => Some(false),
            _ => None,
        }
    }

    /// The bytes of its text, or about as many for a list.
    fn length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(list) => list.len() + list.iter().flatten().map(Self::length).sum::<usize>(),
            _ => 0,
        }
    }

    /// The part of it that is remembered: of a very long text only that it is not null.
    fn bounded(self) -> Option<Self> {
        if self.length() <= MAX_TEXT { Some(self) } else { (self.is_null() == Some(false)).then_some(Self::Something) }
    }

    pub(super) fn is_null(&self) -> Option<bool> {
        match self {
            Self::Null => Some(true),
            Self::Text(text) if text.contains(HOLE) => None,
            Self::Setting { .. } | Self::Environment => None,
            Self::Text(_) | Self::Positive | Self::RowsOf(_) | Self::HasRows(_) | Self::Something | Self::List(_) => {
                Some(false)
            }
        }
    }
}

/// The text of a part of a larger text: a hole where it is not known; `None` for NULL.
pub(super) fn part(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::Null) => None,
        Some(Value::Text(text)) => Some(text),
        Some(Value::List(list)) => Some(array_text(list)),
        Some(
            Value::Positive
            | Value::RowsOf(_)
            | Value::HasRows(_)
            | Value::Something
            | Value::Environment
            | Value::Setting { .. },
        )
        | None => Some(HOLE.to_owned()),
    }
}

/// An array as text.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/arrayfuncs.c`, `array_out`.
fn array_text(list: Vec<Option<Value>>) -> String {
    let element = |value: Option<Value>| {
        let is_array = matches!(value, Some(Value::List(_)));
        match part(value) {
            None => "NULL".to_owned(),
            Some(text) if is_array => text,
            Some(text) => {
                let is_special = |one: char| "\"\\{},".contains(one) || one.is_ascii_whitespace() || one == '\u{b}';
                let is_plain = !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(is_special);
                if is_plain { text } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
            }
        }
    };
    let elements: Vec<String> = list.into_iter().map(element).collect();
    format!("{{{}}}", elements.join(","))
}

impl Executor<'_> {
    /// The value of a variable, or of a column that has it in every row.
    fn variable(&self, name: &str) -> Option<Value> {
        match self.variables.get(name).cloned().or_else(|| self.row.borrow().get(name).cloned())? {
            Value::Setting { name, unset } => self.unset_settings.value(&name, *unset),
            Value::Environment => None,
            value => Some(value),
        }
    }

    /// The value of an expression.
    pub(crate) fn value(&self, expr: &Expr) -> Option<Value> {
        match &expr.kind {
            // As long as the source says.
            ExprKind::Literal(literal) => literal_value(literal),
            _ => self.made_value(expr)?.bounded(),
        }
    }

    fn made_value(&self, expr: &Expr) -> Option<Value> {
        match &expr.kind {
            ExprKind::Column(path) => match path.as_slice() {
                [name] => self.variable(name),
                path => self.variable(&path.join(".")),
            },
            ExprKind::Parameter(number) => self.variable(&format!("${number}")),
            ExprKind::Collate { operand, .. } => self.value(operand),
            ExprKind::Cast { operand, target } => cast(self.value(operand)?, target),
            ExprKind::Coalesce(list) => {
                for one in list {
                    match self.value(one)? {
                        Value::Null => {}
                        // What has a hole may be null as a whole.
                        value => return Some(value),
                    }
                }
                Some(Value::Null)
            }
            ExprKind::Case { operand: None, branches, otherwise } => {
                for (condition, result) in branches {
                    if self.holds(condition)? {
                        return self.value(result);
                    }
                }
                otherwise.as_ref().map_or(Some(Value::Null), |otherwise| self.value(otherwise))
            }
            ExprKind::Array(list) => self.values(list.iter()).map(Value::List),
            ExprKind::SqlValue(name, _) => match name.as_str() {
                "current_schema" => Some(Value::Text(self.creation_schema().to_string())),
                _ => Some(Value::Something),
            },
            ExprKind::Subquery { kind: SubqueryKind::Scalar, query, .. } => self.scalar(query),
            ExprKind::Subquery { kind: SubqueryKind::Array, query, .. } => {
                let rows = self.constant_rows(query)?;
                Some(Value::List(
                    rows.into_iter().filter_map(|row| row.into_iter().next()).map(|(_, one)| one).collect(),
                ))
            }
            ExprKind::Call(call) => self.call_value(call),
            ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. }
                if matches!(operator.as_str(), "||" | "+" | "-" | "*") =>
            {
                let [left, right] = operands.as_slice() else { return None };
                let (left, right) = (self.value(left), self.value(right));
                if operator == "||" { concatenate(left, right) } else { arithmetic(operator, &left?, &right?) }
            }
            ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::IsNull { .. }
            | ExprKind::BooleanTest { .. }
            | ExprKind::Operator { .. }
            | ExprKind::Subquery { kind: SubqueryKind::Exists, .. } => {
                self.decide(expr).map(Value::boolean).or_else(|| self.is_null_condition(expr).then_some(Value::Null))
            }
            _ => None,
        }
    }

    /// The values of expressions; `None` if they are too long together.
    fn values<'e>(&self, list: impl Iterator<Item = &'e Expr>) -> Option<Vec<Option<Value>>> {
        let mut left = MAX_TEXT;
        let mut value = |expr| {
            let value = self.value(expr);
            left = left.checked_sub(value.as_ref().map_or(0, Value::length))?;
            Some(value)
        };
        list.map(&mut value).collect()
    }

    /// The result of a function of PostgreSQL.
    fn call_value(&self, call: &FunctionCall) -> Option<Value> {
        if call.variadic || call.schema.as_ref().is_some_and(|schema| schema != "pg_catalog") {
            return None;
        }
        if call.schema.is_none() && !self.called_functions(call).is_empty() {
            return None;
        }
        let arguments = self.values(call.arguments.iter().map(|argument| &argument.value))?;
        match call.name.as_str() {
            "to_regclass" | "to_regtype" | "to_regproc" | "to_regprocedure" | "to_regnamespace" => {
                self.lookup(&call.name, arguments.first()?.as_ref()?.as_text()?)
            }
            "current_schema" => Some(Value::Text(self.creation_schema().to_string())),
            "current_setting" => self.setting_value(call, &arguments),
            "now" | "clock_timestamp" | "statement_timestamp" | "gen_random_uuid" | "random" => Some(Value::Something),
            name => text::call(name, arguments),
        }
    }
}

fn literal_value(literal: &Literal) -> Option<Value> {
    Some(match literal {
        Literal::Integer(number) => Value::Text(number.to_string()),
        Literal::Numeric(digits) => Value::Text(digits.to_string()),
        Literal::Boolean(truth) => Value::boolean(*truth),
        // A template engine fills it.
        Literal::String(text) if text.contains("{{") && text.contains("}}") => Value::Something,
        Literal::String(text) => Value::Text(text.to_string()),
        Literal::BitString(_) => return None,
        Literal::Null => Value::Null,
    })
}

/// Casts that keep the text; of any other only nullness is known.
fn cast(value: Value, target: &TypeName) -> Option<Value> {
    if target.is_array {
        return match &value {
            Value::Text(_) => value.as_text().and_then(text::array),
            _ => Some(value),
        };
    }
    let text = ["text", "varchar", "name", "regclass", "regnamespace", "regtype", "regproc", "uuid"];
    let number = ["int2", "int4", "int8", "numeric"];
    let name = target.name.as_str();
    let keeps = target.modifiers.is_empty()
        && (text.contains(&name)
            || (number.contains(&name) && value.as_integer().is_some())
            || (name == "bool" && value.truth().is_some()));
    match value {
        Value::Null => Some(Value::Null),
        Value::Positive if number.contains(&name) => Some(Value::Positive),
        value if keeps => Some(value),
        value => (value.is_null() == Some(false)).then_some(Value::Something),
    }
}

fn concatenate(left: Option<Value>, right: Option<Value>) -> Option<Value> {
    match (left, right) {
        (Some(Value::List(mut left)), Some(Value::List(right))) => {
            left.extend(right);
            Some(Value::List(left))
        }
        (Some(Value::List(_)), _) | (_, Some(Value::List(_))) | (None, None) => None,
        (left, right) => match (part(left), part(right)) {
            (Some(left), Some(right)) => Some(Value::Text(left + &right)),
            _ => Some(Value::Null),
        },
    }
}

/// The operators are strict: `CURRENT_DATE + 1` is not null.
fn arithmetic(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    if *left == Value::Null || *right == Value::Null {
        return Some(Value::Null);
    }
    let Some((left, right)) = left.as_integer().zip(right.as_integer()) else { return Some(Value::Something) };
    let result = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        _ => left.checked_mul(right),
    };
    result.map(|number| Value::Text(number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{HOLE, Value, part};

    /// The answer of PostgreSQL 18 to `ARRAY['a b', NULL, 'null', 'x', '', 'q"\', 'a,b']::text`, with an unknown element.
    #[test]
    fn arrays_as_text() {
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let list = vec![
            text("a b"),
            Some(Value::Null),
            text("null"),
            text("x"),
            text(""),
            text("q\"\\"),
            text("a,b"),
            None,
            Some(Value::List(vec![text("y")])),
        ];
        let written = r#"{"a b",NULL,"null",x,"","q\"\\","a,b","#.to_owned() + HOLE + ",{y}}";
        assert_eq!(part(Some(Value::List(list))), Some(written));
    }
}
