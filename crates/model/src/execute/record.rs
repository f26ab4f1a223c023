//! Records effects, and keeps what follows from them: locks held by the transaction, tables that hold rows.

use super::Executor;
use crate::catalog::{Birth, Copied, Dropped, DroppedRule, Emptied, EmptiedBy, Oid, Omitted, Relation, RelationKind};
use crate::effect::{
    ChangeAction, ChangedObject, DataChange, DataChangeKind, IndexBuild, IndexBuildCause, Lock, LockCause,
    ObjectChange, PartitionWork, PartitionWorkKind, RelationName, Rewrite, RewriteCause, Rows, Scan, ScanCause,
    Visibility,
};
use crate::place::Place;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// The relation as effects name it.
    pub(crate) fn relation_name(&self, oid: Oid) -> RelationName {
        let (relation, visibility) = (self.catalog.relation(oid), self.visibility(oid));
        let few = if visibility == Visibility::Existing { self.few_rows(relation) } else { None };
        RelationName { visibility, few, ..RelationName::existing(relation) }
    }

    /// Who can see the relation, now.
    pub(crate) fn visibility(&self, oid: Oid) -> Visibility {
        let relation = self.catalog.relation(oid);
        let birth = relation.birth;
        if !self.is_new(relation) {
            // A temporary table of an earlier deployment is gone or belongs to this session alone.
            if relation.is_temporary() {
                return Visibility::SameTransaction { filled: birth.filled };
            }
            return Visibility::Existing;
        }
        if birth.transaction == self.transaction || relation.is_temporary() {
            Visibility::SameTransaction { filled: birth.filled }
        } else {
            Visibility::SameDeployment { filled: birth.filled }
        }
    }

    /// Takes a lock.
    pub(crate) fn lock(&mut self, oid: Oid, mode: LockMode, cause: LockCause, range: TextRange) {
        let branches = self.branches();
        if self.created.contains(&oid) || self.effects.locks.holds_in(oid, mode, &branches) {
            return;
        }
        if mode >= LockMode::ShareUpdateExclusive && cause != LockCause::Parent {
            self.note_unknown_parts(oid);
        }
        let relation = self.relation_name(oid);
        let settings = &self.session.settings;
        let patience = settings.timeout("lock_timeout").filter(|_| !settings.is_doubtful("lock_timeout"));
        self.effects.locks.push(Lock { relation, mode, cause, range, patience, branches });
    }

    /// Notes that a relation, or the table of an index, has parts that are not known.
    pub(crate) fn note_unknown_parts(&mut self, oid: Oid) {
        let relation = self.catalog.relation(oid);
        let table = relation.index().and_then(|index| self.catalog.get_relation(index.table));
        if relation.unknown_parts || table.is_some_and(|table| table.unknown_parts) {
            let name = &table.map_or(relation, |table| table).name;
            self.unknown(format!("partitions of `{name}` that run time names are not known"));
        }
    }

    /// Locks every index of a table.
    pub(crate) fn lock_indexes(&mut self, table: Oid, mode: LockMode, range: TextRange) {
        for index in self.catalog.relation(table).indexes.clone() {
            self.lock(index, mode, LockCause::Part, range);
        }
    }

    /// The strongest lock that the statement holds on a relation so far.
    pub(crate) fn lock_held(&self, oid: Oid) -> LockMode {
        self.effects.locks.strongest(oid).unwrap_or(LockMode::AccessShare)
    }

    /// Reads a table in full. Partitioned tables have no rows of their own.
    pub(crate) fn scan(&mut self, oid: Oid, cause: ScanCause, range: TextRange) {
        let relation = self.relation_name(oid);
        let same = |scan: &Scan| scan.relation.oid == oid && scan.cause == cause;
        if !self.created.contains(&oid) && !self.effects.scans.iter().any(same) {
            let lock = self.lock_held(oid);
            self.effects.scans.push(Scan { relation, cause, lock, range });
        }
    }

    /// Notes a rewrite that PostgreSQL skips only in UTC. What has no rows of its own is left alone.
    pub(crate) fn rewrite_unless_utc(&mut self, oid: Oid, cause: RewriteCause, range: TextRange) {
        let relation = self.relation_name(oid);
        if relation.kind.is_table() && relation.kind != RelationKind::PartitionedTable && !self.created.contains(&oid) {
            self.effects.rewrites_unless_utc.push(Rewrite { relation, cause, range });
        }
    }

    /// Notes work on the partitions of a table of an earlier deployment if the migrations show none: programs often
    /// create partitions. Returns whether it did.
    pub(crate) fn partition_work(&mut self, oid: Oid, kind: PartitionWorkKind, range: TextRange) -> bool {
        let table = self.catalog.relation(oid);
        if table.kind != RelationKind::PartitionedTable || !table.children.is_empty() {
            return false;
        }
        let relation = self.relation_name(oid);
        let is_existing = relation.visibility == Visibility::Existing;
        if is_existing {
            self.effects.partition_work.push(PartitionWork { relation, kind, range });
        }
        is_existing
    }

    /// Notes a check of the rows of partitions that the migrations do not show, and what it demands of them.
    pub(crate) fn check_partitions(&mut self, oid: Oid, cause: ScanCause, range: TextRange) {
        if self.partition_work(oid, PartitionWorkKind::Scan(cause.clone()), range) {
            self.demand_of_check(oid, &cause, range);
        }
    }

    /// Gives a table new storage and builds its indexes again.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/cluster.c`, `finish_heap_swap`.
    pub(crate) fn rewrite(&mut self, oid: Oid, cause: RewriteCause, range: TextRange) {
        if self.created.contains(&oid) || self.effects.rewrites.iter().any(|rewrite| rewrite.relation.oid == oid) {
            return;
        }
        let relation = self.relation_name(oid);
        self.effects.rewrites.push(Rewrite { relation, cause, range });
        self.scan(oid, ScanCause::Rewrite, range);
        for index in self.catalog.relation(oid).indexes.clone() {
            self.lock(index, LockMode::AccessExclusive, LockCause::Part, range);
            self.build_index(index, IndexBuildCause::Rewrite, false, range);
        }
    }

    /// Builds an index that is in the catalog; the caller records the scan of the table.
    pub(crate) fn build_index(&mut self, index: Oid, cause: IndexBuildCause, concurrently: bool, range: TextRange) {
        if self.effects.index_builds.iter().any(|build| build.index.oid == index) {
            return;
        }
        let Some(table) = self.catalog.relation(index).index().map(|index| index.table) else { return };
        let (index, table) = (self.relation_name(index), self.relation_name(table));
        self.effects.index_builds.push(IndexBuild { index, table, cause, concurrently, range });
    }

    /// Notes that this statement made a relation.
    pub(crate) fn created(&mut self, oid: Oid) {
        self.created.insert(oid);
        self.grant_default_privileges(oid);
        let name = self.relation_name(oid);
        self.effects.creates.push(name);
    }

    /// Notes a change of an object that is no relation.
    pub(crate) fn change_object(&mut self, object: ChangedObject, action: ChangeAction, range: TextRange) {
        self.effects.changes.push(ObjectChange { object, action, range });
    }

    /// Notes a change of rows; a table that gets rows is filled from now on.
    pub(crate) fn change_data(
        &mut self,
        oid: Oid,
        (kind, changes_key): (DataChangeKind, bool),
        rows: Rows,
        range: TextRange,
    ) {
        let relation = self.relation_name(oid);
        if kind == DataChangeKind::Insert {
            self.fill(oid, &rows);
        }
        if self.catalog.relation(oid).birth.changed_in != self.deployment {
            self.catalog.relation_mut(oid).birth.changed_in = self.deployment;
        }
        let checked_at_commit = rows.bound() != Some(0) && self.is_checked_at_commit(oid, kind);
        let change = DataChange {
            relation,
            kind,
            changes_key,
            rows,
            by_trigger: false,
            checked_at_commit,
            repeats: None,
            range,
        };
        self.effects.data_changes.push(change);
    }

    /// Whether a foreign key that is INITIALLY DEFERRED queues a check for such a change.
    pub(crate) fn is_checked_at_commit(&self, table: Oid, kind: DataChangeKind) -> bool {
        match kind {
            DataChangeKind::Insert => {
                let mut constraints = self.catalog.relation(table).constraints.iter();
                constraints.any(|constraint| constraint.initially_deferred && constraint.foreign_key().is_some())
            }
            DataChangeKind::Delete => {
                self.catalog.foreign_keys_to(table).iter().any(|(_, constraint)| constraint.initially_deferred)
            }
            // Only where a key column really changes.
            DataChangeKind::Update => false,
        }
    }

    /// Notes that a constraint or unique index is gone: the rows that are there still meet it.
    pub(crate) fn note_dropped(&mut self, table: Oid, rule: DroppedRule) {
        let (deployment, transaction) = (self.deployment, self.transaction);
        let dropped = &mut self.catalog.relation_mut(table).dropped;
        if dropped.first().is_some_and(|other| other.deployment != deployment) {
            dropped.clear();
        }
        dropped.push(Dropped { rule, deployment, transaction });
    }

    /// Notes that a statement inserts rows of tables that it has read since `read_before`.
    /// `omitted` has the tables of which it does not insert all.
    pub(crate) fn note_copies(&mut self, into: Oid, read_before: usize, omitted: &[(Oid, Omitted)], range: TextRange) {
        let sources: Vec<(Oid, bool)> = (self.effects.reads[read_before..].iter())
            .filter(|read| read.relation.kind.is_table() && read.relation.oid != into && !read.rows.is_few())
            .map(|read| (read.relation.oid, read.rows.is_whole()))
            .collect();
        for (from, is_whole) in sources {
            let copied = Copied {
                from,
                deployment: self.deployment,
                transaction: self.transaction,
                writes_blocked: self.blocks_writes(from),
                is_whole,
                omits: omitted.iter().find(|(oid, _)| *oid == from).map(|(_, omitted)| omitted.clone()),
                parts: 1,
                statement: self.place.range,
                place: Place { range: self.in_file(range), ..self.place },
            };
            self.catalog.note_copy(into, copied);
        }
    }

    /// Notes that a table has no rows after a statement, unless a condition decides whether it runs.
    pub(crate) fn note_emptied(&mut self, oid: Oid, by: EmptiedBy) {
        let emptied = Emptied { transaction: self.transaction, by };
        if !self.is_guarded() {
            self.catalog.relation_mut(oid).birth.emptied = Some(emptied);
        }
    }

    /// How this transaction has emptied a table, if nothing has inserted rows since.
    pub(crate) fn emptied(&self, relation: &Relation) -> Option<Emptied> {
        relation.birth.emptied.filter(|emptied| emptied.transaction == self.transaction)
    }

    /// Notes that a table has got rows. Those of a script that production does not run are no evidence for others.
    pub(crate) fn fill(&mut self, oid: Oid, rows: &Rows) {
        let birth = self.catalog.relation(oid).birth;
        if rows.bound() == Some(0) || (!self.in_production && !birth.is_of(self.deployment)) {
            return;
        }
        // Of code, only whether there are many is counted.
        let is_counted = self.text_at == Some(0);
        let many = birth.many || !self.is_run_once() || !rows.is_few();
        let before = if birth.filled { birth.at_most } else { Some(0) };
        let more = rows.bound().map(|each| each.saturating_mul(self.times_sent));
        let at_most = before.zip(more).filter(|_| is_counted).map(|(before, more)| before.saturating_add(more));
        if !birth.filled
            || birth.many != many
            || birth.at_most != at_most
            || birth.empty_in.is_some()
            || birth.emptied.is_some()
        {
            let filled_in = if birth.filled { birth.filled_in } else { self.deployment };
            self.catalog.relation_mut(oid).birth =
                Birth { filled: true, many, at_most, filled_in, empty_in: None, emptied: None, ..birth };
        }
    }
}
