//! Scalar expressions.
//!
//! One function per node keeps the stack frames of the recursion small.

use super::context::{Context, Span, exact, schema_and_name, strings};
use super::name::constant_literal;
use crate::ast::{BooleanTest, Expr, ExprKind, IndirectionStep, OperatorForm, Query, SubqueryKind};
use crate::lexer::TokenKind;
use crate::source::TextRange;
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;

impl Context<'_> {
    pub(super) fn expression(&self, node: pg::NodeRef<'_>) -> Expr {
        self.expression_of(node.node())
    }

    pub(super) fn expressions(&self, nodes: pg::List<'_>) -> Vec<Expr> {
        exact(nodes.iter().map(|node| self.expression(node)))
    }

    pub(super) fn optional(&self, node: Option<pg::NodeRef<'_>>) -> Option<Expr> {
        node.map(|node| self.expression(node))
    }

    /// An operand that the grammar always gives.
    pub(super) fn operand(&self, node: Option<pg::NodeRef<'_>>) -> Expr {
        node.map_or_else(
            || expr(ExprKind::Other(SmolStr::new_static("Empty"), Vec::new()), TextRange::default()),
            |node| self.expression(node),
        )
    }

    /// An expression with the brackets around it, for places where they are always its own: `DEFAULT (1 + 1)`.
    pub(super) fn whole(&self, node: Option<pg::NodeRef<'_>>) -> Expr {
        let mut whole = self.operand(node);
        while let Some(open) = self.index_of(whole.range.start).and_then(|start| start.checked_sub(1)) {
            let close = self.index_after(whole.range);
            if !self.is_mark(open, b'(') || self.partner(open) != close {
                break;
            }
            whole.range = self.token_range(open).cover(self.token_range(close));
        }
        whole
    }

    /// A range that begins or ends with operands, with the brackets around these: the tree has no node for `(a + b)`.
    fn balanced<'e>(&self, range: TextRange, operands: impl IntoIterator<Item = &'e Expr>) -> TextRange {
        let Some(mut at) = self.index_of(range.start) else { return range };
        let mut whole = range;
        let mut brackets = |between: std::ops::Range<usize>| {
            for bracket in between {
                whole = whole.cover(self.token_range(self.partner(bracket)));
            }
        };
        for operand in operands.into_iter().map(|operand| operand.range) {
            let Some(start) = self.index_of(operand.start).filter(|start| *start >= at && !operand.is_empty()) else {
                continue;
            };
            brackets(at..start);
            at = self.index_after(operand);
        }
        brackets(at..self.index_after(range));
        whole
    }

    fn expression_of(&self, node: Node<'_>) -> Expr {
        match node {
            Node::ColumnRef(column) => self.column(column),
            Node::AConst(constant) => self.constant(constant),
            Node::ParamRef(parameter) => self.parameter(parameter),
            Node::FuncCall(call) => self.function_call_expr(call),
            Node::AExpr(operator) => self.operator_chain(operator),
            Node::TypeCast(cast) => self.cast(cast),
            Node::BoolExpr(node) => self.boolean(node),
            Node::NullTest(test) => self.null_test(test),
            Node::BooleanTest(test) => self.boolean_test(test),
            Node::CaseExpr(case) => self.case(case),
            Node::CoalesceExpr(node) => self.bracketed(ExprKind::Coalesce, node.args, node.location),
            Node::MinMaxExpr(node) => self.min_max(node),
            Node::AArrayExpr(node) => self.array(node),
            Node::RowExpr(node) => self.bracketed(ExprKind::Row, node.args, node.location),
            Node::SubLink(link) => self.sublink(link),
            Node::CollateClause(collate) => self.collate(collate),
            Node::SqlValueFunction(value) => self.sql_value(value),
            Node::AIndirection(node) => self.indirection(node),
            Node::SetToDefault(node) => expr(ExprKind::Default, self.range_at(node.location)),
            Node::NamedArgExpr(argument) => self.operand(argument.arg),
            Node::SortBy(sort) => self.operand(sort.node),
            Node::ResTarget(target) => self.operand(target.val),
            Node::MultiAssignRef(assignment) => self.operand(assignment.source),
            Node::List(list) => self.list_expression(list.items()),
            _ => self.other_expression(node),
        }
    }

    /// Several expressions where one is expected, as on the right of BETWEEN.
    fn list_expression(&self, items: pg::List<'_>) -> Expr {
        let items = self.expressions(items);
        let range = cover(&items);
        expr(ExprKind::Row(items), range)
    }

    /// A node without a kind of its own, with whatever it operates on.
    pub(super) fn other(&self, name: &'static str, operands: Vec<Expr>, location: i32) -> Expr {
        let range = self.call_range(location).cover(cover(&operands));
        expr(ExprKind::Other(SmolStr::new_static(name), operands), range)
    }

    /// From the token at `location` through the brackets after it, where there are any.
    pub(super) fn call_range(&self, location: i32) -> TextRange {
        self.index(location).map_or(TextRange::default(), |start| self.bracketed_range(start))
    }

    fn bracketed_range(&self, start: usize) -> TextRange {
        let end = if self.is_mark(start, b'(') || self.is_mark(start, b'[') {
            self.next(start)
        } else if self.is_mark(start + 1, b'(') {
            self.next(start + 1)
        } else {
            start + 1
        };
        self.range(Span::new(start, end))
    }

    fn bracketed(&self, kind: fn(Vec<Expr>) -> ExprKind, items: pg::List<'_>, location: i32) -> Expr {
        let items = self.expressions(items);
        let range = self.call_range(location).cover(cover(&items));
        expr(kind(items), range)
    }

    fn min_max(&self, node: &pg::MinMaxExpr) -> Expr {
        let kind: fn(Vec<Expr>) -> ExprKind = match node.op {
            pg::MinMaxOp::IS_LEAST => |operands| ExprKind::MinMax { least: true, operands },
            _ => |operands| ExprKind::MinMax { least: false, operands },
        };
        self.bracketed(kind, node.args, node.location)
    }

    fn column(&self, column: &pg::ColumnRef) -> Expr {
        let parts = strings(column.fields);
        let star = column.fields.last().is_some_and(|field| matches!(field.node(), Node::AStar(_)));
        let kind = if star { ExprKind::Star(parts) } else { ExprKind::Column(parts) };
        let range = self.index(column.location).map_or(TextRange::default(), |start| {
            let end = start + 2 * column.fields.len().max(1) - 1;
            self.range(Span::new(start, end.min(self.dotted_end(start))))
        });
        expr(kind, range)
    }

    fn constant(&self, constant: &pg::AConst) -> Expr {
        let range = self.index(constant.location).map_or(TextRange::default(), |start| {
            // The grammar folds a sign into the number.
            let sign = self.kind(start) == Some(TokenKind::Operator);
            let number = start + usize::from(sign);
            let end = if sign { self.next(number) } else { number + 1 };
            self.range(Span::new(start, end))
        });
        expr(ExprKind::Literal(constant_literal(constant)), range)
    }

    fn parameter(&self, parameter: &pg::ParamRef) -> Expr {
        let number = u32::try_from(parameter.number).unwrap_or(0);
        expr(ExprKind::Parameter(number), self.range_at(parameter.location))
    }

    /// `a || b || c || ...` nests to the left, thousands deep in generated SQL: a loop instead of recursion.
    fn operator_chain(&self, operator: &pg::AExpr) -> Expr {
        let mut chain = vec![operator];
        let mut left = operator.lexpr;
        while let Some(Node::AExpr(next)) = left.map(pg::NodeRef::node) {
            chain.push(next);
            left = next.lexpr;
        }
        let mut result = self.optional(left);
        while let Some(operator) = chain.pop() {
            result = Some(self.operator(operator, result));
        }
        result.unwrap_or_else(|| self.operand(None))
    }

    fn operator(&self, operator: &pg::AExpr, left: Option<Expr>) -> Expr {
        let right = operator.rexpr.map(pg::NodeRef::node);
        let mut operands: Vec<Expr> = Vec::with_capacity(match right {
            Some(Node::List(list)) => list.items().len() + 1,
            _ => usize::from(left.is_some()) + usize::from(right.is_some()),
        });
        operands.extend(left);
        match right {
            Some(Node::List(list)) => operands.extend(list.items().iter().map(|item| self.expression(item))),
            Some(node) => operands.push(self.expression_of(node)),
            None => {}
        }
        let form = operator_form(operator.kind);
        let range = self.range_at(operator.location).cover(cover(&operands)).cover(self.operator_tail(operator, form));
        let range = self.balanced(range, &operands);
        let (schema, name) = schema_and_name(operator.name);
        expr(ExprKind::Operator { schema, operator: name, form, operands }, range)
    }

    /// The closing bracket of the forms that have one.
    fn operator_tail(&self, operator: &pg::AExpr, form: OperatorForm) -> TextRange {
        use OperatorForm::{AllArray, AnyArray, In, NullIf};
        if !matches!(form, AnyArray | AllArray | In | NullIf) {
            return TextRange::default();
        }
        self.index(operator.location)
            .and_then(|start| self.bracket_after_operator(start))
            .map_or(TextRange::default(), |open| self.token_range(self.partner(open)))
    }

    /// The opening bracket after an operator and ANY, ALL or SOME, or after IN.
    fn bracket_after_operator(&self, start: usize) -> Option<usize> {
        let mut at = start;
        if self.is(at, "OPERATOR") {
            at = self.next(at + 1);
        }
        (at..at + 4).find(|index| self.is_mark(*index, b'('))
    }

    fn cast(&self, cast: &pg::TypeCast) -> Expr {
        let operand = self.operand(cast.arg);
        let target = self.required_type(cast.type_name);
        let start = self.index(cast.location).filter(|index| self.is(*index, "CAST"));
        let own = start.map_or_else(|| self.range_at(cast.location), |start| self.bracketed_range(start));
        let range = self.balanced(own.cover(operand.range).cover(target.range), [&operand]);
        expr(ExprKind::Cast { operand: Box::new(operand), target: Box::new(target) }, range)
    }

    fn boolean(&self, node: &pg::BoolExpr) -> Expr {
        let mut operands = self.expressions(node.args);
        let range = self.balanced(self.range_at(node.location).cover(cover(&operands)), &operands);
        let kind = match node.boolop {
            pg::BoolExprType::OR_EXPR => ExprKind::Or(operands),
            pg::BoolExprType::NOT_EXPR => match operands.pop() {
                Some(operand) => ExprKind::Not(Box::new(operand)),
                None => ExprKind::Other(SmolStr::new_static("BoolExpr"), Vec::new()),
            },
            _ => ExprKind::And(operands),
        };
        expr(kind, range)
    }

    /// `IS [NOT] word`, or one word such as ISNULL.
    fn is_test_range(&self, location: i32) -> TextRange {
        self.index(location).map_or(TextRange::default(), |start| {
            let end = if self.is(start, "IS") { self.skip(start + 1, &["NOT"]) + 1 } else { start + 1 };
            self.range(Span::new(start, end))
        })
    }

    fn null_test(&self, test: &pg::NullTest) -> Expr {
        let operand = self.operand(test.arg);
        let range = self.balanced(operand.range.cover(self.is_test_range(test.location)), [&operand]);
        let negated = test.nulltesttype == pg::NullTestType::IS_NOT_NULL;
        expr(ExprKind::IsNull { operand: Box::new(operand), negated }, range)
    }

    fn boolean_test(&self, test: &pg::BooleanTest) -> Expr {
        use pg::BoolTestType as Test;
        let operand = self.operand(test.arg);
        let range = self.balanced(operand.range.cover(self.is_test_range(test.location)), [&operand]);
        let test = match test.booltesttype {
            Test::IS_TRUE => BooleanTest::True,
            Test::IS_NOT_TRUE => BooleanTest::NotTrue,
            Test::IS_FALSE => BooleanTest::False,
            Test::IS_NOT_FALSE => BooleanTest::NotFalse,
            Test::IS_UNKNOWN => BooleanTest::Unknown,
            _ => BooleanTest::NotUnknown,
        };
        expr(ExprKind::BooleanTest { operand: Box::new(operand), test }, range)
    }

    fn case(&self, case: &pg::CaseExpr) -> Expr {
        let operand = self.optional(case.arg).map(Box::new);
        let branches: Vec<(Expr, Expr)> = exact(case.args.iter().filter_map(|node| match node.node() {
            Node::CaseWhen(when) => Some((self.operand(when.expr), self.operand(when.result))),
            _ => None,
        }));
        let otherwise = self.optional(case.defresult).map(Box::new);
        let last = otherwise.as_deref().or(branches.last().map(|(_, result)| result));
        let after = last.map_or(0, |last| self.index_after(last.range));
        let end = (after..self.everything().end).find(|index| self.is(*index, "END"));
        let end = end.map_or(TextRange::default(), |index| self.token_range(index));
        let range = self.range_at(case.location).cover(last.map_or(TextRange::default(), |last| last.range)).cover(end);
        expr(ExprKind::Case { operand, branches, otherwise }, range)
    }

    fn array(&self, array: &pg::AArrayExpr) -> Expr {
        let items = self.expressions(array.elements);
        let range = self.index(array.location).map_or(TextRange::default(), |start| {
            let open = self.skip(start, &["ARRAY"]);
            self.range(Span::new(start, self.next(open)))
        });
        let range = range.cover(cover(&items));
        expr(ExprKind::Array(items), range)
    }

    fn sublink(&self, link: &pg::SubLink) -> Expr {
        use pg::SubLinkType as Link;
        let test = self.optional(link.testexpr).map(Box::new);
        let kind = match link.sub_link_type {
            Link::EXISTS_SUBLINK => SubqueryKind::Exists,
            Link::ALL_SUBLINK => SubqueryKind::All,
            Link::ANY_SUBLINK if is_equality(link) => SubqueryKind::Any,
            Link::ANY_SUBLINK => SubqueryKind::AnyOther,
            Link::ARRAY_SUBLINK => SubqueryKind::Array,
            _ => SubqueryKind::Scalar,
        };
        let open = self.index(link.location).and_then(|start| self.bracket_after_operator(start));
        let own = self.range_at(link.location);
        let brackets = open.map_or(own, |open| self.range(Span::new(open, self.next(open))));
        let test_range = test.as_ref().map_or(TextRange::default(), |test| test.range);
        let range = self.balanced(own.cover(test_range), test.as_deref()).cover(brackets);
        let within = open.map_or(self.everything(), |open| self.inside(open));
        let query = Box::new(self.subquery(link.subselect, within));
        expr(ExprKind::Subquery { kind, test, query }, range)
    }

    /// A query in an expression; the grammar allows nothing else there.
    fn subquery(&self, node: Option<pg::NodeRef<'_>>, span: Span) -> Query {
        let select = match node.map(pg::NodeRef::node) {
            Some(Node::SelectStmt(select)) => Some(select),
            _ => None,
        };
        self.required_query(select, span)
    }

    fn collate(&self, collate: &pg::CollateClause) -> Expr {
        let operand = self.operand(collate.arg);
        let clause = self
            .index(collate.location)
            .map_or(TextRange::default(), |start| self.range(Span::new(start, self.dotted_end(start + 1))));
        let range = self.balanced(operand.range.cover(clause), [&operand]);
        let (schema, collation) = schema_and_name(collate.collname);
        expr(ExprKind::Collate { operand: Box::new(operand), schema, collation }, range)
    }

    /// The keyword as written tells them apart, and PostgreSQL's `op` is only that.
    fn sql_value(&self, value: &pg::SqlValueFunction) -> Expr {
        let word = self.index(value.location).map_or("", |index| self.text(index));
        let precision = (value.typmod >= 0).then_some(value.typmod);
        expr(ExprKind::SqlValue(word.to_ascii_lowercase().into(), precision), self.call_range(value.location))
    }

    fn indirection(&self, node: &pg::AIndirection) -> Expr {
        let operand = self.operand(node.arg);
        let steps: Vec<IndirectionStep> = exact(node.indirection.iter().filter_map(|step| self.step(step)));
        // Behind the operand stand its closing brackets, then one `.name` or `[...]` for each step.
        let mut at = self.index_after(operand.range);
        while self.is_mark(at, b')') {
            at += 1;
        }
        for _ in &steps {
            at = if self.is_mark(at, b'[') { self.next(at) } else { at + 2 };
        }
        let end = self.token_range(at.saturating_sub(1));
        let range = self.balanced(operand.range.cover(end), [&operand]);
        expr(ExprKind::Indirection { operand: Box::new(operand), steps }, range)
    }

    fn step(&self, node: pg::NodeRef<'_>) -> Option<IndirectionStep> {
        match node.node() {
            Node::String(field) => Some(IndirectionStep::Field(SmolStr::new(field.sval.as_str()))),
            Node::AStar(_) => Some(IndirectionStep::AllFields),
            Node::AIndices(indices) if indices.is_slice => {
                Some(IndirectionStep::Slice(self.optional(indices.lidx), self.optional(indices.uidx)))
            }
            Node::AIndices(indices) => Some(IndirectionStep::Subscript(self.optional(indices.uidx))),
            _ => None,
        }
    }

    /// A column of an index or a partition key: by name or an expression.
    pub(super) fn key(&self, name: &str, node: Option<pg::NodeRef<'_>>, span: Span) -> Expr {
        if let Some(node) = node {
            return self.expression(node);
        }
        let name = self.name(span, name);
        expr(ExprKind::Column(vec![name.text]), name.range)
    }
}

