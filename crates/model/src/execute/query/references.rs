//! Dependencies of a query: the relations and columns that a view or function keeps.

use super::describe::sequence_columns;
use crate::builtin::{self, BuiltinFunction};
use crate::catalog::{ConditionCall, ConditionReads, Oid, RelationKind};
use crate::execute::alter_table::is_system_column;
use crate::execute::{Executor, Run, fail};
use crate::expression::parameter_at;
use pgvet_syntax::ast::{
    Ast, Expr, ExprKind, FromItem, IndirectionStep, InsertSource, Part, Query, QueryBody, QueryStatement, RelationRef,
    Select,
};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A system column: it stands for "no column" where an empty list would mean that the columns are not known.
const NO_COLUMN: &str = "tableoid";

/// A name in FROM: a relation, or something that is none.
struct Item {
    alias: SmolStr,
    relation: Option<usize>,
    /// Whether its columns have the names of those of the relation.
    plain: bool,
}

/// The relations found so far, and the FROM clauses around the place that is being read.
#[derive(Default)]
struct Collector {
    relations: Vec<Found>,
    scopes: Vec<Vec<Item>>,
    /// Names of WITH that are visible; cloning it is cheap.
    ctes: imbl::HashSet<SmolStr>,
    /// In a place where a name can be that of an output column.
    in_output: bool,
    /// The first column that no relation in sight has.
    missing: Option<SmolStr>,
    /// The first `alias.column` that the relation does not have.
    missing_of_row: Option<SmolStr>,
}

struct Found {
    oid: Oid,
    columns: Vec<SmolStr>,
    used: Vec<SmolStr>,
    known: bool,
}

