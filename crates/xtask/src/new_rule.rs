//! `cargo xtask new-rule`: the files that a new rule needs, with the places marked that are to be filled in.

use crate::repository;
use clap::Args;
use std::fs;
use std::path::Path;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder: locking, transaction, compatibility, data, bloat, plpgsql, schema, security or history.
    category: String,
    /// The name of the hazard in kebab-case.
    name: String,
}

const CATEGORIES: &[&str] =
    &["engine", "locking", "transaction", "compatibility", "data", "bloat", "plpgsql", "schema", "security", "history"];

const RULE: &str = include_str!("new_rule.rs.template");
const REPORTED: &str = "-- history:\nCREATE TABLE orders (id bigint PRIMARY KEY);\n\
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;\n\
    CREATE TRIGGER touched BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch();\n\
    -- migration:\nDROP TRIGGER touched ON orders; -- warning: RULE\n";
const SILENT: &str = "CREATE TABLE orders (id bigint PRIMARY KEY);\n\
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;\n\
    CREATE TRIGGER touched BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch();\n\
    DROP TRIGGER touched ON orders;\n";

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    create(&repository(), &arguments.category, &arguments.name)
}

fn create(repository: &Path, category: &str, name: &str) -> Result<(), String> {
    if !CATEGORIES.contains(&category) {
        return Err(format!("no category `{category}`: one of {}", CATEGORIES.join(", ")));
    }
    if name.is_empty() || !name.split('-').all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
    {
        return Err(format!("`{name}` is not in kebab-case"));
    }
    let rules = repository.join("crates/linter/src/rules");
    let module = name.replace('-', "_");
    let file = rules.join(category).join(format!("{module}.rs"));
    if file.exists() {
        return Err(format!("the rule `{name}` is there already"));
    }
    let fixtures = repository.join("fixtures/rules").join(name);
    let variant = format!("{}{}", category[..1].to_ascii_uppercase(), &category[1..]);
    write(&file, &RULE.replace("CATEGORY", &variant).replace("RULE_NAME", name))?;
    write(&fixtures.join("reported.sql"), &REPORTED.replace("RULE", name))?;
    write(&fixtures.join("silent.sql"), SILENT)?;
    edit(&rules.join(category).join("mod.rs"), |text| with_module(text, &module))?;
    edit(&rules.join("mod.rs"), |text| registered(&with_module(text, category), category, &module))
}

/// Adds the rules to the list whose files are there. Returns whether any was missing.
pub(crate) fn register_all(repository: &Path) -> Result<bool, String> {
    let rules = repository.join("crates/linter/src/rules");
    let lists = || rule_lists(&rules);
    let before = lists()?;
    for category in CATEGORIES {
        for module in rule_modules(&rules.join(category))? {
            edit(&rules.join(category).join("mod.rs"), |text| with_module(text, &module))?;
            edit(&rules.join("mod.rs"), |text| registered(&with_module(text, category), category, &module))?;
        }
    }
    Ok(lists()? != before)
}

/// The texts that list the rules.
fn rule_lists(rules: &Path) -> Result<Vec<String>, String> {
    let lists = CATEGORIES.iter().map(|category| rules.join(category).join("mod.rs")).chain([rules.join("mod.rs")]);
    lists.filter(|path| path.exists()).map(|path| read(&path)).collect()
}

/// The files of a category that declare a rule.
fn rule_modules(category: &Path) -> Result<Vec<String>, String> {
    let Ok(entries) = fs::read_dir(category) else { return Ok(Vec::new()) };
    let mut modules = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".rs")) else { continue };
        if read(&path)?.lines().any(|line| line == "declare_rule! {") {
            modules.push(name.to_owned());
        }
    }
    modules.sort();
    Ok(modules)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, text)).map_err(|error| format!("{}: {error}", path.display()))
}

fn edit(path: &Path, change: impl FnOnce(&str) -> String) -> Result<(), String> {
    let text = fs::read_to_string(path).unwrap_or_else(|_| "//! Rules of one category.\n\n".to_owned());
    write(path, &change(&text))
}

/// The text with `pub mod <module>;` among its like, in order.
fn with_module(text: &str, module: &str) -> String {
    insert_sorted(text, &format!("pub mod {module};"), |line| line.starts_with("pub mod "))
}

