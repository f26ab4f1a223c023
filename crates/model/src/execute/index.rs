//! CREATE INDEX, and the indexes of constraints.

mod check;
mod names;
mod parts;

use super::{Executor, Run, fail};
use crate::catalog::{Constraint, ConstraintKind, Index, Oid, Relation, RelationDetail, RelationKind};
use crate::effect::{IndexBuildCause, LockCause, PartitionWorkKind, ScanCause};
use imbl::OrdSet;
use pgvet_syntax::ast::{CreateIndex, Expr, ExprKind, IndexElement, LockMode, Name};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

/// An index to be made, whatever syntax asked for it.
#[derive(Debug, Clone)]
pub(crate) struct IndexDefinition {
    /// `None`: PostgreSQL chooses the name.
    pub(crate) name: Option<SmolStr>,
    pub(crate) unique: bool,
    pub(crate) primary: bool,
    pub(crate) exclusion: bool,
    /// Belongs to a constraint, so that a made-up name must be free for one and ends in `pkey`, `key` or `excl`.
    pub(crate) constraint: bool,
    pub(crate) nulls_not_distinct: bool,
    pub(crate) operators: Vec<SmolStr>,
    pub(crate) method: SmolStr,
    pub(crate) elements: Vec<IndexElement>,
    pub(crate) including: Vec<SmolStr>,
    /// Those of the index that it is made after.
    pub(crate) column_names: Option<Vec<SmolStr>>,
    pub(crate) predicate: Option<Expr>,
    pub(crate) concurrently: bool,
    /// ON ONLY: not in the partitions.
    pub(crate) only: bool,
    /// Of a constraint that is checked later, by a trigger.
    pub(crate) deferrable: bool,
    pub(crate) initially_deferred: bool,
    pub(crate) cause: IndexBuildCause,
    pub(crate) range: TextRange,
}

impl IndexDefinition {
    /// The constraint that the index implements.
    pub(crate) fn constraint_kind(&self, columns: Vec<SmolStr>, index: Oid) -> ConstraintKind {
        if self.primary {
            ConstraintKind::PrimaryKey { columns, index }
        } else if self.exclusion {
            ConstraintKind::Exclude { index }
        } else {
            ConstraintKind::Unique { columns, index }
        }
    }
}

/// The keys of a constraint: its columns.
pub(crate) fn plain_elements(columns: &[Name]) -> Vec<IndexElement> {
    let key = |column: &Name| Expr { kind: ExprKind::Column(vec![column.text.clone()]), range: column.range };
    let element = |column| IndexElement {
        key: key(column),
        collation: None,
        operator_class: None,
        descending: false,
        nulls_first: None,
    };
    columns.iter().map(element).collect()
}

