//! The rules, one file each; the folder is the category.

mod advice;
mod altered;
pub mod engine;
pub mod locking;
mod text;

use crate::rule::Rule;

/// Every rule, by category and name.
static RULES: &[&Rule] = &[
    // engine
    &engine::statement_will_fail::RULE,
    &engine::syntax_error::RULE,
    // locking
    &locking::column_default_rewrites_table::RULE,
    &locking::constraint_builds_index::RULE,
    &locking::constraint_scans_table::RULE,
    &locking::drop_index_without_concurrently::RULE,
    &locking::foreign_key_column_type_change::RULE,
    &locking::foreign_key_locks_other_table::RULE,
    &locking::foreign_key_without_not_valid::RULE,
    &locking::index_without_concurrently::RULE,
    &locking::reindex_without_concurrently::RULE,
    &locking::set_not_null_scans_table::RULE,
    &locking::type_change_rewrites_table::RULE,
    &locking::validate_with_stronger_subcommand::RULE,
];

/// Every rule, in the order of categories and names.
pub fn all() -> &'static [&'static Rule] {
    RULES
}

/// The rule of that name.
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.meta.name == name)
}