impl Executor<'_> {
    /// The relations that a query reads, with the columns of each that it uses; no columns where they are not known.
    pub(crate) fn query_references(&self, query: &Query) -> Vec<(Oid, Vec<SmolStr>)> {
        let mut collector = Collector::default();
        self.collect_query(query, &mut collector);
        let mut references: Vec<(Oid, Vec<SmolStr>)> = Vec::new();
        for found in collector.relations {
            let mut used = found.used;
            if !found.known {
                used.clear();
            } else if used.is_empty() {
                used.push(SmolStr::new_static(NO_COLUMN));
            }
            match references.iter_mut().find(|(oid, _)| *oid == found.oid) {
                None => references.push((found.oid, used)),
                Some((_, columns)) => {
                    used.retain(|column| !columns.contains(column));
                    columns.extend(used);
                }
            }
        }
        references
    }

    /// What the condition of a policy reads, other than the row itself.
    pub(in crate::execute) fn condition_reads(&self, condition: Option<&Expr>) -> ConditionReads {
        let mut reads = ConditionReads::default();
        let parts = match condition.map(|condition| (condition, &condition.kind)) {
            None => return reads,
            Some((_, ExprKind::And(parts))) => parts.as_slice(),
            Some((condition, _)) => std::slice::from_ref(condition),
        };
        parts.iter().for_each(|part| self.add_reads(part, &mut reads));
        reads
    }

    /// Adds what a part of a condition reads that all rows have to satisfy.
    fn add_reads(&self, part: &Expr, reads: &mut ConditionReads) {
        let mut collector = Collector { scopes: vec![Vec::new()], ..Collector::default() };
        self.collect_expression(part, &mut collector);
        let mut conditional = !collector.relations.is_empty();
        for found in collector.relations {
            if !reads.relations.contains(&found.oid) {
                reads.relations.push(found.oid);
            }
        }
        let mut calls = Vec::new();
        part.visit(&mut |part| match part {
            Part::Query(_) => reads.has_subquery = true,
            Part::Expr(expr) => match &expr.kind {
                ExprKind::Call(call) => calls.push(call),
                ExprKind::Or(_) | ExprKind::Case { .. } | ExprKind::Coalesce(_) => conditional = true,
                _ => {}
            },
            _ => {}
        });
        for call in calls {
            // Which of several functions of a name is called is not known.
            if let [function] = self.called_functions(call)[..] {
                reads.calls.push(ConditionCall { function, conditional });
            }
        }
    }

    /// A column that the query names and that no relation has which it reads.
    pub(crate) fn missing_column(&self, query: &Query) -> Option<SmolStr> {
        let mut collector = Collector::default();
        self.collect_query(query, &mut collector);
        self.missing_of(collector)
    }

    fn missing_of(&self, collector: Collector) -> Option<SmolStr> {
        let of_row = collector.missing_of_row.filter(|name| !self.is_function_of_rows(name));
        collector.missing.or(of_row)
    }

    /// `alias.name` may mean `name(alias)`.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_func.c`, `ParseFuncOrColumn`.
    fn is_function_of_rows(&self, name: &str) -> bool {
        let takes_row =
            |first: &u32| builtin::is_binary_coercible(builtin::oid::RECORD, *first) || builtin::is_polymorphic(*first);
        let takes_row = |function: &BuiltinFunction| function.arguments.first().is_some_and(takes_row);
        self.catalog.functions_with_name(name).next().is_some() || builtin::functions(name).iter().any(takes_row)
    }

    /// A statement that no code surrounds names no variables, only columns.
    pub(in crate::execute) fn check_named_columns(&self, ast: &Ast) -> Run {
        let mut collector = Collector::default();
        match ast {
            Ast::Select(query) => self.collect_query(query, &mut collector),
            Ast::CreateTableAs(create) => {
                create.query.iter().for_each(|query| self.collect_query(query, &mut collector));
            }
            Ast::Insert(insert) if insert.with.is_none() => {
                if let InsertSource::Query(query) = &insert.source {
                    self.collect_query(query, &mut collector);
                }
            }
            Ast::Update(update) if update.with.is_none() => {
                collector.scopes.push(Vec::new());
                self.collect_relation(&update.table, &mut collector);
                update.from.iter().for_each(|item| self.collect_from(item, &mut collector));
                let values = update.assignments.iter().map(|assignment| &assignment.value);
                values.chain(&update.filter).for_each(|expr| self.collect_expression(expr, &mut collector));
            }
            Ast::Delete(delete) if delete.with.is_none() => {
                collector.scopes.push(Vec::new());
                self.collect_relation(&delete.table, &mut collector);
                delete.using.iter().for_each(|item| self.collect_from(item, &mut collector));
                delete.filter.iter().for_each(|expr| self.collect_expression(expr, &mut collector));
            }
            _ => {}
        }
        self.check_names_once(ast)?;
        match self.missing_of(collector) {
            Some(column) => fail("42703", format!("column \"{column}\" does not exist"), self.place.range),
            None => self.check_statement_meaning(ast),
        }
    }

    /// Two items of FROM, or the table that is changed and one of them, must not have the same name.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_relation.c`, `checkNameSpaceConflicts`.
    fn check_names_once(&self, ast: &Ast) -> Run {
        let (target, from) = match ast {
            Ast::Select(query) => match &query.body {
                QueryBody::Select(select) => (None, &select.from),
                _ => return Ok(()),
            },
            Ast::Update(update) => (Some(&update.table), &update.from),
            Ast::Delete(delete) => (Some(&delete.table), &delete.using),
            _ => return Ok(()),
        };
        let others = from.iter().filter_map(|item| match item {
            FromItem::Relation(relation) => Some(relation),
            _ => None,
        });
        let mut named: FxHashMap<&SmolStr, Vec<Option<Oid>>> = FxHashMap::default();
        for relation in target.into_iter().chain(others) {
            let (name, oid) = match &relation.alias {
                Some(alias) => (&alias.name, None),
                None => (&relation.name.name.text, self.find(&relation.name)),
            };
            let same_name = named.entry(name).or_default();
            if same_name.iter().any(|of| oid.is_none() || of.is_none() || *of == oid) {
                return fail("42712", format!("table name \"{name}\" specified more than once"), relation.name.range());
            }
            same_name.push(oid);
        }
        Ok(())
    }

    /// Whether everything that a query or a change of one table calls exists.
    fn check_statement_meaning(&self, ast: &Ast) -> Run {
        let (table, expressions): (_, Vec<&Expr>) = match ast {
            _ if !self.catalog.knows_all_code() => return Ok(()),
            Ast::Select(query) => return self.check_query_meaning(query, self.place.range),
            Ast::CreateTableAs(create) => {
                let query = create.query.as_ref();
                return query.map_or(Ok(()), |query| self.check_query_meaning(query, self.place.range));
            }
            Ast::Update(update) if update.with.is_none() && update.from.is_empty() => {
                let values = update.assignments.iter().map(|assignment| &assignment.value);
                (&update.table, values.chain(&update.filter).collect())
            }
            Ast::Delete(delete) if delete.with.is_none() && delete.using.is_empty() => {
                (&delete.table, delete.filter.iter().collect())
            }
            _ => return Ok(()),
        };
        let known = self.find(&table.name).filter(|oid| self.catalog.relation(*oid).known);
        let Some(oid) = known.filter(|_| table.alias.is_none()) else { return Ok(()) };
        expressions.iter().try_for_each(|expr| self.check_meaning(&self.analyze(expr, Some(oid)), expr.range))
    }

    /// The functions of the project and user types that a query uses.
    pub(crate) fn query_objects(&mut self, query: &Query) -> Vec<Oid> {
        let mut expressions = Vec::new();
        query_expressions(query, &mut expressions);
        let mut objects = Vec::new();
        for expr in expressions {
            let mut parts = Vec::new();
            expr.walk(&mut |part| parts.push(part));
            for part in parts {
                match &part.kind {
                    ExprKind::Call(call) => objects.extend(self.called_functions(call)),
                    ExprKind::Cast { target, .. } => objects.push(self.resolve_type(target).oid),
                    _ => {}
                }
            }
        }
        objects.retain(|oid| oid.is_valid() && !oid.is_builtin());
        objects.sort_unstable();
        objects.dedup();
        objects
    }

    fn collect_query(&self, query: &Query, collector: &mut Collector) {
        let ctes = collector.ctes.clone();
        for cte in query.with.iter().flat_map(|with| &with.ctes) {
            if query.with.as_ref().is_some_and(|with| with.recursive) {
                collector.ctes.insert(cte.name.text.clone());
            }
            if let QueryStatement::Select(inner) = &cte.statement {
                self.collect_query(inner, collector);
            }
            collector.ctes.insert(cte.name.text.clone());
        }
        collector.scopes.push(Vec::new());
        match &query.body {
            QueryBody::Select(select) => self.collect_select(select, collector),
            QueryBody::Values(rows) => {
                rows.iter().flatten().for_each(|value| self.collect_output(value, collector));
            }
            QueryBody::SetOperation { left, right, .. } => {
                self.collect_query(left, collector);
                self.collect_query(right, collector);
            }
        }
        let outside = std::mem::replace(&mut collector.in_output, true);
        for expr in query.order_by.iter().chain(&query.limit).chain(&query.offset) {
            self.collect_expression(expr, collector);
        }
        collector.in_output = outside;
        collector.scopes.pop();
        collector.ctes = ctes;
    }

    fn collect_select(&self, select: &Select, collector: &mut Collector) {
        for item in &select.from {
            self.collect_from(item, collector);
        }
        select.targets.iter().for_each(|target| self.collect_output(&target.value, collector));
        let distinct = select.distinct.iter().flatten();
        for expr in distinct.chain(&select.filter).chain(&select.having).chain(&select.windows) {
            self.collect_expression(expr, collector);
        }
        let outside = std::mem::replace(&mut collector.in_output, true);
        select.group_by.iter().for_each(|expr| self.collect_expression(expr, collector));
        collector.in_output = outside;
    }

    fn collect_relation(&self, relation: &RelationRef, collector: &mut Collector) {
        let name = &relation.name;
        let alias = relation.alias.as_ref().map_or(&name.name.text, |alias| &alias.name).clone();
        let is_cte = name.schema.is_none() && collector.ctes.contains(&name.name.text);
        let oid = if is_cte || self.is_system_relation(name) { None } else { self.find(name) };
        let found = oid.map(|oid| {
            let relation = self.catalog.relation(oid);
            let columns = if relation.kind == RelationKind::Sequence {
                sequence_columns().map(|(name, _)| name).to_vec()
            } else {
                relation.columns.iter().map(|column| column.name.clone()).collect()
            };
            collector.relations.push(Found { oid, columns, used: Vec::new(), known: relation.known });
            collector.relations.len() - 1
        });
        // An alias may rename the columns: then which are used cannot be told by name.
        if let Some(at) = found
            && relation.alias.as_ref().is_some_and(|alias| !alias.columns.is_empty())
        {
            collector.use_all(at);
        }
        let plain = relation.alias.as_ref().is_none_or(|alias| alias.columns.is_empty());
        collector.add(alias, found, plain);
    }

    fn collect_from(&self, item: &FromItem, collector: &mut Collector) {
        match item {
            FromItem::Relation(relation) => self.collect_relation(relation, collector),
            FromItem::Subquery { query, alias, .. } => {
                self.collect_query(query, collector);
                let name = alias.as_ref().map(|alias| alias.name.clone()).unwrap_or_default();
                collector.add(name, None, false);
            }
            FromItem::Function { calls, alias, .. } => {
                calls.iter().for_each(|call| self.collect_expression(call, collector));
                let name = alias.as_ref().map(|alias| alias.name.clone()).unwrap_or_default();
                collector.add(name, None, false);
            }
            FromItem::Join { kind, left, right, on, using } => {
                let before = collector.relations.len();
                self.collect_from(left, collector);
                self.collect_from(right, collector);
                using.iter().for_each(|column| collector.use_column(column));
                if *kind == pgvet_syntax::ast::JoinKind::Natural {
                    (before..collector.relations.len()).for_each(|at| collector.use_all(at));
                }
                on.iter().for_each(|on| self.collect_expression(on, collector));
            }
        }
    }

    /// An output column, or `*` for all of them.
    fn collect_output(&self, expr: &Expr, collector: &mut Collector) {
        collector.expand(expr);
        self.collect_expression(expr, collector);
    }

    /// The columns that an expression names. A row as a whole, `count(r.*)` or `to_jsonb(r)`, depends on none of them, so
    /// that they can be dropped.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/dependency.c`, `find_expr_references_walker`.
    fn collect_expression(&self, expr: &Expr, collector: &mut Collector) {
        let mut parameters: Vec<u32> = Vec::new();
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Operator { .. } | ExprKind::Call(_) => parameters.extend(parameter_at(part)),
            ExprKind::Column(path) => match &path[..] {
                [column] if parameters.contains(&part.range.start) => collector.use_if_there(column),
                [column] => collector.use_column(column),
                [.., alias, column] => collector.use_qualified(alias, Some(column)),
                [] => {}
            },
            ExprKind::Row(fields) => fields.iter().for_each(|field| collector.expand(field)),
            ExprKind::Indirection { operand, steps } => match (&operand.kind, steps.first()) {
                (ExprKind::Column(path), Some(IndirectionStep::Field(column))) if path.len() == 1 => {
                    collector.use_qualified(&path[0], Some(column));
                }
                (ExprKind::Column(path), Some(IndirectionStep::AllFields)) if path.len() == 1 => {
                    collector.use_qualified(&path[0], None);
                }
                _ => {}
            },
            ExprKind::Subquery { query, .. } => self.collect_query(query, collector),
            _ => {}
        });
    }
}

