//! Meanings of the names in a query.

use crate::catalog::{Oid, SqlType};
use crate::expression;
use pgvet_syntax::ast::{Alias, JoinKind};
use smol_str::SmolStr;
use std::cell::OnceCell;

/// A column as a query shows it.
pub(crate) type QueryColumn = (SmolStr, SqlType);

/// The FROM clause of a query, and those around it.
#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    items: Vec<ScopeItem>,
    /// The columns of `*`, with those of USING merged; `None` if a part is not known.
    star: Option<Vec<QueryColumn>>,
    outer: Option<&'a Scope<'a>>,
    for_expressions: OnceCell<expression::Scope>,
}

/// One name in FROM.
#[derive(Debug)]
pub(crate) struct ScopeItem {
    pub(crate) alias: SmolStr,
    pub(crate) relation: Option<Oid>,
    /// `None` where they are not known.
    pub(crate) columns: Option<Vec<QueryColumn>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(outer: Option<&'a Scope<'a>>) -> Self {
        Self { items: Vec::new(), star: Some(Vec::new()), outer, for_expressions: OnceCell::new() }
    }

    pub(crate) fn add(&mut self, item: ScopeItem) {
        self.items.push(item);
        self.for_expressions.take();
    }

    /// Adds the columns of an item of FROM to `*`.
    pub(crate) fn extend_star(&mut self, columns: Option<Vec<QueryColumn>>) {
        self.star = match (self.star.take(), columns) {
            (Some(mut star), Some(columns)) if star.len() + columns.len() <= MAX_COLUMNS => {
                star.extend(columns);
                Some(star)
            }
            _ => None,
        };
    }

    pub(crate) fn star(&self) -> Option<&[QueryColumn]> {
        self.star.as_deref()
    }

    /// The columns of `alias.*`.
    pub(crate) fn star_of(&self, alias: &str) -> Option<&[QueryColumn]> {
        match self.items.iter().find(|item| item.alias == alias) {
            Some(item) => item.columns.as_deref(),
            None => self.outer.and_then(|outer| outer.star_of(alias)),
        }
    }

    /// The type of a column by its path.
    pub(crate) fn column_type(&self, path: &[SmolStr]) -> Option<SqlType> {
        let typed = |columns: &[QueryColumn], column: &SmolStr| {
            columns.iter().find(|(name, _)| name == column).map(|(_, sql_type)| *sql_type)
        };
        let here = match path {
            [column] => {
                let merged = self.star.as_deref().and_then(|star| typed(star, column));
                let named = || self.items.iter().find_map(|item| typed(item.columns.as_deref()?, column));
                merged.or_else(named)
            }
            [.., alias, column] => self.star_of(alias).and_then(|columns| typed(columns, column)),
            [] => None,
        };
        here.or_else(|| self.outer.and_then(|outer| outer.column_type(path)))
    }

    /// The relation of that name in FROM.
    pub(crate) fn relation_named(&self, alias: &str) -> Option<Oid> {
        let own = self.items.iter().find(|item| item.alias == alias);
        own.map_or_else(|| self.outer?.relation_named(alias), |item| item.relation)
    }

    /// The same for the typing of expressions.
    pub(crate) fn for_expressions(&self) -> &expression::Scope {
        self.for_expressions.get_or_init(|| {
            let mut relations = Vec::new();
            let mut scope = Some(self);
            while let Some(current) = scope {
                relations.extend(current.items.iter().map(ScopeItem::for_expressions));
                scope = current.outer;
            }
            expression::Scope { relations, ..expression::Scope::default() }
        })
    }
}

impl ScopeItem {
    fn for_expressions(&self) -> expression::ScopeRelation {
        let column =
            |(name, sql_type): &QueryColumn| expression::ScopeColumn { name: name.clone(), sql_type: *sql_type };
        expression::ScopeRelation {
            name: Some(self.alias.clone()),
            relation: self.relation.unwrap_or_default(),
            columns: self.columns.iter().flatten().map(column).collect(),
        }
    }
}

/// The columns under the names that an alias gives them.
pub(crate) fn renamed(columns: Option<Vec<QueryColumn>>, alias: Option<&Alias>) -> Option<Vec<QueryColumn>> {
    let mut columns = columns?;
    for (column, name) in columns.iter_mut().zip(alias.iter().flat_map(|alias| &alias.columns)) {
        column.0 = name.clone();
    }
    Some(columns)
}

/// Number of columns up to which those of a query are known. PostgreSQL refuses more, but says so only when a query selects
/// them, and each query may double those of the one that it reads.
///
/// Source: PostgreSQL 18, `src/include/access/htup_details.h`, `MaxTupleAttributeNumber`.
pub(crate) const MAX_COLUMNS: usize = 1664;

/// The columns of a join: those of USING once and first, then the rest of both sides.
pub(crate) fn joined(
    kind: JoinKind,
    left: Option<Vec<QueryColumn>>,
    right: Option<Vec<QueryColumn>>,
    using: &[SmolStr],
) -> Option<Vec<QueryColumn>> {
    let (left, right) = (left?, right?);
    if left.len() + right.len() > MAX_COLUMNS {
        return None;
    }
    let has = |columns: &[QueryColumn], name: &SmolStr| columns.iter().any(|(column, _)| column == name);
    let merged: Vec<SmolStr> = if kind == JoinKind::Natural {
        left.iter().map(|(name, _)| name).filter(|name| has(&right, name)).cloned().collect()
    } else {
        using.to_vec()
    };
    let first = merged.iter().filter_map(|name| left.iter().find(|(column, _)| column == name).cloned());
    let rest = left.iter().chain(&right).filter(|(name, _)| !merged.contains(name)).cloned();
    Some(first.chain(rest).collect())
}
