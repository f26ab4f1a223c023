//! Expressions of a catalog as SQL.

use crate::object::{Code, Known};
use pgvet_syntax::ast::{Expr, PartitionBound, PartitionStrategy};
use pgvet_syntax::deparse::{self, NotKept};

pub(super) fn expression(expr: &Expr) -> Code {
    code(deparse::expression(expr))
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
