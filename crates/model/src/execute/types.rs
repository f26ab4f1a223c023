//! CREATE TYPE, domains and the labels of enums.

mod domain;
mod enums;

use super::{Executor, Knowledge, Run, fail};
use crate::catalog::{Column, EnumLabel, Oid, Relation, RelationKind, SqlType, TypeKind};
use pgvet_syntax::ast::{ColumnDef, CreateType, CreateTypeKind, DefElem, DefValue, ObjectName, TypeName};
use smol_str::{SmolStr, format_smolstr};

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/typecmds.c`.
    pub(super) fn create_type(&mut self, create: &CreateType) -> Run {
        let schema = self.schema_to_fill(&create.name, false)?;
        let name = create.name.name.text.clone();
        self.check_type_is_new(&schema, &create.name)?;
        match &create.kind {
            CreateTypeKind::Composite(columns) => self.create_composite_type(schema, name, columns, create),
            CreateTypeKind::Enum(labels) => {
                let labels = labels.iter().map(|label| EnumLabel { label: label.clone(), added_in: None }).collect();
                self.catalog.add_type(&schema, &name, TypeKind::Enum { labels }, self.transaction);
                Ok(())
            }
            CreateTypeKind::Range(options) => {
                // It comes with functions that make ranges.
                self.catalog.note_more_code();
                self.create_range_type(&schema, &name, options);
                Ok(())
            }
            CreateTypeKind::Base(_) => {
                self.catalog.note_more_code();
                self.catalog.add_type(&schema, &name, TypeKind::Base, self.transaction);
                Ok(())
            }
            CreateTypeKind::Shell => {
                self.catalog.add_type(&schema, &name, TypeKind::Shell, self.transaction);
                Ok(())
            }
        }
    }

    /// The name of a new type must be free.
    fn check_type_is_new(&self, schema: &str, name: &ObjectName) -> Run {
        match self.catalog.type_in_the_way(schema, &name.name.text) {
            Some(_) => fail("42710", format!("type \"{}\" already exists", name.name.text), name.range()),
            None => Ok(()),
        }
    }

    fn create_composite_type(
        &mut self,
        schema: SmolStr,
        name: SmolStr,
        definitions: &[ColumnDef],
        create: &CreateType,
    ) -> Run {
        self.check_name_is_free(&schema, &create.name)?;
        let oid = self.catalog.new_oid();
        let birth = self.birth(false);
        let mut relation = Relation::new(oid, schema.clone(), name.clone(), RelationKind::CompositeType, birth);
        relation.placed_by_path = self.is_placed_by_path(&create.name);
        for definition in definitions {
            let sql_type = match &definition.type_name {
                Some(type_name) => self.resolve_type(type_name),
                None => SqlType::UNKNOWN,
            };
            relation.columns.push(Column::new(definition.name.text.clone(), sql_type));
        }
        self.catalog.add_relation(relation);
        self.catalog.add_type(&schema, &name, TypeKind::Composite { relation: oid }, self.transaction);
        self.created.insert(oid);
        Ok(())
    }

    /// A range type comes with a multirange type.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_type.c`, `makeMultirangeTypeName`.
    fn create_range_type(&mut self, schema: &SmolStr, name: &SmolStr, options: &[DefElem]) {
        let value = |wanted: &str| options.iter().find(|option| option.name == wanted).map(|option| &option.value);
        let subtype = match value("subtype") {
            Some(DefValue::Type(type_name)) => self.resolve_type(type_name),
            Some(DefValue::Names(names)) => self.resolve_names(names),
            _ => SqlType::UNKNOWN,
        };
        let multirange = match value("multirange_type_name") {
            Some(DefValue::Names(names)) => names.last().cloned(),
            Some(DefValue::Type(type_name)) => Some(type_name.name.clone()),
            _ => None,
        };
        let multirange = multirange.unwrap_or_else(|| {
            if let Some(at) = name.find("range") {
                format_smolstr!("{}multirange{}", &name[..at], &name[at + "range".len()..])
            } else {
                format_smolstr!("{name}_multirange")
            }
        });
        let range = self.catalog.add_type(schema, name, TypeKind::Range { subtype }, self.transaction);
        self.catalog.add_type(schema, &multirange, TypeKind::Multirange { range }, self.transaction);
    }

    fn resolve_names(&mut self, names: &[SmolStr]) -> SqlType {
        let Some(name) = names.last() else { return SqlType::UNKNOWN };
        let schema = names.len().checked_sub(2).and_then(|at| names.get(at)).cloned();
        self.resolve_type(&TypeName::plain(schema, name.clone()))
    }

    /// Fails where everything is known but the type.
    pub(crate) fn missing_type(&self, name: &ObjectName) -> Run {
        if self.knowledge == Knowledge::Everything && self.catalog.extensions().next().is_none() {
            self.check_schema_of(name)?;
            return fail("42704", format!("type \"{name}\" does not exist"), name.range());
        }
        Ok(())
    }

    /// A type of the project by name.
    pub(crate) fn named_type(&self, name: &ObjectName) -> Option<Oid> {
        if let Some(schema) = &name.schema {
            self.catalog.type_named(&schema.text, &name.name.text)
        } else {
            let path = self.session.settings.search_path();
            path.iter().find_map(|schema| self.catalog.type_named(schema, &name.name.text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_failure, check_locks, effects_on};

    #[test]
    fn a_new_label_is_not_used_in_its_transaction() {
        let history = "CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE t(m mood);";
        let add = "BEGIN; ALTER TYPE mood ADD VALUE 'ok';";
        for usage in ["SELECT 'ok'::mood", "INSERT INTO t VALUES ('ok')", "UPDATE t SET m = 'ok'"] {
            check_failure(history, &format!("{add} {usage}"), "55P04");
            check_failure(history, &format!("{add} COMMIT; {usage}"), "");
        }
        let new_type = "BEGIN; CREATE TYPE e AS ENUM ('a'); ALTER TYPE e ADD VALUE 'b';";
        for (version, expected) in [(11, None), (12, Some("55P04")), (16, Some("55P04")), (17, None)] {
            let fails = |sql: &str| effects_on(version, "", sql).fails.map(|failure| failure.sqlstate);
            assert_eq!(fails(&format!("{new_type} SELECT 'b'::e")), expected, "{version}");
            assert_eq!(fails(&format!("{new_type} SELECT 'a'::e")), None, "{version}");
        }
        check_failure(history, "ALTER TYPE mood ADD VALUE 'sad'", "42710");
    }

    #[test]
    fn constraints_of_a_domain_lock_and_read_its_tables() {
        let history = "CREATE DOMAIN d AS int; CREATE DOMAIN e AS d; CREATE TABLE t(a d); CREATE TABLE u(a e);";
        check_locks(history, "ALTER DOMAIN d SET NOT NULL", &["t Share", "u Share"]);
        check_locks(history, "ALTER DOMAIN e ADD CHECK (VALUE > 0)", &["u Share"]);
        check_locks(history, "ALTER DOMAIN d ADD CHECK (VALUE > 0) NOT VALID", &[]);
    }
}
