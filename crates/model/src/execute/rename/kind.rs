//! Objects that ALTER refuses because they are of another kind, are a part of another or do not exist.

use crate::builtin::{self, Extension};
use crate::catalog::{Oid, Relation, RelationKind, TypeDef, TypeKind, is_of_platform};
use crate::execute::{Executor, Knowledge, Run, fail};
use pgvet_syntax::ast::{Name, ObjectKind, ObjectName, Rename, Signature};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `RangeVarCallbackForAlterRelation`.
    pub(super) fn check_altered_kind(&self, oid: Oid, kind: ObjectKind, name: &ObjectName) -> Run {
        let relation = self.catalog.relation(oid);
        let fits = match kind {
            ObjectKind::View => relation.kind == RelationKind::View,
            ObjectKind::MaterializedView => relation.kind == RelationKind::MaterializedView,
            ObjectKind::Sequence => relation.kind == RelationKind::Sequence,
            ObjectKind::ForeignTable => relation.kind == RelationKind::ForeignTable,
            ObjectKind::Type => relation.kind == RelationKind::CompositeType,
            _ => relation.kind != RelationKind::CompositeType,
        };
        if fits || !relation.known {
            return Ok(());
        }
        fail("42809", format!("\"{}\" is not of the kind that the command alters", relation.name), name.range())
    }

    /// ALTER DOMAIN is about domains, ALTER TYPE not about the row types of tables.
    pub(crate) fn check_type_kind(&self, definition: &TypeDef, kind: ObjectKind, name: &ObjectName) -> Run {
        if matches!(definition.kind, TypeKind::Assumed) {
            return Ok(());
        }
        if kind == ObjectKind::Domain && !matches!(definition.kind, TypeKind::Domain(_)) {
            return fail("42809", format!("{} is not a domain", definition.name), name.range());
        }
        if let TypeKind::Composite { relation } = definition.kind
            && let Some(relation) = self.catalog.get_relation(relation)
            && relation.kind != RelationKind::CompositeType
        {
            return fail("42809", format!("{} is a table's row type", definition.name), name.range());
        }
        Ok(())
    }

    /// Fails where a type has the name that does not make way. A shell makes way for a new type alone.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_type.c`, `RenameTypeInternal`.
    pub(super) fn check_type_name(&self, schema: &str, new: &Name) -> Run {
        let taken = self.catalog.type_named(schema, &new.text).and_then(|other| self.catalog.get_type(other));
        if taken.is_some_and(|taken| matches!(taken.kind, TypeKind::Shell) || !taken.kind.makes_way()) {
            return fail("42710", format!("type \"{}\" already exists", new.text), new.range);
        }
        Ok(())
    }

    /// Triggers, rules and policies must exist, and their new name be free. A trigger that a partition has from its parent
    /// keeps its name.
    ///
    /// Source: PostgreSQL 14 to 18, `src/backend/commands/trigger.c`, `renametrig`; `policy.c`, `rename_policy`;
    /// `src/backend/rewrite/rewriteDefine.c`, `RenameRewriteRule`.
    pub(super) fn check_part_rename(&self, table: Oid, rename: &Rename, old: &Name) -> Run {
        let relation = self.catalog.relation(table);
        if !relation.known {
            return Ok(());
        }
        if rename.kind == ObjectKind::Trigger && !relation.kind.is_table() && relation.kind != RelationKind::View {
            return fail("42809", format!("relation \"{}\" cannot have triggers", relation.name), old.range);
        }
        let new = &rename.new_name;
        let keeps_name = rename.kind == ObjectKind::Trigger && self.target.at_least(15);
        let taken = has_part(relation, rename.kind, &new.text) && !(keeps_name && new.text == old.text);
        let new_is_asked_first = match rename.kind {
            ObjectKind::Trigger => !self.target.at_least(15),
            kind => kind == ObjectKind::Policy,
        };
        if !(taken && new_is_asked_first) {
            self.check_part_exists(table, rename.kind, old)?;
        }
        let trigger = relation.triggers.get(&old.text);
        if rename.kind == ObjectKind::Trigger
            && trigger.is_some_and(|trigger| trigger.inherited)
            && self.target.at_least(15)
        {
            let sqlstate = if self.target.at_least(18) { "0A000" } else { "XX000" };
            return fail(sqlstate, format!("cannot rename trigger \"{}\" of a partition", old.text), old.range);
        }
        if rename.kind == ObjectKind::Rule && is_view_rule(relation, &old.text) {
            return fail("42P17", "renaming an ON SELECT rule is not allowed", old.range);
        }
        if taken {
            let reason = format!("\"{}\" for table \"{}\" already exists", new.text, relation.name);
            return fail("42710", reason, new.range);
        }
        Ok(())
    }

    /// A trigger, rule or policy of a table.
    pub(in crate::execute) fn check_part_exists(&self, table: Oid, kind: ObjectKind, name: &Name) -> Run {
        let relation = self.catalog.relation(table);
        let of_view = kind == ObjectKind::Rule && is_view_rule(relation, &name.text);
        if !relation.known || of_view || has_part(relation, kind, &name.text) {
            return Ok(());
        }
        let reason = format!("\"{}\" for table \"{}\" does not exist", name.text, relation.name);
        fail("42704", reason, name.range)
    }

    /// A routine must exist, be the only one that is meant, and be of the kind that the command names.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_func.c`, `LookupFuncWithArgs`.
    pub(crate) fn check_routine(&mut self, signature: &Signature, kind: ObjectKind) -> Run {
        let range = signature.name.range();
        let name = &signature.name;
        if let Some(oid) = self.function_with(signature) {
            let Some(function) = self.catalog.get_function(oid) else { return Ok(()) };
            let fits = match kind {
                ObjectKind::Function => !function.procedure,
                ObjectKind::Procedure => function.procedure,
                ObjectKind::Aggregate => function.aggregate,
                _ => true,
            };
            return if fits { Ok(()) } else { fail("42809", format!("{name} is a routine of another kind"), range) };
        }
        let schemas = self.session.settings.schemas_of(name);
        let named = schemas.iter().map(|schema| self.catalog.functions_named(schema, &name.name.text).count());
        let count: usize = named.sum();
        if signature.arguments.is_none() && count > 1 {
            return fail("42725", format!("function name \"{name}\" is not unique"), range);
        }
        match kind {
            ObjectKind::Aggregate | ObjectKind::Routine => Ok(()),
            _ => {
                self.check_schema_of(name)?;
                self.check_other_routine(name.schema.as_ref().map(|schema| &schema.text), &name.name.text, range)
            }
        }
    }

    /// A routine of that name must exist, whatever its arguments are.
    pub(crate) fn check_routine_name(&self, name: &ObjectName) -> Run {
        let named = |schema: &SmolStr| self.catalog.functions_named(schema, &name.name.text).next().is_some();
        if self.session.settings.schemas_of(name).iter().any(named) {
            return Ok(());
        }
        self.check_other_routine(name.schema.as_ref().map(|schema| &schema.text), &name.name.text, name.range())
    }

    /// A routine that the project has not made must be PostgreSQL's or an extension's.
    pub(crate) fn check_other_routine(&self, schema: Option<&SmolStr>, name: &SmolStr, range: TextRange) -> Run {
        let of_extension =
            |extension: &&'static Extension| extension.functions.iter().any(|function| function.name == name);
        let exists = is_of_system(schema, name) || self.catalog.known_extensions().iter().any(of_extension);
        if exists || !self.knows_all_of(schema) || !self.knows_all_code() {
            return Ok(());
        }
        fail("42883", format!("function {name} does not exist"), range)
    }

    /// Whether an object of the schema, or of any, exists only if the catalog has it.
    pub(crate) fn knows_all_of(&self, schema: Option<&SmolStr>) -> bool {
        let is_foreign = |schema: &SmolStr| is_of_platform(schema) && !self.catalog.has_schema(schema);
        self.knowledge == Knowledge::Everything && !schema.is_some_and(is_foreign) && !self.may_be_of_extension(schema)
    }

    /// Whether an extension may have created an object of this schema whose objects are not known. It can create a schema,
    /// too, often one of its own name.
    fn may_be_of_extension(&self, schema: Option<&SmolStr>) -> bool {
        let may_be = |schema: &SmolStr, name: &SmolStr, own: &SmolStr| {
            schema == own || schema == name || !self.catalog.has_schema(schema)
        };
        self.catalog.unknown_extensions().any(|(name, own)| schema.is_none_or(|schema| may_be(schema, name, own)))
    }

    /// A missing schema is an error only where everything is known.
    pub(crate) fn check_schema(&self, schema: &Name) -> Run {
        let system = schema.text.starts_with("pg_") || schema.text == "information_schema";
        if self.knows_all_of(Some(&schema.text)) && !system && !self.catalog.has_schema(&schema.text) {
            return fail("3F000", format!("schema \"{}\" does not exist", schema.text), schema.range);
        }
        Ok(())
    }
}

/// Whether PostgreSQL itself has functions of this name, or may have them.
pub(crate) fn is_of_system(schema: Option<&SmolStr>, name: &str) -> bool {
    let in_system = schema.is_some_and(|schema| schema.starts_with("pg_") || schema == "information_schema");
    in_system || !builtin::functions(name).is_empty()
}

fn has_part(relation: &Relation, kind: ObjectKind, name: &SmolStr) -> bool {
    match kind {
        ObjectKind::Trigger => relation.triggers.contains(name),
        ObjectKind::Policy => relation.policies.contains(name),
        _ => relation.rules.contains(name),
    }
}

/// The rule that makes a view.
fn is_view_rule(relation: &Relation, name: &str) -> bool {
    name == "_RETURN" && relation.kind == RelationKind::View
}
