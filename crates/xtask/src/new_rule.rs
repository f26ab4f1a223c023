//! `cargo xtask new-rule`: the files that a new rule needs, with the places marked that are to be filled in.

use crate::repository;
use clap::{Args, ValueEnum};
use std::fs;
use std::path::Path;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder: locking, transaction, compatibility, data, bloat, plpgsql, schema, security or history.
    category: String,
    /// The name of the hazard in kebab-case.
    name: String,
    /// What the rule looks at.
    #[arg(long, value_enum, default_value_t = Hook::Statement)]
    hook: Hook,
}

/// What a rule looks at: a field of `Rule` in the linter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Hook {
    /// Each statement, with its effects.
    Statement,
    /// The code of each function, procedure and DO block.
    Routine,
    /// What migrations declare, as the last migration leaves it.
    Declaration,
    /// Each migration when it has ended.
    Migration,
}

impl Hook {
    fn template(self) -> &'static str {
        match self {
            Self::Statement => include_str!("new_rule/statement.rs.template"),
            Self::Routine => include_str!("new_rule/routine.rs.template"),
            Self::Declaration => include_str!("new_rule/declaration.rs.template"),
            Self::Migration => include_str!("new_rule/migration.rs.template"),
        }
    }
}

const CATEGORIES: &[&str] =
    &["engine", "locking", "transaction", "compatibility", "data", "bloat", "plpgsql", "schema", "security", "history"];

#[expect(clippy::print_stdout, reason = "the next steps are for the person who runs it")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments { category, name, hook } = arguments;
    create(&repository(), category, name, *hook)?;
    let module = name.replace('-', "_");
    println!("Write the rule and its page:  crates/linter/src/rules/{category}/{module}.rs");
    println!("Mark what it must report:     fixtures/rules/{name}");
    println!("Check both:                   RULE={name} cargo test -p pgvet-linter --test rules");
    println!("CONTRIBUTING.md has the other steps.");
    Ok(())
}

fn create(repository: &Path, category: &str, name: &str, hook: Hook) -> Result<(), String> {
    if !CATEGORIES.contains(&category) {
        return Err(format!("no category `{category}`: one of {}", CATEGORIES.join(", ")));
    }
    if !is_kebab_case(name) {
        return Err(format!("`{name}` is not in kebab-case: lower-case words with hyphens between them"));
    }
    let rules = repository.join("crates/linter/src/rules");
    let module = name.replace('-', "_");
    let file = rules.join(category).join(format!("{module}.rs"));
    if file.exists() {
        return Err(format!("the rule `{name}` already exists"));
    }
    let fixtures = repository.join("fixtures/rules").join(name);
    let variant = format!("{}{}", category[..1].to_ascii_uppercase(), &category[1..]);
    let template = hook.template();
    write(&file, &template.replace("CATEGORY", &variant).replace("RULE_NAME", name))?;
    let reported = format!("{} -- warning: {name}\n", example(template, "reported"));
    write(&fixtures.join("reported.sql"), &reported)?;
    write(&fixtures.join("silent.sql"), &format!("{}\n", example(template, "clean")))?;
    edit(&rules.join(category).join("mod.rs"), |text| with_module(text, &module))?;
    edit(&rules.join("mod.rs"), |text| registered(&with_module(text, category), category, &module))
}

/// Whether words of letters and digits are separated by hyphens, and the first begins with a letter.
fn is_kebab_case(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.split('-').all(is_word)
}

/// Returns an example of the page in a template.
fn example(template: &str, kind: &str) -> String {
    let lines = template.lines().filter_map(|line| line.trim_start().strip_prefix("/// "));
    let after = lines.skip_while(|line| line.strip_prefix("```sql,") != Some(kind)).skip(1);
    after.take_while(|line| *line != "```").collect::<Vec<_>>().join("\n")
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
        create(folder.path(), "locking", "a-rule", Hook::Statement).unwrap();
        create(folder.path(), "data", "lost-rows", Hook::Routine).unwrap();
        create(folder.path(), "transaction", "c", Hook::Migration).unwrap();
        assert!(create(folder.path(), "locking", "a-rule", Hook::Statement).unwrap_err().contains("already exists"));
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
    fn every_template_has_the_examples_from_which_the_fixtures_are_made() {
        for hook in Hook::value_variants() {
            let template = hook.template();
            let (reported, clean) = (example(template, "reported"), example(template, "clean"));
            assert!(reported.ends_with(';') && clean.ends_with(';') && reported != clean, "{hook:?}");
            let name = format!("{hook:?}").to_lowercase();
            assert!(template.contains(&format!("\n    {name} = check,\n")), "{hook:?}");
        }
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
            assert!(create(folder.path(), category, name, Hook::Statement).is_err(), "{category} {name}");
        }
        assert!(is_kebab_case("int4-primary-key") && !is_kebab_case("4-bytes"));
    }
}
