//! The names that an expression may use.

use super::Analyzer;
use crate::catalog::{Oid, SqlType};
use smol_str::SmolStr;

/// Relations whose columns are visible, innermost query first, and parameters.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub relations: Vec<ScopeRelation>,
    /// The types of `$1` and so on.
    pub parameters: Vec<SqlType>,
    /// Parameters and variables that are used by name.
    pub variables: Vec<ScopeColumn>,
    /// Names of WITH, which are relations of the query and not of the schema; cloning them is cheap.
    pub(crate) ctes: imbl::HashSet<SmolStr>,
}

/// A relation of FROM, or the table that DDL is about.
#[derive(Debug, Clone, Default)]
pub struct ScopeRelation {
    /// The alias or name by which its columns may be qualified.
    pub name: Option<SmolStr>,
    pub relation: Oid,
    pub columns: Vec<ScopeColumn>,
}

/// A column and its type.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopeColumn {
    pub name: SmolStr,
    pub sql_type: SqlType,
}

impl Scope {
    /// The scope of a table's own expressions: defaults, checks, index keys.
    pub fn of_columns(name: &str, columns: impl IntoIterator<Item = (SmolStr, SqlType)>) -> Self {
        let columns = columns.into_iter().map(|(name, sql_type)| ScopeColumn { name, sql_type }).collect();
        let relation = ScopeRelation { name: Some(name.into()), relation: Oid::INVALID, columns };
        Self { relations: vec![relation], ..Self::default() }
    }

    /// The scope of a subquery: its own relations before those of the query around it.
    pub(super) fn inner(&self, mut relations: Vec<ScopeRelation>) -> Self {
        relations.extend(self.relations.iter().cloned());
        Self { relations, ..self.clone_names() }
    }

    /// The same without relations.
    fn clone_names(&self) -> Self {
        let Self { parameters, variables, ctes, relations: _ } = self;
        let (parameters, variables, ctes) = (parameters.clone(), variables.clone(), ctes.clone());
        Self { relations: Vec::new(), parameters, variables, ctes }
    }

    /// The type of `column`, `table.column` or `schema.table.column`; `None` also where it may be a column of a relation
    /// whose columns are not known, before one that has it.
    pub(super) fn column(&self, path: &[SmolStr]) -> Option<SqlType> {
        let (column, qualifier) = path.split_last()?;
        let find = |columns: &[ScopeColumn]| {
            columns.iter().find(|candidate| candidate.name == *column).map(|found| found.sql_type)
        };
        let qualified =
            |relation: &&ScopeRelation| qualifier.last().is_none_or(|name| relation.name.as_ref() == Some(name));
        for relation in self.relations.iter().filter(qualified) {
            let found = find(&relation.columns);
            if found.is_some() || relation.columns.is_empty() {
                return found;
            }
        }
        find(&self.variables)
    }

    /// The relation of a whole-row reference.
    pub(super) fn relation(&self, name: &str) -> Option<&ScopeRelation> {
        self.relations.iter().find(|relation| relation.name.as_deref() == Some(name))
    }
}

impl Analyzer<'_> {
    pub(super) fn relation_columns(&self, relation: Oid) -> Vec<ScopeColumn> {
        let columns = self.schema.columns(relation).unwrap_or_default();
        columns.into_iter().map(|(name, sql_type)| ScopeColumn { name, sql_type }).collect()
    }
}
