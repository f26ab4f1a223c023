//! One form for expressions that PostgreSQL's parser turns into the same.

use pgvet_syntax::ast::{Expr, ExprKind, Literal, OperatorForm};
use smol_str::SmolStr;

/// The expression as PostgreSQL keeps it, but for casts.
///
/// Source: PostgreSQL 18, `src/backend/parser/parse_expr.c`, `transformAExprIn` and `transformAExprBetween`.
pub(super) fn canonical(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    rewrite(&mut expr);
    expr
}

fn rewrite(expr: &mut Expr) {
    expr.for_each_child_mut(&mut rewrite);
    let range = expr.range;
    let new = |kind: ExprKind| Expr { kind, range };
    let kind = std::mem::replace(&mut expr.kind, ExprKind::Default);
    expr.kind = match kind {
        ExprKind::Operator { schema, operator, form, operands } => {
            let schema = schema.filter(|schema| schema != "pg_catalog");
            operator_of(schema, operator, form, operands, &new)
        }
        ExprKind::And(parts) => ExprKind::And(flat(parts, true)),
        ExprKind::Or(parts) => ExprKind::Or(flat(parts, false)),
        ExprKind::Call(mut call) => {
            call.schema = call.schema.filter(|schema| schema != "pg_catalog");
            ExprKind::Call(call)
        }
        // PostgreSQL writes the NULL that CASE without ELSE gives.
        ExprKind::Case { operand, branches, otherwise } => {
            let otherwise = otherwise.filter(|otherwise| !is_null(otherwise));
            ExprKind::Case { operand, branches, otherwise }
        }
        kind => kind,
    };
}

fn operator_of(
    schema: Option<SmolStr>,
    operator: SmolStr,
    form: OperatorForm,
    mut operands: Vec<Expr>,
    new: &dyn Fn(ExprKind) -> Expr,
) -> ExprKind {
    let plain = |operator: &str, operands: Vec<Expr>| ExprKind::Operator {
        schema: None,
        operator: operator.into(),
        form: OperatorForm::Plain,
        operands,
    };
    match form {
        OperatorForm::Like => ExprKind::Operator { schema, operator, form: OperatorForm::Plain, operands },
        OperatorForm::In if operands.len() == 2 => plain(&operator, operands),
        OperatorForm::In if operands.len() > 2 => {
            let items = operands.split_off(1);
            operands.push(new(ExprKind::Array(items)));
            let form = if operator == "<>" { OperatorForm::AllArray } else { OperatorForm::AnyArray };
            ExprKind::Operator { schema, operator, form, operands }
        }
        OperatorForm::Between | OperatorForm::NotBetween if !operator.contains("SYMMETRIC") && operands.len() == 3 => {
            let sides = |signs: [&str; 2]| {
                let low = new(plain(signs[0], vec![operands[0].clone(), operands[1].clone()]));
                let high = new(plain(signs[1], vec![operands[0].clone(), operands[2].clone()]));
                vec![low, high]
            };
            if form == OperatorForm::Between {
                ExprKind::And(sides([">=", "<="]))
            } else {
                ExprKind::Or(sides(["<", ">"]))
            }
        }
        OperatorForm::NotDistinct => {
            let distinct = ExprKind::Operator { schema, operator, form: OperatorForm::Distinct, operands };
            ExprKind::Not(Box::new(new(distinct)))
        }
        _ => ExprKind::Operator { schema, operator, form, operands },
    }
}

/// The parts of AND or OR, with those of the same inside it.
fn flat(parts: Vec<Expr>, is_and: bool) -> Vec<Expr> {
    let inner = |part: Expr| match part.kind {
        ExprKind::And(inner) if is_and => inner,
        ExprKind::Or(inner) if !is_and => inner,
        _ => vec![part],
    };
    parts.into_iter().flat_map(inner).collect()
}

fn is_null(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(Literal::Null) => true,
        ExprKind::Cast { operand, .. } => is_null(operand),
        _ => false,
    }
}
