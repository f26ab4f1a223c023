//! Results as an assistant can use them: bounded, and without characters that do something where they are shown.

use pgvet_workspace::inert;
use serde_json::{Map, Value, json};

/// Maximum number of findings, statements or files in a result; the rest is counted.
const MAX_ENTRIES: usize = 50;

/// Maximum length of a result, in bytes of JSON: names and SQL of a few entries can be long, too.
const MAX_RESULT: usize = 512 << 10;

/// Maximum number of relations that are shown with their columns, unless they are asked for by name.
const MAX_RELATIONS: usize = 40;

/// Shapes the output of `pgvet check --format json`, with a verdict: the exit status that CI would have.
pub(crate) fn check(status: Option<i32>, document: Value) -> Value {
    let verdict = match status {
        Some(0) => "passes",
        Some(1) => "fails",
        _ => "not-checked",
    };
    let mut result = json!({ "verdict": verdict });
    for key in ["summary", "problems", "notes", "not_checked"] {
        if let Some(value) = document.get(key) {
            result[key] = value.clone();
        }
    }
    let findings = document.get("diagnostics").and_then(Value::as_array).cloned().unwrap_or_default();
    bounded(&mut result, "findings", findings);
    shown(result)
}

/// Shapes the output of `pgvet effects --format json`, with the statements of all files counted together.
pub(crate) fn effects(mut document: Value) -> Value {
    let mut left = MAX_ENTRIES;
    let mut more = 0;
    for file in document.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(statements) = file.get_mut("statements").and_then(Value::as_array_mut) {
            more += statements.len().saturating_sub(left);
            statements.truncate(left);
            left -= statements.len();
        }
    }
    if more > 0 {
        document["more_statements"] = more.into();
    }
    shown(document)
}

/// Shapes the output of `pgvet schema --format json`. Of a large schema, only the names of tables are shown unless the
/// call names some.
pub(crate) fn schema(mut document: Value, is_narrowed: bool) -> Value {
    for database in document.get_mut("databases").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(relations) = database.get_mut("relations").and_then(Value::as_array_mut) else { continue };
        if is_narrowed || relations.len() <= MAX_RELATIONS {
            continue;
        }
        for relation in relations.iter_mut() {
            *relation = pick(relation, &["schema", "name", "kind"]);
        }
        database["note"] = "these are names only: call schema_at with `tables` to see columns".into();
    }
    shown(document)
}

/// The result, unless it is too long. It is never truncated: part of a script is a different script.
pub(crate) fn fitting(value: Value) -> Result<Value, String> {
    let length = value.to_string().len();
    if length <= MAX_RESULT {
        return Ok(value);
    }
    Err(format!(
        "the result has {} KiB, and at most {} KiB are allowed: ask about fewer files or tables",
        length >> 10,
        MAX_RESULT >> 10
    ))
}

fn pick(value: &Value, keys: &[&str]) -> Value {
    let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(key)?.clone())));
    Value::Object(kept.collect())
}

fn bounded(result: &mut Value, key: &str, mut entries: Vec<Value>) {
    let more = entries.len().saturating_sub(MAX_ENTRIES);
    entries.truncate(MAX_ENTRIES);
    result[key] = entries.into();
    if more > 0 {
        result[format!("more_{key}")] = more.into();
    }
}

/// The value with each text shown.
pub(crate) fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(inert::lines_and_tabs(&text).into_owned()),
        Value::Array(values) => Value::Array(values.into_iter().map(shown).collect()),
        Value::Object(entries) => {
            let entries =
                entries.into_iter().map(|(key, value)| (inert::lines_and_tabs(&key).into_owned(), shown(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_bounded_and_says_so() {
        let findings: Vec<Value> = (0..60).map(|number| json!({ "message": number })).collect();
        let result = check(Some(1), json!({ "diagnostics": findings, "summary": { "errors": 60 } }));
        assert_eq!(result["verdict"], "fails");
        assert_eq!(result["findings"].as_array().map(Vec::len), Some(50));
        assert_eq!(result["more_findings"], 10);
        assert_eq!(result["summary"]["errors"], 60);
        let statements = |count: usize| json!({ "statements": vec![json!({}); count] });
        let result = effects(json!({ "files": [statements(30), statements(30), statements(5)] }));
        let counts: Vec<usize> = result["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["statements"].as_array().unwrap().len())
            .collect();
        assert_eq!((counts, result["more_statements"].as_u64()), (vec![30, 20, 0], Some(15)));
    }

    #[test]
    fn a_large_schema_is_names_unless_tables_are_named() {
        let relations = vec![json!({ "schema": "public", "name": "t", "kind": "table", "columns": [1] }); 41];
        let document = json!({ "databases": [{ "relations": relations }] });
        let names = schema(document.clone(), false);
        assert_eq!(names["databases"][0]["relations"][0].get("columns"), None);
        assert!(names["databases"][0]["note"].is_string());
        assert!(schema(document, true)["databases"][0]["relations"][0].get("columns").is_some());
    }

    #[test]
    fn a_result_that_is_too_long_is_an_error() {
        let files = |length: usize| json!({ "files": [{ "text": "x".repeat(length) }] });
        assert!(fitting(files(MAX_RESULT / 2)).is_ok());
        assert!(fitting(files(MAX_RESULT)).unwrap_err().contains("ask about fewer"));
    }

    #[test]
    fn nothing_in_a_result_acts() {
        assert_eq!(shown(json!({ "a\u{202e}": ["\u{1b}[2J"] })), json!({ "a\\u{202e}": ["\\u{1b}[2J"] }));
    }
}
