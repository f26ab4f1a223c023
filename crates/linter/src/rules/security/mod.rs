//! Privileges that reach further than they seem to.

mod api_roles;

pub mod grant_to_public;
pub mod policy_always_true;
pub mod revoke_without_effect;
pub mod row_level_security_disabled;
pub mod security_definer_search_path;
pub mod untrusted_extension;
pub mod view_without_security_invoker;
