//! What PostgreSQL's grammar allows to be removed from a statement.
//!
//! Only what is named here is ever changed: the deparser is C code that trusts its input, so a tree that no text has would
//! end the process. Source: `src/backend/parser/gram.y` and `src/include/nodes/parsenodes.h` of PostgreSQL 18, and
//! `postgres_deparse.c` of `libpg_query` 18.

use crate::tree::{Message, Value};

/// How the value of a field can become simpler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shrink {
    /// Not at all; what is in it may.
    Keep,
    /// A clause, a name or a flag that may be absent.
    Clear,
    /// An enumeration or an option whose default is not written.
    Number(i64),
    /// A text whose default is not written.
    Text(&'static str),
    /// A list of which at least so many elements are left.
    Elements(usize),
    /// A qualified name, of which the last part is left.
    Qualifier,
    /// An expression, which NULL or a part of itself can replace.
    Expression,
    /// An expression that may be absent, too.
    OptionalExpression,
    /// A list of expressions, of which at least so many are left.
    Expressions(usize),
    /// A query, which a query inside of it can replace.
    Query,
    /// Something in FROM, which a part of itself can replace.
    Source,
    /// A list of those, of which at least so many are left.
    Sources(usize),
    /// A type, which `int` can replace.
    Type,
}

/// The kinds of nodes that can stand wherever an expression can.
const EXPRESSIONS: [&str; 21] = [
    "AArrayExpr",
    "AConst",
    "AExpr",
    "AIndirection",
    "BoolExpr",
    "BooleanTest",
    "CaseExpr",
    "CoalesceExpr",
    "CollateClause",
    "ColumnRef",
    "FuncCall",
    "GroupingFunc",
    "JsonFuncExpr",
    "MinMaxExpr",
    "NullTest",
    "ParamRef",
    "RowExpr",
    "SqlValueFunction",
    "SubLink",
    "TypeCast",
    "XmlExpr",
];

/// `COERCE_SQL_SYNTAX` in the numbers of Protocol Buffers: `EXTRACT(... FROM ...)` and others with a form of their own.
const SQL_SYNTAX: i64 = 4;
/// `SETOP_NONE`.
const NO_SET_OPERATION: i64 = 1;
/// Labels of `A_Expr_Kind`.
const KIND_IN: i64 = 7;
const KIND_SIMILAR: i64 = 10;
const BETWEEN: std::ops::RangeInclusive<i64> = 11..=14;

pub(crate) fn is_expression(message: &Message) -> bool {
    EXPRESSIONS.contains(&message.name) && !is_star(message)
}

/// Whether it is `*` or `t.*`, which stands in few places.
fn is_star(message: &Message) -> bool {
    let is_star = |value: &Value| value.message().is_some_and(|part| part.name == "AStar");
    message.list("fields").iter().any(is_star) || message.list("indirection").iter().any(is_star)
}

pub(crate) fn is_query(message: &Message) -> bool {
    matches!(message.name, "SelectStmt" | "InsertStmt" | "UpdateStmt" | "DeleteStmt" | "MergeStmt")
}

pub(crate) fn is_source(message: &Message) -> bool {
    matches!(message.name, "RangeVar" | "RangeSubselect" | "RangeFunction" | "JoinExpr" | "RangeTableFunc")
}

/// Whether a list that stands in a field of an expression holds expressions: `IN (...)`, and the rows of VALUES.
pub(crate) fn inner_list(parent: &Message, field: &str) -> Shrink {
    match (parent.name, field) {
        ("AExpr", "rexpr") if parent.number("kind") == Some(KIND_IN) => Shrink::Expressions(1),
        ("AExpr", "rexpr") if parent.number("kind").is_some_and(|kind| BETWEEN.contains(&kind)) => {
            Shrink::Expressions(2)
        }
        ("SelectStmt", "values_lists") => Shrink::Expressions(1),
        _ => Shrink::Keep,
    }
}

/// How a field of a node can become simpler.
pub(crate) fn shrink(node: &Message, field: &str) -> Shrink {
    match node.name {
        "SelectStmt" => of_select(node, field),
        "InsertStmt" | "UpdateStmt" | "DeleteStmt" | "MergeStmt" | "MergeWhenClause" | "OnConflictClause"
        | "InferClause" | "ReturningClause" => of_change(node, field),
        "ResTarget" | "ColumnRef" | "RangeVar" | "RangeSubselect" | "RangeFunction" | "RangeTableSample"
        | "JoinExpr" | "WithClause" | "CommonTableExpr" | "LockingClause" | "Alias" => of_source(field, node),
        "CreateStmt" | "ColumnDef" | "Constraint" | "TypeName" | "PartitionElem" | "IndexStmt" | "IndexElem"
        | "CreateDomainStmt" => of_table(field, node),
        name if EXPRESSIONS.contains(&name) => of_expression(node, field),
        "CaseWhen" | "SortBy" | "WindowDef" | "AIndices" => of_expression(node, field),
        _ => of_command(node, field),
    }
}

