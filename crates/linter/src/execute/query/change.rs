//! INSERT, UPDATE, DELETE and MERGE.

use super::values::RowChange;
use super::whole::Change;
use super::{Depth, Env, RowLocks};
use crate::ast::{
    ConflictTarget, Delete, Expr, ExprKind, FromItem, Insert, InsertSource, Merge, MergeAction, MergeBranch,
    MergeMatch, Name, ObjectName, QueryBody, ReferentialAction, Update,
};
use crate::builtin::{self, SystemRelationKind};
use crate::catalog::{Constraint, Oid};
use crate::effect::{DataChangeKind, LockCause, LockMode, RelationKind, ScanCause, UnknownReason};
use crate::execute::record::Reach;
use crate::execute::{Executor, Run, fail};
use crate::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    pub(super) fn insert_rows(&mut self, insert: &Insert, outer: &Env<'_>) -> Run {
        let names = self.with_clause(insert.with.as_ref(), outer)?;
        let env = Env { depth: outer.depth, ctes: &names, outer: Some(outer), row_locks: RowLocks::None };
        let Some(table) = self.open_changed(&insert.table.name)? else {
            return check_not_system_catalog(insert);
        };
        for column in &insert.columns {
            self.check_column(table, column)?;
        }
        let relation = self.catalog.relation(table);
        if insert.on_conflict.is_some() && relation.is_user_catalog() {
            let reason = format!("ON CONFLICT is not supported on table \"{}\" used as a catalog table", relation.name);
            return fail("0A000", reason, insert.table.name.range());
        }
        let mut reach = self.outside_of_code(Reach::Few);
        if let InsertSource::Query(query) = &insert.source {
            self.check_enum_row_literals(table, insert, query)?;
            self.query(query, &env)?;
            reach = self.rows_of(query, &env);
        }
        self.output(&insert.returning, &env)?;
        if insert.on_conflict.as_ref().is_some_and(|conflict| conflict.target.is_none()) && env.depth == Depth::Run {
            self.check_arbiters(table, insert)?;
        }
        let range = insert.table.name.range();
        let mut updated = None;
        if let Some(conflict) = &insert.on_conflict {
            if let Some(ConflictTarget::Inference { elements, predicate }) = &conflict.target {
                self.expressions(elements.iter().chain(predicate), &env)?;
            }
            let values = conflict.update.iter().flatten().map(|assignment| &assignment.value);
            self.expressions(values.chain(&conflict.update_filter), &env)?;
            updated = conflict.update.as_deref().map(|assignments| RowChange::update(assignments, false, range));
        }
        let insertion = self.insertion(table, insert);
        for change in std::iter::once(&insertion).chain(&updated) {
            self.change(table, change, env.depth)?;
        }
        self.note_change(table, DataChangeKind::Insert, reach, env.depth, insert.range);
        Ok(())
    }

    pub(super) fn update_rows(&mut self, update: &Update, outer: &Env<'_>) -> Run {
        let names = self.with_clause(update.with.as_ref(), outer)?;
        let env = Env { depth: outer.depth, ctes: &names, outer: Some(outer), row_locks: RowLocks::None };
        let Some(table) = self.open_changed(&update.table.name)? else { return Ok(()) };
        for item in &update.from {
            self.read_from_item(item, &env)?;
        }
        for assignment in &update.assignments {
            self.check_column(table, &assignment.column)?;
            self.check_enum_assignment(table, assignment)?;
        }
        let values = update.assignments.iter().map(|assignment| &assignment.value);
        self.expressions(values.chain(&update.filter), &env)?;
        self.output(&update.returning, &env)?;
        let row_change = RowChange::update(&update.assignments, update.table.only, update.table.name.range());
        let change = Change {
            oid: table,
            with: update.with.as_ref(),
            table: &update.table,
            from: &update.from,
            filter: update.filter.as_ref(),
        };
        let unbounded = self.reaches_all_rows(&change, &env);
        let reads_all = self.fills_by_scan(table, update);
        self.change(table, &row_change, env.depth)?;
        self.note_change(table, DataChangeKind::Update, Reach::of(unbounded), env.depth, update.keyword);
        if reads_all && env.depth == Depth::Run {
            self.scan(table, ScanCause::Query, update.keyword);
        }
        self.read_joined(&change, update.keyword, &env);
        Ok(())
    }

    pub(super) fn delete_rows(&mut self, delete: &Delete, outer: &Env<'_>) -> Run {
        let names = self.with_clause(delete.with.as_ref(), outer)?;
        let env = Env { depth: outer.depth, ctes: &names, outer: Some(outer), row_locks: RowLocks::None };
        let Some(table) = self.open_changed(&delete.table.name)? else { return Ok(()) };
        for item in &delete.using {
            self.read_from_item(item, &env)?;
        }
        self.expressions(&delete.filter, &env)?;
        self.output(&delete.returning, &env)?;
        let row_change = RowChange::new(DataChangeKind::Delete, delete.table.only, delete.table.name.range());
        self.change(table, &row_change, env.depth)?;
        let change = Change {
            oid: table,
            with: delete.with.as_ref(),
            table: &delete.table,
            from: &delete.using,
            filter: delete.filter.as_ref(),
        };
        let unbounded = self.reaches_all_rows(&change, &env);
        self.read_joined(&change, delete.keyword, &env);
        self.note_change(table, DataChangeKind::Delete, Reach::of(unbounded), env.depth, delete.keyword);
        if env.depth == Depth::Run
            && delete.filter.as_ref().is_none_or(|filter| unbounded || is_open_at_the_top(filter))
        {
            self.catalog.relation_mut(table).tail_emptied = true;
        }
        Ok(())
    }

    pub(super) fn merge_rows(&mut self, merge: &Merge, outer: &Env<'_>) -> Run {
        if !self.target.at_least(15) {
            return fail("42601", "MERGE does not exist before PostgreSQL 15", merge.keyword);
        }
        let by_source = |branch: &MergeBranch| branch.matched == MergeMatch::NotMatchedBySource;
        if !self.target.at_least(17) && (!merge.returning.is_empty() || merge.branches.iter().any(by_source)) {
            return fail("42601", "syntax error: RETURNING and BY SOURCE need PostgreSQL 17", merge.keyword);
        }
        let names = self.with_clause(merge.with.as_ref(), outer)?;
        let env = Env { depth: outer.depth, ctes: &names, outer: Some(outer), row_locks: RowLocks::None };
        let Some(table) = self.open_changed(&merge.table.name)? else { return Ok(()) };
        if !self.catalog.relation(table).rules.is_empty() {
            return fail("0A000", "cannot execute MERGE on a relation with rules", merge.table.name.range());
        }
        if self.catalog.relation(table).kind == RelationKind::View && !self.target.at_least(17) {
            return fail("0A000", "cannot execute MERGE on a view before PostgreSQL 17", merge.table.name.range());
        }
        self.read_from_item(&merge.source, &env)?;
        self.expression(&merge.on, &env)?;
        self.output(&merge.returning, &env)?;
        for branch in &merge.branches {
            self.expressions(&branch.condition, &env)?;
            let (only, range) = (merge.table.only, merge.table.name.range());
            let change = match &branch.action {
                MergeAction::Insert { columns, values } => {
                    self.expressions(values, &env)?;
                    RowChange::insert_of_merge(self.inserted_columns(table, columns), values, range)
                }
                MergeAction::Update(assignments) => {
                    self.expressions(assignments.iter().map(|assignment| &assignment.value), &env)?;
                    RowChange::update(assignments, only, range)
                }
                MergeAction::Delete => RowChange::new(DataChangeKind::Delete, only, range),
                MergeAction::DoNothing => continue,
            };
            self.change(table, &change, env.depth)?;
            let unbounded = change.kind != DataChangeKind::Insert && self.merges_all(merge, branch);
            self.note_change(table, change.kind, Reach::of(unbounded), env.depth, merge.keyword);
        }
        Ok(())
    }

    /// What is checked late cannot tell at once whether a row is in the way.
    ///
    /// Source: PostgreSQL 18, `src/backend/executor/execIndexing.c`, `ExecCheckIndexConstraints`.
    fn check_arbiters(&mut self, table: Oid, insert: &Insert) -> Run {
        let relation = self.catalog.relation(table);
        let is_late = |constraint: &&Arc<Constraint>| constraint.deferrable && constraint.index().is_some();
        if relation.kind != RelationKind::Table || !relation.constraints.iter().any(|one| is_late(&one)) {
            return Ok(());
        }
        let has_rows = match &insert.source {
            InsertSource::DefaultValues => true,
            InsertSource::Query(query) => matches!(query.body, QueryBody::Values(_)),
        };
        if !has_rows {
            self.unknown("whether INSERT ... ON CONFLICT meets a deferrable constraint depends on its rows");
            return Ok(());
        }
        let reason = "ON CONFLICT does not support deferrable unique constraints or exclusion constraints as arbiters";
        fail("55000", reason, insert.table.name.range())
    }

    fn check_column(&self, table: Oid, column: &Name) -> Run {
        let relation = self.catalog.relation(table);
        if relation.known && relation.column(&column.text).is_none() {
            let reason = format!("column \"{}\" of relation \"{}\" does not exist", column.text, relation.name);
            return fail("42703", reason, column.range);
        }
        Ok(())
    }

    /// Does a branch of MERGE touch as many rows as a table that may have many?
    fn merges_all(&self, merge: &Merge, branch: &MergeBranch) -> bool {
        let whole_source = match &merge.source {
            FromItem::Relation(source) => {
                self.find(&source.name).is_some_and(|source| self.visibility(source).is_exposed())
            }
            _ => false,
        };
        branch.condition.is_none() && (whole_source || branch.matched == MergeMatch::NotMatchedBySource)
    }

    /// Opens the target of a data change; `None` for a system table.
    pub(super) fn open_changed(&mut self, name: &ObjectName) -> Run<Option<Oid>> {
        if self.is_system_relation(name) {
            return Ok(None);
        }
        let oid = self.open_in_query(name, LockMode::RowExclusive)?;
        let relation = self.catalog.relation(oid);
        let unchangeable = matches!(relation.kind, RelationKind::MaterializedView | RelationKind::Sequence);
        if (unchangeable || relation.kind.is_index()) && relation.known {
            return fail("42809", format!("cannot change relation \"{}\"", relation.name), name.range());
        }
        Ok(Some(oid))
    }

    /// Locks what a change of rows touches besides the table: indexes, partitions and children, tables behind a
    /// view, both sides of foreign keys, and what triggers use.
    pub(super) fn change(&mut self, oid: Oid, change: &RowChange, depth: Depth) -> Run {
        let RowChange { kind, ref columns, only, range, .. } = *change;
        let relation = self.catalog.relation(oid);
        if !relation.rules.is_empty() && relation.kind != RelationKind::View && depth >= Depth::Rewrite {
            let name = relation.name.clone();
            self.skip_code(UnknownReason::Rules { relation: name }, range, depth == Depth::Run);
        }
        if self.catalog.relation(oid).kind == RelationKind::View {
            return self.change_view(oid, change, depth);
        }
        self.check_computed_columns(oid, change)?;
        if depth < Depth::Plan {
            return Ok(());
        }
        let partitioned = self.catalog.relation(oid).kind == RelationKind::PartitionedTable;
        let mut changed = vec![oid];
        if partitioned || (kind != DataChangeKind::Insert && !only) {
            changed.extend(self.lock_descendants(oid, LockMode::RowExclusive, range));
        }
        for table in &changed {
            self.lock_indexes(*table, LockMode::RowExclusive, range);
        }
        if depth == Depth::Run {
            for table in &changed {
                self.check_replica_identity(*table, kind, range)?;
                if kind == DataChangeKind::Update {
                    self.fill_columns(*table, columns);
                }
            }
            for table in changed {
                self.enforce_foreign_keys(table, kind, columns, range, &mut Vec::new());
                self.fire_triggers(table, kind, columns, range);
            }
        }
        Ok(())
    }

    /// A view passes the change on to the table that it shows, unless a rule or an INSTEAD OF trigger takes it.
    ///
    /// Source: PostgreSQL 18, `src/backend/rewrite/rewriteHandler.c`, `rewriteTargetView`.
    fn change_view(&mut self, view: Oid, change: &RowChange, depth: Depth) -> Run {
        let RowChange { kind, ref columns, range, .. } = *change;
        if depth < Depth::Rewrite {
            return Ok(());
        }
        let relation = self.catalog.relation(view);
        if !relation.rules.is_empty() {
            let name = relation.name.clone();
            self.skip_code(UnknownReason::Rules { relation: name }, range, depth == Depth::Run);
            return Ok(());
        }
        self.check_reads_not_itself(view, range)?;
        let instead = relation.triggers.iter().any(|trigger| {
            let fires = match kind {
                DataChangeKind::Insert => trigger.events.insert,
                DataChangeKind::Update => trigger.events.update,
                DataChangeKind::Delete => trigger.events.delete,
            };
            fires && trigger.timing == crate::ast::TriggerTiming::InsteadOf
        });
        let base = match relation.view() {
            Some(definition) if !instead => {
                self.check_view_takes(view, definition, kind, columns, range)?;
                definition.references.first().map(|first| first.0)
            }
            _ => None,
        };
        if instead || base.is_none() {
            self.follow_read(view, LockMode::AccessShare, false, depth, range)?;
            if depth == Depth::Run {
                self.fire_triggers(view, kind, columns, range);
            }
            return Ok(());
        }
        if let Some(base) = base.filter(|base| self.catalog.get_relation(*base).is_some()) {
            self.lock(base, LockMode::RowExclusive, LockCause::Query, range);
            self.change(base, &self.change_behind(view, change), depth)?;
        }
        Ok(())
    }

    /// Locks the tables that the triggers of foreign keys read or change.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/adt/ri_triggers.c`.
    fn enforce_foreign_keys(
        &mut self,
        table: Oid,
        kind: DataChangeKind,
        columns: &[SmolStr],
        range: TextRange,
        seen: &mut Vec<Oid>,
    ) {
        if seen.contains(&table) {
            return;
        }
        seen.push(table);
        let touches = |list: &[SmolStr]| columns.is_empty() || list.iter().any(|column| columns.contains(column));
        if kind != DataChangeKind::Delete {
            let referenced: Vec<Oid> = (self.catalog.relation(table).constraints.iter())
                .filter_map(|constraint| constraint.foreign_key())
                .filter(|key| kind == DataChangeKind::Insert || touches(&key.columns))
                .map(|key| key.referenced)
                .collect();
            for other in referenced {
                self.lock_other_side(other, LockMode::RowShare, range);
            }
        }
        if kind == DataChangeKind::Insert {
            return;
        }
        for (referencing, constraint) in self.foreign_keys_to_family(table) {
            let Some(key) = constraint.foreign_key() else { continue };
            let action = match kind {
                DataChangeKind::Delete => key.on_delete,
                _ if touches(&key.referenced_columns) => key.on_update,
                _ => continue,
            };
            let next = match (action, kind) {
                (ReferentialAction::NoAction | ReferentialAction::Restrict, _) => None,
                (ReferentialAction::Cascade, DataChangeKind::Delete) => Some(DataChangeKind::Delete),
                _ => Some(DataChangeKind::Update),
            };
            let mode = if next.is_some() { LockMode::RowExclusive } else { LockMode::RowShare };
            self.lock_other_side(referencing, mode, range);
            if let Some(kind) = next {
                let columns = if kind == DataChangeKind::Update { key.columns.clone() } else { Vec::new() };
                self.fire_triggers(referencing, kind, &columns, range);
                self.enforce_foreign_keys(referencing, kind, &columns, range, seen);
            }
        }
    }

    fn lock_other_side(&mut self, oid: Oid, mode: LockMode, range: TextRange) {
        if self.catalog.get_relation(oid).is_some() {
            self.lock(oid, mode, LockCause::ForeignKey, range);
            self.lock_indexes(oid, mode, range);
            for child in self.lock_descendants(oid, mode, range) {
                self.lock_indexes(child, mode, range);
            }
        }
    }

    /// Foreign keys to a table or to a partitioned table that it is a part of.
    pub(crate) fn foreign_keys_to_family(&self, table: Oid) -> Vec<(Oid, Arc<Constraint>)> {
        let mut found = self.catalog.foreign_keys_to(table);
        let mut at = table;
        while let Some(relation) = self.catalog.get_relation(at).filter(|relation| relation.is_partition()) {
            let Some(parent) = relation.parents.first() else { break };
            found.extend(self.catalog.foreign_keys_to(*parent));
            at = *parent;
        }
        found
    }

    /// Notes what the change does to the rows of tables.
    pub(super) fn note_change(&mut self, oid: Oid, kind: DataChangeKind, reach: Reach, depth: Depth, range: TextRange) {
        if depth < Depth::Run {
            return;
        }
        self.change_data(oid, kind, reach, range);
        if reach == Reach::All
            && kind != DataChangeKind::Insert
            && self.catalog.relation(oid).kind == RelationKind::Table
        {
            self.scan(oid, ScanCause::Query, range);
        }
        if kind == DataChangeKind::Insert && self.catalog.relation(oid).kind == RelationKind::PartitionedTable {
            for child in self.descendants(oid) {
                self.fill(child, reach);
            }
        }
    }
}

/// Source: PostgreSQL 18, `src/backend/parser/parse_clause.c`, `transformOnConflictArbiter`.
fn check_not_system_catalog(insert: &Insert) -> Run {
    let name = &insert.table.name;
    let is_catalog = builtin::system_relation("pg_catalog", name.name.as_str())
        .is_some_and(|relation| relation.kind == SystemRelationKind::Table);
    let elsewhere = name.schema.as_ref().is_some_and(|schema| schema.text != "pg_catalog");
    if insert.on_conflict.is_some() && is_catalog && !elsewhere {
        return fail("0A000", "ON CONFLICT is not supported with system catalog tables", name.range());
    }
    Ok(())
}

/// `key > constant`: rows with the highest keys mostly stand at the end of the table.
fn is_open_at_the_top(filter: &Expr) -> bool {
    match &filter.kind {
        ExprKind::Operator { operator, form: crate::ast::OperatorForm::Plain, operands, .. } => {
            let [left, right] = operands.as_slice() else { return false };
            let above = matches!(operator.as_str(), ">" | ">=");
            above && matches!(left.kind, ExprKind::Column(_)) && matches!(right.kind, ExprKind::Literal(_))
        }
        _ => false,
    }
}
