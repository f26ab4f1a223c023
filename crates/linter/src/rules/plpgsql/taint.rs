//! Where the text of dynamic SQL comes from.

use crate::rule::RoutineContext;
use pgvet_model::builtin::{self, TypeCategory};
use pgvet_model::catalog::{SqlType, TypeKind};
use pgvet_model::routine::{Node, VariableKind};
use pgvet_syntax::ast::from_pg::parse_expression;
use pgvet_syntax::ast::{Ast, Expr, ExprKind, FunctionCall, Literal, OperatorForm, QueryBody};
use pgvet_syntax::plpgsql::{DataType, LoopKind, Specifier, SqlText, Statement, StatementKind};
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// Text from the caller that is unquoted in another text.
#[derive(Debug, Clone)]
pub(super) struct Tainted {
    /// The expression that brings it in.
    pub(super) range: TextRange,
    /// The parameter, or the field of NEW, that it comes from.
    pub(super) origin: SmolStr,
    /// Whether it is a part of a text that the code builds, and not the whole.
    pub(super) composed: bool,
}

/// The variables of a function that contain text from its caller.
pub(super) struct Taints<'a> {
    context: &'a RoutineContext<'a>,
    variables: FxHashMap<SmolStr, Tainted>,
    /// Declared with a type whose values are harmless in SQL.
    harmless: FxHashSet<SmolStr>,
}

impl<'a> Taints<'a> {
    pub(super) fn of(context: &'a RoutineContext<'a>) -> Self {
        let mut found = Self { context, variables: FxHashMap::default(), harmless: FxHashSet::default() };
        for variable in context.routine.variables() {
            match &variable.kind {
                VariableKind::Parameter { mode, sql_type } if mode.is_input() => {
                    if is_text(context, *sql_type) {
                        let origin = variable.name.clone();
                        let tainted = Tainted { range: variable.range, origin, composed: false };
                        found.variables.insert(variable.name, tainted);
                    }
                }
                VariableKind::Declared(data_type) if is_harmless(data_type) => {
                    found.harmless.insert(variable.name);
                }
                _ => {}
            }
        }
        found.forget_validated();
        // Twice, so that what a loop carries to its beginning is seen.
        for _ in 0..2 {
            found.assignments();
        }
        found
    }

    /// A parameter is assumed to be checked if an IF tests it and then raises an error.
    fn forget_validated(&mut self) {
        for step in self.context.routine.steps() {
            let Node::Statement(Statement { kind: StatementKind::If(conditional), .. }) = step.node else { continue };
            for branch in &conditional.branches {
                if crate::rules::conflict::handled::raises(&branch.statements) && restricts(&branch.condition.text) {
                    let words: FxHashSet<String> = words(&branch.condition.text).collect();
                    self.variables.retain(|name, _| !words.contains(name.as_str()));
                }
            }
        }
    }

    fn assignments(&mut self) {
        for step in self.context.routine.steps() {
            match step.node {
                Node::Block(block) => {
                    for declaration in &block.declarations {
                        if let pgvet_syntax::plpgsql::DeclarationKind::Variable(variable) = &declaration.kind
                            && let Some(default) = &variable.default
                        {
                            self.assign(&declaration.name.text, default);
                        }
                    }
                }
                Node::Statement(statement) => match &statement.kind {
                    StatementKind::Assign(assign) => {
                        if let [name] = assign.target.names.as_slice() {
                            self.assign(name, &assign.value);
                        }
                    }
                    StatementKind::Loop(a_loop) => {
                        if let LoopKind::Foreach { targets, array, .. } = &a_loop.kind
                            && let Some(name) = targets.first().and_then(|target| target.names.first())
                        {
                            self.assign(name, array);
                        }
                    }
                    StatementKind::Sql(sql) => {
                        let ast = self.context.routine.sql(&sql.text);
                        if let (Some(into), Some(Ast::Select(query))) = (&sql.into, ast)
                            && let QueryBody::Select(select) = &query.body
                            && select.from.is_empty()
                        {
                            for (target, value) in into.targets.iter().zip(&select.targets) {
                                let tainted = self.expression(&value.value);
                                self.set(target.names.first(), tainted);
                            }
                        }
                    }
                    _ => {}
                },
                Node::Sql(_) => {}
            }
        }
    }

    fn assign(&mut self, name: &SmolStr, value: &SqlText) {
        let tainted = self.text(value);
        self.set(Some(name), tainted);
    }

    fn set(&mut self, name: Option<&SmolStr>, tainted: Option<Tainted>) {
        if let (Some(name), Some(tainted)) = (name, tainted)
            && !self.harmless.contains(name)
        {
            self.variables.entry(name.clone()).or_insert(tainted);
        }
    }

    /// The text from the caller that an expression contains.
    pub(super) fn text(&self, text: &SqlText) -> Option<Tainted> {
        if let Some(Ast::Select(query)) = self.context.routine.sql(text) {
            let QueryBody::Select(select) = &query.body else { return None };
            return select.targets.first().and_then(|target| self.expression(&target.value));
        }
        let own = &text.text;
        let expression = parse_expression(own, TextRange::new(0, own.len() as u32)).ok()?;
        let tainted = self.expression(&expression)?;
        let at = tainted.range.shifted(text.range.start);
        let range = if text.range.contains(at) { at } else { text.range };
        Some(Tainted { range, ..tainted })
    }

