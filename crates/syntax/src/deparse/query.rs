//! Queries, as they stand in expressions.

use super::{NotKept, Text, expression, function, list};
use crate::ast::{
    Alias, Cte, Expr, FromItem, JoinKind, ObjectName, Omitted, Query, QueryBody, QueryStatement, RowLockStrength,
    RowLocking, Select, SetOperator, SortDirection, Sorting, Target, With,
};
use crate::lexer::quote_identifier;
use smol_str::SmolStr;

pub(super) fn write(query: &Query) -> Text {
    if let Some(omitted) = query.omitted {
        return Err(NotKept(match omitted {
            Omitted::WithTies => "WITH TIES",
            Omitted::SortOperator => "the operator of ORDER BY",
            Omitted::GroupByDistinct => "GROUP BY DISTINCT",
            Omitted::NaturalOuterJoin => "a natural outer join",
            Omitted::JoinAlias => "the alias of a join",
            Omitted::TableSample => "TABLESAMPLE",
        }));
    }
    let mut text = match &query.body {
        QueryBody::Select(select) => write_select(select)?,
        QueryBody::Values(rows) => {
            let row = |row: &Vec<Expr>| Ok(format!("({})", list(row, expression::write)?));
            format!("VALUES {}", list(rows, row)?)
        }
        QueryBody::SetOperation { operator: SetOperator::Union, all: true, left, right } => {
            let operands = union_all(left, right).unwrap_or_else(|| vec![left, right]);
            let operand = |query: &&Query| Ok(format!("({})", write(query)?));
            operands.iter().map(operand).collect::<Result<Vec<String>, NotKept>>()?.join(" UNION ALL ")
        }
        QueryBody::SetOperation { operator, all, left, right } => {
            let word = match operator {
                SetOperator::Union => "UNION",
                SetOperator::Intersect => "INTERSECT",
                SetOperator::Except => "EXCEPT",
            };
            let all = if *all { " ALL" } else { "" };
            format!("({}) {word}{all} ({})", write(left)?, write(right)?)
        }
    };
    if let Some(with) = query.with.as_ref() {
        text = format!("{} {text}", write_with(with)?);
    }
    if !query.order_by.is_empty() {
        text = format!(
            "{text} ORDER BY {}",
            write_order(&query.order_by, query.sorting.as_ref().map_or(&[], Vec::as_slice))?
        );
    }
    if let Some(limit) = query.limit.as_ref() {
        text = format!("{text} LIMIT {}", expression::write(limit)?);
    }
    if let Some(offset) = query.offset.as_ref() {
        text = format!("{text} OFFSET {}", expression::write(offset)?);
    }
    for locking in &query.locking {
        text = format!("{text} {}", write_locking(locking));
    }
    Ok(text)
}

fn write_with(with: &With) -> Text {
    let cte = |cte: &Cte| {
        let QueryStatement::Select(query) = &cte.statement else { return Err(NotKept("a data change in WITH")) };
        if cte.has_order_or_cycle {
            return Err(NotKept("SEARCH and CYCLE"));
        }
        let columns = if cte.columns.is_empty() { String::new() } else { format!(" ({})", names(&cte.columns)) };
        let materialized = match cte.materialized {
            Some(true) => "MATERIALIZED ",
            Some(false) => "NOT MATERIALIZED ",
            None => "",
        };
        Ok(format!("{}{columns} AS {materialized}({})", quoted(&cte.name.text), write(query)?))
    };
    let recursive = if with.recursive { "RECURSIVE " } else { "" };
    Ok(format!("WITH {recursive}{}", list(&with.ctes, cte)?))
}

fn write_order(keys: &[Expr], sorting: &[Sorting]) -> Text {
    let mut texts = Vec::new();
    for (at, key) in keys.iter().enumerate() {
        let sorting = sorting.get(at).copied().unwrap_or_default();
        let direction = match sorting.direction {
            Some(SortDirection::Ascending) => " ASC",
            Some(SortDirection::Descending) => " DESC",
            None => "",
        };
        let nulls = match sorting.nulls_first {
            Some(true) => " NULLS FIRST",
            Some(false) => " NULLS LAST",
            None => "",
        };
        texts.push(format!("{}{direction}{nulls}", expression::write(key)?));
    }
    Ok(texts.join(", "))
}

fn write_locking(locking: &RowLocking) -> String {
    let strength = match locking.strength {
        RowLockStrength::KeyShare => "FOR KEY SHARE",
        RowLockStrength::Share => "FOR SHARE",
        RowLockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
        RowLockStrength::Update => "FOR UPDATE",
    };
    let of: Vec<String> = locking.of.iter().map(relation).collect();
    let of = if of.is_empty() { String::new() } else { format!(" OF {}", of.join(", ")) };
    let wait = match locking {
        RowLocking { nowait: true, .. } => " NOWAIT",
        RowLocking { skip_locked: true, .. } => " SKIP LOCKED",
        _ => "",
    };
    format!("{strength}{of}{wait}")
}

