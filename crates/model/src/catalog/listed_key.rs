//! Tables whose rows are bounded, because the key has only values that the schema lists.

use super::one_row::{column_of, is_constant};
use super::{Catalog, ConstraintKind, Relation, TypeKind};
use crate::builtin::oid;
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm};

/// Maximum number of keys with which a table has few rows.
const MAX_KEYS: u64 = 1000;

impl Catalog {
    /// The number of keys that the table can have, if constraints or the types of the columns list the values of all
    /// columns of a unique index, and it is small: `kind text PRIMARY KEY CHECK (kind IN ('a', 'b'))`, an enum, a boolean.
    ///
    /// Rows of tables that inherit from it are rows of it as well, and indexes do not see them.
    pub(crate) fn listed_keys(&self, table: &Relation) -> Option<u64> {
        if !table.children.is_empty() || table.unique_indexes.is_empty() {
            return None;
        }
        table.listed_keys.get(self.generation, || self.find_listed_keys(table))
    }

    fn find_listed_keys(&self, table: &Relation) -> Option<u64> {
        let values = |key: &Expr| self.listed_values(table, key.as_column()?);
        let keys = self.unique_indexes(table).filter_map(|index| {
            let mut keys = index.elements.iter().map(|element| &element.key);
            keys.try_fold(1, |product: u64, key| product.checked_mul(values(key)?))
        });
        keys.min().filter(|keys| *keys <= MAX_KEYS)
    }

    /// How many values a column can have that is never NULL, if the schema lists them.
    fn listed_values(&self, table: &Relation, name: &str) -> Option<u64> {
        let column = table.column(name).filter(|column| column.not_null)?;
        let checks = table.constraints.iter().filter(|constraint| constraint.holds());
        let checks = checks.filter_map(|constraint| match &constraint.kind {
            ConstraintKind::Check { expression, .. } => values_allowed(expression, name),
            _ => None,
        });
        let of_type = match self.get_type(column.sql_type.oid).map(|found| &found.kind) {
            Some(TypeKind::Enum { labels }) => Some(labels.len() as u64),
            _ if column.sql_type.oid.0 == oid::BOOL => Some(2),
            _ => None,
        };
        checks.chain(of_type).min()
    }
}

/// How many values of the column a condition allows, if it lists them.
fn values_allowed(condition: &Expr, column: &str) -> Option<u64> {
    let is_column = |expr: &Expr| column_of(without_casts(expr)).is_some_and(|name| name == column);
    match &condition.kind {
        ExprKind::And(conditions) => conditions.iter().filter_map(|one| values_allowed(one, column)).min(),
        ExprKind::Or(conditions) => {
            conditions.iter().try_fold(0, |sum: u64, one| sum.checked_add(values_allowed(one, column)?))
        }
        ExprKind::Operator { operator, form, operands, .. } if operator == "=" => match (form, operands.as_slice()) {
            (OperatorForm::Plain, [left, right]) => {
                ((is_column(left) && is_constant(right)) || (is_column(right) && is_constant(left))).then_some(1)
            }
            (OperatorForm::In, [left, values @ ..]) if is_column(left) => count_constants(values),
            (OperatorForm::AnyArray, [left, values]) if is_column(left) => match &without_casts(values).kind {
                ExprKind::Array(values) => count_constants(values),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn count_constants(values: &[Expr]) -> Option<u64> {
    values.iter().all(is_constant).then_some(values.len() as u64)
}

/// `pg_dump` writes `(kind)::text = ANY ((ARRAY['a'::character varying])::text[])`.
fn without_casts(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Cast { operand, .. } => without_casts(operand),
        _ => expr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(condition: &str) -> Option<u64> {
        let statement = format!("SELECT {condition}");
        let parsed = pgvet_syntax::statement::parse(&statement);
        let Ok(pgvet_syntax::ast::Ast::Select(query)) = parsed[0].parsed.as_deref() else { panic!("{condition}") };
        let pgvet_syntax::ast::QueryBody::Select(select) = &query.body else { panic!("{condition}") };
        values_allowed(&select.targets[0].value, "kind")
    }

    #[test]
    fn lists_are_counted() {
        assert_eq!(allowed("kind IN ('a', 'b')"), Some(2));
        assert_eq!(allowed("(kind)::text = ANY ((ARRAY['a'::varchar, 'b', 'c'])::text[])"), Some(3));
        assert_eq!(allowed("kind = 'a' OR 'b' = kind"), Some(2));
        assert_eq!(allowed("kind = 'a' AND other > 1"), Some(1));
    }

    #[test]
    fn other_conditions_list_nothing() {
        assert_eq!(allowed("kind IN ('a', other)"), None);
        assert_eq!(allowed("kind = 'a' OR other = 'b'"), None);
        assert_eq!(allowed("kind NOT IN ('a', 'b')"), None);
        assert_eq!(allowed("kind <> 'a'"), None);
        assert_eq!(allowed("kind IN ('a', NULL)"), None);
        assert_eq!(allowed("length(kind) = 3"), None);
    }
}
