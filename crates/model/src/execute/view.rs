//! CREATE VIEW and REFRESH MATERIALIZED VIEW.

use super::query::Depth;
use super::scope::QueryColumn;
use super::{Executor, Run, fail};
use crate::catalog::{Column, Oid, Relation, RelationDetail, RelationKind, SqlType, TypeKind, ViewDefinition};
use crate::effect::{IndexBuildCause, LockCause, Rewrite, RewriteCause, ScanCause};
use pgvet_syntax::ast::{
    CreateView, DefElem, DefValue, Literal, LockMode, Persistence, Query, QueryBody, QueryStatement,
    RefreshMaterializedView,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/view.c`, `DefineView`.
    pub(super) fn create_view(&mut self, create: &CreateView) -> Run {
        check_view_query(create)?;
        self.read_query(&create.query, Depth::Analyze)?;
        self.check_query_columns(&create.query, create.name.range())?;
        let definition = self.view_definition(&create.query, &create.text, false);
        let checked = create.options.iter().any(|option| option.name.eq_ignore_ascii_case("check_option"));
        if let Some(why) = self.not_updatable(&create.query).filter(|_| checked) {
            let reason = format!("WITH CHECK OPTION needs a view that passes changes on, but this one {why}");
            return fail("0A000", reason, create.name.range());
        }
        for option in &create.options {
            let invoker = option.name.eq_ignore_ascii_case("security_invoker") && self.target.at_least(15);
            let known = ["security_barrier", "check_option"].iter().any(|name| option.name.eq_ignore_ascii_case(name));
            if !invoker && !known {
                let reason = format!("unrecognized parameter \"{}\"", option.name);
                return fail("22023", reason, create.name.range());
            }
        }
        let described = self.describe_query(&create.query);
        if described.as_ref().is_some_and(|columns| columns.len() < create.columns.len()) {
            let reason = "CREATE VIEW specifies more column names than columns";
            return fail("42601", reason, create.name.range());
        }
        let columns = described.map(|mut columns| {
            for (column, name) in columns.iter_mut().zip(&create.columns) {
                column.0 = name.text.clone();
            }
            columns
        });
        if let Some(columns) = &columns {
            check_duplicate_columns(columns, create.name.range())?;
        }
        let temporary = create.persistence == Persistence::Temporary
            || definition.references.iter().any(|(oid, _)| self.catalog.relation(*oid).is_temporary());
        let schema = self.schema_to_fill(&create.name, temporary)?;
        let name = create.name.name.text.clone();
        let options: Vec<_> = create.options.iter().map(option_text).collect();
        match self.catalog.relation_named(&schema, &name) {
            Some(view) if create.or_replace => self.replace_view(view, create, columns, definition, options),
            Some(_) => self.check_name_is_free(&schema, &create.name),
            None => {
                self.check_no_type(&schema, &create.name)?;
                let oid = self.catalog.new_oid();
                let mut relation = Relation::new(oid, schema, name, RelationKind::View, self.birth(true));
                if temporary {
                    relation.persistence = Persistence::Temporary;
                }
                relation.options = options;
                relation.placed_by_path = self.is_placed_by_path(&create.name);
                self.add_view(relation, columns, definition);
                Ok(())
            }
        }
    }

    /// A view has no parameters: what it names are columns.
    pub(super) fn check_query_columns(&self, query: &Query, range: TextRange) -> Run {
        if let Some(column) = self.missing_column(query) {
            return fail("42703", format!("column \"{column}\" does not exist"), range);
        }
        self.check_query_meaning(query, range)
    }

    fn replace_view(
        &mut self,
        view: Oid,
        create: &CreateView,
        columns: Option<Vec<QueryColumn>>,
        definition: ViewDefinition,
        options: Vec<(SmolStr, SmolStr)>,
    ) -> Run {
        self.lock(view, LockMode::AccessExclusive, LockCause::Target, create.name.range());
        let relation = self.catalog.relation(view);
        if relation.kind != RelationKind::View && relation.known {
            return fail("42809", format!("\"{}\" is not a view", relation.name), create.name.range());
        }
        if let Some(columns) = columns.as_ref().filter(|_| relation.known) {
            check_view_columns(&relation.columns, columns, create.name.range())?;
        }
        self.forget_view_references(view);
        let relation = self.catalog.view_mut(view);
        relation.known = columns.is_some();
        relation.columns = columns.into_iter().flatten().map(view_column).collect();
        // REPLACE resets the options, so that those which are not repeated are lost.
        relation.options = options;
        self.set_view_definition(view, definition);
        Ok(())
    }

    /// Adds a view or materialized view with its row type to the catalog. Columns are `None` where not known.
    pub(crate) fn add_view(
        &mut self,
        mut relation: Relation,
        columns: Option<Vec<QueryColumn>>,
        definition: ViewDefinition,
    ) -> Oid {
        let (oid, schema, name) = (relation.oid, relation.schema.clone(), relation.name.clone());
        relation.known = columns.is_some();
        relation.columns = columns.into_iter().flatten().map(view_column).collect();
        self.catalog.add_relation(relation);
        self.catalog.add_type(&schema, &name, TypeKind::Composite { relation: oid }, self.transaction);
        self.set_view_definition(oid, definition);
        self.created(oid);
        oid
    }

    /// Returns the parts of its query that a view keeps.
    pub(crate) fn view_definition(&mut self, query: &Arc<Query>, text: &SmolStr, populated: bool) -> ViewDefinition {
        ViewDefinition {
            query: Arc::clone(query),
            text: text.clone(),
            search_path: self.session.settings.search_path(),
            references: self.query_references(query),
            objects: self.query_objects(query),
            populated,
        }
    }

    fn set_view_definition(&mut self, view: Oid, definition: ViewDefinition) {
        for (oid, _) in &definition.references {
            if self.catalog.get_relation(*oid).is_some() {
                let viewed_by = &mut self.catalog.relation_mut(*oid).viewed_by;
                if !viewed_by.contains(&view) {
                    viewed_by.push(view);
                }
            }
        }
        self.catalog.relation_mut(view).detail = RelationDetail::View(Arc::new(definition));
    }

    fn forget_view_references(&mut self, view: Oid) {
        let Some(definition) = self.catalog.relation(view).view().cloned() else { return };
        for (oid, _) in &definition.references {
            if self.catalog.get_relation(*oid).is_some() {
                self.catalog.relation_mut(*oid).viewed_by.retain(|other| *other != view);
            }
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/matview.c`, `RefreshMatViewByOid`.
    pub(super) fn refresh_materialized_view(&mut self, refresh: &RefreshMaterializedView) -> Run {
        let mode = if refresh.concurrently { LockMode::Exclusive } else { LockMode::AccessExclusive };
        let range = refresh.name.range();
        let view = self.open(&refresh.name, RelationKind::MaterializedView, mode)?;
        let relation = self.catalog.relation(view);
        if relation.kind != RelationKind::MaterializedView && relation.known {
            let table = relation.kind.is_table();
            let reason = format!("\"{}\" is not a materialized view", relation.name);
            return fail(if table { "0A000" } else { "42809" }, reason, range);
        }
        if refresh.concurrently {
            self.check_refresh_concurrently(view, refresh)?;
        }
        if refresh.with_data {
            self.run_stored_query(view, range)?;
        }
        if refresh.concurrently {
            self.lock_indexes(view, LockMode::RowExclusive, range);
            self.scan(view, ScanCause::Query, refresh.keyword);
        } else {
            self.rewrite_materialized_view(view, refresh);
        }
        self.set_populated(view, refresh.with_data);
        Ok(())
    }

    fn check_refresh_concurrently(&mut self, view: Oid, refresh: &RefreshMaterializedView) -> Run {
        let range = refresh.keyword;
        let relation = self.catalog.relation(view);
        if relation.view().is_some_and(|definition| !definition.populated) {
            let reason = "CONCURRENTLY cannot be used when the materialized view is not populated";
            return fail("0A000", reason, range);
        }
        if !refresh.with_data {
            return fail("42601", "CONCURRENTLY and WITH NO DATA options cannot be used together", range);
        }
        let usable = relation.indexes.iter().any(|index| {
            let index = self.catalog.get_relation(*index).and_then(|relation| relation.index().cloned());
            index.is_some_and(|index| {
                index.unique && index.valid && index.predicate.is_none() && !index.has_expressions()
            })
        });
        if relation.view().is_some() && !usable {
            let name = format!("{}.{}", relation.schema, relation.name);
            return fail(
                "55000",
                format!(
                    "cannot refresh materialized view \"{name}\" concurrently: \
                     it has no unique index on plain columns without WHERE"
                ),
                range,
            );
        }
        Ok(())
    }

    /// Runs the query of a view that the catalog has.
    fn run_stored_query(&mut self, view: Oid, range: TextRange) -> Run {
        let Some(definition) = self.catalog.relation(view).view().cloned() else {
            self.unknown("the query of the materialized view is not known");
            return Ok(());
        };
        for (oid, _) in &definition.references {
            if self.catalog.get_relation(*oid).is_some() {
                self.lock(*oid, LockMode::AccessShare, LockCause::Query, range);
                self.follow_read(*oid, LockMode::AccessShare, false, Depth::Run, range)?;
            }
        }
        for object in &definition.objects {
            self.run_function(*object, range);
        }
        Ok(())
    }

    fn rewrite_materialized_view(&mut self, view: Oid, refresh: &RefreshMaterializedView) {
        let relation = self.relation_name(view);
        let range = refresh.keyword;
        self.effects.rewrites.push(Rewrite { relation, cause: RewriteCause::Refresh, range });
        let indexes = self.catalog.relation(view).indexes.clone();
        if !indexes.is_empty() {
            self.scan(view, ScanCause::IndexBuild, range);
        }
        for index in indexes {
            self.lock(index, LockMode::AccessExclusive, LockCause::Part, range);
            self.build_index(index, IndexBuildCause::Rewrite, false, range);
        }
    }

    fn set_populated(&mut self, view: Oid, populated: bool) {
        if let RelationDetail::View(definition) = &mut self.catalog.relation_mut(view).detail {
            Arc::make_mut(definition).populated = populated;
        }
    }
}

