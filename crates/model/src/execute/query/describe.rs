//! The names and types of a query's columns.

use crate::builtin::oid;
use crate::catalog::{Oid, RelationKind, SqlType};
use crate::execute::Executor;
use crate::execute::scope::{MAX_COLUMNS, QueryColumn, Scope, ScopeItem, joined, renamed};
use pgvet_syntax::ast::{
    Alias, Ast, Expr, ExprKind, FromItem, IndirectionStep, Literal, OperatorForm, Query, QueryBody, QueryStatement,
    Select, SubqueryKind, Target, With,
};
use smol_str::{SmolStr, format_smolstr};

pub(super) const TEXT: SqlType = SqlType::new(Oid(25));
/// PostgreSQL's pseudo-type `unknown`.
const UNKNOWN_LITERAL: Oid = Oid(705);

/// The columns of the WITH queries in sight, innermost last; `None` where they are not known.
pub(super) type Ctes = imbl::HashMap<SmolStr, Option<Vec<QueryColumn>>>;

/// The columns of every sequence.
pub(in crate::execute) fn sequence_columns() -> [QueryColumn; 3] {
    let column = |name, oid| (SmolStr::new_static(name), SqlType::new(Oid(oid)));
    [column("last_value", oid::INT8), column("log_cnt", oid::INT8), column("is_called", oid::BOOL)]
}

