//! Which rows a statement reads, and locks, of each table.

use super::{Joined, Source};
use crate::catalog::{Oid, RelationKind};
use crate::effect::{Read, Rows, RowsReason, ScanCause};
use crate::execute::Executor;
use crate::execute::query::{Depth, Env, RowLocks};
use crate::expression::{aggregates, yields_one_row};
use pgvet_syntax::ast::{FromItem, RowLockStrength, Select};
use pgvet_syntax::source::TextRange;

/// How much of the result of a query is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::execute::query) struct Wanted {
    /// The value of LIMIT, if it is known.
    pub(in crate::execute::query) limit: Option<u64>,
    /// Only the first rows: there is a LIMIT, or EXISTS or INTO around the query.
    pub(in crate::execute::query) first: bool,
    /// In a certain order, so that all rows are sorted first.
    pub(in crate::execute::query) ordered: bool,
}

/// The rows that are read of a member.
pub(in crate::execute::query) struct MemberRead {
    table: Oid,
    rows: Rows,
    row_lock: Option<(Rows, RowLockStrength)>,
    range: Option<TextRange>,
}

impl Joined<'_> {
    /// Returns the rows that are read of each table.
    pub(in crate::execute::query) fn reads(&self, wanted: Wanted) -> Vec<MemberRead> {
        let tables = (0..self.members.len()).filter_map(|at| match &self.members[at].source {
            Source::Table { oid, .. } => Some((at, *oid)),
            _ => None,
        });
        let read = |(at, table): (usize, Oid)| {
            let row_lock = self.env.row_locks.strength(&self.members[at].name);
            let row_lock = row_lock.map(|strength| (self.locked(at, wanted), strength));
            MemberRead { table, rows: self.read(at, wanted), row_lock, range: self.members[at].range }
        };
        tables.map(read).collect()
    }

    fn locked(&self, at: usize, wanted: Wanted) -> Rows {
        match (wanted.limit, wanted.first) {
            (None, true) => self.rows_of(at).or_less(Rows::unknown_part(RowsReason::GivenAtRunTime)),
            (limit, _) => self.rows_of(at).limited(limit),
        }
    }

    fn read(&self, at: usize, wanted: Wanted) -> Rows {
        // The planner does not know how few rows a new table holds, and may read the other side whole.
        if let Some(RowsReason::UniqueIndex { index }) = self.bounds[at].as_ref().map(|bound| &bound.reason) {
            let is_new = |bound: &super::Bound| bound.reason == RowsReason::FilledHere;
            if self.bounds.iter().enumerate().any(|(other, bound)| other != at && bound.as_ref().is_some_and(is_new)) {
                return Rows::unknown_part(RowsReason::Index { index: index.clone() });
            }
        }
        // Only statistics could tell the planner that all rows have the same value.
        let is_unknown_to_planner = |bound: &&super::Bound| {
            matches!(bound.reason, RowsReason::SameValue { .. } | RowsReason::NullSinceAdded { .. })
        };
        if let Some(bound) = self.bounds[at].as_ref().filter(|bound| !is_unknown_to_planner(bound)) {
            return Rows::at_most(bound.rows, bound.reason.clone());
        }
        let rows = self.rows_of(at);
        let found = self.found_by(at).filter(|_| !rows.is_whole());
        let is_alone = self.members.len() == 1 && self.conditions.is_empty();
        match found {
            Some(reason) => Rows::unknown_part(reason),
            None if wanted.first && !wanted.ordered => match wanted.limit.filter(|_| is_alone) {
                Some(limit) => Rows::at_most(limit, RowsReason::Limit),
                None => Rows::unknown_part(RowsReason::FirstRow),
            },
            None if rows.is_whole() => Rows::all(rows.reason),
            None => Rows::all(RowsReason::NoIndex),
        }
    }
}

impl Executor<'_> {
    /// Notes what a SELECT reads.
    pub(in crate::execute::query) fn note_select(&mut self, select: &Select, env: &Env<'_>, wanted: Wanted) {
        // Of a trial that asks for locks alone, rows matter if they are locked.
        let is_omitted = self.path.is_noted() && matches!(env.row_locks, RowLocks::None);
        if env.depth < Depth::Run || select.from.is_empty() || is_omitted {
            return;
        }
        let is_grouped = !select.group_by.is_empty() || yields_one_row(select);
        let wanted =
            if is_grouped || select.distinct.is_some() && wanted.limit.is_none() { Wanted::default() } else { wanted };
        let end = match &select.from[..] {
            [FromItem::Relation(only)] if select.filter.is_none() && !env.is_cte(&only.name) => {
                self.find(&only.name).filter(|oid| self.asks_for_ends(select, *oid))
            }
            _ => None,
        };
        let mut reads = Joined::new(self, env, None, &select.from, &select.filter).reads(wanted);
        if let (Some(table), [read]) = (end, reads.as_mut_slice())
            && read.table == table
        {
            let calls: usize = select.targets.iter().map(|target| aggregates(&target.value).len()).sum();
            read.rows = Rows::at_most(calls as u64, RowsReason::EndOfIndex);
        }
        self.note_reads(reads, None);
    }

    /// Notes what is read, at `range` where the table is the target of a change.
    pub(in crate::execute::query) fn note_reads(&mut self, reads: Vec<MemberRead>, target: Option<TextRange>) {
        for MemberRead { table, rows, row_lock, range } in reads {
            let Some(range) = range.or(target) else { continue };
            let kind = self.catalog.relation(table).kind;
            if !matches!(kind, RelationKind::Table | RelationKind::PartitionedTable | RelationKind::MaterializedView) {
                continue;
            }
            let rows = self.repeated(table, rows);
            let row_lock = row_lock.map(|(rows, strength)| (self.repeated(table, rows), strength));
            if rows.extent == crate::effect::Extent::All && kind != RelationKind::PartitionedTable {
                self.scan(table, ScanCause::Query, range);
            }
            let relation = self.relation_name(table);
            self.effects.reads.push(Read { relation, rows, row_lock, range });
        }
    }
}
