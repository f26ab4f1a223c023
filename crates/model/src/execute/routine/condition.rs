//! Decides conditions, the usual way to make a migration repeatable:
//! `IF NOT EXISTS (SELECT 1 FROM pg_type WHERE typname = 'mood') THEN`.

use super::rows::aggregate;
use super::value::Value;
use super::variables::Variables;
use crate::catalog::Oid;
use crate::execute::{Executor, Knowledge};
use pgvet_syntax::ast::{BooleanTest, Expr, ExprKind, Name, ObjectName, OperatorForm, Query, QueryBody, SubqueryKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// The truth of a condition for a row with these values.
    pub(in crate::execute) fn decide_for_row(&self, row: Variables, condition: &Expr) -> Option<bool> {
        let outer = self.row.replace(row);
        let truth = self.decide(condition);
        self.row.replace(outer);
        truth
    }

    /// Whether code goes on behind a condition: NULL is as good as false.
    pub(super) fn holds(&self, condition: &Expr) -> Option<bool> {
        let is_null = || (self.value(condition) == Some(Value::Null)).then_some(false);
        self.decide(condition).or_else(is_null)
    }

    /// The truth of a condition, where constants and the catalog as the history shows it decide.
    pub(super) fn decide(&self, condition: &Expr) -> Option<bool> {
        match &condition.kind {
            ExprKind::Not(inner) => self.decide(inner).map(|truth| !truth),
            ExprKind::And(parts) => self.decide_all(parts, false),
            ExprKind::Or(parts) => self.decide_all(parts, true),
            ExprKind::Subquery { kind: SubqueryKind::Exists, query, .. } => self.exists(query),
            ExprKind::IsNull { operand, negated } => self.value(operand)?.is_null().map(|null| null != *negated),
            ExprKind::BooleanTest { operand, test } => {
                let truth = self.decide(operand)?;
                match test {
                    BooleanTest::True | BooleanTest::NotFalse => Some(truth),
                    BooleanTest::False | BooleanTest::NotTrue => Some(!truth),
                    BooleanTest::Unknown => Some(false),
                    BooleanTest::NotUnknown => Some(true),
                }
            }
            ExprKind::Operator { operator, form, operands, .. } => self.decide_operator(operator, *form, operands),
            _ => self.value(condition)?.truth(),
        }
    }

    /// Whether a condition that nothing decides is NULL.
    pub(super) fn is_null_condition(&self, condition: &Expr) -> bool {
        let is_null = |part: &Expr| self.value(part) == Some(Value::Null);
        match &condition.kind {
            ExprKind::Not(inner) => is_null(inner),
            ExprKind::And(parts) | ExprKind::Or(parts) => {
                parts.iter().all(|part| self.decide(part).is_some() || is_null(part)) && parts.iter().any(is_null)
            }
            ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } => {
                matches!(operator.as_str(), "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=") && operands.iter().any(is_null)
            }
            _ => false,
        }
    }

    /// AND and OR: one part that is `decisive` decides, or all together.
    fn decide_all(&self, parts: &[Expr], decisive: bool) -> Option<bool> {
        let truths: Vec<_> = parts.iter().map(|part| self.decide(part)).collect();
        if truths.contains(&Some(decisive)) {
            return Some(decisive);
        }
        truths.into_iter().collect::<Option<Vec<_>>>().map(|_| !decisive)
    }

    fn decide_operator(&self, operator: &str, form: OperatorForm, operands: &[Expr]) -> Option<bool> {
        match (form, operands) {
            (OperatorForm::Plain, [left, right]) => {
                if is_server_version(left) {
                    return self.decide_version(operator, self.value(right)?.as_integer()?);
                }
                compare(operator, &self.value(left)?, &self.value(right)?)
            }
            (OperatorForm::Distinct | OperatorForm::NotDistinct, [left, right]) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let are_distinct = match (left.is_null()?, right.is_null()?) {
                    (false, false) => compare("<>", &left, &right)?,
                    (left, right) => left != right,
                };
                Some(are_distinct == (form == OperatorForm::Distinct))
            }
            (OperatorForm::In, [tested, list @ ..]) => {
                let tested = self.value(tested)?;
                let equal: Option<Vec<bool>> =
                    list.iter().map(|one| compare("=", &tested, &self.value(one)?)).collect();
                equal.map(|equal| equal.contains(&true) == (operator == "="))
            }
            (OperatorForm::AnyArray, [tested, list]) if operator == "=" => {
                let (tested, Value::List(list)) = (self.value(tested)?, self.value(list)?) else { return None };
                let equal: Option<Vec<bool>> = list.iter().map(|one| compare("=", &tested, one.as_ref()?)).collect();
                equal.map(|equal| equal.contains(&true))
            }
            (OperatorForm::Like, [text, pattern, ..]) if matches!(operator, "~~" | "!~~") && operands.len() == 2 => {
                let (text, pattern) = (self.value(text)?, self.value(pattern)?);
                Some(is_like(text.as_text()?, pattern.as_text()?) == (operator == "~~"))
            }
            _ => None,
        }
    }

    /// `current_setting('server_version_num')::int >= 150000`.
    fn decide_version(&self, operator: &str, number: i64) -> Option<bool> {
        let (number, negated) = match operator {
            ">=" => (number, false),
            "<" => (number, true),
            ">" => (number.checked_add(1)?, false),
            "<=" => (number.checked_add(1)?, true),
            _ => return None,
        };
        let major = u8::try_from(number / 10_000).ok().filter(|major| *major < 32)?;
        let reached = match number % 10_000 {
            _ if major < 10 => true,
            0 => self.target.at_least(major),
            // A minor version of the target's own major: not known.
            _ if self.target.at_least(major) && !self.target.at_least(major + 1) => return None,
            _ => self.target.at_least(major + 1),
        };
        Some(reached != negated)
    }

    /// Something that was found exists; something that was not found is missing only where history is known, and where it
    /// has made the `schema` that the question names.
    fn certain(&self, found: bool, schema: Option<&SmolStr>) -> Option<bool> {
        let is_of_system = |schema: &str| schema.starts_with("pg_") || schema == "information_schema";
        let is_made = |schema: &SmolStr| is_of_system(schema) || self.catalog.has_schema(schema);
        let is_known = match self.knowledge {
            Knowledge::Nothing => false,
            Knowledge::History => schema.is_none_or(is_made),
            Knowledge::Everything => self.knows_all_of(schema),
        };
        (found || is_known).then_some(found)
    }

    /// The value of `to_regclass('t')`, `to_regtype('t')` and so on: the name, or NULL.
    pub(super) fn lookup(&self, function: &str, text: &str) -> Option<Value> {
        // `to_regprocedure` names the types of the arguments, too.
        let name = object_name(text.split('(').next().unwrap_or(text));
        let is_meant = |schema: &str| name.schema.as_ref().is_none_or(|own| own.text == schema);
        let found = match function {
            "to_regclass" => self.find(&name).is_some(),
            "to_regtype" => {
                crate::builtin::type_by_name(&name.name.text).is_some() || self.find_type_named(&name).is_some()
            }
            "to_regnamespace" => self.catalog.has_schema(&name.name.text),
            _ => self.has_function_named(&name.name.text, is_meant),
        };
        let schema = name.schema_name().or((function == "to_regnamespace").then_some(&name.name.text));
        self.certain(found, schema).map(|found| if found { Value::Text(text.to_owned()) } else { Value::Null })
    }

    fn find_type_named(&self, name: &ObjectName) -> Option<Oid> {
        let schemas = self.session.settings.schemas_of(name);
        schemas.iter().find_map(|schema| self.catalog.type_named(schema, &name.name.text))
    }

    fn exists(&self, query: &Query) -> Option<bool> {
        if let QueryBody::Select(select) = &query.body
            && !select.from.is_empty()
        {
            if select.group_by.is_empty() && select.targets.iter().any(|target| aggregate(&target.value).is_some()) {
                return Some(true);
            }
            if let Some(found) = self.catalog_rows(query) {
                return Some(found);
            }
        }
        self.constant_rows(query).map(|rows| !rows.is_empty())
    }

    /// Whether a query of the system catalogs finds a row.
    pub(super) fn catalog_rows(&self, query: &Query) -> Option<bool> {
        let (found, schema) = self.system_row(query)?;
        self.certain(found, schema.as_ref())
    }
}

