//! The rules, one file each; the folder is the category.

pub mod engine;
pub mod locking;

use crate::rule::Rule;

/// Every rule, by category and name.
static RULES: &[&Rule] = &[
    // engine
    &engine::statement_will_fail::RULE,
    &engine::syntax_error::RULE,
    &engine::unknown_suppression::RULE,
    &engine::unsupported_encoding::RULE,
    &engine::unused_suppression::RULE,
    // locking
    &locking::index_without_concurrently::RULE,
];

/// Every rule, in the order of categories and names.
pub fn all() -> &'static [&'static Rule] {
    RULES
}

/// The rule of that name.
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.meta.name == name)
}

/// How many letters may be wrong for a name to be suggested.
const MAX_DISTANCE: usize = 4;

/// The rule whose name is most like `name`, if one is.
pub fn nearest(name: &str) -> Option<&'static str> {
    let distance = |rule: &&Rule| (strsim::damerau_levenshtein(name, rule.meta.name), rule.meta.name);
    let nearest = RULES.iter().map(distance).min();
    nearest.filter(|(distance, _)| *distance <= MAX_DISTANCE).map(|(_, nearest)| nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest("syntax-eror"), Some("syntax-error"));
        assert_eq!(nearest("something-else"), None);
    }
}
