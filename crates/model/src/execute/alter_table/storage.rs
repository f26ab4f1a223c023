//! Everything about a relation that is not a column or a constraint: storage, options, triggers, parents, owner.

use super::Altering;
use crate::catalog::{Oid, Publication, RelationDetail, RelationKind, TypeKind};
use crate::effect::{ChangeAction, ChangedObject, LockCause, Rewrite, RewriteCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{
    AlterTableAction as Action, AlterTableCommand, DefElem, DefValue, Firing, Literal, LockMode, Name, ObjectName,
    Persistence, ReplicaIdentity, RowSecurity, TriggerChoice,
};
use pgvet_syntax::source::TextRange;
use smol_str::{SmolStr, ToSmolStr};
use std::sync::Arc;

fn firing_action(firing: Firing) -> ChangeAction {
    if firing == Firing::Disable { ChangeAction::Disable } else { ChangeAction::Enable }
}

impl Executor<'_> {
    pub(super) fn storage_command(&mut self, altering: &mut Altering, command: &AlterTableCommand) -> Run {
        let (table, range) = (altering.table, command.keyword);
        match &command.action {
            Action::SetLogged => self.set_persistence(altering, Persistence::Permanent, range),
            Action::SetUnlogged => self.set_persistence(altering, Persistence::Unlogged, range),
            Action::SetTablespace { tablespace } => {
                self.set_tablespace(altering, tablespace, range);
                Ok(())
            }
            Action::SetAccessMethod { method } => self.set_access_method(altering, method.as_ref(), range),
            Action::SetOptions(_) | Action::ResetOptions(_)
                if self.catalog.relation(table).kind == RelationKind::PartitionedIndex =>
            {
                let name = &self.catalog.relation(table).name;
                fail("42809", format!("ALTER action cannot be performed on relation \"{name}\""), range)
            }
            Action::SetOptions(options) => self.set_options(table, options, range),
            Action::ResetOptions(options) => {
                let gone = |name: &SmolStr| options.iter().any(|option| option_name(option) == *name);
                self.catalog.relation_mut(table).options.retain(|(name, _)| !gone(name));
                Ok(())
            }
            Action::ClusterOn { .. } | Action::SetWithoutCluster if self.is_partitioned(table) => {
                fail("0A000", "cannot mark index clustered in partitioned table", range)
            }
            Action::ClusterOn { index } => self.cluster_on(table, index),
            Action::SetWithoutCluster => {
                self.mark_clustered(table, None);
                Ok(())
            }
            Action::Rule { name, firing } => {
                let relation = self.catalog.relation(table);
                if relation.known && !relation.rules.contains(&name.text) {
                    let reason = format!("rule \"{}\" for relation \"{}\" does not exist", name.text, relation.name);
                    return fail("42704", reason, name.range);
                }
                let object =
                    ChangedObject::Rule { table: self.relation_name(table), name: name.text.clone(), does: None };
                self.change_object(object, firing_action(*firing), range);
                Ok(())
            }
            Action::Trigger { firing, which } => {
                let object = ChangedObject::Trigger { table: self.relation_name(table), which: which.clone() };
                self.change_object(object, firing_action(*firing), range);
                self.set_trigger_firing(altering, *firing, which)
            }
            Action::Inherit { parent } => self.inherit(table, parent),
            Action::NoInherit { parent } => self.no_inherit(table, parent),
            Action::OfType { type_name } => {
                let of_type = self.resolve_type(type_name);
                self.check_row_type(table, of_type.oid, type_name.range)?;
                self.lock_row_type(of_type.oid, LockMode::AccessShare, type_name.range);
                self.catalog.relation_mut(table).of_type = Some(of_type.oid);
                Ok(())
            }
            Action::NotOf if self.catalog.relation(table).known && self.catalog.relation(table).of_type.is_none() => {
                fail("42809", format!("\"{}\" is not a typed table", self.catalog.relation(table).name), range)
            }
            Action::NotOf => {
                self.catalog.relation_mut(table).of_type = None;
                Ok(())
            }
            Action::ChangeOwner { role } => {
                let relation = self.catalog.relation(table);
                let same = relation.owner.as_ref() == Some(role) || is_usual_owner(role);
                if !same && relation.sequence().is_some_and(|sequence| sequence.owned_by.is_some()) {
                    return fail("0A000", format!("cannot change owner of sequence \"{}\"", relation.name), range);
                }
                self.change_owner(table, role, range);
                Ok(())
            }
            Action::ReplicaIdentity(identity) => self.replica_identity(table, identity),
            Action::RowSecurity(change) => {
                match change {
                    RowSecurity::Enable => self.catalog.set_row_security(table, true),
                    RowSecurity::Disable => self.catalog.set_row_security(table, false),
                    RowSecurity::Force => self.catalog.relation_mut(table).force_row_security = true,
                    RowSecurity::NoForce => self.catalog.relation_mut(table).force_row_security = false,
                }
                let action = match change {
                    RowSecurity::Enable => ChangeAction::Enable,
                    RowSecurity::Disable => ChangeAction::Disable,
                    RowSecurity::Force | RowSecurity::NoForce => ChangeAction::Alter,
                };
                self.change_object(ChangedObject::RowSecurity { table: self.relation_name(table) }, action, range);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn set_persistence(&mut self, altering: &mut Altering, to: Persistence, range: TextRange) -> Run {
        let table = altering.table;
        let relation = self.catalog.relation(table);
        if relation.kind == RelationKind::Sequence && !self.target.at_least(15) {
            return fail("42809", format!("\"{}\" is not a table", relation.name), range);
        }
        if relation.persistence == Persistence::Temporary {
            let reason = format!("cannot change logged status of table \"{}\" because it is temporary", relation.name);
            return fail("42P16", reason, range);
        }
        if relation.kind == RelationKind::PartitionedTable && self.target.at_least(18) {
            let reason = format!("ALTER action cannot be performed on relation \"{}\"", relation.name);
            return fail("42809", reason, range);
        }
        if relation.persistence == to {
            return Ok(());
        }
        // A publication of all tables or of a schema leaves it out from then on.
        let lists = |publication: &Arc<Publication>| publication.tables.contains_key(&table);
        let published = self.catalog.publications().any(lists);
        if published && to == Persistence::Unlogged {
            let reason = format!("cannot change table \"{}\" to unlogged because it is published", relation.name);
            return fail("55000", reason, range);
        }
        self.check_foreign_keys_allow(table, to, range)?;
        if self.target.at_least(15) {
            for sequence in self.catalog.relation(table).owned_sequences.clone() {
                self.lock(sequence, LockMode::AccessExclusive, LockCause::Part, range);
                self.catalog.relation_mut(sequence).persistence = to;
            }
        }
        if !self.is_partitioned(table) {
            for index in self.catalog.relation(table).indexes.clone() {
                self.catalog.relation_mut(index).persistence = to;
            }
            self.catalog.relation_mut(table).persistence = to;
        }
        altering.work.rewrite(table, RewriteCause::Persistence, range);
        Ok(())
    }

    /// The columns of a typed table are those of its type.
    fn check_row_type(&self, table: Oid, row_type: Oid, range: TextRange) -> Run {
        let Some(TypeKind::Composite { relation: row }) = self.catalog.get_type(row_type).map(|found| &found.kind)
        else {
            return Ok(());
        };
        let (relation, Some(row)) = (self.catalog.relation(table), self.catalog.get_relation(*row)) else {
            return Ok(());
        };
        let same = relation.columns.len() == row.columns.len()
            && relation.columns.iter().zip(&row.columns).all(|(ours, theirs)| {
                ours.name == theirs.name
                    && (ours.sql_type == theirs.sql_type || !ours.sql_type.is_known() || !theirs.sql_type.is_known())
            });
        if relation.known && row.known && !same {
            return fail("42804", format!("table \"{}\" does not match the type", relation.name), range);
        }
        Ok(())
    }

    /// A permanent table references permanent tables only.
    fn check_foreign_keys_allow(&mut self, table: Oid, to: Persistence, range: TextRange) -> Run {
        let keys = if to == Persistence::Unlogged {
            let keys = self.catalog.foreign_keys_to(table).into_iter();
            keys.filter(|(referencing, _)| *referencing != table).map(|(referencing, _)| referencing).collect()
        } else {
            let keys = self.catalog.relation(table).constraints.iter().filter_map(|one| one.foreign_key());
            keys.map(|key| key.referenced).filter(|referenced| *referenced != table).collect::<Vec<_>>()
        };
        for other in keys {
            self.lock(other, LockMode::AccessShare, LockCause::ForeignKey, range);
            let other_persistence = self.catalog.relation(other).persistence;
            let conflict = match to {
                Persistence::Unlogged => other_persistence == Persistence::Permanent,
                _ => other_persistence == Persistence::Unlogged,
            };
            if conflict {
                let name = &self.catalog.relation(table).name;
                let reason = format!("could not change persistence of \"{name}\" because of a foreign key");
                return fail("42P16", reason, range);
            }
        }
        Ok(())
    }

    fn set_tablespace(&mut self, altering: &mut Altering, tablespace: &Name, range: TextRange) {
        let table = altering.table;
        let current = self.catalog.relation(table).tablespace.clone();
        let target = (tablespace.text != "pg_default").then(|| tablespace.text.clone());
        if current == target {
            return;
        }
        altering.work.move_to_tablespace(table, range);
        self.catalog.relation_mut(table).tablespace = target;
    }

    /// Copies the files of one relation as they are: no scan, and no index is built.
    pub(super) fn copy_storage(&mut self, oid: Oid, cause: RewriteCause, range: TextRange) {
        let relation = self.relation_name(oid);
        if !matches!(relation.kind, RelationKind::PartitionedTable | RelationKind::PartitionedIndex) {
            self.effects.rewrites.push(Rewrite { relation, cause, range });
        }
    }

    fn set_access_method(&mut self, altering: &mut Altering, method: Option<&Name>, range: TextRange) -> Run {
        if !self.target.at_least(15) {
            return fail("42601", "syntax error at or near \"ACCESS\"", range);
        }
        let heap = SmolStr::new_static("heap");
        let method = method.map_or_else(|| heap.clone(), |name| name.text.clone());
        let relation = self.catalog.relation(altering.table);
        if relation.kind == RelationKind::PartitionedTable && !self.target.at_least(17) {
            return fail("42809", "cannot change access method of a partitioned table", range);
        }
        let current = relation.access_method.clone().unwrap_or(heap);
        if current != method {
            self.catalog.relation_mut(altering.table).access_method = Some(method);
            altering.work.rewrite(altering.table, RewriteCause::AccessMethod, range);
        }
        Ok(())
    }

    fn set_options(&mut self, table: Oid, options: &[DefElem], range: TextRange) -> Run {
        let relation = self.catalog.relation(table);
        if relation.kind == RelationKind::PartitionedIndex {
            return fail("42809", format!("cannot set options of partitioned index \"{}\"", relation.name), range);
        }
        if relation.kind == RelationKind::PartitionedTable && !options.is_empty() {
            let sqlstate = if self.target.at_least(16) { "42809" } else { "22023" };
            return fail(sqlstate, "cannot specify storage parameters for a partitioned table", range);
        }
        for option in options {
            let name = option_name(option);
            let view = self.catalog.relation(table).kind == RelationKind::View;
            let invoker = name == "security_invoker" && self.target.at_least(15);
            if view && !invoker && !matches!(name.as_str(), "security_barrier" | "check_option") {
                return fail("22023", format!("unrecognized parameter \"{name}\""), range);
            }
            let query = self.catalog.relation(table).view().map(|definition| &definition.query);
            if name == "check_option"
                && let Some(why) = query.and_then(|query| self.not_updatable(query))
            {
                return fail("0A000", format!("WITH CHECK OPTION does not suit a view that {why}"), range);
            }
            let relation = self.catalog.relation_mut(table);
            relation.options.retain(|(existing, _)| *existing != name);
            relation.options.push((name, option_value(option)));
        }
        Ok(())
    }

    fn cluster_on(&mut self, table: Oid, index: &Name) -> Run {
        let relation = self.catalog.relation(table);
        let (schema, indexes, known) = (relation.schema.clone(), relation.indexes.clone(), relation.known);
        let chosen = self.catalog.relation_named(&schema, &index.text);
        if self.catalog.relation(table).kind == RelationKind::PartitionedTable {
            return fail("0A000", "cannot mark index clustered in partitioned table", index.range);
        }
        if chosen.is_some_and(|chosen| !indexes.contains(&chosen)) && known {
            return fail("42809", format!("\"{}\" is not an index for the table", index.text), index.range);
        }
        if chosen.is_none() && known {
            return fail("42704", format!("index \"{}\" does not exist", index.text), index.range);
        }
        if let Some(chosen) = chosen {
            self.check_clusterable(chosen, index)?;
        }
        for oid in indexes {
            let Some(definition) = self.catalog.relation(oid).index().cloned() else { continue };
            if definition.clustered != (Some(oid) == chosen) {
                let mut changed = (*definition).clone();
                changed.clustered = !changed.clustered;
                self.catalog.relation_mut(oid).detail = RelationDetail::Index(Arc::new(changed));
            }
        }
        if let Some(oid) = chosen {
            self.lock(oid, LockMode::ShareUpdateExclusive, LockCause::Part, index.range);
        }
        Ok(())
    }

    fn set_trigger_firing(&mut self, altering: &Altering, firing: Firing, which: &TriggerChoice) -> Run {
        let relation = self.catalog.relation(altering.table);
        if let TriggerChoice::Named(name) = which
            && relation.known
            && !relation.triggers.contains(&name.text)
        {
            let reason = format!("trigger \"{}\" for table \"{}\" does not exist", name.text, relation.name);
            return fail("42704", reason, name.range);
        }
        let recurse = relation.kind == RelationKind::PartitionedTable;
        let targets = if recurse { self.altered_tables(altering) } else { vec![altering.table] };
        for target in targets {
            let relation = self.catalog.relation_mut(target);
            if *which == TriggerChoice::All {
                relation.all_triggers_off = firing == Firing::Disable;
            }
            if let TriggerChoice::Named(name) = which {
                relation.triggers.update(&name.text, |trigger| trigger.firing = firing);
            } else {
                relation.triggers.update_where(|trigger| trigger.firing != firing, |trigger| trigger.firing = firing);
            }
        }
        Ok(())
    }

    fn inherit(&mut self, table: Oid, parent: &ObjectName) -> Run {
        let child = self.catalog.relation(table);
        if child.kind == RelationKind::PartitionedTable || child.is_partition() || child.of_type.is_some() {
            return fail("42809", format!("cannot change inheritance of table \"{}\"", child.name), parent.range());
        }
        let name = parent;
        let parent = self.open(parent, RelationKind::Table, LockMode::ShareUpdateExclusive)?;
        self.lock_descendants(table, LockMode::AccessShare, name.range());
        let relation = self.catalog.relation(parent);
        if relation.kind == RelationKind::PartitionedTable || relation.is_partition() {
            return fail("42809", format!("cannot inherit from \"{name}\""), name.range());
        }
        if relation.is_temporary() && !self.catalog.relation(table).is_temporary() {
            return fail("42809", format!("cannot inherit from temporary relation \"{name}\""), name.range());
        }
        if self.catalog.relation(table).parents.contains(&parent) {
            return fail("42P07", format!("relation \"{name}\" would be inherited from more than once"), name.range());
        }
        if parent == table || self.descendants(table).contains(&parent) {
            return fail("42P07", "circular inheritance not allowed", name.range());
        }
        self.check_triggers_of_child(table, name)?;
        self.inherit_from(parent, table, name)
    }

    fn no_inherit(&mut self, table: Oid, parent: &ObjectName) -> Run {
        let child = self.catalog.relation(table);
        if child.is_partition() {
            return fail("42809", "cannot change inheritance of a partition", parent.range());
        }
        let name = parent;
        let parent = self.open(parent, RelationKind::Table, LockMode::AccessShare)?;
        let child = self.catalog.relation(table);
        if child.known && !child.parents.contains(&parent) {
            let reason = format!("relation \"{name}\" is not a parent of relation \"{}\"", child.name);
            return fail("42P01", reason, name.range());
        }
        self.forget_inheritance(parent, table);
        Ok(())
    }

    /// A change of owner takes the indexes and owned sequences along.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecChangeOwner`: it does nothing when the owner
    /// stays the same, which is assumed to be so for the role that usually runs migrations.
    pub(crate) fn change_owner(&mut self, table: Oid, role: &SmolStr, range: TextRange) {
        let relation = self.catalog.relation(table);
        let same = match &relation.owner {
            Some(owner) => owner == role,
            None => is_usual_owner(role),
        };
        if same {
            return;
        }
        let parts: Vec<Oid> = relation.indexes.iter().chain(&relation.owned_sequences).copied().collect();
        for part in parts {
            self.lock(part, LockMode::AccessExclusive, LockCause::Part, range);
            self.catalog.relation_mut(part).owner = Some(role.clone());
        }
        self.catalog.relation_mut(table).owner = Some(role.clone());
    }

    fn replica_identity(&mut self, table: Oid, identity: &ReplicaIdentity) -> Run {
        if let ReplicaIdentity::Index(name) = identity {
            let relation = self.catalog.relation(table);
            let (schema, known) = (relation.schema.clone(), relation.known);
            match self.catalog.relation_named(&schema, &name.text) {
                Some(oid) => {
                    self.lock(oid, LockMode::Share, LockCause::Part, name.range);
                    self.check_identity_index(table, oid, name)?;
                }
                None if known => {
                    let reason = format!("index \"{}\" for table does not exist", name.text);
                    return fail("42704", reason, name.range);
                }
                None => {}
            }
        }
        self.catalog.relation_mut(table).replica_identity = identity.clone();
        Ok(())
    }

    /// Checks that rows are identified by a plain unique index over columns without nulls.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecReplicaIdentity`.
    fn check_identity_index(&self, table: Oid, oid: Oid, name: &Name) -> Run {
        let relation = self.catalog.relation(table);
        let Some(index) = self.catalog.relation(oid).index() else { return Ok(()) };
        let nullable = |column: &SmolStr| relation.column(column).is_some_and(|found| !found.not_null);
        let sqlstate = if index.table != table || !index.unique {
            "42809"
        } else if self.is_deferrable(table, oid) || index.has_expressions() || index.predicate.is_some() {
            "0A000"
        } else if index.plain_columns().is_some_and(|columns| columns.iter().any(nullable)) {
            "42809"
        } else {
            return Ok(());
        };
        if relation.known {
            let reason = format!("index \"{}\" cannot be used as replica identity", name.text);
            return fail(sqlstate, reason, name.range);
        }
        Ok(())
    }

    /// Locks the relation behind a composite type.
    pub(crate) fn lock_row_type(&mut self, oid: Oid, mode: LockMode, range: TextRange) {
        let relation = match self.catalog.get_type(oid).map(|definition| &definition.kind) {
            Some(crate::catalog::TypeKind::Composite { relation }) => *relation,
            _ => return,
        };
        if self.catalog.get_relation(relation).is_some() {
            self.lock(relation, mode, LockCause::TypeUser, range);
        }
    }
}

/// The role that usually runs migrations.
fn is_usual_owner(role: &str) -> bool {
    matches!(role, "postgres" | "current_user" | "session_user" | "current_role")
}

fn option_name(option: &DefElem) -> SmolStr {
    match &option.namespace {
        Some(namespace) => smol_str::format_smolstr!("{namespace}.{}", option.name),
        None => option.name.clone(),
    }
}

/// The text of an option's value; an option without value is true.
pub(crate) fn option_value(option: &DefElem) -> SmolStr {
    match &option.value {
        DefValue::None => SmolStr::new_static("true"),
        DefValue::Literal(literal) => literal_text(literal),
        DefValue::Names(names) => names.join(".").to_smolstr(),
        _ => SmolStr::default(),
    }
}

fn literal_text(literal: &Literal) -> SmolStr {
    match literal {
        Literal::Integer(number) => number.to_smolstr(),
        Literal::Boolean(value) => value.to_smolstr(),
        Literal::Numeric(text) | Literal::String(text) | Literal::BitString(text) => text.clone(),
        Literal::Null => SmolStr::new_static("null"),
    }
}
