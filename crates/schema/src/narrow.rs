//! A part of a schema.

use crate::object::{Name, Relation, Schema};
use std::collections::BTreeSet;

/// Keeps the objects of some namespaces; all of them if none is named.
pub fn in_schemas(mut schema: Schema, wanted: &[String]) -> Schema {
    if wanted.is_empty() {
        return schema;
    }
    let is_wanted = |name: &str| wanted.iter().any(|wanted| wanted == name);
    schema.schemas.retain(|name| is_wanted(name));
    schema.extensions.retain(|own| is_wanted(&own.schema));
    schema.extension_relations.retain(|name| is_wanted(&name.schema));
    retain(&mut schema, |name| is_wanted(&name.schema));
    let omitted = schema.publications.len();
    if omitted > 0 {
        schema.publications.clear();
        schema.gaps.push("publications are omitted, because they are in no schema".to_owned());
    }
    schema
}

/// Keeps some relations, by `name` or `schema.name`; everything if none is named.
pub fn relations(mut schema: Schema, wanted: &[String]) -> Schema {
    if !wanted.is_empty() {
        let is_wanted = |name: &Name| {
            let full = name.to_string();
            wanted.iter().any(|wanted| *wanted == name.name || *wanted == full)
        };
        schema.relations.retain(|relation| is_wanted(&relation.name));
    }
    schema
}

/// Removes relations, the sequences that they own, and namespaces that are then empty. Says so, with the reason.
pub fn without(mut schema: Schema, is_removed: impl Fn(&Relation) -> bool, empty: &[&str], why: &str) -> Schema {
    let (removed, kept): (Vec<Relation>, Vec<Relation>) = schema.relations.into_iter().partition(is_removed);
    schema.relations = kept;
    let is_owner = |owner: &Name| removed.iter().any(|relation| relation.name == *owner);
    schema.sequences.retain(|own| !own.owned_by.as_ref().is_some_and(|(table, _)| is_owner(table)));
    let emptied =
        |name: &String| removed.iter().any(|relation| relation.name.schema == *name) && empty.contains(&name.as_str());
    let used: BTreeSet<String> = names(&schema).map(|name| name.schema.clone()).collect();
    schema.schemas.retain(|name| !emptied(name) || used.contains(name));
    schema.gaps.extend(removed.iter().map(|relation| format!("table {}: {why}", relation.name)));
    schema
}

fn names(schema: &Schema) -> impl Iterator<Item = &Name> {
    let types = schema.enums.iter().map(|own| &own.name).chain(schema.domains.iter().map(|own| &own.name));
    let types = types.chain(schema.composites.iter().map(|own| &own.name));
    let relations = schema.relations.iter().map(|own| &own.name).chain(schema.sequences.iter().map(|own| &own.name));
    types.chain(relations).chain(schema.functions.iter().map(|own| &own.name))
}

/// Takes the schemas of extensions from another schema if they are only assumed here.
pub fn place_extensions(schema: &mut Schema, other: &Schema) {
    for own in schema.extensions.iter_mut().filter(|own| own.assumed_schema) {
        if let Some(placed) = other.extensions.iter().find(|placed| placed.name == own.name) {
            own.clone_from(placed);
        }
    }
}

fn retain(schema: &mut Schema, is_wanted: impl Fn(&Name) -> bool) {
    schema.enums.retain(|own| is_wanted(&own.name));
    schema.domains.retain(|own| is_wanted(&own.name));
    schema.composites.retain(|own| is_wanted(&own.name));
    schema.sequences.retain(|own| is_wanted(&own.name));
    schema.relations.retain(|own| is_wanted(&own.name));
    schema.functions.retain(|own| is_wanted(&own.name));
}
