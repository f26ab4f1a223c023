//! A serializer that makes [`Value`]s of the messages of `pg_query`.

use super::{Message, Value};
use serde::ser::{self, Impossible, Serialize, SerializeSeq, SerializeStruct};
use std::fmt;

/// The value of a message; `None` if it has something that parse trees do not have.
pub(super) fn value(message: &impl Serialize) -> Option<Value> {
    message.serialize(Reader).ok()
}

/// Something that is no part of a parse tree.
#[derive(Debug)]
pub(super) struct Unsupported;

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a part of a parse tree")
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Read = Result<Value, Unsupported>;

struct Reader;

impl ser::Serializer for Reader {
    type Ok = Value;
    type Error = Unsupported;
    type SerializeSeq = ListReader;
    type SerializeTuple = Impossible<Value, Unsupported>;
    type SerializeTupleStruct = Impossible<Value, Unsupported>;
    type SerializeTupleVariant = Impossible<Value, Unsupported>;
    type SerializeMap = Impossible<Value, Unsupported>;
    type SerializeStruct = MessageReader;
    type SerializeStructVariant = Impossible<Value, Unsupported>;

    fn serialize_bool(self, value: bool) -> Read {
        Ok(Value::Number(value.into()))
    }

    fn serialize_i8(self, value: i8) -> Read {
        Ok(Value::Number(value.into()))
    }

    fn serialize_i16(self, value: i16) -> Read {
        Ok(Value::Number(value.into()))
    }

    fn serialize_i32(self, value: i32) -> Read {
        Ok(Value::Number(value.into()))
    }

    fn serialize_i64(self, value: i64) -> Read {
        Ok(Value::Number(value))
    }

    fn serialize_u8(self, value: u8) -> Read {
        Ok(Value::Number(value.into()))
    }

    fn serialize_u16(self, value: u16) -> Read {
        Ok(Value::Number(value.into()))
    }

    fn serialize_u32(self, value: u32) -> Read {
        Ok(Value::Number(value.into()))
    }

    fn serialize_u64(self, value: u64) -> Read {
        Ok(Value::Number(value.cast_signed()))
    }

    fn serialize_f32(self, _: f32) -> Read {
        Err(Unsupported)
    }

    fn serialize_f64(self, value: f64) -> Read {
        Ok(Value::Double(value.to_bits()))
    }

    fn serialize_char(self, _: char) -> Read {
        Err(Unsupported)
    }

    fn serialize_str(self, value: &str) -> Read {
        Ok(Value::Text(value.to_owned()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Read {
        Err(Unsupported)
    }

    fn serialize_none(self) -> Read {
        Ok(Value::Absent)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Read {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Read {
        Err(Unsupported)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Read {
        Err(Unsupported)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Read {
        Err(Unsupported)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Read {
        value.serialize(self)
    }

    /// The alternatives of a node, and of the value of a constant, are numbered from 1 in the order of declaration.
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Read {
        match value.serialize(self)? {
            Value::Message(message) => Ok(Value::Node(index + 1, message)),
            _ => Err(Unsupported),
        }
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListReader, Unsupported> {
        Ok(ListReader(Vec::with_capacity(length.unwrap_or_default())))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unsupported> {
        Err(Unsupported)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Unsupported> {
        Err(Unsupported)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unsupported> {
        Err(Unsupported)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unsupported> {
        Err(Unsupported)
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<MessageReader, Unsupported> {
        Ok(MessageReader(Message { name, fields: Vec::with_capacity(length) }))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unsupported> {
        Err(Unsupported)
    }
}

struct ListReader(Vec<Value>);

impl SerializeSeq for ListReader {
    type Ok = Value;
    type Error = Unsupported;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, element: &T) -> Result<(), Unsupported> {
        self.0.push(element.serialize(Reader)?);
        Ok(())
    }

    fn end(self) -> Read {
        Ok(Value::List(self.0))
    }
}

/// Whether a field is a position in the text, or a length.
fn is_position(field: &str) -> bool {
    let others = ["stmt_len", "list_start", "list_end", "rexpr_list_start", "rexpr_list_end"];
    field.ends_with("location") || others.contains(&field)
}

struct MessageReader(Message);

impl SerializeStruct for MessageReader {
    type Ok = Value;
    type Error = Unsupported;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, name: &'static str, value: &T) -> Result<(), Unsupported> {
        let value = match value.serialize(Reader)? {
            // Positions in a text that is about to change.
            Value::Number(_) if is_position(name) => Value::Number(0),
            value => value,
        };
        self.0.fields.push((name, value));
        Ok(())
    }

    /// `Node` only wraps the node itself.
    fn end(mut self) -> Read {
        match self.0.fields.as_mut_slice() {
            [("node", value)] if self.0.name == "Node" => Ok(std::mem::replace(value, Value::Absent)),
            _ => Ok(Value::Message(self.0)),
        }
    }
}
