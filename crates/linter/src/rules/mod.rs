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
