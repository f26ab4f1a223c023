//! Queries of the system catalogs that list relations or columns, answered from the catalog of the history.

use super::rows::{Row, output_name};
use super::value::Value;
use crate::catalog::{Relation, RelationKind};
use crate::execute::{Executor, Knowledge};
use pgvet_syntax::ast::{ExprKind, FromItem, Query, QueryBody, Select};
use smol_str::{SmolStr, format_smolstr};
use std::collections::HashSet;

/// The rows of such a query.
pub(super) struct Listed {
    pub(super) rows: Vec<Row>,
    /// Whether a server cannot have others: the history shows the whole schema.
    pub(super) is_whole: bool,
}

/// Upper bound on the catalog rows that the queries of one statement are compared with.
pub(super) const MAX_COMPARED: usize = 100_000;

/// A row of a system catalog, with the columns that the model knows.
type CatalogRow = Vec<(&'static str, SmolStr)>;

impl Executor<'_> {
    /// The rows of a query of one system catalog; `None` where the catalog of the history cannot decide its condition.
    pub(super) fn listed(&mut self, query: &Query) -> Option<Listed> {
        let QueryBody::Select(select) = &query.body else { return None };
        let is_plain = query.with.is_none()
            && query.limit.is_none()
            && query.offset.is_none()
            && select.group_by.is_empty()
            && select.having.is_none();
        let ([FromItem::Relation(from)], true) = (select.from.as_slice(), is_plain) else { return None };
        let schema = from.name.schema.as_ref().map(|schema| schema.text.as_str());
        let candidates = self.rows_of_catalog(schema, &from.name.name.text)?;
        self.compared += candidates.len();
        if self.compared > MAX_COMPARED {
            return None;
        }
        let alias = from.alias.as_ref().map_or(&from.name.name.text, |alias| &alias.name).clone();
        let outer = self.variables.clone();
        let rows = candidates.into_iter().map(|candidate| {
            self.variables.clone_from(&outer);
            for (column, value) in &candidate {
                let value = Some(Value::Text(value.to_string()));
                self.variables.set(SmolStr::new_static(column), value.clone());
                self.variables.set(format_smolstr!("{alias}.{column}"), value);
            }
            let is_wanted = select.filter.as_ref().map_or(Some(true), |filter| self.decide(filter))?;
            Some(is_wanted.then(|| self.output_row(select, &candidate)))
        });
        let rows: Option<Vec<Option<Row>>> = rows.collect();
        self.variables = outer;
        let mut rows: Vec<Row> = rows?.into_iter().flatten().collect();
        if select.distinct.is_some() {
            let mut seen = HashSet::new();
            rows.retain(|row| seen.insert(row.clone()));
        }
        Some(Listed { rows, is_whole: self.knowledge == Knowledge::Everything })
    }

    /// The output columns of the row that the variables hold.
    fn output_row(&self, select: &Select, row: &CatalogRow) -> Row {
        let mut output = Row::new();
        for target in &select.targets {
            if matches!(target.value.kind, ExprKind::Star(_)) {
                let text = |value: &SmolStr| Some(Value::Text(value.to_string()));
                output.extend(row.iter().map(|(column, value)| (SmolStr::new_static(column), text(value))));
            } else {
                output.push((output_name(target), self.value(&target.value)));
            }
        }
        output
    }

    /// The rows of a view of the system catalogs that shows relations of the history.
    fn rows_of_catalog(&self, schema: Option<&str>, name: &str) -> Option<Vec<CatalogRow>> {
        use RelationKind as K;
        let relations = || self.catalog.relations_in_order().into_iter().filter(|relation| !relation.is_temporary());
        let of = |kinds: &[K], schema: &'static str, name: &'static str| -> Vec<CatalogRow> {
            let shown = relations().filter(|relation| kinds.contains(&relation.kind));
            shown.map(|relation| vec![(schema, relation.schema.clone()), (name, relation.name.clone())]).collect()
        };
        Some(match (schema, name) {
            (None | Some("pg_catalog"), "pg_tables") => of(&[K::Table, K::PartitionedTable], "schemaname", "tablename"),
            (None | Some("pg_catalog"), "pg_views") => of(&[K::View], "schemaname", "viewname"),
            (None | Some("pg_catalog"), "pg_matviews") => of(&[K::MaterializedView], "schemaname", "matviewname"),
            (None | Some("pg_catalog"), "pg_sequences") => of(&[K::Sequence], "schemaname", "sequencename"),
            (Some("information_schema"), "sequences") => of(&[K::Sequence], "sequence_schema", "sequence_name"),
            (Some("information_schema"), "views") => of(&[K::View], "table_schema", "table_name"),
            (Some("information_schema"), "tables") => relations().filter_map(|relation| table_row(relation)).collect(),
            (Some("information_schema"), "columns") => {
                let shown = relations().filter(|relation| table_row(relation).is_some());
                let known: Vec<_> = shown.collect();
                // A table with columns that no statement shows may have any.
                if known.iter().any(|relation| !relation.known) {
                    return None;
                }
                known.into_iter().flat_map(|relation| column_rows(relation)).collect()
            }
            _ => return None,
        })
    }
}

/// A row of `information_schema.tables`.
fn table_row(relation: &Relation) -> Option<CatalogRow> {
    let table_type = match relation.kind {
        RelationKind::Table | RelationKind::PartitionedTable => "BASE TABLE",
        RelationKind::View => "VIEW",
        RelationKind::ForeignTable => "FOREIGN",
        _ => return None,
    };
    Some(vec![
        ("table_schema", relation.schema.clone()),
        ("table_name", relation.name.clone()),
        ("table_type", SmolStr::new_static(table_type)),
    ])
}

/// The rows of `information_schema.columns` for a relation.
fn column_rows(relation: &Relation) -> impl Iterator<Item = CatalogRow> + '_ {
    relation.columns.iter().map(|column| {
        vec![
            ("table_schema", relation.schema.clone()),
            ("table_name", relation.name.clone()),
            ("column_name", column.name.clone()),
            ("is_nullable", SmolStr::new_static(if column.not_null { "NO" } else { "YES" })),
        ]
    })
}
