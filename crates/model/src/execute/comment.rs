//! COMMENT: nothing that the model keeps, but the object must be there.
//!
//! Source: PostgreSQL 18, `src/backend/commands/comment.c`; `src/backend/catalog/objectaddress.c`,
//! `get_object_address`.

use super::{Executor, Run, fail};
use crate::builtin;
use crate::catalog::{RelationKind, TypeKind};
use pgvet_syntax::ast::{Comment, LockMode, Name, ObjectKind, ObjectName, Signature};

impl Executor<'_> {
    pub(super) fn comment(&mut self, comment: &Comment) -> Run {
        let object = &comment.object;
        match comment.kind {
            ObjectKind::Table | ObjectKind::Column => self.comment_on_relation(comment, RelationKind::Table),
            ObjectKind::View => self.comment_on_relation(comment, RelationKind::View),
            ObjectKind::MaterializedView => self.comment_on_relation(comment, RelationKind::MaterializedView),
            ObjectKind::ForeignTable => self.comment_on_relation(comment, RelationKind::ForeignTable),
            ObjectKind::Index => self.comment_on_relation(comment, RelationKind::Index),
            ObjectKind::Sequence => self.comment_on_relation(comment, RelationKind::Sequence),
            ObjectKind::Trigger | ObjectKind::Rule | ObjectKind::Policy | ObjectKind::Constraint => {
                self.comment_on_part(comment)
            }
            ObjectKind::Type | ObjectKind::Domain => self.check_type_exists(object, comment.kind),
            ObjectKind::DomainConstraint => self.comment_on_domain_constraint(object, comment.sub_name.as_ref()),
            ObjectKind::Schema => self.check_schema(&object.name),
            ObjectKind::Statistics => self.statistics_to_alter(object).map(drop),
            ObjectKind::Function | ObjectKind::Procedure => {
                let signature = Signature { name: object.clone(), arguments: comment.arguments.clone() };
                self.check_routine(&signature, comment.kind)
            }
            ObjectKind::Routine => self.check_routine_name(object),
            _ => Ok(()),
        }
    }

    fn comment_on_relation(&mut self, comment: &Comment, kind: RelationKind) -> Run {
        if self.is_system_relation(&comment.object) {
            return Ok(());
        }
        let oid = self.open(&comment.object, kind, LockMode::ShareUpdateExclusive)?;
        if comment.kind != ObjectKind::Column {
            let actual = self.catalog.relation(oid);
            let fits = actual.kind == kind
                || (kind == RelationKind::Table && actual.kind == RelationKind::PartitionedTable)
                || (kind == RelationKind::Index && actual.kind == RelationKind::PartitionedIndex);
            if !fits && actual.known {
                let reason = format!("\"{}\" is not of the kind that is commented on", actual.name);
                return fail("42809", reason, comment.object.range());
            }
        }
        if let Some(column) = comment.sub_name.as_ref().filter(|_| comment.kind == ObjectKind::Column) {
            let relation = self.catalog.relation(oid);
            if relation.known && relation.column(&column.text).is_none() {
                let reason = format!("column \"{}\" of relation \"{}\" does not exist", column.text, relation.name);
                return fail("42703", reason, column.range);
            }
        }
        Ok(())
    }

    fn comment_on_part(&mut self, comment: &Comment) -> Run {
        let table = self.open(&comment.object, RelationKind::Table, LockMode::AccessShare)?;
        let Some(name) = &comment.sub_name else { return Ok(()) };
        if comment.kind != ObjectKind::Constraint {
            return self.check_part_exists(table, comment.kind, name);
        }
        let relation = self.catalog.relation(table);
        if relation.known && self.constraint_named(table, &name.text).is_none() {
            let reason = format!("constraint \"{}\" for table \"{}\" does not exist", name.text, relation.name);
            return fail("42704", reason, name.range);
        }
        Ok(())
    }

    /// A type, of the project or PostgreSQL's own.
    fn check_type_exists(&self, name: &ObjectName, kind: ObjectKind) -> Run {
        let schema = name.schema.as_ref().map_or("pg_catalog", |schema| &schema.text);
        let own = self.named_type(name).and_then(|oid| self.catalog.get_type(oid));
        let own = own.filter(|definition| !matches!(definition.kind, TypeKind::Assumed));
        let builtin = builtin::type_in(schema, &name.name.text).is_some();
        match own {
            None if !builtin => self.missing_type(name),
            _ if kind == ObjectKind::Type => Ok(()),
            Some(definition) if matches!(definition.kind, TypeKind::Domain(_)) => Ok(()),
            _ => fail("42809", format!("\"{name}\" is not a domain"), name.range()),
        }
    }

    fn comment_on_domain_constraint(&self, domain: &ObjectName, constraint: Option<&Name>) -> Run {
        self.check_type_exists(domain, ObjectKind::Domain)?;
        let definition = self.named_type(domain).and_then(|oid| self.catalog.get_type(oid));
        if let (Some(TypeKind::Domain(known)), Some(name)) = (definition.map(|own| &own.kind), constraint)
            && !known.constraint_names().any(|other| *other == name.text)
        {
            let reason = format!("constraint \"{}\" for domain {domain} does not exist", name.text);
            return fail("42704", reason, name.range);
        }
        Ok(())
    }
}
