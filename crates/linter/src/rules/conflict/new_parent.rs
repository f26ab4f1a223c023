//! Keys of rows that were just inserted: no other row can refer to them yet.

use super::inserted::{Inserted, Values};
use pgvet_model::catalog::{Catalog, ForeignKeyConstraint, Relation};
use pgvet_syntax::ast::{
    Cte, Expr, ExprKind, FromItem, Insert, InsertSource, Literal, ObjectName, QueryBody, QueryStatement, Select,
    TriggerTiming,
};
use smol_str::SmolStr;

/// A column of a table to which a foreign key refers, so that it is unique.
struct Parent<'a> {
    table: &'a Relation,
    column: &'a SmolStr,
}

impl<'a> Inserted<'a> {
    /// Whether a column refers, in every row, to a row that the same statement or an earlier one of the migration
    /// inserted. Then no row that is older than that one has the value: its foreign key would have failed.
    pub(crate) fn refers_to_new_rows(&self, catalog: &'a Catalog, column: &SmolStr) -> bool {
        let Values::Rows(rows) = self.values_of(column) else { return false };
        let valid = self.table.constraints.iter().filter(|constraint| constraint.holds());
        let parents = valid.filter_map(|constraint| parent(catalog, constraint.foreign_key()?, column));
        parents.into_iter().any(|parent| rows.iter().all(|value| self.is_new(&parent, value)))
    }

    fn is_new(&self, parent: &Parent<'a>, value: &Expr) -> bool {
        match &without_casts(value).kind {
            ExprKind::Column(path) => self.is_returned(parent, path),
            ExprKind::Literal(literal) if *literal != Literal::Null => {
                (self.earlier)(&parent.table.name).into_iter().any(|insert| parent.gets(insert, value))
            }
            _ => false,
        }
    }

    /// Whether an INSERT of the WITH clause returns it.
    fn is_returned(&self, parent: &Parent<'_>, path: &[SmolStr]) -> bool {
        let InsertSource::Query(query) = &self.insert.source else { return false };
        let (QueryBody::Select(select), Some(with)) = (&query.body, &self.insert.with) else { return false };
        let has_join = || select.from.iter().any(|item| matches!(item, FromItem::Join { .. }));
        let (qualifier, name) = match path {
            [qualifier, name] => (Some(qualifier), name),
            // USING may give the value of the other side.
            [name] if !has_join() => (None, name),
            _ => return false,
        };
        with.ctes.iter().any(|cte| parent.is_returned_by(cte, name) && reads(select, &cte.name.text, qualifier))
    }
}

/// What a foreign key of this column alone refers to.
fn parent<'a>(catalog: &'a Catalog, key: &'a ForeignKeyConstraint, column: &SmolStr) -> Option<Parent<'a>> {
    let (true, [referenced]) = (key.columns.as_slice() == [column.clone()], key.referenced_columns.as_slice()) else {
        return None;
    };
    let table = catalog.get_relation(key.referenced)?;
    // A trigger may insert rows that refer to the new one.
    let fires = table.triggers.iter().any(|trigger| trigger.events.insert && trigger.timing == TriggerTiming::After);
    (!fires).then_some(Parent { table, column: referenced })
}

impl Parent<'_> {
    /// Whether an INSERT only adds rows that did not exist before.
    fn is_table_of(&self, insert: &Insert) -> bool {
        let ObjectName { schema, name, .. } = &insert.table.name;
        let is_same =
            name.text == self.table.name && schema.as_ref().is_none_or(|schema| schema.text == self.table.schema);
        is_same && insert.on_conflict.as_ref().is_none_or(|conflict| conflict.update.is_none())
    }

    /// Whether a column of a WITH query is the key of the rows that it inserts.
    fn is_returned_by(&self, cte: &Cte, name: &SmolStr) -> bool {
        let QueryStatement::Insert(insert) = &cte.statement else { return false };
        let mut returned = insert.returning.iter();
        self.is_table_of(insert)
            && cte.columns.is_empty()
            && returned.any(|target| match &target.value.kind {
                ExprKind::Star(_) => name == self.column,
                ExprKind::Column(path) => {
                    path.last() == Some(self.column) && target.alias.as_ref().unwrap_or(self.column) == name
                }
                _ => false,
            })
    }

    /// Whether a statement of the migration certainly inserts a row with this key.
    fn gets(&self, insert: &Insert, key: &Expr) -> bool {
        let row = Inserted { insert, table: self.table, variable: &|_| None, earlier: &|_| Vec::new() };
        let is_key = |value: &&Expr| without_casts(value).is_same(without_casts(key));
        let is_certain =
            matches!(&insert.source, InsertSource::Query(query) if matches!(query.body, QueryBody::Values(_)));
        is_certain
            && insert.on_conflict.is_none()
            && self.is_table_of(insert)
            && matches!(row.values_of(self.column), Values::Rows(values) if values.iter().any(is_key))
    }
}

/// Whether a query reads a WITH query, under this name if one is given.
fn reads(select: &Select, cte: &SmolStr, qualifier: Option<&SmolStr>) -> bool {
    select.relations().into_iter().any(|relation| {
        relation.name.schema.is_none()
            && relation.name.name.text == *cte
            && relation.alias.as_ref().is_none_or(|alias| alias.columns.is_empty())
            && qualifier.is_none_or(|qualifier| relation.called() == qualifier)
    })
}

pub(crate) fn without_casts(expression: &Expr) -> &Expr {
    match &expression.kind {
        ExprKind::Cast { operand, .. } => without_casts(operand),
        _ => expression,
    }
}
