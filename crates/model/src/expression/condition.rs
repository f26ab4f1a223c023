//! Conditions in the shape in which PostgreSQL compares them: NOT pushed down to the comparisons, IN and BETWEEN spelled
//! out, the constant on the right.

use pgvet_syntax::ast::{Expr, ExprKind, Literal, OperatorForm};

/// A condition.
#[derive(Debug, Clone)]
pub(super) enum Condition<'a> {
    And(Vec<Self>),
    Or(Vec<Self>),
    Compare {
        subject: &'a Expr,
        comparison: Comparison,
        value: &'a Expr,
    },
    NullTest {
        subject: &'a Expr,
        is_null: bool,
    },
    /// Anything else, which only implies itself.
    Other {
        expression: &'a Expr,
        negated: bool,
    },
}

/// The operators of a btree, and `<>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessEqual,
    Equal,
    GreaterEqual,
    Greater,
    NotEqual,
}

/// `MAX_SAOP_ARRAY_SIZE` (src/backend/optimizer/util/predtest.c): longer lists are not taken apart.
const MAX_LIST: usize = 100;

impl Comparison {
    fn of_operator(name: &str) -> Option<Self> {
        Some(match name {
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            "=" => Self::Equal,
            ">=" => Self::GreaterEqual,
            ">" => Self::Greater,
            "<>" => Self::NotEqual,
            _ => return None,
        })
    }

    fn negated(self) -> Self {
        match self {
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Equal => Self::NotEqual,
            Self::GreaterEqual => Self::Less,
            Self::Greater => Self::LessEqual,
            Self::NotEqual => Self::Equal,
        }
    }

    /// `1 < k` is `k > 1`.
    fn commuted(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::GreaterEqual => Self::LessEqual,
            Self::Greater => Self::Less,
            same => same,
        }
    }
}

impl<'a> Condition<'a> {
    pub(super) fn of(expression: &'a Expr) -> Self {
        Self::build(expression, false)
    }

    fn build(expression: &'a Expr, negated: bool) -> Self {
        let other = Self::Other { expression, negated };
        match &expression.kind {
            ExprKind::And(list) => Self::list(list.iter().map(|item| Self::build(item, negated)).collect(), !negated),
            ExprKind::Or(list) => Self::list(list.iter().map(|item| Self::build(item, negated)).collect(), negated),
            ExprKind::Not(operand) => Self::build(operand, !negated),
            ExprKind::IsNull { operand, negated: is_not } => {
                Self::NullTest { subject: operand, is_null: *is_not == negated }
            }
            ExprKind::Operator { form: OperatorForm::Distinct | OperatorForm::NotDistinct, operands, .. } => {
                Self::distinct_from_null(expression, operands, negated).unwrap_or(other)
            }
            ExprKind::Operator { schema: None, operator, form, operands } => {
                let Some(comparison) = Comparison::of_operator(operator) else {
                    return Self::between(*form, operands, negated).unwrap_or(other);
                };
                let comparison = if negated { comparison.negated() } else { comparison };
                Self::operator(*form, comparison, operands, negated).unwrap_or(other)
            }
            _ => other,
        }
    }

    /// `x IS DISTINCT FROM NULL` is `x IS NOT NULL`.
    fn distinct_from_null(expression: &Expr, operands: &'a [Expr], negated: bool) -> Option<Self> {
        let [subject, value] = operands else { return None };
        let is_distinct = matches!(expression.kind, ExprKind::Operator { form: OperatorForm::Distinct, .. });
        matches!(value.kind, ExprKind::Literal(Literal::Null))
            .then_some(Self::NullTest { subject, is_null: is_distinct == negated })
    }

    fn list(items: Vec<Self>, and: bool) -> Self {
        if and { Self::And(items) } else { Self::Or(items) }
    }

    fn compare(left: &'a Expr, comparison: Comparison, right: &'a Expr) -> Self {
        // `b = true` is `b`.
        if let ExprKind::Literal(Literal::Boolean(value)) = &right.kind
            && matches!(comparison, Comparison::Equal | Comparison::NotEqual)
        {
            return Self::Other { expression: left, negated: *value != (comparison == Comparison::Equal) };
        }
        if is_constant(left) && !is_constant(right) {
            Self::Compare { subject: right, comparison: comparison.commuted(), value: left }
        } else {
            Self::Compare { subject: left, comparison, value: right }
        }
    }

