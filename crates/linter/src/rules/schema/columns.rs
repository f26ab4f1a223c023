//! The type of a declared column, as the last migration leaves it.

use crate::declared::{DeclarationContext, Declared};
use pgvet_model::builtin::type_by_oid;
use pgvet_model::catalog::{Column, ForeignKeyConstraint};
use pgvet_syntax::ast::{Constraint as Written, ConstraintKind, Name};
use pgvet_syntax::source::TextRange;

/// The column of a declaration, if it has this built-in type in the end, and where its type is written.
pub(super) fn declared_type<'c>(context: &DeclarationContext<'c>, name: &str) -> Option<(&'c Column, TextRange)> {
    let (column, range) = written_type(context)?;
    let written = match context.declared {
        Declared::Column(column) => column.type_name.as_ref(),
        Declared::Type { type_name, .. } => Some(type_name),
        _ => None,
    };
    // A type that a later statement changes is judged there.
    written.filter(|written| written.name == name)?;
    let type_name = type_by_oid(column.sql_type.oid.0).map(|row| row.name);
    // Arrays are of another type; partitions and children have the column from their parent.
    let is_own =
        column.inherited_from == 0 && context.relation.persistence != pgvet_syntax::ast::Persistence::Temporary;
    (is_own && type_name == Some(name)).then_some((column, range))
}

/// The column whose type a declaration writes.
pub(super) fn written_type<'c>(context: &DeclarationContext<'c>) -> Option<(&'c Column, TextRange)> {
    match context.declared {
        Declared::Column(column) => {
            let range = column.type_name.as_ref()?.range;
            Some((context.relation.column(&column.name.text)?, range))
        }
        Declared::Type { column, type_name } => Some((context.relation.column(column)?, type_name.range)),
        _ => None,
    }
}

/// The foreign key that a declaration created.
pub(super) fn foreign_key<'c>(context: &DeclarationContext<'c>) -> Option<(&'c Written, &'c ForeignKeyConstraint)> {
    let Declared::Constraint { constraint: written, column } = context.declared else { return None };
    let ConstraintKind::ForeignKey(key) = &written.kind else { return None };
    let columns: Vec<&str> = match column {
        Some(column) => vec![column],
        None => key.columns.iter().map(Name::as_str).collect(),
    };
    let same = |key: &&ForeignKeyConstraint| key.columns.iter().eq(columns.iter().copied());
    let made = context.relation.constraints.iter().filter_map(|constraint| constraint.foreign_key()).find(same)?;
    Some((written, made))
}
