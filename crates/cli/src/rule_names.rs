//! Names of rules and categories as users type them.

use crate::args::{RuleArgs, names};
use crate::error::Failure;
use pgvet_linter::meta::{Category, RuleMeta};
use pgvet_linter::rules;

/// The meaning of a name.
#[derive(Debug)]
pub(crate) enum Named {
    Rule(&'static RuleMeta),
    /// Several rules, with what they have in common.
    Several(String, Vec<&'static RuleMeta>),
}

/// The category of that name.
pub(crate) fn category(name: &str) -> Option<Category> {
    names::categories().into_iter().find(|category| category.as_str() == name)
}

/// Whether a rule belongs to a category.
pub(crate) fn is_of(rule: &str, category: Category) -> bool {
    rules::find(rule).is_some_and(|rule| rule.meta.category == category)
}

/// Returns what a name stands for: a rule, a category, the name that another linter has for a rule, or the beginning of
/// names of rules.
pub(crate) fn find(name: &str) -> Result<Named, Failure> {
    let lower = name.to_lowercase();
    if let Some(rule) = rules::find(&lower) {
        return Ok(Named::Rule(&rule.meta));
    }
    if let Some(category) = category(&lower) {
        let of_category = all().filter(|rule| rule.category == category).collect();
        return Ok(Named::Several(format!("rules of the category {}", category.as_str()), of_category));
    }
    let foreign: Vec<&RuleMeta> =
        all().filter(|rule| rule.sources.iter().any(|source| is_called(source, name))).collect();
    if !foreign.is_empty() {
        return Ok(one_or_several(foreign, |count| format!("{count} rules that correspond to {name}")));
    }
    let beginning: Vec<&RuleMeta> = all().filter(|rule| rule.name.starts_with(lower.as_str())).collect();
    if beginning.is_empty() {
        return Err(unknown(name));
    }
    Ok(one_or_several(beginning, |count| format!("{count} rules that begin with {lower}")))
}

fn all() -> impl Iterator<Item = &'static RuleMeta> {
    rules::all().iter().map(|rule| &rule.meta)
}

fn one_or_several(found: Vec<&'static RuleMeta>, title: impl FnOnce(usize) -> String) -> Named {
    match found.as_slice() {
        [only] => Named::Rule(only),
        _ => Named::Several(title(found.len()), found),
    }
}

/// Whether another linter's rule, as in `squawk/ban-drop-column`, is called so, with or without the linter.
fn is_called(source: &str, name: &str) -> bool {
    let same = |one: &str, other: &str| {
        let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
        plain(one) == plain(other)
    };
    same(source, name) || source.split_once('/').is_some_and(|(_, own)| same(own, name))
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::new(format!("there is no rule `{name}`"));
    match rules::nearest(name) {
        Some(nearest) => failure.help(format!("did you mean `{nearest}`? `pgvet rules` lists all rules")),
        None => failure.help("`pgvet rules` lists all rules"),
    }
}

/// Checks that the rules and categories that the arguments name exist.
pub(crate) fn check(args: &RuleArgs) -> Result<(), Failure> {
    let levels = args.level.iter().filter_map(|level| match level {
        names::LevelArg::Of(name, _) => Some(name),
        names::LevelArg::Shown(_) => None,
    });
    let mut named = args.only.iter().chain(&args.ignore).chain(levels);
    named.try_for_each(|name| {
        if rules::find(name).is_some() || category(name).is_some() { Ok(()) } else { Err(unknown(name)) }
    })
}

/// Replaces each category by those of its rules that are wanted. Names of categories stay, so that a category without
/// such rules stands for nothing instead of everything.
pub(crate) fn expand(names: &[String], is_wanted: impl Fn(&RuleMeta) -> bool) -> Vec<String> {
    let mut expanded = names.to_vec();
    for category in names.iter().filter_map(|name| category(name)) {
        let rules = all().filter(|rule| rule.category == category && is_wanted(rule));
        expanded.extend(rules.map(|rule| rule.name.to_owned()));
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Vec<&'static str> {
        match find(name).unwrap() {
            Named::Rule(rule) => vec![rule.name],
            Named::Several(_, rules) => rules.iter().map(|rule| rule.name).collect(),
        }
    }

    #[test]
    fn a_rule_is_found_by_the_names_of_other_linters() {
        for name in ["drop-column", "DROP-COLUMN", "squawk/ban-drop-column", "ban-drop-column", "banDropColumn"] {
            assert!(names(name).contains(&"drop-column"), "{name}: {:?}", names(name));
        }
        assert!(names("strong_migrations/add_index").contains(&"index-without-concurrently"));
        assert!(names("eugene/E6").contains(&"index-without-concurrently"));
        assert!(names("e6").contains(&"index-without-concurrently"));
    }

    #[test]
    fn a_category_and_a_beginning_stand_for_their_rules() {
        assert!(names("locking").len() > 10);
        assert_eq!(names("missing-lock"), ["missing-lock-timeout"]);
        assert!(names("rename-").len() > 1);
        assert!(find("no-such-rule-at-all").is_err());
    }

    #[test]
    fn a_category_without_rules_is_not_everything() {
        assert_eq!(expand(&["bloat".to_owned()], |_| false), ["bloat"]);
        assert!(expand(&["locking".to_owned()], |_| true).len() > 10);
    }
}
