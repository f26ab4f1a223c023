//! INSERT, UPDATE, DELETE and MERGE.

use super::after::ChangedRows;
use super::rows::{Joined, MemberRead, Wanted};
use super::same_change::{left_by_first_run, tests_what_it_sets};
use super::values::RowChange;
use super::{Depth, Env};
use crate::builtin::{self, SystemRelationKind};
use crate::catalog::{Constraint, EmptiedBy, Held, Oid, Omitted, Relation, RelationKind, Trigger};
use crate::effect::{DataChangeKind, Extent, LockCause, Rows, RowsReason, UnknownReason};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{
    ConflictTarget, Delete, Expr, ExprKind, Firing, FunctionBody, Insert, InsertSource, Literal, LockMode, Merge,
    MergeAction, MergeBranch, MergeMatch, Name, ObjectName, QueryBody, RelationRef, TriggerTiming, Update,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    pub(super) fn insert_rows(&mut self, insert: &Insert, outer: &Env<'_>) -> Run {
        let names = self.with_clause(insert.with.as_ref(), outer)?;
        let env = Env { ctes: names.all(), with: insert.with.as_ref(), ..outer.inner() };
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
        let mut rows = Rows::at_most(1, RowsReason::Listed);
        if let InsertSource::Query(query) = &insert.source {
            self.check_enum_row_literals(table, insert, query)?;
            let read_before = self.effects.reads.len();
            self.query(query, &env)?;
            rows = self.rows_of_query(query, &env);
            if env.depth == Depth::Run {
                let mut omitted = self.omitted_by(query, Some(table), &env);
                if insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_none()) {
                    omitted.iter_mut().for_each(|(_, omitted)| {
                        omitted.get_or_insert(Omitted::Skipped);
                    });
                }
                let omitted: Vec<(Oid, Omitted)> =
                    omitted.into_iter().filter_map(|(oid, omitted)| Some((oid, omitted?))).collect();
                self.note_copies(table, read_before, &omitted, insert.range);
            }
        }
        self.output(&insert.returning, &env)?;
        if insert.on_conflict.as_ref().is_some_and(|conflict| conflict.target.is_none()) && env.depth == Depth::Run {
            self.check_arbiters(table, insert)?;
        }
        let mut updated = None;
        if let Some(conflict) = &insert.on_conflict {
            if let Some(ConflictTarget::Inference { elements, predicate }) = &conflict.target {
                self.expressions(elements.iter().chain(predicate), &env)?;
            }
            let values = conflict.update.iter().flatten().map(|assignment| &assignment.value);
            self.expressions(values.chain(&conflict.update_filter), &env)?;
            let arbiters = self.arbiter_columns(table, conflict.target.as_ref());
            let change = |assignments| RowChange::on_conflict(assignments, &arbiters, &insert.table);
            updated = conflict.update.as_deref().map(change);
        }
        let insertion = self.insertion(table, insert);
        for change in std::iter::once(&insertion).chain(&updated) {
            self.change(table, change, env.depth)?;
        }
        if let Some(change) = &updated {
            // Each row of the source updates one at most: all of them are an unknown part of this table.
            let updates =
                if rows.is_whole() { Rows { extent: Extent::UnknownPart, ..rows.clone() } } else { rows.clone() };
            self.note_change(table, change, updates, env.depth, insert.range);
        }
        let mut earlier = None;
        if env.depth == Depth::Run && !rows.is_few() && self.skips_inserted(table, insert) {
            earlier = self.earlier_same(table, insert, insert.range);
            rows = if earlier.is_some() { Rows::unknown_part(RowsReason::RunBefore) } else { rows };
        }
        self.note_change(table, &insertion, rows, env.depth, insert.range);
        self.note_earlier(table, insert.range, earlier);
        if env.depth == Depth::Run {
            self.note_generated_keys(table, &insertion.given);
        }
        Ok(())
    }

    pub(super) fn update_rows(&mut self, update: &Update, outer: &Env<'_>) -> Run {
        let names = self.with_clause(update.with.as_ref(), outer)?;
        let (with, target) = (update.with.as_ref(), Some(&update.table));
        let env = Env { ctes: names.all(), with, target, from: &update.from, ..outer.inner() };
        let Some(table) = self.open_changed(&update.table.name)? else {
            if env.depth == Depth::Run {
                self.update_index_row(update);
            }
            return Ok(());
        };
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
        let row_change = RowChange::update(&update.assignments, &update.table);
        let (mut rows, reads) = self.rows_of_change(&env, (table, &update.table), update.filter.as_ref());
        let mut earlier = None;
        if env.depth == Depth::Run && !rows.is_few() {
            earlier = self.earlier_same(table, update, update.keyword).filter(|_| tests_what_it_sets(update));
            rows = if earlier.is_some() { left_by_first_run(rows) } else { rows };
        }
        self.change(table, &row_change, env.depth)?;
        if env.depth == Depth::Run {
            self.hold_assigned(table, update, &rows);
            self.note_reads(reads, Some(update.keyword));
        }
        self.note_change(table, &row_change, rows, env.depth, update.keyword);
        self.note_earlier(table, update.keyword, earlier);
        Ok(())
    }

    pub(super) fn delete_rows(&mut self, delete: &Delete, outer: &Env<'_>) -> Run {
        let names = self.with_clause(delete.with.as_ref(), outer)?;
        let (with, target) = (delete.with.as_ref(), Some(&delete.table));
        let env = Env { ctes: names.all(), with, target, from: &delete.using, ..outer.inner() };
        let Some(table) = self.open_changed(&delete.table.name)? else { return Ok(()) };
        for item in &delete.using {
            self.read_from_item(item, &env)?;
        }
        self.expressions(&delete.filter, &env)?;
        self.output(&delete.returning, &env)?;
        let row_change = RowChange::new(DataChangeKind::Delete, delete.table.only, delete.table.name.range());
        let (mut rows, reads) = self.rows_of_change(&env, (table, &delete.table), delete.filter.as_ref());
        let mut earlier = None;
        if env.depth == Depth::Run && !rows.is_few() {
            earlier = self.earlier_same(table, delete, delete.keyword).filter(|_| delete.filter.is_some());
            rows = self.of_duplicates(table, delete, rows);
            rows = if earlier.is_some() { left_by_first_run(rows) } else { rows };
        }
        self.change(table, &row_change, env.depth)?;
        if env.depth == Depth::Run {
            self.note_reads(reads, Some(delete.keyword));
            if rows.is_whole() || delete.filter.as_ref().is_some_and(is_open_at_the_top) {
                self.catalog.relation_mut(table).tail_emptied = true;
            }
        }
        let empties = env.depth == Depth::Run && rows.extent == Extent::All;
        self.note_change(table, &row_change, rows, env.depth, delete.keyword);
        self.note_earlier(table, delete.keyword, earlier);
        // Last: the statement itself has all of the rows before it.
        if empties {
            self.note_deleted(table, delete.table.only);
        }
        Ok(())
    }

    /// The rows of an UPDATE or DELETE, and what it reads to find them.
    fn rows_of_change(
        &self,
        env: &Env<'_>,
        target: (Oid, &RelationRef),
        filter: Option<&Expr>,
    ) -> (Rows, Vec<MemberRead>) {
        if self.path.is_noted() {
            return (Rows::unknown_part(RowsReason::NotKnown), Vec::new());
        }
        let joined = Joined::new(self, env, Some(target), env.from, filter);
        (joined.rows_of(0), joined.reads(Wanted::default()))
    }

    /// The rows of a DELETE that keeps one row of each key.
    fn of_duplicates(&self, table: Oid, delete: &Delete, rows: Rows) -> Rows {
        match self.key_of_duplicates(table, delete) {
            Some(columns) if rows.bound().is_none() => Rows::unknown_part(RowsReason::Duplicates { columns }),
            _ => rows,
        }
    }

    /// Notes a DELETE of all rows, unless a policy, a rule or a trigger may keep some of them.
    fn note_deleted(&mut self, table: Oid, only: bool) {
        let children = if only { Vec::new() } else { self.descendants(table) };
        for oid in std::iter::once(table).chain(children) {
            let relation = self.catalog.relation(oid);
            let keeps = |trigger: &Arc<Trigger>| trigger.timing == TriggerTiming::Before && trigger.events.delete;
            let is_plain = relation.kind.is_table() && relation.rules.is_empty() && !relation.row_security;
            if is_plain && !relation.triggers.iter().any(keeps) {
                self.note_emptied(oid, EmptiedBy::Delete);
            }
        }
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
        let (with, target) = (merge.with.as_ref(), Some(&merge.table));
        let env = Env { ctes: names.all(), with, target, from: std::slice::from_ref(&merge.source), ..outer.inner() };
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
        let joined = Joined::new(self, &env, Some((table, &merge.table)), env.from, Some(&merge.on));
        let reads = joined.reads(Wanted::default());
        if env.depth == Depth::Run {
            self.note_reads(reads, Some(merge.keyword));
        }
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
                    RowChange::update(assignments, &merge.table)
                }
                MergeAction::Delete => RowChange::new(DataChangeKind::Delete, only, range),
                MergeAction::DoNothing => continue,
            };
            self.change(table, &change, env.depth)?;
            let rows = self.rows_of_branch(table, merge, branch, &env);
            self.note_change(table, &change, rows, env.depth, merge.keyword);
        }
        Ok(())
    }

    /// Refuses ON CONFLICT with a deferrable constraint, which cannot tell at once whether a row conflicts.
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

    /// How many rows a branch of MERGE affects.
    fn rows_of_branch(&self, table: Oid, merge: &Merge, branch: &MergeBranch, env: &Env<'_>) -> Rows {
        let filters = std::iter::once(&merge.on).chain(&branch.condition);
        let joined = Joined::new(self, env, Some((table, &merge.table)), env.from, filters);
        match (branch.matched, &branch.condition) {
            (MergeMatch::Matched, _) => joined.rows_of(0),
            (MergeMatch::NotMatchedByTarget, _) => Joined::new(self, env, None, env.from, &branch.condition).rows_of(0),
            (MergeMatch::NotMatchedBySource, None) => {
                let source = Joined::new(self, env, None, env.from, None).rows_of(0);
                let extent = if source.is_few() { Extent::Most } else { Extent::UnknownPart };
                Rows::new(extent, RowsReason::NotInSource)
            }
            (MergeMatch::NotMatchedBySource, Some(_)) => Rows::unknown_part(RowsReason::OtherCondition),
        }
    }

    /// Records the values that all rows have in the columns that an UPDATE sets.
    fn hold_assigned(&mut self, table: Oid, update: &Update, rows: &Rows) {
        if rows.bound() == Some(0) {
            return;
        }
        let columns: Vec<SmolStr> = update.assignments.iter().map(|one| one.column.text.clone()).collect();
        let values: Vec<Option<Held>> = (update.assignments.iter())
            .map(|one| match &one.value.kind {
                ExprKind::Literal(Literal::Null) if rows.extent == Extent::All => Some(Held::Null),
                ExprKind::Literal(_) if rows.extent == Extent::All => Some(Held::Value(Arc::new(one.value.clone()))),
                _ => None,
            })
            .collect();
        let value = |name: &SmolStr| {
            let at = columns.iter().position(|column| column == name)?;
            values.get(at).cloned().flatten()
        };
        for oid in std::iter::once(table).chain(self.descendants(table)) {
            self.hold(oid, &columns, value);
            let written = self.written_by_triggers(oid);
            self.hold(oid, &written, |_| None);
        }
    }

    /// The columns that triggers may give values when an UPDATE changes a row.
    fn written_by_triggers(&self, table: Oid) -> Vec<SmolStr> {
        let relation = self.catalog.relation(table);
        let fires = |trigger: &&Arc<Trigger>| {
            trigger.timing == TriggerTiming::Before
                && trigger.for_each_row
                && trigger.events.update
                && matches!(trigger.firing, Firing::Enable | Firing::EnableAlways)
        };
        let mut written: Vec<SmolStr> = Vec::new();
        for trigger in relation.triggers.iter().filter(fires) {
            let code = match self.catalog.get_function(trigger.function).map(|function| &*function.body) {
                Some(FunctionBody::Source { text, .. }) => Some(text.to_ascii_lowercase()),
                _ => None,
            };
            let may_write = |column: &SmolStr| match &code {
                Some(code) => code.contains(&column.to_ascii_lowercase()),
                _ => true,
            };
            written.extend(relation.columns.iter().map(|column| column.name.clone()).filter(may_write));
        }
        written
    }

    /// Opens the target of a data change; `None` for a system table.
    pub(super) fn open_changed(&mut self, name: &ObjectName) -> Run<Option<Oid>> {
        if self.is_system_relation(name) {
            self.note_reach_of_catalog(name);
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
        let RowChange { kind, ref columns, ref altered, only, range, .. } = *change;
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
        let mut tables = vec![oid];
        if partitioned || (kind != DataChangeKind::Insert && !only) {
            tables.extend(self.lock_descendants(oid, LockMode::RowExclusive, range));
        }
        for table in &tables {
            self.lock_indexes(*table, LockMode::RowExclusive, range);
        }
        if depth == Depth::Run {
            for table in &tables {
                self.check_replica_identity(*table, kind, range)?;
            }
            let changed = |table| ChangedRows { table, kind, columns: columns.clone(), altered: altered.clone() };
            self.run_triggers_of_rows(tables.into_iter().map(changed), range);
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
        let instead = has_instead_of(relation, kind);
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
                self.fire_all_triggers(view, kind, columns, range);
            }
            return Ok(());
        }
        if let Some(base) = base.filter(|base| self.catalog.get_relation(*base).is_some()) {
            self.lock(base, LockMode::RowExclusive, LockCause::Query, range);
            self.change(base, &self.change_behind(view, change), depth)?;
        }
        Ok(())
    }

    /// The table whose rows a change of a table or view affects.
    fn changed_table(&self, oid: Oid, kind: DataChangeKind) -> Option<Oid> {
        let mut at = oid;
        loop {
            let relation = self.catalog.get_relation(at)?;
            if relation.kind != RelationKind::View {
                return Some(at);
            }
            if has_instead_of(relation, kind) {
                return None;
            }
            // A view of another view is older than that.
            at = relation.view()?.references.first()?.0;
            if at == oid {
                return None;
            }
        }
    }

    /// Notes what the change does to the rows of tables.
    pub(super) fn note_change(&mut self, oid: Oid, change: &RowChange, rows: Rows, depth: Depth, range: TextRange) {
        if depth < Depth::Run {
            return;
        }
        let kind = change.kind;
        // What INSTEAD OF triggers do is noted where they do it.
        let Some(oid) = self.changed_table(oid, kind) else { return };
        let rows = self.repeated(oid, rows);
        if kind == DataChangeKind::Insert && self.catalog.relation(oid).kind == RelationKind::PartitionedTable {
            for child in self.descendants(oid) {
                self.fill(child, &rows);
            }
        }
        let changes_key = kind == DataChangeKind::Update && self.is_key(oid, change.altered.as_deref());
        self.change_data(oid, (kind, changes_key), rows.clone(), range);
        if kind == DataChangeKind::Delete {
            self.note_cascades(oid, &rows, range);
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

/// Whether an INSTEAD OF trigger takes such a change.
fn has_instead_of(relation: &Relation, kind: DataChangeKind) -> bool {
    relation.triggers.iter().any(|trigger| {
        let fires = match kind {
            DataChangeKind::Insert => trigger.events.insert,
            DataChangeKind::Update => trigger.events.update,
            DataChangeKind::Delete => trigger.events.delete,
        };
        fires && trigger.timing == TriggerTiming::InsteadOf
    })
}

/// `key > constant`: rows with the highest keys mostly stand at the end of the table.
fn is_open_at_the_top(filter: &Expr) -> bool {
    match &filter.kind {
        ExprKind::Operator { operator, form: pgvet_syntax::ast::OperatorForm::Plain, operands, .. } => {
            let [left, right] = operands.as_slice() else { return false };
            let above = matches!(operator.as_str(), ">" | ">=");
            above && matches!(left.kind, ExprKind::Column(_)) && matches!(right.kind, ExprKind::Literal(_))
        }
        _ => false,
    }
}
