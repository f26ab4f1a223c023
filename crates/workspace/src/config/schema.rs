//! The JSON schema of `pgvet.toml`, from the types that read it.

use super::file::ConfigFile;
use pgvet_linter::meta::Category;
use pgvet_linter::rules;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The schema, with the names of all rules and categories.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(ConfigFile).to_value();
    let name_rules = |properties: &mut Value| {
        let all = rules::all().iter().map(|rule| &rule.meta);
        let names: Vec<&str> = all.clone().map(|meta| meta.name).collect();
        let categories: BTreeSet<Category> = all.map(|meta| meta.category).collect();
        let categories: Vec<&str> = categories.into_iter().map(Category::as_str).collect();
        properties["rules"]["propertyNames"] = json!({ "enum": names });
        properties["categories"]["propertyNames"] = json!({ "enum": categories });
    };
    name_rules(&mut schema["properties"]);
    name_rules(&mut schema["$defs"]["OverrideSetting"]["properties"]);
    schema
}
