//! ALTER ... RENAME and ALTER ... SET SCHEMA.

mod column;
mod kind;
mod schema;
mod type_name;

pub(super) use kind::is_of_system;

use super::{Executor, Knowledge, Run, fail};
use crate::catalog::{Function, Oid, QualifiedName, RelationKind, SqlType, TypeKind};
use crate::effect::{LockCause, RenamedObject, Renaming};
use pgvet_syntax::ast::{LockMode, Name, ObjectKind, ObjectName, Rename, Signature};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    pub(super) fn rename(&mut self, rename: &Rename) -> Run {
        match rename.kind {
            ObjectKind::Table
            | ObjectKind::View
            | ObjectKind::MaterializedView
            | ObjectKind::ForeignTable
            | ObjectKind::Sequence
            | ObjectKind::Index => self.rename_relation(rename),
            ObjectKind::Column | ObjectKind::Attribute => self.rename_column(rename),
            ObjectKind::Constraint => self.rename_constraint(rename),
            ObjectKind::DomainConstraint => self.rename_domain_constraint(rename),
            ObjectKind::Trigger | ObjectKind::Rule | ObjectKind::Policy => self.rename_part(rename),
            ObjectKind::Type | ObjectKind::Domain => self.rename_type(rename),
            ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine | ObjectKind::Aggregate => {
                self.rename_function(rename)
            }
            ObjectKind::Schema => self.rename_schema(rename),
            ObjectKind::Statistics => self.rename_statistics(rename),
            ObjectKind::Publication => self.rename_publication(rename),
            _ => Ok(()),
        }
    }

    /// The kind that a relation has where no statement has shown it.
    fn assumed_kind(kind: ObjectKind) -> RelationKind {
        match kind {
            ObjectKind::View => RelationKind::View,
            ObjectKind::MaterializedView => RelationKind::MaterializedView,
            ObjectKind::ForeignTable => RelationKind::ForeignTable,
            ObjectKind::Sequence => RelationKind::Sequence,
            ObjectKind::Index => RelationKind::Index,
            ObjectKind::Type => RelationKind::CompositeType,
            _ => RelationKind::Table,
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `RenameRelation`.
    fn rename_relation(&mut self, rename: &Rename) -> Run {
        // ALTER INDEX on an index needs the weaker lock. Other commands have the stronger one before they see the kind.
        let is_index = rename.kind == ObjectKind::Index
            && match self.find(&rename.object) {
                Some(oid) => self.catalog.relation(oid).kind.is_index(),
                None => true,
            };
        // PostgreSQL 12 release notes, section "Indexes".
        let is_weak = is_index && self.target.at_least(12);
        let mode = if is_weak { LockMode::ShareUpdateExclusive } else { LockMode::AccessExclusive };
        let kind = Self::assumed_kind(rename.kind);
        let Some(oid) = self.open_if_exists(&rename.object, kind, mode, rename.if_exists)? else {
            return Ok(());
        };
        if rename.kind != ObjectKind::Index {
            self.check_altered_kind(oid, rename.kind, &rename.object)?;
        }
        let relation = self.catalog.relation(oid);
        let (schema, new) = (relation.schema.clone(), rename.new_name.text.clone());
        if let Some(taken) = self.catalog.relation_named(&schema, &new) {
            let reason = format!("relation \"{new}\" already exists");
            return self.refuse_taken_name(taken, reason, rename.new_name.range);
        }
        if let Some(table) = relation.index().map(|index| index.table) {
            if self.constraint_with_index(table, oid).is_some() {
                self.check_constraint_is_new(table, &rename.new_name)?;
            }
            if let Some(constraint) = self.constraint_with_index(table, oid) {
                self.note_renamed_constraint(table, &constraint, &new, rename.object.range());
                self.catalog.rename_constraint(table, &constraint, new.clone());
            }
        } else if let Some(row_type) = self.row_type_of(oid) {
            self.check_type_name(&schema, &rename.new_name)?;
            self.catalog.rename_type(row_type, schema.clone(), new.clone());
        }
        let before = self.relation_name(oid);
        let object = RenamedObject::Relation { before, schema: schema.clone(), name: new.clone() };
        self.effects.renames.push(Renaming { object, range: rename.object.range() });
        self.rename_in_defaults(oid, &schema, &new);
        self.catalog.rename_relation(oid, schema, new);
        Ok(())
    }

    /// Notes that a type, domain or function has another name.
    fn note_renamed(&mut self, kind: &'static str, before: QualifiedName, after: QualifiedName, range: TextRange) {
        self.effects.renames.push(Renaming { object: RenamedObject::Other { kind, before, after }, range });
    }

    fn note_renamed_constraint(&mut self, table: Oid, old: &SmolStr, new: &SmolStr, range: TextRange) {
        let object = RenamedObject::Constraint { table: self.relation_name(table), old: old.clone(), new: new.clone() };
        self.effects.renames.push(Renaming { object, range });
    }

    /// The constraint that an index implements.
    fn constraint_with_index(&self, table: Oid, index: Oid) -> Option<SmolStr> {
        let constraints = &self.catalog.relation(table).constraints;
        constraints.iter().find(|constraint| constraint.index() == Some(index)).map(|found| found.name.clone())
    }

    /// The composite type of a relation's rows.
    pub(super) fn row_type_of(&self, oid: Oid) -> Option<Oid> {
        let relation = self.catalog.relation(oid);
        let candidate = self.catalog.type_named(&relation.schema, &relation.name)?;
        match self.catalog.get_type(candidate)?.kind {
            TypeKind::Composite { relation } if relation == oid => Some(candidate),
            _ => None,
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `RenameConstraint`.
    fn rename_constraint(&mut self, rename: &Rename) -> Run {
        let mode = LockMode::AccessExclusive;
        let Some(table) = self.open_if_exists(&rename.object, RelationKind::Table, mode, rename.if_exists)? else {
            return Ok(());
        };
        let Some(old) = &rename.sub_name else { return Ok(()) };
        let relation = self.catalog.relation(table);
        // `rename_constraint_internal` asks what it would ask of a column.
        if relation.of_type.is_some() {
            return fail("42809", "cannot rename column of typed table", old.range);
        }
        let Some(constraint) = self.constraint_named(table, &old.text).cloned() else {
            if relation.known {
                let reason = format!("constraint \"{}\" for table \"{}\" does not exist", old.text, relation.name);
                return fail("42704", reason, old.range);
            }
            return Ok(());
        };
        let inherited = matches!(
            constraint.kind,
            crate::catalog::ConstraintKind::Check { .. } | crate::catalog::ConstraintKind::NotNull { .. }
        );
        if inherited && !constraint.no_inherit {
            if constraint.inherited_from > 0 {
                return fail("42P16", format!("cannot rename inherited constraint \"{}\"", old.text), old.range);
            }
            if rename.only && !relation.children.is_empty() {
                let reason = format!("inherited constraint \"{}\" must be renamed in child tables too", old.text);
                return fail("42P16", reason, old.range);
            }
        }
        let new = &rename.new_name.text;
        let index = constraint.index().filter(|index| self.catalog.get_relation(*index).is_some());
        if index.is_some()
            && let Some(taken) = self.catalog.relation_named(&relation.schema, new)
        {
            let reason = format!("relation \"{new}\" already exists");
            return self.refuse_taken_name(taken, reason, rename.new_name.range);
        }
        if self.constraint_named(table, new).is_some() || relation.has_constraint_trigger(new) {
            let reason = format!("constraint \"{new}\" for relation \"{}\" already exists", relation.name);
            return fail("42710", reason, rename.new_name.range);
        }
        if let Some(index) = index {
            self.lock(index, LockMode::ShareUpdateExclusive, LockCause::Part, rename.object.range());
            let schema = self.catalog.relation(index).schema.clone();
            self.catalog.rename_relation(index, schema, new.clone());
            self.note_renamed_constraint(table, &old.text, new, rename.object.range());
        }
        self.catalog.rename_constraint(table, &old.text, new.clone());
        // A CHECK has the same name in all children; a NOT NULL that a child had before keeps its own.
        if inherited && !constraint.no_inherit && !rename.only {
            for child in self.lock_descendants(table, mode, rename.object.range()) {
                let part = self.catalog.relation(child);
                if part.known && self.constraint_named(child, &old.text).is_none() {
                    let reason = format!("constraint \"{}\" for table \"{}\" does not exist", old.text, part.name);
                    return fail("42704", reason, old.range);
                }
                self.catalog.rename_constraint(child, &old.text, new.clone());
            }
        }
        Ok(())
    }

    fn rename_domain_constraint(&mut self, rename: &Rename) -> Run {
        let Some(old) = &rename.sub_name else { return Ok(()) };
        let Some(domain) = self.named_type(&rename.object) else {
            return self.missing_type(&rename.object);
        };
        if let Some(definition) = self.catalog.get_type(domain) {
            self.check_type_kind(definition, ObjectKind::Domain, &rename.object)?;
        }
        let Some(TypeKind::Domain(mut changed)) =
            self.catalog.get_type(domain).map(|definition| definition.kind.clone())
        else {
            return Ok(());
        };
        let new = &rename.new_name;
        if !changed.has_constraint(&old.text) {
            let reason = format!("constraint \"{}\" for domain {} does not exist", old.text, rename.object);
            return fail("42704", reason, old.range);
        }
        if changed.has_constraint(&new.text) {
            let reason = format!("constraint \"{}\" for domain {} already exists", new.text, rename.object);
            return fail("42710", reason, new.range);
        }
        if !changed.checks.rename(&old.text, new.text.clone()) {
            changed.not_null_name = Some(new.text.clone());
        }
        self.catalog.set_domain(domain, changed);
        Ok(())
    }

    /// Triggers, rules and policies.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/trigger.c`, `renametrig`; `policy.c`, `rename_policy`.
    fn rename_part(&mut self, rename: &Rename) -> Run {
        let mode = LockMode::AccessExclusive;
        let Some(table) = self.open_if_exists(&rename.object, RelationKind::Table, mode, rename.if_exists)? else {
            return Ok(());
        };
        let (Some(old), new) = (&rename.sub_name, &rename.new_name.text) else { return Ok(()) };
        self.check_part_rename(table, rename, old)?;
        let mut tables = vec![table];
        let partitioned = self.catalog.relation(table).kind == RelationKind::PartitionedTable;
        if rename.kind == ObjectKind::Trigger && partitioned && self.target.at_least(15) {
            tables.extend(self.lock_descendants(table, mode, rename.object.range()));
        }
        for table in tables {
            let relation = self.catalog.relation_mut(table);
            match rename.kind {
                ObjectKind::Trigger => drop(relation.triggers.rename(&old.text, new.clone())),
                ObjectKind::Policy => drop(relation.policies.rename(&old.text, new.clone())),
                _ => relation.rules.iter_mut().filter(|rule| **rule == old.text).for_each(|rule| rule.clone_from(new)),
            }
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/typecmds.c`, `RenameType`.
    fn rename_type(&mut self, rename: &Rename) -> Run {
        let Some(oid) = self.named_type(&rename.object) else { return self.missing_type(&rename.object) };
        let Some(definition) = self.catalog.get_type(oid).cloned() else { return Ok(()) };
        let new = rename.new_name.text.clone();
        self.check_type_kind(&definition, rename.kind, &rename.object)?;
        self.check_type_name(&definition.schema, &rename.new_name)?;
        if let TypeKind::Composite { relation } = definition.kind
            && self.catalog.get_relation(relation).is_some()
        {
            self.lock(relation, LockMode::AccessExclusive, LockCause::Target, rename.object.range());
            if let Some(taken) = self.catalog.relation_named(&definition.schema, &new) {
                let reason = format!("relation \"{new}\" already exists");
                return self.refuse_taken_name(taken, reason, rename.new_name.range);
            }
            self.catalog.rename_relation(relation, definition.schema.clone(), new.clone());
        }
        let (before, after) =
            ((definition.schema.clone(), definition.name.clone()), (definition.schema.clone(), new.clone()));
        self.rename_in_casts(&before, &after);
        self.note_renamed(word(&definition.kind), before, after, rename.object.range());
        self.catalog.rename_type(oid, definition.schema.clone(), new);
        Ok(())
    }

    fn rename_function(&mut self, rename: &Rename) -> Run {
        let signature = Signature { name: rename.object.clone(), arguments: rename.arguments.clone() };
        self.check_routine(&signature, rename.kind)?;
        if let Some(oid) = self.function_with(&signature) {
            self.check_function_name(oid, None, &rename.new_name)?;
        }
        if let Some(oid) = self.function_with(&signature)
            && let Some(function) = self.catalog.remove_function(oid)
        {
            let mut function = (*function).clone();
            let before = (function.schema.clone(), function.name.clone());
            function.name = rename.new_name.text.clone();
            let after = (function.schema.clone(), function.name.clone());
            self.note_renamed("function", before, after, rename.object.range());
            self.catalog.add_function(function);
        }
        Ok(())
    }

    /// Functions of a schema share a name only where they have other arguments.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/functioncmds.c`, `IsThereFunctionInNamespace`.
    pub(super) fn check_function_name(&self, oid: Oid, schema: Option<&str>, name: &Name) -> Run {
        let Some(function) = self.catalog.get_function(oid) else { return Ok(()) };
        let inputs = |function: &Function| -> Vec<SqlType> {
            let inputs = function.parameters.iter().filter(|one| one.mode.is_input());
            inputs.map(|parameter| parameter.sql_type).collect()
        };
        let schema = schema.unwrap_or(&function.schema);
        let mut others = self.catalog.functions_named(schema, &name.text);
        if others.any(|other| inputs(other) == inputs(function)) {
            let reason = format!("function {} with these arguments already exists in \"{schema}\"", name.text);
            return fail("42723", reason, name.range);
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/alter.c`, `AlterObjectRename_internal`.
    fn rename_statistics(&mut self, rename: &Rename) -> Run {
        let Some(old) = self.statistics_to_alter(&rename.object)? else { return Ok(()) };
        let new = (old.0.clone(), rename.new_name.text.clone());
        if self.catalog.statistics_named(&new.0, &new.1).is_some() {
            let reason = format!("statistics object \"{}\" already exists in schema \"{}\"", new.1, new.0);
            return fail("42710", reason, rename.new_name.range);
        }
        self.catalog.rename_statistics(&old, new);
        Ok(())
    }

    /// Extended statistics by name; `None` where they may be there though no statement has shown them.
    pub(super) fn statistics_to_alter(&self, name: &ObjectName) -> Run<Option<QualifiedName>> {
        let found = self.find_statistics(name);
        if found.is_none() && self.knowledge == Knowledge::Everything {
            self.check_schema_of(name)?;
            return fail("42704", format!("statistics object \"{name}\" does not exist"), name.range());
        }
        Ok(found)
    }

    fn rename_publication(&mut self, rename: &Rename) -> Run {
        let Some(known) = self.catalog.publication(&rename.object.name.text) else { return Ok(()) };
        let mut publication = (**known).clone();
        let new = &rename.new_name;
        if self.catalog.publication(&new.text).is_some() {
            return fail("42710", format!("publication \"{}\" already exists", new.text), new.range);
        }
        self.catalog.remove_publication(&rename.object.name.text);
        publication.name = new.text.clone();
        self.catalog.set_publication(publication);
        Ok(())
    }
}

/// `type` or `domain`.
fn word(kind: &TypeKind) -> &'static str {
    if matches!(kind, TypeKind::Domain(_)) { "domain" } else { "type" }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_failure, check_locks};

    #[test]
    fn what_hangs_on_a_relation_follows_its_new_name_and_schema() {
        let history = "CREATE TABLE t(id serial PRIMARY KEY, a int CHECK (a > 0)); CREATE SCHEMA s;";
        let moved = format!("{history} ALTER TABLE t SET SCHEMA s;");
        check_locks(&moved, "SELECT nextval('s.t_id_seq')", &["t_id_seq RowExclusive"]);
        check_failure(&moved, "SELECT * FROM t", "42P01");
        let renamed = format!("{history} ALTER TABLE t RENAME COLUMN a TO b;");
        check_failure(&renamed, "ALTER TABLE t RENAME COLUMN a TO c", "42703");
        check_locks(
            history,
            "ALTER TABLE t RENAME CONSTRAINT t_pkey TO k",
            &["t AccessExclusive", "t_pkey ShareUpdateExclusive"],
        );
        let schema = format!("{moved} ALTER SCHEMA s RENAME TO s2;");
        check_locks(&schema, "COMMENT ON TABLE s2.t IS 'x'", &["t ShareUpdateExclusive"]);
    }
}
