//! Values that variables of triggers never have.

use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::text::either;
use crate::severity::Severity;
use pgvet_model::catalog::{TypeDef, TypeKind};
use pgvet_model::routine::{Around, Sql, SqlRole, Step, VariableKind};
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm, Part, TypeName, string_literal};
use smol_str::SmolStr;
use std::sync::Arc;

declare_rule! {
    /// The code of a trigger function compares `TG_OP`, `TG_WHEN`, `TG_LEVEL` or `TG_EVENT` with a text that is never its
    /// value, or casts it to an enum without such a label.
    ///
    /// ## Why it matters
    ///
    /// The values of `TG_OP`, `TG_WHEN` and `TG_LEVEL` are upper case, and comparisons of texts distinguish between upper
    /// and lower case. `TG_OP = 'insert'` is therefore never true, and the code behind it never runs. If an enum has the
    /// labels in lower case, the cast fails, and so does each write that fires the trigger.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// CREATE TABLE users_log (id bigint, at timestamptz);
    /// CREATE FUNCTION log_user() RETURNS trigger LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     IF TG_OP = 'insert' THEN
    ///         INSERT INTO users_log VALUES (NEW.id, now());
    ///     END IF;
    ///     RETURN NEW;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// CREATE TABLE users_log (id bigint, at timestamptz);
    /// CREATE FUNCTION log_user() RETURNS trigger LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     IF TG_OP = 'INSERT' THEN
    ///         INSERT INTO users_log VALUES (NEW.id, now());
    ///     END IF;
    ///     RETURN NEW;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a cast to an enum that has a label for some of the values, if the cast runs only under a condition
    /// - a variable of the code that has the same name
    /// - the `CASE` statement of PL/pgSQL; the `CASE` expression is checked
    "trigger-variable-mismatch", Plpgsql, Warning,
    {}
    routine = check,
}

/// The values of a variable in trigger functions.
///
/// Source: PostgreSQL 18 documentation, 41.10.1 and 41.10.2, and 38.1 for the events.
fn values(variable: &str) -> Option<&'static [&'static str]> {
    match variable {
        "tg_op" => Some(&["INSERT", "UPDATE", "DELETE", "TRUNCATE"]),
        "tg_when" => Some(&["BEFORE", "AFTER", "INSTEAD OF"]),
        "tg_level" => Some(&["ROW", "STATEMENT"]),
        "tg_event" => Some(&["ddl_command_start", "ddl_command_end", "table_rewrite", "sql_drop", "login"]),
        _ => None,
    }
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let result = context.function().and_then(|function| function.result_name());
    if !matches!(result, Some("trigger" | "event_trigger")) {
        return;
    }
    let steps = context.routine.steps();
    let mut branched = false;
    for step in &steps {
        branched |= step.around.iter().any(|around| !matches!(around, Around::Loop { .. }));
        for sql in step.sql.iter().filter(|sql| sql.role != SqlRole::Dynamic) {
            expressions(context, step, sql, branched, reporter);
        }
    }
}

fn expressions(
    context: &RoutineContext<'_>,
    step: &Step<'_>,
    sql: &Sql<'_>,
    branched: bool,
    reporter: &mut Reporter<'_>,
) {
    let mut seen = Vec::new();
    sql.ast.visit(&mut |part| {
        if let Part::Expr(expression) = part
            && !seen.contains(&expression.range)
        {
            seen.push(expression.range);
            match &expression.kind {
                ExprKind::Cast { operand, target } => {
                    if let Some(known) = Known::of(context, operand) {
                        cast(context, step, (sql, expression), (&known, target, branched), reporter);
                    }
                }
                ExprKind::Operator { operator, form, operands, .. } if operator == "=" || operator == "<>" => {
                    compared(operands, *form).for_each(|(one, other)| {
                        let equals = (operator == "=") != (*form == OperatorForm::Distinct);
                        never(context, sql, (one, other), Some(equals).filter(|_| is_one(*form)), reporter);
                    });
                }
                ExprKind::Case { operand: Some(operand), branches, .. } => {
                    branches.iter().for_each(|(value, _)| never(context, sql, (operand, value), Some(true), reporter));
                }
                _ => {}
            }
        }
    });
}

/// Whether an operator compares with one value.
fn is_one(form: OperatorForm) -> bool {
    matches!(form, OperatorForm::Plain | OperatorForm::Distinct | OperatorForm::NotDistinct)
}

/// The pairs that an operator compares.
fn compared(operands: &[Expr], form: OperatorForm) -> impl Iterator<Item = (&Expr, &Expr)> {
    let pairs: Vec<(&Expr, &Expr)> = match (form, operands) {
        (OperatorForm::In, [one, list @ ..]) => list.iter().map(|other| (one, other)).collect(),
        (OperatorForm::AnyArray, [one, Expr { kind: ExprKind::Array(list), .. }]) => {
            list.iter().map(|other| (one, other)).collect()
        }
        (_, [one, other]) if is_one(form) => vec![(one, other), (other, one)],
        _ => Vec::new(),
    };
    pairs.into_iter()
}

/// An expression of which all values are known.
struct Known {
    /// `tg_op`.
    variable: SmolStr,
    /// Whether a function changes the value of the variable.
    changed: bool,
    /// `lower(TG_OP)`.
    shown: String,
    /// In the order of [`values`].
    values: Vec<SmolStr>,
}

