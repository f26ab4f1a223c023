//! The rules, one file each; the folder is the category.

mod advice;
pub mod bloat;
pub mod compatibility;
pub(crate) mod conflict;
pub mod data;
pub(crate) mod deployment;
pub mod engine;
pub mod history;
pub mod locking;
pub mod plpgsql;
pub mod schema;
pub mod security;
mod size;
mod statement;
mod text;
pub mod transaction;

use crate::diagnostic::Diagnostic;
use crate::rule::Rule;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use smol_str::SmolStr;

/// Every rule, by category and name.
static RULES: &[&Rule] = &[
    // engine
    &engine::ambiguous_text::RULE,
    &engine::internal_error::RULE,
    &engine::not_analyzed::RULE,
    &engine::statement_will_fail::RULE,
    &engine::suppression_without_reason::RULE,
    &engine::syntax_error::RULE,
    &engine::table_never_created::RULE,
    &engine::unchecked_psql_command::RULE,
    &engine::unknown_suppression::RULE,
    &engine::unsupported_encoding::RULE,
    &engine::unused_suppression::RULE,
    // locking
    &locking::attach_partition_scans::RULE,
    &locking::column_default_rewrites_table::RULE,
    &locking::constraint_builds_index::RULE,
    &locking::constraint_scans_table::RULE,
    &locking::detach_partition_without_concurrently::RULE,
    &locking::domain_constraint_scans_tables::RULE,
    &locking::drop_index_without_concurrently::RULE,
    &locking::drop_partition_locks_parent::RULE,
    &locking::explicit_table_lock::RULE,
    &locking::foreign_key_column_type_change::RULE,
    &locking::foreign_key_locks_other_table::RULE,
    &locking::foreign_key_without_not_valid::RULE,
    &locking::index_without_concurrently::RULE,
    &locking::missing_lock_timeout::RULE,
    &locking::partition_of_locks_parent::RULE,
    &locking::refresh_blocks_readers::RULE,
    &locking::reindex_without_concurrently::RULE,
    &locking::set_not_null_scans_table::RULE,
    &locking::table_rewrite::RULE,
    &locking::timeout_during_concurrent_build::RULE,
    &locking::timeout_not_in_effect::RULE,
    &locking::trigger_blocks_writes::RULE,
    &locking::truncate_existing_table::RULE,
    &locking::type_change_rewrites_table::RULE,
    &locking::validate_with_stronger_subcommand::RULE,
    // transaction
    &transaction::commit_in_subtransaction::RULE,
    &transaction::concurrently_in_transaction::RULE,
    &transaction::enum_value_used_in_same_transaction::RULE,
    &transaction::inconsistent_lock_order::RULE,
    &transaction::invalid_index_kept::RULE,
    &transaction::many_tables_locked::RULE,
    &transaction::mixed_ddl_and_bulk_dml::RULE,
    &transaction::nested_transaction::RULE,
    &transaction::not_rerunnable::RULE,
    &transaction::retry_blocked::RULE,
    &transaction::second_run_deadlocks::RULE,
    &transaction::sessions_stopped::RULE,
    &transaction::setting_of_earlier_migration::RULE,
    &transaction::validate_in_same_transaction::RULE,
    &transaction::work_after_strong_lock::RULE,
    // compatibility
    &compatibility::cached_plan_result_changes::RULE,
    &compatibility::column_rejects_values::RULE,
    &compatibility::conflict_target_lost::RULE,
    &compatibility::constraint_rejects_writes::RULE,
    &compatibility::contract_before_release::RULE,
    &compatibility::drop_column::RULE,
    &compatibility::drop_object::RULE,
    &compatibility::drop_object_cascade::RULE,
    &compatibility::drop_table::RULE,
    &compatibility::enum_value_renamed_or_removed::RULE,
    &compatibility::if_not_exists_masks_difference::RULE,
    &compatibility::index_function_replaced::RULE,
    &compatibility::policy_hides_rows::RULE,
    &compatibility::policy_recursion::RULE,
    &compatibility::primary_key_dropped::RULE,
    &compatibility::privilege_revoked::RULE,
    &compatibility::rename_column::RULE,
    &compatibility::rename_or_move_object::RULE,
    &compatibility::rename_table::RULE,
    &compatibility::replace_loses_attributes::RULE,
    &compatibility::replication_identity_lost::RULE,
    &compatibility::required_column_without_default::RULE,
    &compatibility::row_level_security_without_policy::RULE,
    &compatibility::rule_replaces_writes::RULE,
    &compatibility::type_narrowing::RULE,
    &compatibility::used_index_dropped::RULE,
    &compatibility::view_not_updatable::RULE,
    // data
    &data::backfill_missing::RULE,
    &data::bulk_change_in_loop::RULE,
    &data::exception_driven_upsert::RULE,
    &data::foreign_keys_not_checked::RULE,
    &data::insert_may_violate_unique::RULE,
    &data::looks_like_rename::RULE,
    &data::missing_analyze::RULE,
    &data::referenced_value_deleted::RULE,
    &data::rows_may_violate_constraint::RULE,
    &data::select_then_insert::RULE,
    &data::sequence_behind_keys::RULE,
    &data::statement_per_row::RULE,
    &data::system_catalog_write::RULE,
    &data::toast_compression_not_applied::RULE,
    &data::trigger_left_disabled::RULE,
    &data::unbounded_row_lock::RULE,
    &data::unbounded_update_or_delete::RULE,
    &data::uncopied_rows_deleted::RULE,
    &data::update_collides_with_itself::RULE,
    &data::writes_lost_after_copy::RULE,
    // bloat
    &bloat::autovacuum_disabled::RULE,
    &bloat::freeze_age_raised::RULE,
    &bloat::large_object_orphaned::RULE,
    &bloat::large_object_use::RULE,
    &bloat::savepoint_after_row_lock::RULE,
    &bloat::savepoint_not_released::RULE,
    &bloat::subtransaction_overflow::RULE,
    &bloat::subtransaction_per_row::RULE,
    &bloat::table_created_on_demand::RULE,
    &bloat::temporary_table_in_hot_path::RULE,
    // plpgsql
    &plpgsql::ambiguous_column_name::RULE,
    &plpgsql::ddl_in_function::RULE,
    &plpgsql::dynamic_ddl_on_unknown_object::RULE,
    &plpgsql::dynamic_sql_injection::RULE,
    &plpgsql::swallowed_exception::RULE,
    &plpgsql::trigger_refers_to_deleted_row::RULE,
    &plpgsql::trigger_variable_mismatch::RULE,
    &plpgsql::unknown_column_or_table::RULE,
    // schema
    &schema::char_type::RULE,
    &schema::default_violates_check::RULE,
    &schema::float_money::RULE,
    &schema::identifier_too_long::RULE,
    &schema::int4_primary_key::RULE,
    &schema::json_column::RULE,
    &schema::missing_primary_key::RULE,
    &schema::mixed_type_comparison::RULE,
    &schema::money_type::RULE,
    &schema::redundant_index::RULE,
    &schema::serial_column::RULE,
    &schema::set_null_on_not_null_column::RULE,
    &schema::timestamp_without_time_zone::RULE,
    &schema::timestamptz_to_date_cast::RULE,
    &schema::unindexed_foreign_key::RULE,
    &schema::unlogged_table::RULE,
    &schema::varchar_limit::RULE,
    &schema::volatile_check_constraint::RULE,
    // security
    &security::grant_to_public::RULE,
    &security::policy_always_true::RULE,
    &security::revoke_without_effect::RULE,
    &security::row_level_security_disabled::RULE,
    &security::security_definer_search_path::RULE,
    &security::untrusted_extension::RULE,
    &security::view_without_security_invoker::RULE,
    // history
    &history::applied_migration_edited::RULE,
    &history::applied_migration_removed::RULE,
    &history::duplicate_migration_version::RULE,
    &history::migration_not_listed::RULE,
    &history::migration_out_of_order::RULE,
];