pub(super) fn expr(kind: ExprKind, range: TextRange) -> Expr {
    Expr { kind, range }
}

/// From the first to the last of the expressions.
pub(super) fn cover(expressions: &[Expr]) -> TextRange {
    expressions.iter().fold(TextRange::default(), |range, expression| range.cover(expression.range))
}

fn operator_form(kind: pg::AExprKind) -> OperatorForm {
    use pg::AExprKind as Kind;
    match kind {
        Kind::AEXPR_OP_ANY => OperatorForm::AnyArray,
        Kind::AEXPR_OP_ALL => OperatorForm::AllArray,
        Kind::AEXPR_DISTINCT => OperatorForm::Distinct,
        Kind::AEXPR_NOT_DISTINCT => OperatorForm::NotDistinct,
        Kind::AEXPR_NULLIF => OperatorForm::NullIf,
        Kind::AEXPR_IN => OperatorForm::In,
        Kind::AEXPR_LIKE | Kind::AEXPR_ILIKE | Kind::AEXPR_SIMILAR => OperatorForm::Like,
        Kind::AEXPR_BETWEEN | Kind::AEXPR_BETWEEN_SYM => OperatorForm::Between,
        Kind::AEXPR_NOT_BETWEEN | Kind::AEXPR_NOT_BETWEEN_SYM => OperatorForm::NotBetween,
        _ => OperatorForm::Plain,
    }
}

/// `IN`, which names no operator, or `= ANY`.
fn is_equality(link: &pg::SubLink) -> bool {
    let is_equal = |name: pg::NodeRef<'_>| matches!(name.node(), Node::String(name) if name.sval.as_str() == "=");
    link.oper_name.iter().next_back().is_none_or(is_equal)
}
