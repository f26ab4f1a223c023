//! Tables that the same migration drops later: what happens to them before that hurts nobody who still needs them.

use super::other_statements::{drops_later, means};
use crate::rule::RuleContext;
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::ObjectKind;

/// Whether a later statement of the migration drops the table or view by its name.
pub(crate) fn is_dropped_later(context: &RuleContext<'_>, relation: &RelationName) -> bool {
    let dropped_as = match relation.kind {
        RelationKind::View => ObjectKind::View,
        RelationKind::MaterializedView => ObjectKind::MaterializedView,
        RelationKind::ForeignTable => ObjectKind::ForeignTable,
        _ => ObjectKind::Table,
    };
    drops_later(context, |drop| {
        drop.kind == dropped_as && drop.objects.iter().any(|object| means(context, &object.name, relation))
    })
}
