//! An entity diagram in Mermaid's words.

use crate::object::{Column, ConstraintKind, Relation, Schema};
use crate::words;
use std::fmt::Write as _;

/// Writes the tables and their foreign keys as a Mermaid entity diagram.
///
/// Source: Mermaid 11, `erDiagram`: entities may be quoted, attributes have a type and a name of one word each.
pub fn mermaid(schema: &Schema) -> String {
    let mut text = String::from("erDiagram\n");
    let tables = schema.relations.iter().filter(|relation| !relation.kind.is_view());
    for table in tables.clone() {
        let _ = writeln!(text, "    {} {{", entity(&table.name.to_string()));
        for column in &table.columns {
            let keys = keys(table, column);
            let keys = if keys.is_empty() { String::new() } else { format!(" {keys}") };
            let _ = writeln!(text, "        {} {}{keys}", word(words::shown(&column.sql_type)), word(&column.name));
        }
        text.push_str("    }\n");
    }
    for table in tables {
        for constraint in &table.constraints {
            let Some(to) = &constraint.references else { continue };
            let is_required = constraint
                .columns
                .iter()
                .all(|name| table.columns.iter().any(|column| column.name == *name && column.not_null));
            let is_one = table.constraints.iter().any(|other| {
                let is_key = matches!(other.kind, ConstraintKind::PrimaryKey | ConstraintKind::Unique);
                is_key && other.columns == constraint.columns
            });
            let many = if is_one { "|o" } else { "}o" };
            let one = if is_required { "||" } else { "o|" };
            let (from, to) = (entity(&table.name.to_string()), entity(&to.table.to_string()));
            let label = entity(&constraint.name);
            let _ = writeln!(text, "    {from} {many}--{one} {to} : {label}");
        }
    }
    text
}

fn keys(table: &Relation, column: &Column) -> String {
    let has = |kind: ConstraintKind| {
        table.constraints.iter().any(|constraint| constraint.kind == kind && constraint.columns.contains(&column.name))
    };
    let kinds =
        [(ConstraintKind::PrimaryKey, "PK"), (ConstraintKind::ForeignKey, "FK"), (ConstraintKind::Unique, "UK")];
    let found: Vec<&str> = kinds.into_iter().filter(|(kind, _)| has(*kind)).map(|(_, word)| word).collect();
    found.join(", ")
}

/// In quotes, which Mermaid does not let a name have.
fn entity(name: &str) -> String {
    format!("\"{}\"", name.replace(['"', '\n', '\r'], "_"))
}

/// One word, as attributes must be.
fn word(text: &str) -> String {
    let kept = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '(' | ')' | '[' | ']');
    let word: String = text.chars().map(|letter| if kept(letter) { letter } else { '_' }).collect();
    if word.starts_with(|first: char| first.is_alphabetic() || first == '_') { word } else { format!("_{word}") }
}