impl Collector {
    fn add(&mut self, alias: SmolStr, relation: Option<usize>, plain: bool) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(Item { alias, relation, plain });
        }
    }

    fn use_all(&mut self, at: usize) {
        let found = &mut self.relations[at];
        found.used.clone_from(&found.columns);
    }

    fn mark(&mut self, at: usize, column: &SmolStr) {
        let found = &mut self.relations[at];
        if found.columns.contains(column) && !found.used.contains(column) {
            found.used.push(column.clone());
        }
    }

    /// `column`: of the innermost FROM clause that has it; or a whole row.
    fn use_column(&mut self, column: &SmolStr) {
        for depth in (0..self.scopes.len()).rev() {
            let mut found = false;
            for item in 0..self.scopes[depth].len() {
                let Some(at) = self.scopes[depth][item].relation else { continue };
                found |= self.relations[at].columns.contains(column);
                self.mark(at, column);
            }
            if found {
                return;
            }
            if self.scopes[depth].iter().any(|item| item.alias == *column && item.relation.is_some()) {
                return;
            }
        }
        let all_known = self.scopes.iter().flatten().all(|item| {
            item.plain
                && item.relation.is_some_and(|at| self.relations[at].known && !self.relations[at].columns.is_empty())
        });
        if all_known && !self.in_output && !is_system_column(column) {
            self.missing.get_or_insert_with(|| column.clone());
        }
    }

    /// A column, or else something that is none.
    fn use_if_there(&mut self, column: &SmolStr) {
        let missing = self.missing.clone();
        self.use_column(column);
        self.missing = missing;
    }

    /// `alias.column` or `alias.*`.
    fn use_qualified(&mut self, alias: &str, column: Option<&SmolStr>) {
        let mut scopes = self.scopes.iter().rev();
        let item = scopes.find_map(|scope| scope.iter().find(|item| item.alias == alias));
        let Some((at, plain)) = item.and_then(|item| Some((item.relation?, item.plain))) else { return };
        let Some(column) = column else { return self.use_all(at) };
        self.mark(at, column);
        let found = &self.relations[at];
        let shown = plain && found.known && !found.columns.is_empty();
        if shown && !found.columns.contains(column) && !is_system_column(column) {
            self.missing_of_row.get_or_insert_with(|| column.clone());
        }
    }

    /// `*` or `alias.*` where it stands for columns.
    fn expand(&mut self, expr: &Expr) {
        let ExprKind::Star(path) = &expr.kind else { return };
        match path.last() {
            Some(alias) => self.use_qualified(alias, None),
            None => self.use_scope(),
        }
    }

    /// `*`.
    fn use_scope(&mut self) {
        let relations: Vec<usize> = self.scopes.last().into_iter().flatten().filter_map(|item| item.relation).collect();
        relations.into_iter().for_each(|at| self.use_all(at));
    }
}