fn of_select(select: &Message, field: &str) -> Shrink {
    let is_values = !select.list("values_lists").is_empty();
    let is_set_operation = select.number("op") != Some(NO_SET_OPERATION);
    match field {
        "target_list" if !is_values && !is_set_operation => Shrink::Elements(0),
        "from_clause" => Shrink::Sources(0),
        "where_clause" | "having_clause" | "limit_offset" => Shrink::OptionalExpression,
        // WITH TIES needs a limit.
        "limit_count" if select.number("limit_option") != Some(3) => Shrink::OptionalExpression,
        "distinct_clause" | "window_clause" | "sort_clause" | "locking_clause" => Shrink::Elements(0),
        "group_clause" => Shrink::Expressions(0),
        "group_distinct" => Shrink::Clear,
        "all" if is_set_operation => Shrink::Clear,
        "values_lists" if is_values => Shrink::Elements(1),
        "with_clause" => Shrink::Clear,
        "larg" | "rarg" if is_set_operation => Shrink::Query,
        _ => Shrink::Keep,
    }
}

fn of_change(change: &Message, field: &str) -> Shrink {
    match (change.name, field) {
        (_, "returning_clause" | "with_clause") | ("InsertStmt", "on_conflict_clause") => Shrink::Clear,
        ("InsertStmt", "select_stmt") => Shrink::Query,
        ("UpdateStmt" | "OnConflictClause", "target_list") if !has_multiple_assignment(change) => Shrink::Elements(1),
        ("UpdateStmt" | "DeleteStmt" | "OnConflictClause" | "InferClause", "where_clause") => {
            Shrink::OptionalExpression
        }
        ("UpdateStmt", "from_clause") | ("DeleteStmt", "using_clause") => Shrink::Sources(0),
        ("MergeStmt", "source_relation") => Shrink::Source,
        ("MergeStmt", "join_condition") => Shrink::Expression,
        ("MergeStmt", "merge_when_clauses") => Shrink::Elements(1),
        ("MergeWhenClause", "condition") => Shrink::OptionalExpression,
        ("ReturningClause", "exprs") => Shrink::Elements(1),
        ("ReturningClause", "options") => Shrink::Elements(0),
        _ => Shrink::Keep,
    }
}

/// `(a, b) = (...)`: several targets share one expression.
fn has_multiple_assignment(update: &Message) -> bool {
    let is_shared = |target: &Value| {
        let value = target.message().and_then(|target| target.get("val"));
        value.and_then(Value::message).is_some_and(|value| value.name == "MultiAssignRef")
    };
    update.list("target_list").iter().any(is_shared)
}

fn of_source(field: &str, node: &Message) -> Shrink {
    match (node.name, field) {
        ("ResTarget", "val") => Shrink::Expression,
        ("ColumnRef", "fields") => Shrink::Qualifier,
        ("RangeVar", "catalogname" | "alias") => Shrink::Clear,
        ("RangeVar", "schemaname") if node.get("catalogname").is_some_and(Value::is_empty) => Shrink::Clear,
        ("RangeSubselect", "subquery") | ("CommonTableExpr", "ctequery") => Shrink::Query,
        ("RangeSubselect" | "RangeFunction" | "JoinExpr", "alias") => Shrink::Clear,
        ("RangeSubselect" | "RangeFunction", "lateral") => Shrink::Clear,
        ("RangeFunction", "ordinality") | ("JoinExpr", "join_using_alias") => Shrink::Clear,
        ("RangeTableSample", "repeatable") => Shrink::Clear,
        ("JoinExpr", "larg" | "rarg") => Shrink::Source,
        ("JoinExpr", "quals") => Shrink::OptionalExpression,
        ("JoinExpr", "using_clause") => Shrink::Elements(1),
        ("WithClause", "ctes") => Shrink::Elements(1),
        ("WithClause", "recursive") => Shrink::Clear,
        ("CommonTableExpr", "aliascolnames") | ("LockingClause", "locked_rels") | ("Alias", "colnames") => {
            Shrink::Elements(0)
        }
        ("CommonTableExpr", "ctematerialized") | ("LockingClause", "wait_policy") => Shrink::Number(1),
        ("CommonTableExpr", "search_clause" | "cycle_clause") => Shrink::Clear,
        _ => Shrink::Keep,
    }
}

