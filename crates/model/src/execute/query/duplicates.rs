//! DELETE of rows that repeat the key of another row, which stays.

use crate::catalog::Oid;
use crate::execute::Executor;
use pgvet_syntax::ast::{
    Delete, Expr, ExprKind, FromItem, FunctionCall, Literal, OperatorForm, Part, Query, QueryBody, QueryStatement,
    RelationRef, Select, SubqueryKind,
};
use smol_str::SmolStr;

/// Maximum depth of nested queries that are followed.
const MAX_DEPTH: u8 = 10;

/// A numbering of the rows of each key: its name, and the key.
type Numbering<'a> = (&'a SmolStr, Vec<SmolStr>);

/// The search for the key of a DELETE.
struct Search<'a> {
    executor: &'a Executor<'a>,
    table: Oid,
    delete: &'a Delete,
    numbered: Vec<Numbering<'a>>,
}

impl Executor<'_> {
    /// The columns of a key of which a DELETE keeps one row each, if it deletes only rows that repeat the key of another.
    pub(super) fn key_of_duplicates(&self, table: Oid, delete: &Delete) -> Option<Vec<SmolStr>> {
        let mut search = Search { executor: self, table, delete, numbered: Vec::new() };
        search.numbered = search.numberings();
        let own = conjuncts(delete.filter.as_ref());
        let of_condition = |condition: &&Expr| search.key_of_condition(condition, &own);
        own.iter().find_map(of_condition).or_else(|| search.key_of_using(&own))
    }
}