/// The text with the rule in its category's part of the list.
fn registered(text: &str, category: &str, module: &str) -> String {
    let prefix = format!("    &{category}::");
    let line = format!("{prefix}{module}::RULE,");
    if text.lines().any(|other| other.starts_with(&prefix)) {
        return insert_sorted(text, &line, |other| other.starts_with(&prefix));
    }
    let order = |category: &str| CATEGORIES.iter().position(|other| *other == category);
    let later = |other: &str| {
        let name = other.strip_prefix("    // ")?;
        Some(order(name)? > order(category)?)
    };
    let mut lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|other| other.starts_with("static RULES")).unwrap_or_default();
    let list_end = (start..lines.len()).find(|at| lines[*at] == "];").unwrap_or(lines.len());
    let at = (start..list_end).find(|at| later(lines[*at]) == Some(true)).unwrap_or(list_end);
    let heading = format!("    // {category}");
    lines.splice(at..at, [heading.as_str(), line.as_str()]);
    lines.join("\n") + "\n"
}

/// The text with the line before the first similar one that sorts after it, or after the last.
fn insert_sorted(text: &str, line: &str, alike: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.contains(&line) {
        return text.to_owned();
    }
    let after = lines.iter().position(|other| alike(other) && *other > line);
    let last = lines.iter().rposition(|other| alike(other)).map(|at| at + 1);
    let at = after.or(last).unwrap_or(lines.len());
    lines.insert(at, line);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOD: &str = "//! The rules.\n\npub mod engine;\npub mod locking;\n\n\
        static RULES: &[&Rule] = &[\n    // engine\n    &engine::syntax_error::RULE,\n    // locking\n    &locking::b::RULE,\n];\n";

    #[test]
    fn a_rule_is_created_once_and_registered_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("crates/linter/src/rules");
        write(&rules.join("mod.rs"), MOD).unwrap();
        write(&rules.join("locking/mod.rs"), "//! Locks.\n\npub mod b;\n").unwrap();
        create(folder.path(), "locking", "a-rule").unwrap();
        create(folder.path(), "data", "lost-rows").unwrap();
        create(folder.path(), "transaction", "c").unwrap();
        assert!(create(folder.path(), "locking", "a-rule").unwrap_err().contains("already"));
        let text = fs::read_to_string(rules.join("mod.rs")).unwrap();
        assert!(text.contains("pub mod data;\npub mod engine;\npub mod locking;\npub mod transaction;\n"), "{text}");
        let list = "    // locking\n    &locking::a_rule::RULE,\n    &locking::b::RULE,\n    // transaction\n    \
            &transaction::c::RULE,\n    // data\n    &data::lost_rows::RULE,\n];\n";
        assert!(text.ends_with(list), "{text}");
        assert_eq!(
            fs::read_to_string(rules.join("locking/mod.rs")).unwrap(),
            "//! Locks.\n\npub mod a_rule;\npub mod b;\n"
        );
        let rule = fs::read_to_string(rules.join("locking/a_rule.rs")).unwrap();
        assert!(rule.contains("\"a-rule\", Locking, Warning,"), "{rule}");
        let fixture = fs::read_to_string(folder.path().join("fixtures/rules/a-rule/reported.sql")).unwrap();
        assert!(fixture.ends_with("-- warning: a-rule\n"));
    }

    #[test]
    fn a_rule_that_is_not_registered_is() {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("crates/linter/src/rules");
        write(&rules.join("mod.rs"), MOD).unwrap();
        write(&rules.join("locking/mod.rs"), "//! Locks.\n\npub mod b;\n").unwrap();
        write(&rules.join("locking/b.rs"), "declare_rule! {\n").unwrap();
        write(&rules.join("locking/helper.rs"), "fn help() {}\n").unwrap();
        assert_eq!(register_all(folder.path()), Ok(false));
        write(&rules.join("locking/a.rs"), "declare_rule! {\n").unwrap();
        assert_eq!(register_all(folder.path()), Ok(true));
        let text = fs::read_to_string(rules.join("mod.rs")).unwrap();
        assert!(text.contains("    &locking::a::RULE,\n    &locking::b::RULE,\n"), "{text}");
        assert_eq!(register_all(folder.path()), Ok(false));
    }

    #[test]
    fn names_and_categories_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        for (category, name) in
            [("lockin", "a"), ("locking", "A"), ("locking", "a_b"), ("locking", "a-"), ("locking", "")]
        {
            assert!(create(folder.path(), category, name).is_err(), "{category} {name}");
        }
    }
}
