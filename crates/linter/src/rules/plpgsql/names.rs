//! The relations that a statement names.

use pgvet_syntax::ast::{
    Ast, Delete, FromItem, Insert, Merge, ObjectName, Part, Query, QueryBody, RelationRef, Update,
};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// The relations of a statement, of all levels.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Names of WITH.
    pub(super) ctes: FxHashSet<&'a SmolStr>,
    /// Every named relation, except those of WITH.
    pub(super) relations: Vec<&'a ObjectName>,
}

impl<'a> Names<'a> {
    pub(super) fn of(ast: &'a Ast) -> Self {
        let mut found = Self::default();
        ast.visit(&mut |part| match part {
            Part::Query(query) => found.query(query),
            Part::Insert(Insert { with, table, .. })
            | Part::Update(Update { with, table, .. })
            | Part::Delete(Delete { with, table, .. })
            | Part::Merge(Merge { with, table, .. }) => {
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
        let ctes = &found.ctes;
        found.relations.retain(|name| name.schema.is_some() || !ctes.contains(&name.name.text));
        found
    }

    fn query(&mut self, query: &'a Query) {
        self.ctes.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| &cte.name.text));
        if let QueryBody::Select(select) = &query.body {
            select.from.iter().for_each(|item| self.item(item));
        }
    }

    fn item(&mut self, item: &'a FromItem) {
        match item {
            FromItem::Relation(relation) => self.relation(relation),
            FromItem::Join { left, right, .. } => {
                self.item(left);
                self.item(right);
            }
            FromItem::Subquery { .. } | FromItem::Function { .. } => {}
        }
    }

    fn relation(&mut self, relation: &'a RelationRef) {
        self.relations.push(&relation.name);
    }
}
