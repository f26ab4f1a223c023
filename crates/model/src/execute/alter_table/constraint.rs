//! Constraints: ADD, DROP, VALIDATE, ALTER.

use super::Altering;
use crate::catalog::{self, Oid, RelationKind};
use crate::effect::{IndexBuildCause, LockCause, ScanCause};
use crate::execute::expressions::columns_of;
use crate::execute::index::{IndexDefinition, plain_elements};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{
    AlterConstraint, Constraint, ConstraintKind, DropBehavior, Expr, ForeignKey, IndexConstraint, LockMode, Name,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Adds a table constraint, or with `inline` the constraint of that column.
    pub(super) fn add_constraint(
        &mut self,
        altering: &mut Altering,
        constraint: &Constraint,
        inline: &[Name],
        range: TextRange,
    ) -> Run {
        self.check_constraint_syntax(constraint, range)?;
        if let Some(name) = &constraint.name {
            // The migration knows better whether it is there.
            if self.catalog.relation(altering.table).constraint(&name.text).is_some_and(|known| known.may_be_gone) {
                self.catalog.remove_constraint(altering.table, &name.text);
            }
            // Keys look at the name when their index is made.
            if matches!(constraint.kind, ConstraintKind::Check(_) | ConstraintKind::ForeignKey(_)) {
                self.check_constraint_is_new(altering.table, name)?;
            }
        }
        match &constraint.kind {
            ConstraintKind::Check(expression) => self.add_check(altering, constraint, expression, range),
            ConstraintKind::NotNull { column: Some(column) } => {
                self.add_named_not_null(altering, constraint, column, range)
            }
            ConstraintKind::ForeignKey(key) => {
                let columns = if key.columns.is_empty() { inline } else { &key.columns };
                self.check_foreign_key_only(altering, key)?;
                self.add_foreign_key(altering.table, constraint, columns, true)
            }
            ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) if index.using_index.is_some() => {
                self.add_constraint_using_index(altering, constraint, index, range)
            }
            ConstraintKind::PrimaryKey(index) => self.add_key(altering, constraint, index, inline, range),
            ConstraintKind::Unique(index) => self.add_key(altering, constraint, index, inline, range),
            ConstraintKind::Exclude(exclude) => {
                let definition = IndexDefinition {
                    exclusion: true,
                    method: exclude.method.clone(),
                    elements: exclude.elements.iter().map(|(element, _)| element.clone()).collect(),
                    operators: exclude.elements.iter().map(|(_, operator)| operator.clone()).collect(),
                    including: names(&exclude.including),
                    predicate: exclude.predicate.clone(),
                    only: !altering.recurse,
                    deferrable: constraint.deferrable,
                    initially_deferred: constraint.initially_deferred,
                    ..IndexDefinition::of_constraint(constraint.name.as_ref(), range)
                };
                let index = self.define_index(altering.table, &definition)?;
                self.add_index_constraint(
                    altering.table,
                    index,
                    constraint,
                    catalog::ConstraintKind::Exclude { index },
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Syntax that older majors do not have; the parser is that of 18.
    pub(crate) fn check_constraint_syntax(&self, constraint: &Constraint, range: TextRange) -> Run {
        let syntax_error = |word: &str| fail("42601", format!("syntax error at or near \"{word}\""), range);
        if constraint.not_enforced && !self.target.at_least(18) {
            return syntax_error("ENFORCED");
        }
        match &constraint.kind {
            ConstraintKind::NotNull { column: Some(_) } if !self.target.at_least(18) => syntax_error("NOT"),
            ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => {
                if index.nulls_not_distinct && !self.target.at_least(15) {
                    return syntax_error("NULLS");
                }
                if !index.including.is_empty() && !self.target.at_least(11) {
                    return syntax_error("INCLUDE");
                }
                if index.without_overlaps && !self.target.at_least(18) {
                    return syntax_error("WITHOUT");
                }
                Ok(())
            }
            ConstraintKind::ForeignKey(key) if !key.set_columns.is_empty() && !self.target.at_least(15) => {
                syntax_error("(")
            }
            _ => Ok(()),
        }
    }

    fn check_foreign_key_only(&mut self, altering: &Altering, key: &ForeignKey) -> Run {
        if altering.recurse || !self.is_partitioned(altering.table) {
            return Ok(());
        }
        let relation = &self.catalog.relation(altering.table).name;
        let reason = format!("cannot use ONLY for foreign key on partitioned table \"{relation}\"");
        fail("42809", reason, key.table.range())
    }

    fn add_check(
        &mut self,
        altering: &mut Altering,
        constraint: &Constraint,
        expression: &Expr,
        range: TextRange,
    ) -> Run {
        self.check_columns_exist(altering.table, expression)?;
        let relation = self.catalog.relation(altering.table);
        if !altering.recurse && !constraint.no_inherit && !relation.children.is_empty() {
            return fail("42P16", "constraint must be added to child tables too", range);
        }
        if constraint.no_inherit && relation.kind == RelationKind::PartitionedTable {
            let reason = format!("cannot add NO INHERIT constraint to partitioned table \"{}\"", relation.name);
            return fail("42P16", reason, range);
        }
        let columns = columns_of(expression);
        let name = match &constraint.name {
            Some(name) => name.text.clone(),
            None => self.choose_check_name(altering.table, &columns),
        };
        let expression = Arc::new(expression.clone());
        let targets = if constraint.no_inherit { vec![altering.table] } else { self.altered_tables(altering) };
        for target in targets {
            let inherited = target != altering.table;
            if inherited && self.catalog.relation(target).constraint(&name).is_some() {
                continue;
            }
            let checked = !constraint.not_valid && !constraint.not_enforced;
            self.catalog.add_constraint(
                target,
                catalog::Constraint {
                    name: name.clone(),
                    kind: catalog::ConstraintKind::Check {
                        expression: Arc::clone(&expression),
                        columns: columns.clone(),
                    },
                    valid: checked,
                    enforced: !constraint.not_enforced,
                    deferrable: false,
                    initially_deferred: false,
                    no_inherit: constraint.no_inherit,
                    is_local: !inherited,
                    inherited_from: u16::from(inherited),
                    may_be_gone: false,
                },
            );
            if checked {
                altering.work.check(target, ScanCause::Check { constraint: Some(name.clone()) }, range);
            }
        }
        Ok(())
    }

    /// UNIQUE and PRIMARY KEY that build their index.
    fn add_key(
        &mut self,
        altering: &mut Altering,
        constraint: &Constraint,
        key: &IndexConstraint,
        inline: &[Name],
        range: TextRange,
    ) -> Run {
        let primary = matches!(constraint.kind, ConstraintKind::PrimaryKey(_));
        let columns = if key.columns.is_empty() { inline } else { &key.columns };
        let definition = IndexDefinition {
            unique: true,
            primary,
            nulls_not_distinct: key.nulls_not_distinct,
            method: SmolStr::new_static(if key.without_overlaps { "gist" } else { "btree" }),
            elements: plain_elements(columns),
            operators: if key.without_overlaps { without_overlaps(columns.len()) } else { Vec::new() },
            including: names(&key.including),
            only: !altering.recurse,
            deferrable: constraint.deferrable,
            initially_deferred: constraint.initially_deferred,
            ..IndexDefinition::of_constraint(constraint.name.as_ref(), range)
        };
        if primary {
            if self.catalog.relation(altering.table).primary_key().is_some() {
                // What is wrong with its columns is said before that it is the second.
                self.check_index(altering.table, &definition)?;
            }
            self.prepare_primary_key(altering, columns, range)?;
        }
        for column in columns {
            self.require_column(altering.table, column)?;
        }
        let index = self.define_index(altering.table, &definition)?;
        let columns = names(columns);
        let kind = if primary {
            catalog::ConstraintKind::PrimaryKey { columns, index }
        } else {
            catalog::ConstraintKind::Unique { columns, index }
        };
        self.add_index_constraint(altering.table, index, constraint, kind);
        Ok(())
    }

    /// A table has one primary key, and its columns are NOT NULL.
    pub(super) fn prepare_primary_key(&mut self, altering: &mut Altering, columns: &[Name], range: TextRange) -> Run {
        if self.target.at_least(18) {
            self.check_not_nulls_of_key(altering.table, columns)?;
        }
        let relation = self.catalog.relation(altering.table);
        if relation.primary_key().is_some() {
            let reason = format!("multiple primary keys for table \"{}\" are not allowed", relation.name);
            return fail("42P16", reason, range);
        }
        // From 18 on the constraints behind NOT NULL are looked up in every partition, whether they are there or not.
        let nullable = |column: &Name| relation.column(&column.text).is_none_or(|found| !found.not_null);
        let plain = relation.kind != RelationKind::PartitionedTable;
        let recurse = self.target.at_least(18) || plain || columns.iter().any(nullable);
        if self.target.at_least(18) && !altering.recurse {
            for column in columns.iter().filter(|column| nullable(column)).collect::<Vec<_>>() {
                self.inherit_key_column(altering, column, range)?;
            }
        }
        for target in self.altered_tables(altering) {
            if target != altering.table && recurse {
                self.lock(target, altering.lock, LockCause::Child, range);
            }
            for column in columns {
                self.make_not_null(altering, target, &column.text, None, true, range);
            }
        }
        Ok(())
    }

    /// With ONLY the children must have the NOT NULL that the key gives their parent.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATPrepAddPrimaryKey`.
    fn inherit_key_column(&mut self, altering: &Altering, column: &Name, range: TextRange) -> Run {
        for child in self.catalog.relation(altering.table).children.clone() {
            self.lock(child, altering.lock, LockCause::Child, range);
            match self.not_null_constraint(child, &column.text) {
                Some(name) => self.inherit_not_null(child, &name),
                None if self.catalog.relation(child).known => {
                    // PostgreSQL gives no code of its own.
                    let child = &self.catalog.relation(child).name;
                    let reason = format!("column \"{}\" of table \"{child}\" is not marked NOT NULL", column.text);
                    return fail("XX000", reason, range);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Adds the constraint of an index, and those of its counterparts in partitions.
    pub(crate) fn add_index_constraint(
        &mut self,
        table: Oid,
        index: Oid,
        constraint: &Constraint,
        kind: catalog::ConstraintKind,
    ) {
        let Some(relation) = self.catalog.get_relation(index) else { return };
        let name = relation.name.clone();
        let inherited =
            self.catalog.relation(table).is_partition() && relation.index().is_some_and(|i| i.parent.is_some());
        self.catalog.add_constraint(
            table,
            catalog::Constraint {
                name,
                kind: kind.clone(),
                valid: true,
                enforced: true,
                deferrable: constraint.deferrable,
                initially_deferred: constraint.initially_deferred,
                no_inherit: true,
                is_local: !inherited,
                inherited_from: u16::from(inherited),
                may_be_gone: false,
            },
        );
        for (partition, child) in self.parts_of_index(index) {
            if self.constraint_of_index(partition, child).is_some() {
                continue;
            }
            let kind = match kind.clone() {
                catalog::ConstraintKind::PrimaryKey { columns, .. } => {
                    catalog::ConstraintKind::PrimaryKey { columns, index: child }
                }
                catalog::ConstraintKind::Unique { columns, .. } => {
                    catalog::ConstraintKind::Unique { columns, index: child }
                }
                _ => catalog::ConstraintKind::Exclude { index: child },
            };
            self.add_index_constraint(partition, child, constraint, kind);
        }
    }

    pub(crate) fn check_constraint_is_new(&self, table: Oid, name: &Name) -> Run {
        let relation = self.catalog.relation(table);
        if self.constraint_named(table, &name.text).is_some() || relation.has_constraint_trigger(&name.text) {
            let reason = format!("constraint \"{}\" for relation \"{}\" already exists", name.text, relation.name);
            return fail("42710", reason, name.range);
        }
        Ok(())
    }

    /// The constraint of that name. Before 18 a NOT NULL is none, although the model gives it a name.
    pub(crate) fn constraint_named(&self, table: Oid, name: &str) -> Option<&Arc<catalog::Constraint>> {
        let found = self.catalog.relation(table).constraint(name)?;
        let exists = self.target.at_least(18) || !matches!(found.kind, catalog::ConstraintKind::NotNull { .. });
        exists.then_some(found)
    }

    pub(crate) fn update_constraint(&mut self, table: Oid, name: &str, change: impl Fn(&mut catalog::Constraint)) {
        self.catalog.relation_mut(table).constraints.update(name, change);
    }

    /// A constraint that the table does not have: an error where the table is known, otherwise a gap.
    pub(super) fn missing_constraint(&mut self, altering: &Altering, name: &Name, if_exists: bool) -> Run {
        let relation = self.catalog.relation(altering.table);
        if if_exists {
            if !relation.known {
                self.note_dropped(altering.table, catalog::DroppedRule::Unseen(name.text.clone()));
            }
            return Ok(());
        }
        if relation.known {
            let reason = format!("constraint \"{}\" of relation \"{}\" does not exist", name.text, relation.name);
            return fail("42704", reason, name.range);
        }
        self.unknown(format!("constraint \"{}\" was used before any statement created it", name.text));
        Ok(())
    }

    pub(super) fn drop_constraint(
        &mut self,
        altering: &mut Altering,
        name: &Name,
        if_exists: bool,
        behavior: DropBehavior,
        range: TextRange,
    ) -> Run {
        let relation = self.catalog.relation(altering.table);
        let Some(constraint) = relation.constraint(&name.text).cloned() else {
            return self.missing_constraint(altering, name, if_exists);
        };
        if matches!(constraint.kind, catalog::ConstraintKind::NotNull { .. }) && !self.target.at_least(18) {
            return self.missing_constraint(altering, name, if_exists);
        }
        if constraint.inherited_from > 0 {
            let reason =
                format!("cannot drop inherited constraint \"{}\" of relation \"{}\"", name.text, relation.name);
            return fail("42P16", reason, name.range);
        }
        if let catalog::ConstraintKind::NotNull { column } = &constraint.kind {
            for child in self.altered_tables(altering).into_iter().skip(1) {
                self.lock(child, altering.lock, LockCause::Child, range);
            }
            return self.drop_not_null(altering, &Name::new(column.clone(), name.range));
        }
        let shared = matches!(constraint.kind, catalog::ConstraintKind::Check { .. }) && !constraint.no_inherit;
        let relation = self.catalog.relation(altering.table);
        if !altering.recurse && shared && !relation.children.is_empty() {
            if relation.kind == RelationKind::PartitionedTable && !self.target.at_least(18) {
                let reason = "cannot remove constraint from only the partitioned table when partitions exist";
                return fail("42P16", reason, name.range);
            }
            self.lock_keeping_children(altering, range);
            for child in self.catalog.relation(altering.table).children.clone() {
                self.disinherit_constraint(child, &name.text);
            }
        }
        for target in self.altered_tables(altering) {
            let Some(own) = self.catalog.relation(target).constraint(&name.text).cloned() else { continue };
            if target != altering.table {
                self.lock(target, altering.lock, LockCause::Child, range);
                if own.is_local || own.inherited_from > 1 {
                    let remaining = own.inherited_from.saturating_sub(1);
                    self.update_constraint(target, &name.text, |constraint| constraint.inherited_from = remaining);
                    continue;
                }
            }
            if let Some(key) = own.foreign_key().filter(|key| self.catalog.get_relation(key.referenced).is_some()) {
                self.lock(key.referenced, altering.lock, LockCause::ForeignKeyDropped, range);
            }
            self.drop_constraint_object(target, &name.text, behavior, range)?;
        }
        Ok(())
    }

    pub(super) fn alter_constraint(
        &mut self,
        altering: &mut Altering,
        change: &AlterConstraint,
        range: TextRange,
    ) -> Run {
        if !self.target.at_least(18) {
            if change.enforced.is_some() || change.no_inherit == Some(false) {
                return fail("42601", "syntax error", range);
            }
            if change.no_inherit == Some(true) {
                return fail("0A000", "FOREIGN KEY constraints cannot be marked NO INHERIT", range);
            }
        }
        let relation = self.catalog.relation(altering.table);
        let Some(constraint) = relation.constraint(&change.name.text).cloned() else {
            return self.missing_constraint(altering, &change.name, false);
        };
        if change.deferrable.is_some() && constraint.foreign_key().is_none() {
            let reason = format!("constraint \"{}\" is not a foreign key constraint", change.name.text);
            return fail("42809", reason, change.name.range);
        }
        let is_part = constraint.foreign_key().is_some() && constraint.inherited_from > 0;
        if (change.deferrable.is_some() || change.enforced.is_some()) && is_part {
            // An error without a code of its own before 18.
            let sqlstate = if self.target.at_least(18) { "55000" } else { "XX000" };
            let reason = format!("cannot alter constraint \"{}\" of a partition", change.name.text);
            return fail(sqlstate, reason, change.name.range);
        }
        if let Some(deferrable) = change.deferrable {
            let deferred = change.initially_deferred;
            for target in self.constraint_holders(altering, &change.name.text, range) {
                self.update_constraint(target, &change.name.text, |constraint| {
                    constraint.deferrable = deferrable;
                    constraint.initially_deferred = deferred;
                });
            }
        }
        if change.enforced.is_some() && constraint.foreign_key().is_none() {
            let reason = format!("cannot alter enforceability of constraint \"{}\"", change.name.text);
            return fail("42809", reason, change.name.range);
        }
        if change.no_inherit.is_some() {
            if !matches!(constraint.kind, catalog::ConstraintKind::NotNull { .. }) {
                let reason = format!("constraint \"{}\" is not a not-null constraint", change.name.text);
                return fail("42809", reason, change.name.range);
            }
            if constraint.inherited_from > 0 {
                let reason = format!("cannot alter inherited constraint \"{}\"", change.name.text);
                return fail("55000", reason, change.name.range);
            }
        }
        if let (Some(enforced), Some(key)) = (change.enforced, constraint.foreign_key()) {
            self.constraint_holders(altering, &change.name.text, range);
            self.alter_enforcement(altering, &constraint, key, enforced, range);
        }
        if change.no_inherit == Some(constraint.no_inherit) {
            return Ok(());
        }
        if let (Some(true), catalog::ConstraintKind::NotNull { column }) = (change.no_inherit, &constraint.kind) {
            self.lock_keeping_children(altering, range);
            self.disinherit_not_null(altering, column);
        }
        if let Some(no_inherit) = change.no_inherit {
            let name = &change.name.text;
            self.update_constraint(altering.table, name, |constraint| constraint.no_inherit = no_inherit);
        }
        if change.no_inherit == Some(false)
            && let catalog::ConstraintKind::NotNull { column } = &constraint.kind
        {
            for child in self.lock_descendants(altering.table, altering.lock, range) {
                self.make_not_null(altering, child, column, None, true, range);
            }
        }
        Ok(())
    }

    /// The table and those of its descendants that have the constraint, locked.
    fn constraint_holders(&mut self, altering: &Altering, name: &str, range: TextRange) -> Vec<Oid> {
        let mut holders = self.altered_tables(altering);
        holders.retain(|oid| self.catalog.relation(*oid).constraint(name).is_some());
        for holder in &holders {
            self.lock(*holder, altering.lock, LockCause::Child, range);
        }
        holders
    }

    fn alter_enforcement(
        &mut self,
        altering: &mut Altering,
        constraint: &catalog::Constraint,
        key: &catalog::ForeignKeyConstraint,
        enforced: bool,
        range: TextRange,
    ) {
        if constraint.enforced == enforced {
            return;
        }
        // Switching it off drops the triggers on both tables, switching it on makes them and checks all rows.
        let lock = if enforced { LockMode::ShareRowExclusive } else { LockMode::AccessExclusive };
        self.lock(key.referenced, lock, LockCause::ForeignKey, range);
        if enforced {
            let cause = ScanCause::ForeignKey { constraint: Some(constraint.name.clone()) };
            self.demand_of_check(altering.table, &cause, range);
            altering.work.check_foreign_key(altering.table, cause, range);
        }
        self.update_constraint(altering.table, &constraint.name, |constraint| {
            constraint.enforced = enforced;
            constraint.valid = enforced;
        });
    }
}

pub(crate) fn names(names: &[Name]) -> Vec<SmolStr> {
    names.iter().map(|name| name.text.clone()).collect()
}

/// The operators of UNIQUE ... WITHOUT OVERLAPS.
///
/// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ComputeIndexAttrs`.
pub(crate) fn without_overlaps(keys: usize) -> Vec<SmolStr> {
    let equal = std::iter::repeat_n(SmolStr::new_static("="), keys.saturating_sub(1));
    equal.chain([SmolStr::new_static("&&")]).collect()
}

impl IndexDefinition {
    /// The index of a constraint, before its keys are filled in.
    pub(crate) fn of_constraint(name: Option<&Name>, range: TextRange) -> Self {
        Self {
            name: name.map(|name| name.text.clone()),
            unique: false,
            primary: false,
            exclusion: false,
            constraint: true,
            nulls_not_distinct: false,
            operators: Vec::new(),
            method: SmolStr::new_static("btree"),
            elements: Vec::new(),
            including: Vec::new(),
            column_names: None,
            predicate: None,
            concurrently: false,
            only: false,
            deferrable: false,
            initially_deferred: false,
            cause: IndexBuildCause::Constraint,
            range,
        }
    }
}
