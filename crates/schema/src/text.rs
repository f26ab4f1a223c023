//! A relation in lines, for people.

use crate::object::{Known, Relation};
use crate::words;

/// A line for each column, constraint, index, trigger, policy and rule.
pub fn lines(relation: &Relation) -> Vec<String> {
    let width = relation.columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
    let columns = relation.columns.iter().map(|column| {
        let details = words::column_details(column);
        format!("{:width$}  {details}", column.name)
    });
    let named =
        |kind: &str, name: &str, definition: String| format!("{kind} {name} {definition}").trim_end().to_owned();
    let mut lines: Vec<String> = columns.collect();
    lines.extend(relation.constraints.iter().map(|own| named("constraint", &own.name, words::constraint(own))));
    lines.extend(relation.indexes.iter().map(|own| named("index", &own.name, words::index(own))));
    lines.extend(relation.triggers.iter().map(|own| named("trigger", &own.name, words::trigger(own))));
    lines.extend(relation.policies.iter().map(|own| named("policy", &own.name, words::policy(own))));
    lines.extend(relation.rules.iter().map(|own| named("rule", &own.name, String::new())));
    if relation.row_level_security {
        lines.push("row-level security".to_owned());
    }
    if let Some(Known::Value(key)) = &relation.partition_key {
        lines.push(format!("partition by {key}"));
    }
    lines
}