impl<'a> Search<'a> {
    /// `row_number() OVER (PARTITION BY key ...) AS name` in queries of the table.
    fn numberings(&self) -> Vec<Numbering<'a>> {
        let mut found = Vec::new();
        let mut note = |query: &'a Query| {
            let Some(select) = self.select_of_table(query) else { return };
            for target in &select.targets {
                if let (Some(name), ExprKind::Call(call)) = (&target.alias, &target.value.kind)
                    && let Some(key) = partition_key(call)
                {
                    found.push((name, key));
                }
            }
        };
        let mut visit = |part: Part<'a>| {
            if let Part::Query(query) = part {
                note(query);
            }
        };
        self.delete.filter.iter().for_each(|filter| filter.visit(&mut visit));
        self.ctes().for_each(|(_, query)| query.visit(&mut visit));
        for item in &self.delete.using {
            if let FromItem::Subquery { query, .. } = item {
                query.visit(&mut visit);
            }
        }
        found
    }

    fn ctes(&self) -> impl Iterator<Item = (&'a SmolStr, &'a Query)> + use<'a> {
        let ctes = self.delete.with.iter().flat_map(|with| &with.ctes);
        ctes.filter_map(|cte| match &cte.statement {
            QueryStatement::Select(query) => Some((&cte.name.text, &**query)),
            _ => None,
        })
    }

    /// The SELECT of a query that reads only the table.
    fn select_of_table(&self, query: &'a Query) -> Option<&'a Select> {
        let QueryBody::Select(select) = &query.body else { return None };
        let [FromItem::Relation(only)] = select.from.as_slice() else { return None };
        (self.is_table(only) && query.limit.is_none() && query.offset.is_none()).then_some(&**select)
    }

    fn is_table(&self, reference: &RelationRef) -> bool {
        let is_cte = reference.name.schema.is_none() && self.ctes().any(|(name, _)| *name == reference.name.name.text);
        !is_cte && self.executor.find(&reference.name) == Some(self.table)
    }

    /// The key for which a condition, with the others of the statement, selects only duplicates.
    fn key_of_condition(&self, condition: &'a Expr, all: &[&'a Expr]) -> Option<Vec<SmolStr>> {
        match &condition.kind {
            ExprKind::Not(inner) => match &inner.kind {
                ExprKind::Subquery { kind: SubqueryKind::Any, test: Some(test), query } => {
                    self.key_of_kept(test, query, all)
                }
                _ => None,
            },
            ExprKind::Subquery { kind: SubqueryKind::Exists, query, .. } => self.key_of_correlated(query),
            ExprKind::Subquery { kind: SubqueryKind::Any, test: Some(test), query } => self.key_of_list(test, query),
            ExprKind::Operator { form: OperatorForm::AnyArray, operator, operands, .. } if operator == "=" => {
                let [test, list] = operands.as_slice() else { return None };
                match &list.kind {
                    ExprKind::Subquery { kind: SubqueryKind::Array, query, .. } => self.key_of_list(test, query),
                    _ => None,
                }
            }
            ExprKind::Operator { form: OperatorForm::Plain, operator, operands, .. } => match operands.as_slice() {
                [one, other] if matches!(operator.as_str(), "<" | ">" | "<>" | "!=") => {
                    self.key_of_extreme(one, other).or_else(|| self.key_of_extreme(other, one))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// `id IN (SELECT id FROM numbered WHERE number > 1)`. A column that several rows share, or one of the key, would also
    /// find the row that is first.
    fn key_of_list(&self, test: &Expr, query: &'a Query) -> Option<Vec<SmolStr>> {
        let tested = column(test)?;
        let key = self.key_of_selected(query, MAX_DEPTH)?;
        (!key.contains(tested) && self.is_of_one_row(tested)).then_some(key)
    }

    /// Whether the values of a column are different in all rows, as far as migrations show the table.
    fn is_of_one_row(&self, column: &SmolStr) -> bool {
        let catalog = &self.executor.catalog;
        let table = catalog.relation(self.table);
        let mut keys = catalog.unique_indexes(table).filter_map(|index| index.plain_columns());
        column == "ctid" || !table.known || keys.any(|key| matches!(key.as_slice(), [only] if only == column))
    }

    /// `id NOT IN (SELECT min(id) FROM t GROUP BY key)`. What else the query excludes, the statement must exclude, too.
    fn key_of_kept(&self, test: &Expr, query: &'a Query, all: &[&'a Expr]) -> Option<Vec<SmolStr>> {
        let select = self.select_of_table(query)?;
        let [target] = select.targets.as_slice() else { return None };
        let is_excluded = |condition: &&Expr| all.iter().any(|own| own.is_same(condition));
        if select.having.is_some() || !conjuncts(select.filter.as_ref()).iter().all(is_excluded) {
            return None;
        }
        let tested = column(test)?;
        if let Some(distinct) = select.distinct.as_ref().filter(|distinct| !distinct.is_empty()) {
            return (column(&target.value) == Some(tested)).then(|| columns(distinct)).flatten();
        }
        (extreme(&target.value) == Some(tested)).then(|| columns(&select.group_by)).flatten()
    }

    /// Rows that a query selects by their number among those with the same key, or one of each key that several have.
    fn key_of_selected(&self, query: &'a Query, depth: u8) -> Option<Vec<SmolStr>> {
        let QueryBody::Select(select) = &query.body else { return None };
        let depth = depth.checked_sub(1)?;
        let numbered = || conjuncts(select.filter.as_ref()).into_iter().find_map(|part| self.key_of_number(part));
        let repeated = || {
            let is_repeated = select.having.iter().any(|having| conjuncts([having]).into_iter().any(counts_several));
            let select = self.select_of_table(query).filter(|_| is_repeated)?;
            let [target] = select.targets.as_slice() else { return None };
            extreme(&target.value).and_then(|_| columns(&select.group_by))
        };
        let inner = || select.from.iter().find_map(|item| self.key_of_item(item, depth));
        numbered().or_else(repeated).or_else(inner)
    }

    /// `number > 1`, for a number that a query gives the rows of each key.
    fn key_of_number(&self, condition: &Expr) -> Option<Vec<SmolStr>> {
        let ExprKind::Operator { form: OperatorForm::Plain, operator, operands, .. } = &condition.kind else {
            return None;
        };
        let [number, least] = operands.as_slice() else { return None };
        let is_later = match operator.as_str() {
            ">" | "<>" | "!=" => is_number(least, 1),
            ">=" => is_number(least, 2),
            _ => false,
        };
        let name = column(number).filter(|_| is_later)?;
        self.numbered.iter().find(|(numbered, _)| *numbered == name).map(|(_, key)| key.clone())
    }

    fn key_of_item(&self, item: &'a FromItem, depth: u8) -> Option<Vec<SmolStr>> {
        match item {
            FromItem::Subquery { query, .. } => self.key_of_selected(query, depth),
            FromItem::Relation(relation) if relation.name.schema.is_none() => {
                let (_, query) = self.ctes().find(|(name, _)| **name == relation.name.name.text)?;
                self.key_of_selected(query, depth)
            }
            _ => None,
        }
    }

    /// `DELETE FROM t USING ...`: another row of the table with the same key, or numbered rows.
    fn key_of_using(&self, own: &[&'a Expr]) -> Option<Vec<SmolStr>> {
        let using = &self.delete.using;
        if using.is_empty() {
            return None;
        }
        let numbered = own.iter().find_map(|condition| self.key_of_number(condition));
        let selected = || using.iter().find_map(|item| self.key_of_item(item, MAX_DEPTH));
        let itself = || {
            let [FromItem::Relation(other)] = using.as_slice() else { return None };
            if self.is_table(other) { key_of_other_row(own) } else { None }
        };
        let kept = || using.iter().find_map(|item| self.key_of_others(item, own));
        numbered.or_else(selected).or_else(kept).or_else(itself)
    }

    /// `USING (SELECT key, min(id) AS kept FROM t GROUP BY key) d WHERE t.key = d.key AND t.id <> d.kept`.
    fn key_of_others(&self, item: &'a FromItem, own: &[&'a Expr]) -> Option<Vec<SmolStr>> {
        let query = match item {
            FromItem::Subquery { query, .. } => &**query,
            FromItem::Relation(relation) => self.ctes().find(|(name, _)| **name == relation.name.name.text)?.1,
            _ => return None,
        };
        let select = self.select_of_table(query)?;
        let key = columns(&select.group_by)?;
        let kept = select.targets.iter().find(|target| extreme(&target.value).is_some())?.alias.as_ref()?;
        let is_other = |condition: &&Expr| match &condition.kind {
            ExprKind::Operator { form: OperatorForm::Plain, operator, operands, .. } => {
                let is_kept = operands.iter().any(|operand| column(operand) == Some(kept));
                is_kept && matches!(operator.as_str(), "<>" | "!=" | "<" | ">")
            }
            _ => false,
        };
        let joined: Vec<SmolStr> = own.iter().filter_map(|condition| equated(condition)).collect();
        let is_joined = key.iter().all(|column| joined.contains(column));
        (is_joined && own.iter().any(is_other)).then_some(key)
    }

    /// `EXISTS (SELECT FROM t other WHERE other.key = t.key AND other.id < t.id)`.
    fn key_of_correlated(&self, query: &'a Query) -> Option<Vec<SmolStr>> {
        let select = self.select_of_table(query)?;
        if !select.group_by.is_empty() || select.having.is_some() {
            return None;
        }
        key_of_other_row(&conjuncts(select.filter.as_ref()))
    }

    /// `id > (SELECT min(id) FROM t other WHERE other.key = t.key)`.
    fn key_of_extreme(&self, tested: &Expr, value: &'a Expr) -> Option<Vec<SmolStr>> {
        let ExprKind::Subquery { kind: SubqueryKind::Scalar, query, .. } = &value.kind else { return None };
        let select = self.select_of_table(query)?;
        let [target] = select.targets.as_slice() else { return None };
        if extreme(&target.value)? != column(tested)? {
            return None;
        }
        let key: Vec<SmolStr> = conjuncts(select.filter.as_ref()).into_iter().filter_map(equated).collect();
        (!key.is_empty()).then_some(key)
    }
}

/// The key of `a.key = b.key AND a.id < b.id`: equal in all but a column in which one of the rows is first.
fn key_of_other_row(conditions: &[&Expr]) -> Option<Vec<SmolStr>> {
    let is_ordered = |condition: &&Expr| match &condition.kind {
        ExprKind::Operator { form: OperatorForm::Plain, operator, operands, .. } => {
            matches!(operator.as_str(), "<" | ">") && same_column(operands).is_some()
        }
        _ => false,
    };
    let key: Vec<SmolStr> = conditions.iter().filter_map(|condition| equated(condition)).collect();
    (!key.is_empty() && conditions.iter().any(is_ordered)).then_some(key)
}

/// The column of `a.key = b.key` or `a.key IS NOT DISTINCT FROM b.key`.
fn equated(condition: &Expr) -> Option<SmolStr> {
    let ExprKind::Operator { form, operator, operands, .. } = &condition.kind else { return None };
    let is_equality = match form {
        OperatorForm::Plain => operator == "=",
        form => *form == OperatorForm::NotDistinct,
    };
    same_column(operands).filter(|_| is_equality).cloned()
}

/// The column that two operands read of two different rows.
fn same_column(operands: &[Expr]) -> Option<&SmolStr> {
    let [ExprKind::Column(one), ExprKind::Column(other)] = [&operands.first()?.kind, &operands.get(1)?.kind] else {
        return None;
    };
    (one != other && one.last() == other.last()).then(|| one.last()).flatten()
}

/// The parts of a condition that all have to hold.
fn conjuncts<'a>(filter: impl IntoIterator<Item = &'a Expr>) -> Vec<&'a Expr> {
    let mut found = Vec::new();
    let mut open: Vec<&'a Expr> = filter.into_iter().collect();
    while let Some(next) = open.pop() {
        match &next.kind {
            ExprKind::And(parts) => open.extend(parts.iter().rev()),
            _ => found.push(next),
        }
    }
    found
}

