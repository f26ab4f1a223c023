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
        (Format::Binary, 25 | 1043 | 1042 | 19 | 705 | 114, _) => std::str::from_utf8(value).ok().map(str::to_owned),
        // jsonb, whose first byte is a version.
        (Format::Binary, 3802, 1..) => std::str::from_utf8(&value[1..]).ok().map(str::to_owned),
        // float4, float8
        (Format::Binary, 700, 4) => Some(f32::from_be_bytes(value.try_into().ok()?).to_string()),
        (Format::Binary, 701, 8) => Some(f64::from_be_bytes(value.try_into().ok()?).to_string()),
        // bytea
        (Format::Binary, 17, _) => Some(format!("\\x{}", hex(value))),
        (Format::Binary, 2950, 16) => Some(hex(value)),
        // date, timestamp, timestamptz
        (Format::Binary, 1082, 4) => Some(date(i64::from(i32::from_be_bytes(value.try_into().ok()?)))),
        (Format::Binary, 1114, 8) => Some(timestamp(i64::from_be_bytes(value.try_into().ok()?))),
        (Format::Binary, 1184, 8) => Some(in_utc(timestamp(i64::from_be_bytes(value.try_into().ok()?)))),
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn in_utc(timestamp: String) -> String {
    if timestamp.ends_with('y') { timestamp } else { timestamp + "+00" }
}

/// Microseconds since 2000-01-01.
///
/// Source: PostgreSQL 18, `src/include/datatype/timestamp.h`: the ends of the range are the infinities.
fn timestamp(micros: i64) -> String {
    match micros {
        i64::MAX => return "infinity".to_owned(),
        i64::MIN => return "-infinity".to_owned(),
        _ => {}
    }
    const DAY: i64 = 86_400_000_000;
    let (day, time) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{} {hours:02}:{minutes:02}:{:02}.{micros:06}", date(day), seconds % 60)
}

/// Days since 2000-01-01, in the Gregorian calendar: years begin with March, so that the leap day is their last.
fn date(days: i64) -> String {
    // From 0000-03-01 on.
    let days = days + 730_425;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + later)
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
        assert_eq!(shown(b"abc", 600, Format::Binary), None);
        assert_eq!(shown(b"ab", 17, Format::Binary), Some(r"\x6162".to_owned()));
        assert_eq!(shown(b"\x01{}", 3802, Format::Binary), Some("{}".to_owned()));
        assert_eq!(shown(&8826_i32.to_be_bytes(), 1082, Format::Binary), Some("2024-03-01".to_owned()));
        assert_eq!(shown(&(-1_i32).to_be_bytes(), 1082, Format::Binary), Some("1999-12-31".to_owned()));
        let at = 762_566_400_000_000_i64 + 3_723_000_004;
        assert_eq!(shown(&at.to_be_bytes(), 1184, Format::Binary), Some("2024-03-01 01:02:03.000004+00".to_owned()));
        assert_eq!(shown(&[1, 2], 20, Format::Binary), None);
        assert_eq!(shown(&[0xff], 25, Format::Text), None);
    }
}
