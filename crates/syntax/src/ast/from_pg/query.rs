//! SELECT and the items of FROM.
//!
//! PostgreSQL gives no location to a query or to a subquery in FROM. A query is therefore converted with the span of
//! its tokens, and FROM is read with a cursor that moves through the tokens as the items come.

use super::context::{Context, Span, exact, strings, written};
use super::name::persistence;
use super::omitted::{omitted, sorting};
use crate::ast::{
    Alias, Cte, Expr, FromItem, IntoClause, JoinKind, Query, QueryBody, QueryStatement, RowLockStrength, RowLocking,
    Select, SetOperator, Target, With,
};
use crate::source::TextRange;
use pg::Node;
use pgvet_parser::tree as pg;

const QUERY_STARTS: &[&str] = &["SELECT", "VALUES", "WITH", "TABLE"];
const SET_OPERATORS: &[&str] = &["UNION", "INTERSECT", "EXCEPT"];
/// First words of the clauses after the body of a query.
const QUERY_TAILS: &[&str] = &["ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"];

fn is_union_all(select: &pg::SelectStmt) -> bool {
    select.op == pg::SetOperation::SETOP_UNION && select.all
}

/// Whether a query is nothing but its body.
fn is_plain(select: &pg::SelectStmt) -> bool {
    select.with_clause.is_none()
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.locking_clause.is_empty()
}

/// UNION ALL of all of them in order. The tree is as flat as can be, which changes nothing: UNION ALL is associative.
fn balanced(mut operands: Vec<Query>) -> Query {
    while operands.len() > 1 {
        let mut rest = operands.into_iter();
        let mut joined = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                Some(right) => union_all(left, right),
                None => left,
            });
        }
        operands = joined;
    }
    operands.pop().unwrap_or_else(|| Query::of_body(QueryBody::Values(Vec::new()), TextRange::default()))
}

fn union_all(left: Query, right: Query) -> Query {
    let range = left.range.cover(right.range);
    let (left, right) = (Box::new(left), Box::new(right));
    Query::of_body(QueryBody::SetOperation { operator: SetOperator::Union, all: true, left, right }, range)
}

