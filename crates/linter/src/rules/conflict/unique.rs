//! The unique indexes of a table: which rows they refuse, and which ON CONFLICT targets match them.

use crate::rule::RoutineContext;
use crate::rules::text::{enumerate, identifier};
use pgvet_model::catalog::{Catalog, Constraint, Index, Relation, RelationKind};
use pgvet_model::routine::Code;
use pgvet_syntax::ast::{Expr, ExprKind, Literal, OperatorForm};
use smol_str::SmolStr;
use std::sync::Arc;

/// A unique index that can refuse a row.
#[derive(Debug, Clone)]
pub(crate) struct UniqueIndex<'a> {
    pub(crate) name: &'a SmolStr,
    pub(crate) index: &'a Index,
    pub(crate) constraint: Option<&'a Constraint>,
    /// The indexes that already have an entry for the row when this one refuses it.
    pub(crate) filled_before: Vec<&'a SmolStr>,
}

/// The unique indexes of a table, in the order in which an INSERT fills them.
///
/// That is the order of their oids, so of their creation. Source: PostgreSQL 18,
/// src/backend/utils/cache/relcache.c, `RelationGetIndexList`; src/backend/access/nbtree/nbtinsert.c, `_bt_doinsert`,
/// which looks for the key before it makes an entry.
pub(crate) fn unique_indexes<'a>(catalog: &'a Catalog, table: &'a Relation) -> Vec<UniqueIndex<'a>> {
    let mut indexes: Vec<&Arc<Relation>> = table.indexes.iter().filter_map(|oid| catalog.get_relation(*oid)).collect();
    indexes.sort_unstable_by_key(|index| index.oid);
    let unique = |(at, relation): (usize, &&'a Arc<Relation>)| {
        let index = relation.index()?;
        let constraint = table.constraints.iter().find(|constraint| constraint.index() == Some(relation.oid));
        (index.unique && index.valid).then(|| UniqueIndex {
            name: &relation.name,
            index,
            constraint: constraint.map(|constraint| &**constraint),
            filled_before: indexes[..at].iter().map(|index| &index.name).collect(),
        })
    };
    indexes.iter().enumerate().filter_map(unique).collect()
}

/// Whether ON CONFLICT DO NOTHING can be used without a target. PostgreSQL refuses that at run time if any unique or
/// exclusion constraint is deferrable, and it would ignore the violation of an exclusion constraint, too.
///
/// Source: PostgreSQL 18, src/backend/executor/execIndexing.c, `ExecCheckIndexConstraints`.
pub(crate) fn accepts_any_conflict(table: &Relation) -> bool {
    table.constraints.iter().filter(|constraint| constraint.index().is_some()).all(|constraint| {
        !constraint.deferrable && !matches!(constraint.kind, pgvet_model::catalog::ConstraintKind::Exclude { .. })
    })
}

/// Whether ON CONFLICT can be used at all. Rules that rewrite the statement prevent it.
///
/// Source: PostgreSQL 18, src/backend/rewrite/rewriteHandler.c, `RewriteQuery`.
pub(crate) fn accepts_on_conflict(table: &Relation) -> bool {
    table.rules.is_empty()
}

/// Which names the target of ON CONFLICT cannot use: in PL/pgSQL those of variables, unless the code says otherwise.
pub(crate) fn ambiguity<'a>(context: &'a RoutineContext<'_>) -> impl Fn(&SmolStr) -> bool + 'a {
    let is_open = match &context.routine.code {
        Code::Plpgsql(body) => {
            !body.options.iter().any(|option| option.name == "variable_conflict" && option.value == "use_column")
        }
        Code::Sql(_) => false,
    };
    move |name| is_open && context.routine.is_variable(std::slice::from_ref(name))
}

impl UniqueIndex<'_> {
    /// Whether it refuses a duplicate at once, so that ON CONFLICT can use it.
    fn is_immediate(&self) -> bool {
        !self.constraint.is_some_and(|constraint| constraint.deferrable)
    }

    /// The plain columns of the key; `None` if it has an expression.
    pub(crate) fn columns(&self) -> Option<Vec<SmolStr>> {
        self.index.plain_columns()
    }

    /// Every column of the key, those inside expressions included.
    pub(crate) fn all_columns(&self) -> impl Iterator<Item = &SmolStr> {
        let mut found = Vec::new();
        for element in self.index.elements.iter() {
            element.key.walk(&mut |part| found.extend(part.as_column()));
        }
        found.into_iter()
    }

    /// What ON CONFLICT must say to mean this index: `(tenant, lower(email)) WHERE deleted_at IS NULL`. `None` where
    /// PostgreSQL accepts nothing, or where the definition cannot be shown.
    ///
    /// A column of the target that is also the name of a PL/pgSQL variable is ambiguous; `is_variable` says which are.
    ///
    /// Source: PostgreSQL 18, src/backend/optimizer/util/plancat.c, `infer_arbiter_indexes`.
    pub(crate) fn conflict_target(&self, is_variable: &dyn Fn(&SmolStr) -> bool) -> Option<String> {
        if !self.is_immediate() {
            return None;
        }
        let keys = self.index.elements.iter().map(|element| &element.key);
        let is_ambiguous = keys.clone().chain(self.index.predicate.as_deref()).any(|expression| {
            let mut found = false;
            expression.walk(&mut |part| found |= part.as_column().is_some_and(is_variable));
            found
        });
        if is_ambiguous {
            let constraint = self.constraint?;
            return Some(format!("ON CONSTRAINT {}", identifier(&constraint.name)));
        }
        let keys: Option<Vec<String>> = keys.map(key).collect();
        let keys = keys?.join(", ");
        Some(match &self.index.predicate {
            Some(predicate) => format!("({keys}) WHERE {}", sql(predicate)?),
            None => format!("({keys})"),
        })
    }
}

