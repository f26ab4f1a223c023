//! The names that PL/pgSQL knows beside columns: parameters, declared variables, loop variables, and those of triggers.

use super::{Code, Node, Routine};
use crate::catalog::SqlType;
use pgvet_syntax::ast::{Name, ParameterMode};
use pgvet_syntax::plpgsql::{DataType, Declaration, DeclarationKind, LoopKind, Statement, StatementKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// A name that stands for a value of the code.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub name: SmolStr,
    pub kind: VariableKind,
    /// Where it is declared; empty for those that are not.
    pub range: TextRange,
}

/// Where a variable comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableKind {
    Parameter {
        mode: ParameterMode,
        sql_type: SqlType,
    },
    Declared(DataType),
    Alias,
    Cursor,
    /// `FOR i IN 1..10`, and the row of a cursor.
    Loop,
    /// `new`, `old`, `tg_op`, `found`, `sqlerrm` and so on.
    Implicit,
}

/// The variables that every function may use, a trigger function and an exception handler included.
///
/// Source: PostgreSQL 18 documentation, 41.5.5, 41.6.8 and 41.10.
const IMPLICIT: [&str; 18] = [
    "found",
    "new",
    "old",
    "tg_name",
    "tg_when",
    "tg_level",
    "tg_op",
    "tg_relid",
    "tg_relname",
    "tg_table_name",
    "tg_table_schema",
    "tg_nargs",
    "tg_argv",
    "tg_event",
    "tg_tag",
    "sqlstate",
    "sqlerrm",
    "current_query",
];

/// A declaration, and the arguments of a cursor.
fn declare(declaration: &Declaration, found: &mut Vec<Variable>) {
    let variable = |name: &Name, kind| Variable { name: name.text.clone(), kind, range: name.range };
    let kind = match &declaration.kind {
        DeclarationKind::Variable(variable) => VariableKind::Declared(variable.data_type.clone()),
        DeclarationKind::Alias(_) => VariableKind::Alias,
        DeclarationKind::Cursor(_) => VariableKind::Cursor,
    };
    found.push(variable(&declaration.name, kind));
    if let DeclarationKind::Cursor(cursor) = &declaration.kind {
        let arguments = cursor.arguments.iter();
        found.extend(arguments.map(|(name, kind)| variable(name, VariableKind::Declared(kind.clone()))));
    }
}

impl Routine {
    /// Every variable, wherever in the code it is in scope.
    pub fn variables(&self) -> Vec<Variable> {
        let mut found: Vec<Variable> = Vec::new();
        for parameter in self.function.iter().flat_map(|function| &function.parameters) {
            if let Some(name) = &parameter.name {
                let kind = VariableKind::Parameter { mode: parameter.mode, sql_type: parameter.sql_type };
                found.push(Variable { name: name.clone(), kind, range: TextRange::default() });
            }
        }
        if !matches!(self.code, Code::Plpgsql(_)) {
            return found;
        }
        let implicit = |name: &str| Variable {
            name: SmolStr::new(name),
            kind: VariableKind::Implicit,
            range: TextRange::default(),
        };
        found.extend(IMPLICIT.iter().copied().map(implicit));
        for step in self.steps() {
            match step.node {
                Node::Block(block) => block.declarations.iter().for_each(|one| declare(one, &mut found)),
                Node::Statement(Statement { kind: StatementKind::Loop(a_loop), .. }) => {
                    let implicit = match &a_loop.kind {
                        LoopKind::Integer { variable, .. } => std::slice::from_ref(variable),
                        LoopKind::Cursor { targets, .. } => targets,
                        _ => &[],
                    };
                    for variable in implicit {
                        if let [name] = variable.names.as_slice() {
                            found.push(Variable {
                                name: name.clone(),
                                kind: VariableKind::Loop,
                                range: variable.range,
                            });
                        }
                    }
                }
                Node::Statement(_) | Node::Sql(_) => {}
            }
        }
        found
    }

    /// Whether it is a parameter, or `parameter.field`, `function.parameter`, a variable, `record.field`.
    ///
    /// A column of the same name wins nothing: PL/pgSQL refuses what is ambiguous unless told otherwise.
    pub fn is_variable(&self, path: &[SmolStr]) -> bool {
        let Some(first) = path.first() else { return false };
        let names = self.variable_names.get_or_init(|| {
            let mut names: Vec<SmolStr> = self.variables().into_iter().map(|variable| variable.name).collect();
            names.sort_unstable();
            names
        });
        let is_name = |name: &SmolStr| names.binary_search(name).is_ok();
        let of_function = |function: &SmolStr| {
            path.len() > 1 && self.function.as_ref().is_some_and(|own| own.name == *function) && is_name(&path[1])
        };
        is_name(first) || of_function(first)
    }
}
