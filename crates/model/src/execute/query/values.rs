//! Checks of the columns of a table in INSERT, UPDATE and MERGE: which get a value, and whether they may.

use crate::catalog::{Column, IdentityKind, Oid};
use crate::effect::DataChangeKind;
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{
    Assignment, ConflictTarget, Expr, ExprKind, Insert, InsertSource, Name, QueryBody, RelationRef,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// A change of rows, as it is asked of a table or view.
#[derive(Debug, Clone)]
pub(super) struct RowChange {
    pub(super) kind: DataChangeKind,
    /// The columns that it sets.
    pub(super) columns: Vec<SmolStr>,
    /// Those of them that get something other than DEFAULT.
    pub(super) given: Vec<SmolStr>,
    /// Those that may get another value than they have; `None` if every column may.
    pub(super) altered: Option<Vec<SmolStr>>,
    /// OVERRIDING: an identity column may be given a value.
    pub(super) overriding: bool,
    pub(super) only: bool,
    pub(super) range: TextRange,
}

impl RowChange {
    /// A change that sets no column.
    pub(super) fn new(kind: DataChangeKind, only: bool, range: TextRange) -> Self {
        Self { kind, columns: Vec::new(), given: Vec::new(), altered: None, overriding: false, only, range }
    }

    pub(super) fn update(assignments: &[Assignment], table: &RelationRef) -> Self {
        let name = |assignment: &Assignment| assignment.column.text.clone();
        let given = assignments.iter().filter(|assignment| !is_default(&assignment.value));
        let altered = assignments.iter().filter(|assignment| !keeps(assignment, table.called()));
        Self {
            columns: assignments.iter().map(name).collect(),
            given: given.map(name).collect(),
            altered: Some(altered.map(name).collect()),
            ..Self::new(DataChangeKind::Update, table.only, table.name.range())
        }
    }

    /// ON CONFLICT DO UPDATE: a column that finds the conflicting row has the same value there as in the new row.
    pub(super) fn on_conflict(assignments: &[Assignment], arbiters: &[SmolStr], table: &RelationRef) -> Self {
        let mut change = Self::update(assignments, table);
        let repeats = |column: &SmolStr| {
            let mut same = assignments.iter().filter(|assignment| assignment.column.text == *column);
            arbiters.contains(column)
                && same.all(|assignment| is_column(&assignment.value, &["excluded", column.as_str()]))
        };
        change.altered.iter_mut().for_each(|altered| altered.retain(|column| !repeats(column)));
        change
    }

    /// The INSERT of a MERGE: columns, where it names them, and a value for each.
    pub(super) fn insert_of_merge(columns: Vec<SmolStr>, values: &[Expr], range: TextRange) -> Self {
        let given = columns.iter().zip(values).filter(|(_, value)| !is_default(value));
        let given = given.map(|(column, _)| column.clone()).collect();
        Self { columns, given, ..Self::new(DataChangeKind::Insert, false, range) }
    }
}

/// `SET key = key` and `SET key = t.key`. A column of another table is qualified by that, or refused as ambiguous.
fn keeps(assignment: &Assignment, table: &str) -> bool {
    let column = assignment.column.text.as_str();
    is_column(&assignment.value, &[column]) || is_column(&assignment.value, &[table, column])
}

fn is_column(value: &Expr, path: &[&str]) -> bool {
    matches!(&value.kind, ExprKind::Column(names) if names.iter().map(SmolStr::as_str).eq(path.iter().copied()))
}

fn is_default(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Default)
}