/// What an INSERT leaves behind that these indexes refuse: the row, and entries in the indexes that are filled first.
pub(crate) fn left_behind(table: &Relation, refusing: &[UniqueIndex<'_>]) -> String {
    let before = refusing.first().map_or(&[][..], |first| &first.filled_before);
    if table.kind == RelationKind::PartitionedTable {
        return format!("a dead row in a partition of `{}`", table.name);
    }
    if before.is_empty() {
        return format!("a dead row in `{}`", table.name);
    }
    let entries = if before.len() == 1 { "a dead index entry" } else { "dead index entries" };
    format!("a dead row in `{}` and {entries} in {}", table.name, enumerate(before.iter().map(|name| name.as_str())))
}

/// A key of ON CONFLICT: anything but a column or a call needs parentheses.
fn key(expression: &Expr) -> Option<String> {
    let text = sql(expression)?;
    let is_plain = matches!(expression.kind, ExprKind::Column(_) | ExprKind::Call(_));
    Some(if is_plain { text } else { format!("({text})") })
}

/// The expressions that index definitions usually have, as SQL.
fn sql(expression: &Expr) -> Option<String> {
    let each = |list: &[Expr]| -> Option<Vec<String>> { list.iter().map(operand).collect() };
    Some(match &expression.kind {
        ExprKind::Column(path) => identifier(path.last()?),
        ExprKind::Literal(literal) => match literal {
            Literal::Integer(number) => number.to_string(),
            Literal::Numeric(digits) => digits.to_string(),
            Literal::Boolean(value) => value.to_string(),
            Literal::String(text) if !text.contains('\\') => format!("'{}'", text.replace('\'', "''")),
            Literal::Null => "NULL".to_owned(),
            _ => return None,
        },
        ExprKind::Call(call) if !call.star && !call.variadic && !call.distinct && call.window.is_none() => {
            let schema = call.schema.as_ref().map_or_else(String::new, |schema| format!("{}.", identifier(schema)));
            let values: Option<Vec<String>> = call.arguments.iter().map(|argument| sql(&argument.value)).collect();
            format!("{schema}{}({})", identifier(&call.name), values?.join(", "))
        }
        ExprKind::Operator { schema: None, operator, form: OperatorForm::Plain, operands } => {
            match each(operands)?.as_slice() {
                [only] => format!("{operator} {only}"),
                [left, right] => format!("{left} {operator} {right}"),
                _ => return None,
            }
        }
        ExprKind::Operator { operator, form: OperatorForm::In, operands, .. } => {
            let (subject, list) = operands.split_first()?;
            let not = if operator == "<>" { "NOT " } else { "" };
            format!("{} {not}IN ({})", operand(subject)?, each(list)?.join(", "))
        }
        ExprKind::Coalesce(list) => {
            format!("COALESCE({})", list.iter().map(sql).collect::<Option<Vec<_>>>()?.join(", "))
        }
        ExprKind::Cast { operand: value, target } if target.modifiers.is_empty() && !target.setof => {
            let schema = target.schema.as_ref().map_or_else(String::new, |schema| format!("{}.", identifier(schema)));
            let array = if target.is_array { "[]" } else { "" };
            format!("{}::{schema}{}{array}", operand(value)?, identifier(&target.name))
        }
        ExprKind::And(list) => each(list)?.join(" AND "),
        ExprKind::Or(list) => each(list)?.join(" OR "),
        ExprKind::Not(value) => format!("NOT {}", operand(value)?),
        ExprKind::IsNull { operand: value, negated } => {
            format!("{} IS {}NULL", operand(value)?, if *negated { "NOT " } else { "" })
        }
        _ => return None,
    })
}

/// The same as an operand: in parentheses unless it is one word or one call.
fn operand(expression: &Expr) -> Option<String> {
    let text = sql(expression)?;
    let is_plain = matches!(
        expression.kind,
        ExprKind::Column(_)
            | ExprKind::Literal(_)
            | ExprKind::Call(_)
            | ExprKind::Coalesce(_)
            | ExprKind::IsNull { .. }
    );
    Some(if is_plain { text } else { format!("({text})") })
}