impl Executor<'_> {
    /// CREATE INDEX.
    ///
    /// Source: PostgreSQL 18, `src/backend/tcop/utility.c`, `ProcessUtilitySlow`, and `indexcmds.c`, `DefineIndex`.
    pub(super) fn create_index(&mut self, statement: &CreateIndex) -> Run {
        if statement.concurrently && self.in_block {
            let reason = "CREATE INDEX CONCURRENTLY cannot run inside a transaction block";
            return fail("25001", reason, statement.keyword);
        }
        if statement.nulls_not_distinct && !self.target.at_least(15) {
            return fail("42601", "syntax error at or near \"NULLS\"", statement.keyword);
        }
        let mode = if statement.concurrently { LockMode::ShareUpdateExclusive } else { LockMode::Share };
        let table = self.open(&statement.table, RelationKind::Table, mode)?;
        let relation = self.catalog.relation(table);
        // Nobody else sees a temporary table, so PostgreSQL drops the CONCURRENTLY.
        let concurrently = statement.concurrently && !relation.is_temporary();
        if statement.concurrently && !concurrently {
            self.lock(table, LockMode::Share, LockCause::Target, statement.table.range());
        }
        let relation = self.catalog.relation(table);
        let partitioned = relation.kind == RelationKind::PartitionedTable;
        if partitioned && !statement.only {
            let partitions = self.lock_descendants(table, mode, statement.table.range());
            self.check_foreign_partitions(&partitions, statement.unique, statement.table.range())?;
        }
        let definition = IndexDefinition {
            name: statement.name.as_ref().map(|name| name.text.clone()),
            unique: statement.unique,
            primary: false,
            exclusion: false,
            constraint: false,
            nulls_not_distinct: statement.nulls_not_distinct,
            operators: Vec::new(),
            method: statement.method.clone(),
            elements: statement.elements.clone(),
            including: statement.including.iter().map(|name| name.text.clone()).collect(),
            column_names: None,
            predicate: statement.predicate.clone(),
            concurrently,
            only: statement.only,
            deferrable: false,
            initially_deferred: false,
            cause: IndexBuildCause::CreateIndex,
            range: statement.keyword,
        };
        self.check_index(table, &definition)?;
        if statement.if_not_exists
            && let Some(name) = &definition.name
            && self.catalog.relation_named(&self.catalog.relation(table).schema, name).is_some()
        {
            return Ok(());
        }
        let created = self.effects.creates.len();
        let index = self.define_index(table, &definition)?;
        if let Some(tablespace) = &statement.tablespace {
            self.catalog.relation_mut(index).tablespace = Some(tablespace.clone());
        }
        self.count_catalog_rows(created);
        Ok(())
    }

    fn check_foreign_partitions(&self, partitions: &[Oid], unique: bool, range: TextRange) -> Run {
        let foreign = |oid: &&Oid| self.catalog.relation(**oid).kind == RelationKind::ForeignTable;
        match partitions.iter().find(foreign) {
            Some(partition) if unique => {
                let name = &self.catalog.relation(*partition).name;
                fail("42809", format!("a unique index cannot be made on the foreign partition \"{name}\""), range)
            }
            _ => Ok(()),
        }
    }

    /// Makes an index on a table that the caller has locked, with its counterparts in all partitions, records locks on
    /// the partitions, builds and scans, and returns the index. For constraints the caller adds the constraint; those
    /// of the partitions are added here.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `DefineIndex`.
    pub(crate) fn define_index(&mut self, table: Oid, definition: &IndexDefinition) -> Run<Oid> {
        self.make_index(table, definition, None)
    }

    /// Makes the counterpart of a parent's index in a partition, attached to it, with its constraint where the parent's
    /// has one.
    pub(super) fn define_partition_index(&mut self, table: Oid, parent_index: Oid, range: TextRange) -> Run<Oid> {
        self.lock(parent_index, LockMode::ShareUpdateExclusive, LockCause::Part, range);
        let definition = self.definition_of(parent_index, range);
        let index = self.make_index(table, &definition, Some(parent_index))?;
        if definition.constraint {
            self.add_partition_constraint(table, index, &definition, true);
        }
        Ok(index)
    }

    /// Makes an index like one of another table, as LIKE ... INCLUDING INDEXES does.
    pub(super) fn copy_index(&mut self, table: Oid, source: Oid, range: TextRange) -> Run {
        let definition = IndexDefinition { cause: IndexBuildCause::CreateIndex, ..self.definition_of(source, range) };
        let index = self.make_index(table, &definition, None)?;
        if definition.constraint {
            self.add_partition_constraint(table, index, &definition, false);
        }
        Ok(())
    }

    fn make_index(&mut self, table: Oid, definition: &IndexDefinition, parent: Option<Oid>) -> Run<Oid> {
        self.check_index(table, definition)?;
        let relation = self.catalog.relation(table);
        let (schema, persistence) = (relation.schema.clone(), relation.persistence);
        let partitioned = relation.kind == RelationKind::PartitionedTable;
        let name = match &definition.name {
            Some(name) => name.clone(),
            None => self.choose_index_name(table, definition),
        };
        if let Some(taken) = self.catalog.relation_named(&schema, &name) {
            let reason = format!("relation \"{name}\" already exists");
            return self.refuse_taken_name(taken, reason, definition.range);
        }
        if definition.constraint {
            self.check_constraint_is_new(table, &Name::new(name.clone(), definition.range))?;
        }
        let (elements, predicate) = self.keys_and_predicate(table, definition, parent);
        let oid = self.catalog.new_oid();
        let kind = if partitioned { RelationKind::PartitionedIndex } else { RelationKind::Index };
        let mut index = Relation::new(oid, schema, name, kind, self.birth(true));
        index.persistence = persistence;
        index.detail = RelationDetail::Index(Arc::new(Index {
            table,
            unique: definition.unique,
            primary: definition.primary,
            exclusion: definition.exclusion,
            nulls_not_distinct: definition.nulls_not_distinct,
            operators: definition.operators.clone(),
            // An index of ON ONLY becomes valid when every partition has its part.
            valid: !(partitioned && definition.only && !self.descendants(table).is_empty()),
            method: definition.method.clone(),
            elements,
            including: definition.including.clone(),
            column_names: definition.names_of_columns(),
            predicate,
            parent: None,
            parts: OrdSet::new(),
            clustered: false,
        }));
        self.catalog.add_relation(index);
        let owner = self.catalog.relation_mut(table);
        owner.indexes.push(oid);
        if definition.unique {
            owner.unique_indexes.push(oid);
        }
        owner.unattached_indexes.push(oid);
        if parent.is_some() {
            self.set_index_parent(oid, parent);
        }
        self.created(oid);
        if partitioned {
            if !definition.only {
                self.index_partitions(table, oid, definition)?;
                let kind = PartitionWorkKind::IndexBuild(definition.cause.clone());
                if self.partition_work(table, kind, definition.range) {
                    self.demand_of_index(table, oid, definition.concurrently, definition.range);
                }
            }
        } else {
            self.effects.waits_for_transactions |= definition.concurrently;
            self.scan(table, ScanCause::IndexBuild, definition.range);
            self.build_index(oid, definition.cause.clone(), definition.concurrently, definition.range);
            self.demand_of_index(table, oid, definition.concurrently, definition.range);
        }
        Ok(oid)
    }

    /// What the index covers. Parts of an index share the keys and the predicate of the whole.
    fn keys_and_predicate(
        &self,
        table: Oid,
        definition: &IndexDefinition,
        parent: Option<Oid>,
    ) -> (Arc<Vec<IndexElement>>, Option<Arc<Expr>>) {
        match parent.and_then(|parent| self.catalog.relation(parent).index()) {
            Some(whole) => (Arc::clone(&whole.elements), whole.predicate.clone()),
            None => (self.stored_keys(table, &definition.elements), definition.predicate.clone().map(Arc::new)),
        }
    }

    /// The keys as the index has them: an expression that is nothing but a column is that column.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ComputeIndexAttrs`.
    pub(super) fn stored_keys(&self, table: Oid, elements: &[IndexElement]) -> Arc<Vec<IndexElement>> {
        let mut stored = elements.to_vec();
        for element in stored.iter_mut().filter(|element| element.key.as_column().is_none()) {
            let scope = self.scope_of(table);
            let column = self.with_analyzer(|analyzer| analyzer.column_behind_casts(&element.key, &scope).cloned());
            if let Some(column) = column {
                element.key.kind = ExprKind::Column(vec![column]);
            }
        }
        Arc::new(stored)
    }

    /// Gives every partition the index: one that is there already is attached, otherwise one is built.
    fn index_partitions(&mut self, table: Oid, index: Oid, definition: &IndexDefinition) -> Run {
        // The index of a constraint is made by ALTER TABLE, which locks the partitions as the table since 18.
        let strong = definition.constraint && self.target.at_least(18);
        let mode = match strong {
            true => LockMode::AccessExclusive,
            // The trigger goes to the partitions, too.
            false if definition.deferrable => LockMode::ShareRowExclusive,
            false => LockMode::Share,
        };
        for partition in self.catalog.relation(table).children.clone() {
            self.lock(partition, mode, LockCause::Child, definition.range);
            if self.catalog.relation(partition).kind == RelationKind::ForeignTable {
                self.check_foreign_partitions(&[partition], definition.unique, definition.range)?;
                continue;
            }
            if !self.attach_matching_index(partition, index, mode, definition.range) {
                let column_names = Some(definition.names_of_columns());
                let child = IndexDefinition { name: None, column_names, ..definition.clone() };
                let child_index = self.make_index(partition, &child, Some(index))?;
                if definition.constraint {
                    self.add_partition_constraint(partition, child_index, definition, true);
                }
            }
        }
        Ok(())
    }

    /// Attaches the first index of a partition that is equal to the parent's. False if there is none.
    ///
    /// PostgreSQL opens, and so locks, each index that it compares.
    pub(super) fn attach_matching_index(
        &mut self,
        partition: Oid,
        parent_index: Oid,
        mode: LockMode,
        range: TextRange,
    ) -> bool {
        for candidate in self.catalog.relation(partition).unattached_indexes.clone() {
            self.lock(candidate, mode, LockCause::Part, range);
            if self.is_counterpart(partition, candidate, parent_index) {
                self.lock(parent_index, LockMode::ShareUpdateExclusive, LockCause::Part, range);
                self.set_index_parent(candidate, Some(parent_index));
                if let Some(name) = self.constraint_of_index(partition, candidate) {
                    self.inherit_constraint(partition, &name, true);
                }
                return true;
            }
        }
        false
    }

    /// Whether the index of a partition can be attached to the parent's.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/index.c`, `CompareIndexInfo`.
    pub(super) fn is_counterpart(&self, partition: Oid, candidate: Oid, parent_index: Oid) -> bool {
        let (candidate_relation, parent_relation) =
            (self.catalog.relation(candidate), self.catalog.relation(parent_index));
        let (Some(ours), Some(parents)) = (candidate_relation.index(), parent_relation.index()) else { return false };
        let same_predicate = match (&ours.predicate, &parents.predicate) {
            (None, None) => true,
            (Some(ours), Some(parents)) => ours.is_same(parents),
            _ => false,
        };
        ours.unique == parents.unique
            && ours.exclusion == parents.exclusion
            && ours.nulls_not_distinct == parents.nulls_not_distinct
            && ours.method == parents.method
            && ours.including == parents.including
            && same_predicate
            && ours.elements.len() == parents.elements.len()
            && ours.elements.iter().zip(parents.elements.iter()).all(|(ours, parents)| same_element(ours, parents))
            && (self.constraint_of_index(parents.table, parent_index).is_none()
                || self.constraint_of_index(partition, candidate).is_some())
    }

    /// Marks a constraint as having one parent more. What partitions inherit is never local.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_constraint.c`, `ConstraintSetParentConstraint`;
    /// `src/backend/commands/tablecmds.c`, `MergeConstraintsIntoExisting`.
    pub(super) fn inherit_constraint(&mut self, table: Oid, name: &str, by_partition: bool) {
        self.update_constraint(table, name, |constraint| {
            constraint.inherited_from += 1;
            constraint.is_local &= !by_partition;
        });
    }

    /// Marks a constraint as having one parent less.
    pub(super) fn disinherit_constraint(&mut self, table: Oid, name: &str) {
        self.update_constraint(table, name, |constraint| {
            constraint.inherited_from = constraint.inherited_from.saturating_sub(1);
            constraint.is_local = true;
        });
    }

    /// The name of the constraint that an index implements.
    pub(super) fn constraint_of_index(&self, table: Oid, index: Oid) -> Option<SmolStr> {
        let relation = self.catalog.get_relation(table)?;
        let of_index = |constraint: &&Arc<Constraint>| constraint.index() == Some(index);
        let found = self.catalog.get_relation(index);
        if found.and_then(|found| found.index()).is_some_and(|index| !index.unique && !index.exclusion) {
            return None;
        }
        // Usually both have one name.
        let constraint = found.and_then(|found| relation.constraint(&found.name)).filter(of_index);
        Some(constraint.or_else(|| relation.constraints.iter().find(of_index))?.name.clone())
    }

    /// Returns the definition of an index like this one in a partition.
    pub(super) fn definition_of(&self, index_oid: Oid, range: TextRange) -> IndexDefinition {
        let relation = self.catalog.relation(index_oid);
        let index = relation.index().expect("the indexes of a table are indexes");
        let table = self.catalog.get_relation(index.table);
        let constraint = table.and_then(|table| table.constraints.iter().find(|one| one.index() == Some(index_oid)));
        IndexDefinition {
            name: None,
            unique: index.unique,
            primary: index.primary,
            exclusion: index.exclusion,
            constraint: constraint.is_some(),
            nulls_not_distinct: index.nulls_not_distinct,
            operators: index.operators.clone(),
            method: index.method.clone(),
            elements: index.elements.to_vec(),
            including: index.including.clone(),
            column_names: Some(index.column_names.clone()),
            predicate: index.predicate.as_deref().cloned(),
            concurrently: false,
            only: false,
            deferrable: constraint.is_some_and(|constraint| constraint.deferrable),
            initially_deferred: constraint.is_some_and(|constraint| constraint.initially_deferred),
            cause: IndexBuildCause::Partition,
            range,
        }
    }

    fn add_partition_constraint(&mut self, table: Oid, index: Oid, definition: &IndexDefinition, inherited: bool) {
        let columns: Vec<SmolStr> =
            definition.elements.iter().filter_map(|element| element.key.as_column().cloned()).collect();
        let kind = definition.constraint_kind(columns, index);
        let name = self.catalog.relation(index).name.clone();
        let constraint = Constraint {
            deferrable: definition.deferrable,
            initially_deferred: definition.initially_deferred,
            is_local: !inherited,
            inherited_from: u16::from(inherited),
            ..Constraint::new(name, kind)
        };
        self.catalog.add_constraint(table, constraint);
    }
}

