//! Columns that a statement names and that no relation in sight has, level by level as PostgreSQL resolves names.
//!
//! Source: PostgreSQL 18, `src/backend/parser/parse_relation.c`, `colNameToVar` and `scanRTEForColumn`.

use pgvet_model::catalog::Relation;
use pgvet_syntax::ast::{
    Alias, Assignment, Ast, ConflictTarget, Delete, Expr, ExprKind, FromItem, Insert, InsertSource, Merge, MergeAction,
    ObjectName, OperatorForm, Query, QueryBody, QueryStatement, RelationRef, Select, Target, Update, With,
};
use pgvet_syntax::source::TextRange;
use smol_str::{SmolStr, format_smolstr};
use std::rc::Rc;

/// Columns by name.
#[derive(Debug, Clone)]
pub(super) enum Columns<'a> {
    Relation(&'a Relation),
    /// Those of a query.
    Listed(Rc<[SmolStr]>),
    Unknown,
}

impl Columns<'_> {
    /// `None` if that is not known.
    pub(super) fn has(&self, column: &str) -> Option<bool> {
        match self {
            Self::Relation(relation) => Some(relation.column(column).is_some()),
            Self::Listed(columns) => Some(columns.iter().any(|own| own == column)),
            Self::Unknown => None,
        }
    }

    fn names(&self) -> Option<Vec<SmolStr>> {
        match self {
            Self::Relation(relation) => Some(relation.columns.iter().map(|column| column.name.clone()).collect()),
            Self::Listed(columns) => Some(columns.to_vec()),
            Self::Unknown => None,
        }
    }

    fn renamed(self, alias: &[SmolStr]) -> Self {
        if alias.is_empty() {
            return self;
        }
        let Some(names) = self.names().filter(|names| names.len() >= alias.len()) else { return Self::Unknown };
        Self::Listed(alias.iter().cloned().chain(names.into_iter().skip(alias.len())).collect())
    }
}

/// An item of FROM.
#[derive(Debug, Clone)]
struct Item<'a> {
    alias: SmolStr,
    columns: Columns<'a>,
}

/// What lacks a column.
#[derive(Debug, Clone)]
pub(super) enum Lacking<'a> {
    Relation(&'a Relation),
    /// A query in FROM or WITH.
    Query(SmolStr),
    /// All relations in sight.
    All,
}

