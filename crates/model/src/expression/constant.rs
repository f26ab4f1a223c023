//! Constants and the values of SQL keywords.

use crate::builtin::oid;
use crate::catalog::{Oid, SqlType};
use pgvet_syntax::ast::Literal;

/// The type that PostgreSQL's `make_const` (`src/backend/parser/parse_node.c`) gives a constant.
pub(super) fn literal_type(literal: &Literal) -> SqlType {
    SqlType::new(Oid(match literal {
        Literal::Integer(number) if i32::try_from(*number).is_ok() => oid::INT4,
        Literal::Integer(_) => oid::INT8,
        Literal::Numeric(_) => oid::NUMERIC,
        Literal::Boolean(_) => oid::BOOL,
        Literal::BitString(_) => oid::BIT,
        Literal::String(_) | Literal::Null => oid::UNKNOWN,
    }))
}

/// The type of `CURRENT_DATE`, `CURRENT_USER` and so on, as transformSQLValueFunction
/// (`src/backend/parser/parse_expr.c`) has it.
pub(super) fn sql_value_type(keyword: &str) -> SqlType {
    SqlType::new(Oid(match keyword {
        "current_date" => oid::DATE,
        "current_time" => oid::TIMETZ,
        "current_timestamp" => oid::TIMESTAMPTZ,
        "localtime" => oid::TIME,
        "localtimestamp" => oid::TIMESTAMP,
        _ => oid::NAME,
    }))
}
