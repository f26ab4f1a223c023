//! Scalar expressions.

use super::{Literal, Query, TypeName};
use crate::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A scalar expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expr {
    pub kind: ExprKind,
    pub range: TextRange,
}

/// The kinds of expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ExprKind {
    /// `a`, `t.a`, `s.t.a`.
    Column(Vec<SmolStr>),
    /// `*` or `t.*`: the qualifier.
    Star(Vec<SmolStr>),
    Literal(Literal),
    /// `$1`, or a PL/pgSQL variable.
    Parameter(u32),
    Call(Box<FunctionCall>),
    /// An operator with one operand (prefix) or two.
    Operator {
        schema: Option<SmolStr>,
        operator: SmolStr,
        form: OperatorForm,
        operands: Vec<Expr>,
    },
    Cast {
        operand: Box<Expr>,
        target: Box<TypeName>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    IsNull {
        operand: Box<Expr>,
        negated: bool,
    },
    /// `IS [NOT] TRUE | FALSE | UNKNOWN`.
    BooleanTest {
        operand: Box<Expr>,
        test: BooleanTest,
    },
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Coalesce(Vec<Expr>),
    /// GREATEST and LEAST.
    MinMax {
        least: bool,
        operands: Vec<Expr>,
    },
    Array(Vec<Expr>),
    Row(Vec<Expr>),
    Subquery {
        kind: SubqueryKind,
        /// The left side of IN, ANY and ALL.
        test: Option<Box<Expr>>,
        query: Box<Query>,
    },
    Collate {
        operand: Box<Expr>,
        schema: Option<SmolStr>,
        collation: SmolStr,
    },
    /// `CURRENT_DATE`, `CURRENT_TIMESTAMP(3)`, `CURRENT_USER` and so on, in lower case, and the precision.
    SqlValue(SmolStr, Option<i32>),
    /// `expr.field`, `expr[1]`, `expr[1:2]`.
    Indirection {
        operand: Box<Expr>,
        steps: Vec<IndirectionStep>,
    },
    /// DEFAULT in VALUES or SET.
    Default,
    /// XML and JSON constructors, GROUPING, CURRENT OF and so on: name of the node and its operands.
    Other(SmolStr, Vec<Expr>),
}

/// A function call, aggregate or window function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    pub schema: Option<SmolStr>,
    pub name: SmolStr,
    pub arguments: Vec<Argument>,
    /// `count(*)`.
    pub star: bool,
    pub distinct: bool,
    pub variadic: bool,
    pub filter: Option<Expr>,
    pub order_by: Vec<Expr>,
    /// Has an OVER clause; partition and order expressions of it.
    pub window: Option<Vec<Expr>>,
    /// How many expressions of `window` are those of PARTITION BY.
    pub partition_keys: u32,
    pub name_range: TextRange,
}

/// An argument, possibly by name (`f(a => 1)`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    pub name: Option<SmolStr>,
    pub value: Expr,
}

/// The syntax around an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorForm {
    Plain,
    /// `x = ANY (array)`.
    AnyArray,
    /// `x = ALL (array)`.
    AllArray,
    /// `IS DISTINCT FROM`; operator `=`.
    Distinct,
    /// `IS NOT DISTINCT FROM`; operator `=`.
    NotDistinct,
    NullIf,
    /// `x IN (a, b)` and `NOT IN` (operator `<>`): first operand is x.
    In,
    /// LIKE, ILIKE, SIMILAR TO: operator `~~`, `~~*`, `~`, negated with `!`.
    Like,
    /// `[NOT] BETWEEN [SYMMETRIC]`: three operands.
    Between,
    NotBetween,
}

/// The test of `IS [NOT] TRUE | FALSE | UNKNOWN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BooleanTest {
    True,
    NotTrue,
    False,
    NotFalse,
    Unknown,
    NotUnknown,
}

/// How a subquery is used in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubqueryKind {
    Exists,
    /// `IN (SELECT ...)`, `= ANY (SELECT ...)`.
    Any,
    /// ANY with another operator: `< ANY (SELECT ...)`.
    AnyOther,
    All,
    Scalar,
    Array,
}

/// One step of [`ExprKind::Indirection`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum IndirectionStep {
    Field(SmolStr),
    AllFields,
    Subscript(Option<Expr>),
    Slice(Option<Expr>, Option<Expr>),
}

impl Expr {
    /// Calls `visit` on every direct operand (not into subqueries).
    pub fn for_each_child<'a>(&'a self, mut visit: impl FnMut(&'a Self)) {
        match &self.kind {
            ExprKind::Column(_)
            | ExprKind::Star(_)
            | ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::SqlValue(..)
            | ExprKind::Default => {}
            ExprKind::Call(call) => {
                call.arguments.iter().for_each(|argument| visit(&argument.value));
                call.filter.iter().for_each(&mut visit);
                call.order_by.iter().for_each(&mut visit);
                call.window.iter().flatten().for_each(&mut visit);
            }
            ExprKind::Operator { operands: list, .. }
            | ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Coalesce(list)
            | ExprKind::MinMax { operands: list, .. }
            | ExprKind::Array(list)
            | ExprKind::Row(list)
            | ExprKind::Other(_, list) => list.iter().for_each(visit),
            ExprKind::Cast { operand, .. }
            | ExprKind::Not(operand)
            | ExprKind::IsNull { operand, .. }
            | ExprKind::BooleanTest { operand, .. }
            | ExprKind::Collate { operand, .. } => visit(operand),
            ExprKind::Case { operand, branches, otherwise } => {
                operand.iter().for_each(|operand| visit(operand));
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
                otherwise.iter().for_each(|otherwise| visit(otherwise));
            }
            ExprKind::Subquery { test, .. } => test.iter().for_each(|test| visit(test)),
            ExprKind::Indirection { operand, steps } => {
                visit(operand);
                for step in steps {
                    match step {
                        IndirectionStep::Subscript(index) => index.iter().for_each(&mut visit),
                        IndirectionStep::Slice(from, to) => from.iter().chain(to).for_each(&mut visit),
                        IndirectionStep::Field(_) | IndirectionStep::AllFields => {}
                    }
                }
            }
        }
    }

