//! Indexes, statistics and the commands that work on whole tables.

use super::context::{Context, Span, exact, strings, written};
use super::name::{behavior, def_elem};
use super::table::range_var;
use crate::ast::{
    Cluster, CreateIndex, CreateStatistics, DefElem, Literal, LockMode, LockTable, ObjectName, Reindex, ReindexTarget,
    Truncate, Vacuum,
};
use pg::Node;
use pgvet_parser::tree as pg;

impl Context<'_> {
    pub(super) fn create_index(&self, index: &pg::IndexStmt, span: Span) -> CreateIndex {
        let word = self.find_word(span, &["INDEX"]).unwrap_or(span.start);
        let after_word = span.from(word + 1);
        let relation = index.relation;
        let table = self.required_relation(relation);
        let after_table = span.from(self.index_after(table.range()));
        let open = self.find(after_table, |at| self.is_mark(at, b'('));
        let parts = open.map_or_else(Vec::new, |open| self.split(self.inside(open), b','));
        let elements = index.index_params.iter().enumerate();
        let elements =
            elements.filter_map(|(at, node)| self.index_element(node, parts.get(at).copied().unwrap_or(after_table)));
        CreateIndex {
            name: written(&index.idxname).map(|name| self.index_name(after_word, &name)),
            only: relation.is_some_and(|relation| !relation.inh),
            unique: index.unique,
            concurrently: index.concurrent,
            if_not_exists: index.if_not_exists,
            nulls_not_distinct: index.nulls_not_distinct,
            method: written(&index.access_method).unwrap_or_else(|| "btree".into()),
            elements: exact(elements),
            including: self.including(after_table, index.index_including_params),
            predicate: self.optional(index.where_clause),
            options: self.options(index.options),
            tablespace: written(&index.table_space),
            keyword: self.range(span.to(word + 1)),
            index_keyword: self.token_range(word),
            table,
        }
    }

    fn index_name(&self, span: Span, name: &str) -> crate::ast::Name {
        let mut at = self.skip(span.start, &["CONCURRENTLY"]);
        at = self.skip(at, &["IF", "NOT", "EXISTS"]);
        self.name(span.from(at), name)
    }

    pub(super) fn create_statistics(&self, create: &pg::CreateStatsStmt, span: Span) -> CreateStatistics {
        let start = self.skip(span.start + 2, &["IF", "NOT", "EXISTS"]);
        let on = self.find_word(span, &["ON"]).unwrap_or(span.start);
        let elements = create.exprs.iter().filter_map(|node| match node.node() {
            Node::StatsElem(element) => Some(self.key(&element.name, element.expr, span.from(on + 1))),
            _ => None,
        });
        CreateStatistics {
            name: (!create.defnames.is_empty()).then(|| self.object_name_of(create.defnames, start)),
            if_not_exists: create.if_not_exists,
            table: create.relations.first().and_then(range_var).map(|relation| self.relation(relation)),
            elements: exact(elements),
        }
    }

    /// Tables, and whether ONLY was written.
    fn tables(&self, nodes: pg::List<'_>) -> Vec<(ObjectName, bool)> {
        exact(nodes.iter().filter_map(range_var).map(|relation| (self.relation(relation), !relation.inh)))
    }

    /// The keyword and TABLE, which may be omitted.
    fn keyword_and_table(&self, span: Span) -> crate::source::TextRange {
        self.range(span.to(self.skip(span.start + 1, &["TABLE"])))
    }

    pub(super) fn truncate(&self, truncate: &pg::TruncateStmt, span: Span) -> Truncate {
        Truncate {
            tables: self.tables(truncate.relations),
            restart_identity: truncate.restart_seqs,
            behavior: behavior(truncate.behavior),
            keyword: self.keyword_and_table(span),
        }
    }

    pub(super) fn lock_table(&self, lock: &pg::LockStmt, span: Span) -> LockTable {
        LockTable {
            tables: self.tables(lock.relations),
            mode: lock_mode(lock.mode),
            explicit_mode: self.find_word(span, &["MODE"]).is_some_and(|at| at > span.start + 1 && self.mode_ends(at)),
            nowait: lock.nowait,
            keyword: self.keyword_and_table(span),
        }
    }

    /// Whether the word MODE at `index` is the end of a lock mode and not the name of a table.
    fn mode_ends(&self, index: usize) -> bool {
        self.is_any(index - 1, &["SHARE", "EXCLUSIVE"])
    }

    pub(super) fn vacuum(&self, vacuum: &pg::VacuumStmt, span: Span) -> Vacuum {
        let options = self.options(vacuum.options);
        let relations: Vec<_> = (vacuum.rels.iter())
            .filter_map(|node| match node.node() {
                Node::VacuumRelation(relation) => Some(relation),
                _ => None,
            })
            .collect();
        let tables = relations.iter().filter_map(|relation| relation.relation);
        Vacuum {
            vacuum: vacuum.is_vacuumcmd,
            analyze: !vacuum.is_vacuumcmd || is_set(&options, "analyze"),
            full: is_set(&options, "full"),
            only: tables.clone().filter(|table| !table.inh).map(|table| self.relation(table)).collect(),
            tables: exact(tables.map(|table| self.relation(table))),
            columns: (relations.iter().enumerate())
                .flat_map(|(at, relation)| strings(relation.va_cols).into_iter().map(move |column| (at, column)))
                .collect(),
            keyword: self.range(span.to(self.skip_any(span.start + 1, &["FULL"]))),
            options,
        }
    }

    pub(super) fn cluster(&self, cluster: &pg::ClusterStmt, span: Span) -> Cluster {
        let table = cluster.relation.map(|relation| self.relation(relation));
        // The old form names the index first: `CLUSTER index ON table`.
        let start = match self.find_word(span, &["ON"]) {
            Some(_) => span.start + 1,
            None => table.as_ref().map_or(span.start, |table| self.index_after(table.range())),
        };
        Cluster {
            index: written(&cluster.indexname).map(|name| self.name(span.from(start), &name)),
            table,
            keyword: self.token_range(span.start),
        }
    }

    pub(super) fn reindex(&self, reindex: &pg::ReindexStmt, span: Span) -> Reindex {
        use pg::ReindexObjectType as Kind;
        let word = self.find_word(span, &["INDEX", "TABLE", "SCHEMA", "SYSTEM", "DATABASE"]).unwrap_or(span.start);
        let after = span.from(self.skip(word + 1, &["CONCURRENTLY"]));
        let options = self.options(reindex.params);
        let relation = || self.required_relation(reindex.relation);
        Reindex {
            target: match reindex.kind {
                Kind::REINDEX_OBJECT_INDEX => ReindexTarget::Index(relation()),
                Kind::REINDEX_OBJECT_TABLE => ReindexTarget::Table(relation()),
                Kind::REINDEX_OBJECT_SCHEMA => ReindexTarget::Schema(self.name(after, &reindex.name)),
                Kind::REINDEX_OBJECT_SYSTEM => ReindexTarget::System,
                _ => ReindexTarget::Database,
            },
            concurrently: is_set(&options, "concurrently"),
            tablespace: reindex
                .params
                .iter()
                .filter_map(def_elem)
                .find(|element| element.defname == "tablespace")
                .and_then(|element| match super::name::literal(element.arg?)? {
                    Literal::String(name) => Some(name),
                    _ => None,
                }),
            keyword: self.range(span.to(word + 1)),
            target_keyword: self.token_range(word),
        }
    }
}

/// Whether the boolean option is given and true. The last one wins.
pub(super) fn is_set(options: &[DefElem], name: &str) -> bool {
    options.iter().rev().find(|option| option.name == name).is_some_and(|option| option.as_bool() == Some(true))
}

/// PostgreSQL's numbers of lock modes: `src/include/storage/lockdefs.h`.
fn lock_mode(number: i32) -> LockMode {
    match number {
        1 => LockMode::AccessShare,
        2 => LockMode::RowShare,
        3 => LockMode::RowExclusive,
        4 => LockMode::ShareUpdateExclusive,
        5 => LockMode::Share,
        6 => LockMode::ShareRowExclusive,
        7 => LockMode::Exclusive,
        _ => LockMode::AccessExclusive,
    }
}