/// Every rule, in the order of categories and names.
pub fn all() -> &'static [&'static Rule] {
    RULES
}

/// The rule of that name.
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.meta.name == name)
}

/// Reads a finding whose rule is one of these.
pub(crate) fn read_finding<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Diagnostic, D::Error> {
    known(Diagnostic::deserialize(deserializer)?)
}

/// Reads findings whose rules are among these.
pub(crate) fn read_findings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Diagnostic>, D::Error> {
    Vec::deserialize(deserializer)?.into_iter().map(known).collect()
}

fn known<E: Error>(read: Diagnostic<SmolStr>) -> Result<Diagnostic, E> {
    let rule = find(&read.rule).ok_or_else(|| E::custom(format!("there is no rule `{}`", read.rule)))?;
    Ok(read.named(rule.meta.name))
}

/// How many letters may be wrong for a name to be suggested.
const MAX_DISTANCE: usize = 4;

/// The rule whose name is most like `name`, if one is.
pub fn nearest(name: &str) -> Option<&'static str> {
    // A comment may hold thousands of names, and names of any length.
    let length = name.chars().count();
    let is_candidate = |rule: &&&Rule| rule.meta.name.chars().count().abs_diff(length) <= MAX_DISTANCE;
    let distance = |rule: &&Rule| (strsim::damerau_levenshtein(name, rule.meta.name), rule.meta.name);
    let nearest = RULES.iter().filter(is_candidate).map(distance).min();
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
