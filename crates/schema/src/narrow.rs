//! A part of a schema.

use crate::object::{Name, Schema};

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
