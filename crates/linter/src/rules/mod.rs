//! The rules, one file each; the folder is the category.

use crate::rule::RuleMeta;

/// Every rule, in the order of categories and names.
pub fn all() -> &'static [&'static RuleMeta] {
    &[]
}