fn of_table(field: &str, node: &Message) -> Shrink {
    match (node.name, field) {
        ("CreateStmt", "table_elts" | "options" | "constraints") => Shrink::Elements(0),
        // A partition has its parent there.
        ("CreateStmt", "inh_relations") if node.get("partbound").is_some_and(Value::is_empty) => Shrink::Elements(0),
        ("CreateStmt", "partspec" | "tablespacename" | "access_method" | "if_not_exists") => Shrink::Clear,
        ("CreateStmt", "oncommit") => Shrink::Number(1),
        ("ColumnDef" | "CreateDomainStmt", "constraints") => Shrink::Elements(0),
        ("ColumnDef" | "CreateDomainStmt", "type_name") => Shrink::Type,
        ("ColumnDef" | "CreateDomainStmt", "coll_clause") | ("ColumnDef", "compression" | "storage_name") => {
            Shrink::Clear
        }
        ("Constraint", "conname" | "skip_validation" | "is_no_inherit" | "nulls_not_distinct" | "indexspace") => {
            Shrink::Clear
        }
        ("Constraint", "initdeferred") => Shrink::Clear,
        ("Constraint", "deferrable") if node.number("initdeferred") == Some(0) => Shrink::Clear,
        ("Constraint", "raw_expr") => Shrink::Expression,
        ("Constraint", "where_clause") => Shrink::OptionalExpression,
        ("Constraint", "including" | "options" | "pk_attrs") => Shrink::Elements(0),
        ("Constraint", "keys") => Shrink::Elements(1),
        ("Constraint", "fk_upd_action" | "fk_del_action") => Shrink::Text("a"),
        ("Constraint", "fk_matchtype") => Shrink::Text("s"),
        ("Constraint", "fk_del_set_cols") => Shrink::Elements(0),
        ("TypeName", "setof") => Shrink::Clear,
        // `json` is `pg_catalog.json` in the tree, and written so.
        ("TypeName", "names") if node.list("typmods").is_empty() => Shrink::Qualifier,
        ("TypeName", "array_bounds") => Shrink::Elements(0),
        // An interval keeps its fields in its modifiers.
        ("TypeName", "typmods") => Shrink::Clear,
        ("PartitionElem" | "IndexElem", "collation" | "opclass") => Shrink::Clear,
        ("IndexElem", "opclassopts") => Shrink::Clear,
        ("IndexElem", "ordering" | "nulls_ordering") => Shrink::Number(1),
        ("PartitionElem" | "IndexElem", "expr") => Shrink::Expression,
        ("IndexStmt", "idxname") if node.number("if_not_exists") == Some(0) => Shrink::Clear,
        ("IndexStmt", "index_params") => Shrink::Elements(1),
        ("IndexStmt", "index_including_params" | "options") => Shrink::Elements(0),
        ("IndexStmt", "where_clause") => Shrink::OptionalExpression,
        ("IndexStmt", "access_method") => Shrink::Text("btree"),
        ("IndexStmt", "table_space" | "unique" | "nulls_not_distinct" | "concurrent" | "if_not_exists") => {
            Shrink::Clear
        }
        _ => Shrink::Keep,
    }
}

fn of_expression(node: &Message, field: &str) -> Shrink {
    match (node.name, field) {
        // The right side of SIMILAR TO is a call that the grammar makes.
        ("AExpr", "rexpr") if node.number("kind") == Some(KIND_SIMILAR) => Shrink::Keep,
        ("AExpr", "lexpr" | "rexpr") => Shrink::Expression,
        // AND and OR have two sides; NOT has one.
        ("BoolExpr", "args") => Shrink::Expressions(2),
        ("CoalesceExpr" | "MinMaxExpr", "args") => Shrink::Expressions(1),
        ("RowExpr", "args") => Shrink::Expressions(0),
        ("AArrayExpr", "elements") => Shrink::Expressions(0),
        ("CaseExpr", "args") => Shrink::Elements(1),
        ("CaseExpr", "arg" | "defresult") => Shrink::OptionalExpression,
        ("CaseWhen", "expr" | "result") | ("SortBy", "node") => Shrink::Expression,
        ("SortBy", "sortby_dir" | "sortby_nulls") if node.list("use_op").is_empty() => Shrink::Number(1),
        ("TypeCast" | "NullTest" | "BooleanTest" | "AIndirection" | "CollateClause", "arg") => Shrink::Expression,
        ("SubLink", "testexpr") => Shrink::Expression,
        ("SubLink", "subselect") => Shrink::Query,
        ("AIndices", "lidx" | "uidx") => Shrink::Expression,
        ("FuncCall", field) => of_call(node, field),
        ("WindowDef", "partition_clause") => Shrink::Expressions(0),
        ("WindowDef", "order_clause") => Shrink::Elements(0),
        _ => Shrink::Keep,
    }
}

