//! What breaks deployed code when the migration commits.

mod name_reuse;

pub mod cached_plan_result_changes;
pub mod column_rejects_values;
pub mod conflict_target_lost;
pub mod constraint_rejects_writes;
pub mod contract_before_release;
pub mod drop_column;
pub mod drop_object;
pub mod drop_object_cascade;
pub mod drop_table;
pub mod enum_value_renamed_or_removed;
pub mod if_not_exists_masks_difference;
pub mod index_function_replaced;
pub mod policy_hides_rows;
pub mod policy_recursion;
pub mod primary_key_dropped;
pub mod privilege_revoked;
pub mod rename_column;
pub mod rename_or_move_object;
pub mod rename_table;
pub mod replace_loses_attributes;
pub mod replication_identity_lost;
pub mod required_column_without_default;
pub mod row_level_security_without_policy;
pub mod rule_replaces_writes;
pub mod type_narrowing;
pub mod used_index_dropped;
pub mod view_not_updatable;
