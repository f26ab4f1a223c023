//! The type of a table's rows: where values of it are stored, its columns cannot get new values.

use crate::catalog::{Mention, Oid, RelationKind, TypeKind};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// A table or composite type whose columns get new values must not be, or be part of, the type of a stored column.
    ///
    /// Source: PostgreSQL 14 to 18, `src/backend/commands/tablecmds.c`, `find_composite_type_dependencies`.
    pub(super) fn check_row_type_unused(&self, table: Oid, range: TextRange) -> Run {
        let relation = self.catalog.relation(table);
        let mut sought: Vec<Oid> = self.row_type_of(table).into_iter().collect();
        let mut at = 0;
        while let Some(&row_type) = sought.get(at) {
            at += 1;
            for container in self.containers(row_type) {
                if !sought.contains(&container) {
                    sought.push(container);
                }
            }
            let users = self.catalog.relations_mentioning(&[Mention::Object(row_type)]);
            for user in users.iter().filter(|user| user.columns.iter().any(|one| one.sql_type.oid == row_type)) {
                if matches!(
                    user.kind,
                    RelationKind::Table | RelationKind::MaterializedView | RelationKind::PartitionedTable
                ) {
                    let (name, user) = (&relation.name, &user.name);
                    let reason = format!("cannot alter \"{name}\" because a column of \"{user}\" uses its row type");
                    return fail("0A000", reason, range);
                }
                sought.extend(self.row_type_of(user.oid).filter(|own| !sought.contains(own)));
            }
        }
        Ok(())
    }

    /// Types that are made of a type: its array, and domains and ranges over it.
    fn containers(&self, part: Oid) -> Vec<Oid> {
        let is_made_of = |kind: &TypeKind| match kind {
            TypeKind::Domain(domain) => domain.base.oid == part,
            TypeKind::Range { subtype } => subtype.oid == part,
            _ => false,
        };
        let array = self.catalog.get_type(part).map(|definition| definition.array).filter(|array| array.is_valid());
        let made = self.catalog.types_mentioning(&[Mention::Object(part)]).into_iter();
        let made = made.filter(|definition| is_made_of(&definition.kind)).map(|definition| definition.oid);
        array.into_iter().chain(made).collect()
    }
}
