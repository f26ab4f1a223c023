//! Values as Protocol Buffers.
//!
//! The fields of every message of `pg_query.proto` are numbered from 1 in the order of their declaration, except for those
//! of `A_Const`. A test compares the result with what `pg_query` itself writes.

use super::{Message, Value};
use prost::encoding::{WireType, encode_key, encode_varint};

/// Numbers of the fields of `A_Const` after the alternatives of its value.
const NULL_FLAG: u32 = 10;
const LOCATION: u32 = 11;

/// The message `ParseResult` with one statement.
pub(super) fn parse_result(statement: &Value) -> Vec<u8> {
    let mut raw_statement = Vec::new();
    field(1, statement, &mut raw_statement);
    let mut result = Vec::new();
    nested(2, &raw_statement, &mut result);
    result
}

fn message(message: &Message, out: &mut Vec<u8>) {
    if message.name == "AConst" {
        return constant(message, out);
    }
    for (number, (_, value)) in (1..).zip(&message.fields) {
        field(number, value, out);
    }
}

/// One of the alternatives stands directly in the message.
fn constant(constant: &Message, out: &mut Vec<u8>) {
    for (name, value) in &constant.fields {
        match (*name, value) {
            ("isnull", value) => field(NULL_FLAG, value, out),
            ("location", value) => field(LOCATION, value, out),
            (_, Value::Node(alternative, inner)) => nested(*alternative, &encoded(inner), out),
            _ => {}
        }
    }
}

fn field(number: u32, value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Absent | Value::Number(0) | Value::Double(0) => {}
        // Negative numbers are sign-extended, which this conversion does.
        Value::Number(value) => {
            encode_key(number, WireType::Varint, out);
            encode_varint(value.cast_unsigned(), out);
        }
        Value::Double(bits) => {
            encode_key(number, WireType::SixtyFourBit, out);
            out.extend(bits.to_le_bytes());
        }
        Value::Text(text) if text.is_empty() => {}
        Value::Text(text) => nested(number, text.as_bytes(), out),
        Value::List(list) => list.iter().for_each(|element| match element {
            Value::Absent => nested(number, &[], out),
            element => field(number, element, out),
        }),
        Value::Message(inner) => nested(number, &encoded(inner), out),
        Value::Node(kind, inner) => {
            let mut node = Vec::new();
            nested(*kind, &encoded(inner), &mut node);
            nested(number, &node, out);
        }
    }
}

fn encoded(inner: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message(inner, &mut out);
    out
}

fn nested(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