impl Executor<'_> {
    pub(super) fn insertion(&mut self, table: Oid, insert: &Insert) -> RowChange {
        let none = RowChange {
            overriding: insert.overriding.is_some(),
            ..RowChange::new(DataChangeKind::Insert, false, insert.table.name.range())
        };
        let InsertSource::Query(query) = &insert.source else { return none };
        let width = self.describe_query(query).map_or(insert.columns.len(), |columns| columns.len());
        let mut columns = self.inserted_columns(table, &insert.columns);
        columns.truncate(width);
        let defaults = |at: usize| {
            let row_says = |row: &Vec<Expr>| row.get(at).is_some_and(is_default);
            matches!(&query.body, QueryBody::Values(rows) if rows.iter().all(row_says))
        };
        let given = columns.iter().enumerate().filter(|(at, _)| !defaults(*at));
        let given = given.map(|(_, column)| column.clone()).collect();
        RowChange { columns, given, ..none }
    }

    /// The columns by which ON CONFLICT finds the row that is updated.
    pub(super) fn arbiter_columns(&self, table: Oid, target: Option<&ConflictTarget>) -> Vec<SmolStr> {
        match target {
            None => Vec::new(),
            Some(ConflictTarget::Constraint(name)) => {
                let relation = self.catalog.relation(table);
                relation.constraint(&name.text).map_or_else(Vec::new, |constraint| constraint.columns().to_vec())
            }
            Some(ConflictTarget::Inference { elements, .. }) => {
                let column = |element: &Expr| match &element.kind {
                    ExprKind::Column(path) => path.last().cloned(),
                    _ => None,
                };
                elements.iter().filter_map(column).collect()
            }
        }
    }

    /// Whether one of the columns, or of all columns, is in a unique index, so that a foreign key could refer to it.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/cache/relcache.c`, `RelationGetIndexAttrBitmap`, key attributes;
    /// `src/backend/access/heap/heapam.c`, `heap_update`.
    pub(super) fn is_key(&self, table: Oid, columns: Option<&[SmolStr]>) -> bool {
        let is_one = |column: &SmolStr| columns.is_none_or(|columns| columns.contains(column));
        let is_of_index = |oid: &Oid| {
            let index = self.catalog.get_relation(*oid).and_then(|relation| relation.index());
            let keys = index.filter(|index| index.predicate.is_none()).and_then(|index| index.plain_columns());
            keys.is_some_and(|keys| keys.iter().any(is_one))
        };
        self.catalog.relation(table).unique_indexes.iter().any(is_of_index)
    }

    /// The columns that the values of an INSERT go to, in their order: all, where none is named.
    pub(super) fn inserted_columns(&self, table: Oid, named: &[Name]) -> Vec<SmolStr> {
        if named.is_empty() {
            return self.catalog.relation(table).columns.iter().map(|column| column.name.clone()).collect();
        }
        named.iter().map(|column| column.text.clone()).collect()
    }

    /// Refuses values other than DEFAULT for generated columns.
    ///
    /// Source: PostgreSQL 14 to 18, `src/backend/rewrite/rewriteHandler.c`, `rewriteTargetListIU`.
    pub(super) fn check_computed_columns(&self, table: Oid, change: &RowChange) -> Run {
        let is_computed = |column: &&Column| {
            let always = column.identity == Some(IdentityKind::Always) && !change.overriding;
            (column.generated.is_some() || always) && change.given.contains(&column.name)
        };
        let Some(column) = self.catalog.relation(table).columns.iter().find(is_computed) else { return Ok(()) };
        let reason = if change.kind == DataChangeKind::Insert {
            format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name)
        } else {
            format!("column \"{}\" can only be updated to DEFAULT", column.name)
        };
        fail("428C9", reason, change.range)
    }

    /// The change as the view passes it on to the table that it shows. It has put its own defaults for DEFAULT.
    pub(super) fn change_behind(&self, view: Oid, change: &RowChange) -> RowChange {
        let columns = self.columns_behind(view, &change.columns, change.kind);
        let mut given = change.given.clone();
        if change.kind == DataChangeKind::Insert {
            let defaults = self.catalog.relation(view).columns.iter().filter(|column| column.default.is_some());
            given.extend(defaults.map(|column| column.name.clone()));
        } else {
            given.clone_from(&change.columns);
        }
        let given = self.shown_columns(view).into_iter().filter(|(name, _)| given.contains(name));
        let given = given.filter_map(|(_, behind)| behind).collect();
        let altered = change.altered.as_ref().map(|altered| self.columns_behind(view, altered, change.kind));
        RowChange { columns, given, altered, only: false, ..change.clone() }
    }
}
