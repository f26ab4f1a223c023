//! Values as text: those of parameters, and constants of statements.

use crate::recording::Parameter;
use pgvet_syntax::ast::{Expr, ExprKind, Literal};

/// How a value is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

impl Format {
    pub(crate) fn of(code: usize) -> Self {
        if code == 1 { Self::Binary } else { Self::Text }
    }
}

/// The text of a value; `None` for a binary one of a type that is not read here.
pub(crate) fn shown(value: &[u8], oid: u32, format: Format) -> Option<String> {
    match (format, oid, value.len()) {
        (Format::Text, ..) => std::str::from_utf8(value).ok().map(str::to_owned),
        // bool
        (Format::Binary, 16, 1) => Some((value[0] != 0).to_string()),
        // int8, int4, int2
        (Format::Binary, 20, 8) => Some(i64::from_be_bytes(value.try_into().ok()?).to_string()),
        (Format::Binary, 23, 4) => Some(i32::from_be_bytes(value.try_into().ok()?).to_string()),
        (Format::Binary, 21, 2) => Some(i16::from_be_bytes(value.try_into().ok()?).to_string()),
        // text, varchar, bpchar, name, unknown
        (Format::Binary, 25 | 1043 | 1042 | 19 | 705, _) => std::str::from_utf8(value).ok().map(str::to_owned),
        _ => None,
    }
}

/// A value that was written or sent.
pub(crate) fn constant(value: &Expr, parameters: &[Parameter]) -> Option<String> {
    match &value.kind {
        ExprKind::Literal(Literal::String(text) | Literal::Numeric(text)) => Some(text.to_string()),
        ExprKind::Literal(Literal::Integer(number)) => Some(number.to_string()),
        ExprKind::Literal(Literal::Boolean(value)) => Some(value.to_string()),
        ExprKind::Cast { operand, .. } => constant(operand, parameters),
        ExprKind::Parameter(number) => parameters.get((*number as usize).checked_sub(1)?)?.value.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_both_formats() {
        assert_eq!(shown(b"abc", 0, Format::Text), Some("abc".to_owned()));
        assert_eq!(shown(&42_i64.to_be_bytes(), 20, Format::Binary), Some("42".to_owned()));
        assert_eq!(shown(&42_i32.to_be_bytes(), 23, Format::Binary), Some("42".to_owned()));
        assert_eq!(shown(b"abc", 1043, Format::Binary), Some("abc".to_owned()));
        assert_eq!(shown(b"abc", 17, Format::Binary), None);
        assert_eq!(shown(&[1, 2], 20, Format::Binary), None);
        assert_eq!(shown(&[0xff], 25, Format::Text), None);
    }
}
