//! CREATE TABLE, columns and partitions.

use super::context::{Context, Span, exact, written};
use super::name::persistence;
use crate::ast::{
    ColumnDef, CreateTable, CreateTableAs, LikeOptions, ObjectName, PartitionBound, PartitionBy, PartitionStrategy,
    Query, TableElement,
};
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;
use std::sync::Arc;

impl Context<'_> {
    pub(super) fn create_table(&self, create: &pg::CreateStmt, foreign: bool) -> CreateTable {
        let relation = create.relation;
        let parent = create.inh_relations.first().and_then(range_var);
        let partition_of = create.partbound.zip(parent);
        let inherits = if partition_of.is_some() { pg::List::EMPTY } else { create.inh_relations };
        CreateTable {
            name: self.required_relation(relation),
            persistence: persistence(relation.map_or("", |relation| &relation.relpersistence)),
            foreign,
            if_not_exists: create.if_not_exists,
            elements: exact(create.table_elts.iter().filter_map(|node| self.table_element(node))),
            inherits: exact(inherits.iter().filter_map(range_var).map(|parent| self.relation(parent))),
            partition_of: partition_of.map(|(bound, parent)| (self.relation(parent), self.partition_bound(bound))),
            partition_by: create.partspec.map(|spec| self.partition_by(spec)),
            of_type: create.of_typename.map(|name| self.type_name(name)),
            options: self.options(create.options),
            on_commit_drop: create.oncommit == pg::OnCommitAction::ONCOMMIT_DROP,
            tablespace: written(&create.tablespacename),
            access_method: written(&create.access_method),
        }
    }

    fn table_element(&self, node: pg::NodeRef<'_>) -> Option<TableElement> {
        Some(match node.node() {
            Node::ColumnDef(column) => TableElement::Column(self.column_def(column)),
            Node::Constraint(constraint) => TableElement::Constraint(self.table_constraint(constraint)),
            Node::TableLikeClause(like) => TableElement::Like {
                table: self.required_relation(like.relation),
                including: like_options(like.options),
            },
            _ => return None,
        })
    }

    /// From `start` to the next comma or closing bracket of the same depth.
    pub(super) fn element_span(&self, start: usize) -> Span {
        let span = self.everything().from(start);
        let end = self.find(span, |at| self.is_mark(at, b',') || self.is_mark(at, b')') || self.is_mark(at, b';'));
        span.to(end.unwrap_or(span.end))
    }

    pub(super) fn column_def(&self, column: &pg::ColumnDef) -> ColumnDef {
        let start = self.index(column.location).unwrap_or(0);
        let span = self.element_span(start);
        let collation = column.coll_clause;
        ColumnDef {
            name: self.name_at(start, &column.colname),
            type_name: column.type_name.map(|name| self.type_name(name)),
            collation: collation.and_then(|collate| self.collation(collate)),
            storage: written(&column.storage_name),
            compression: written(&column.compression),
            constraints: self.column_constraints(column, span),
            range: self.range(span),
        }
    }

    /// The name after COLLATE.
    pub(super) fn collation(&self, collate: &pg::CollateClause) -> Option<ObjectName> {
        let start = self.index(collate.location)?;
        Some(self.object_name_of(collate.collname, start + 1))
    }

    fn partition_by(&self, spec: &pg::PartitionSpec) -> PartitionBy {
        let strategy = match spec.strategy {
            pg::PartitionStrategy::PARTITION_STRATEGY_LIST => PartitionStrategy::List,
            pg::PartitionStrategy::PARTITION_STRATEGY_HASH => PartitionStrategy::Hash,
            _ => PartitionStrategy::Range,
        };
        let keys = spec.part_params.iter().filter_map(|node| match node.node() {
            Node::PartitionElem(element) => {
                let start = self.index(element.location).unwrap_or(0);
                Some(self.key(&element.name, element.expr, self.everything().from(start)))
            }
            _ => None,
        });
        PartitionBy { strategy, keys: exact(keys) }
    }

    pub(super) fn partition_bound(&self, bound: &pg::PartitionBoundSpec) -> PartitionBound {
        if bound.is_default {
            return PartitionBound::Default;
        }
        match &*bound.strategy {
            "l" => PartitionBound::List(self.expressions(bound.listdatums)),
            "h" => PartitionBound::Hash {
                modulus: u32::try_from(bound.modulus).unwrap_or(0),
                remainder: u32::try_from(bound.remainder).unwrap_or(0),
            },
            _ => PartitionBound::Range {
                from: self.expressions(bound.lowerdatums),
                to: self.expressions(bound.upperdatums),
            },
        }
    }

    pub(super) fn create_table_as(&self, create: &pg::CreateTableAsStmt, span: Span) -> Option<CreateTableAs> {
        let into = self.new_table(create.into?);
        let after_name = span.from(self.index_after(into.name.range()));
        let body = self.query_after_as(after_name, &["DATA", "NO"]);
        let query = create.query.and_then(|node| self.select(node, body));
        let materialized_view = create.objtype == pg::ObjectType::OBJECT_MATVIEW;
        Some(CreateTableAs {
            materialized_view,
            text: if materialized_view { self.source_of(body).into() } else { SmolStr::default() },
            if_not_exists: create.if_not_exists,
            query: query.map(Arc::new),
            into,
        })
    }

    /// Behind AS, and before a last WITH that is followed by one of these words.
    pub(super) fn query_after_as(&self, span: Span, tail: &[&str]) -> Span {
        let body = span.from(self.find_word(span, &["AS"]).map_or(span.start, |at| at + 1));
        let end = self.find(body, |at| self.is(at, "WITH") && self.is_any(at + 1, tail));
        body.to(end.unwrap_or(body.end))
    }

    /// The query in a node, where it is one.
    pub(super) fn select(&self, node: pg::NodeRef<'_>, span: Span) -> Option<Query> {
        match node.node() {
            Node::SelectStmt(select) => Some(self.query(select, span)),
            _ => None,
        }
    }
}

pub(super) fn range_var(node: pg::NodeRef<'_>) -> Option<&pg::RangeVar<'_>> {
    match node.node() {
        Node::RangeVar(relation) => Some(relation),
        _ => None,
    }
}

/// The bits of `TableLikeOption`: PostgreSQL 18 `src/include/nodes/parsenodes.h`.
fn like_options(bits: u32) -> LikeOptions {
    LikeOptions {
        comments: bits & 1 != 0,
        compression: bits & 2 != 0,
        constraints: bits & 4 != 0,
        defaults: bits & 8 != 0,
        generated: bits & 16 != 0,
        identity: bits & 32 != 0,
        indexes: bits & 64 != 0,
        statistics: bits & 128 != 0,
        storage: bits & 256 != 0,
    }
}
