//! The names and types of the columns that functions in FROM have.

use super::describe::{Ctes, TEXT};
use crate::builtin::oid;
use crate::catalog::{Oid, SqlType, TypeKind};
use crate::execute::Executor;
use crate::execute::scope::{QueryColumn, Scope, renamed};
use pgvet_syntax::ast::{Alias, Expr, ExprKind, FunctionCall, FunctionColumn, FunctionForm, ParameterMode};
use smol_str::SmolStr;

impl Executor<'_> {
    /// The columns of an item of FROM, under the names of its alias; `None` if they are not known.
    pub(super) fn columns_of_functions(
        &mut self,
        calls: &[Expr],
        form: Option<&FunctionForm>,
        alias: Option<&Alias>,
        scope: &Scope<'_>,
        ctes: &Ctes,
    ) -> Option<Vec<QueryColumn>> {
        // The alias is that of a column only for one function.
        let name = alias.map(|alias| &alias.name).filter(|_| calls.len() == 1);
        let mut columns = Some(Vec::new());
        for (at, call) in calls.iter().enumerate() {
            let defined = form.map(|form| form.of_calls.get(at).unwrap_or(&form.columns));
            let of_call = match defined.filter(|columns| !columns.is_empty()) {
                Some(defined) => Some(self.defined_columns(defined)),
                None => self.function_columns(call, name, scope, ctes),
            };
            columns = columns.zip(of_call).map(|(columns, of_call)| [columns, of_call].concat());
        }
        if let (Some(columns), Some(FunctionForm { ordinality: true, .. })) = (&mut columns, form) {
            columns.push((SmolStr::new_static("ordinality"), SqlType::new(Oid(oid::INT8))));
        }
        let names = alias.map_or(&[][..], |alias| &alias.columns);
        // `unnest` of rows has the columns of these.
        match columns.filter(|columns| names.len() <= columns.len()) {
            None if names.is_empty() => None,
            None => Some(names.iter().map(|name| (name.clone(), SqlType::UNKNOWN)).collect()),
            columns => renamed(columns, alias),
        }
    }

    fn defined_columns(&mut self, columns: &[FunctionColumn]) -> Vec<QueryColumn> {
        columns.iter().map(|column| (column.name.clone(), self.resolve_type(&column.type_name))).collect()
    }

    /// The columns of a function, as far as they follow from its name. `name` is that of its only column.
    fn function_columns(
        &mut self,
        call: &Expr,
        name: Option<&SmolStr>,
        scope: &Scope<'_>,
        ctes: &Ctes,
    ) -> Option<Vec<QueryColumn>> {
        let ExprKind::Call(call) = &call.kind else { return None };
        let name = name.unwrap_or(&call.name).clone();
        match call.name.as_str() {
            "generate_series" => {
                let first = call.arguments.first().map(|argument| self.expression_type(&argument.value, scope, ctes));
                Some(vec![(name, first.unwrap_or(SqlType::UNKNOWN))])
            }
            "unnest" if call.arguments.len() == 1 => {
                let array = self.expression_type(&call.arguments[0].value, scope, ctes);
                self.elements_of(array, name)
            }
            "regexp_split_to_table" | "string_to_table" => Some(vec![(name, TEXT)]),
            "jsonb_array_elements" => Some(vec![(SmolStr::new_static("value"), SqlType::new(Oid(3802)))]),
            "json_array_elements" => Some(vec![(SmolStr::new_static("value"), SqlType::new(Oid(114)))]),
            "jsonb_array_elements_text" | "json_array_elements_text" => {
                Some(vec![(SmolStr::new_static("value"), TEXT)])
            }
            _ => self.user_function_columns(call, &name),
        }
    }

    /// The columns of `unnest`: those of the rows, or one if the elements are no rows. What is not known may be rows.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/fmgr/funcapi.c`, `get_expr_result_type`.
    fn elements_of(&self, array: SqlType, name: SmolStr) -> Option<Vec<QueryColumn>> {
        let element = self.with_analyzer(|analyzer| {
            let array = analyzer.base_type(array);
            analyzer.element_type(array.oid).map(|element| (element, analyzer.base_type(SqlType::new(element))))
        });
        let (element, base) = element?;
        if base.oid.0 == oid::RECORD {
            return None;
        }
        match self.catalog.get_type(base.oid).map(|definition| &definition.kind) {
            Some(TypeKind::Composite { relation }) => self.relation_columns(*relation),
            Some(TypeKind::Assumed) => None,
            _ => Some(vec![(name, SqlType::new(element))]),
        }
    }

    fn user_function_columns(&self, call: &FunctionCall, name: &SmolStr) -> Option<Vec<QueryColumn>> {
        let function = self.catalog.get_function(*self.called_functions(call).first()?)?;
        let output: Vec<QueryColumn> = (function.parameters.iter())
            .filter(|parameter| !matches!(parameter.mode, ParameterMode::In | ParameterMode::Variadic))
            .map(|parameter| (parameter.name.clone().unwrap_or_default(), parameter.sql_type))
            .collect();
        if !output.is_empty() {
            return Some(output);
        }
        let returned = self.catalog.get_type(function.returns.oid).map(|definition| &definition.kind);
        match returned {
            Some(TypeKind::Composite { relation }) => {
                self.catalog.get_relation(*relation).and_then(|relation| self.relation_columns(relation.oid))
            }
            // It may have any columns.
            Some(TypeKind::Assumed) => None,
            _ if function.returns.is_known() => Some(vec![(name.clone(), function.returns)]),
            _ => None,
        }
    }
}
