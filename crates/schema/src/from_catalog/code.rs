//! Expressions of a catalog as SQL.

use crate::object::{Code, Known};
use pgvet_model::catalog::{Catalog, Relation};
use pgvet_syntax::ast::{Expr, ExprKind, Name, ObjectName, Part, PartitionBound, PartitionStrategy};
use pgvet_syntax::deparse::{self, NotKept};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

pub(super) fn expression(expr: &Expr) -> Code {
    code(deparse::expression(expr))
}

/// An expression that belongs to a relation. One with a query that names a relation by a name that none has now is not
/// known; otherwise such a name is that of the relation itself, and is omitted.
pub(super) fn of_relation(catalog: &Catalog, relation: &Relation, expr: &Expr) -> Code {
    let search_path = [relation.schema.clone(), SmolStr::new_static("public")];
    let is_gone = |name: &ObjectName| catalog.is_gone(name, &search_path);
    let (mut is_stale, mut has_query) = (false, false);
    expr.visit(&mut |part| match part {
        Part::Query(_) => has_query = true,
        Part::Read(read) => is_stale |= is_gone(&read.name),
        Part::Expr(Expr { kind: ExprKind::Column(parts), .. }) => {
            is_stale |= table_of(parts).is_some_and(|table| is_gone(&table));
        }
        _ => {}
    });
    if is_stale && has_query {
        return Known::unknown("an expression that names a renamed or dropped relation");
    }
    let mut own = expr.clone();
    if is_stale {
        omit_tables(&mut own);
    }
    expression(&own)
}

/// Writes each column without its table.
fn omit_tables(expr: &mut Expr) {
    if let ExprKind::Column(path) = &mut expr.kind {
        path.drain(..path.len().saturating_sub(1));
    }
    expr.for_each_child_mut(&mut omit_tables);
}

/// The table by which a column is qualified.
fn table_of(column: &[SmolStr]) -> Option<ObjectName> {
    let name = |text: &SmolStr| Name { text: text.clone(), range: TextRange::default() };
    let (_, table) = column.split_last()?;
    let (table, schema) = table.split_last()?;
    Some(ObjectName { schema: schema.last().map(name), name: name(table) })
}

pub(super) fn code(text: Result<String, NotKept>) -> Code {
    text.map_or_else(|NotKept(part)| Known::unknown(part), Known::Value)
}

fn list(items: &[Expr]) -> Result<String, NotKept> {
    let items: Result<Vec<String>, NotKept> = items.iter().map(deparse::expression).collect();
    Ok(items?.join(", "))
}

/// `RANGE (a, lower(b))`.
pub(super) fn partition_key(strategy: PartitionStrategy, keys: &[Expr]) -> Code {
    let word = match strategy {
        PartitionStrategy::Range => "RANGE",
        PartitionStrategy::List => "LIST",
        PartitionStrategy::Hash => "HASH",
    };
    let key = |key: &Expr| match key.as_column() {
        Some(_) => deparse::expression(key),
        None => Ok(format!("({})", deparse::expression(key)?)),
    };
    let keys: Result<Vec<String>, NotKept> = keys.iter().map(key).collect();
    code(keys.map(|keys| format!("{word} ({})", keys.join(", "))))
}

/// `FOR VALUES IN (1, 2)`. MINVALUE and MAXVALUE are columns of that name.
pub(super) fn partition_bound(bound: &PartitionBound) -> Code {
    code(match bound {
        PartitionBound::Default => Ok("DEFAULT".to_owned()),
        PartitionBound::List(values) => list(values).map(|values| format!("FOR VALUES IN ({values})")),
        PartitionBound::Range { from, to } => {
            list(from).and_then(|from| Ok(format!("FOR VALUES FROM ({from}) TO ({})", list(to)?)))
        }
        PartitionBound::Hash { modulus, remainder } => {
            Ok(format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})"))
        }
    })
}
