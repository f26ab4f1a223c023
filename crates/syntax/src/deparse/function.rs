//! Functions as items of FROM.

use super::query::{alias, relation};
use super::{Text, expression, list, types};
use crate::ast::{Alias, Expr, ExprKind, FunctionColumn, FunctionForm};
use crate::lexer::quote_identifier;

pub(super) fn write(calls: &[Expr], form: Option<&FunctionForm>, called: Option<&Alias>) -> Text {
    let plain = FunctionForm::default();
    let form = form.unwrap_or(&plain);
    let functions = (calls.iter().enumerate())
        .map(|(at, call)| match form.of_calls.get(at).filter(|columns| !columns.is_empty()) {
            Some(columns) => Ok(format!("{} AS ({})", write_call(call)?, list(columns, write_column)?)),
            None => write_call(call),
        })
        .collect::<Result<Vec<String>, _>>()?
        .join(", ");
    let functions = if form.rows_from { format!("ROWS FROM ({functions})") } else { functions };
    let ordinality = if form.ordinality { " WITH ORDINALITY" } else { "" };
    let name = match called {
        None if !form.columns.is_empty() => " AS ".to_owned(),
        called => alias(called),
    };
    let columns = match form.columns.as_slice() {
        [] => String::new(),
        columns => format!("({})", list(columns, write_column)?),
    };
    Ok(format!("{functions}{ordinality}{name}{columns}"))
}

/// FROM takes calls and what has the form of one, and so no `::`.
fn write_call(call: &Expr) -> Text {
    match &call.kind {
        ExprKind::Cast { operand, target } => {
            Ok(format!("CAST({} AS {})", expression::write(operand)?, types::write(target)?))
        }
        _ => expression::write(call),
    }
}

fn write_column(column: &FunctionColumn) -> Text {
    let collation = match &column.collation {
        Some(collation) => format!(" COLLATE {}", relation(collation)),
        None => String::new(),
    };
    Ok(format!("{} {}{collation}", quote_identifier(&column.name), types::write(&column.type_name)?))
}