/// A name that is no column, and may be a variable.
#[derive(Debug, Clone)]
pub(super) enum Named<'a> {
    /// `column`, or `qualifier.column`.
    Missing { qualifier: Option<SmolStr>, column: SmolStr, range: TextRange, of: Lacking<'a> },
    /// A column of USING that a side of the join lacks.
    NotJoined { column: SmolStr, of: Lacking<'a> },
    /// The qualifier is that of no relation in sight.
    OfVariable { record: SmolStr, column: SmolStr, range: TextRange },
}

/// Looks a relation up; `None` if not all of its columns are known.
pub(super) type Known<'k, 'a> = &'k dyn Fn(&ObjectName) -> Option<&'a Relation>;

/// Returns the names of a statement that are no columns.
pub(super) fn unresolved<'a>(ast: &Ast, known: Known<'_, 'a>) -> Vec<Named<'a>> {
    let mut resolver = Resolver::new(known);
    match ast {
        Ast::Select(query) | Ast::DeclareCursor(query) => drop(resolver.query(query)),
        Ast::CreateTableAs(create) => create.query.iter().for_each(|query| drop(resolver.query(query))),
        Ast::Insert(insert) => drop(resolver.insert(insert)),
        Ast::Update(update) => drop(resolver.update(update)),
        Ast::Delete(delete) => drop(resolver.delete(delete)),
        Ast::Merge(merge) => drop(resolver.merge(merge)),
        Ast::Call(call) => call.call.arguments.iter().for_each(|argument| resolver.expression(&argument.value)),
        _ => {}
    }
    resolver.found
}

/// Returns the columns that a query returns.
pub(super) fn returned<'a>(query: &Query, known: Known<'_, 'a>) -> Columns<'a> {
    Resolver::new(known).query(query)
}

struct Resolver<'k, 'a> {
    known: Known<'k, 'a>,
    /// The FROM clauses around the place that is being read, the outermost first.
    levels: Vec<Vec<Item<'a>>>,
    /// Queries of WITH, later ones last.
    ctes: Vec<Item<'a>>,
    /// Names of output columns, where an expression may mean them.
    outputs: Vec<SmolStr>,
    found: Vec<Named<'a>>,
}

impl<'k, 'a> Resolver<'k, 'a> {
    fn new(known: Known<'k, 'a>) -> Self {
        Self { known, levels: Vec::new(), ctes: Vec::new(), outputs: Vec::new(), found: Vec::new() }
    }

    fn query(&mut self, query: &Query) -> Columns<'a> {
        let outside = self.ctes.len();
        self.with(query.with.as_ref());
        self.levels.push(Vec::new());
        let columns = match &query.body {
            QueryBody::Select(select) => self.select(select, query),
            QueryBody::Values(rows) => {
                rows.iter().flatten().for_each(|value| self.expression(value));
                let width = rows.first().map_or(0, Vec::len);
                Columns::Listed((1..=width).map(|at| format_smolstr!("column{at}")).collect())
            }
            QueryBody::SetOperation { left, right, .. } => {
                let columns = self.query(left);
                self.query(right);
                columns
            }
        };
        let bounds = query.limit.iter().chain(query.offset.iter());
        bounds.for_each(|bound| self.expression(bound));
        self.levels.pop();
        self.ctes.truncate(outside);
        columns
    }

    fn with(&mut self, with: Option<&With>) {
        let Some(with) = with else { return };
        for cte in &with.ctes {
            let alias = cte.name.text.clone();
            if with.recursive {
                self.ctes.push(Item { alias: alias.clone(), columns: Columns::Unknown });
            }
            let columns = match &cte.statement {
                QueryStatement::Select(query) => self.query(query),
                QueryStatement::Insert(insert) => self.insert(insert),
                QueryStatement::Update(update) => self.update(update),
                QueryStatement::Delete(delete) => self.delete(delete),
                QueryStatement::Merge(merge) => self.merge(merge),
            };
            let columns = if cte.has_order_or_cycle { Columns::Unknown } else { columns.renamed(&cte.columns) };
            self.ctes.push(Item { alias, columns });
        }
    }

    fn select(&mut self, select: &Select, query: &Query) -> Columns<'a> {
        if query.omitted.is_some() {
            self.add(SmolStr::default(), Columns::Unknown);
        }
        self.from(&select.from);
        let columns = self.targets(&select.targets);
        let plain = select.filter.iter().chain(select.having.iter()).chain(&select.windows);
        plain.for_each(|expression| self.expression(expression));
        let outside = std::mem::replace(&mut self.outputs, columns.names().unwrap_or_default());
        let ordered = select.distinct.iter().flatten().chain(&select.group_by).chain(&query.order_by);
        for expression in ordered.filter(|_| columns.names().is_some()) {
            self.expression(expression);
        }
        self.outputs = outside;
        columns
    }

    /// FROM: conditions of joins are read when all items are there.
    fn from(&mut self, items: &[FromItem]) {
        let mut conditions = Vec::new();
        items.iter().for_each(|item| self.item(item, &mut conditions));
        conditions.into_iter().for_each(|condition| self.expression(condition));
    }

    fn item<'f>(&mut self, item: &'f FromItem, conditions: &mut Vec<&'f Expr>) {
        match item {
            FromItem::Relation(relation) => self.relation(relation),
            FromItem::Subquery { query, alias, lateral } => {
                let columns = if *lateral {
                    self.query(query)
                } else {
                    let level = self.levels.last_mut().map(std::mem::take).unwrap_or_default();
                    let columns = self.query(query);
                    self.levels.last_mut().into_iter().for_each(|own| own.clone_from(&level));
                    columns
                };
                self.aliased(alias.as_ref(), columns);
            }
            FromItem::Function { calls, alias, .. } => {
                calls.iter().for_each(|call| self.expression(call));
                self.aliased(alias.as_ref(), Columns::Unknown);
            }
            FromItem::Join { left, right, on, using, .. } => {
                let start = self.width();
                self.item(left, conditions);
                let middle = self.width();
                self.item(right, conditions);
                for column in using {
                    for side in [start..middle, middle..self.width()] {
                        let items = self.levels.last().map(|level| level[side].to_vec()).unwrap_or_default();
                        if items.iter().all(|item| item.columns.has(column) == Some(false)) {
                            self.found.push(Named::NotJoined { column: column.clone(), of: lacking(&items) });
                        }
                    }
                }
                conditions.extend(on);
            }
        }
    }

    fn width(&self) -> usize {
        self.levels.last().map_or(0, Vec::len)
    }

    fn relation(&mut self, relation: &RelationRef) {
        let name = &relation.name;
        let cte = self.ctes.iter().rev().find(|cte| name.schema.is_none() && cte.alias == name.name.text);
        let columns = match cte {
            Some(cte) => cte.columns.clone(),
            None => (self.known)(name).map_or(Columns::Unknown, Columns::Relation),
        };
        let renamed = relation.alias.as_ref().map_or(&[][..], |alias| &alias.columns);
        self.add(relation.called().clone(), columns.renamed(renamed));
    }

    fn aliased(&mut self, alias: Option<&Alias>, columns: Columns<'a>) {
        let renamed = alias.map_or(&[][..], |alias| &alias.columns);
        self.add(alias.map(|alias| alias.name.clone()).unwrap_or_default(), columns.renamed(renamed));
    }

    fn add(&mut self, alias: SmolStr, columns: Columns<'a>) {
        self.levels
            .last_mut()
            .into_iter()
            .for_each(|level| level.push(Item { alias: alias.clone(), columns: columns.clone() }));
    }

    /// Output columns, with their names.
    fn targets(&mut self, targets: &[Target]) -> Columns<'a> {
        let mut names: Option<Vec<SmolStr>> = Some(Vec::new());
        for target in targets {
            self.expression(&target.value);
            let own = match &target.alias {
                Some(alias) => Some(vec![alias.clone()]),
                None => self.output_names(&target.value),
            };
            names = names.zip(own).map(|(all, own)| [all, own].concat());
        }
        names.map_or(Columns::Unknown, |names| Columns::Listed(names.into()))
    }

    /// The names of an output column without an alias; several for `*`.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_target.c`, `FigureColnameInternal`.
    fn output_names(&self, value: &Expr) -> Option<Vec<SmolStr>> {
        let level = self.levels.last()?;
        match &value.kind {
            ExprKind::Column(path) => Some(vec![path.last()?.clone()]),
            ExprKind::Call(call) => Some(vec![call.name.clone()]),
            ExprKind::Star(path) => {
                let is_meant = |item: &&Item<'_>| path.last().is_none_or(|alias| item.alias == *alias);
                let lists: Option<Vec<_>> = level.iter().filter(is_meant).map(|item| item.columns.names()).collect();
                Some(lists?.concat()).filter(|names| !names.is_empty())
            }
            ExprKind::Literal(_) | ExprKind::IsNull { .. } | ExprKind::Operator { form: OperatorForm::Plain, .. } => {
                Some(vec![SmolStr::new_static("?column?")])
            }
            ExprKind::Coalesce(_) => Some(vec![SmolStr::new_static("coalesce")]),
            _ => None,
        }
    }

    /// The table of a data change, and what else it reads, as a level of its own.
    fn change(&mut self, with: Option<&With>, table: &RelationRef, from: &[FromItem]) -> usize {
        let outside = self.ctes.len();
        self.with(with);
        self.levels.push(Vec::new());
        self.target(table);
        self.from(from);
        outside
    }

    fn end_change(&mut self, outside: usize, returning: &[Target]) -> Columns<'a> {
        let columns = self.targets(returning);
        self.levels.pop();
        self.ctes.truncate(outside);
        columns
    }

    /// The name of a table that is changed is none of WITH.
    fn target(&mut self, table: &RelationRef) {
        let columns = (self.known)(&table.name).map_or(Columns::Unknown, Columns::Relation);
        self.add(table.called().clone(), columns);
    }

    fn insert(&mut self, insert: &Insert) -> Columns<'a> {
        let outside = self.ctes.len();
        self.with(insert.with.as_ref());
        if let InsertSource::Query(query) = &insert.source {
            self.query(query);
        }
        self.levels.push(Vec::new());
        self.target(&insert.table);
        if let Some(conflict) = &insert.on_conflict {
            if let Some(ConflictTarget::Inference { elements, predicate }) = &conflict.target {
                elements.iter().chain(predicate).for_each(|element| self.expression(element));
            }
            if let Some(row) = self.levels.last().and_then(|level| level.first()).cloned() {
                self.add(SmolStr::new_static("excluded"), row.columns);
            }
            self.assigned(conflict.update.iter().flatten());
            conflict.update_filter.iter().for_each(|filter| self.expression(filter));
            self.levels.last_mut().into_iter().for_each(|level| level.truncate(1));
        }
        self.end_change(outside, &insert.returning)
    }

    fn update(&mut self, update: &Update) -> Columns<'a> {
        let outside = self.change(update.with.as_ref(), &update.table, &update.from);
        self.assigned(&update.assignments);
        update.filter.iter().for_each(|filter| self.expression(filter));
        self.end_change(outside, &update.returning)
    }

    fn delete(&mut self, delete: &Delete) -> Columns<'a> {
        let outside = self.change(delete.with.as_ref(), &delete.table, &delete.using);
        delete.filter.iter().for_each(|filter| self.expression(filter));
        self.end_change(outside, &delete.returning)
    }

    fn merge(&mut self, merge: &Merge) -> Columns<'a> {
        let outside = self.change(merge.with.as_ref(), &merge.table, std::slice::from_ref(&merge.source));
        self.expression(&merge.on);
        for branch in &merge.branches {
            branch.condition.iter().for_each(|condition| self.expression(condition));
            match &branch.action {
                MergeAction::Insert { values, .. } => values.iter().for_each(|value| self.expression(value)),
                MergeAction::Update(assignments) => self.assigned(assignments),
                MergeAction::Delete | MergeAction::DoNothing => {}
            }
        }
        self.end_change(outside, &merge.returning)
    }

    fn assigned<'f>(&mut self, assignments: impl IntoIterator<Item = &'f Assignment>) {
        assignments.into_iter().for_each(|assignment| self.expression(&assignment.value));
    }

    fn expression(&mut self, expression: &Expr) {
        let mut parts = Vec::new();
        expression.walk(&mut |part| parts.push(part));
        for part in parts {
            match &part.kind {
                ExprKind::Column(path) => match path.as_slice() {
                    [column] => self.unqualified(column, part.range),
                    [qualifier, column] => self.qualified(qualifier, column, part.range),
                    _ => {}
                },
                ExprKind::Subquery { query, .. } => {
                    let outputs = std::mem::take(&mut self.outputs);
                    self.query(query);
                    self.outputs = outputs;
                }
                _ => {}
            }
        }
    }

    fn unqualified(&mut self, column: &SmolStr, range: TextRange) {
        let means = |item: &Item<'_>| item.columns.has(column) != Some(false) || item.alias == *column;
        if self.outputs.contains(column) || self.levels.iter().flatten().any(means) {
            return;
        }
        let Some(level) = self.levels.iter().rev().find(|level| !level.is_empty()) else { return };
        let of = if self.levels.iter().flatten().count() == 1 { lacking(level) } else { Lacking::All };
        self.found.push(Named::Missing { qualifier: None, column: column.clone(), range, of });
    }

    fn qualified(&mut self, qualifier: &SmolStr, column: &SmolStr, range: TextRange) {
        let item = self.levels.iter().rev().find_map(|level| level.iter().find(|item| item.alias == *qualifier));
        let Some(item) = item else {
            let (record, column) = (qualifier.clone(), column.clone());
            return self.found.push(Named::OfVariable { record, column, range });
        };
        if item.columns.has(column) == Some(false) {
            let of = lacking(std::slice::from_ref(item));
            let (qualifier, column) = (Some(qualifier.clone()), column.clone());
            self.found.push(Named::Missing { qualifier, column, range, of });
        }
    }
}

fn lacking<'a>(items: &[Item<'a>]) -> Lacking<'a> {
    match items {
        [Item { columns: Columns::Relation(relation), .. }] => Lacking::Relation(relation),
        [Item { alias, .. }] => Lacking::Query(alias.clone()),
        _ => Lacking::All,
    }
}