    pub(super) fn expression(&self, expression: &Expr) -> Option<Tainted> {
        let first = |list: &[Expr]| list.iter().find_map(|part| self.expression(part));
        match &expression.kind {
            ExprKind::Column(path) => {
                let tainted = self.variables.get(path.first()?)?;
                Some(Tainted { range: expression.range, ..tainted.clone() })
            }
            ExprKind::Operator { operator, operands, form: OperatorForm::Plain, .. } if operator == "||" => {
                first(operands).map(|tainted| Tainted { composed: true, ..tainted })
            }
            ExprKind::Operator { operator, operands, .. } if matches!(operator.as_str(), "->>" | "#>>") => {
                first(operands.get(..1)?)
            }
            ExprKind::Cast { operand, target } => {
                let keeps = matches!(target.name.as_str(), "text" | "varchar" | "bpchar" | "name" | "json" | "jsonb");
                keeps.then(|| self.expression(operand)).flatten()
            }
            ExprKind::Coalesce(list) | ExprKind::MinMax { operands: list, .. } | ExprKind::Array(list) => first(list),
            ExprKind::Case { branches, otherwise, .. } => branches
                .iter()
                .map(|(_, result)| result)
                .chain(otherwise.as_deref())
                .find_map(|result| self.expression(result)),
            ExprKind::Collate { operand, .. } | ExprKind::Indirection { operand, .. } => self.expression(operand),
            ExprKind::Call(call) => self.call(call),
            _ => None,
        }
    }

    fn call(&self, call: &FunctionCall) -> Option<Tainted> {
        let value = |at: usize| call.arguments.get(at).and_then(|argument| self.expression(&argument.value));
        match call.name.as_str() {
            "format" => {
                let ExprKind::Literal(Literal::String(template)) = &call.arguments.first()?.value.kind else {
                    return value(0);
                };
                let raw = raw_arguments(template);
                raw.into_iter().find_map(|at| value(at + 1)).map(|tainted| Tainted { composed: true, ..tainted })
            }
            // What is replaced is not there any more.
            "replace" | "regexp_replace" | "translate" => {
                [0, 2].into_iter().find_map(value).map(|tainted| Tainted { composed: true, ..tainted })
            }
            "concat" | "concat_ws" | "array_to_string" | "lpad" | "rpad" | "overlay" => {
                let tainted = (0..call.arguments.len()).find_map(value);
                tainted.map(|tainted| Tainted { composed: true, ..tainted })
            }
            "lower" | "upper" | "trim" | "btrim" | "ltrim" | "rtrim" | "substr" | "substring" | "left" | "right"
            | "split_part" | "string_to_array" | "unnest" | "nullif" => value(0),
            _ => None,
        }
    }
}

/// The arguments that `%s` of a template uses, from 0.
fn raw_arguments(template: &str) -> Vec<usize> {
    let (mut found, mut next, mut rest) = (Vec::new(), 0, template);
    while let Some(percent) = rest.find('%') {
        let Some(specifier) = Specifier::read(&rest[percent + 1..]) else { break };
        if specifier.kind != '%' {
            next = specifier.argument.unwrap_or(next);
            if specifier.kind == 's' {
                found.push(next);
            }
            next += 1;
        }
        rest = &rest[percent + 1 + specifier.length..];
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|character: char| !character.is_alphanumeric() && character != '_').map(str::to_ascii_lowercase)
}

/// Whether a condition checks more than that a value is missing.
fn restricts(condition: &str) -> bool {
    words(condition).any(|word| matches!(word.as_str(), "in" | "any" | "exists" | "similar" | "like"))
        || condition.contains('~')
        || condition.contains("<>")
        || condition.contains("!=")
}

/// Whether a value of a type can be any text.
fn is_text(context: &RoutineContext<'_>, sql_type: SqlType) -> bool {
    if let Some(row) = builtin::type_by_oid(sql_type.oid.0) {
        let is_text = |row: &builtin::BuiltinType| {
            row.category == TypeCategory::String || matches!(row.name, "json" | "jsonb" | "xml" | "name")
        };
        let element = (row.element != 0).then(|| builtin::type_by_oid(row.element)).flatten();
        return is_text(row) || element.is_some_and(is_text);
    }
    match context.catalog.get_type(sql_type.oid).map(|definition| &definition.kind) {
        Some(TypeKind::Domain(domain)) => is_text(context, domain.base),
        _ => false,
    }
}

/// Declared as a number, a date, `regclass` or a similar type, whose values cannot be SQL.
fn is_harmless(data_type: &DataType) -> bool {
    let Some(name) = data_type.type_name() else { return false };
    name.percent_type.is_none()
        && builtin::type_by_name(&name.name).is_some_and(|row| {
            row.category != TypeCategory::String && !matches!(row.name, "json" | "jsonb" | "xml" | "name" | "record")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_raw_specifiers_count() {
        assert_eq!(raw_arguments("SELECT %I, %s, %%, %L, %s"), [1, 3]);
        assert_eq!(raw_arguments("%2$s %s %1$I"), [1, 2]);
    }
}
