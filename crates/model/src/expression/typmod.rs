//! Type modifiers: from what is written to PostgreSQL's atttypmod, and back.

use super::TypeModifierError;
use crate::builtin::oid;
use crate::version::Target;
use pgvet_syntax::ast::Literal;
use std::fmt::Write as _;

/// VARHDRSZ: lengths and numeric modifiers are stored with the size of the header added.
const HEADER: i32 = 4;
/// `MAX_TIMESTAMP_PRECISION`, `MAX_TIME_PRECISION` and `MAX_INTERVAL_PRECISION`.
const MAX_PRECISION: i32 = 6;
/// `INTERVAL_FULL_RANGE` and `INTERVAL_FULL_PRECISION` (src/include/utils/timestamp.h).
const FULL_RANGE: i32 = 0x7FFF;
const FULL_PRECISION: i32 = 0xFFFF;

/// The modifier of `element(modifiers)`, as the typmodin function of the type makes it; -1 without modifiers.
///
/// # Errors
/// Where PostgreSQL would refuse the modifiers.
pub fn encode(element: u32, modifiers: &[Literal], target: &Target) -> Result<i32, TypeModifierError> {
    if modifiers.is_empty() {
        // `char` is written `bpchar(1)` by the grammar, and so is not without modifiers.
        return Ok(-1);
    }
    let numbers: Vec<i32> = modifiers.iter().map(integer).collect::<Option<_>>().ok_or(TypeModifierError)?;
    let checked = |range: std::ops::RangeInclusive<i32>, value: i32| range.contains(&value).then_some(value);
    let typmod = match (element, numbers.as_slice()) {
        (oid::VARCHAR | oid::BPCHAR, [length]) => checked(1..=10_485_760, *length).map(|length| length + HEADER),
        (oid::BIT | oid::VARBIT, [length]) => checked(1..=83_886_080, *length),
        (oid::NUMERIC, [precision]) => checked(1..=1000, *precision).map(|precision| (precision << 16) + HEADER),
        (oid::NUMERIC, [precision, scale]) => {
            let scales = if target.at_least(15) { -1000..=1000 } else { 0..=*precision };
            checked(1..=1000, *precision)
                .filter(|_| scales.contains(scale))
                .map(|precision| ((precision << 16) | (scale & 0x7FF)) + HEADER)
        }
        (oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::TIME | oid::TIMETZ, [precision]) => {
            checked(0..=i32::MAX, *precision).map(|precision| precision.min(MAX_PRECISION))
        }
        (oid::INTERVAL, [FULL_RANGE]) => Some(-1),
        (oid::INTERVAL, [fields]) => Some(((fields & FULL_RANGE) << 16) | FULL_PRECISION),
        (oid::INTERVAL, [fields, precision]) => checked(0..=i32::MAX, *precision)
            .map(|precision| ((fields & FULL_RANGE) << 16) | precision.min(MAX_PRECISION)),
        _ => None,
    };
    typmod.ok_or(TypeModifierError)
}

fn integer(literal: &Literal) -> Option<i32> {
    match literal {
        Literal::Integer(number) => i32::try_from(*number).ok(),
        _ => None,
    }
}

/// Whether a value with the length or precision of `old` needs no work to get that of `new`. These are the planner
/// support functions that let ALTER TYPE avoid a rewrite: `varchar_support`, `numeric_support`, `varbit_support`,
/// `interval_support` and `TemporalSimplify` (src/backend/utils/adt). `char(n)` and `bit(n)` have none.
pub fn is_no_op(base: u32, old: i32, new: i32) -> bool {
    if new < 0 || old == new {
        return true;
    }
    match base {
        oid::VARCHAR | oid::VARBIT => old >= 0 && old <= new,
        oid::NUMERIC => {
            let (old_precision, old_scale) = numeric(old);
            let (new_precision, new_scale) = numeric(new);
            old >= HEADER && new_scale == old_scale && new_precision >= old_precision
        }
        oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::TIME | oid::TIMETZ => new == MAX_PRECISION || (old >= 0 && new >= old),
        oid::INTERVAL => {
            let (old_field, new_field) = (least_field(old), least_field(new));
            let old_precision = if old < 0 { FULL_PRECISION } else { old & FULL_PRECISION };
            let new_precision = new & FULL_PRECISION;
            new_field <= old_field
                && (old_field > 0 || new_precision >= MAX_PRECISION || new_precision >= old_precision)
        }
        _ => false,
    }
}

/// Length of `varchar` and `char`.
pub(super) fn length(typmod: i32) -> i32 {
    typmod - HEADER
}

