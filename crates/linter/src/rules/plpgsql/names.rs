//! The relations of a statement by the names that qualify its columns.

use pgvet_syntax::ast::{
    Alias, Ast, Delete, FromItem, Insert, Merge, ObjectName, Part, Query, QueryBody, RelationRef, Select, Update,
};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// The names that a statement gives its relations, of all levels.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Names of WITH.
    pub(super) ctes: FxHashSet<&'a SmolStr>,
    /// Every named relation, except those of WITH.
    pub(super) relations: Vec<&'a ObjectName>,
    /// The relation behind a name; `None` if it is ambiguous, or is not a relation.
    pub(super) aliases: BTreeMap<&'a SmolStr, Option<&'a ObjectName>>,
    /// Whether there are subqueries, joins, or queries in FROM.
    pub(super) is_nested: bool,
    /// Names of output columns.
    pub(super) outputs: FxHashSet<&'a SmolStr>,
}

impl<'a> Names<'a> {
    pub(super) fn of(ast: &'a Ast) -> Self {
        let mut found = Self::default();
        let mut queries = 0;
        ast.visit(&mut |part| match part {
            Part::Query(query) => {
                queries += 1;
                found.query(query);
            }
            Part::Insert(Insert { with, table, .. })
            | Part::Update(Update { with, table, .. })
            | Part::Delete(Delete { with, table, .. })
            | Part::Merge(Merge { with, table, .. }) => {
                found.is_nested |= with.is_some();
                found.ctes.extend(with.iter().flat_map(|with| &with.ctes).map(|cte| &cte.name.text));
                found.relation(table);
                match part {
                    Part::Update(update) => update.from.iter().for_each(|item| found.item(item)),
                    Part::Delete(delete) => delete.using.iter().for_each(|item| found.item(item)),
                    Part::Merge(merge) => found.item(&merge.source),
                    _ => {}
                }
            }
            Part::Expr(_) | Part::Read(_) => {}
        });
        let own = usize::from(matches!(ast, Ast::Select(_)) || matches!(ast, Ast::Insert(_)));
        found.is_nested |= queries > own || found.aliases.len() > 1;
        let ctes = std::mem::take(&mut found.ctes);
        found.relations.retain(|name| name.schema.is_some() || !ctes.contains(&name.name.text));
        for relation in found.aliases.values_mut() {
            if relation.is_some_and(|name| name.schema.is_none() && ctes.contains(&name.name.text)) {
                *relation = None;
            }
        }
        found.ctes = ctes;
        found
    }

    fn query(&mut self, query: &'a Query) {
        self.is_nested |= query.with.is_some();
        self.ctes.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| &cte.name.text));
        if let QueryBody::Select(select) = &query.body {
            self.select(select);
        }
    }

    fn select(&mut self, select: &'a Select) {
        self.outputs.extend(select.targets.iter().filter_map(|target| target.alias.as_ref()));
        select.from.iter().for_each(|item| self.item(item));
    }

    fn item(&mut self, item: &'a FromItem) {
        match item {
            FromItem::Relation(relation) => self.relation(relation),
            FromItem::Subquery { alias, .. } => {
                self.is_nested = true;
                self.other(alias.as_ref());
            }
            FromItem::Function { alias, .. } => {
                self.is_nested = true;
                self.other(alias.as_ref());
            }
            FromItem::Join { left, right, .. } => {
                self.is_nested = true;
                self.item(left);
                self.item(right);
            }
        }
    }

    fn relation(&mut self, relation: &'a RelationRef) {
        self.relations.push(&relation.name);
        let (name, is_plain) = match &relation.alias {
            Some(alias) => (&alias.name, alias.columns.is_empty()),
            None => (&relation.name.name.text, true),
        };
        let known = is_plain.then_some(&relation.name);
        self.aliases.entry(name).and_modify(|other| *other = None).or_insert(known);
    }

    fn other(&mut self, alias: Option<&'a Alias>) {
        if let Some(alias) = alias {
            self.aliases.insert(&alias.name, None);
        }
    }
}
