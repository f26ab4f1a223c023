//! `UPDATE pg_index SET indisvalid = ...`, with which a superuser decides whether queries use an index.

use super::constant_names::relation_in_text;
use crate::execute::Executor;
use pgvet_syntax::ast::{Expr, ExprKind, Literal, Update};

impl Executor<'_> {
    /// Follows an update of `indisvalid` in the row of one index, named by `indexrelid = '...'::regclass`.
    ///
    /// Source: PostgreSQL 18, `src/include/catalog/pg_index.h`.
    pub(super) fn update_index_row(&mut self, update: &Update) {
        let table = &update.table.name;
        let in_catalog = table.schema.as_ref().is_none_or(|schema| schema.text == "pg_catalog");
        if !in_catalog || table.name.text != "pg_index" || !update.from.is_empty() {
            return;
        }
        let [assignment] = update.assignments.as_slice() else { return };
        let ExprKind::Literal(Literal::Boolean(valid)) = assignment.value.kind else { return };
        let named = update.filter.as_ref().and_then(index_of_row).and_then(relation_in_text);
        let index = named.and_then(|name| self.find(&name));
        if assignment.column.text == "indisvalid"
            && let Some(index) = index
        {
            self.set_index_valid(index, valid);
        }
    }
}

/// The constant of `indexrelid = constant`.
fn index_of_row(filter: &Expr) -> Option<&Expr> {
    match &filter.kind {
        ExprKind::Operator { operator, operands, .. } if operator == "=" => match operands.as_slice() {
            [column, constant] if column.as_column().is_some_and(|name| name == "indexrelid") => Some(constant),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::effects_on;

    #[test]
    fn an_index_is_as_valid_as_its_row_says() {
        let row = |valid| format!("UPDATE pg_index SET indisvalid = {valid} WHERE indexrelid = 'public.i'::regclass;");
        let fails = |sql: &str| {
            let history = format!("CREATE TABLE t (a int); CREATE INDEX i ON t (a); {sql}");
            effects_on(18, &history, "CLUSTER t USING i").fails.is_some()
        };
        assert!(!fails(""));
        assert!(fails(&row(false)));
        assert!(!fails(&format!("{}{}", row(false), row(true))));
    }
}