    /// The same for changing them.
    pub fn for_each_child_mut(&mut self, visit: &mut impl FnMut(&mut Self)) {
        match &mut self.kind {
            ExprKind::Call(call) => {
                call.arguments.iter_mut().for_each(|argument| visit(&mut argument.value));
                call.filter.iter_mut().chain(&mut call.order_by).for_each(&mut *visit);
                call.window.iter_mut().flatten().for_each(visit);
            }
            ExprKind::Operator { operands: list, .. }
            | ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Coalesce(list)
            | ExprKind::MinMax { operands: list, .. }
            | ExprKind::Array(list)
            | ExprKind::Row(list)
            | ExprKind::Other(_, list) => list.iter_mut().for_each(visit),
            ExprKind::Cast { operand, .. }
            | ExprKind::Not(operand)
            | ExprKind::IsNull { operand, .. }
            | ExprKind::BooleanTest { operand, .. }
            | ExprKind::Collate { operand, .. }
            | ExprKind::Indirection { operand, .. } => visit(operand),
            ExprKind::Case { operand, branches, otherwise } => {
                operand.iter_mut().for_each(|operand| visit(operand));
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
                otherwise.iter_mut().for_each(|otherwise| visit(otherwise));
            }
            ExprKind::Subquery { test, .. } => test.iter_mut().for_each(|test| visit(test)),
            _ => {}
        }
    }

    /// Calls `visit` on this expression and everything below it (not into subqueries).
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.for_each_child(|child| child.walk(visit));
    }
}

impl Expr {
    /// The name where the expression is a column without qualifier.
    pub fn as_column(&self) -> Option<&SmolStr> {
        match &self.kind {
            ExprKind::Column(parts) if parts.len() == 1 => parts.first(),
            _ => None,
        }
    }
}

impl Expr {
    /// Whether both say the same, wherever they are. Subqueries are never the same.
    pub fn is_same(&self, other: &Self) -> bool {
        use ExprKind as K;
        let same_head = match (&self.kind, &other.kind) {
            (K::Column(ours), K::Column(theirs)) => ours.last() == theirs.last(),
            (K::Star(ours), K::Star(theirs)) => ours == theirs,
            (K::Literal(ours), K::Literal(theirs)) => ours == theirs,
            (K::Parameter(ours), K::Parameter(theirs)) => ours == theirs,
            (K::SqlValue(ours, precision), K::SqlValue(theirs, other)) => (ours, precision) == (theirs, other),
            (K::Other(ours, _), K::Other(theirs, _)) => ours == theirs,
            (K::MinMax { least: ours, .. }, K::MinMax { least: theirs, .. }) => ours == theirs,
            (K::Call(ours), K::Call(theirs)) => {
                (&ours.schema, &ours.name, ours.star, ours.distinct, ours.variadic)
                    == (&theirs.schema, &theirs.name, theirs.star, theirs.distinct, theirs.variadic)
            }
            (
                K::Operator { schema, operator, form, .. },
                K::Operator { schema: their_schema, operator: their_operator, form: their_form, .. },
            ) => (schema, operator, form) == (their_schema, their_operator, their_form),
            (K::Cast { target: ours, .. }, K::Cast { target: theirs, .. }) => {
                (&ours.schema, &ours.name, &ours.modifiers, ours.is_array)
                    == (&theirs.schema, &theirs.name, &theirs.modifiers, theirs.is_array)
            }
            (K::IsNull { negated: ours, .. }, K::IsNull { negated: theirs, .. }) => ours == theirs,
            (K::BooleanTest { test: ours, .. }, K::BooleanTest { test: theirs, .. }) => ours == theirs,
            (K::Collate { collation: ours, .. }, K::Collate { collation: theirs, .. }) => ours == theirs,
            (
                K::Case { operand, branches, otherwise },
                K::Case { operand: their_operand, branches: their_branches, otherwise: their_otherwise },
            ) => {
                (operand.is_some(), branches.len(), otherwise.is_some())
                    == (their_operand.is_some(), their_branches.len(), their_otherwise.is_some())
            }
            (K::Indirection { steps: ours, .. }, K::Indirection { steps: theirs, .. }) => {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| ours.is_same(theirs))
            }
            (K::Subquery { .. }, _) => false,
            (ours, theirs) => std::mem::discriminant(ours) == std::mem::discriminant(theirs),
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        self.for_each_child(|child| ours.push(child));
        other.for_each_child(|child| theirs.push(child));
        same_head && ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| ours.is_same(theirs))
    }
}

impl IndirectionStep {
    /// The same kind of step, by name; subscripts are compared as children of the expression.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(ours), Self::Field(theirs)) => ours == theirs,
            (ours, theirs) => std::mem::discriminant(ours) == std::mem::discriminant(theirs),
        }
    }
}
