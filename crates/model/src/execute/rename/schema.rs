//! ALTER SCHEMA RENAME and ALTER ... SET SCHEMA.

use crate::catalog::{Oid, TypeKind};
use crate::effect::{LockCause, RenamedObject, Renaming};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{LockMode, Name, ObjectKind, Rename, SetSchema, Signature};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/schemacmds.c`, `RenameSchema`.
    pub(super) fn rename_schema(&mut self, rename: &Rename) -> Run {
        let (old, new) = (&rename.object.name.text, &rename.new_name.text);
        let schema = rename.object.name.clone();
        self.check_schema(&schema)?;
        if new.starts_with("pg_") {
            return fail("42939", format!("unacceptable schema name \"{new}\""), rename.new_name.range);
        }
        if self.catalog.has_schema(new) {
            return fail("42P06", format!("schema \"{new}\" already exists"), rename.new_name.range);
        }
        let object = RenamedObject::Schema { old: old.clone(), new: new.clone() };
        self.effects.renames.push(Renaming { object, range: schema.range });
        self.catalog.remove_schema(old);
        self.catalog.add_schema(new.clone());
        let relations = self.catalog.relations_in_order().into_iter().filter(|relation| relation.schema == *old);
        let relations: Vec<(Oid, SmolStr)> = relations.map(|relation| (relation.oid, relation.name.clone())).collect();
        for (oid, name) in relations {
            self.catalog.rename_relation(oid, new.clone(), name);
        }
        let mut types: Vec<(Oid, SmolStr)> = (self.catalog.types())
            .filter(|definition| definition.schema == *old && definition.array.is_valid())
            .map(|definition| (definition.oid, definition.name.clone()))
            .collect();
        types.sort_unstable_by_key(|(oid, _)| *oid);
        for (oid, name) in types {
            self.rename_in_casts(&(old.clone(), name.clone()), &(new.clone(), name.clone()));
            self.catalog.rename_type(oid, new.clone(), name);
        }
        let functions = self.catalog.functions().filter(|function| function.schema == *old);
        let mut functions: Vec<Oid> = functions.map(|function| function.oid).collect();
        functions.sort_unstable();
        for oid in functions {
            self.move_function(oid, new);
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/alter.c`, `ExecAlterObjectSchemaStmt`.
    pub(crate) fn set_schema(&mut self, set: &SetSchema) -> Run {
        match set.kind {
            ObjectKind::Table
            | ObjectKind::View
            | ObjectKind::MaterializedView
            | ObjectKind::ForeignTable
            | ObjectKind::Sequence => self.set_relation_schema(set),
            ObjectKind::Type | ObjectKind::Domain => self.set_type_schema(set),
            ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine | ObjectKind::Aggregate => {
                let signature = Signature { name: set.object.clone(), arguments: set.arguments.clone() };
                self.check_routine(&signature, set.kind)?;
                self.check_schema(&set.new_schema)?;
                if let Some(oid) = self.function_with(&signature) {
                    let own = self.catalog.get_function(oid).map(|known| known.schema.clone());
                    if own.is_some_and(|own| own != set.new_schema.text) {
                        self.check_function_name(oid, Some(&set.new_schema.text), &set.object.name)?;
                    }
                    let before = self.catalog.get_function(oid).map(|known| (known.schema.clone(), known.name.clone()));
                    let after = (set.new_schema.text.clone(), set.object.name.text.clone());
                    self.note_renamed("function", before.unwrap_or_default(), after, set.object.range());
                    self.move_function(oid, &set.new_schema.text);
                }
                Ok(())
            }
            ObjectKind::Statistics => {
                let old = self.statistics_to_alter(&set.object)?;
                self.check_schema(&set.new_schema)?;
                let Some(old) = old else { return Ok(()) };
                let new = (set.new_schema.text.clone(), old.1.clone());
                if old != new && self.catalog.statistics_named(&new.0, &new.1).is_some() {
                    let reason = format!("statistics object \"{}\" already exists in schema \"{}\"", new.1, new.0);
                    return fail("42710", reason, set.object.range());
                }
                self.catalog.rename_statistics(&old, new);
                Ok(())
            }
            ObjectKind::Extension => {
                if self.catalog.extension(&set.object.name.text).is_some() {
                    self.catalog.add_extension(set.object.name.text.clone(), set.new_schema.text.clone(), true);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `AlterTableNamespace`.
    fn set_relation_schema(&mut self, set: &SetSchema) -> Run {
        let kind = Self::assumed_kind(set.kind);
        let Some(oid) = self.open_if_exists(&set.object, kind, LockMode::AccessExclusive, set.if_exists)? else {
            return Ok(());
        };
        self.check_altered_kind(oid, set.kind, &set.object)?;
        let relation = self.catalog.relation(oid);
        let new = &set.new_schema.text;
        if relation.kind.is_index() {
            return fail("42809", format!("cannot change schema of index \"{}\"", relation.name), set.object.range());
        }
        if relation.sequence().is_some_and(|sequence| sequence.owned_by.is_some()) {
            return fail("0A000", "cannot move an owned sequence into another schema", set.object.range());
        }
        self.check_schema(&set.new_schema)?;
        let is_temporary = |schema: &str| schema == "pg_temp" || schema.starts_with("pg_temp_");
        if is_temporary(new) || relation.is_temporary() {
            return fail("0A000", "cannot move objects into or out of temporary schemas", set.object.range());
        }
        if relation.schema == *new {
            for sequence in relation.owned_sequences.clone() {
                self.lock(sequence, LockMode::AccessExclusive, LockCause::Part, set.object.range());
            }
            return Ok(());
        }
        let moved = relation
            .indexes
            .iter()
            .chain(&relation.owned_sequences)
            .filter_map(|part| self.catalog.get_relation(*part));
        let mut names = std::iter::once(&relation.name).chain(moved.map(|part| &part.name));
        if let Some(taken) = names.find_map(|name| self.catalog.relation_named(new, name)) {
            let name = &self.catalog.relation(taken).name;
            let reason = format!("relation \"{name}\" already exists in schema \"{new}\"");
            return self.refuse_taken_name(taken, reason, set.object.range());
        }
        self.move_relation(oid, new, set.object.range());
        Ok(())
    }

    /// Moves a relation with its row type, indexes and owned sequences.
    fn move_relation(&mut self, oid: Oid, schema: &SmolStr, range: TextRange) {
        if let Some(row_type) = self.row_type_of(oid) {
            let name = self.catalog.relation(oid).name.clone();
            self.catalog.rename_type(row_type, schema.clone(), name);
        }
        let relation = self.catalog.relation(oid);
        let (name, indexes, sequences) =
            (relation.name.clone(), relation.indexes.clone(), relation.owned_sequences.clone());
        let object =
            RenamedObject::Relation { before: self.relation_name(oid), schema: schema.clone(), name: name.clone() };
        self.effects.renames.push(Renaming { object, range });
        self.rename_in_defaults(oid, schema, &name);
        self.catalog.rename_relation(oid, schema.clone(), name);
        for index in indexes {
            let name = self.catalog.relation(index).name.clone();
            self.catalog.rename_relation(index, schema.clone(), name);
        }
        for sequence in sequences {
            self.lock(sequence, LockMode::AccessExclusive, LockCause::Part, range);
            let name = self.catalog.relation(sequence).name.clone();
            self.rename_in_defaults(sequence, schema, &name);
            self.catalog.rename_relation(sequence, schema.clone(), name);
        }
    }

    fn set_type_schema(&mut self, set: &SetSchema) -> Run {
        let Some(oid) = self.named_type(&set.object) else { return self.missing_type(&set.object) };
        let Some(definition) = self.catalog.get_type(oid).cloned() else { return Ok(()) };
        self.check_type_kind(&definition, set.kind, &set.object)?;
        self.check_schema(&set.new_schema)?;
        if definition.schema != set.new_schema.text {
            self.check_type_name(&set.new_schema.text, &Name::new(definition.name.clone(), set.object.range()))?;
        }
        match definition.kind {
            TypeKind::Composite { relation } if self.catalog.get_relation(relation).is_some() => {
                self.move_relation(relation, &set.new_schema.text, set.object.range());
            }
            _ => {
                let (schema, name) = (&set.new_schema.text, &definition.name);
                let (before, after) = ((definition.schema.clone(), name.clone()), (schema.clone(), name.clone()));
                self.rename_in_casts(&before, &after);
                self.note_renamed(super::word(&definition.kind), before, after, set.object.range());
                self.catalog.rename_type(oid, schema.clone(), name.clone());
            }
        }
        Ok(())
    }

    fn move_function(&mut self, oid: Oid, schema: &SmolStr) {
        if let Some(function) = self.catalog.remove_function(oid) {
            let mut function = (*function).clone();
            function.schema = schema.clone();
            self.catalog.add_function(function);
        }
    }
}
