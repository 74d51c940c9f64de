//! From packed bytes straight to a value, by serde. It reads what `serde_json` reads from the text, and what it makes of
//! it is the same.

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Error;

use super::{END, FALSE, LIST, NULL, NUMBER, NUMERAL, OBJECT, TRUE, Text, Unpacker, is_packed};

/// The value in packed bytes.
pub fn read<'de, T: Deserialize<'de>>(packed: &'de [u8]) -> Result<T, Error> {
    let mut from = Unpacker::new(packed).ok_or_else(cut_off)?;
    let value = T::deserialize(&mut from)?;
    if from.bytes.is_empty() { Ok(value) } else { Err(Error::custom("something follows the packed value")) }
}

/// The value in stored bytes: packed, or a JSON text that has no packed form.
pub fn read_stored<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Error> {
    if is_packed(bytes) {
        return read(bytes);
    }
    // Text is checked once, not string by string; what is no text fails where it stops being any.
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    }
}

fn cut_off() -> Error {
    Error::custom("packed bytes that end too early, or that this version did not write")
}

impl<'de> Unpacker<'de> {
    fn tag(&mut self) -> Result<u8, Error> {
        self.byte().ok_or_else(cut_off)
    }

    fn peek(&self) -> Result<u8, Error> {
        self.bytes.first().copied().ok_or_else(cut_off)
    }

    fn visit_text<V: Visitor<'de>>(&mut self, tag: u8, visitor: V) -> Result<V::Value, Error> {
        match self.string(tag).ok_or_else(cut_off)? {
            Text::Plain(text) => visitor.visit_borrowed_str(text),
            other @ (Text::Id(..) | Text::Time(_)) => other.with(|text| visitor.visit_str(text)),
        }
    }
}

impl<'de> Deserializer<'de> for &mut Unpacker<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.tag()? {
            NULL => visitor.visit_unit(),
            FALSE => visitor.visit_bool(false),
            TRUE => visitor.visit_bool(true),
            NUMBER => visitor.visit_u64(self.varint().ok_or_else(cut_off)?),
            NUMERAL => {
                let text = self.text().ok_or_else(cut_off)?;
                serde_json::Deserializer::from_str(text).deserialize_any(visitor)
            }
            OBJECT => {
                self.deeper().ok_or_else(cut_off)?;
                let value = visitor.visit_map(Members(self))?;
                self.end()?;
                Ok(value)
            }
            LIST => {
                self.deeper().ok_or_else(cut_off)?;
                let value = visitor.visit_seq(Members(self))?;
                self.end()?;
                Ok(value)
            }
            tag => self.visit_text(tag, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek()? == NULL {
            self.tag()?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.tag()? {
            OBJECT => {
                self.deeper().ok_or_else(cut_off)?;
                let value = visitor.visit_enum(Variant(self))?;
                self.end()?;
                Ok(value)
            }
            tag => match self.string(tag).ok_or_else(cut_off)? {
                Text::Plain(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
                other @ (Text::Id(..) | Text::Time(_)) => {
                    other.with(|text| visitor.visit_enum(StrDeserializer::new(text)))
                }
            },
        }
    }

    /// A time asks for a number: then it need not be written out and read again.
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek()? != super::TIME {
            return self.deserialize_any(visitor);
        }
        let tag = self.tag()?;
        match self.string(tag).ok_or_else(cut_off)? {
            Text::Time(time) => visitor.visit_i64(time.as_ms()),
            other @ (Text::Plain(_) | Text::Id(..)) => other.with(|text| visitor.visit_str(text)),
        }
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl Unpacker<'_> {
    fn end(&mut self) -> Result<(), Error> {
        self.depth -= 1;
        if self.tag()? == END { Ok(()) } else { Err(Error::custom("more members than were asked for")) }
    }
}

/// The members of an object or a list, up to its end, which stays.
struct Members<'a, 'de>(&'a mut Unpacker<'de>);

impl<'de> SeqAccess<'de> for Members<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.0.peek()? == END { Ok(None) } else { seed.deserialize(&mut *self.0).map(Some) }
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.0.peek()? == END { Ok(None) } else { seed.deserialize(&mut *self.0).map(Some) }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.0)
    }
}

/// An enum's variant with content: an object of one member.
struct Variant<'a, 'de>(&'a mut Unpacker<'de>);

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_any(visitor)
    }
}
