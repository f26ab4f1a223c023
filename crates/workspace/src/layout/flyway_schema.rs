//! The default schema of Flyway, from configuration around the migrations.
//!
//! Flyway puts the default schema first in `search_path` before each migration, and creates it if it is missing. It is
//! `defaultSchema`, or else the first of `schemas`. Source: Flyway documentation, "Default Schema" and "Schemas";
//! `PostgreSQLConnection.changeCurrentSchemaTo`; seen with 9.1.3 and 9.22.3 on PostgreSQL 14 and 18.

use super::flyway_project::files;
use crate::nearby::Nearby;
use smol_str::SmolStr;
use std::path::Path;

/// Returns the default schema of the migrations in a folder, if the configuration around them names one, and no other.
pub(super) fn around(folder: &Path, nearby: &Nearby) -> Option<SmolStr> {
    let of_file = |file: &Path| {
        let form = Form::of(file)?;
        default_schema(&form.settings(&nearby.text(file)?))
    };
    let mut found = files(&folder.join("V"), nearby).filter_map(|file| of_file(&file));
    let first = found.next()?;
    if found.all(|other| other == first) { first } else { None }
}

/// A notation of configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Properties,
    Yaml,
    Toml,
}

/// The words of a key, and the value.
type Setting = (Vec<String>, String);

impl Form {
    fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "properties" | "conf" | "env" => Some(Self::Properties),
            "yml" | "yaml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }

    fn settings(self, text: &str) -> Vec<Setting> {
        match self {
            Self::Properties => text.lines().filter_map(property).collect(),
            Self::Yaml => of_yaml(text),
            Self::Toml => {
                let mut settings = Vec::new();
                if let Ok(table) = toml::from_str(text) {
                    add_toml(&mut Vec::new(), &toml::Value::Table(table), &mut settings);
                }
                settings
            }
        }
    }
}

/// Returns the schema that a file makes the default: `None` if it says nothing, and an inner `None` if its value is
/// unknown, or if there are several.
#[expect(clippy::option_option, reason = "a file that says nothing, and one whose value is unknown, differ")]
fn default_schema(settings: &[Setting]) -> Option<Option<SmolStr>> {
    let of = |name: &str| {
        let mut values = settings.iter().filter(|(key, _)| is_of_flyway(key, name)).map(|(_, value)| schema(value));
        let first = values.next()?;
        Some(if values.all(|other| other == first) { first } else { None })
    };
    of("defaultschema").or_else(|| of("schemas"))
}

/// Whether a key is that of a setting of Flyway: `flyway.schemas`, `spring.flyway.default-schema`, `FLYWAY_SCHEMAS`, and
/// `environments.production.schemas` of Flyway's own file.
fn is_of_flyway(key: &[String], name: &str) -> bool {
    let Some((last, above)) = key.split_last() else { return false };
    let is_own = |word: &String| word == "flyway" || word == "environments";
    let is_placeholder = above.iter().any(|word| word == "placeholders");
    let of_environment = ["flyway", "springflyway", "quarkusflyway"].map(|start| format!("{start}{name}"));
    (last == name && above.iter().any(is_own) && !is_placeholder) || of_environment.contains(last)
}

/// The first schema of a value; `None` if it is not a name.
fn schema(value: &str) -> Option<SmolStr> {
    let first = value.trim().trim_start_matches('[').split([',', ']']).next()?;
    let name = first.trim().trim_matches(['"', '\'']);
    let is_name = !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || matches!(one, '_' | '-' | ' '));
    is_name.then(|| SmolStr::new(name))
}

/// The words of a key, without what differs between the forms of a word: `default-schema`, `defaultSchema`.
fn words(key: &str) -> impl Iterator<Item = String> {
    let word = |word: &str| {
        let letters = word.chars().filter(|one| one.is_alphanumeric());
        letters.collect::<String>().to_ascii_lowercase()
    };
    key.split('.').map(word)
}

fn property(line: &str) -> Option<Setting> {
    let line = line.trim();
    if line.starts_with(['#', '!']) {
        return None;
    }
    let (key, value) = line.split_once(['=', ':'])?;
    Some((words(key.trim_start_matches("export ")).collect(), value.trim().to_owned()))
}