/// A view is a query that changes nothing.
fn check_view_query(create: &CreateView) -> Run {
    let range = create.name.range();
    let ctes = create.query.with.iter().flat_map(|with| &with.ctes);
    if ctes.into_iter().any(|cte| !matches!(cte.statement, QueryStatement::Select(_))) {
        return fail("0A000", "views must not contain data-modifying statements in WITH", range);
    }
    if let QueryBody::Select(select) = &create.query.body
        && select.into.is_some()
    {
        return fail("0A000", "views must not contain SELECT INTO", range);
    }
    Ok(())
}

/// OR REPLACE may only add columns at the end.
///
/// Source: PostgreSQL 18, `src/backend/commands/view.c`, `checkViewColumns`.
fn check_view_columns(old: &[Column], new: &[QueryColumn], range: TextRange) -> Run {
    if new.len() < old.len() {
        return fail("42P16", "cannot drop columns from view", range);
    }
    for (old, (name, sql_type)) in old.iter().zip(new) {
        if old.name != *name {
            let reason = format!("cannot change name of view column \"{}\" to \"{name}\"", old.name);
            return fail("42P16", reason, range);
        }
        if old.sql_type.is_known() && sql_type.is_known() && old.sql_type.oid != sql_type.oid {
            return fail("42P16", format!("cannot change data type of view column \"{name}\""), range);
        }
    }
    Ok(())
}