pub(super) fn relation(name: &ObjectName) -> String {
    let schema = name.schema.as_ref().map_or_else(String::new, |schema| format!("{}.", quoted(&schema.text)));
    format!("{schema}{}", quoted(&name.name.text))
}

/// The operands of `a UNION ALL b UNION ALL c ...`, whose tree is balanced: that of any other nesting is not flat.
fn union_all<'q>(left: &'q Query, right: &'q Query) -> Option<Vec<&'q Query>> {
    let (mut operands, after) = (operands(left), operands(right));
    let is_balanced = operands.len() == (operands.len() + after.len()).next_power_of_two() / 2;
    operands.extend(after);
    is_balanced.then_some(operands)
}

/// The operands of a side, which is one itself unless it is nothing but UNION ALL.
fn operands(query: &Query) -> Vec<&Query> {
    let is_plain = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locking.is_empty()
        && query.omitted.is_none();
    match &query.body {
        QueryBody::SetOperation { operator: SetOperator::Union, all: true, left, right } if is_plain => {
            union_all(left, right).unwrap_or_else(|| vec![query])
        }
        _ => vec![query],
    }
}

fn write_select(select: &Select) -> Text {
    if !select.windows.is_empty() {
        return Err(NotKept("a WINDOW clause"));
    }
    if select.into.as_ref().is_some() {
        return Err(NotKept("INTO"));
    }
    let distinct = match select.distinct.as_ref() {
        None => String::new(),
        Some(on) if on.is_empty() => " DISTINCT".to_owned(),
        Some(on) => format!(" DISTINCT ON ({})", list(on, expression::write)?),
    };
    let mut text = format!("SELECT{distinct} {}", list(&select.targets, write_target)?);
    if !select.from.is_empty() {
        text = format!("{text} FROM {}", list(&select.from, write_from)?);
    }
    if let Some(filter) = select.filter.as_ref() {
        text = format!("{text} WHERE {}", expression::write(filter)?);
    }
    if !select.group_by.is_empty() {
        text = format!("{text} GROUP BY {}", list(&select.group_by, expression::write)?);
    }
    if let Some(having) = select.having.as_ref() {
        text = format!("{text} HAVING {}", expression::write(having)?);
    }
    Ok(text)
}

fn write_target(target: &Target) -> Text {
    let value = expression::write(&target.value)?;
    Ok(match &target.alias {
        Some(alias) => format!("{value} AS {}", quote_identifier(alias)),
        None => value,
    })
}

fn write_from(item: &FromItem) -> Text {
    match item {
        FromItem::Relation(relation) => {
            let only = if relation.only { "ONLY " } else { "" };
            Ok(format!("{only}{}{}", self::relation(&relation.name), alias(relation.alias.as_ref())))
        }
        FromItem::Subquery { query, alias: called, lateral } => {
            let lateral = if *lateral { "LATERAL " } else { "" };
            Ok(format!("{lateral}({}){}", write(query)?, alias(called.as_ref())))
        }
        FromItem::Function { calls, form, alias: called, lateral, .. } => {
            let lateral = if *lateral { "LATERAL " } else { "" };
            Ok(format!("{lateral}{}", function::write(calls, form.as_ref(), called.as_ref())?))
        }
        FromItem::Join { kind, left, right, on, using } => {
            let (left, right) = (write_from(left)?, write_from(right)?);
            let word = match kind {
                JoinKind::Inner if on.is_none() && using.is_empty() => "CROSS JOIN",
                JoinKind::Inner => "JOIN",
                JoinKind::Left => "LEFT JOIN",
                JoinKind::Right => "RIGHT JOIN",
                JoinKind::Full => "FULL JOIN",
                JoinKind::Natural => "NATURAL JOIN",
            };
            let condition = match on {
                Some(on) => format!(" ON {}", expression::write(on)?),
                None if using.is_empty() => String::new(),
                None => format!(" USING ({})", names(using)),
            };
            Ok(format!("({left} {word} {right}{condition})"))
        }
    }
}

fn quoted(name: &SmolStr) -> String {
    quote_identifier(name)
}

fn names(names: &[SmolStr]) -> String {
    names.iter().map(quoted).collect::<Vec<String>>().join(", ")
}

pub(super) fn alias(alias: Option<&Alias>) -> String {
    match alias {
        None => String::new(),
        Some(alias) if alias.columns.is_empty() => format!(" AS {}", quoted(&alias.name)),
        Some(alias) => format!(" AS {}({})", quoted(&alias.name), names(&alias.columns)),
    }
}