/// The scalars of a YAML document, line by line: templates in values need not be YAML.
fn of_yaml(text: &str) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    // The keys around a line, each with its indentation.
    let mut above: Vec<(usize, Vec<String>)> = Vec::new();
    for line in text.lines() {
        let content = line.split(" #").next().unwrap_or_default().trim_end();
        let rest = content.trim_start();
        let indentation = content.len() - rest.len();
        if rest.is_empty() || rest.starts_with('#') {
            continue;
        }
        let item = rest.strip_prefix("- ").map(str::trim_start);
        // An item may stand below its key without indentation.
        let is_around = |known: usize| known < indentation || (item.is_some() && known == indentation);
        above.retain(|(known, _)| is_around(*known));
        let key_of = |words: Vec<String>| above.iter().flat_map(|(_, words)| words.clone()).chain(words).collect();
        let text = item.unwrap_or(rest);
        match text.split_once(':').filter(|(_, value)| value.is_empty() || value.starts_with(' ')) {
            Some((key, "")) => above.push((content.len() - text.len(), words(key).collect())),
            Some((key, value)) => settings.push((key_of(words(key).collect()), value.trim().to_owned())),
            // Of a list the first item counts: a setting in the environment of a container, or a value.
            None => match property(text.trim_matches(['"', '\''])).filter(|_| text.contains('=')) {
                Some((key, value)) => settings.push((key_of(key), value)),
                None if settings.last().is_none_or(|(key, _)| *key != key_of(Vec::new())) => {
                    settings.push((key_of(Vec::new()), text.to_owned()));
                }
                None => {}
            },
        }
    }
    settings
}

fn add_toml(key: &mut Vec<String>, value: &toml::Value, settings: &mut Vec<Setting>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let length = key.len();
                key.extend(words(name));
                add_toml(key, value, settings);
                key.truncate(length);
            }
        }
        toml::Value::Array(items) => {
            let first = items.first().and_then(toml::Value::as_str).unwrap_or_default();
            settings.push((key.clone(), first.to_owned()));
        }
        other => settings.push((key.clone(), other.as_str().unwrap_or_default().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_schema_is_found_in_every_form() {
        let app = Some(Some("app"));
        for (name, text, expected) in [
            ("flyway.conf", "flyway.defaultSchema=app", app),
            ("flyway.conf", "flyway.schemas = app, other\n", app),
            ("flyway.conf", "flyway.schemas=other\nflyway.defaultSchema=app", app),
            ("flyway.conf", "flyway.schemas=${SCHEMA}", Some(None)),
            ("flyway.conf", "# flyway.schemas=app", None),
            ("flyway.conf", "flyway.placeholders.schemas=app", None),
            ("a.properties", "spring.flyway.default-schema=app", app),
            ("a.properties", "spring.flyway.schemas: App", Some(Some("App"))),
            ("a.properties", "quarkus.flyway.schemas=app", app),
            ("a.properties", "spring.jpa.properties.hibernate.default_schema=app", None),
            ("a.yml", "spring:\n  flyway:\n    default-schema: app # ours\n", app),
            ("a.yml", "spring:\n  flyway:\n    schemas:\n      - app\n      - other\n", app),
            ("a.yml", "spring:\n  flyway:\n    schemas:\n    - app\n    - other\n  x: 1", app),
            ("a.yml", "spring.flyway:\n  schemas: [app, other]\n", app),
            ("a.yml", "spring.flyway.schemas: \"app\"\n", app),
            ("a.yml", "spring:\n  flyway:\n    schemas: ${SCHEMA:app}\n", Some(None)),
            ("a.yml", "spring:\n  flyway:\n    schemas: @schema@\n", Some(None)),
            ("a.yml", "spring:\n  flyway:\n    schemas: a\n---\nspring:\n  flyway:\n    schemas: b\n", Some(None)),
            ("a.yml", "spring:\n  flyway:\n    enabled: true\n  jpa:\n    schemas: app\n", None),
            ("a.yml", "services:\n  flyway:\n    environment:\n      FLYWAY_SCHEMAS: app\n", app),
            ("a.yml", "services:\n  migrate:\n    environment:\n      - FLYWAY_DEFAULT_SCHEMA=app\n", app),
            ("a.yml", "tools:\n- flyway:\n- other:\n    schemas: app\n", None),
            ("flyway.toml", "[flyway]\ndefaultSchema = \"app\"\n", app),
            ("flyway.toml", "[environments.default]\nschemas = [\n  \"app\",\n]\n", app),
            ("flyway.toml", "[other]\nschemas = [\"app\"]\n", None),
        ] {
            let found = default_schema(&Form::of(Path::new(name)).unwrap().settings(text));
            assert_eq!(found.as_ref().map(Option::as_deref), expected, "{text}");
        }
    }

    #[test]
    fn files_that_disagree_name_no_schema() {
        let around = |files: &[(&str, &str)]| {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            super::around(&root.path().join("src/main/resources/db/migration"), &Nearby::default())
        };
        let spring = ("src/main/resources/application.properties", "spring.flyway.schemas=app\n");
        let own = |schema: &str| format!("flyway.schemas={schema}\n");
        assert_eq!(around(&[spring]).as_deref(), Some("app"));
        assert_eq!(around(&[spring, ("flyway.conf", &own("app"))]).as_deref(), Some("app"));
        assert_eq!(around(&[spring, ("flyway.conf", &own("other"))]), None);
        assert_eq!(around(&[spring, ("flyway.conf", &own("${SCHEMA}"))]), None);
    }
}
