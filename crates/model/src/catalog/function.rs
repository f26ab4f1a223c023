//! Functions and procedures of the project.

use super::{Catalog, Oid, SqlType};
use crate::builtin::{self, BuiltinTypeKind, TypeCategory, Volatility};
use crate::catalog::{SearchPath, TypeKind};
use pgvet_syntax::ast::{Expr, ExprKind, FunctionBody, FunctionCall, Literal, ParameterMode};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::cell::RefCell;
use std::sync::Arc;

/// A function: a row of `pg_proc`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Function {
    pub oid: Oid,
    pub schema: SmolStr,
    pub name: SmolStr,
    pub procedure: bool,
    pub aggregate: bool,
    pub parameters: Vec<Parameter>,
    pub returns: SqlType,
    pub returns_set: bool,
    pub language: SmolStr,
    pub volatility: Volatility,
    pub strict: bool,
    pub security_definer: bool,
    /// SET clauses, lower case names.
    pub settings: Vec<(SmolStr, SmolStr)>,
    pub body: Arc<FunctionBody>,
    /// Whether PostgreSQL has checked the code when the function was defined; `None` if that is not known.
    pub checked: Option<bool>,
    /// Where it was defined last; `None` where its definition is in no file, such as one that EXECUTE puts together.
    pub defined_at: Option<Definition>,
    pub transaction: u32,
}

/// Results about bodies of functions, each found once.
///
/// The key is the address of the body, which is kept so that nothing else gets its address.
#[derive(Debug)]
pub(crate) struct PerBody<T>(RefCell<FxHashMap<usize, (Arc<FunctionBody>, T)>>);

impl<T> Default for PerBody<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T: Clone> PerBody<T> {
    pub(crate) fn once(&self, body: &Arc<FunctionBody>, find_out: impl FnOnce() -> T) -> T {
        let mut known = self.0.borrow_mut();
        let (_, found) = known.entry(Arc::as_ptr(body) as usize).or_insert_with(|| (Arc::clone(body), find_out()));
        found.clone()
    }
}

/// Where a function is defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Index of the file in the run.
    pub file: u32,
    /// The statement of the file: CREATE FUNCTION, or a DO block around it.
    pub statement: TextRange,
    /// The name after CREATE FUNCTION.
    pub name: TextRange,
    /// The text between the quotes of the body; empty for BEGIN ATOMIC and RETURN.
    pub body: TextRange,
    /// The schemas in which the session looked names up.
    pub search_path: SearchPath,
}

/// A parameter of a function.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parameter {
    pub name: Option<SmolStr>,
    pub mode: ParameterMode,
    pub sql_type: SqlType,
    pub has_default: bool,
    pub default: Option<Arc<Expr>>,
}

impl Function {
    /// The types that decide which call means this function.
    pub fn input_types(&self) -> impl Iterator<Item = SqlType> + '_ {
        self.parameters.iter().filter(|parameter| parameter.mode.is_input()).map(|parameter| parameter.sql_type)
    }
}

impl Function {
    /// `f()`, or `app.f()` outside `public`, quoted as in SQL. For messages only: SQL also needs the types of the
    /// parameters.
    pub fn display_name(&self) -> String {
        let name = quote_identifier(&self.name);
        match self.schema.as_str() {
            "public" => format!("{name}()"),
            schema => format!("{}.{name}()", quote_identifier(schema)),
        }
    }

    /// The name of the built-in type that it returns, such as `trigger`.
    pub fn result_name(&self) -> Option<&'static str> {
        builtin::type_by_oid(self.returns.oid.0).map(|row| row.name)
    }

    /// Whether it can be called with this number of arguments.
    pub fn takes(&self, arguments: usize) -> bool {
        let inputs = || self.parameters.iter().filter(|parameter| parameter.mode.is_input());
        let variadic = inputs().any(|parameter| parameter.mode == ParameterMode::Variadic);
        let required = inputs().filter(|parameter| !parameter.has_default).count() - usize::from(variadic);
        arguments >= required && (variadic || arguments <= inputs().count())
    }

    /// The schemas in which its body looks names up: its own SET, or those of the session that defined it.
    pub fn search_path(&self) -> SearchPath {
        match self.settings.iter().find(|(name, _)| name == "search_path") {
            Some((_, value)) => crate::catalog::search_path(value).into(),
            None => {
                self.defined_at.as_ref().map_or_else(SearchPath::default, |definition| definition.search_path.clone())
            }
        }
    }
}

impl Catalog {
    /// The functions of the project that a call may mean: those that take so many arguments, and the values that are
    /// written out, in the first schema that has one.
    pub fn functions_called(&self, call: &FunctionCall, search_path: &SearchPath) -> Vec<Oid> {
        let schemas = call.schema.as_ref().map_or(&**search_path, std::slice::from_ref);
        let of_schema = |schema: &SmolStr| -> Vec<Oid> {
            let named = self.functions_named(schema, &call.name);
            let mut found: Vec<&Arc<Function>> =
                named.filter(|function| function.takes(call.arguments.len())).collect();
            if found.len() > 1 {
                self.choose_by_values(&mut found, call);
            }
            found.into_iter().map(|function| function.oid).collect()
        };
        schemas.iter().map(of_schema).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// An array is no argument for another type, and a string in quotes goes to a text if one of the functions takes one.
    ///
    /// Source: PostgreSQL 18 documentation, 10.3, steps 3 and 4.e.
    fn choose_by_values(&self, functions: &mut Vec<&Arc<Function>>, call: &FunctionCall) {
        let positional = call.arguments.iter().take_while(|argument| argument.name.is_none());
        for (at, argument) in positional.enumerate() {
            let wanted = match &argument.value.kind {
                ExprKind::Array(_) => TypeCategory::Array,
                ExprKind::Literal(Literal::String(_)) => TypeCategory::String,
                _ => continue,
            };
            let category = |function: &Function| {
                let mut inputs = function.parameters.iter().filter(|parameter| parameter.mode.is_input());
                let parameter = inputs.nth(at).filter(|parameter| parameter.mode != ParameterMode::Variadic)?;
                self.category_of(parameter.sql_type)
            };
            if functions.iter().any(|function| category(function) == Some(wanted)) {
                functions.retain(|function| category(function).is_none_or(|category| category == wanted));
            }
        }
    }

    /// The category of a type; `None` where it is not known, or that of each call.
    fn category_of(&self, sql_type: SqlType) -> Option<TypeCategory> {
        match builtin::type_by_oid(sql_type.oid.0) {
            Some(row) => (row.kind != BuiltinTypeKind::Pseudo).then_some(row.category),
            None => match self.get_type(sql_type.oid)?.kind {
                // That of the base.
                TypeKind::Domain(_) | TypeKind::Assumed => None,
                TypeKind::Array { .. } => Some(TypeCategory::Array),
                _ => Some(TypeCategory::User),
            },
        }
    }
}