fn of_call(call: &Message, field: &str) -> Shrink {
    let has = |flag: &str| call.number(flag) == Some(1);
    let is_ordinary = call.number("funcformat") != Some(SQL_SYNTAX) && !is_escape(call);
    match field {
        "args" if !is_ordinary => Shrink::Keep,
        "args" if has("func_variadic") || has("agg_distinct") => Shrink::Expressions(1),
        "args" if call.list("agg_order").is_empty() || has("agg_within_group") => Shrink::Expressions(0),
        "args" => Shrink::Expressions(1),
        "funcname" if is_ordinary => Shrink::Qualifier,
        "agg_order" if !has("agg_within_group") => Shrink::Elements(0),
        "agg_filter" => Shrink::OptionalExpression,
        "over" | "agg_distinct" | "func_variadic" => Shrink::Clear,
        _ => Shrink::Keep,
    }
}

/// What the grammar makes of ESCAPE, and of every SIMILAR TO.
fn is_escape(call: &Message) -> bool {
    let name = call.list("funcname").last().and_then(Value::message).and_then(|name| name.get("sval"));
    matches!(name, Some(Value::Text(name)) if name == "like_escape" || name == "similar_to_escape")
}

fn of_command(node: &Message, field: &str) -> Shrink {
    match (node.name, field) {
        (
            "AlterTableStmt" | "AlterTableCmd" | "DropStmt" | "AlterSeqStmt" | "RenameStmt" | "AlterObjectSchemaStmt",
            "missing_ok",
        ) => Shrink::Clear,
        (
            "CreateSchemaStmt" | "CreateSeqStmt" | "CreateExtensionStmt" | "CreateTableAsStmt" | "CreateStatsStmt",
            "if_not_exists",
        ) => Shrink::Clear,
        ("ViewStmt" | "CreateTrigStmt" | "CreateFunctionStmt" | "RuleStmt", "replace") => Shrink::Clear,
        ("AlterTableCmd" | "DropStmt" | "TruncateStmt", "behavior") => Shrink::Number(1),
        ("AlterTableStmt", "cmds") | ("DropStmt", "objects") | ("VacuumStmt", "rels") => Shrink::Elements(1),
        ("GrantStmt", "objects" | "privileges" | "grantees") => Shrink::Elements(1),
        ("AlterTableCmd", "def") => Shrink::Expression,
        ("DropStmt", "concurrent") | ("TruncateStmt", "restart_seqs") | ("GrantStmt", "grant_option") => Shrink::Clear,
        ("TruncateStmt" | "LockStmt", "relations") => Shrink::Elements(1),
        // LANGUAGE, AS and RETURNS are needed, although the grammar does not say so.
        ("CreateFunctionStmt", "parameters") => Shrink::Elements(0),
        ("ViewStmt" | "ExplainStmt" | "CreateTableAsStmt" | "DeclareCursorStmt" | "PrepareStmt", "query") => {
            Shrink::Query
        }
        ("CopyStmt", "query") => Shrink::Query,
        ("ViewStmt", "aliases" | "options") | ("ExplainStmt" | "VacuumStmt", "options") => Shrink::Elements(0),
        ("ViewStmt", "with_check_option") => Shrink::Number(1),
        ("IntoClause", "col_names" | "options") => Shrink::Elements(0),
        ("IntoClause", "access_method" | "table_space_name" | "skip_data") => Shrink::Clear,
        ("IntoClause", "on_commit") => Shrink::Number(1),
        ("CreateTrigStmt", "args" | "columns" | "transition_rels") => Shrink::Elements(0),
        ("CreateTrigStmt" | "RuleStmt", "when_clause" | "where_clause") => Shrink::OptionalExpression,
        ("CreatePolicyStmt" | "AlterPolicyStmt", "qual" | "with_check") => Shrink::OptionalExpression,
        ("CreatePolicyStmt", "roles") => Shrink::Elements(1),
        ("CopyStmt", "attlist" | "options") | ("PrepareStmt", "argtypes") => Shrink::Elements(0),
        ("CopyStmt", "where_clause") => Shrink::OptionalExpression,
        ("CreateSeqStmt" | "CreateExtensionStmt", "options") => Shrink::Elements(0),
        ("AlterSeqStmt", "options") => Shrink::Elements(1),
        ("CreateEnumStmt", "vals") | ("CompositeTypeStmt", "coldeflist") => Shrink::Elements(0),
        ("CreateSchemaStmt", "schema_elts") => Shrink::Elements(0),
        ("ExecuteStmt", "params") => Shrink::Expressions(0),
        _ => Shrink::Keep,
    }
}
