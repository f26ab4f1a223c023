//! `pgvet.schema.json`: what editors know about `pgvet.toml`, made from the types that read it.

use crate::repository;
use std::fs;
use std::path::PathBuf;

fn path() -> PathBuf {
    repository().join("pgvet.schema.json")
}

pub(crate) fn run() -> Result<(), String> {
    fs::write(path(), text()).map_err(|error| format!("cannot write pgvet.schema.json: {error}"))
}

fn text() -> String {
    format!("{:#}\n", pgvet_workspace::config::json_schema())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// `UPDATE=1 cargo test` writes the schema instead of comparing it.
    #[test]
    fn the_schema_says_what_the_types_say() {
        if std::env::var_os("UPDATE").is_some() {
            run().unwrap();
        }
        let found = fs::read_to_string(path()).unwrap_or_default();
        assert!(found == text(), "pgvet.schema.json is stale: run `cargo xtask schema`");
    }

    fn is_valid(text: &str) -> bool {
        let value: toml::Table = toml::from_str(text).unwrap();
        let instance: Value = serde_json::to_value(value).unwrap();
        jsonschema::validator_for(&pgvet_workspace::config::json_schema()).unwrap().is_valid(&instance)
    }

    #[test]
    fn the_schema_accepts_and_refuses_what_the_program_does() {
        for text in [
            "",
            "pg-version = 16",
            "pg-version = \"14-18\"",
            "[rules]\nmany-tables-locked = { level = \"off\", max-tables = 3 }\ntable-rewrite = \"info\"",
            "[tables]\n\"a.b\" = { rows = 3, hot = true }\n[functions]\nf.calls-per-hour = 5",
            "[migrations]\ntool = \"golang-migrate\"\ntransaction = \"single-string\"",
            "[[overrides]]\npaths = [\"a\"]\ncategories = { locking = \"off\" }",
        ] {
            assert!(is_valid(text), "{text}");
        }
        for text in [
            "pg-versoin = 16",
            "pg-version = 9",
            "[rules]\nno-such-rule = \"off\"",
            "[rules]\ntable-rewrite = \"warn\"",
            "[categories]\nlokking = \"off\"",
            "[tables]\na = { row = 3 }",
            "[migrations]\ntool = \"flywai\"",
            "[[overrides]]\npath = [\"a\"]",
        ] {
            assert!(!is_valid(text), "{text}");
        }
    }
}