pub(crate) fn same_element(ours: &IndexElement, parents: &IndexElement) -> bool {
    let nulls_first = |element: &IndexElement| element.nulls_first.unwrap_or(element.descending);
    ours.key.is_same(&parents.key)
        && ours.collation == parents.collation
        && ours.operator_class == parents.operator_class
        && ours.descending == parents.descending
        && nulls_first(ours) == nulls_first(parents)
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;
    use crate::execute::testing::{check, effects_on};
    use crate::routine::Trial;
    use crate::version::PgVersion;
    use pgvet_syntax::ast::from_pg::parse_sql;

    const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, a int, b text); ";
    const PARTITIONED: &str = "CREATE TABLE p (id int, k int) PARTITION BY RANGE (k);
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE INDEX mine ON p1 (id); ";

    #[test]
    fn names_are_made_as_postgresql_makes_them() {
        for (sql, name) in [
            ("CREATE INDEX ON t (a, b)", "t_a_b_idx"),
            ("CREATE INDEX ON t (lower(b), (a + 1), a, (a + 2))", "t_lower_expr_a_expr1_idx"),
            ("CREATE INDEX ON t (a) INCLUDE (b)", "t_a_b_idx"),
        ] {
            let (create, build) = (format!("create public.{name}"), format!("build public.{name}"));
            check(TABLE, sql, &[&build, &create, "lock public.t Share", "scan public.t"]);
        }
        let history = format!("{TABLE} CREATE INDEX ON t (a);");
        let expected = ["build public.t_a_idx1", "create public.t_a_idx1", "lock public.t Share", "scan public.t"];
        check(&history, "CREATE INDEX ON t (a)", &expected);
    }

    #[test]
    fn keys_have_at_most_32_columns() {
        let names = |count: usize| (0..count).map(|at| format!("c{at}")).collect::<Vec<_>>().join(",");
        let columns = (0..40).map(|at| format!("c{at} int,")).collect::<Vec<_>>().concat();
        let (most, more) = (names(32), names(33));
        let history = format!("CREATE TABLE k ({columns} PRIMARY KEY ({most}));");
        for (sql, refused) in [
            (format!("CREATE INDEX ON k ({more})"), true),
            (format!("CREATE INDEX ON k ({most}) INCLUDE (c33)"), true),
            (format!("ALTER TABLE k ADD UNIQUE ({more})"), true),
            (format!("CREATE TABLE u ({columns} UNIQUE ({more}))"), true),
            (format!("CREATE TABLE f ({columns} FOREIGN KEY ({more}) REFERENCES k)"), true),
            (format!("CREATE TABLE f ({columns} FOREIGN KEY (c1) REFERENCES k ({more}))"), true),
            (format!("CREATE TABLE p ({columns} z int) PARTITION BY RANGE ({more})"), true),
            (format!("CREATE STATISTICS s ON {} FROM k", names(9)), true),
            (format!("CREATE INDEX ON k ({most})"), false),
            (format!("CREATE TABLE f ({columns} FOREIGN KEY ({most}) REFERENCES k)"), false),
            (format!("CREATE TABLE p ({columns} z int) PARTITION BY RANGE ({most})"), false),
            (format!("CREATE STATISTICS s ON {} FROM k", names(8)), false),
        ] {
            let failure = effects_on(18, &history, &sql).fails.map(|failure| failure.sqlstate);
            assert_eq!(failure, refused.then_some("54011"), "{sql}");
        }
    }

    /// Only what is not attached is compared with an index of the parent.
    #[test]
    fn attached_indexes_are_known_to_both() {
        let history = "CREATE TABLE p (id int, k int) PARTITION BY RANGE (k);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE INDEX i ON p (id); CREATE INDEX j ON p1 (k);";
        let mut trial = Trial::new(&Catalog::new(), &vec!["public".into()].into(), PgVersion(18));
        let mut run = |sql: &str| {
            parse_sql(sql).unwrap().iter().for_each(|statement| drop(trial.run(statement)));
            trial.catalog().clone()
        };
        let named = |catalog: &Catalog, name: &str| catalog.relation_named("public", name).unwrap();
        let parts = |catalog: &Catalog| catalog.relation(named(catalog, "i")).index().unwrap().parts.len();
        let unattached = |catalog: &Catalog| catalog.relation(named(catalog, "p1")).unattached_indexes.len();
        let catalog = run(history);
        assert_eq!((parts(&catalog), unattached(&catalog)), (1, 1));
        let catalog = run("ALTER TABLE p DETACH PARTITION p1");
        assert_eq!((parts(&catalog), unattached(&catalog)), (0, 2));
        let catalog = run("ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10); DROP INDEX j");
        assert_eq!((parts(&catalog), unattached(&catalog)), (1, 0));
        let catalog = run("DROP INDEX i");
        assert_eq!(unattached(&catalog), 0);
    }

    #[test]
    fn if_not_exists_locks_and_does_nothing() {
        let history = format!("{TABLE} CREATE INDEX i ON t (a);");
        check(&history, "CREATE INDEX IF NOT EXISTS i ON t (b)", &["lock public.t Share"]);
        check(&history, "CREATE INDEX i ON t (b)", &["fails 42P07", "lock public.t Share"]);
    }

    #[test]
    fn an_equal_index_of_a_partition_is_attached() {
        let expected = ["create public.i", "lock public.mine Share", "lock public.p Share", "lock public.p1 Share"];
        check(PARTITIONED, "CREATE INDEX i ON p (id)", &expected);
    }

    #[test]
    fn what_postgresql_refuses() {
        for (sql, expected) in [
            ("BEGIN; CREATE INDEX CONCURRENTLY i ON t (a)", &["fails 25001"][..]),
            ("CREATE UNIQUE INDEX i ON t USING hash (a)", &["fails 0A000", "lock public.t Share"]),
            ("CREATE INDEX i ON t (nope)", &["fails 42703", "lock public.t Share"]),
        ] {
            check(TABLE, sql, expected);
        }
        let locks = ["fails 0A000", "lock public.p Share", "lock public.p1 Share"];
        check(PARTITIONED, "CREATE UNIQUE INDEX i ON p (id)", &locks);
    }
}
