//! The objects that a DROP statement names.

use super::dependency::Object;
use super::{Deletion, Executor, Run, fail};
use crate::catalog::{Oid, Relation, RelationKind, TypeKind};
use crate::effect::{Branches, ChangeAction, ChangedObject, Failure, Lock, LockCause};
use indexmap::IndexSet;
use pgvet_syntax::ast::{Drop, DropObject, LockMode, Name, ObjectKind, ObjectName, Signature, TriggerChoice};
use rustc_hash::FxBuildHasher;
use smol_str::SmolStr;

impl Executor<'_> {
    /// DROP of any kind.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/dropcmds.c`, `RemoveObjects`, and `tablecmds.c`, `RemoveRelations`.
    pub(in crate::execute) fn drop_objects(&mut self, statement: &Drop) -> Run {
        if statement.concurrently && self.in_block {
            let reason = "DROP INDEX CONCURRENTLY cannot run inside a transaction block";
            return fail("25001", reason, statement.keyword);
        }
        if self.in_block && matches!(statement.kind, ObjectKind::Database | ObjectKind::Tablespace) {
            let reason = "DROP DATABASE and DROP TABLESPACE cannot run inside a transaction block";
            return fail("25001", reason, statement.keyword);
        }
        if statement.concurrently && statement.objects.len() > 1 {
            let reason = "DROP INDEX CONCURRENTLY does not support dropping multiple objects";
            return fail("0A000", reason, statement.keyword);
        }
        if statement.concurrently && statement.behavior == pgvet_syntax::ast::DropBehavior::Cascade {
            return fail("0A000", "DROP INDEX CONCURRENTLY does not support CASCADE", statement.keyword);
        }
        let mut targets = IndexSet::<_, FxBuildHasher>::default();
        let mut concurrently = statement.concurrently;
        for object in &statement.objects {
            targets.extend(self.drop_target(statement, object, &mut concurrently)?);
        }
        let targets: Vec<Object> = targets.into_iter().collect();
        let mut deletion = Deletion::new(statement.behavior, statement.keyword);
        if concurrently {
            deletion.mode = LockMode::ShareUpdateExclusive;
            self.effects.waits_for_transactions |= !targets.is_empty();
        }
        // The last step, when nobody uses the index any more: `src/backend/catalog/index.c`, `index_drop`.
        let indexes = targets.iter().filter_map(Object::locked_relation).filter(|_| concurrently);
        let last_step: Vec<_> = indexes.map(|index| self.relation_name(index)).collect();
        self.delete(&targets, deletion)?;
        self.effects.locks.extend(last_step.into_iter().map(|relation| Lock {
            relation,
            mode: LockMode::AccessExclusive,
            cause: LockCause::WithoutWaiting,
            range: statement.keyword,
            patience: None,
            branches: Branches::default(),
        }));
        Ok(())
    }

    fn drop_target(&mut self, statement: &Drop, object: &DropObject, concurrently: &mut bool) -> Run<Option<Object>> {
        let kind = match statement.kind {
            ObjectKind::Table => RelationKind::Table,
            ObjectKind::Index => RelationKind::Index,
            ObjectKind::Sequence => RelationKind::Sequence,
            ObjectKind::View => RelationKind::View,
            ObjectKind::MaterializedView => RelationKind::MaterializedView,
            ObjectKind::ForeignTable => RelationKind::ForeignTable,
            ObjectKind::Trigger | ObjectKind::Rule | ObjectKind::Policy => return self.part_target(statement, object),
            _ => return self.other_target(statement, object),
        };
        self.relation_target(statement, &object.name, kind, concurrently)
    }

    fn relation_target(
        &mut self,
        statement: &Drop,
        name: &ObjectName,
        kind: RelationKind,
        concurrently: &mut bool,
    ) -> Run<Option<Object>> {
        let mode = if *concurrently { LockMode::ShareUpdateExclusive } else { LockMode::AccessExclusive };
        // The table of an index and the parent of a partition are locked first, so that locks go from top to bottom.
        if let Some(oid) = self.find(name) {
            let relation = self.catalog.relation(oid).clone();
            check_kind(&relation, kind, name)?;
            *concurrently &= !relation.is_temporary();
            if let Some(index) = relation.index() {
                self.lock(index.table, mode, LockCause::Target, name.range());
                if relation.kind == RelationKind::PartitionedIndex {
                    if *concurrently {
                        let reason = format!("cannot drop partitioned index \"{name}\" concurrently");
                        return fail("0A000", reason, name.range());
                    }
                    self.lock_descendants(index.table, mode, name.range());
                }
            }
            if relation.is_partition() {
                for parent in &relation.parents {
                    self.lock(*parent, LockMode::AccessExclusive, LockCause::Parent, name.range());
                }
            }
        }
        let missing = |failure: Failure| match kind {
            RelationKind::Index if failure.sqlstate == "42P01" => Failure { sqlstate: "42704", ..failure },
            _ => failure,
        };
        let Some(oid) = self.open_if_exists(name, kind, mode, statement.if_exists).map_err(missing)? else {
            return Ok(None);
        };
        if kind == RelationKind::Index && self.catalog.relation(oid).index().is_none() {
            self.unknown(format!("the table of the index `{name}` is not known"));
        }
        Ok(Some(Object::Relation(oid)))
    }

    /// A trigger, rule or policy; with IF EXISTS and nothing to drop the table is only looked at.
    fn part_target(&mut self, statement: &Drop, object: &DropObject) -> Run<Option<Object>> {
        let Some(on) = &object.on else { return Ok(None) };
        let name = object.name.name.text.clone();
        let shown = self.find(on).map(|table| {
            let relation = self.catalog.relation(table);
            let exists = match statement.kind {
                ObjectKind::Trigger => relation.triggers.contains(&name),
                ObjectKind::Rule => relation.rules.contains(&name),
                _ => relation.policies.contains(&name),
            };
            (exists, relation.known)
        });
        let missing = matches!(shown, Some((false, true)));
        let mode = if missing && statement.if_exists { LockMode::AccessShare } else { LockMode::AccessExclusive };
        let first = self.effects.locks.len();
        let Some(table) = self.open_if_exists(on, RelationKind::Table, mode, statement.if_exists)? else {
            return Ok(None);
        };
        let what = match statement.kind {
            ObjectKind::Trigger => "trigger",
            ObjectKind::Rule => "rule",
            _ => "policy",
        };
        if statement.if_exists && !shown.is_some_and(|(exists, _)| exists) {
            self.effects.locks.depend_on(first, &format!("the {what} `{name}`").into());
        }
        if missing {
            if statement.if_exists {
                return Ok(None);
            }
            if name == "_RETURN" && self.catalog.relation(table).kind == RelationKind::View {
                return fail("2BP01", "cannot drop the rule of a view without the view", object.name.range());
            }
            let of = if statement.kind == ObjectKind::Rule { "relation" } else { "table" };
            let reason = format!("{what} \"{name}\" for {of} \"{}\" does not exist", self.catalog.relation(table).name);
            return fail("42704", reason, object.name.range());
        }
        let inherited = self.catalog.relation(table).triggers.get(&name).is_some_and(|trigger| trigger.inherited);
        if statement.kind == ObjectKind::Trigger && inherited {
            let reason = format!("cannot drop trigger \"{name}\" because the trigger of the parent requires it");
            return fail("2BP01", reason, object.name.range());
        }
        let relation = self.relation_name(table);
        let changed = match statement.kind {
            ObjectKind::Trigger => ChangedObject::Trigger {
                table: relation,
                which: TriggerChoice::Named(Name::new(name.clone(), object.name.name.range)),
            },
            ObjectKind::Rule => ChangedObject::Rule { table: relation, name: name.clone(), does: None },
            _ => ChangedObject::Policy { table: relation, name: name.clone() },
        };
        self.change_object(changed, ChangeAction::Drop, statement.keyword);
        Ok(Some(match statement.kind {
            ObjectKind::Trigger => Object::Trigger(table, name),
            ObjectKind::Rule => Object::Rule(table, name),
            _ => Object::Policy(table, name),
        }))
    }

    fn other_target(&mut self, statement: &Drop, object: &DropObject) -> Run<Option<Object>> {
        let name = &object.name;
        let found = match statement.kind {
            ObjectKind::Type | ObjectKind::Domain => {
                let found = self.find_type(name);
                let is_domain = |oid| match &self.catalog.get_type(oid).map(|definition| &definition.kind) {
                    Some(TypeKind::Domain(_) | TypeKind::Assumed) | None => true,
                    Some(_) => false,
                };
                if statement.kind == ObjectKind::Domain && !found.is_none_or(is_domain) {
                    return fail("42809", format!("\"{name}\" is not a domain"), name.range());
                }
                found.map(Object::Type)
            }
            ObjectKind::Schema => {
                let schema = name.name.text.clone();
                self.catalog.has_schema(&schema).then_some(Object::Schema(schema))
            }
            ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine | ObjectKind::Aggregate => {
                let signature = Signature { name: name.clone(), arguments: object.arguments.clone() };
                if !statement.if_exists || self.function_with(&signature).is_some() {
                    self.check_routine(&signature, statement.kind)?;
                }
                let found = self.function_with(&signature).map(Object::Function);
                if found.is_none() && matches!(statement.kind, ObjectKind::Aggregate | ObjectKind::Routine) {
                    return Ok(None);
                }
                found
            }
            ObjectKind::Extension => {
                let extension = name.name.text.clone();
                self.catalog.extension(&extension).is_some().then_some(Object::Extension(extension))
            }
            ObjectKind::Statistics => self.find_statistics(name).map(Object::Statistics),
            ObjectKind::Publication => {
                let exists = self.catalog.publication(&name.name.text).is_some();
                self.catalog.remove_publication(&name.name.text);
                if !exists {
                    self.check_may_be_missing(statement, name)?;
                }
                return Ok(None);
            }
            // Nothing in the catalog stands for it.
            _ => return Ok(None),
        };
        if found.is_none() {
            self.check_may_be_missing(statement, name)?;
        }
        Ok(found)
    }

    /// A missing object is an error only where everything is known.
    fn check_may_be_missing(&self, statement: &Drop, name: &ObjectName) -> Run {
        if self.knows_all_of(name.schema_name()) && !statement.if_exists {
            self.check_schema_of(name)?;
            let sqlstate = if statement.kind == ObjectKind::Schema { "3F000" } else { "42704" };
            return fail(sqlstate, format!("\"{name}\" does not exist"), name.range());
        }
        Ok(())
    }

    fn find_type(&self, name: &ObjectName) -> Option<Oid> {
        self.session
            .settings
            .schemas_of(name)
            .iter()
            .find_map(|schema| self.catalog.type_named(schema, &name.name.text))
    }

    pub(in crate::execute) fn find_statistics(&self, name: &ObjectName) -> Option<(SmolStr, SmolStr)> {
        let name_of = |schema: &SmolStr| (schema.clone(), name.name.text.clone());
        let exists = |(schema, name): &(SmolStr, SmolStr)| self.catalog.statistics_named(schema, name).is_some();
        self.session.settings.schemas_of(name).iter().map(name_of).find(exists)
    }
}

/// DROP TABLE drops tables, DROP INDEX indexes, partitioned or not.
fn check_kind(relation: &Relation, wanted: RelationKind, name: &ObjectName) -> Run {
    let kind = match relation.kind {
        RelationKind::PartitionedTable => RelationKind::Table,
        RelationKind::PartitionedIndex => RelationKind::Index,
        kind => kind,
    };
    // What no statement created was given its kind by the first statement that used it.
    if kind == wanted || !relation.known {
        return Ok(());
    }
    fail("42809", format!("\"{name}\" is not of the kind that is dropped"), name.range())
}