/// The key of `row_number() OVER (PARTITION BY key ...)`.
fn partition_key(call: &FunctionCall) -> Option<Vec<SmolStr>> {
    let window = call.window.as_ref().filter(|_| matches!(call.name.as_str(), "row_number" | "rank" | "dense_rank"))?;
    columns(window.get(..usize::try_from(call.partition_keys).ok()?)?)
}

/// The names of columns, if all of one or more expressions are columns.
fn columns(expressions: &[Expr]) -> Option<Vec<SmolStr>> {
    let columns: Vec<SmolStr> = expressions.iter().map(|one| column(one).cloned()).collect::<Option<_>>()?;
    (!columns.is_empty()).then_some(columns)
}

fn column(expression: &Expr) -> Option<&SmolStr> {
    match &expression.kind {
        ExprKind::Column(path) => path.last(),
        _ => None,
    }
}

/// The column of `min(column)` or `max(column)`.
fn extreme(value: &Expr) -> Option<&SmolStr> {
    let ExprKind::Call(call) = &value.kind else { return None };
    let [only] = call.arguments.as_slice() else { return None };
    let is_extreme = matches!(call.name.as_str(), "min" | "max") && call.window.is_none() && call.filter.is_none();
    column(&only.value).filter(|_| is_extreme)
}

/// `count(*) > 1`.
fn counts_several(condition: &Expr) -> bool {
    let ExprKind::Operator { form: OperatorForm::Plain, operator, operands, .. } = &condition.kind else {
        return false;
    };
    let [count, least] = operands.as_slice() else { return false };
    let is_count = matches!(&count.kind, ExprKind::Call(call) if call.name == "count");
    is_count && (operator == ">" && is_number(least, 1) || operator == ">=" && is_number(least, 2))
}

fn is_number(value: &Expr, number: i64) -> bool {
    value.kind == ExprKind::Literal(Literal::Integer(number))
}