/// All expressions of a query, its subqueries included.
pub(crate) fn query_expressions<'q>(query: &'q Query, found: &mut Vec<&'q Expr>) {
    for cte in query.with.iter().flat_map(|with| &with.ctes) {
        if let QueryStatement::Select(inner) = &cte.statement {
            query_expressions(inner, found);
        }
    }
    let start = found.len();
    match &query.body {
        QueryBody::Select(select) => {
            for item in &select.from {
                from_expressions(item, found);
            }
            found.extend(select.targets.iter().map(|target| &target.value));
            found.extend(select.distinct.iter().flatten());
            found.extend(select.filter.iter().chain(&select.group_by).chain(&select.having).chain(&select.windows));
        }
        QueryBody::Values(rows) => found.extend(rows.iter().flatten()),
        QueryBody::SetOperation { left, right, .. } => {
            query_expressions(left, found);
            query_expressions(right, found);
        }
    }
    found.extend(query.order_by.iter().chain(&query.limit).chain(&query.offset));
    let mut inner = Vec::new();
    for expr in &found[start..] {
        expr.walk(&mut |part| {
            if let ExprKind::Subquery { query, .. } = &part.kind {
                inner.push(&**query);
            }
        });
    }
    for query in inner {
        query_expressions(query, found);
    }
}

fn from_expressions<'q>(item: &'q FromItem, found: &mut Vec<&'q Expr>) {
    match item {
        FromItem::Relation(_) => {}
        FromItem::Subquery { query, .. } => query_expressions(query, found),
        FromItem::Function { calls, .. } => found.extend(calls),
        FromItem::Join { left, right, on, .. } => {
            from_expressions(left, found);
            from_expressions(right, found);
            found.extend(on);
        }
    }
}
