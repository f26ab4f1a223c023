//! Calls, operators and casts that PostgreSQL refuses because nothing takes such arguments.

use super::infer::Inference;
use super::overload::CallArguments;
use crate::builtin::BuiltinTypeKind;
use crate::catalog::{Oid, SqlType, TypeKind, is_of_platform};
use crate::effect::FailureSubject;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, Literal, OperatorForm};

/// Why an expression has no meaning, as far as all functions, operators and casts of the database are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub sqlstate: &'static str,
    pub reason: String,
    /// A missing function may have been made anywhere; hardly anyone makes operators or casts.
    pub subject: FailureSubject,
}

impl Inference<'_> {
    /// Only the first refusal counts, as PostgreSQL stops there.
    pub(super) fn refuse(&mut self, sqlstate: &'static str, reason: String) {
        self.refuse_with(Refused { sqlstate, reason, subject: FailureSubject::Other });
    }

    fn refuse_with(&mut self, refused: Refused) {
        if self.blind == 0 {
            self.typed.refused.get_or_insert(refused);
        }
    }

    /// Source: PostgreSQL 18, `src/backend/parser/parse_func.c`, `ParseFuncOrColumn`.
    pub(super) fn refuse_call(&mut self, call: &FunctionCall, arguments: &CallArguments) {
        // An ordered-set aggregate has more arguments than stand in its brackets; `f(row)` may be a column of the row.
        let may_be_column = match arguments.types[..] {
            [only] => self.analyzer.facts(only).is_none_or(|facts| facts.kind == BuiltinTypeKind::Composite),
            _ => false,
        };
        let of_system =
            |schema: &str| schema != "pg_catalog" && schema.starts_with("pg_") || schema == "information_schema";
        if call.schema.as_deref().is_some_and(|schema| of_system(schema) || is_of_platform(schema)) {
            return;
        }
        if call.order_by.is_empty() && arguments.names.is_empty() && !arguments.variadic && !may_be_column {
            let reason = format!("function {}({}) does not exist", call.name, self.listed(&arguments.types));
            self.refuse_with(Refused { sqlstate: "42883", reason, subject: FailureSubject::Function });
        }
    }

    /// Source: PostgreSQL 18, `src/backend/parser/parse_oper.c`, `op_error`.
    pub(super) fn refuse_operator(&mut self, name: &str, operands: &[Oid]) {
        let reason = match operands {
            [left, right] => {
                format!("operator does not exist: {} {name} {}", self.listed(&[*left]), self.listed(&[*right]))
            }
            _ => format!("operator does not exist: {name} {}", self.listed(operands)),
        };
        self.refuse_with(Refused { sqlstate: "42883", reason, subject: FailureSubject::Operator });
    }

    /// Source: PostgreSQL 18, `src/backend/parser/parse_expr.c`, `transformTypeCast`.
    pub(super) fn refuse_cast(&mut self, from: SqlType, to: SqlType) {
        let reason = format!("cannot cast type {} to {}", self.listed(&[from.oid]), self.listed(&[to.oid]));
        self.refuse("42846", reason);
    }

    /// Source: PostgreSQL 18, `src/backend/parser/parse_coerce.c`, `select_common_type`.
    pub(super) fn refuse_common_type(&mut self, first: SqlType, second: SqlType) {
        let reason = format!(
            "types {} and {} cannot be matched in a UNION, CASE or similar expression",
            self.listed(&[first.oid]),
            self.listed(&[second.oid])
        );
        self.refuse("42804", reason);
    }

    /// Refuses a type whose values cannot be compared by B-tree or hash operators. Types of the project are assumed to
    /// have them.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_oper.c`, `get_sort_group_operators`.
    pub(super) fn refuse_without_equality(&mut self, sql_type: SqlType) {
        let base = self.analyzer.base_type(sql_type);
        let has = |method| self.analyzer.default_operator_class(method, base).is_some();
        let is_plain = self.analyzer.facts(base.oid).is_some_and(|facts| facts.kind == BuiltinTypeKind::Base);
        if base.oid.is_builtin() && is_plain && !has("btree") && !has("hash") {
            let reason = format!("could not identify an equality operator for type {}", self.listed(&[base.oid]));
            self.refuse("42883", reason);
        }
    }

    /// Refuses texts that are compared with an enum and are no labels of it: a literal gets the type of the other operand.
    /// Other operators, such as `||`, treat the literal as text.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_oper.c`, `binary_oper_exact`; `parse_coerce.c`, `coerce_type`;
    /// `src/backend/utils/adt/enum.c`, `enum_in`.
    pub(super) fn refuse_labels(&mut self, operator: &str, form: OperatorForm, operands: &[Expr], types: &[SqlType]) {
        use OperatorForm::{Between, Distinct, In, NotDistinct, NullIf, Plain};
        let compares = match form {
            Plain => matches!(operator, "=" | "<>" | "<" | ">" | "<=" | ">="),
            form => matches!(form, Between | Distinct | In | NotDistinct | NullIf),
        };
        let ([first, others @ ..], [first_type, other_types @ ..], true) = (operands, types, compares) else { return };
        others.iter().for_each(|other| self.refuse_label(*first_type, other));
        if let [other_type] = other_types {
            self.refuse_label(*other_type, first);
        }
    }

    /// Refuses a text that becomes a value of an enum, and is no label of it.
    pub(super) fn refuse_label(&mut self, sql_type: SqlType, value: &Expr) {
        let ExprKind::Literal(Literal::String(text)) = &value.kind else { return };
        let Some(definition) = self.analyzer.schema.type_by_oid(sql_type.oid) else { return };
        let TypeKind::Enum { labels } = &definition.kind else { return };
        if !labels.contains(text) {
            self.refuse("22P02", format!("invalid input value for enum {}: \"{text}\"", definition.name));
        }
    }

    fn listed(&self, types: &[Oid]) -> String {
        let names: Vec<String> = types.iter().map(|oid| self.analyzer.format_type(SqlType::new(*oid))).collect();
        names.join(", ")
    }
}
