//! Everything about a relation that is not a column or a constraint: storage, options, triggers, parents, owner.

use super::Altering;
use crate::ast::{
    AlterTableAction as Action, AlterTableCommand, DefElem, DefValue, Firing, Literal, Name, ObjectName, Persistence,
    ReplicaIdentity, RowSecurity, TriggerChoice,
};
use crate::catalog::{Oid, RelationDetail};
use crate::effect::{LockCause, LockMode, RelationKind, Rewrite, RewriteCause};
use crate::execute::{Executor, Run, fail};
use crate::source::TextRange;
use smol_str::{SmolStr, ToSmolStr};
use std::sync::Arc;

impl Executor<'_> {
    pub(super) fn storage_command(&mut self, altering: &mut Altering, command: &AlterTableCommand) -> Run {
        let (table, range) = (altering.table, command.keyword);
        match &command.action {
            Action::SetLogged => self.set_persistence(altering, Persistence::Permanent, range),
            Action::SetUnlogged => self.set_persistence(altering, Persistence::Unlogged, range),
            Action::SetTablespace { tablespace } => {
                self.set_tablespace(table, tablespace, range);
                Ok(())
            }
            Action::SetAccessMethod { method } => self.set_access_method(altering, method.as_ref(), range),
            Action::SetOptions(options) => self.set_options(table, options, range),
            Action::ResetOptions(options) => {
                let gone = |name: &SmolStr| options.iter().any(|option| option_name(option) == *name);
                self.catalog.relation_mut(table).options.retain(|(name, _)| !gone(name));
                Ok(())
            }
            Action::ClusterOn { index } => self.cluster_on(table, index),
            Action::Trigger { firing, which } => self.set_trigger_firing(altering, *firing, which),
            Action::Inherit { parent } => self.inherit(table, parent),
            Action::NoInherit { parent } => self.no_inherit(table, parent),
            Action::OfType { type_name } => {
                let of_type = self.resolve_type(type_name);
                self.lock_row_type(of_type.oid, LockMode::AccessShare, type_name.range);
                self.catalog.relation_mut(table).of_type = Some(of_type.oid);
                Ok(())
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
                let relation = self.catalog.relation_mut(table);
                match change {
                    RowSecurity::Enable => relation.row_security = true,
                    RowSecurity::Disable => relation.row_security = false,
                    RowSecurity::Force => relation.force_row_security = true,
                    RowSecurity::NoForce => relation.force_row_security = false,
                }
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
            return fail("42809", format!("ALTER action cannot be performed on \"{}\"", relation.name), range);
        }
        if relation.persistence == to {
            return Ok(());
        }
        let published = self.catalog.publications().any(|publication| {
            publication.all_tables
                || publication.schemas.contains(&relation.schema)
                || publication.tables.iter().any(|(published, _)| *published == table)
        });
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
        self.catalog.relation_mut(table).persistence = to;
        altering.work.rewrite(table, RewriteCause::Persistence, range);
        Ok(())
    }

    /// A permanent table references permanent tables only.
    fn check_foreign_keys_allow(&mut self, table: Oid, to: Persistence, range: TextRange) -> Run {
        let keys = match to {
            Persistence::Unlogged => {
                let keys = self.catalog.foreign_keys_to(table).into_iter();
                keys.filter(|(referencing, _)| *referencing != table).map(|(referencing, _)| referencing).collect()
            }
            _ => {
                let keys = self.catalog.relation(table).constraints.iter().filter_map(|one| one.foreign_key());
                keys.map(|key| key.referenced).filter(|referenced| *referenced != table).collect::<Vec<_>>()
            }
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

    fn set_tablespace(&mut self, table: Oid, tablespace: &Name, range: TextRange) {
        let current = self.catalog.relation(table).tablespace.clone();
        let target = (tablespace.text != "pg_default").then(|| tablespace.text.clone());
        if current == target {
            return;
        }
        self.copy_storage(table, RewriteCause::Tablespace, range);
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
        let kind = self.catalog.relation(table).kind;
        let sqlstate = if self.target.at_least(16) { "42809" } else { "22023" };
        if kind == RelationKind::PartitionedTable && !options.is_empty() {
            return fail(sqlstate, "cannot specify storage parameters for a partitioned table", range);
        }
        if kind == RelationKind::PartitionedIndex {
            return fail("42809", "cannot specify storage parameters for a partitioned index", range);
        }
        for option in options {
            let name = option_name(option);
            let view = self.catalog.relation(table).kind == RelationKind::View;
            let invoker = name == "security_invoker" && self.target.at_least(15);
            if view && !invoker && !matches!(name.as_str(), "security_barrier" | "check_option") {
                return fail("22023", format!("unrecognized parameter \"{name}\""), range);
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
        if let TriggerChoice::Named(name) = which {
            if relation.known && !relation.triggers.iter().any(|trigger| trigger.name == name.text) {
                let reason = format!("trigger \"{}\" for table \"{}\" does not exist", name.text, relation.name);
                return fail("42704", reason, name.range);
            }
        }
        let recurse = relation.kind == RelationKind::PartitionedTable;
        let targets = if recurse { self.altered_tables(altering) } else { vec![altering.table] };
        for target in targets {
            for trigger in &mut self.catalog.relation_mut(target).triggers {
                if !matches!(which, TriggerChoice::Named(name) if name.text != trigger.name) {
                    trigger.firing = firing;
                }
            }
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecAddInherit` and `CreateInheritance`.
    fn inherit(&mut self, table: Oid, name: &ObjectName) -> Run {
        let parent = self.open(name, RelationKind::Table, LockMode::ShareUpdateExclusive)?;
        if parent == table || self.descendants(table).contains(&parent) {
            return fail("42P07", "circular inheritance not allowed", name.range());
        }
        if self.catalog.relation(table).parents.contains(&parent) {
            let reason = format!("relation \"{name}\" would be inherited from more than once");
            return fail("42P07", reason, name.range());
        }
        let columns: Vec<SmolStr> =
            self.catalog.relation(parent).columns.iter().map(|column| column.name.clone()).collect();
        let child = self.catalog.relation_mut(table);
        for column in columns {
            if let Some(column) = child.column_mut(&column) {
                column.inherited_from += 1;
            }
        }
        child.parents.push(parent);
        self.catalog.relation_mut(parent).children.push(table);
        Ok(())
    }

    fn no_inherit(&mut self, table: Oid, parent: &ObjectName) -> Run {
        let parent = self.open(parent, RelationKind::Table, LockMode::AccessShare)?;
        let child = self.catalog.relation_mut(table);
        child.parents.retain(|oid| *oid != parent);
        for column in &mut child.columns {
            column.inherited_from = column.inherited_from.saturating_sub(1);
            column.is_local |= column.inherited_from == 0;
        }
        self.catalog.relation_mut(parent).children.retain(|oid| *oid != table);
        Ok(())
    }

    /// A change of owner takes the indexes and owned sequences along.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecChangeOwner`: it does nothing when the owner
    /// stays the same, which is taken to be so for the role that usually runs migrations.
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
                Some(oid) => self.lock(oid, LockMode::Share, LockCause::Part, name.range),
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
