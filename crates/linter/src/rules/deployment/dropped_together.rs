//! Objects that are dropped together with an object.

use crate::rules::text::join;
use pgvet_model::catalog::{Catalog, ConstraintKind, RelationKind};
use pgvet_model::effect::{Effects, RelationName, Removal, RemovalReason, RemovedObject};
use pgvet_syntax::source::TextRange;

/// Maximum number of objects that a message names.
const SHOWN: usize = 6;

/// Returns the names of the dropped objects as a list in words, or `None` if there are none.
pub(crate) fn listed(mut names: Vec<String>) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    if names.len() > SHOWN + 1 {
        let more = names.len() - SHOWN;
        names.truncate(SHOWN);
        names.push(format!("{more} more"));
    }
    Some(join(&names))
}

/// Indexes and constraints that PostgreSQL silently drops together with a column of the table.
pub(crate) fn parts(effects: &Effects, before: &Catalog, table: &RelationName, range: TextRange) -> Vec<String> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    for removal in effects.removals.iter().filter(|removal| removal.range == range) {
        if removal.reason != RemovalReason::Part {
            continue;
        }
        let (name, word) = match &removal.object {
            RemovedObject::Relation(relation) if relation.kind.is_index() => (relation.name.to_string(), "index"),
            RemovedObject::Constraint { table: owner, constraint } if owner.oid == table.oid => {
                let known = before.get_relation(owner.oid).and_then(|owner| owner.constraint(constraint).cloned());
                if known.is_some_and(|known| matches!(known.kind, ConstraintKind::NotNull { .. })) {
                    continue;
                }
                (constraint.to_string(), "constraint")
            }
            _ => continue,
        };
        // The index of a constraint has its name.
        if !found.iter().any(|(other, _)| *other == name) {
            found.push((name, word));
        }
    }
    found.into_iter().map(|(name, word)| format!("the {word} `{name}`")).collect()
}

/// Objects that only CASCADE drops: views, foreign keys of other tables, defaults, triggers and so on.
pub(crate) fn cascaded(effects: &Effects, range: TextRange) -> Vec<&Removal> {
    let of_cascade = |removal: &&Removal| removal.reason == RemovalReason::Cascade && removal.range == range;
    effects.removals.iter().filter(of_cascade).collect()
}

/// The kind and the name in backquotes, from PostgreSQL's description.
pub(crate) fn described(removal: &Removal) -> String {
    format!("the {}", removal.description.replace('"', "`"))
}

/// The publications that send changes of a table to subscribers.
pub(crate) fn publications(catalog: &Catalog, table: &RelationName) -> Vec<String> {
    let publishes = catalog.publications().filter(|publication| {
        publication.all_tables
            || publication.schemas.contains(&table.schema)
            || publication.tables.contains_key(&table.oid)
    });
    publishes.map(|publication| publication.name.to_string()).collect()
}

/// Relations that queries name.
pub(crate) fn is_queried(kind: RelationKind) -> bool {
    kind.is_table() || matches!(kind, RelationKind::View | RelationKind::MaterializedView)
}