impl Executor<'_> {
    /// The names and types of a query's columns; `None` where a relation in it is not known.
    pub(crate) fn describe_query(&mut self, query: &Query) -> Option<Vec<QueryColumn>> {
        self.query_columns(query, None, &Ctes::default())
    }

    /// The same for a statement that returns rows; `None` for one that returns none.
    pub(crate) fn describe_statement(&mut self, ast: &Ast) -> Option<Vec<QueryColumn>> {
        let (ctes, with, table, returning) = match ast {
            Ast::Select(query) => return self.describe_query(query),
            Ast::Insert(insert) => (Ctes::default(), &insert.with, &insert.table.name, &insert.returning),
            Ast::Update(update) => (Ctes::default(), &update.with, &update.table.name, &update.returning),
            Ast::Delete(delete) => (Ctes::default(), &delete.with, &delete.table.name, &delete.returning),
            _ => return None,
        };
        if returning.is_empty() {
            return None;
        }
        let ctes = self.describe_with(with.as_ref(), None, &ctes);
        self.describe_returning(table, returning, None, &ctes)
    }

    fn query_columns(&mut self, query: &Query, outer: Option<&Scope<'_>>, ctes: &Ctes) -> Option<Vec<QueryColumn>> {
        let ctes = self.describe_with(query.with.as_ref(), outer, ctes);
        match &query.body {
            QueryBody::Select(select) => self.describe_select(select, outer, &ctes),
            QueryBody::Values(rows) => {
                let scope = Scope::new(outer);
                let mut types: Vec<SqlType> = Vec::new();
                for row in rows {
                    for (at, value) in row.iter().enumerate() {
                        let next = self.expression_type(value, &scope, &ctes);
                        match types.get_mut(at) {
                            Some(known) => *known = self.common_type(*known, next),
                            None => types.push(next),
                        }
                    }
                }
                let named = types.into_iter().enumerate();
                Some(named.map(|(at, sql_type)| (format_smolstr!("column{}", at + 1), sql_type)).collect())
            }
            QueryBody::SetOperation { left, right, .. } => {
                let left = self.query_columns(left, outer, &ctes)?;
                let right = self.query_columns(right, outer, &ctes);
                let types = right.into_iter().flatten().map(|(_, sql_type)| Some(sql_type));
                let pairs = left.into_iter().zip(types.chain(std::iter::repeat(None)));
                Some(
                    pairs
                        .map(|((name, left), right)| {
                            (name, right.map_or(SqlType::UNKNOWN, |right| self.common_type(left, right)))
                        })
                        .collect(),
                )
            }
        }
    }

    fn describe_with(&mut self, with: Option<&With>, outer: Option<&Scope<'_>>, around: &Ctes) -> Ctes {
        let mut ctes = around.clone();
        for cte in with.iter().flat_map(|with| &with.ctes) {
            let columns = match &cte.statement {
                QueryStatement::Select(query) => match &query.body {
                    // The first part of a recursive query decides its columns.
                    QueryBody::SetOperation { left, .. } if with.is_some_and(|with| with.recursive) => {
                        let inner = self.describe_with(query.with.as_ref(), outer, &ctes);
                        self.query_columns(left, outer, &inner)
                    }
                    _ => self.query_columns(query, outer, &ctes),
                },
                QueryStatement::Insert(insert) => {
                    self.describe_returning(&insert.table.name, &insert.returning, outer, &ctes)
                }
                QueryStatement::Update(update) => {
                    self.describe_returning(&update.table.name, &update.returning, outer, &ctes)
                }
                QueryStatement::Delete(delete) => {
                    self.describe_returning(&delete.table.name, &delete.returning, outer, &ctes)
                }
                QueryStatement::Merge(_) => None,
            };
            let alias = Alias { name: cte.name.text.clone(), columns: cte.columns.clone() };
            ctes.insert(cte.name.text.clone(), renamed(columns, Some(&alias)));
        }
        ctes
    }

    fn describe_returning(
        &mut self,
        table: &pgvet_syntax::ast::ObjectName,
        returning: &[Target],
        outer: Option<&Scope<'_>>,
        ctes: &Ctes,
    ) -> Option<Vec<QueryColumn>> {
        let mut scope = Scope::new(outer);
        let relation = self.find(table);
        let columns = relation.and_then(|oid| self.relation_columns(oid));
        scope.add(ScopeItem { alias: table.name.text.clone(), relation, columns: columns.clone() });
        scope.extend_star(columns);
        self.describe_targets(returning, &scope, ctes)
    }

    fn describe_select(&mut self, select: &Select, outer: Option<&Scope<'_>>, ctes: &Ctes) -> Option<Vec<QueryColumn>> {
        let mut scope = Scope::new(outer);
        for item in &select.from {
            let columns = self.add_from_item(item, &mut scope, outer, ctes);
            scope.extend_star(columns);
        }
        self.describe_targets(&select.targets, &scope, ctes)
    }

    fn describe_targets(&mut self, targets: &[Target], scope: &Scope<'_>, ctes: &Ctes) -> Option<Vec<QueryColumn>> {
        let mut columns = Vec::new();
        for target in targets {
            match &target.value.kind {
                ExprKind::Star(path) => match path.last() {
                    None => columns.extend_from_slice(scope.star()?),
                    Some(alias) => columns.extend_from_slice(scope.star_of(alias)?),
                },
                ExprKind::Indirection { steps, .. } if steps.contains(&IndirectionStep::AllFields) => return None,
                _ => {
                    let name = target.alias.clone().unwrap_or_else(|| self.output_name(&target.value));
                    let sql_type = self.expression_type(&target.value, scope, ctes);
                    columns.push((name, sql_type));
                }
            }
            if columns.len() > MAX_COLUMNS {
                return None;
            }
        }
        Some(columns)
    }

    /// Adds the names of an item of FROM, and returns what it adds to `*`.
    fn add_from_item(
        &mut self,
        item: &FromItem,
        scope: &mut Scope<'_>,
        outer: Option<&Scope<'_>>,
        ctes: &Ctes,
    ) -> Option<Vec<QueryColumn>> {
        let (alias, relation, columns) = match item {
            FromItem::Join { kind, left, right, using, .. } => {
                let left = self.add_from_item(left, scope, outer, ctes);
                let right = self.add_from_item(right, scope, outer, ctes);
                return joined(*kind, left, right, using);
            }
            FromItem::Relation(relation) => {
                let name = &relation.name;
                let cte = if name.schema.is_none() { ctes.get(&name.name.text) } else { None };
                let alias = relation.alias.as_ref();
                let shown = alias.map_or(&name.name.text, |alias| &alias.name).clone();
                if let Some(columns) = cte {
                    (shown, None, renamed(columns.clone(), alias))
                } else {
                    let oid = self.find(name);
                    let columns = oid.and_then(|oid| self.relation_columns(oid));
                    (shown, oid, renamed(columns, alias))
                }
            }
            FromItem::Subquery { query, alias, .. } => {
                let columns = renamed(self.query_columns(query, outer, ctes), alias.as_ref());
                (alias.as_ref().map(|alias| alias.name.clone()).unwrap_or_default(), None, columns)
            }
            FromItem::Function { calls, form, alias, .. } => {
                let columns = self.columns_of_functions(calls, form.as_ref(), alias.as_ref(), scope, ctes);
                let name = alias.as_ref().map(|alias| alias.name.clone());
                let name = name.or_else(|| calls.first().map(|call| self.output_name(call)));
                (name.unwrap_or_default(), None, columns)
            }
        };
        scope.add(ScopeItem { alias, relation, columns: columns.clone() });
        columns
    }

    /// The columns of a relation, where all of them are known.
    pub(super) fn relation_columns(&self, oid: Oid) -> Option<Vec<QueryColumn>> {
        let relation = self.catalog.relation(oid);
        if relation.kind == RelationKind::Sequence {
            return Some(sequence_columns().to_vec());
        }
        let columns = relation.columns.iter().map(|column| (column.name.clone(), column.sql_type));
        relation.known.then(|| columns.collect())
    }

    /// The type of a whole row: `t` in `SELECT t FROM t`.
    fn whole_row(&self, path: &[SmolStr], scope: &Scope<'_>) -> Option<SqlType> {
        let [alias] = path else { return None };
        let relation = self.catalog.get_relation(scope.relation_named(alias)?)?;
        self.catalog.type_named(&relation.schema, &relation.name).map(SqlType::new)
    }

    /// The type of an expression in a query; unknown where the model cannot tell.
    pub(super) fn expression_type(&mut self, expr: &Expr, scope: &Scope<'_>, ctes: &Ctes) -> SqlType {
        let sql_type = match &expr.kind {
            ExprKind::Column(path) => {
                scope.column_type(path).or_else(|| self.whole_row(path, scope)).unwrap_or(SqlType::UNKNOWN)
            }
            ExprKind::Cast { target, .. } => self.resolve_type(target),
            ExprKind::Literal(Literal::String(_) | Literal::Null) => TEXT,
            ExprKind::Subquery { kind: SubqueryKind::Scalar, query, .. } => {
                let columns = self.query_columns(query, Some(scope), ctes);
                columns.and_then(|columns| columns.first().map(|(_, first)| *first)).unwrap_or(SqlType::UNKNOWN)
            }
            _ => {
                let names = scope.for_expressions();
                self.with_analyzer(|analyzer| analyzer.type_of(expr, names))
            }
        };
        // A literal whose type is still open becomes text.
        if sql_type.oid == UNKNOWN_LITERAL { TEXT } else { sql_type }
    }

    fn common_type(&self, left: SqlType, right: SqlType) -> SqlType {
        self.with_analyzer(|analyzer| analyzer.common_type(&[left, right]))
    }

    /// The name of an output column without alias.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_target.c`, `FigureColname`.
    fn output_name(&self, expr: &Expr) -> SmolStr {
        let name = self.figure_name(expr).map(|(name, _)| name);
        name.unwrap_or_else(|| SmolStr::new_static("?column?"))
    }

    /// The name and whether it is a strong one, which a cast or CASE around it does not replace.
    fn figure_name(&self, expr: &Expr) -> Option<(SmolStr, bool)> {
        let strong = |name: &str| Some((SmolStr::new(name), true));
        match &expr.kind {
            ExprKind::Column(path) => path.last().map(|name| (name.clone(), true)),
            ExprKind::Indirection { operand, steps } => {
                let field = steps.iter().rev().find_map(|step| match step {
                    IndirectionStep::Field(name) => Some((name.clone(), true)),
                    _ => None,
                });
                field.or_else(|| self.figure_name(operand))
            }
            ExprKind::Call(call) => strong(&call.name),
            ExprKind::Operator { form: OperatorForm::NullIf, .. } => strong("nullif"),
            ExprKind::Cast { operand, target } => match self.figure_name(operand) {
                Some((name, true)) => Some((name, true)),
                _ => Some((target.name.clone(), false)),
            },
            ExprKind::Collate { operand, .. } => self.figure_name(operand),
            ExprKind::Subquery { kind, query, .. } => match kind {
                SubqueryKind::Exists => strong("exists"),
                SubqueryKind::Array => strong("array"),
                SubqueryKind::Scalar => match &query.body {
                    QueryBody::Select(select) => {
                        let first = select.targets.first()?;
                        Some((first.alias.clone().unwrap_or_else(|| self.output_name(&first.value)), true))
                    }
                    QueryBody::Values(_) => strong("column1"),
                    QueryBody::SetOperation { .. } => None,
                },
                SubqueryKind::Any | SubqueryKind::AnyOther | SubqueryKind::All => None,
            },
            ExprKind::Case { otherwise, .. } => match otherwise.as_deref().and_then(|other| self.figure_name(other)) {
                Some((name, true)) => Some((name, true)),
                _ => Some((SmolStr::new_static("case"), false)),
            },
            ExprKind::Array(_) => strong("array"),
            ExprKind::Row(_) => strong("row"),
            ExprKind::Coalesce(_) => strong("coalesce"),
            ExprKind::MinMax { least: false, .. } => strong("greatest"),
            ExprKind::MinMax { least: true, .. } => strong("least"),
            ExprKind::SqlValue(name, _) => Some((name.clone(), true)),
            // Before 15 the grammar made TRUE and FALSE of casts.
            ExprKind::Literal(Literal::Boolean(_)) if !self.target.at_least(15) => {
                Some((SmolStr::new_static("bool"), false))
            }
            ExprKind::Other(node, _) if node == "GroupingFunc" => strong("grouping"),
            _ => None,
        }
    }
}