/// Precision and scale of `numeric`; the scale may be negative from 15 on.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/numeric.c`, `numeric_typmod_precision` and `numeric_typmod_scale`.
pub fn numeric(typmod: i32) -> (i32, i32) {
    let packed = typmod - HEADER;
    let scale = packed & 0x7FF;
    // The scale is an 11-bit two's complement number.
    ((packed >> 16) & 0xFFFF, (scale ^ 1024) - 1024)
}

/// The smallest field of an interval, 0 for seconds up to 5 for years, as intervaltypmodleastfield tells.
fn least_field(typmod: i32) -> u8 {
    if typmod < 0 {
        return 0;
    }
    let fields = (typmod >> 16) & FULL_RANGE;
    [field::SECOND, field::MINUTE, field::HOUR, field::DAY, field::MONTH, field::YEAR]
        .iter()
        .zip(0..)
        .find(|(bit, _)| fields & **bit != 0)
        .map_or(0, |(_, least)| least)
}

/// `INTERVAL_MASK` of the fields (src/include/utils/datetime.h).
mod field {
    pub(super) const MONTH: i32 = 1 << 1;
    pub(super) const YEAR: i32 = 1 << 2;
    pub(super) const DAY: i32 = 1 << 3;
    pub(super) const HOUR: i32 = 1 << 10;
    pub(super) const MINUTE: i32 = 1 << 11;
    pub(super) const SECOND: i32 = 1 << 12;
}

/// A built-in type with its modifier, as `format_type` writes it; `None` where it is just the type's name.
pub fn format(oid: u32, typmod: i32) -> Option<String> {
    let length = |name: &str| {
        if typmod < 0 { name.to_owned() } else { format!("{name}({})", typmod - HEADER) }
    };
    let bits = |name: &str| {
        if typmod < 0 { name.to_owned() } else { format!("{name}({typmod})") }
    };
    let precision = |name: &str, zone: &str| {
        if typmod < 0 { format!("{name} {zone}") } else { format!("{name}({typmod}) {zone}") }
    };
    Some(match oid {
        oid::BOOL => "boolean".to_owned(),
        oid::CHAR => "\"char\"".to_owned(),
        oid::INT2 => "smallint".to_owned(),
        oid::INT4 => "integer".to_owned(),
        oid::INT8 => "bigint".to_owned(),
        oid::FLOAT4 => "real".to_owned(),
        oid::FLOAT8 => "double precision".to_owned(),
        // Without length it is not SQL's `character`, which is `character(1)`.
        oid::BPCHAR if typmod < 0 => "bpchar".to_owned(),
        oid::BPCHAR => length("character"),
        oid::VARCHAR => length("character varying"),
        // Likewise: `bit` is `bit(1)`.
        oid::BIT if typmod < 0 => "\"bit\"".to_owned(),
        oid::BIT => bits("bit"),
        oid::VARBIT => bits("bit varying"),
        oid::NUMERIC if typmod >= HEADER => {
            let (precision, scale) = numeric(typmod);
            format!("numeric({precision},{scale})")
        }
        oid::TIME => precision("time", "without time zone"),
        oid::TIMETZ => precision("time", "with time zone"),
        oid::TIMESTAMP => precision("timestamp", "without time zone"),
        oid::TIMESTAMPTZ => precision("timestamp", "with time zone"),
        oid::INTERVAL => interval(typmod),
        _ => return None,
    })
}

fn interval(typmod: i32) -> String {
    use field::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    const NAMES: [(i32, &str); 13] = [
        (YEAR, " year"),
        (MONTH, " month"),
        (DAY, " day"),
        (HOUR, " hour"),
        (MINUTE, " minute"),
        (SECOND, " second"),
        (YEAR | MONTH, " year to month"),
        (DAY | HOUR, " day to hour"),
        (DAY | HOUR | MINUTE, " day to minute"),
        (DAY | HOUR | MINUTE | SECOND, " day to second"),
        (HOUR | MINUTE, " hour to minute"),
        (HOUR | MINUTE | SECOND, " hour to second"),
        (MINUTE | SECOND, " minute to second"),
    ];
    let mut text = "interval".to_owned();
    if typmod >= 0 {
        let fields = (typmod >> 16) & FULL_RANGE;
        text.push_str(NAMES.iter().find(|(mask, _)| *mask == fields).map_or("", |(_, name)| name));
        let precision = typmod & FULL_PRECISION;
        if precision != FULL_PRECISION {
            let _ = write!(text, "({precision})");
        }
    }
    text
}