/// `text LIKE pattern`.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/like_match.c`, `MatchText`.
fn is_like(text: &str, pattern: &str) -> bool {
    // What the pattern so far matches: prefixes of the text, by their length in characters.
    let text: Vec<char> = text.chars().collect();
    let mut matched = vec![false; text.len() + 1];
    matched[0] = true;
    let mut pattern = pattern.chars();
    while let Some(mark) = pattern.next() {
        if mark == '%' {
            let first = matched.iter().position(|matched| *matched).unwrap_or(matched.len());
            matched[first..].fill(true);
            continue;
        }
        let wanted = if mark == '\\' { pattern.next() } else { Some(mark).filter(|mark| *mark != '_') };
        for end in (0..text.len()).rev() {
            matched[end + 1] = matched[end] && wanted.is_none_or(|wanted| wanted == text[end]);
        }
        matched[0] = false;
    }
    matched[text.len()]
}

/// A comparison of values; NULL is treated as undecided.
fn compare(operator: &str, left: &Value, right: &Value) -> Option<bool> {
    if let (Value::Positive, Some(number)) = (left, right.as_integer()) {
        return match (operator, number) {
            (">" | "<>", ..=0) | (">=", ..=1) => Some(true),
            ("=" | "<=", ..=0) | ("<", ..=1) => Some(false),
            _ => None,
        };
    }
    if let (Some(left), Some(right)) = (left.as_integer(), right.as_integer()) {
        return Some(match operator {
            "=" => left == right,
            "<>" | "!=" => left != right,
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            ">=" => left >= right,
            _ => return None,
        });
    }
    let (left, right) = (left.as_text()?, right.as_text()?);
    match operator {
        "=" => Some(left == right),
        "<>" | "!=" => Some(left != right),
        _ => None,
    }
}

fn is_server_version(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Cast { operand, .. } => is_server_version(operand),
        ExprKind::Call(call) => {
            let argument =
                call.arguments.first().and_then(|argument| pgvet_syntax::ast::string_literal(&argument.value));
            call.name == "current_setting" && argument == Some("server_version_num")
        }
        _ => false,
    }
}

/// A possibly qualified name in a text.
fn object_name(text: &str) -> ObjectName {
    let part = |text: &str| Name::new(pgvet_syntax::lexer::identifier(text.trim()), TextRange::default());
    match text.split_once('.') {
        Some((schema, name)) => ObjectName { schema: Some(part(schema)), name: part(name) },
        None => ObjectName { schema: None, name: part(text) },
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    /// Each answer is that of PostgreSQL 18.
    #[test]
    fn like_patterns() {
        for (text, pattern, is_matched) in [
            ("tmp_a", "tmp%", true),
            ("tmp_a", "tmp\\_%", true),
            ("tmpxa", "tmp\\_%", false),
            ("abc", "a_c", true),
            ("abc", "%b%", true),
            ("abc", "b%", false),
            ("", "%", true),
            ("", "_", false),
            ("abab", "%ab", true),
            ("a%", "a\\%", true),
        ] {
            assert_eq!(is_like(text, pattern), is_matched, "{text} LIKE {pattern}");
        }
    }
}
