//! Operators and the forms around them.

use super::Analyzer;
use super::infer::Inference;
use super::overload::Resolution;
use super::scope::Scope;
use crate::builtin::{self, BuiltinTypeKind, oid};
use crate::catalog::{Oid, SqlType};
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm, TypeName};
use smol_str::SmolStr;

impl Inference<'_> {
    pub(super) fn operator(
        &mut self,
        schema: Option<&str>,
        name: &str,
        form: OperatorForm,
        types: &[SqlType],
    ) -> SqlType {
        use OperatorForm as Form;
        let boolean = SqlType::new(Oid(oid::BOOL));
        match (form, types) {
            (Form::Between | Form::NotBetween, [value, low, high]) => {
                self.operator(None, ">=", Form::Plain, &[*value, *low]);
                self.operator(None, "<=", Form::Plain, &[*value, *high]);
                boolean
            }
            (Form::In, [value, items @ ..]) => {
                for item in items {
                    self.operator(schema, name, Form::Plain, &[*value, *item]);
                }
                boolean
            }
            (Form::AnyArray | Form::AllArray, [value, array]) => {
                if self.analyzer.is_no_array(array.oid) {
                    self.refuse("42809", "op ANY/ALL (array) requires array on right side".to_owned());
                }
                let element = if array.oid.0 == oid::UNKNOWN {
                    *array
                } else {
                    self.analyzer.element_type(array.oid).map_or(SqlType::UNKNOWN, SqlType::new)
                };
                self.operator(schema, name, Form::Plain, &[*value, element]);
                boolean
            }
            (Form::Distinct | Form::NotDistinct, _) => {
                self.operator(schema, name, Form::Plain, types);
                boolean
            }
            (Form::NullIf, [value, _]) => {
                self.operator(schema, name, Form::Plain, types);
                self.analyzer.compared_as(schema, name, *value, types)
            }
            _ => {
                let oids: Vec<Oid> = types.iter().map(|sql_type| sql_type.oid).collect();
                match self.analyzer.resolve_operator(schema, name, &oids) {
                    Resolution::One(candidate) => self.chosen(name, &candidate, types, None),
                    Resolution::OneOf(candidates) => self.undecided(name, &candidates),
                    Resolution::NoMatch(candidates) => {
                        self.refuse_operator(name, &oids);
                        self.undecided(name, &candidates)
                    }
                    Resolution::NotFound | Resolution::Cast(_) => {
                        self.refuse_operator(name, &oids);
                        self.unknown(format!("operator {name}"));
                        SqlType::UNKNOWN
                    }
                }
            }
        }
    }
}

impl Analyzer<'_> {
    /// The first operand as the operator takes it.
    fn compared_as(&self, schema: Option<&str>, name: &str, value: SqlType, types: &[SqlType]) -> SqlType {
        let oids: Vec<Oid> = types.iter().map(|sql_type| sql_type.oid).collect();
        match self.resolve_operator(schema, name, &oids) {
            Resolution::One(candidate) if !builtin::is_polymorphic(candidate.arguments[0].0) => {
                let taken_as = candidate.arguments[0];
                if taken_as == value.oid { value } else { SqlType::new(taken_as) }
            }
            _ => value,
        }
    }

    /// Whether it is certainly not an array, and not a literal that could become one. Vectors of catalogs are treated
    /// as arrays.
    fn is_no_array(&self, oid: Oid) -> bool {
        let base = self.base_type(SqlType::new(oid)).oid;
        let facts = self.facts(base).filter(|facts| facts.kind != BuiltinTypeKind::Pseudo);
        facts.is_some_and(|facts| facts.element.is_none()) && !matches!(base.0, oid::INT2VECTOR | oid::OIDVECTOR)
    }

    /// Gives literals beside an operator the types that they are taken for, as PostgreSQL keeps an expression: when a
    /// column in it gets another type later, they stay what they are.
    pub fn settle_literals(&self, expr: &mut Expr, scope: &Scope) {
        expr.for_each_child_mut(&mut |child| self.settle_literals(child, scope));
        let ExprKind::Operator { schema, operator, form, operands } = &mut expr.kind else { return };
        match form {
            // The literal is an array.
            OperatorForm::AnyArray | OperatorForm::AllArray => {}
            OperatorForm::Between | OperatorForm::NotBetween => self.settle_operands(None, ">=", operands, scope),
            _ => self.settle_operands(schema.as_deref(), operator, operands, scope),
        }
    }

    fn settle_operands(&self, schema: Option<&str>, operator: &str, operands: &mut [Expr], scope: &Scope) {
        let types: Vec<Oid> = operands.iter().map(|operand| self.type_of(operand, scope).oid).collect();
        let Some(first) = types.first().copied() else { return };
        for (at, operand) in operands.iter_mut().enumerate() {
            let other = if at == 0 { types.get(1).copied().unwrap_or_default() } else { first };
            if types[at].0 != oid::UNKNOWN || !matches!(operand.kind, ExprKind::Literal(_)) {
                continue;
            }
            let (pair, place) = if at == 0 { ([types[at], other], 0) } else { ([other, types[at]], 1) };
            if let Resolution::One(candidate) = self.resolve_operator(schema, operator, &pair) {
                self.settle_literal(operand, candidate.arguments[place]);
            }
        }
    }

    /// Gives a literal a type, if SQL has a name for it.
    pub fn settle_literal(&self, literal: &mut Expr, taken_for: Oid) {
        let Some(target) = self.name_of_type(taken_for) else { return };
        let kind = std::mem::replace(&mut literal.kind, ExprKind::Default);
        let operand = Box::new(Expr { kind, range: literal.range });
        literal.kind = ExprKind::Cast { operand, target: Box::new(target) };
    }

    /// The type as SQL would name it; `None` for a pseudo-type.
    fn name_of_type(&self, oid: Oid) -> Option<TypeName> {
        if let Some(element) = self.element_type(oid).filter(|element| self.array_type(*element) == Some(oid)) {
            return Some(TypeName { is_array: true, ..self.name_of_type(element)? });
        }
        let (schema, name) = match builtin::type_by_oid(oid.0) {
            Some(row) if builtin::is_polymorphic(oid.0) || row.kind == BuiltinTypeKind::Pseudo => return None,
            Some(row) => (SmolStr::new_static("pg_catalog"), SmolStr::new_static(row.name)),
            None => {
                let own = self.schema.type_by_oid(oid)?;
                (own.schema.clone(), own.name.clone())
            }
        };
        Some(TypeName::plain(Some(schema), name))
    }
}
