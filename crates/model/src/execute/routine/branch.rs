//! Names of conditions.

/// The SQLSTATE of a condition name, as far as statements of the model raise it.
///
/// Source: PostgreSQL 18 documentation, appendix A.
pub(super) fn condition_sqlstates(name: &str) -> Option<&'static str> {
    Some(match name {
        "active_sql_transaction" => "25001",
        "cannot_coerce" => "42846",
        "check_violation" => "23514",
        "datatype_mismatch" => "42804",
        "dependent_objects_still_exist" => "2BP01",
        "duplicate_column" => "42701",
        "duplicate_function" => "42723",
        "duplicate_object" => "42710",
        "duplicate_schema" => "42P06",
        "duplicate_table" => "42P07",
        "feature_not_supported" => "0A000",
        "foreign_key_violation" => "23503",
        "insufficient_privilege" => "42501",
        "integrity_constraint_violation" => "23000",
        "invalid_column_definition" => "42611",
        "invalid_foreign_key" => "42830",
        "invalid_object_definition" => "42P17",
        "invalid_schema_name" => "3F000",
        "invalid_table_definition" => "42P16",
        "not_null_violation" => "23502",
        "object_not_in_prerequisite_state" => "55000",
        "raise_exception" => "P0001",
        "syntax_error" => "42601",
        "syntax_error_or_access_rule_violation" => "42000",
        "undefined_column" => "42703",
        "undefined_file" => "58P01",
        "undefined_function" => "42883",
        "undefined_object" => "42704",
        "undefined_table" => "42P01",
        "unique_violation" => "23505",
        "wrong_object_type" => "42809",
        _ => return None,
    })
}
