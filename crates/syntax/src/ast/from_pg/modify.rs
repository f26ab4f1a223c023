//! INSERT, UPDATE, DELETE and MERGE.

use super::context::{Context, Span, exact};
use crate::ast::{
    Assignment, ConflictTarget, Delete, Expr, ExprKind, FromItem, Insert, InsertSource, Merge, MergeAction,
    MergeBranch, MergeMatch, Name, OnConflict, Overriding, Target, Update,
};
use crate::source::TextRange;
use pg::Node;
use pgvet_parser::tree as pg;

impl Context<'_> {
    pub(super) fn insert(&self, insert: &pg::InsertStmt, span: Span) -> Insert {
        let table = self.required_relation_ref(insert.relation);
        let after_table = span.from(self.index_after(table.name.range()));
        let columns: Vec<Name> = exact(insert.cols.iter().filter_map(|node| self.target_name(node)));
        let on_conflict = self.find(after_table, |at| self.is(at, "ON") && self.is(at + 1, "CONFLICT"));
        let returning = self.find_word(after_table, &["RETURNING"]);
        let source_end = on_conflict.or(returning).unwrap_or(span.end);
        let source = match insert.select_stmt.map(pg::NodeRef::node) {
            Some(Node::SelectStmt(select)) => {
                let source = self.insert_source(after_table.to(source_end), !columns.is_empty());
                InsertSource::Query(Box::new(self.query(select, source)))
            }
            _ => InsertSource::DefaultValues,
        };
        Insert {
            with: insert.with_clause.map(|with| self.with(with)),
            table,
            columns,
            overriding: match insert.r#override {
                pg::OverridingKind::OVERRIDING_SYSTEM_VALUE => Some(Overriding::System),
                pg::OverridingKind::OVERRIDING_USER_VALUE => Some(Overriding::User),
                _ => None,
            },
            source,
            on_conflict: insert.on_conflict_clause.map(|clause| self.on_conflict(clause, span)),
            returning: self.returning(insert.returning_clause),
            range: self.range(span),
        }
    }

    /// Behind the alias, the columns and OVERRIDING.
    fn insert_source(&self, span: Span, has_columns: bool) -> Span {
        let mut at = span.start;
        if self.is(at, "AS") {
            at += 2;
        }
        if has_columns {
            let open = self.find(span.from(at), |index| self.is_mark(index, b'(')).unwrap_or(at);
            at = self.next(open);
        }
        if self.is(at, "OVERRIDING") {
            at += 3;
        }
        span.from(at)
    }

    fn target_name(&self, node: pg::NodeRef<'_>) -> Option<Name> {
        match node.node() {
            Node::ResTarget(target) => Some(Name::new(target.name.as_str(), self.range_at(target.location))),
            _ => None,
        }
    }

    fn on_conflict(&self, clause: &pg::OnConflictClause, span: Span) -> OnConflict {
        let update = clause.action == pg::OnConflictAction::ONCONFLICT_UPDATE;
        let start = self.index(clause.location).unwrap_or(span.start);
        let end = self.find_word(span.from(start), &["RETURNING"]).unwrap_or(span.end);
        OnConflict {
            target: clause.infer.map(|infer| self.conflict_target(infer, Span::new(start, end))),
            update: update.then(|| self.assignments(clause.target_list)),
            update_filter: self.optional(clause.where_clause),
            range: self.range(Span::new(start, end)),
        }
    }

    fn conflict_target(&self, infer: &pg::InferClause, span: Span) -> ConflictTarget {
        if !infer.conname.is_empty() {
            let after = self.find_word(span, &["CONSTRAINT"]).map_or(span.start, |at| at + 1);
            return ConflictTarget::Constraint(self.name(span.from(after), &infer.conname));
        }
        let elements = infer.index_elems.iter().filter_map(|node| match node.node() {
            Node::IndexElem(element) => Some(self.key(&element.name, element.expr, span)),
            _ => None,
        });
        ConflictTarget::Inference { elements: exact(elements), predicate: self.optional(infer.where_clause) }
    }

    /// SET: every column with its value.
    fn assignments(&self, nodes: pg::List<'_>) -> Vec<Assignment> {
        let assignment = |node: pg::NodeRef<'_>| match node.node() {
            Node::ResTarget(target) => Some(Assignment {
                column: Name::new(target.name.as_str(), self.range_at(target.location)),
                value: self.assigned(target),
            }),
            _ => None,
        };
        exact(nodes.iter().filter_map(assignment))
    }

    /// The value of a column, or that of a part of it with what selects the part: `a[f()] = 1` calls `f()`.
    fn assigned(&self, target: &pg::ResTarget) -> Expr {
        let value = self.whole(target.val);
        if target.indirection.is_empty() {
            return value;
        }
        let range = value.range;
        let subscripts = target.indirection.iter().flat_map(|step| match step.node() {
            Node::AIndices(indices) => [self.optional(indices.lidx), self.optional(indices.uidx)],
            _ => [None, None],
        });
        let parts = std::iter::once(value).chain(subscripts.flatten()).collect();
        Expr { kind: ExprKind::Other("A_Indirection".into(), parts), range }
    }

    fn returning(&self, clause: Option<&pg::ReturningClause>) -> Vec<Target> {
        clause.map_or_else(Vec::new, |clause| self.targets(clause.exprs))
    }

    pub(super) fn update(&self, update: &pg::UpdateStmt, span: Span) -> Update {
        let with = update.with_clause.map(|with| self.with(with));
        let keyword = self.token_range(self.after_with(span.start, with.as_ref()));
        let assignments = self.assignments(update.target_list);
        let values = assignments.iter().fold(TextRange::default(), |range, assignment| {
            range.cover(assignment.column.range).cover(assignment.value.range)
        });
        Update {
            with,
            table: self.required_relation_ref(update.relation),
            assignments,
            from: self.items_of_from(update.from_clause, &mut self.index_after(values)),
            filter: self.optional(update.where_clause),
            returning: self.returning(update.returning_clause),
            range: self.range(span),
            keyword,
        }
    }

    pub(super) fn delete(&self, delete: &pg::DeleteStmt, span: Span) -> Delete {
        let with = delete.with_clause.map(|with| self.with(with));
        let keyword = self.token_range(self.after_with(span.start, with.as_ref()));
        let table = self.required_relation_ref(delete.relation);
        let mut cursor = self.index_after(table.name.range());
        Delete {
            with,
            table,
            using: self.items_of_from(delete.using_clause, &mut cursor),
            filter: self.optional(delete.where_clause),
            returning: self.returning(delete.returning_clause),
            range: self.range(span),
            keyword,
        }
    }

    pub(super) fn merge(&self, merge: &pg::MergeStmt, span: Span) -> Merge {
        let with = merge.with_clause.map(|with| self.with(with));
        let keyword = self.token_range(self.after_with(span.start, with.as_ref()));
        let table = self.required_relation_ref(merge.relation);
        let mut cursor = self.index_after(table.name.range());
        let source = merge.source_relation.and_then(|node| self.item_of_from(node, &mut cursor));
        Merge {
            with,
            source: source.unwrap_or_else(|| FromItem::Relation(table.clone())),
            table,
            on: self.operand(merge.join_condition),
            branches: exact(merge.merge_when_clauses.iter().filter_map(|node| self.merge_branch(node))),
            returning: self.returning(merge.returning_clause),
            range: self.range(span),
            keyword,
        }
    }

    fn merge_branch(&self, node: pg::NodeRef<'_>) -> Option<MergeBranch> {
        let Node::MergeWhenClause(clause) = node.node() else { return None };
        let matched = match clause.match_kind {
            pg::MergeMatchKind::MERGE_WHEN_NOT_MATCHED_BY_SOURCE => MergeMatch::NotMatchedBySource,
            pg::MergeMatchKind::MERGE_WHEN_NOT_MATCHED_BY_TARGET => MergeMatch::NotMatchedByTarget,
            _ => MergeMatch::Matched,
        };
        let action = match clause.command_type {
            pg::CmdType::CMD_INSERT => MergeAction::Insert {
                columns: exact(clause.target_list.iter().filter_map(|node| self.target_name(node))),
                values: self.expressions(clause.values),
            },
            pg::CmdType::CMD_UPDATE => MergeAction::Update(self.assignments(clause.target_list)),
            pg::CmdType::CMD_DELETE => MergeAction::Delete,
            _ => MergeAction::DoNothing,
        };
        Some(MergeBranch { matched, condition: self.optional(clause.condition), action })
    }
}