    fn operator(form: OperatorForm, comparison: Comparison, operands: &'a [Expr], negated: bool) -> Option<Self> {
        match (form, operands) {
            (OperatorForm::Plain, [left, right]) => Some(Self::compare(left, comparison, right)),
            (OperatorForm::In, [subject, items @ ..]) if items.len() <= MAX_LIST => {
                let items = items.iter().map(|item| Self::compare(subject, comparison, item)).collect();
                Some(Self::list(items, comparison == Comparison::NotEqual))
            }
            (OperatorForm::AnyArray | OperatorForm::AllArray, [subject, array]) => {
                let ExprKind::Array(items) = &array.kind else { return None };
                if items.len() > MAX_LIST {
                    return None;
                }
                let items = items.iter().map(|item| Self::compare(subject, comparison, item)).collect();
                // NOT turns ANY into ALL.
                Some(Self::list(items, (form == OperatorForm::AllArray) != negated))
            }
            (OperatorForm::Between | OperatorForm::NotBetween, _) => Self::between(form, operands, negated),
            _ => None,
        }
    }

    fn between(form: OperatorForm, operands: &'a [Expr], negated: bool) -> Option<Self> {
        let [subject, low, high] = operands else { return None };
        let inside = match form {
            OperatorForm::Between => !negated,
            OperatorForm::NotBetween => negated,
            _ => return None,
        };
        let (from, to) = if inside {
            (Comparison::GreaterEqual, Comparison::LessEqual)
        } else {
            (Comparison::Less, Comparison::Greater)
        };
        Some(Self::list(vec![Self::compare(subject, from, low), Self::compare(subject, to, high)], inside))
    }
}

/// A literal, also under a cast or a minus sign.
pub(super) fn is_constant(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Cast { operand, .. } => is_constant(operand),
        ExprKind::Operator { operator, operands, form: OperatorForm::Plain, .. } => {
            operator == "-" && operands.len() == 1 && operands.iter().all(is_constant)
        }
        _ => false,
    }
}

/// The same expression, wherever it stands. Expressions of kinds that are rare in constraints are never the same.
pub(super) fn is_same(left: &Expr, right: &Expr) -> bool {
    let all_same = |left: &[Expr], right: &[Expr]| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
    };
    match (&left.kind, &right.kind) {
        // In the constraints of one table the last part names the column.
        (ExprKind::Column(left), ExprKind::Column(right)) => left.last() == right.last() && !left.is_empty(),
        (ExprKind::Literal(left), ExprKind::Literal(right)) => left == right && *left != Literal::Null,
        (ExprKind::Cast { operand: left, target: to }, ExprKind::Cast { operand: right, target: other }) => {
            let same_type = to.schema == other.schema
                && to.name == other.name
                && to.modifiers == other.modifiers
                && to.is_array == other.is_array
                && to.percent_type == other.percent_type;
            same_type && is_same(left, right)
        }
        (ExprKind::Not(left), ExprKind::Not(right)) => is_same(left, right),
        (ExprKind::And(left), ExprKind::And(right))
        | (ExprKind::Or(left), ExprKind::Or(right))
        | (ExprKind::Array(left), ExprKind::Array(right)) => all_same(left, right),
        (ExprKind::BooleanTest { operand: left, test }, ExprKind::BooleanTest { operand: right, test: other }) => {
            test == other && is_same(left, right)
        }
        (
            ExprKind::Operator { schema, operator, form, operands },
            ExprKind::Operator { schema: other_schema, operator: other, form: other_form, operands: right },
        ) => schema == other_schema && operator == other && form == other_form && all_same(operands, right),
        (ExprKind::Call(left), ExprKind::Call(right)) => {
            let plain = |call: &pgvet_syntax::ast::FunctionCall| {
                !call.star
                    && !call.distinct
                    && !call.variadic
                    && call.filter.is_none()
                    && call.order_by.is_empty()
                    && call.window.is_none()
            };
            plain(left)
                && plain(right)
                && left.schema == right.schema
                && left.name == right.name
                && left.arguments.len() == right.arguments.len()
                && left
                    .arguments
                    .iter()
                    .zip(&right.arguments)
                    .all(|(left, right)| left.name == right.name && is_same(&left.value, &right.value))
        }
        _ => false,
    }
}
