//! Reads the structs and enums of PostgreSQL's node headers.
//!
//! They are written for PostgreSQL's own generator of node functions and therefore regular: one field a line, no
//! nesting, no conditional fields.

use std::collections::{BTreeMap, HashMap};

/// The declarations of the headers.
#[derive(Default)]
pub(super) struct Headers {
    /// Name without `T_`, and number.
    pub(super) tags: Vec<(String, u32)>,
    pub(super) structs: BTreeMap<String, Vec<Field>>,
    pub(super) enums: HashMap<String, Vec<(String, i64)>>,
}

/// A field of a struct.
pub(super) struct Field {
    pub(super) name: String,
    /// The C type without `struct` and `const`.
    pub(super) base: String,
    pub(super) is_pointer: bool,
}

impl Headers {
    pub(super) fn read(&mut self, text: &str) {
        let text = without_noise(text);
        let tag = |line: &str| {
            let (name, number) = line.trim().strip_prefix("T_")?.trim_end_matches(',').split_once('=')?;
            Some((name.trim().to_owned(), number.trim().parse().ok()?))
        };
        self.tags.extend(text.lines().filter_map(tag));
        for block in text.split("\n}") {
            let Some((head, body)) = block.rsplit_once("\n{") else { continue };
            let head = head.lines().last().unwrap_or_default();
            match head.trim_start_matches("typedef ").split_once(' ') {
                Some(("struct", name)) => {
                    self.structs.insert(name.trim().to_owned(), body.split(';').flat_map(fields).collect());
                }
                Some(("enum", name)) => drop(self.enums.insert(name.trim().to_owned(), values(body))),
                _ => {}
            }
        }
    }
}

/// Without comments, preprocessor lines and `pg_node_attr(...)`.
fn without_noise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        out.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    let mut text: String = out.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    while let Some(start) = text.find("pg_node_attr(") {
        let mut depth = 0;
        let end = text[start..].find(|character| {
            depth += i32::from(character == '(') - i32::from(character == ')');
            character == ')' && depth == 0
        });
        text.replace_range(start..end.map_or(text.len(), |end| start + end + 1), "");
    }
    text
}

/// `RangeVar *relation`, `bool a, b`; more than one pointer deep does not occur in what the grammar makes.
fn fields(declaration: &str) -> Vec<Field> {
    let words = declaration.replace('*', " * ");
    let words: Vec<&str> =
        words.split_whitespace().filter(|word| !matches!(*word, "struct" | "const" | "union")).collect();
    let Some((base, names)) = words.split_first() else { return Vec::new() };
    let is_pointer = names.contains(&"*");
    let names: String = names.iter().filter(|word| **word != "*").copied().collect();
    let field = |name: &str| Field { name: name.to_owned(), base: (*base).to_owned(), is_pointer };
    names.split(',').filter(|name| !name.is_empty()).map(field).collect()
}

fn values(body: &str) -> Vec<(String, i64)> {
    let mut next = 0;
    let mut found = Vec::new();
    for value in body.split(',').map(str::trim).filter(|value| !value.is_empty()) {
        let (name, number) = value.split_once('=').unwrap_or((value, ""));
        next = number_of(number.trim()).unwrap_or(next);
        found.push((name.trim().to_owned(), next));
        next += 1;
    }
    found
}

/// `3`, `-1`, `'l'`, `1 << 2`.
fn number_of(text: &str) -> Option<i64> {
    if let Some((base, shift)) = text.split_once("<<") {
        return Some(number_of(base.trim())? << number_of(shift.trim())?);
    }
    match text.as_bytes() {
        [b'\'', letter, b'\''] => Some(i64::from(*letter)),
        _ => text.trim_matches(['(', ')']).parse().ok(),
    }
}
