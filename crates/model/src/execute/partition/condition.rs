//! The exact condition that the bound of a partition puts on its rows, as SQL.
//!
//! Source: PostgreSQL 18, `src/backend/partitioning/partbounds.c`, `get_qual_from_partbound`.

use super::Executor;
use crate::catalog::{Oid, Relation};
use crate::effect::Written;
use pgvet_syntax::ast::{Expr, ExprKind, Literal, PartitionBound};
use pgvet_syntax::deparse::{self, NotKept};
use pgvet_syntax::lexer::quote_identifier;

/// One end of a range.
#[derive(Clone, Copy)]
enum End {
    From,
    To,
}

impl Executor<'_> {
    /// The condition of a bound, with those of the parent's own bounds.
    pub(super) fn bound_condition(&self, parent: Oid, bound: &PartitionBound) -> Written {
        let relation = self.catalog.relation(parent);
        let own = match bound {
            PartitionBound::Default => self.default_condition(relation)?,
            _ => self.own_condition(relation, bound)?,
        };
        match (&relation.partition_bound, relation.parents.first()) {
            (Some(bound), Some(grandparent)) => Ok(format!("{own} AND {}", self.bound_condition(*grandparent, bound)?)),
            _ => Ok(own),
        }
    }

    /// No other partition takes the row.
    fn default_condition(&self, parent: &Relation) -> Written {
        if !parent.known {
            return Err(NotKept("the bounds of partitions that no migration shows"));
        }
        let siblings =
            parent.children.iter().filter_map(|child| self.catalog.relation(*child).partition_bound.as_deref());
        let others = siblings
            .filter(|bound| **bound != PartitionBound::Default)
            .map(|bound| self.own_condition(parent, bound))
            .collect::<Result<Vec<String>, NotKept>>()?;
        Ok(if others.is_empty() { "true".to_owned() } else { format!("NOT ({})", others.join(" OR ")) })
    }

    /// The condition of a bound that is not DEFAULT, in brackets.
    pub(super) fn own_condition(&self, parent: &Relation, bound: &PartitionBound) -> Written {
        if self.has_placeholders {
            return Err(NotKept("a placeholder whose value is not known"));
        }
        let keys = parent.partition_by.as_ref().map(|by| by.keys.as_slice()).unwrap_or_default();
        let keys = keys.iter().map(operand).collect::<Result<Vec<String>, NotKept>>()?;
        let Some(first) = keys.first() else { return Err(NotKept("the key of a partitioned table")) };
        Ok(match bound {
            PartitionBound::List(values) => format!("({})", list_condition(first, values)?),
            PartitionBound::Range { from, to } => {
                let mut parts: Vec<String> = keys.iter().map(|key| format!("{key} IS NOT NULL")).collect();
                parts.extend(end_condition(&keys, from, End::From)?);
                parts.extend(end_condition(&keys, to, End::To)?);
                format!("({})", parts.join(" AND "))
            }
            PartitionBound::Hash { modulus, remainder } => {
                let name = format!("{}.{}", quote_identifier(&parent.schema), quote_identifier(&parent.name));
                let (name, keys) = (deparse::string(&name), keys.join(", "));
                format!("satisfies_hash_partition({name}::regclass, {modulus}, {remainder}, {keys})")
            }
            PartitionBound::Default => return Err(NotKept("the bound of a DEFAULT partition")),
        })
    }
}

fn operand(key: &Expr) -> Written {
    let text = deparse::expression(key)?;
    Ok(if key.as_column().is_some() { text } else { format!("({text})") })
}

fn list_condition(key: &str, values: &[Expr]) -> Written {
    let is_null = |value: &&Expr| matches!(value.kind, ExprKind::Literal(Literal::Null));
    let others = values
        .iter()
        .filter(|value| !is_null(value))
        .map(deparse::expression)
        .collect::<Result<Vec<String>, NotKept>>()?;
    let others = if others.is_empty() { "false".to_owned() } else { format!("{key} IN ({})", others.join(", ")) };
    Ok(if values.iter().any(|value| is_null(&value)) {
        format!("{key} IS NULL OR {others}")
    } else {
        format!("{key} IS NOT NULL AND {others}")
    })
}

/// The condition of one end on the keys; `None` if it excludes nothing.
fn end_condition(keys: &[String], values: &[Expr], end: End) -> Result<Option<String>, NotKept> {
    let (Some((key, keys)), Some((value, values))) = (keys.split_first(), values.split_first()) else {
        return Ok(None);
    };
    let (strict, inclusive, all, nothing) = match end {
        End::From => (">", ">=", "minvalue", "maxvalue"),
        End::To => ("<", "<", "maxvalue", "minvalue"),
    };
    let is_word = |word: &str| value.as_column().is_some_and(|written| written.eq_ignore_ascii_case(word));
    if is_word(all) {
        return Ok(None);
    }
    if is_word(nothing) {
        return Ok(Some("false".to_owned()));
    }
    let value = operand(value)?;
    if keys.is_empty() {
        return Ok(Some(format!("{key} {inclusive} {value}")));
    }
    Ok(Some(match end_condition(keys, values, end)? {
        // Nothing excludes what follows in the key.
        None => format!("{key} {strict}= {value}"),
        Some(rest) => format!("({key} {strict} {value} OR {key} = {value} AND {rest})"),
    }))
}