fn check_duplicate_columns(columns: &[QueryColumn], range: TextRange) -> Run {
    for (at, (name, _)) in columns.iter().enumerate() {
        if columns[..at].iter().any(|(other, _)| other == name) {
            return fail("42701", format!("column \"{name}\" specified more than once"), range);
        }
    }
    Ok(())
}

fn view_column((name, sql_type): (SmolStr, SqlType)) -> Column {
    Column::new(name, sql_type)
}

/// An option as the catalog keeps it.
pub(crate) fn option_text(option: &DefElem) -> (SmolStr, SmolStr) {
    let value = match &option.value {
        DefValue::None => SmolStr::new_static("true"),
        DefValue::Literal(literal) => literal_text(literal),
        DefValue::Names(names) => SmolStr::new(names.join(".")),
        DefValue::Type(type_name) => type_name.name.clone(),
        DefValue::List(list) => SmolStr::new(list.iter().map(literal_text).collect::<Vec<_>>().join(", ")),
        DefValue::Other => SmolStr::default(),
    };
    (SmolStr::new(option.name.to_ascii_lowercase()), value)
}

/// A literal as text.
pub(crate) fn literal_text(literal: &Literal) -> SmolStr {
    match literal {
        Literal::Integer(number) => smol_str::format_smolstr!("{number}"),
        Literal::Boolean(value) => smol_str::format_smolstr!("{value}"),
        Literal::Numeric(text) | Literal::String(text) | Literal::BitString(text) => text.clone(),
        Literal::Null => SmolStr::new_static("null"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_failure, check_locks};

    const V: &str = "CREATE TABLE t(id int PRIMARY KEY, a int, b text); CREATE VIEW v AS SELECT id, a AS x FROM t;";

    #[test]
    fn replacing_a_view_may_only_add_columns() {
        check_locks(
            V,
            "CREATE OR REPLACE VIEW v AS SELECT id, a AS x, b FROM t",
            &["t AccessShare", "v AccessExclusive"],
        );
        check_failure(V, "CREATE OR REPLACE VIEW v AS SELECT id FROM t", "42P16");
        check_failure(V, "CREATE OR REPLACE VIEW v AS SELECT id, a FROM t", "42P16");
        check_failure(V, "CREATE OR REPLACE VIEW v AS SELECT id, b AS x FROM t", "42P16");
        check_failure(V, "CREATE VIEW v AS SELECT 1", "42P07");
        check_failure(V, "CREATE VIEW w AS SELECT id, id FROM t", "42701");
    }

    #[test]
    fn refresh_concurrently_needs_a_unique_index() {
        let history = format!("{V} CREATE MATERIALIZED VIEW m AS SELECT * FROM t;");
        check_failure(&history, "REFRESH MATERIALIZED VIEW CONCURRENTLY m", "55000");
        let history = format!("{history} CREATE UNIQUE INDEX i ON m(id);");
        check_failure(&history, "REFRESH MATERIALIZED VIEW CONCURRENTLY m", "");
    }

    #[test]
    fn a_view_without_data_may_have_been_filled_since() {
        let make = "CREATE MATERIALIZED VIEW m AS SELECT * FROM t WITH NO DATA;";
        check_failure(V, &format!("{make} SELECT * FROM m"), "55000");
        check_failure(V, &format!("{make} REFRESH MATERIALIZED VIEW m; SELECT * FROM m"), "");
        check_failure(&format!("{V} {make}"), "SELECT * FROM m", "");
    }
}
