//! CREATE TABLE AS, SELECT INTO and CREATE MATERIALIZED VIEW.

use super::query::{Depth, Env};
use super::{Executor, Run, fail};
use crate::catalog::{Birth, Column, Oid, Relation, RelationDetail, RelationKind};
use pgvet_syntax::ast::{CreateTableAs, IntoClause, Persistence, Query};
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// CREATE TABLE AS and CREATE MATERIALIZED VIEW.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/createas.c`, `ExecCreateTableAs`.
    pub(super) fn create_table_as(&mut self, statement: &CreateTableAs) -> Run {
        let Some(query) = &statement.query else {
            // EXECUTE: the columns are those of a statement that was prepared elsewhere.
            self.unknown("the columns of CREATE TABLE AS EXECUTE are not known");
            return self.create_filled(&statement.into, None, statement.if_not_exists, None);
        };
        let kept = Some((query, &statement.text)).filter(|_| statement.materialized_view);
        self.create_filled(&statement.into, Some(query), statement.if_not_exists, kept)
    }

    /// SELECT INTO: the query, and the INTO clause that was found in it.
    pub(super) fn select_into(&mut self, query: &Query, into: &IntoClause) -> Run {
        self.create_filled(into, Some(query), false, None)
    }

    /// The birth of a table that holds the rows of a query.
    fn birth_of_copy(&self, query: Option<&Query>, with_data: bool) -> Birth {
        let rows =
            query.map(|query| self.rows_of_query(query, &Env::new(Depth::Run))).filter(|_| self.text_at == Some(0));
        let many = with_data && rows.as_ref().is_none_or(|rows| !rows.is_few());
        Birth { many, at_most: rows.and_then(|rows| rows.bound()), ..self.birth(with_data) }
    }

    /// `kept` is the query that a materialized view keeps, with its text.
    fn create_filled(
        &mut self,
        into: &IntoClause,
        query: Option<&Query>,
        if_not_exists: bool,
        kept: Option<(&Arc<Query>, &SmolStr)>,
    ) -> Run {
        if let Some((query, _)) = kept {
            self.check_query_columns(query, into.name.range())?;
            let is_temporary =
                |(read, _): &(Oid, _)| self.catalog.get_relation(*read).is_some_and(|read| read.is_temporary());
            if self.query_references(query).iter().any(is_temporary) {
                let reason = "materialized views must not use temporary tables or views";
                return fail("0A000", reason, into.name.range());
            }
        }
        // What the query names is looked up before the new name.
        query.map_or(Ok(()), |query| self.read_query(query, Depth::Analyze))?;
        // Here a name that is taken goes before a schema in which nothing temporary can be.
        let temporary = into.persistence == Persistence::Temporary && into.name.schema.is_some();
        if let Some(taken) = self.find(&into.name).filter(|_| temporary && !if_not_exists) {
            let reason = format!("relation \"{}\" already exists", self.catalog.relation(taken).name);
            return self.refuse_taken_name(taken, reason, into.name.range());
        }
        let Some(schema) = self.check_new_relation(&into.name, into.persistence, if_not_exists)? else {
            return Ok(());
        };
        let described = query.and_then(|query| self.describe_query(query));
        let read_before = self.effects.reads.len();
        if let Some(query) = query {
            // WITH NO DATA stops after the analysis.
            self.read_query(query, if into.with_data { Depth::Run } else { Depth::Analyze })?;
        }
        if let Some(described) = &described {
            check_columns(described, into)?;
        }
        let oid = self.catalog.new_oid();
        let kind = if kept.is_some() { RelationKind::MaterializedView } else { RelationKind::Table };
        let birth = self.birth_of_copy(query, into.with_data);
        let mut relation = Relation::new(oid, schema, into.name.name.text.clone(), kind, birth);
        relation.persistence = into.persistence;
        relation.placed_by_path = self.is_placed_by_path(&into.name);
        relation.known = described.is_some();
        relation.columns = columns(described.unwrap_or_default(), into);
        if into.on_commit_drop {
            relation.options.push(("on_commit".into(), "drop".into()));
        }
        if let Some((query, text)) = kept {
            // A dump omits the rows that the database has.
            let populated = into.with_data || self.deployment.is_none();
            let definition = self.view_definition(query, text, populated);
            for (read, _) in &definition.references {
                if self.catalog.get_relation(*read).is_some() {
                    self.catalog.relation_mut(*read).viewed_by.push(oid);
                }
            }
            relation.detail = RelationDetail::View(Arc::new(definition));
        }
        let created = self.effects.creates.len();
        self.store_relation(relation);
        if kind == RelationKind::Table {
            let omitted = query.map_or_else(Vec::new, |query| self.omitted_by_copy(query));
            self.note_copies(oid, read_before, &omitted, into.name.range());
        }
        self.count_catalog_rows(created);
        Ok(())
    }
}

fn check_columns(described: &[(SmolStr, crate::catalog::SqlType)], into: &IntoClause) -> Run {
    if into.columns.len() > described.len() {
        return fail("42601", "too many column names were specified", into.name.range());
    }
    let given = into.columns.iter().map(|name| &name.text);
    let rest = described.iter().skip(into.columns.len()).map(|(name, _)| name);
    let names: Vec<&SmolStr> = given.chain(rest).collect();
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, name)) => fail("42701", format!("column \"{name}\" specified more than once"), into.name.range()),
        None => Ok(()),
    }
}

/// The columns of the query under the names of the INTO clause, where it gives any.
fn columns(described: Vec<(SmolStr, crate::catalog::SqlType)>, into: &IntoClause) -> Vec<Column> {
    let column = |(at, (name, sql_type)): (usize, (SmolStr, _))| {
        let name = into.columns.get(at).map_or(name, |given| given.text.clone());
        Column::new(name, sql_type)
    };
    described.into_iter().enumerate().map(column).collect()
}
