//! Function calls, and the XML and JSON expressions that look like them.

use super::context::{Context, Span, exact, strings};
use super::expression::{cover, expr};
use crate::ast::{Argument, Expr, ExprKind, FunctionCall};
use crate::source::TextRange;
use pg::Node;
use pgvet_parser::tree as pg;

fn partition_keys(window: &pg::WindowDef) -> u32 {
    u32::try_from(window.partition_clause.iter().count()).unwrap_or(u32::MAX)
}

impl Context<'_> {
    pub(super) fn function_call_expr(&self, node: &pg::FuncCall) -> Expr {
        let call = self.function_call(node);
        let mut range = self.function_range(node);
        for part in [cover(&call.order_by), call.window.as_deref().map_or(TextRange::default(), cover)] {
            range = range.cover(part);
        }
        for argument in &call.arguments {
            range = range.cover(argument.value.range);
        }
        expr(ExprKind::Call(Box::new(call)), range)
    }

    pub(super) fn function_call(&self, node: &pg::FuncCall) -> FunctionCall {
        let mut names = strings(node.funcname);
        let name = names.pop().unwrap_or_default();
        let name_range = self.index(node.location).map_or(TextRange::default(), |start| {
            self.range(Span::new(start, start + (2 * node.funcname.len()).saturating_sub(1).max(1)))
        });
        // `EXTRACT(...)` and `AT TIME ZONE` are calls of functions in pg_catalog under a name that is not written.
        let spelled_out = self.index(node.location).is_some_and(|start| self.is_name(start + 2 * names.len(), &name));
        let name_range = if spelled_out { name_range } else { self.range_at(node.location) };
        FunctionCall {
            schema: names.pop(),
            name,
            arguments: exact(node.args.iter().map(|argument| self.argument(argument))),
            star: node.agg_star,
            distinct: node.agg_distinct,
            variadic: node.func_variadic,
            filter: self.optional(node.agg_filter),
            order_by: self.expressions(node.agg_order),
            window: node.over.map(|over| self.window(over)),
            partition_keys: node.over.map_or(0, |over| partition_keys(over)),
            name_range,
        }
    }

    fn argument(&self, node: pg::NodeRef<'_>) -> Argument {
        let name = match node.node() {
            Node::NamedArgExpr(argument) => Some(argument.name.as_str().into()),
            _ => None,
        };
        Argument { name, value: self.expression(node) }
    }

    /// Partition and order expressions of a window.
    pub(super) fn window(&self, window: &pg::WindowDef) -> Vec<Expr> {
        let parts = window.partition_clause.iter().chain(window.order_clause);
        let bounds = window.start_offset.into_iter().chain(window.end_offset);
        parts.chain(bounds).map(|node| self.expression(node)).collect()
    }

    /// From the name through the arguments, WITHIN GROUP, FILTER and OVER.
    fn function_range(&self, node: &pg::FuncCall) -> TextRange {
        let Some(start) = self.index(node.location) else { return TextRange::default() };
        let mut at = self.dotted_end(start);
        if !self.is_mark(at, b'(') {
            return self.range(Span::new(start, at));
        }
        at = self.next(at);
        if node.agg_within_group && self.is(at, "WITHIN") {
            at = self.next(at + 2);
        }
        if node.agg_filter.is_some() && self.is(at, "FILTER") {
            at = self.next(at + 1);
        }
        if node.over.is_some() {
            let over = (at..at + 3).find(|index| self.is(*index, "OVER"));
            at = over.map_or(at, |over| self.next(over + 1));
        }
        self.range(Span::new(start, at))
    }

    /// Everything that has no kind of its own: its name and its operands.
    pub(super) fn other_expression(&self, node: Node<'_>) -> Expr {
        match node {
            Node::GroupingFunc(node) => self.other("GroupingFunc", self.expressions(node.args), node.location),
            Node::GroupingSet(node) => self.other("GroupingSet", self.expressions(node.content), node.location),
            Node::MergeSupportFunc(node) => self.other("MergeSupportFunc", Vec::new(), node.location),
            Node::CurrentOfExpr(_) => self.other("CurrentOfExpr", Vec::new(), -1),
            Node::XmlExpr(node) => {
                let operands = node.named_args.iter().chain(node.args).map(|node| self.expression(node)).collect();
                self.other("XmlExpr", operands, node.location)
            }
            Node::XmlSerialize(node) => self.other("XmlSerialize", self.present([node.expr]), node.location),
            Node::JsonObjectConstructor(node) => {
                self.other("JsonObjectConstructor", self.expressions(node.exprs), node.location)
            }
            Node::JsonArrayConstructor(node) => {
                self.other("JsonArrayConstructor", self.expressions(node.exprs), node.location)
            }
            Node::JsonArrayQueryConstructor(node) => self.json_array_query(node),
            Node::JsonKeyValue(node) => {
                let value = node.value.map(|value| self.json_value(value));
                let operands = self.present([node.key]).into_iter().chain(value).collect();
                self.other("JsonKeyValue", operands, -1)
            }
            Node::JsonValueExpr(node) => self.json_value(node),
            Node::JsonArgument(node) => {
                self.other("JsonArgument", node.val.map(|value| self.json_value(value)).into_iter().collect(), -1)
            }
            Node::JsonBehavior(node) => self.other("JsonBehavior", self.present([node.expr]), -1),
            Node::JsonScalarExpr(node) => self.other("JsonScalarExpr", self.present([node.expr]), node.location),
            Node::JsonIsPredicate(node) => self.other("JsonIsPredicate", self.present([node.expr]), node.location),
            Node::JsonParseExpr(node) => {
                let operands = node.expr.map(|value| self.json_value(value)).into_iter().collect();
                self.other("JsonParseExpr", operands, node.location)
            }
            Node::JsonSerializeExpr(node) => {
                let operands = node.expr.map(|value| self.json_value(value)).into_iter().collect();
                self.other("JsonSerializeExpr", operands, node.location)
            }
            Node::JsonFuncExpr(node) => self.json_function(node),
            Node::JsonObjectAgg(node) => {
                let pair = node.arg;
                let key = self.present([pair.and_then(|pair| pair.key)]);
                let value = pair.and_then(|pair| pair.value).map(|value| self.json_value(value));
                self.json_aggregate("JsonObjectAgg", key.into_iter().chain(value).collect(), node.constructor)
            }
            Node::JsonArrayAgg(node) => {
                let operands = node.arg.map(|value| self.json_value(value)).into_iter().collect();
                self.json_aggregate("JsonArrayAgg", operands, node.constructor)
            }
            _ => expr(ExprKind::Other(smol_str::SmolStr::new_static("Unknown"), Vec::new()), TextRange::default()),
        }
    }

    fn present<const N: usize>(&self, nodes: [Option<pg::NodeRef<'_>>; N]) -> Vec<Expr> {
        nodes.into_iter().flatten().map(|node| self.expression(node)).collect()
    }

    pub(super) fn json_value(&self, node: &pg::JsonValueExpr) -> Expr {
        self.operand(node.raw_expr.or(node.formatted_expr))
    }

    fn json_aggregate(
        &self,
        name: &'static str,
        mut operands: Vec<Expr>,
        constructor: Option<&pg::JsonAggConstructor>,
    ) -> Expr {
        let Some(constructor) = constructor else { return self.other(name, operands, -1) };
        operands.extend(self.present([constructor.agg_filter]));
        operands.extend(self.expressions(constructor.agg_order));
        operands.extend(constructor.over.map(|over| self.window(over)).into_iter().flatten());
        self.other(name, operands, constructor.location)
    }

    fn json_function(&self, node: &pg::JsonFuncExpr) -> Expr {
        let mut operands: Vec<Expr> = node.context_item.map(|value| self.json_value(value)).into_iter().collect();
        operands.extend(self.present([node.pathspec]));
        operands.extend(self.expressions(node.passing));
        let behaviors = [node.on_empty, node.on_error];
        for behavior in behaviors.into_iter().flatten() {
            operands.extend(self.present([behavior.expr]));
        }
        self.other("JsonFuncExpr", operands, node.location)
    }

    fn json_array_query(&self, node: &pg::JsonArrayQueryConstructor) -> Expr {
        let open = self.index(node.location).map(|start| start + 1);
        let span = open.map_or(self.everything(), |open| self.inside(open));
        let query = match node.query.map(pg::NodeRef::node) {
            Some(Node::SelectStmt(select)) => Some(self.query(select, span)),
            _ => None,
        };
        let operand = query.map(|query| {
            let range = query.range;
            let kind = crate::ast::SubqueryKind::Array;
            expr(ExprKind::Subquery { kind, test: None, query: Box::new(query) }, range)
        });
        self.other("JsonArrayQueryConstructor", operand.into_iter().collect(), node.location)
    }
}