impl Known {
    fn of(context: &RoutineContext<'_>, expression: &Expr) -> Option<Self> {
        match &expression.kind {
            ExprKind::Column(path) => {
                let [name] = path.as_slice() else { return None };
                let values = values(name)?;
                let variables = context.routine.variables();
                let mut own = variables.iter().filter(|variable| variable.kind != VariableKind::Implicit);
                if own.any(|variable| variable.name == *name) {
                    return None;
                }
                let values = values.iter().map(|value| SmolStr::new_static(value)).collect();
                Some(Self { variable: name.clone(), changed: false, shown: name.to_uppercase(), values })
            }
            ExprKind::Call(call) => {
                let [argument] = call.arguments.as_slice() else { return None };
                let known = Self::of(context, &argument.value)?;
                let change = |value: &SmolStr| match call.name.as_str() {
                    "lower" => Some(value.to_lowercase().into()),
                    "upper" => Some(value.to_uppercase().into()),
                    _ => None,
                };
                let values = known.values.iter().map(change).collect::<Option<_>>()?;
                let shown = format!("{}({})", call.name, known.shown);
                Some(Self { changed: true, shown, values, ..known })
            }
            ExprKind::Cast { operand, target } if matches!(target.name.as_str(), "text" | "varchar" | "name") => {
                Self::of(context, operand).filter(|_| target.modifiers.is_empty() && !target.is_array)
            }
            _ => None,
        }
    }
}

/// A comparison with a value that the expression never has. `equals`: whether one value makes it true, if there is only one.
fn never(
    context: &RoutineContext<'_>,
    sql: &Sql<'_>,
    (one, other): (&Expr, &Expr),
    equals: Option<bool>,
    reporter: &mut Reporter<'_>,
) {
    let Some(text) = string_literal(other) else { return };
    let Some(known) = Known::of(context, one) else { return };
    if known.values.iter().any(|value| value == text) {
        return;
    }
    let effect = match equals {
        Some(true) => "this comparison is always false",
        Some(false) => "this comparison is always true",
        None => "this value of the list matches nothing",
    };
    let message = format!("{} is never '{}', so {effect}", known.shown, text.replace('\'', "''"));
    let meant = known.values.iter().find(|value| value.eq_ignore_ascii_case(text));
    let help = meant.map_or_else(
        || format!("compare it with one of its values: {}", quoted(&known.values)),
        |meant| format!("write '{meant}': comparisons of texts distinguish between upper and lower case"),
    );
    reporter.report(sql.place(other.range), message).help(help).emit();
}

fn quoted<'v>(values: impl IntoIterator<Item = &'v SmolStr>) -> String {
    let quoted: Vec<String> = values.into_iter().map(|value| format!("'{value}'")).collect();
    either(&quoted)
}

/// A cast to an enum that lacks the values as labels.
fn cast(
    context: &RoutineContext<'_>,
    step: &Step<'_>,
    (sql, expression): (&Sql<'_>, &Expr),
    (known, target, branched): (&Known, &TypeName, bool),
    reporter: &mut Reporter<'_>,
) {
    let Some(found) = named_type(context, target) else { return };
    let TypeKind::Enum { labels } = &found.kind else { return };
    let possible: Vec<&SmolStr> =
        known.values.iter().enumerate().filter(|(at, _)| fires(context, known, *at)).map(|(_, value)| value).collect();
    let (with, without): (Vec<&SmolStr>, Vec<&SmolStr>) =
        possible.into_iter().partition(|value| labels.contains(value.as_str()));
    let is_conditional = branched || step.around.iter().any(|around| !matches!(around, Around::Loop { .. }));
    if without.is_empty() || is_conditional && !with.is_empty() {
        return;
    }
    let message = format!(
        "{} fails here with {} = {}, because the enum `{}` has no such label",
        context.name(),
        known.shown,
        quoted(without.iter().copied()),
        found.name
    );
    let other_case = |value: &&SmolStr| !known.changed && labels.contains(value.to_lowercase().as_str());
    let help = if without.iter().any(other_case) {
        format!("convert the text first: lower({})::{}", known.shown, found.name)
    } else {
        "add the labels to the enum, or choose the label with CASE".to_owned()
    };
    let finding = reporter.report(sql.place(expression.range), message).help(help).severity(Severity::Error);
    finding.runs_often(&context.hotness()).emit();
}

/// Whether one of the triggers of the function has this value of `TG_OP`; all are possible if it has no trigger yet.
fn fires(context: &RoutineContext<'_>, known: &Known, at: usize) -> bool {
    let triggers = context.triggers();
    triggers.is_empty()
        || known.variable != "tg_op"
        || triggers.iter().any(|using| {
            let events = &using.trigger.events;
            [events.insert, events.update, events.delete, events.truncate].get(at).copied().unwrap_or(true)
        })
}

fn named_type<'c>(context: &RoutineContext<'c>, name: &TypeName) -> Option<&'c Arc<TypeDef>> {
    if name.is_array || name.percent_type.is_some() {
        return None;
    }
    let catalog = context.catalog;
    let in_schema = |schema: &SmolStr| catalog.type_named(schema, &name.name);
    let oid = match &name.schema {
        Some(schema) => in_schema(schema),
        None => context.routine.search_path.iter().find_map(in_schema),
    };
    catalog.get_type(oid?)
}
