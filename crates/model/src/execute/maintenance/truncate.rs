//! TRUNCATE.

use crate::catalog::{EmptiedBy, Oid, RelationKind};
use crate::effect::{IndexBuildCause, LockCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{DropBehavior, LockMode, Truncate};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ExecuteTruncate`.
    pub(crate) fn truncate(&mut self, truncate: &Truncate) -> Run {
        let mut tables: Vec<(Oid, TextRange)> = Vec::new();
        for (name, only) in &truncate.tables {
            let range = name.range();
            let oid = self.open(name, RelationKind::Table, LockMode::AccessExclusive)?;
            let relation = self.catalog.relation(oid);
            if !relation.kind.is_table() && relation.known {
                return fail("42809", format!("\"{}\" is not a table", relation.name), range);
            }
            if *only && relation.kind == RelationKind::PartitionedTable {
                return fail("42809", "cannot truncate only a partitioned table", range);
            }
            add(&mut tables, oid, range);
            if !only {
                for child in self.lock_descendants(oid, LockMode::AccessExclusive, range) {
                    add(&mut tables, child, range);
                }
            }
        }
        match truncate.behavior {
            DropBehavior::Cascade => self.add_referencing_tables(&mut tables),
            DropBehavior::Restrict => self.check_references(&tables)?,
        }
        for (table, range) in &tables {
            if truncate.restart_identity {
                for sequence in self.catalog.relation(*table).owned_sequences.clone() {
                    self.lock(sequence, LockMode::AccessExclusive, LockCause::Part, *range);
                }
            }
            for index in self.catalog.relation(*table).indexes.clone() {
                if self.catalog.relation(index).kind == RelationKind::Index {
                    self.lock(index, LockMode::AccessExclusive, LockCause::Part, *range);
                    self.build_index(index, IndexBuildCause::Rewrite, false, *range);
                }
            }
            let name = self.relation_name(*table);
            self.effects.truncates.push(name);
            let birth = &mut self.catalog.relation_mut(*table).birth;
            (birth.filled, birth.many, birth.at_most) = (false, false, None);
            self.note_emptied(*table, EmptiedBy::Truncate);
            self.fire_truncate_triggers(*table, *range);
        }
        Ok(())
    }

    /// CASCADE takes in every table with a foreign key to one of them.
    fn add_referencing_tables(&mut self, tables: &mut Vec<(Oid, TextRange)>) {
        let mut at = 0;
        while at < tables.len() {
            let (table, range) = tables[at];
            for (referencing, _) in self.foreign_keys_to_family(table) {
                if tables.iter().any(|(oid, _)| *oid == referencing) {
                    continue;
                }
                self.lock(referencing, LockMode::AccessExclusive, LockCause::Dependent, range);
                add(tables, referencing, range);
                if self.catalog.relation(referencing).kind == RelationKind::PartitionedTable {
                    for child in self.lock_descendants(referencing, LockMode::AccessExclusive, range) {
                        add(tables, child, range);
                    }
                }
            }
            at += 1;
        }
    }

    /// Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `heap_truncate_check_FKs`.
    fn check_references(&self, tables: &[(Oid, TextRange)]) -> Run {
        for (table, range) in tables {
            for (referencing, constraint) in self.foreign_keys_to_family(*table) {
                if !tables.iter().any(|(oid, _)| *oid == referencing) {
                    let (table, other) = (self.catalog.relation(*table), self.catalog.relation(referencing));
                    let reason = format!(
                        "cannot truncate table \"{}\": foreign key \"{}\" of \"{}\" references it",
                        table.name, constraint.name, other.name
                    );
                    return fail("0A000", reason, *range);
                }
            }
        }
        Ok(())
    }
}

fn add(tables: &mut Vec<(Oid, TextRange)>, oid: Oid, range: TextRange) {
    if !tables.iter().any(|(other, _)| *other == oid) {
        tables.push((oid, range));
    }
}
