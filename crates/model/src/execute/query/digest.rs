//! Digests of syntax trees that do not depend on where the text stands.

use rustc_hash::FxHasher;
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use std::fmt::{self, Display, Formatter};
use std::hash::Hasher;

/// Returns a digest of a tree, without its ranges: equal for two statements that differ only in their place, their
/// spacing and their comments.
pub(super) fn digest(tree: &impl Serialize) -> Option<u64> {
    let mut digest = Digest(FxHasher::default());
    tree.serialize(&mut digest).ok()?;
    Some(digest.0.finish())
}

struct Digest(FxHasher);

/// The name of ranges, which say where something stands.
const RANGE: &str = "TextRange";

/// A part with several fields; `None` for a range, whose fields are ignored.
struct Fields<'d>(Option<&'d mut Digest>);

impl Digest {
    fn note(&mut self, bytes: &[u8]) {
        self.0.write_usize(bytes.len());
        self.0.write(bytes);
    }

    fn fields(&mut self, name: &str, length: usize) -> Fields<'_> {
        self.note(name.as_bytes());
        self.0.write_usize(length);
        Fields(Some(self))
    }
}

impl Fields<'_> {
    fn add<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
        match &mut self.0 {
            Some(digest) => value.serialize(&mut **digest),
            None => Ok(()),
        }
    }
}

/// The error of a tree that cannot be read, which does not happen.
#[derive(Debug)]
struct Never;

impl Display for Never {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the tree cannot be read")
    }
}

impl std::error::Error for Never {}

impl serde::ser::Error for Never {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

macro_rules! plain {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(fn $name(self, value: $type) -> Result<(), Never> {
            self.note(&value.to_le_bytes());
            Ok(())
        })*
    };
}

impl<'d> Serializer for &'d mut Digest {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Fields<'d>;
    type SerializeTuple = Fields<'d>;
    type SerializeTupleStruct = Fields<'d>;
    type SerializeTupleVariant = Fields<'d>;
    type SerializeMap = Fields<'d>;
    type SerializeStruct = Fields<'d>;
    type SerializeStructVariant = Fields<'d>;

    plain! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_f32: f32, serialize_f64: f64,
    }

    fn serialize_bool(self, value: bool) -> Result<(), Never> {
        self.serialize_u8(u8::from(value))
    }

    fn serialize_char(self, value: char) -> Result<(), Never> {
        self.serialize_u32(u32::from(value))
    }

    fn serialize_str(self, value: &str) -> Result<(), Never> {
        self.serialize_bytes(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Never> {
        self.note(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Never> {
        self.serialize_u8(0)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Never> {
        self.note(&[1]);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Never> {
        self.serialize_u8(0)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Never> {
        self.serialize_str(name)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Never> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        self.note(variant.as_bytes());
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Fields<'d>, Never> {
        Ok(self.fields("", length.unwrap_or_default()))
    }

    fn serialize_tuple(self, length: usize) -> Result<Fields<'d>, Never> {
        Ok(self.fields("", length))
    }

    fn serialize_tuple_struct(self, name: &'static str, length: usize) -> Result<Fields<'d>, Never> {
        Ok(self.fields(name, length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Fields<'d>, Never> {
        Ok(self.fields(variant, length))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Fields<'d>, Never> {
        Ok(self.fields("", length.unwrap_or_default()))
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Fields<'d>, Never> {
        Ok(if name == RANGE { Fields(None) } else { self.fields(name, length) })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Fields<'d>, Never> {
        Ok(self.fields(variant, length))
    }
}

macro_rules! parts {
    ($($kind:ident: $add:ident),* $(,)?) => {
        $(impl $kind for Fields<'_> {
            type Ok = ();
            type Error = Never;

            fn $add<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
                self.add(value)
            }

            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

macro_rules! named_parts {
    ($($kind:ident),*) => {
        $(impl $kind for Fields<'_> {
            type Ok = ();
            type Error = Never;

            fn serialize_field<T: ?Sized + Serialize>(&mut self, _: &'static str, value: &T) -> Result<(), Never> {
                self.add(value)
            }

            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        })*
    };
}

named_parts!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Fields<'_> {
    type Ok = ();
    type Error = Never;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Never> {
        self.add(key)
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
        self.add(value)
    }

    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::digest;
    use pgvet_syntax::ast::from_pg::parse_sql;

    #[test]
    fn places_do_not_matter() {
        let of = |sql: &str| digest(&parse_sql(sql).unwrap().remove(0)).unwrap();
        let one = of("DELETE FROM t a USING t b WHERE a.id < b.id AND a.k = b.k");
        assert_eq!(one, of("delete from t a -- again\n  using t b where a.id<b.id and a.k = b.k;"));
        for other in [
            "DELETE FROM t a USING t b WHERE a.id > b.id AND a.k = b.k",
            "DELETE FROM u a USING t b WHERE a.id < b.id AND a.k = b.k",
            "DELETE FROM t a USING t b WHERE a.id < b.id",
        ] {
            assert_ne!(one, of(other), "{other}");
        }
        assert_ne!(of("UPDATE t SET a = 'x' WHERE b"), of("UPDATE t SET a = 'y' WHERE b"));
    }
}
