//! Whether a table gets a toast table.

use crate::builtin;
use crate::catalog::{Column, Oid, Relation, RelationKind, SqlType, TypeKind};
use crate::execute::Executor;

/// `TOAST_TUPLE_THRESHOLD` with pages of 8 kB.
const THRESHOLD: usize = 2032;
/// `SizeofHeapTupleHeader`.
const HEADER: usize = 23;
/// Bytes of the longest character in UTF-8.
const BYTES_PER_CHARACTER: usize = 4;

/// How a value of a type is stored.
enum Storage {
    Fixed {
        length: usize,
        align: usize,
    },
    /// A varlena with the most bytes that it can have, if there is a limit.
    Variable {
        most: Option<usize>,
        align: usize,
        plain: bool,
    },
}

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/access/heap/heapam_handler.c`, `heapam_relation_needs_toast_table`.
    pub(super) fn needs_toast(&self, table: &Relation) -> bool {
        if !matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView) {
            return false;
        }
        let (mut length, mut unlimited, mut toastable) = (0usize, false, false);
        let stored = |column: &&Column| column.generated.as_ref().is_none_or(|generated| generated.stored);
        for column in table.columns.iter().filter(stored) {
            match self.storage(column.sql_type) {
                Storage::Fixed { length: own, align } => length = length.next_multiple_of(align) + own,
                Storage::Variable { most, align, plain } => {
                    match most {
                        Some(most) => length = length.next_multiple_of(align) + most,
                        None => unlimited = true,
                    }
                    let is_plain =
                        column.storage.as_ref().map_or(plain, |storage| storage.eq_ignore_ascii_case("plain"));
                    toastable |= !is_plain;
                }
            }
        }
        let bitmap = table.columns.len().div_ceil(8);
        let tuple = (HEADER + bitmap).next_multiple_of(8) + length.next_multiple_of(8);
        toastable && (unlimited || tuple > THRESHOLD)
    }

    fn storage(&self, sql_type: SqlType) -> Storage {
        let unlimited = Storage::Variable { most: None, align: 4, plain: false };
        if let Some(definition) = self.catalog.get_type(sql_type.oid) {
            return match &definition.kind {
                TypeKind::Enum { .. } => Storage::Fixed { length: 4, align: 4 },
                // The modifier is the domain's, so a column of it has no limit.
                TypeKind::Domain(domain) => match self.storage(domain.base) {
                    Storage::Variable { align, plain, .. } => Storage::Variable { most: None, align, plain },
                    fixed @ Storage::Fixed { .. } => fixed,
                },
                _ => unlimited,
            };
        }
        let Some(known) = builtin::type_by_oid(sql_type.oid.0) else { return unlimited };
        match usize::try_from(known.length) {
            Ok(length) => Storage::Fixed { length, align: alignment(known.name, length) },
            Err(_) => Storage::Variable {
                most: maximum(sql_type),
                align: 4,
                plain: matches!(known.name, "oidvector" | "int2vector" | "tsquery" | "gtsvector"),
            },
        }
    }
}

/// `pg_type.typalign` of a type of fixed length.
fn alignment(name: &str, length: usize) -> usize {
    match (name, length) {
        ("uuid" | "name" | "bool" | "char", _) => 1,
        ("tid", _) => 2,
        ("macaddr" | "macaddr8", _) => 4,
        (_, 1 | 2 | 4) => length,
        _ => 8,
    }
}

/// The most bytes of a value, where the modifier limits it.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/format_type.c`, `type_maximum_size`.
fn maximum(sql_type: SqlType) -> Option<usize> {
    let modifier = usize::try_from(sql_type.typmod).ok()?;
    match sql_type.oid {
        // bpchar, varchar
        Oid(1042 | 1043) => Some(modifier.saturating_sub(4) * BYTES_PER_CHARACTER + 4),
        // numeric
        Oid(1700) => {
            let precision = (modifier.saturating_sub(4) >> 16) & 0xffff;
            Some(8 + 2 * ((precision + 6) / 4))
        }
        // bit, varbit
        Oid(1560 | 1562) => Some(modifier.div_ceil(8) + 8),
        _ => None,
    }
}