impl Context<'_> {
    pub(super) fn query(&self, select: &pg::SelectStmt, span: Span) -> Query {
        let span = self.unwrapped(span);
        let with = select.with_clause.map(|with| self.with(with));
        let body_span = span.from(self.after_with(span.start, with.as_ref()));
        let body = self.query_body(select, body_span);
        Query {
            with: with.into(),
            body,
            order_by: self.expressions(select.sort_clause),
            sorting: sorting(select.sort_clause).into(),
            limit: self.optional(select.limit_count).into(),
            offset: self.optional(select.limit_offset).into(),
            locking: exact(select.locking_clause.iter().filter_map(|node| self.row_locking(node))),
            omitted: omitted(select),
            range: self.range(span),
        }
    }

    /// A query that the grammar always gives.
    pub(super) fn required_query(&self, select: Option<&pg::SelectStmt>, span: Span) -> Query {
        let nothing = || Query::of_body(QueryBody::Values(Vec::new()), self.range(span));
        select.map_or_else(nothing, |select| self.query(select, span))
    }

    /// Without brackets around the whole.
    fn unwrapped(&self, mut span: Span) -> Span {
        while self.is_mark(span.start, b'(') && span.end > 0 && self.partner(span.start) == span.end - 1 {
            span = Span::new(span.start + 1, span.end - 1);
        }
        span
    }

    /// The index after the WITH clause that may be at `start`.
    pub(super) fn after_with(&self, start: usize, with: Option<&With>) -> usize {
        let last = with.and_then(|with| with.ctes.last());
        let Some(last) = last else { return start };
        let mut at = self.cte_body(self.index_after(last.name.range));
        at = self.next(at);
        // SEARCH and CYCLE.
        while at < self.everything().end && !self.is_any(at, QUERY_STARTS) && !self.is_mark(at, b'(') {
            if self.is_any(at, &["INSERT", "UPDATE", "DELETE", "MERGE"]) {
                break;
            }
            at = self.next(at);
        }
        at
    }

    /// The bracket that opens the query of a CTE whose name ends before `at`.
    fn cte_body(&self, mut at: usize) -> usize {
        if self.is_mark(at, b'(') {
            at = self.next(at);
        }
        at = self.skip(at, &["AS"]);
        at = self.skip(at, &["NOT"]);
        self.skip(at, &["MATERIALIZED"])
    }

    pub(super) fn with(&self, with: &pg::WithClause) -> With {
        let ctes = with.ctes.iter().filter_map(|node| match node.node() {
            Node::CommonTableExpr(cte) => self.cte(cte),
            _ => None,
        });
        With { recursive: with.recursive, ctes: exact(ctes) }
    }

    fn cte(&self, cte: &pg::CommonTableExpr) -> Option<Cte> {
        let index = self.index(cte.location).unwrap_or(0);
        let open = self.cte_body(index + 1);
        Some(Cte {
            name: self.name_at(index, &cte.ctename),
            columns: strings(cte.aliascolnames),
            materialized: match cte.ctematerialized {
                pg::CTEMaterialize::CTEMATERIALIZE_ALWAYS => Some(true),
                pg::CTEMaterialize::CTEMATERIALIZE_NEVER => Some(false),
                _ => None,
            },
            has_order_or_cycle: !cte.search_clause.is_null() || !cte.cycle_clause.is_null(),
            statement: self.query_statement(cte.ctequery?, self.inside(open))?,
        })
    }

    /// SELECT, INSERT, UPDATE, DELETE or MERGE.
    pub(super) fn query_statement(&self, node: pg::NodeRef<'_>, span: Span) -> Option<QueryStatement> {
        Some(match node.node() {
            Node::SelectStmt(select) => QueryStatement::Select(Box::new(self.query(select, span))),
            Node::InsertStmt(insert) => QueryStatement::Insert(Box::new(self.insert(insert, span))),
            Node::UpdateStmt(update) => QueryStatement::Update(Box::new(self.update(update, span))),
            Node::DeleteStmt(delete) => QueryStatement::Delete(Box::new(self.delete(delete, span))),
            Node::MergeStmt(merge) => QueryStatement::Merge(Box::new(self.merge(merge, span))),
            _ => return None,
        })
    }

    fn query_body(&self, select: &pg::SelectStmt, span: Span) -> QueryBody {
        let operator = match select.op {
            pg::SetOperation::SETOP_UNION => SetOperator::Union,
            pg::SetOperation::SETOP_INTERSECT => SetOperator::Intersect,
            pg::SetOperation::SETOP_EXCEPT => SetOperator::Except,
            _ => return self.simple_body(select, span),
        };
        if is_union_all(select) {
            return balanced(self.union_all_operands(select, span)).body;
        }
        let (left, right) = self.set_operands(span);
        QueryBody::SetOperation {
            operator,
            all: select.all,
            left: Box::new(self.required_query(select.larg, left)),
            right: Box::new(self.required_query(select.rarg, right)),
        }
    }

    /// `a UNION ALL b UNION ALL c ...`, which nests to the left, thousands deep in generated SQL: its operands in order.
    fn union_all_operands(&self, select: &pg::SelectStmt, span: Span) -> Vec<Query> {
        let mut operands = Vec::new();
        let (mut select, mut span) = (select, span);
        loop {
            let (left, right) = self.set_operands(span);
            operands.push(self.required_query(select.rarg, right));
            match select.larg {
                Some(next) if is_union_all(next) && is_plain(next) => (select, span) = (next, self.unwrapped(left)),
                first => {
                    operands.push(self.required_query(first, left));
                    operands.reverse();
                    return operands;
                }
            }
        }
    }

    /// The spans around the operator that binds least: the last UNION or EXCEPT, else the last INTERSECT.
    fn set_operands(&self, span: Span) -> (Span, Span) {
        let weakest = self
            .find_last(span, |at| self.is_any(at, &["UNION", "EXCEPT"]))
            .or_else(|| self.find_last(span, |at| self.is(at, "INTERSECT")));
        let Some(at) = weakest else { return (span, span) };
        let right = span.from(self.skip_any(at + 1, &["ALL", "DISTINCT"]));
        let tail = self.find_word(right, QUERY_TAILS).unwrap_or(right.end);
        (span.to(at), right.to(tail))
    }

    fn simple_body(&self, select: &pg::SelectStmt, span: Span) -> QueryBody {
        if !select.values_lists.is_empty() {
            let row = |node: pg::NodeRef<'_>| match node.node() {
                Node::List(list) => self.expressions(list.items()),
                _ => Vec::new(),
            };
            return QueryBody::Values(exact(select.values_lists.iter().map(row)));
        }
        let targets = self.targets(select.target_list);
        let mut cursor = targets.last().map_or(span.start, |last| self.index_after(last.value.range));
        let into = select.into_clause.map(|into| self.new_table(into));
        let from = self.items_of_from(select.from_clause, &mut cursor);
        QueryBody::Select(Box::new(Select {
            distinct: distinct(select).then(|| self.expressions(select.distinct_clause)).into(),
            targets,
            into: into.into(),
            from,
            filter: self.optional(select.where_clause).into(),
            group_by: self.expressions(select.group_clause),
            having: self.optional(select.having_clause).into(),
            windows: select
                .window_clause
                .iter()
                .filter_map(|node| match node.node() {
                    Node::WindowDef(window) => Some(self.window(window)),
                    _ => None,
                })
                .flatten()
                .collect(),
        }))
    }

    pub(super) fn targets(&self, nodes: pg::List<'_>) -> Vec<Target> {
        let target = |node: pg::NodeRef<'_>| match node.node() {
            Node::ResTarget(target) => Target { value: self.operand(target.val), alias: written(&target.name) },
            _ => Target { value: self.expression(node), alias: None },
        };
        exact(nodes.iter().map(target))
    }

    pub(super) fn new_table(&self, into: &pg::IntoClause) -> IntoClause {
        let relation = into.rel;
        let name = self.required_relation(relation);
        let columns = self.everything().from(self.index_after(name.range()));
        IntoClause {
            name,
            persistence: persistence(relation.map_or("", |relation| &relation.relpersistence)),
            columns: self.names(columns, into.col_names),
            with_data: !into.skip_data,
            on_commit_drop: into.on_commit == pg::OnCommitAction::ONCOMMIT_DROP,
        }
    }

    /// FROM items, in the order of their tokens from `cursor` on.
    pub(super) fn items_of_from(&self, nodes: pg::List<'_>, cursor: &mut usize) -> Vec<FromItem> {
        exact(nodes.iter().filter_map(|node| self.item_of_from(node, cursor)))
    }

    pub(super) fn item_of_from(&self, node: pg::NodeRef<'_>, cursor: &mut usize) -> Option<FromItem> {
        Some(match node.node() {
            Node::RangeVar(relation) => {
                let relation = self.relation_ref(relation);
                self.advance(cursor, relation.name.range());
                FromItem::Relation(relation)
            }
            Node::RangeSubselect(subselect) => self.subquery_of_from(subselect, cursor),
            Node::RangeFunction(function) => {
                let calls = exact(function.functions.iter().filter_map(|node| self.function_of_from(node)));
                let form = self.function_form(function);
                self.calls_of_from(calls, form, function.alias, function.lateral, cursor)
            }
            Node::RangeTableSample(sample) => self.item_of_from(sample.relation?, cursor)?,
            Node::RangeTableFunc(table) => {
                let call = self.xml_table(table);
                self.calls_of_from(vec![call], None, table.alias, table.lateral, cursor)
            }
            Node::JsonTable(table) => {
                let call = self.json_table(table);
                self.calls_of_from(vec![call], None, table.alias, table.lateral, cursor)
            }
            Node::JoinExpr(join) => self.join(join, cursor)?,
            _ => return None,
        })
    }

    pub(super) fn advance(&self, cursor: &mut usize, range: TextRange) {
        if !range.is_empty() {
            *cursor = (*cursor).max(self.index_after(range));
        }
    }

    fn subquery_of_from(&self, subselect: &pg::RangeSubselect, cursor: &mut usize) -> FromItem {
        let span = self.next_subquery(*cursor);
        *cursor = span.end + 1;
        let select = match subselect.subquery.map(pg::NodeRef::node) {
            Some(Node::SelectStmt(select)) => Some(select),
            _ => None,
        };
        FromItem::Subquery {
            query: Box::new(self.required_query(select, span)),
            alias: subselect.alias.map(alias),
            lateral: subselect.lateral,
        }
    }

    /// The text in the next brackets that hold a query. `((SELECT 1) UNION SELECT 2)` begins with the outer ones,
    /// `((SELECT 1) x JOIN y ON ...)` with the inner ones.
    fn next_subquery(&self, cursor: usize) -> Span {
        let all = self.everything();
        let starts = |index: usize| self.is_mark(index, b'(') && self.is_any(index + 1, QUERY_STARTS);
        let Some(mut open) = (cursor..all.end).find(|index| starts(*index)) else { return all.from(cursor) };
        while open > cursor && self.is_mark(open - 1, b'(') {
            let after = self.next(open);
            let continues = self.is_any(after, SET_OPERATORS) || self.is_any(after, QUERY_TAILS);
            if !continues && self.partner(open - 1) != after {
                break;
            }
            open -= 1;
        }
        self.inside(open)
    }

    fn join(&self, join: &pg::JoinExpr, cursor: &mut usize) -> Option<FromItem> {
        let left = Box::new(self.item_of_from(join.larg?, cursor)?);
        let right = Box::new(self.item_of_from(join.rarg?, cursor)?);
        let on = self.optional(join.quals);
        if let Some(on) = &on {
            self.advance(cursor, on.range);
        }
        let kind = match join.jointype {
            _ if join.is_natural => JoinKind::Natural,
            pg::JoinType::JOIN_LEFT => JoinKind::Left,
            pg::JoinType::JOIN_RIGHT => JoinKind::Right,
            pg::JoinType::JOIN_FULL => JoinKind::Full,
            _ => JoinKind::Inner,
        };
        Some(FromItem::Join { kind, left, right, on, using: strings(join.using_clause) })
    }

    fn xml_table(&self, table: &pg::RangeTableFunc) -> Expr {
        let documents = [table.docexpr, table.rowexpr];
        let mut operands: Vec<Expr> = documents.into_iter().flatten().map(|node| self.expression(node)).collect();
        for column in table.columns {
            if let Node::RangeTableFuncCol(column) = column.node() {
                let parts = [column.colexpr, column.coldefexpr];
                operands.extend(parts.into_iter().flatten().map(|node| self.expression(node)));
            }
        }
        self.other("XmlTable", operands, table.location)
    }

    fn json_table(&self, table: &pg::JsonTable) -> Expr {
        let mut operands: Vec<Expr> = table.context_item.map(|item| self.json_value(item)).into_iter().collect();
        operands.extend(self.expressions(table.passing));
        self.other("JsonTable", operands, table.location)
    }

    fn row_locking(&self, node: pg::NodeRef<'_>) -> Option<RowLocking> {
        let Node::LockingClause(clause) = node.node() else { return None };
        let strength = match clause.strength {
            pg::LockClauseStrength::LCS_FORKEYSHARE => RowLockStrength::KeyShare,
            pg::LockClauseStrength::LCS_FORSHARE => RowLockStrength::Share,
            pg::LockClauseStrength::LCS_FORNOKEYUPDATE => RowLockStrength::NoKeyUpdate,
            _ => RowLockStrength::Update,
        };
        let of = clause.locked_rels.iter().filter_map(|node| match node.node() {
            Node::RangeVar(relation) => Some(self.relation(relation)),
            _ => None,
        });
        Some(RowLocking {
            strength,
            of: exact(of),
            nowait: clause.wait_policy == pg::LockWaitPolicy::LOCK_WAIT_ERROR,
            skip_locked: clause.wait_policy == pg::LockWaitPolicy::LOCK_WAIT_SKIP,
        })
    }
}

/// Plain DISTINCT is a list of one empty node.
fn distinct(select: &pg::SelectStmt) -> bool {
    !select.distinct_clause.is_empty()
}

pub(super) fn alias(alias: &pg::Alias) -> Alias {
    Alias { name: alias.aliasname.as_str().into(), columns: strings(alias.colnames) }
}
